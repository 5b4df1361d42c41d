"""Texts and signals in an exported graph: codes or numbers of steps with a mask go in."""

import json
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz.data.sequences.sequences import sequences_of
from ansatz.fitting.contracts.exporter import Exporter, Input
from ansatz.fitting.contracts.inference import Posterior
from ansatz.structures.sequence.encoder import SignalEncoder, TextEncoder

_EXAMPLE, _STEPS = 11, 9  # examples and steps: no other axis is likely to have these lengths
_MADE_UP = 16  # examples


class SequenceExporter(Exporter):
    """Codes of tokens, or the numbers of a signal, and the mask of present steps."""

    def __init__(self, encoder: TextEncoder | SignalEncoder) -> None:
        self.encoder = encoder
        self.steps = (encoder.spec.size or (2**20,))[0]
        if isinstance(encoder, TextEncoder):
            takes = "codes of tokens (N, T), made by the tokenizer beside the file"
            self.preprocessing = "outside the graph: texts are cut into tokens by tokenizer.json"
        else:
            takes = f"numbers (N, T, {encoder.spec.features}), as they are"
            self.preprocessing = "inside the graph: numbers with mean 0 and standard deviation 1"
        present = "true where a step is there (N, T)"
        self.inputs = [
            Input("X", "X", "codes" if encoder.spec.vocabulary else "tensor", takes=takes),
            Input("mask", "mask", "mask", takes=present),
        ]

    def module(self, encoder: Any) -> nn.Module:
        """Signals standardised; codes as they are."""
        return _Same() if isinstance(encoder, TextEncoder) else _Standardised(encoder)

    def example(self, kind: torch.dtype) -> tuple[Tensor, ...]:
        """Examples of nothing, half of their steps present."""
        steps, spec = min(_STEPS, self.steps), self.encoder.spec
        mask = torch.arange(steps).expand(_EXAMPLE, steps) < (steps + 1) // 2
        if spec.vocabulary:
            return torch.full((_EXAMPLE, steps), 1), mask.clone()
        return torch.zeros(_EXAMPLE, steps, spec.features, dtype=kind), mask.clone()

    def feed(self, given: Any, kind: type[np.floating[Any]]) -> list[NDArray[Any]]:
        """Texts or signals as codes or numbers, filled up to the longest."""
        rows: Any = sequences_of(given)
        values, mask = self.encoder.inputs(rows, notes=[])
        if isinstance(self.encoder, TextEncoder):
            return [values.numpy(), mask.numpy()]
        found = values * torch.tensor(self.encoder.scale) + torch.tensor(self.encoder.mean)
        return [found.numpy().astype(kind), mask.numpy()]

    def made_up(
        self, seed: int, kind: type[np.floating[Any]]
    ) -> tuple[tuple[Tensor, ...], list[NDArray[Any]]]:
        """Random codes or numbers, in sequences of 1 step and more."""
        generator, spec = np.random.default_rng(seed), self.encoder.spec
        steps = min(13, self.steps)
        mask = np.arange(steps) < generator.integers(1, steps + 1, (_MADE_UP, 1))
        if spec.vocabulary:
            codes = generator.integers(1, spec.vocabulary, (_MADE_UP, steps)) * mask
            return (torch.from_numpy(codes), torch.from_numpy(mask)), [codes, mask]
        assert isinstance(self.encoder, SignalEncoder)
        mean, scale = np.array(self.encoder.mean), np.array(self.encoder.scale)
        noise = generator.normal(size=(_MADE_UP, steps, spec.features))
        numbers = (mean + scale * noise).astype(np.float32).astype(kind)
        values = torch.from_numpy((numbers.astype(np.float64) - mean) / scale)
        return (values, torch.from_numpy(mask)), [numbers, mask]

    def raw(self, posterior: Posterior, rows: Any, offset: Tensor | None) -> Tensor:
        """The raw numbers of the model for encoded sequences."""
        return posterior.answer(rows, offset)

    def beside(self) -> dict[str, bytes]:
        """The tokenizer, which cuts and fills up texts as the model does."""
        if not isinstance(self.encoder, TextEncoder):
            return {}
        record = self.encoder.tokens.state()
        cut = {"direction": "Right", "max_length": self.encoder.length, "stride": 0}
        fill = {"direction": "Right", "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}
        record["truncation"] = {**cut, "strategy": "LongestFirst"}
        record["padding"] = {**fill, "strategy": "BatchLongest", "pad_to_multiple_of": None}
        return {"tokenizer.json": json.dumps(record, ensure_ascii=False).encode()}


class _Same(nn.Module):
    def forward(self, *cells: Tensor) -> tuple[Tensor, ...]:
        return cells


class _Standardised(nn.Module):
    def __init__(self, encoder: SignalEncoder) -> None:
        super().__init__()
        self.mean: Tensor
        self.scale: Tensor
        self.register_buffer("mean", torch.tensor(encoder.mean).double())
        self.register_buffer("scale", torch.tensor(encoder.scale).double())

    def forward(self, values: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        return (values.double() - self.mean) / self.scale, mask
