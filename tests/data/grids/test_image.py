"""One image: its header and its pixels, of 8 and of 16 bits."""

import struct
import zlib

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image

from ansatz.data.grids import read_grids
from ansatz.data.grids.image import FIRST_PAGE, look
from ansatz.data.grids.image_file import Limits, bombs_are_errors
from ansatz.data.grids.images import Kind, read_image
from ansatz.errors import DataError, UsageError

GREY, COLOUR = Kind((4, 6), 1, "8 bit"), Kind((4, 6), 3, "8 bit")


def ramp(*shape):
    return np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)


def saved(folder, image, name="a.png", **options):
    path = folder / name
    image.save(path, **options)
    return path


def png_file(*chunks):
    """The bytes of a PNG file, by its specification."""
    parts = [b"\x89PNG\r\n\x1a\n"]
    for kind, body in chunks:
        check = struct.pack(">I", zlib.crc32(kind + body))
        parts.append(struct.pack(">I", len(body)) + kind + body + check)
    return b"".join(parts)


@pytest.mark.parametrize("ending", ["png", "webp", "bmp", "tif", "pgm"])
def test_grey_images_are_read_as_they_are(tmp_path, ending):
    path = saved(tmp_path, Image.fromarray(ramp(4, 6)), f"a.{ending}", lossless=True)
    seen = look(path, Limits())
    assert (seen.size, seen.depth) == ((4, 6), "8 bit")
    assert_array_equal(read_image(path, GREY, Limits())[0], ramp(4, 6))


@pytest.mark.parametrize("ending", ["png", "webp", "bmp", "tif", "ppm"])
def test_colours_are_read_as_they_are_channels_first(tmp_path, ending):
    path = saved(tmp_path, Image.fromarray(ramp(4, 6, 3)), f"a.{ending}", lossless=True)
    assert look(path, Limits()).is_colour
    assert_array_equal(read_image(path, COLOUR, Limits()), ramp(4, 6, 3).transpose(2, 0, 1))


def test_alpha_is_laid_on_black(tmp_path):
    rgba = np.random.default_rng(0).integers(0, 256, (4, 6, 4), np.uint8)
    path = saved(tmp_path, Image.fromarray(rgba))
    alpha = rgba[..., 3:] / 255
    found = read_image(path, COLOUR, Limits()).transpose(1, 2, 0)
    assert np.abs(found - rgba[..., :3] * alpha).max() <= 1  # rounded
    assert "laid on black where they are transparent" in look(path, Limits()).remarks
    grey = saved(tmp_path, Image.fromarray(rgba[..., [0, 3]]), "b.png")
    assert not look(grey, Limits()).is_colour
    assert np.abs(read_image(grey, GREY, Limits())[0] - rgba[..., 0] * alpha[..., 0]).max() <= 1


def test_a_palette_becomes_its_colours(tmp_path):
    image = Image.fromarray(ramp(4, 6) % 3).convert("P")
    image.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255])
    path = saved(tmp_path, image)
    colours = np.eye(3, dtype=np.uint8) * 255
    expected = colours[np.asarray(image)].transpose(2, 0, 1)
    assert_array_equal(read_image(path, COLOUR, Limits()), expected)
    assert look(path, Limits()).remarks == ("turned from a palette into colours",)


def test_sixteen_bits_become_shares(tmp_path):
    values = np.linspace(0, 65535, 24).astype(np.uint16).reshape(4, 6)
    for name in ("a.png", "a.tif"):
        path = saved(tmp_path, Image.fromarray(values), name)
        assert look(path, Limits()).depth == "16 bit"
        found = read_image(path, Kind((4, 6), 1, "16 bit"), Limits())
        assert found.dtype == np.float32
        np.testing.assert_allclose(found[0], values / 65535, rtol=1e-6)
    eight = saved(tmp_path, Image.fromarray(ramp(4, 6)), "b.png")
    found = read_image(eight, Kind((4, 6), 1, "16 bit"), Limits())
    np.testing.assert_allclose(found[0], ramp(4, 6) / 255, rtol=1e-6)


def test_free_numbers_are_read_as_they_are(tmp_path):
    values = np.linspace(-3, 7, 24, dtype=np.float32).reshape(4, 6)
    path = saved(tmp_path, Image.fromarray(values), "a.tif")
    assert look(path, Limits()).depth == "float"
    assert_array_equal(read_image(path, Kind((4, 6), 1, "float"), Limits())[0], values)
    values[1, 1] = np.nan
    path = saved(tmp_path, Image.fromarray(values), "b.tif")
    with pytest.raises(DataError, match=r"b.tif holds values that are not finite"):
        read_image(path, Kind((4, 6), 1, "float"), Limits())


def test_cmyk_becomes_rgb(tmp_path):
    path = saved(tmp_path, Image.new("CMYK", (6, 4), (0, 255, 255, 0)), "a.jpg", quality=100)
    red = read_image(path, COLOUR, Limits())[:, 0, 0]
    assert red[0] > 250 and red[1:].max() < 5
    assert look(path, Limits()).remarks == ("turned from CMYK into RGB",)


TURNS = {  # EXIF orientation -> what brings the stored rows upright
    1: lambda a: a,
    2: np.fliplr,
    3: lambda a: np.rot90(a, 2),
    4: np.flipud,
    5: np.transpose,
    6: lambda a: np.rot90(a, -1),
    7: lambda a: np.rot90(a, 2).T,
    8: np.rot90,
}


@pytest.mark.parametrize(
    "turn, ending", [*((turn, "png") for turn in TURNS), (2, "tif"), (3, "tif"), (4, "tif")]
)
def test_the_camera_was_held_as_exif_says(tmp_path, turn, ending):
    exif = Image.Exif()
    exif[0x0112] = turn
    path = saved(tmp_path, Image.fromarray(ramp(4, 6)), f"a.{ending}", exif=exif)
    expected = TURNS[turn](ramp(4, 6))
    assert look(path, Limits()).size == expected.shape
    assert_array_equal(read_image(path, Kind(expected.shape, 1, "8 bit"), Limits())[0], expected)


def test_a_damaged_tag_is_no_reason_to_refuse_or_to_warn(tmp_path):
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "a description that will be cut"
    path = saved(tmp_path, Image.new("L", (6, 4)), "a.jpg", exif=exif)
    cut = path.read_bytes().replace(struct.pack(">HI", 2, 31), struct.pack(">HI", 2, 60000))
    cut = cut.replace(struct.pack("<HI", 2, 31), struct.pack("<HI", 2, 60000))
    assert cut != path.read_bytes()
    path.write_bytes(cut)
    with bombs_are_errors():
        assert read_image(path, Kind(look(path, Limits()).size, 1, "8 bit"), Limits()).max() == 0


def test_a_tiff_on_its_side_is_refused(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    path = saved(tmp_path, Image.fromarray(ramp(4, 6)), "a.tif", exif=exif)
    with pytest.raises(DataError, match=r"a.tif: a TIFF on its side"):
        look(path, Limits())


def test_a_tiff_of_too_many_samples_is_refused_without_a_line_of_pillows(tmp_path, capfd):
    path = saved(tmp_path, Image.fromarray(ramp(4, 6, 3)), "a.tif")
    samples = struct.pack("<HHI", 277, 3, 1)  # tag, type and count of SamplesPerPixel
    before, _, after = path.read_bytes().partition(samples)
    path.write_bytes(before + samples + struct.pack("<H", 9) + after[2:])
    with pytest.raises(DataError, match=r"a\.tif"):
        look(path, Limits())
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("ending", ["gif", "png", "webp", "tif"])
def test_of_many_frames_the_first_is_read(tmp_path, ending):
    frames = [Image.new("RGB", (6, 4), (level, 0, 0)) for level in (250, 0, 100)]
    path = saved(
        tmp_path, frames[0], f"a.{ending}", save_all=True, append_images=frames[1:], lossless=True
    )
    assert FIRST_PAGE in look(path, Limits()).remarks
    assert_array_equal(read_image(path, COLOUR, Limits())[0], np.full((4, 6), 250))


def test_another_size_is_fitted_with_its_proportions(tmp_path):
    path = saved(tmp_path, Image.new("L", (12, 4), 200))
    found = read_image(path, Kind((6, 6), 1, "8 bit"), Limits())[0]
    assert_array_equal(found, np.repeat([[0], [0], [200], [200], [0], [0]], 6, axis=1))
    fine = np.tile([0, 255], (64, 32)).astype(np.uint8)  # stripes that would alias
    path = saved(tmp_path, Image.fromarray(fine), "b.png")
    inner = read_image(path, Kind((16, 16), 1, "8 bit"), Limits())[0, :, 1:-1]
    assert np.abs(inner.astype(float) - 127.5).max() < 12


@pytest.mark.parametrize("width, height", [(30_000, 30_000), (12_000, 10_000), (8_000, 8_000)])
def test_a_bomb_is_refused_by_what_it_declares(tmp_path, width, height):
    path = tmp_path / "bomb.png"
    head = struct.pack(">2I5B", width, height, 8, 0, 0, 0, 0)
    body = zlib.compress(bytes(100_000), 9)
    path.write_bytes(png_file((b"IHDR", head), (b"IDAT", body), (b"IEND", b"")))
    with (
        bombs_are_errors(),
        pytest.raises(DataError, match=r"bomb.png declares .* pixels, more than 40,000,000: not"),
    ):
        look(path, Limits())


def test_a_large_photograph_is_decoded_small_and_looks_the_same(tmp_path):
    rows, columns = np.mgrid[:600, :800] / 100
    smooth = (127 + 60 * np.sin(3 * rows) + 60 * np.cos(2 * columns)).astype(np.uint8)
    path = saved(tmp_path, Image.fromarray(smooth), "a.jpg", quality=95)
    found = read_image(path, Kind((60, 80), 1, "8 bit"), Limits())[0]
    whole = np.asarray(Image.fromarray(smooth).resize((80, 60), Image.Resampling.BILINEAR))
    assert np.abs(found.astype(float) - whole).max() < 6
    exif = Image.Exif()
    exif[0x0112] = 6
    path = saved(tmp_path, Image.fromarray(smooth), "b.jpg", quality=95, exif=exif)
    turned = read_image(path, Kind((80, 60), 1, "8 bit"), Limits())[0]
    assert np.abs(turned.astype(float) - np.rot90(whole, -1)).max() < 6


def test_limits_are_those_that_are_said(tmp_path):
    path = saved(tmp_path, Image.fromarray(ramp(4, 6)))
    with pytest.raises(DataError, match="declares 6 x 4 pixels, more than 23"):
        look(path, Limits(pixels=23))
    with pytest.raises(DataError, match="bytes, more than 10"):
        look(path, Limits(bytes=10))
    with pytest.raises(UsageError, match="limit_pixels"):
        Limits(pixels=10**9).check()


FOREIGN = {
    "a.png": (b"", "is empty"),
    "b.png": (b"not an image at all", "is not an image: it holds text"),
    "c.svg": (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "it is an SVG drawing"),
    "d.pdf": (b"%PDF-1.7\n\x00\xff", "it is a PDF"),
    "e.fits": (b"SIMPLE  =                    T", "it is a FITS file"),
    "f.png": (bytes(range(256)), "is not an image: PNG, JPEG"),
    "h.pgm": (b"P5\n#" + b"x" * 10**6 + b"\n6 6\n255\n" + bytes(36), "no size within 4096"),
    "g.png": (b"\x89PNG\r\n\x1a\n" + bytes(20), "is (a damaged|not an) image"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_no_image_is_said_to_be_none(tmp_path, name):
    content, said = FOREIGN[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=f"{name} .*{said}|{name} {said}"):
        look(tmp_path / name, Limits())


@pytest.mark.parametrize("ending", ["png", "jpg", "webp", "bmp", "tif"])
def test_a_truncated_file_is_named(tmp_path, ending):
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    path = saved(tmp_path, Image.fromarray(noise), f"cut.{ending}")
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(DataError, match=rf"cut.{ending} is (a damaged|not an) image"):
        read_image(path, Kind((64, 64), 3, "8 bit"), Limits())


@pytest.mark.parametrize("ending", ["png", "jpg", "webp", "bmp", "gif", "tif", "ppm"])
def test_damaged_bytes_end_in_one_line_or_in_an_image(tmp_path, ending):
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (16, 16, 3), np.uint8)
    good = saved(tmp_path, Image.fromarray(noise), f"a.{ending}").read_bytes()
    path = tmp_path / f"b.{ending}"
    for _ in range(60):
        bad = np.frombuffer(good, np.uint8).copy()
        places = rng.integers(0, min(len(bad), rng.choice([30, 200, len(bad)])), 3)
        bad[places] = rng.integers(0, 256, 3)
        path.write_bytes(bad.tobytes())
        try:
            with bombs_are_errors():
                look(path, Limits(pixels=10_000))
                assert read_image(path, COLOUR, Limits(pixels=10_000)).shape == (3, 4, 6)
        except DataError as error:
            assert f"b.{ending}" in str(error) and "\n" not in str(error)


def colours(channels=3, size=(5, 7)):
    return np.random.default_rng(0).integers(0, 65536, (*size, channels), np.uint16)


def paeth(a, b, c):
    near = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))
    return near[2]


PREDICTED = {  # from left, above and above left, as the standard has it
    0: lambda a, b, c: 0,
    1: lambda a, b, c: a,
    2: lambda a, b, c: b,
    3: lambda a, b, c: (a + b) // 2,
    4: paeth,
}


def png(values, kind=2):
    """A PNG file of big-endian numbers whose rows use the five filters in turn."""
    height, width, channels = values.shape
    wide = 2 * channels
    rows = [list(row.astype(">u2").tobytes()) for row in values]
    body = b""
    for y, row in enumerate(rows):
        above = rows[y - 1] if y else [0] * len(row)
        body += bytes([y % 5])
        for x, byte in enumerate(row):
            a, c = (row[x - wide], above[x - wide]) if x >= wide else (0, 0)
            body += bytes([(byte - PREDICTED[y % 5](a, above[x], c)) % 256])
    head = struct.pack(">2I5B", width, height, 16, kind, 0, 0, 0)
    parts = [b"\x89PNG\r\n\x1a\n"]
    for name, chunk in ((b"IHDR", head), (b"IDAT", zlib.compress(body)), (b"IEND", b"")):
        check = struct.pack(">I", zlib.crc32(name + chunk))
        parts.append(struct.pack(">I", len(chunk)) + name + chunk + check)
    return b"".join(parts)


def tiff(values, order="<", compression=1, predictor=1):
    """A TIFF file of one strip."""
    height, width, channels = values.shape
    if predictor == 2:
        values = np.diff(values, axis=1, prepend=np.zeros_like(values[:, :1]))
    body = values.astype(f"{order}u2").tobytes()
    body = zlib.compress(body) if compression == 8 else body
    body += b"\0" * (len(body) % 2)
    bits = struct.pack(f"{order}{channels}H", *[16] * channels)
    entries = [
        (256, 3, 1, width), (257, 3, 1, height), (258, 3, channels, 8 + len(body)),
        (259, 3, 1, compression), (262, 3, 1, 2), (273, 4, 1, 8), (277, 3, 1, channels),
        (278, 3, 1, height), (279, 4, 1, len(body)), (317, 3, 1, predictor),
    ]  # fmt: skip
    entries += [(338, 3, 1, 2)] * (channels == 4)
    made = struct.pack(f"{order}H", len(entries))
    for tag, kind, count, value in entries:
        inline = kind == 3 and count == 1
        cell = struct.pack(
            f"{order}HH" if inline else f"{order}I", *([value, 0] if inline else [value])
        )
        made += struct.pack(f"{order}HHI", tag, kind, count) + cell
    magic = b"II*\0" if order == "<" else b"MM\0*"
    start = struct.pack(f"{order}I", 8 + len(body) + len(bits))
    return magic + start + body + bits + made + bytes(4)


FILES = {
    "png": lambda values: png(values, 2 if values.shape[-1] == 3 else 6),
    "little.tif": lambda values: tiff(values),
    "big.tif": lambda values: tiff(values, ">"),
    "deflate.tif": lambda values: tiff(values, compression=8, predictor=2),
    "deflate-big.tif": lambda values: tiff(values, ">", compression=8),
}


@pytest.mark.parametrize("name", FILES)
def test_all_sixteen_bits_of_every_colour_are_read(tmp_path, name):
    path = tmp_path / f"a.{name}"
    path.write_bytes(FILES[name](colours()))
    assert look(path, Limits())[1:] == (True, "16 bit", ())
    found = read_image(path, Kind((5, 7), 3, "16 bit"), Limits())
    assert_allclose(found * 65535, colours().transpose(2, 0, 1), rtol=0, atol=0.01)


@pytest.mark.parametrize("name", FILES)
def test_transparent_colours_are_laid_on_black(tmp_path, name):
    path = tmp_path / f"a.{name}"
    path.write_bytes(FILES[name](colours(4)))
    found = read_image(path, Kind((5, 7), 3, "16 bit"), Limits())
    shares = colours(4) / 65535
    assert_allclose(found, (shares[..., :3] * shares[..., 3:]).transpose(2, 0, 1), atol=1e-6)


def test_they_become_grey_as_bytes_do(tmp_path):
    (tmp_path / "a.png").write_bytes(png(colours()))
    grey = read_grids(tmp_path, channels=1).grids.load()[0, 0]
    eight = Image.fromarray((colours() >> 8).astype(np.uint8)).convert("L")
    assert_allclose(grey * 255, np.asarray(eight), rtol=0, atol=2)


def test_grey_bytes_and_colours_of_both_depths_are_one_set(tmp_path):
    (tmp_path / "1.png").write_bytes(png(np.full((4, 6, 3), 65535, np.uint16)))
    Image.new("RGB", (6, 4), (255, 0, 51)).save(tmp_path / "2.png")
    Image.fromarray(np.full((4, 6), 13107, np.uint16)).save(tmp_path / "3.png")
    table = read_grids(tmp_path)
    expected = torch.tensor([[1.0, 1, 1], [1, 0, 0.2], [0.2, 0.2, 0.2]], dtype=torch.float32)
    torch.testing.assert_close(table.grids.load()[:, :, 0, 0], expected)
    assert "images of 16 bits were read as shares of 65,535, in [0, 1]." in table.notes


def test_a_reader_of_bytes_takes_the_upper_eight_of_colours(tmp_path):
    (tmp_path / "1.png").write_bytes(png(colours()))
    table = read_grids(tmp_path, shares=False)
    assert table.grids.load()[0].permute(1, 2, 0).tolist() == (colours() >> 8).tolist()
    assert table.notes == ["1 of 1 images have 16 bits per colour: they were read at 8."]
    Image.fromarray(np.full((5, 7), 513, np.uint16)).save(tmp_path / "2.png")  # 2 of 255: dark
    assert read_grids(tmp_path, shares=False).grids.dtype == torch.float32


def test_a_damaged_file_and_limits_are_named(tmp_path):
    whole = png(colours(size=(40, 40)))
    (tmp_path / "a.png").write_bytes(whole[:-600])
    with pytest.raises(DataError, match=r"a.png is a damaged image"):
        read_grids(tmp_path)
    (tmp_path / "a.png").write_bytes(whole)
    with pytest.raises(DataError, match="declares 40 x 40 pixels, more than 1,000"):
        read_grids(tmp_path, limit_pixels=1000)


def test_grey_with_alpha_is_read_at_eight_and_said(tmp_path):
    (tmp_path / "a.png").write_bytes(png(colours(2), kind=4))
    assert "read at 8 of their 16 bits per colour" in look(tmp_path / "a.png", Limits()).remarks
