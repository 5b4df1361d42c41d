"""A fit to texts that begins with the network and the tokenizer of a Hugging Face folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from ansatz.data.sequences.sequences import Texts
from ansatz.data.sequences.tokenizer_folder import read_tokenizer
from ansatz.errors import DataError, UsageError
from ansatz.fitting.recipe import Recipe
from ansatz.networks import Loaded
from ansatz.networks.hugging_face import describe_hugging_face, load_hugging_face
from ansatz.structures.sequence.encoder import TextEncoder, notes_on

RANK = 8  # of adapters
_RATES = {"all": 0.03, "adapter": 0.3, "head": 1.0}  # times the width: see PretrainedTexts.recipe
_PASSES = {"all": 3, "adapter": 3, "head": 20}
_STEPS = {
    "all": 300,
    "adapter": 400,
    "head": 1_000,
}  # of few texts, at most 20 times as many passes


class PretrainedTexts:
    """The network, the weights and the tokens of a folder.

    Args:
        options: of the fit; ``pretrained`` is the folder, or a file in it.
    """

    rate_factor = 1.1  # between a layer and the one before it: all have much to keep

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.folder, self.asked = folder_of(options["pretrained"]), options
        self.described = describe_hugging_face(self.folder)
        self.network = self.described.network

    @property
    def trained(self) -> str:
        """What is trained: all weights, an adapter and the head, or the head."""
        if self.asked.get("adapter"):
            return "adapter"
        return "head" if self.asked.get("freeze") == "backbone" else "all"

    @property
    def last_map(self) -> bool:
        """Whether nothing but the last map is trained, on states that stay as they are."""
        return self.trained == "head"

    @property
    def options(self) -> dict[str, Any]:
        """Options of the network's factory.

        Where nothing but the last map is trained, it reads the mean state: the first token's was
        made for another task. Nothing is dropped then.
        """
        head = self.trained == "head"
        found = {**self.described.options, "dropout": 0.0 if head else self.described.dropout}
        if self.trained == "adapter":
            found["rank"] = RANK
        if head and self.network != "gpt":
            found["pooling"] = "mean"
        return found

    def load(self, network: nn.Module) -> Loaded:
        """Gives the network its weights; only the head starts anew."""
        return load_hugging_face(network, self.folder)

    def recipe(self, base: Recipe, rows: float) -> Recipe:
        r"""A few passes at a small rate.

        A step of Adam moves every weight by about the rate :math:`\eta`, hence an output of a map
        of D weights by about :math:`\eta D`: the rate is :math:`c / D`, with c = 0.03 (4e-5 for a
        BERT of 768 units), and more where a few weights alone are trained.
        """
        width = self.described.options["width"]
        size = 16 if rows < 2_000 else 32
        trained = self.trained
        passes = min(20, max(_PASSES[trained], _STEPS[trained] * size / max(rows, 1)))
        return base.model_copy(
            update={
                "batch_size": size,
                "steps": max(1, round(passes * rows * (1 - base.holdout) / size)),
                "learning_rate": float(f"{_RATES[trained] / width:.3g}"),
                "weight_decay": 0.01,
                "dtype": "float32",
                "clip": 1.0,
                "average": None,
                "holdout": 0.1,
                "folds": 0,
                "evaluations": 10,
                "patience": 10,
                "bins": 0,
            }
        )

    def encoder(self, rows: Any) -> TextEncoder:
        """The tokenizer of the folder."""
        if not isinstance(rows, Texts):
            raise DataError(f"{self.folder.name} is for texts, and these are signals.")
        for name in ("tokens", "vocabulary"):
            if self.asked.get(name) is not None:
                raise UsageError(
                    f"'{name}' and pretrained: {self.folder.name} decides its tokens; leave it out."
                )
        tokens, spec = read_tokenizer(self.folder), self.described.spec
        self.described.check_vocabulary(tokens.size)
        most = spec.size[0]
        length = self.asked.get("length") or most
        around = sum(map(len, tokens.frame))
        if not around < length <= most:
            raise UsageError(
                f"length: {self.folder.name} reads {around + 1} to {most} tokens of a text, got "
                f"{length}."
            )
        notes = notes_on(tokens, tokens.encode(rows.texts.tolist()), rows, length)
        return TextEncoder(tokens, length, notes, (spec.vocabulary, most))


def folder_of(place: str | Path) -> Path:
    """A folder, or that of a file of weights with its ``config.json``."""
    path = Path(place)
    return path if path.is_dir() else path.parent


def pretrained_texts(options: Mapping[str, Any]) -> PretrainedTexts | None:
    """The folder that a fit begins with, if there is one."""
    place = options.get("pretrained")
    if place is None:
        if options.get("adapter"):
            raise UsageError("adapter needs pretrained weights: --pretrained FOLDER.")
        return None
    if options.get("adapter") and options.get("freeze") is not None:
        raise UsageError("adapter and freeze: an adapter already leaves all but the head as it is.")
    path = Path(place)
    if path.is_dir() or (path.parent / "config.json").is_file():
        return PretrainedTexts(options)
    return None  # weights of a network by name
