"""The likelihood of a whole example: one distribution for each column, or for each pixel."""

import math
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from ansatz import likelihoods
from ansatz.errors import UsageError
from ansatz.generative.coding import Coding, GridCoding, TableCoding
from ansatz.generative.marginal import Kind, Marginal
from ansatz.spec import TargetSpec

FEW_VALUES = 20  # of a lattice, each with a probability of its own
FLOOR = 0.01  # least standard deviation of normal scores
PIXELS = ("bernoulli", "categorical", "normal", "beta")
ENDS = 0.7  # share of pixels at the ends of their range, from which gray is a probability


class Decoded(Protocol):
    """p(codes | raw) of whole examples, whose raw numbers a decoder gives."""

    outputs: int

    def targets(self, codes: Tensor, rng: torch.Generator) -> Tensor:
        """What ``loss`` takes in place of the codes, computed once."""
        ...

    def loss(self, raw: Tensor, targets: Tensor, uniform: Tensor | None) -> Tensor:
        """The negative log density of each example, ``(B,)``."""
        ...

    def draw(self, raw: Tensor, rng: torch.Generator) -> Tensor:
        """Codes of examples with these raw numbers."""
        ...

    def mean(self, raw: Tensor) -> Tensor:
        """The codes to expect: medians of numbers, most probable levels, mean pixels."""
        ...

    def record(self) -> dict[str, Any]:
        """All of it as JSON."""
        ...


class Pixels:
    r"""One likelihood in every pixel: :math:`\log p(x \mid r) = \sum_i \log p(x_i \mid r_i)`.

    ``bernoulli`` takes a gray value as the probability of white and draws the pixel anew each time;
    ``categorical`` has a probability for each of 256 values; ``normal`` and ``beta`` are densities
    of a pixel whose place within its step is drawn.

    Args:
        coding: of the grids.
        name: of the likelihood.

    Example:
        >>> import torch
        >>> from ansatz.generative.coding import GridCoding
        >>> from ansatz.generative.columns import Pixels
        >>> Pixels(GridCoding((1, 4, 4), 0.0, 255.0, 1.0), "bernoulli").outputs
        16
    """

    def __init__(self, coding: GridCoding, name: str) -> None:
        if name not in PIXELS:
            raise UsageError(f"the likelihood of pixels is one of {', '.join(PIXELS)}, not {name}.")
        self.coding, self.name = coding, name
        self.count = math.prod(coding.shape)
        self.levels = int(coding.high - coding.low) + 1 if coding.step == 1.0 else 0
        if name == "categorical" and not 2 <= self.levels <= 256:
            raise UsageError("categorical pixels are whole numbers of 0..255: take normal or beta.")
        self.each = {"bernoulli": 1, "categorical": self.levels, "normal": 2, "beta": 2}[name]
        self.outputs = self.each * self.count

    @classmethod
    def fit(cls, coding: GridCoding, codes: Tensor, asked: str | None) -> "Pixels":
        """By the name that is asked for; by the values where none is."""
        if asked is None:
            unit = coding.unit(codes[:1_000])
            at_ends = float(((unit <= 0.02) | (unit >= 0.98)).float().mean())
            asked = "bernoulli" if at_ends >= ENDS else "normal"
        return cls(coding, asked)

    def targets(self, codes: Tensor, rng: torch.Generator) -> Tensor:
        return codes

    def _apart(self, raw: Tensor) -> Tensor:
        return raw.reshape(len(raw), self.count, self.each)

    def loss(self, raw: Tensor, targets: Tensor, uniform: Tensor | None) -> Tensor:
        raw, codes = self._apart(raw), targets.reshape(len(targets), -1)
        seen = ~codes.isnan() if codes.is_floating_point() else None
        unit = self.coding.unit(codes).to(raw.dtype)
        if uniform is None:
            uniform = torch.rand_like(unit)
        uniform = uniform.reshape(unit.shape).to(raw.dtype)
        if self.name == "bernoulli":
            white = (uniform < unit).to(raw.dtype)
            terms = torch.nn.functional.softplus((1 - 2 * white) * raw[..., 0])
        elif self.name == "categorical":
            level = (codes.nan_to_num(0) - self.coding.low).long()
            logits = raw.log_softmax(-1)
            terms = -logits.gather(-1, level.unsqueeze(-1)).squeeze(-1)
        else:
            terms = self._continuous(raw, unit, uniform)
        if seen is not None:
            terms = torch.where(seen, terms, 0)
        return terms.sum(1)

    def _continuous(self, raw: Tensor, unit: Tensor, uniform: Tensor) -> Tensor:
        """-log density per step of the codes, at a place drawn within the step."""
        width = self.coding.high - self.coding.low
        bins = width / self.coding.step + 1 if self.coding.step else 0.0
        place = (unit.nan_to_num(0.5) * (bins - 1) + uniform) / bins if bins else unit
        per_step = math.log(bins) if bins else math.log(width)
        if self.name == "normal":
            mean, scale = raw[..., 0] + 0.5, raw[..., 1].clamp(-6.0, 4.0).exp() * 0.5
            score = (place - mean) / scale
            return 0.5 * score**2 + scale.log() + 0.5 * math.log(2 * math.pi) + per_step
        first, second = raw.clamp(-6.0, 8.0).exp().unbind(-1)
        place = place.clamp(1e-4, 1 - 1e-4)
        norm = first.lgamma() + second.lgamma() - (first + second).lgamma()
        return norm - (first - 1) * place.log() - (second - 1) * (-place).log1p() + per_step

    def mean(self, raw: Tensor) -> Tensor:
        raw = self._apart(raw)
        if self.name == "bernoulli":
            unit = raw[..., 0].sigmoid()
        elif self.name == "categorical":
            levels = torch.arange(self.levels, dtype=raw.dtype) / (self.levels - 1)
            unit = raw.softmax(-1) @ levels
        elif self.name == "normal":
            unit = (raw[..., 0] + 0.5).clamp(0, 1)
        else:
            first, second = raw.clamp(-6.0, 8.0).exp().unbind(-1)
            unit = first / (first + second)
        return self.coding.shaped(self.coding.from_unit(unit))

    def draw(self, raw: Tensor, rng: torch.Generator) -> Tensor:
        """Draws pixels; of ``bernoulli`` the probability of white, which is the gray value."""
        apart = self._apart(raw)
        if self.name == "bernoulli":
            return self.mean(raw)
        if self.name == "categorical":
            shares = apart.softmax(-1).reshape(-1, self.levels)
            level = torch.multinomial(shares, 1, generator=rng).reshape(len(raw), -1)
            return self.coding.shaped(level + self.coding.low)
        if self.name == "normal":
            noise = torch.randn(apart.shape[:-1], generator=rng, dtype=raw.dtype)
            unit = apart[..., 0] + 0.5 + noise * apart[..., 1].clamp(-6.0, 4.0).exp() * 0.5
        else:
            parts = apart.clamp(-6.0, 8.0).exp()
            drawn = torch._standard_gamma(parts, generator=rng)
            unit = drawn[..., 0] / drawn.sum(-1)
        return self.coding.shaped(self.coding.from_unit(unit.clamp(0, 1)))

    def record(self) -> dict[str, Any]:
        return {"pixels": self.name}


class Column:
    """One column: categories of levels and atoms, and a distribution of other numbers.

    Args:
        kind: of its codes.
        atoms: values with probabilities of their own.
        marginal: of the other numbers, whose normal scores are modelled; None for levels.
        name: of a likelihood of the library in its place; empty for normal scores.
        unit: by which numbers are divided for that likelihood.
        start: shift and scale of its raw numbers.
    """

    def __init__(
        self,
        kind: Kind,
        atoms: list[float],
        marginal: Marginal | None,
        name: str = "",
        unit: float = 1.0,
        start: tuple[list[float], list[float]] | None = None,
    ) -> None:
        self.kind, self.atoms, self.marginal = kind, atoms, marginal
        self.name, self.unit, self.start = name, unit, start
        self.likelihood = None
        if name:
            self.likelihood = likelihoods.create(name)
            self.numbers = self.likelihood.outputs(TargetSpec())
        else:
            self.numbers = 2 if marginal is not None else 0
        self.categories = kind.levels or (len(atoms) + (marginal is not None) if atoms else 0)
        self.outputs = self.categories + self.numbers

    @classmethod
    def fit(cls, codes: np.ndarray, kind: Kind, asked: str | None) -> "Column":
        """Atoms by the values; the likelihood that is asked for, or normal scores."""
        if kind.levels:
            if asked not in (None, "categorical", "bernoulli"):
                raise UsageError(f"levels are categorical, not {asked}.")
            return cls(kind, [], None)
        known = codes[~np.isnan(codes)]
        if asked is not None:
            unit = float(np.abs(known).mean()) or 1.0
            made = likelihoods.create(asked)
            if made.support in ("counts", "count") or np.array_equal(known, known.round()):
                unit = 1.0
            if asked == "beta":
                unit = 1.0
            y = torch.from_numpy(known / unit).float()
            made.outputs(TargetSpec())
            made.check(y)
            made.observe(y, torch.ones(len(y)))
            shift, scale = made.start(y, torch.ones(len(y)))
            start = (shift.double().tolist(), scale.double().tolist())
            return cls(kind, [], None, asked, unit, start)
        values = np.unique(known)
        if kind.step and len(values) <= FEW_VALUES and len(known) > 5 * len(values):
            return cls(kind, values.tolist(), None)
        law = Marginal.fit(codes, np.ones(len(codes)), kind)
        atoms = law.atoms.tolist()
        if atoms:
            rest = codes[~np.isin(codes, law.atoms)]
            law = Marginal.fit(rest, np.ones(len(rest)), kind, atoms=False)
        return cls(kind, atoms, law)

    def targets(self, codes: np.ndarray, rng: torch.Generator) -> tuple[np.ndarray, ...]:
        """Category (-1 where missing), number, and what the number's density is changed by."""
        seen = ~np.isnan(codes)
        category, number, change = -np.ones(len(codes)), np.zeros(len(codes)), np.zeros(len(codes))
        if self.kind.levels:
            category[seen] = codes[seen]
            return category, number, change
        rest = seen.copy()
        if self.atoms:
            place = np.searchsorted(self.atoms, codes).clip(max=len(self.atoms) - 1)
            at = seen & (np.asarray(self.atoms)[place] == codes)
            category[seen] = len(self.atoms) if self.marginal is not None else place[seen]
            category[at] = place[at]
            rest &= ~at
        if self.name:
            number[seen] = codes[seen] / self.unit
            change[seen] = math.log(self.unit)
            category[seen] = 0
        elif self.marginal is not None and rest.any():
            uniform = torch.rand(int(rest.sum()), generator=rng).double().numpy()
            u, log_measure = self.marginal.place(codes[rest], uniform)
            z = torch.special.ndtri(torch.from_numpy(u).clamp(1e-6, 1 - 1e-6)).numpy()
            number[rest] = z
            change[rest] = -(log_measure + 0.5 * z**2 + 0.5 * math.log(2 * math.pi))
            if not self.atoms:
                category[seen] = 0
        return category, number, change

    def loss(self, raw: Tensor, target: Tensor) -> Tensor:
        """-log p of each value, 0 where it is missing; ``target`` is ``(B, 3)``."""
        category, number, change = target.unbind(1)
        seen = category >= 0
        total = torch.zeros_like(number)
        has_number = seen
        if self.categories:
            logits = raw[:, : self.categories].log_softmax(-1)
            code = category.clamp(min=0).long().unsqueeze(1)
            total = total - logits.gather(1, code).squeeze(1)
            has_number = seen & (category == self.categories - 1) if self.numbers else seen & False
        if self.numbers:
            total = total + torch.where(has_number, self._number(raw, number) + change, 0)
        return torch.where(seen, total, 0)

    def _number(self, raw: Tensor, number: Tensor) -> Tensor:
        own = raw[:, self.categories :]
        if self.likelihood is not None and self.start is not None:
            y = torch.where(torch.isfinite(number), number, 0.5)
            loss: Tensor = self.likelihood.to(raw.dtype).loss(self._started(own), y)
            return loss
        scale = torch.nn.functional.softplus(own[:, 1] + 0.5) + FLOOR
        score = (number - own[:, 0]) / scale
        return 0.5 * score**2 + scale.log() + 0.5 * math.log(2 * math.pi)

    def _started(self, own: Tensor) -> Tensor:
        assert self.start is not None
        shift, scale = (torch.tensor(each, dtype=own.dtype) for each in self.start)
        return shift + scale * own

    def draw(self, raw: Tensor, rng: torch.Generator | None) -> np.ndarray:
        """Codes; without ``rng`` the most probable category and the median number."""
        category = np.zeros(len(raw), int)
        if self.categories:
            shares = raw[:, : self.categories].softmax(-1)
            chosen = (
                shares.argmax(-1)
                if rng is None
                else torch.multinomial(shares, 1, generator=rng).squeeze(1)
            )
            category = chosen.numpy()
        if self.kind.levels:
            return category.astype(float)
        found = np.zeros(len(raw))
        if self.numbers:
            found = self._drawn_number(raw[:, self.categories :], rng)
        if self.atoms:
            values = np.append(np.asarray(self.atoms, float), np.nan)
            at = category < len(self.atoms)
            found = np.where(at, values[np.minimum(category, len(self.atoms))], found)
        return found

    def _drawn_number(self, own: Tensor, rng: torch.Generator | None) -> np.ndarray:
        if self.likelihood is not None:
            law = self.likelihood.double().distribution(self._started(own.double()))
            value = law.mean if rng is None else law.sample(generator=rng)
            found: np.ndarray = value.detach().double().numpy() * self.unit
            step = self.kind.step
            return np.round(found / step) * step if step else found
        assert self.marginal is not None
        z = own[:, 0].double()
        if rng is not None:
            scale = torch.nn.functional.softplus(own[:, 1] + 0.5).double() + FLOOR
            z = z + scale * torch.randn(len(own), generator=rng, dtype=torch.float64)
        return self.marginal.value(torch.special.ndtr(z).numpy())

    def record(self) -> dict[str, Any]:
        """All of it as JSON."""
        marginal = None if self.marginal is None else self.marginal.record()
        return {
            **{"kind": list(self.kind), "atoms": self.atoms, "marginal": marginal},
            **{"name": self.name, "unit": self.unit, "start": self.start},
        }

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> "Column":
        """The inverse of :meth:`record`."""
        marginal = None if state["marginal"] is None else Marginal.load(state["marginal"])
        start = None if state["start"] is None else tuple(state["start"])
        kind = Kind(*state["kind"])
        return cls(kind, state["atoms"], marginal, state["name"], state["unit"], start)


class Columns:
    r"""A product of distributions, one per column: :math:`p(x \mid r) = \prod_j p(x_j \mid r_j)`.

    Levels are categorical. A number that fills a fifth of its column, and each of a short lattice,
    has a probability of its own; other numbers are normal on the scale of their normal scores, or
    have the likelihood that is named. A missing value has weight 0.

    Args:
        columns: one for each column.

    Example:
        >>> import numpy as np
        >>> from ansatz.generative.columns import Column, Columns
        >>> from ansatz.generative.marginal import Kind
        >>> Columns([Column.fit(np.array([0.0, 1.0, 2.0, 0.0]), Kind(3), None)]).outputs
        3
    """

    def __init__(self, columns: list[Column]) -> None:
        self.columns = columns
        self.sizes = [column.outputs for column in columns]
        self.outputs = sum(self.sizes)

    @classmethod
    def fit(cls, coding: TableCoding, codes: Tensor, asked: Mapping[str, str]) -> "Columns":
        """Chooses the distribution of each column by its values."""
        names = coding.names()
        odd = [name for name in asked if name not in names]
        if odd:
            raise UsageError(f"--likelihood {odd[0]}: no such column of x. {', '.join(names)}.")
        values = codes.numpy()
        return cls(
            [
                Column.fit(values[:, j], kind, asked.get(names[j]))
                for j, kind in enumerate(coding.kinds)
            ]
        )

    def targets(self, codes: Tensor, rng: torch.Generator) -> Tensor:
        """``(N, D, 3)``: category, number, change of the density."""
        values = codes.double().numpy()
        found = [
            np.stack(column.targets(values[:, j], rng), 1) for j, column in enumerate(self.columns)
        ]
        return torch.from_numpy(np.stack(found, 1)).float()

    def loss(self, raw: Tensor, targets: Tensor, uniform: Tensor | None) -> Tensor:
        total = raw.new_zeros(len(raw))
        for j, (column, own) in enumerate(zip(self.columns, raw.split(self.sizes, 1), strict=True)):
            total = total + column.loss(own, targets[:, j].to(raw.dtype))
        return total

    def draw(self, raw: Tensor, rng: torch.Generator) -> Tensor:
        return self._codes(raw, rng)

    def mean(self, raw: Tensor) -> Tensor:
        return self._codes(raw, None)

    def _codes(self, raw: Tensor, rng: torch.Generator | None) -> Tensor:
        parts = raw.split(self.sizes, 1)
        found = [column.draw(own, rng) for column, own in zip(self.columns, parts, strict=True)]
        return torch.from_numpy(np.stack(found, 1))

    def record(self) -> dict[str, Any]:
        return {"columns": [column.record() for column in self.columns]}


def fit_decoded(coding: Coding, codes: Tensor, asked: Any) -> Decoded:
    """The likelihood of examples; ``asked`` is a name, ``COL=NAME,...`` or a mapping."""
    if isinstance(coding, GridCoding):
        if isinstance(asked, Mapping) or (asked and "=" in asked):
            raise UsageError("pixels have one likelihood for all: --likelihood bernoulli.")
        return Pixels.fit(coding, codes, None if asked in (None, "auto") else str(asked))
    assert isinstance(coding, TableCoding)
    return Columns.fit(coding, codes, read_laws(asked, coding.names()))


def read_laws(asked: Any, names: list[str]) -> dict[str, str]:
    """Likelihoods by column, from ``COL=NAME,...``, a mapping, or one name for all columns."""
    if asked in (None, "auto", "columns"):
        return {}
    if isinstance(asked, Mapping):
        return {str(name): str(value) for name, value in asked.items()}
    if "=" not in asked:
        return dict.fromkeys(names, str(asked))
    found = {}
    for pair in str(asked).split(","):
        name, equals, value = pair.rpartition("=")
        if not equals:
            raise UsageError(f"expected --likelihood COL=NAME, got '{pair}'.")
        found[name.strip()] = value.strip()
    return found


def load_decoded(coding: Coding, state: Mapping[str, Any]) -> Decoded:
    """The likelihood that a ``record`` describes."""
    if "pixels" in state:
        assert isinstance(coding, GridCoding)
        return Pixels(coding, state["pixels"])
    return Columns([Column.load(each) for each in state["columns"]])
