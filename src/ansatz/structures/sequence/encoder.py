"""From texts and signals to a network's inputs: token codes or standardised numbers."""

from collections.abc import Mapping
from typing import Any

import torch

from ansatz.data import Column
from ansatz.data.batch import Padded, Ragged, pad
from ansatz.data.sequences.sequences import Sequences, Texts
from ansatz.data.sequences.tokens import Tokens
from ansatz.data.sequences.windows import Windows
from ansatz.errors import DataError
from ansatz.spec import InputSpec
from ansatz.structures.sequence.window_encoder import fit_window_encoder, load_window_encoder

LENGTHS = {"word": 512, "bpe": 512, "wordpiece": 512, "char": 2_048, "byte": 2_048}


class TextEncoder:
    """The codes of a text's tokens, at most ``length`` of them."""

    dtype = torch.float64

    def __init__(self, tokens: Tokens, length: int, notes: list[str] | None = None) -> None:
        self.tokens, self.length, self._notes = tokens, length, notes or []

    @property
    def spec(self) -> InputSpec:
        """Number of codes and most tokens."""
        return InputSpec.sequence(vocabulary=self.tokens.size, length=self.length)

    @property
    def notes(self) -> list[str]:
        """Empty texts, and the share that was cut."""
        return self._notes

    @property
    def columns(self) -> list[Column]:
        """None: words are not columns."""
        return []

    def ragged(self, rows: Texts, notes: list[str] | None = None) -> Ragged:
        """The codes of each text."""
        if not isinstance(rows, Texts):
            raise DataError("the model was fitted to texts, and these are signals.")
        found = self.tokens.encode(rows.texts.tolist())
        if notes is not None:
            notes += _notes(found, rows, self.length)
        return _cut(found, self.length)

    def inputs(self, rows: Texts, *, notes: list[str] | None = None) -> Padded:
        """Codes and mask."""
        return pad(self.ragged(rows, notes))

    def state(self) -> dict[str, Any]:
        """All of it as JSON."""
        record = {"tokenizer": self.tokens.state(), "length": self.length, "notes": self._notes}
        return {"kind": "text", **record}


class SignalEncoder:
    """Every number of a step with mean 0 and standard deviation 1."""

    dtype = torch.float64

    def __init__(self, mean: list[float], scale: list[float]) -> None:
        self.mean, self.scale = mean, scale

    @property
    def spec(self) -> InputSpec:
        """The numbers of a step."""
        return InputSpec.sequence(features=len(self.mean))

    @property
    def notes(self) -> list[str]:
        """None."""
        return []

    @property
    def columns(self) -> list[Column]:
        """None: steps are not columns."""
        return []

    def ragged(self, rows: Sequences, notes: list[str] | None = None) -> Ragged:
        """The standardised steps."""
        if not isinstance(rows, Sequences) or rows.spec.features != len(self.mean):
            raise DataError(f"the model was fitted to signals of {len(self.mean)} numbers a step.")
        values = (rows.ragged.values - torch.tensor(self.mean).double()) / torch.tensor(
            self.scale
        ).double()
        return rows.ragged._replace(values=values)

    def inputs(self, rows: Sequences, *, notes: list[str] | None = None) -> Padded:
        """Numbers and mask."""
        return pad(self.ragged(rows))

    def state(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {"kind": "signal", "mean": self.mean, "scale": self.scale}


def fit_encoder(rows: Any, options: Mapping[str, Any]) -> Any:
    """An encoder of the training rows."""
    if isinstance(rows, Windows):
        return fit_window_encoder(rows, options)
    if isinstance(rows, Sequences):
        values = rows.ragged.values
        if not len(values):
            raise DataError("all signals are empty.")
        scale = values.std(0, correction=0)
        scale = torch.where(scale > 0, scale, 1)
        return SignalEncoder(values.mean(0).tolist(), scale.tolist())
    texts = rows.texts.tolist()
    if not any(text.strip() for text in texts):
        raise DataError("all texts are empty.")
    from ansatz.data.sequences.tokens import default_kind

    kind = options.get("tokens") or default_kind(texts)
    tokens = Tokens.learn(texts, kind=kind, vocabulary=options.get("vocabulary") or 30_000)
    found = tokens.encode(texts)
    most = max(1, int(found.offsets.diff().max()))
    length = options.get("length") or min(2 * most, LENGTHS[kind])
    return TextEncoder(tokens, length, _notes(found, rows, length))


def load_encoder(state: Mapping[str, Any]) -> Any:
    """The encoder of a saved model."""
    if state["kind"] == "window":
        return load_window_encoder(state)
    if state["kind"] == "signal":
        return SignalEncoder(list(state["mean"]), list(state["scale"]))
    import json

    tokens = Tokens(json.dumps(state["tokenizer"]))
    return TextEncoder(tokens, int(state["length"]), list(state["notes"]))


def _cut(ragged: Ragged, length: int) -> Ragged:
    """The first steps of each row."""
    lengths = ragged.offsets.diff()
    if not len(lengths) or int(lengths.max()) <= length:
        return ragged
    place = torch.arange(len(ragged.values)) - ragged.offsets[:-1].repeat_interleave(lengths)
    kept = lengths.clamp(max=length)
    return Ragged(ragged.values[place < length], torch.cat([kept.new_zeros(1), kept.cumsum(0)]))


def _notes(found: Ragged, rows: Texts, length: int) -> list[str]:
    lengths, notes = found.offsets.diff(), []
    empty, cut = int((lengths == 0).sum()), int((lengths > length).sum())
    zero = sum("\0" in text for text in rows.texts)
    if empty:
        notes.append(f"texts without a token: {empty} of {len(rows)}.")
    if cut:
        notes.append(
            f"{cut / len(rows):.0%} of the texts are cut after {length} tokens (--length)."
        )
    if zero:
        notes.append(f"texts with NUL characters, read as spaces: {zero}.")
    unknown = int((found.values == 1).sum())
    if unknown > 0.2 * max(1, len(found.values)):
        share = unknown / len(found.values)
        notes.append(f"{share:.0%} of the tokens were not in the training texts.")
    return notes
