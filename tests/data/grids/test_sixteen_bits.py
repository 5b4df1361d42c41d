"""Colours of 16 bits, from files written by the formats' specifications."""

import struct
import zlib

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from PIL import Image

from ansatz.data.grids import read_grids
from ansatz.data.grids.image import look
from ansatz.data.grids.image_file import Limits
from ansatz.data.grids.images import Kind, read_image
from ansatz.errors import DataError


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
