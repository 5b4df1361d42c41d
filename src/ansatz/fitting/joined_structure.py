"""Inputs of several kinds: each part has a structure of its own, joined in one network."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz import structures
from ansatz.data import row_keys
from ansatz.fitting.contracts.inference import Posterior
from ansatz.fitting.contracts.structure import Facts
from ansatz.fitting.job import Job
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.sparse_linear import fit_sparse_linear
from ansatz.fitting.tensor_structure import TensorStructure
from ansatz.fitting.training import begin_with_rows
from ansatz.likelihoods import Likelihood
from ansatz.spec import InputSpec
from ansatz.training import Supervised


class JoinedRows:
    """Rows whose examples have several parts."""

    def __init__(self, parts: Mapping[str, Any]) -> None:
        self.parts = dict(parts)

    @property
    def spec(self) -> InputSpec:
        """Its parts; how many features a network sees of columns depends on their levels."""
        return InputSpec.joined(**{n: p.spec or InputSpec.of(1) for n, p in self.parts.items()})

    def __len__(self) -> int:
        return len(next(iter(self.parts.values())))

    def __getitem__(self, index: Any) -> Self:
        return type(self)({name: rows[index] for name, rows in self.parts.items()})

    @property
    def has_features(self) -> bool:
        return any(rows.has_features for rows in self.parts.values())

    def content_keys(self, seed: int = 0) -> NDArray[np.uint64]:
        found: NDArray[np.uint64] = row_keys(*self.parts.values(), seed=seed)
        return found

    def describe(self) -> dict[str, Any]:
        """The number of parts' features, and what each part's are called."""
        described = {name: rows.describe() for name, rows in self.parts.items()}
        count = sum(each["count"] for each in described.values())
        return {"names": None, "count": count, "columns": None, "parts": described}


class JoinedEncoder:
    """An encoder for each part; their inputs stand side by side."""

    def __init__(self, parts: Mapping[str, Any]) -> None:
        self.parts = dict(parts)

    @property
    def spec(self) -> InputSpec:
        return InputSpec.joined(**{name: each.spec for name, each in self.parts.items()})

    @property
    def dtype(self) -> torch.dtype:
        found: torch.dtype = next(iter(self.parts.values())).dtype
        return found

    @property
    def notes(self) -> list[str]:
        return [note for each in self.parts.values() for note in each.notes]

    @property
    def columns(self) -> list[Any]:
        return [column for each in self.parts.values() for column in each.columns]

    def inputs(self, rows: JoinedRows, *, notes: list[str] | None = None) -> tuple[Tensor, ...]:
        """The inputs of the first part, then those of the second, and so on."""
        found: list[Tensor] = []
        for name, each in self.parts.items():
            found += each.inputs(rows.parts[name], notes=notes)
        return tuple(t.to(self.dtype) if t.is_floating_point() else t for t in found)

    def state(self) -> dict[str, Any]:
        """The parts' own as JSON, and their order, which JSON on disk does not keep."""
        states = {name: each.state() for name, each in self.parts.items()}
        return {"order": list(self.parts), "parts": states}


class JoinedStructure(TensorStructure):
    """A structure of several parts, each of a structure that is registered by name.

    A subclass names its parts, ``parts = {"words": "bag", "numbers": "vector"}``, and reads rows
    as :class:`JoinedRows`.
    """

    name: ClassVar[str] = "joined"
    parts: ClassVar[Mapping[str, str]] = {}

    def network(self, axis: str) -> str:
        return "joined"

    def linear_network(self, axis: str) -> str:
        return "linear_joined"

    def recipe(self, facts: Facts) -> Recipe:
        """That of the first part."""
        assert facts.spec is not None
        name, spec = facts.spec.parts[0]
        base: Recipe = self._part(name).recipe(facts._replace(spec=spec))
        return base.model_copy(update={"augment": False, "bins": 0})

    def encoder(
        self,
        rows: JoinedRows,
        weight: NDArray[np.float64],
        recipe: Recipe,
        options: Mapping[str, Any],
    ) -> JoinedEncoder:
        return JoinedEncoder(
            {
                name: self._part(name).encoder(rows.parts[name], weight, recipe, options)
                for name in rows.parts  # in the order in which the network takes them
            }
        )

    def load_encoder(self, state: Mapping[str, Any]) -> JoinedEncoder:
        return JoinedEncoder(
            {name: self._part(name).load_encoder(state["parts"][name]) for name in state["order"]}
        )

    def adapt(self, network: nn.Module, encoder: Any, job: Job, objective: Supervised) -> nn.Module:
        """The network, which may begin with the training rows."""
        begin_with_rows(network, encoder, job, objective)
        return super().adapt(network, encoder, job, objective)

    def baseline(
        self, likelihood: Likelihood, job: Job, seed: int
    ) -> tuple[Posterior | None, list[str]]:
        """The linear model in the plainest features of all parts."""
        return fit_sparse_linear(self, likelihood, job, seed)

    def _part(self, name: str) -> Any:
        return structures.create(self.parts.get(name, name.partition("_")[0]))
