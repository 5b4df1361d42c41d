"""An image file opened: limits first, every refusal one line."""

import contextlib
import ctypes
import functools
import logging
import re
import stat
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ansatz.data.grids.places import Page, Place, file_of
from ansatz.errors import DataError, MissingExtraError, UsageError
from ansatz.storage.decoding import reason

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
_PILLOWS_OWN = 178_956_970  # pixels beyond which pillow refuses to open a file at all
_PNM = (".pgm", ".ppm", ".pbm", ".pnm")
_PNM_HEADER = 4096  # bytes
_WITH_TAGS = ("exif", "Raw profile type exif", "XML:com.adobe.xmp", "xmp")
SIDEWAYS = (5, 6, 7, 8)  # values of the EXIF tag that exchange height and width
MOST_PAGES = 2**15
_THREAD = threading.local()


class Limits(NamedTuple):
    """Limits on what a file's header may declare, checked before decoding."""

    pixels: int = 40_000_000
    bytes: int = 2**28

    def check(self) -> "Limits":
        """The limits, if pillow can honour them."""
        if not 1 <= self.pixels <= _PILLOWS_OWN or self.bytes < 1:
            raise UsageError(f"limit_pixels must be in 1..{_PILLOWS_OWN:,}, limit_bytes above 0.")
        return self


@contextmanager
def bombs_are_errors() -> Iterator[None]:
    """Turns pillow's warning of an enormous image into its error; of odd tags it need not warn."""
    bomb = _pillow().DecompressionBombWarning
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\b")
        warnings.simplefilter("error", bomb)
        yield


@contextmanager
def kept_open() -> Iterator[None]:
    """Pages that this thread reads inside are read from one open file as long as it is the same.

    A file's pages are a chain: each that is found from the beginning costs as many steps as come
    before it.
    """
    if hasattr(_THREAD, "kept"):
        yield
        return
    _THREAD.kept = {}
    try:
        yield
    finally:
        kept = _THREAD.kept
        del _THREAD.kept
        _close(kept)


@contextmanager
def opened(path: Place, limits: Limits, *, anew: bool = False) -> "Iterator[Image]":
    """Opens an image and reads its header; any decoder's failure becomes a one-line error."""
    pillow = _pillow()
    check_file(file_of(path), limits.bytes)
    try:
        with _open(file_of(path)) if anew else _file(path) as image:
            _check_pixels(path, image, limits)
            if isinstance(path, Page):
                image.seek(path.number)
                _check_pixels(path, image, limits)
            yield image
    except DataError:
        raise
    except (pillow.DecompressionBombError, pillow.DecompressionBombWarning) as error:
        found = re.search(r"\d+", str(error))
        raise DataError(_too_many(path, f"{int(found[0]):,}" if found else "", limits)) from None
    except pillow.UnidentifiedImageError:
        raise DataError(f"{path} is not an image: {_what_it_is(file_of(path))}.") from None
    except (FileNotFoundError, PermissionError) as error:
        raise DataError(f"{path} cannot be opened: {error.strerror or error}.") from None
    except MemoryError:
        raise
    except Exception as error:  # decoders of foreign bytes raise anything
        raise DataError(f"{path} is a damaged image: {reason(error)}.") from None


@contextmanager
def _file(place: Place) -> "Iterator[Image]":
    """The open file; its pixels outlive it, unless it is kept open for its next page."""
    kept: dict[Path, Image] | None = getattr(_THREAD, "kept", None)
    if kept is None or not isinstance(place, Page):
        with _open(file_of(place)) as image:
            yield image
        return
    if place.path not in kept:
        _close(kept)
        kept[place.path] = _open(place.path)
    try:
        yield kept[place.path]
    except BaseException:
        _close(kept)
        raise


def _open(path: Path) -> "Image":
    plain = path.suffix.lower() in _PNM
    if plain:
        _check_header(path)
    found: Image = _pillow().open(path, formats=FORMATS if plain else FORMATS[:-1])
    return found


def _close(kept: "dict[Path, Image]") -> None:
    while kept:
        with kept.popitem()[1]:
            pass


def check_file(path: Path, limit_bytes: int) -> None:
    """Rejects a path that is not a regular file, is empty or too long."""
    try:
        found = path.stat()
    except FileNotFoundError:
        nor = "" if path.suffix else ", and no image beside it is called so with an ending"
        raise DataError(f"{path} does not exist{nor}.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be opened: {error.strerror or error}.") from None
    if not stat.S_ISREG(found.st_mode):
        raise DataError(f"{path} is not a regular file.")
    if found.st_size == 0:
        raise DataError(f"{path} is empty (0 bytes).")
    if found.st_size > limit_bytes:
        raise DataError(f"{path} has {found.st_size:,} bytes, more than {limit_bytes:,}.")


def _check_header(path: Path) -> None:
    """Refuses a PNM file with an endless comment before its size, which pillow reads by bytes."""
    with path.open("rb") as file:
        head = file.read(_PNM_HEADER)
    if not re.match(rb"P\w\s+\d+\s+\d+\s", re.sub(rb"#[^\n\r]*[\n\r]", b"", head)):
        raise DataError(f"{path} is not an image: no size within {_PNM_HEADER} bytes.")


def _check_pixels(path: Place, image: "Image", limits: Limits) -> None:
    width, height = image.size
    if width * height > limits.pixels:
        raise DataError(_too_many(path, f"{width:,} x {height:,}", limits))


def _too_many(path: Place, found: str, limits: Limits) -> str:
    return (
        f"{path} declares {found} pixels, more than {limits.pixels:,}: not decoded. "
        "If you trust it: limit_pixels= of read_grids in Python."
    )


def _what_it_is(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(256)
    if head.startswith(b"%PDF"):
        return "it is a PDF"
    if head.startswith(b"SIMPLE  ="):
        return "it is a FITS file"
    if b"<svg" in head.lower():
        return "it is an SVG drawing"
    if all(byte in b"\t\n\r" or 32 <= byte < 127 for byte in head):
        return "it holds text"
    return f"{', '.join(FORMATS)} are read"


def orientation(image: Any) -> int:
    """The EXIF tag 1..8 that says how a camera was held; 1 where there is none or it is damaged."""
    if image.format == "TIFF":
        if image.tag_v2.get(0x0112, 1) in SIDEWAYS:
            # Pillow 13 turns them by itself and mixes up the rows of uncompressed ones.
            raise DataError(f"{image.filename}: a TIFF on its side (by its tag). Save it upright.")
        return 1
    if not any(tag in image.info for tag in _WITH_TAGS):
        return 1
    try:
        # The base method: the one for PNG decodes the whole image to find tags behind its pixels.
        turn = _pillow().Image.getexif(image).get(0x0112, 1)
    except Exception:  # a damaged tag does not spoil the image
        return 1
    return turn if turn in range(1, 9) else 1


def upright(image: "Image", turn: int) -> "Image":
    """The image as the camera saw it, from its EXIF tag."""
    if turn == 1:
        return image
    from PIL.Image import Transpose

    turns = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }
    return image.transpose(turns[turn])


@functools.cache
def _pillow() -> Any:
    try:
        from PIL import Image, _imaging
    except ImportError:
        raise MissingExtraError("image files", "vision") from None
    # Where nobody listens to pillow's log, Python prints it; the error that follows says it too.
    logging.getLogger("PIL").addHandler(logging.NullHandler())
    # libtiff prints what it thinks of a file to standard error; what matters it also returns.
    with contextlib.suppress(OSError, AttributeError):  # a build that hides its parts
        library = ctypes.CDLL(_imaging.__file__)
        library.TIFFSetErrorHandler(None)
        library.TIFFSetWarningHandler(None)
    return Image


def count_pages(path: Path, limits: Limits) -> int:
    """Counts the pages or frames of a file; decodes none, and counts damaged ones too."""
    with opened(path, limits) as image:
        if image.format != "TIFF":
            count = int(getattr(image, "n_frames", 1))
        else:  # whose pages are a chain that may be made endless
            count = _count_tiff_pages(image)
    if count > MOST_PAGES:
        raise DataError(f"{path} declares more than {MOST_PAGES:,} pages: not decoded.")
    return count


def _count_tiff_pages(image: Any) -> int:
    """Pages of a TIFF file, up to one that is damaged and leads no further."""
    for number in range(1, MOST_PAGES + 1):
        try:
            image.seek(number)
        except EOFError:
            return number
        except Exception:  # whoever reads this page says what is wrong with it
            return number + 1
    return MOST_PAGES + 1
