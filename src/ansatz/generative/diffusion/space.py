"""The numbers that a diffusion sees of examples: pixels in [-1, 1], scores, one-hot levels."""

import math
from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import Tensor

from ansatz.generative.coding import Coding, GridCoding
from ansatz.generative.contract import Examples
from ansatz.generative.marginal import Marginals
from ansatz.spec import InputSpec


class Space(Protocol):
    """A map between codes and real numbers, which noise is added to."""

    has_density: bool

    @property
    def spec(self) -> InputSpec:
        """The shape of the numbers of one example."""
        ...

    def into(self, codes: Tensor, rng: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """The numbers of codes, nan where missing, and the log of the change of volume."""
        ...

    def back(self, x: Tensor) -> Tensor:
        """The codes that numbers stand for."""
        ...

    def record(self) -> dict[str, Any]:
        """All of it as JSON."""
        ...


class PixelSpace:
    """Numbers in [-1, 1]; in a density each whole number fills its bin."""

    has_density = True

    def __init__(self, coding: GridCoding) -> None:
        self.coding = coding

    @property
    def spec(self) -> InputSpec:
        return self.coding.spec

    def plain(self, codes: Tensor) -> Tensor:
        """The numbers without noise within bins."""
        return 2 * self.coding.unit(codes) - 1

    def into(self, codes: Tensor, rng: torch.Generator | None) -> tuple[Tensor, Tensor]:
        x, step = self.plain(codes), 2 * self.coding.step / (self.coding.high - self.coding.low)
        size = x[0].numel() if len(x) else 0
        if step and rng is not None:
            x = x + (torch.rand(x.shape, generator=rng) - 0.5) * step
        # Of a lattice the probability of a bin, else the density per unit of the codes.
        volume = math.log(step) if step else math.log(2 / (self.coding.high - self.coding.low))
        return x, torch.full((len(x),), size * volume, dtype=torch.float64)

    def back(self, x: Tensor) -> Tensor:
        found = self.coding.from_unit((x.clamp(-1, 1) + 1) / 2)
        step, low = self.coding.step, self.coding.low
        if step:
            found = ((found - low) / step).round() * step + low
        return found.to(torch.uint8) if step == 1 and low == 0 else found

    def record(self) -> dict[str, Any]:
        return {"kind": "pixels"}


class ColumnSpace:
    """Normal scores of numbers; levels as -1 and 1, one number for each level.

    A table with levels has no density of these numbers.
    """

    def __init__(self, coding: Coding, marginals: Marginals) -> None:
        self.coding, self.marginals = coding, marginals
        self.levels = [kind.levels for kind in coding.kinds]
        self.has_density = not any(self.levels)

    @classmethod
    def fit(cls, examples: Examples) -> "ColumnSpace":
        """Estimates the marginal distribution of each column."""
        kinds = list(examples.coding.kinds)
        return cls(examples.coding, Marginals.fit(examples.codes, examples.weight, kinds))

    @property
    def spec(self) -> InputSpec:
        return InputSpec.of(sum(count or 1 for count in self.levels))

    @property
    def owner(self) -> Tensor:
        """The column that each number is of."""
        found = [[j] * (count or 1) for j, count in enumerate(self.levels)]
        return torch.tensor([j for each in found for j in each])

    def into(self, codes: Tensor, rng: torch.Generator | None) -> tuple[Tensor, Tensor]:
        z, volume = self.marginals.scores(codes, rng, middle=rng is None)
        parts = []
        for j, count in enumerate(self.levels):
            if not count:
                parts.append(z[:, j : j + 1])
                continue
            missing = codes[:, j].isnan()
            level = codes[:, j].nan_to_num(0).long().clamp(0, count - 1)
            hot = 2.0 * torch.nn.functional.one_hot(level, count).double() - 1
            parts.append(hot.masked_fill(missing.unsqueeze(1), math.nan))
        return torch.cat(parts, 1).float(), volume

    def back(self, x: Tensor) -> Tensor:
        z, levels, place = torch.zeros(len(x), len(self.levels)).double(), {}, 0
        for j, count in enumerate(self.levels):
            part = x[:, place : place + (count or 1)]
            if count:
                levels[j] = part.argmax(1).double()
            else:
                z[:, j] = part[:, 0].double()
            place += count or 1
        codes = self.marginals.codes(z)
        for j, level in levels.items():
            codes[:, j] = level
        return codes

    def record(self) -> dict[str, Any]:
        return {"kind": "columns", "marginals": self.marginals.record()}


def fit_space(examples: Examples) -> Space:
    """The space of the examples."""
    if isinstance(examples.coding, GridCoding):
        return PixelSpace(examples.coding)
    return ColumnSpace.fit(examples)


def load_space(coding: Coding, state: Mapping[str, Any]) -> Space:
    """The space that a ``record`` describes."""
    if isinstance(coding, GridCoding):
        return PixelSpace(coding)
    return ColumnSpace(coding, Marginals.load(state["marginals"]))
