"""The contract of a generator: a model of x that draws, and says how likely an example is."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor

from ansatz.errors import UsageError

if TYPE_CHECKING:
    from ansatz.fitting.task import TrainingPlan
    from ansatz.generative.coding import Coding
    from ansatz.training import History


class Density(NamedTuple):
    """The log density of each row, or a bound from below, with its Monte Carlo error."""

    value: Tensor  # (N,), nats
    error: Tensor  # (N,), standard error; 0 where it is exact


class Examples(NamedTuple):
    """Encoded examples, and what they are given.

    Args:
        coding: what the codes of x mean; its record remakes it.
        codes: ``(N, D)`` float64 of a table, nan where a value is missing; ``(N, C, *size)`` uint8
            or float32 of grids.
        weight: ``(N,)`` frequency weights.
        given_coding: of the columns that are given; None without any.
        given: ``(N, G)`` codes of these; None without any.

    Example:
        >>> import pandas as pd, torch
        >>> from ansatz.generative import Examples
        >>> from ansatz.generative.coding import TableCoding
        >>> table = pd.DataFrame({"a": [1.5, 2.5, 4.0], "b": ["u", "v", "u"]})
        >>> coding = TableCoding.fit(table)
        >>> Examples(coding, coding.codes(table), torch.ones(3)).codes.shape
        torch.Size([3, 2])
    """

    coding: "Coding"
    codes: Tensor
    weight: Tensor
    given_coding: "Coding | None" = None
    given: Tensor | None = None

    @property
    def condition(self) -> Tensor | None:
        """The given columns as numbers for a network, ``(N, F)``; None without any."""
        if self.given is None or self.given_coding is None:
            return None
        return self.given_coding.features(self.given)

    def take(self, rows: Any) -> "Examples":
        """The examples at these positions."""
        given = None if self.given is None else self.given[rows]
        return self._replace(codes=self.codes[rows], weight=self.weight[rows], given=given)


class Generator(Protocol):
    """A model of x: fitted to encoded examples, it draws codes and gives log densities.

    ``fit`` keeps what it estimates; ``record`` (JSON) and ``tensors`` save it, and ``load`` takes
    both in a fresh object that was made with the same options. All randomness comes from the
    ``rng`` that is passed. Codes are those of ``examples.coding``; ``given`` are the codes of the
    given columns, one row for each row asked for.

    Example:
        >>> from ansatz import generative
        >>> generative.create("ppca", latents=2).name
        'ppca'
    """

    name: ClassVar[str]
    has_density: ClassVar[bool] = True
    has_latents: ClassVar[bool] = False
    trains: ClassVar[bool] = False  # whether held-out rows stop a training
    evaluated: int | None = None  # rows whose densities an evaluation averages; None for all
    options: dict[str, Any]  # it was made with

    def fit(
        self, examples: Examples, held_out: Examples | None, plan: "TrainingPlan"
    ) -> "History | None":
        """Estimates the model; ``held_out`` stops a training."""
        ...

    def sample(self, count: int, given: Tensor | None, rng: torch.Generator) -> Tensor:
        """Draws codes of new examples, ``(count, ...)``."""
        ...

    def log_density(
        self, codes: Tensor, given: Tensor | None, rng: torch.Generator, *, draws: int = 1
    ) -> Density:
        """log p(x | given) in nats per row, or a lower bound by ``draws`` draws.

        A missing value is integrated over.
        """
        raise UsageError(f"{self.name} has no density. For one: --generator vae.")

    def impute(self, codes: Tensor, given: Tensor | None, rng: torch.Generator) -> Tensor:
        """One draw of the missing values given the others."""
        raise UsageError(f"{self.name} does not impute. Take copula, ppca, latent_class or vae.")

    def encode(self, codes: Tensor, given: Tensor | None) -> Tensor:
        """The latents of rows, ``(N, L)``."""
        raise UsageError(f"{self.name} has no latents. Take ppca, autoencoder or vae.")

    def decode(self, latents: Tensor, given: Tensor | None) -> Tensor:
        """The codes that latents stand for, without noise."""
        raise UsageError(f"{self.name} has no latents. Take ppca, autoencoder or vae.")

    def sampling(
        self,
        *,
        steps: int | None = None,
        sampler: str | None = None,
        guidance: float | None = None,
        sampler_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Sets how a diffusion draws examples from now on; what is None stays."""
        options = {"steps": steps, "sampler": sampler, "guidance": guidance}
        given = ", ".join(name for name, value in options.items() if value is not None)
        if given or sampler_options:
            raise UsageError(
                f"{self.name} draws in one step: {given or 'sampler_options'} belongs to diffusion."
            )

    @property
    def parameters(self) -> int:
        """The number of estimated parameters."""
        ...

    def notes(self) -> list[str]:
        """Sentences about the fit."""
        return []

    def record(self) -> dict[str, Any]:
        """What is not a tensor, as JSON."""
        ...

    def tensors(self) -> dict[str, Tensor]:
        """All numbers by name."""
        ...

    def load(
        self,
        coding: "Coding",
        given_coding: "Coding | None",
        record: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
    ) -> None:
        """Takes in what :meth:`record` and :meth:`tensors` gave."""
        ...
