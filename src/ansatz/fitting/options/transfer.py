"""The options of networks that begin with given weights."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, TypedDict

from ansatz.fitting.options.option import TRAINING, Option, number_or_word, require_weights

_WEIGHTS = (
    "Weights that the network begins with: a file (.safetensors, .pth), or for texts a folder of "
    "Hugging Face, which decides network and tokens."
)
_FREEZE = "Leave this of the network as it began: backbone, or a number of groups of layers."
_ADAPTER = (
    "Train low-rank changes of the attention's maps (lora, --set rank=8) and the last map alone."
)


class TransferOptions(TypedDict, total=False):
    """The weights that a network begins with, and what of it stays as it began."""

    pretrained: Annotated[
        str | Path | None, Option(_WEIGHTS, TRAINING, metavar="PATH", check=require_weights)
    ]
    freeze: Annotated[
        str | int | Sequence[int] | None,
        Option(_FREEZE, TRAINING, metavar="PART", reads=str, parse=number_or_word),
    ]


class TransferSettings(TypedDict, total=False):
    """Options of the beginning of a network, as ``--set`` takes them."""

    pretrained: Annotated[str | Path, Option(_WEIGHTS)]
    freeze: Annotated[str | int | Sequence[int], Option(_FREEZE)]


class AdapterOptions(TypedDict, total=False):
    """The adapters of networks on texts."""

    adapter: Annotated[
        Literal["lora"] | None, Option(_ADAPTER, TRAINING, metavar="KIND", reads=str)
    ]


class AdapterSettings(TypedDict, total=False):
    """The adapters of networks on texts, as ``--set`` takes them."""

    adapter: Annotated[Literal["lora"], Option(_ADAPTER)]
