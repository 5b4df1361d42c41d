"""The posterior of one linear model: its density, where chains begin, and how draws are read.

Legend: S draws, D coordinates, Q columns with the intercept, Z numbers of a row.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.errors import NumericalError
from ansatz.inference.glm.coordinates import Coordinate, PriorDensity, Range
from ansatz.inference.glm.density import Effects, GeneralizedLinear, Predictors
from ansatz.inference.glm.marginal_normal import MOST, MarginalNormal
from ansatz.inference.glm.priors import LinearPriors
from ansatz.inference.glm.row_score import row_score
from ansatz.inference.priors import Prior
from ansatz.likelihoods import Likelihood
from ansatz.likelihoods.dispersion import PositiveHead
from ansatz.likelihoods.normal import Normal
from ansatz.likelihoods.registry import Dispersion
from ansatz.linear.criterion import Criterion
from ansatz.linear.design import INTERCEPT, Design, DesignRows, standardise
from ansatz.linear.linear_likelihood import LinearLikelihood
from ansatz.linear.naming import as_usual, inner, output_names, symbol
from ansatz.linear.terms import Term, TermRows

Array = NDArray[np.float64]
Density = Callable[[Tensor], tuple[Tensor, Tensor]]


class Grouping(NamedTuple):
    """One term with its rows and the names of its groups.

    Args:
        term: what varies.
        rows: the group and the columns of each row.
        levels: names of the groups.
        sd: of each column, 1 for the intercept.
    """

    term: Term
    rows: TermRows
    levels: tuple[str, ...]
    sd: tuple[float, ...]


class Constant(NamedTuple):
    """A parameter of the likelihood: its coordinate, its name and how its number is reported."""

    place: int
    name: str
    head: PositiveHead | None


class LinearTarget:
    """The posterior of a linear model with the priors of its parameters.

    Args:
        likelihood: of the outcomes; it is copied.
        x: ``(N, D)``.
        y: outcomes.
        names: of the D columns.
        weight: ``(N,)``.
        offset: ``(N,)`` or None.
        priors: distributions by name.
        groupings: the terms that vary between groups.
        class_names: of classes.
        jacobian: whether the density is that of the coordinates, as samplers need it, or that of
            the parameters, whose mode is the maximum likelihood under flat priors.
    """

    def __init__(
        self,
        likelihood: Likelihood,
        x: Tensor,
        y: Tensor,
        names: Sequence[str],
        *,
        weight: Tensor | None = None,
        offset: Tensor | None = None,
        priors: Mapping[str, Any] | None = None,
        groupings: Sequence[Grouping] = (),
        class_names: Sequence[str] | None = None,
        jacobian: bool = True,
    ) -> None:
        rows = DesignRows.of(x, y, weight, None, offset, names, likelihood.event_ndim)
        dispersion: Dispersion = "predicted" if _varies(likelihood) else "constant"
        self.model = LinearLikelihood.of(
            likelihood, rows.y, rows.weight, dispersion, len(class_names or ())
        )
        self.rows, self.groupings, self.jacobian = rows, tuple(groupings), jacobian
        flat = any(Prior.read(each).name == "flat" for each in (priors or {}).values())
        design = Design.of(rows.x, rows.weight, names) if flat else None
        self.design = design or standardise(rows.x, rows.weight, names)
        self.criterion: Criterion = self.model.criterion(rows, self.design.matrix)
        self.outputs = output_names(
            self.model.likelihood,
            self.model.outputs,
            self.model.dispersions,
            self.model.target,
            class_names,
        )
        self.constants = self._constants()
        identity = self.model.likelihood.link_name == "identity"
        unit = float(self.model.unit[0]) if identity else 1.0
        logit = self.model.likelihood.link_name == "logit"
        self.priors = LinearPriors(
            priors,
            [*names],
            unit=unit,
            centre=0.0 if logit else float(self.model.start[0]),
            scales=[each.name for each in self.constants],
        )
        if self.priors.is_flat:
            self._refuse_separation()
        self.effects: list[Effects] = []
        self.coordinates = self._population() + self._of_constants()
        self._add_groups()
        self.density = self._density()

    # The coordinates.

    @property
    def size(self) -> int:
        """D."""
        return len(self.coordinates)

    @property
    def kept(self) -> list[str]:
        """Names of the columns that have coefficients, the intercept first."""
        return [INTERCEPT, *(self.design.names[int(j)] for j in self.design.kept)]

    def _constants(self) -> list[Constant]:
        """The parameters of the likelihood, in the order of its coordinates."""
        likelihood, found = self.model.likelihood, []
        heads = {
            f"{path}.constant": head
            for path, head in likelihood.named_modules()
            if isinstance(head, PositiveHead)
        }
        place = self.criterion.parts[self.model.outputs].start if self._has_constants() else 0
        for path, value in likelihood.named_parameters():
            head = heads.get(path)
            name = path if head is None else symbol(likelihood, path.split(".")[-2])
            for k in range(value.numel()):
                several = f" {k + 1}" if value.numel() > 1 else ""
                found.append(Constant(place, f"{name}{several}", head))
                place += 1
        return found

    def _has_constants(self) -> bool:
        return len(self.model.kinds) > self.model.outputs

    def label(self, output: int, column: str) -> str:
        """The name of a coefficient."""
        several = self.model.outputs > 1
        return f"{self.outputs[output]}: {column}" if several else column

    def _population(self) -> list[Coordinate]:
        found = []
        for j in range(self.model.outputs):
            kind = self.model.kinds[j]
            rows = range(self.design.matrix.shape[1])
            location = j not in self.model.dispersions
            for row in rows[self.criterion.columns[j]]:
                name = self.kept[row]
                if row == 0:
                    centre = self.priors.centre if j == 0 else float(self.model.start[j])
                    prior = self.priors.intercept() if location else Prior("normal", (centre, 2.5))
                    if location and j > 0 and prior.name == "normal":
                        prior = prior._replace(parameters=(0.0, prior.parameters[1]))
                    found.append(Coordinate(self.label(j, name), prior))
                    continue
                sd = float(self.design.scale[row - 1])
                prior = self.priors.coefficient(name, sd)
                if not location:
                    prior = Prior("normal", (0.0, 2.5 / sd))
                found.append(Coordinate(self.label(j, name), prior, 1 / sd))
            assert kind in ("x", "slopes", "one", "fixed")
        return found

    def _of_constants(self) -> list[Coordinate]:
        found = []
        for number, each in enumerate(self.constants):
            if each.head is None:
                start = float(self.model.start[self.model.outputs + number])
                found.append(Coordinate(each.name, Prior("student_t", (3.0, start, 2.5))))
                continue
            unit, floor = float(each.head.unit.mean()), float(each.head.floor.mean())
            prior = self.priors.scale(each.name, self.priors.unit)
            found.append(Coordinate(each.name, prior, 1.0, Range("softplus", unit, floor)))
        return found

    @property
    def integrates(self) -> bool:
        """Whether the coefficients of groups are integrated out: under the normal likelihood."""
        likelihood = self.model.likelihood
        is_normal = type(likelihood) is Normal and likelihood.dispersion.kind == "constant"
        sizes = [len(each.levels) * len(each.term.columns) for each in self.groupings]
        groups = {each.term.group for each in self.groupings}
        return bool(groups) and is_normal and (len(groups) == 1 or sum(sizes) <= MOST)

    @property
    def scales_of_groups(self) -> list[int]:
        """The coordinates of standard deviations and correlations whose groups are sampled."""
        if self.integrates:
            return []
        return [k for effect in self.effects for k in range(effect.start, effect.middle)]

    def _add_groups(self) -> None:
        sampled, eta = not self.integrates, self.priors.correlation()
        for each in self.groupings:
            term, start = each.term, len(self.coordinates)
            effect = Effects(
                *(term, each.rows, len(each.levels), start, eta, self.jacobian, sampled)
            )
            self.effects.append(effect)
            for column, sd in zip(term.columns, each.sd, strict=True):
                name = f"sd({term.label}: {column})"
                self.coordinates.append(Coordinate(name, self.priors.group(sd), 1.0, Range("exp")))
            flat = Prior("flat")  # their density is the term's own
            pairs = [(a, b) for k, b in enumerate(term.columns) for a in term.columns[:k]]
            self.coordinates += [
                Coordinate(f"cor({term.label}: {a}, {b})", flat) for a, b in pairs[: effect.angles]
            ]
            self.coordinates += [
                Coordinate(f"z({level}: {column})", flat)
                for level in (each.levels if sampled else ())
                for column in term.columns
            ]

    def _density(self) -> GeneralizedLinear | MarginalNormal:
        rows = self.rows
        predictors = Predictors(
            self.design.matrix.numpy(),
            self.model.kinds,
            self.criterion.parts,
            rows.weight.numpy(),
            None if rows.offset is None else rows.offset.numpy(),
        )
        prior = PriorDensity(self.coordinates, self.jacobian)
        if self.integrates:
            scale = self.coordinates[self.constants[0].place].range
            return MarginalNormal(predictors, rows.y.numpy(), scale, prior, self.effects)
        score = row_score(self.model.likelihood, self.model.outputs, rows.y)
        return GeneralizedLinear(score, predictors, prior, self.effects)

    def _refuse_separation(self) -> None:
        """Under flat priors the posterior has no mass anywhere if the likelihood rises for ever."""
        found = self.model.maximise(self.rows, self.design.matrix).location
        if found.recession is not None:
            raise NumericalError(
                "the outcomes are separated: along some direction the likelihood never stops "
                "rising, so that flat priors leave no posterior. Give priors, such as --prior "
                "'coefficients=normal(0, 2.5)', or leave them out for the defaults."
            )

    @property
    def start(self) -> Tensor:
        """The constant model, ``(D,)``; groups do not differ."""
        table = torch.zeros(self.design.matrix.shape[1], len(self.model.kinds), dtype=torch.float64)
        table[0] = self.model.start
        if self.rows.offset is not None:
            table[0, 0] -= self.rows.weight @ self.rows.offset / self.rows.weight.sum()
        found = torch.zeros(self.size, dtype=torch.float64)
        packed = self.criterion.pack(table)
        found[: len(packed)] = packed
        for effect in self.effects:
            sd = 0.5 * self.priors.unit
            found[effect.start : effect.start + effect.k] = float(np.log(sd))
        return found

    # Draws.

    def tables(self, theta: Array) -> Array:
        """Coefficients of the columns as they came and constants, ``(S, D + 1, Z)``."""
        design, count = self.design, len(theta)
        found = np.zeros((count, design.matrix.shape[1], len(self.model.kinds)))
        for j, part in enumerate(self.criterion.parts):
            found[:, self.criterion.columns[j], j] = theta[:, part]
        outputs = self.model.outputs
        full = np.zeros((count, len(design.names) + 1, len(self.model.kinds)))
        full[:, design.rows.numpy(), :outputs] = design.back.numpy() @ found[:, :, :outputs]
        full[:, 0, outputs:] = found[:, 0, outputs:]
        redundancy = self.model.redundancy
        for column, direction in zip(redundancy.columns, redundancy.directions, strict=True):
            if self.model.kinds[column] == "slopes":  # thresholds do what an intercept would
                full[:, 0] -= full[:, :1, column] * direction.numpy()
        return full

    def vectors(self, theta: Array) -> Tensor:
        """Weights and biases of the linear network, then the likelihood's parameters."""
        tables, outputs = self.tables(theta), self.model.outputs
        weight = tables[:, 1:, :outputs].transpose(0, 2, 1).reshape(len(theta), -1)
        parts = [weight, tables[:, 0, :outputs], tables[:, 0, outputs:]]
        return torch.from_numpy(np.concatenate(parts, 1))

    @property
    def names(self) -> list[str]:
        """Of the numbers that :meth:`numbers` gives: coefficients, scales, then those of groups."""
        found = [
            self.label(j, self.kept[row])
            for j in range(self.model.outputs)
            for row in range(self.design.matrix.shape[1])[self.criterion.columns[j]]
        ]
        found += [each.name for each in self.constants]
        for effect in self.effects:
            own = self.coordinates[effect.start : effect.middle]
            found += [each.name for each in own]
        return found

    @property
    def population(self) -> list[str]:
        """Names of the coefficients that all groups share."""
        count = len(self.names) - len(self.constants)
        return self.names[: count - sum(effect.middle - effect.start for effect in self.effects)]

    def prior_table(self) -> list[tuple[str, str]]:
        """The prior of each parameter, by name, in words."""
        found = []
        starts = {effect.start for effect in self.effects}
        last = min(starts) if starts else self.size
        for each in self.coordinates[:last]:
            is_intercept = each.name.endswith(INTERCEPT)
            where = ", at the mean of x" if is_intercept and len(self.kept) > 1 else ""
            found.append((each.name, f"{each.prior}{where}"))
        for effect in self.effects:
            own = self.coordinates[effect.start : effect.start + effect.k]
            found += [(each.name, str(each.prior)) for each in own]
            if effect.angles:
                found.append((f"cor({effect.term.label})", f"lkj({effect.eta:g})"))
        return found

    def numbers(self, theta: Array) -> Array:
        """The parameters by name, ``(S, M)``."""
        tables, parts = self.tables(theta), []
        rows = self.design.rows.numpy()
        for j in range(self.model.outputs):
            parts.append(tables[:, rows[self.criterion.columns[j]], j])
        for number, each in enumerate(self.constants):
            raw = tables[:, 0, self.model.outputs + number]
            parts.append(self._constant(each, raw)[:, None])
        for effect in self.effects:
            lower = effect.root(theta).lower
            sd = np.sqrt((lower**2).sum(2))
            parts.append(sd)
            if effect.angles:
                matrix = lower @ lower.transpose(0, 2, 1) / (sd[:, :, None] * sd[:, None, :])
                parts.append(matrix[:, *np.tril_indices(effect.k, -1)])
        return np.concatenate(parts, 1)

    def _constant(self, each: Constant, raw: Array) -> Array:
        if each.head is None:
            return raw
        value = Range("softplus", float(each.head.unit.mean()), float(each.head.floor.mean()))
        return as_usual(inner(self.model.likelihood), torch.from_numpy(value.value(raw))).numpy()

    def effects_of(self, theta: Array, seed: int) -> list[Array]:
        """u of each term, ``(S, G, k)``."""
        if isinstance(self.density, MarginalNormal):
            return self.density.draw(theta, seed)
        return [effect.values(theta) for effect in self.effects]


def _varies(likelihood: Likelihood) -> bool:
    """Tests whether a dispersion was asked for that depends on x."""
    return bool(inner(likelihood).options.get("dispersion") == "predicted")
