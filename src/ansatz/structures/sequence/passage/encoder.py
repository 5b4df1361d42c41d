"""From passages to a network's inputs: the codes that precede each token."""

from collections.abc import Mapping
from typing import Any

import torch

from ansatz.data import Column
from ansatz.data.batch import Padded
from ansatz.data.sequences.passages import Passages
from ansatz.data.sequences.tokens import Tokens
from ansatz.errors import DataError
from ansatz.spec import InputSpec


class PassageEncoder:
    """The codes before each token, at most ``context`` of them; codes were given by ``tokens``."""

    dtype = torch.float32

    def __init__(self, tokens: Tokens, context: int) -> None:
        self.tokens, self.context = tokens, context

    @property
    def spec(self) -> InputSpec:
        """Number of codes and most steps."""
        return InputSpec.sequence(vocabulary=self.tokens.size, length=self.context)

    @property
    def notes(self) -> list[str]:
        """None."""
        return []

    @property
    def columns(self) -> list[Column]:
        """None: tokens are not columns."""
        return []

    def inputs(self, rows: Passages, *, notes: list[str] | None = None) -> Padded:
        """Codes and mask."""
        return self.check(rows).inputs()[0]

    def check(self, rows: Any) -> Passages:
        """Refuses rows that are not passages."""
        if not isinstance(rows, Passages):
            raise DataError("the model was fitted to documents.")
        return rows

    def state(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {"tokenizer": self.tokens.state(), "context": self.context}


def load_encoder(state: Mapping[str, Any]) -> PassageEncoder:
    """The encoder of a saved model."""
    import json

    return PassageEncoder(Tokens(json.dumps(state["tokenizer"])), int(state["context"]))
