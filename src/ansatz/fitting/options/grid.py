"""The options of signals, images and volumes: how they are read, and what networks begin with."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict

from ansatz.fitting.options.option import (
    IMAGES,
    Option,
    number_or_colour,
    number_or_word,
    sides,
    widths,
)

_READ: Any = {"panel": IMAGES, "reader": True}


class CorruptReading(TypedDict, total=False):
    """What becomes of an example that cannot be read."""

    on_corrupt: Annotated[
        Literal["refuse", "skip"],
        Option(
            "Leave out files, or molecules, that cannot be read.",
            default="refuse",
            flags=("--skip-corrupt",),
            reads=bool,
            parse=lambda skip: "skip" if skip else "refuse",
            **_READ,
        ),
    ]


class FileReading(CorruptReading, total=False):
    """The options of files of images, in fits and in predictions."""

    pages: Annotated[
        Literal["auto", "first", "images", "volume"],
        Option(
            "What the pages of an image file (a TIFF stack) are: images, the slices of a volume, "
            "or left out but the first.",
            default="auto",
            metavar="images|volume|first",
            reads=str,
            **_READ,
        ),
    ]


class MaskReading(TypedDict, total=False):
    """The place of masks."""

    masks: Annotated[
        Any,
        Option(
            "A label for every pixel: a folder of masks, the column that names them, or a file "
            "with a page for each page of DATA.",
            metavar="DIR|COL|FILE",
            reads=str,
            limits={"min_length": 1},
            **_READ,
        ),
    ]


class GridOptions(MaskReading, FileReading, total=False):
    """The options of signals, images and volumes."""

    image: Annotated[
        str | None,
        Option(
            "The column of a table that names image files.",
            metavar="COL",
            limits={"min_length": 1},
            **_READ,
        ),
    ]
    tiles: Annotated[
        int | None,
        Option(
            "Cut each image or volume with its mask into this number of tiles, along its "
            "longest axis: for a single labelled scene.",
            metavar="N",
            limits={"ge": 2},
            **_READ,
        ),
    ]
    spacing: Annotated[
        str | Sequence[float] | None,
        Option(
            "Volumes: the width of a voxel that NIfTI files are resampled to, in the order of "
            "their headers, like 1,1,2; none keeps the voxels. Default: the medians where they "
            "differ.",
            metavar="I,J,K|none",
            reads=str,
            parse=widths,
            **_READ,
        ),
    ]
    size: Annotated[
        int | Sequence[int] | None,
        Option(
            "Bring all images to this size, like 64 or 48x64.",
            metavar="H[xW]",
            reads=str,
            parse=sides,
            listed=True,
            limits={"ge": 1},
            **_READ,
        ),
    ]
    channels: Annotated[
        int | str | None,
        Option(
            "Arrays: the axis of the channels, first, last or none; or how many (images: 1 or 3).",
            default="auto",
            metavar="WHERE|N",
            reads=str,
            parse=number_or_word,
            limits={"min_length": 1},
            **_READ,
        ),
    ]
    unlabelled: Annotated[
        int | str | None,
        Option(
            "The value, or the '#rrggbb', in masks that means: not known.",
            metavar="VALUE",
            reads=str,
            parse=number_or_colour,
            limits={"pattern": "^#[0-9a-fA-F]{6}$"},
            **_READ,
        ),
    ]
    classes: Annotated[
        Sequence[Any] | None,
        Option("Names of the classes that masks or labels give as numbers.", reader=True),
    ]
    limit_pixels: Annotated[
        int | None, Option("Height times width that an image file may declare.", reader=True)
    ]


class GridSettings(TypedDict, total=False):
    """Options of the training on grids, as ``--set`` takes them."""

    augment: Annotated[Any, Option("Whether to augment the examples, or how.")]


class MaskSettings(TypedDict, total=False):
    """Options of the prediction of masks, as ``--set`` takes them."""

    tile: Annotated[int, Option("Side of the tiles in which large examples are predicted.")]
    clean: Annotated[Mapping[str, Any], Option("Small components to remove from masks.")]
    symmetry: Annotated[str, Option("The group over which predicted masks are averaged.")]
