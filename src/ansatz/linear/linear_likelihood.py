"""A likelihood made ready for a linear fit, and its maximum."""

import copy
from functools import partial
from typing import Literal, NamedTuple, cast

import torch
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.likelihoods.dispersion import PositiveHead
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.linear.absolute import KINKED, is_kinked, minimise_absolute, smooth_loss
from ansatz.linear.criterion import Criterion, Derivatives, Kind
from ansatz.linear.design import DesignRows
from ansatz.linear.family import Family, family_of, precise_loss
from ansatz.linear.heads import Redundancy, dispersion_columns, find_redundancy, target_of
from ansatz.linear.naming import inner
from ansatz.linear.newton import Minimum, minimise
from ansatz.linear.row_loss import Constants, LikelihoodLoss, row_loss
from ansatz.spec import TargetSpec

GATED = ("zero_inflated_poisson", "zero_inflated_negative_binomial")


class Maximum(NamedTuple):
    """The estimates of one linear model and how they were reached."""

    theta: Tensor  # (T,) all estimates
    derivatives: Derivatives  # of the total loss by all of them
    location: Minimum  # the stage that found the location's coefficients, or all at once
    dispersion: Minimum | None  # the stage that found a constant dispersion by itself
    free: Tensor  # (T,) False for a constant that went to its limit and is held there
    differenced: bool = False  # whether second derivatives came from differences


class LinearLikelihood(NamedTuple):
    """A likelihood made ready for a linear fit."""

    likelihood: Likelihood  # a copy in float64, started at its constant model
    family: Family | None  # None where the dispersion depends on x, too
    kinds: tuple[Kind, ...]  # of the P raw numbers and then of the C learned constants
    dispersions: tuple[int, ...]  # which raw numbers are dispersions
    outputs: int  # P
    start: Tensor  # (Z,) the constant model
    unit: Tensor  # (Z,) natural units
    redundancy: Redundancy  # what need not be estimated
    target: TargetSpec  # the shape of the outcomes

    @classmethod
    def of(
        cls,
        likelihood: Likelihood,
        y: Tensor,
        weight: Tensor,
        dispersion: Literal["constant", "predicted"],
        classes: int = 0,
    ) -> "LinearLikelihood":
        """Checks y, sets units and floors, finds the constant model."""
        if not likelihood.additive:
            raise UsageError(f"{likelihood.name} couples rows: it has no linear fit row by row.")
        base = copy.deepcopy(likelihood).double()
        target = target_of(base, y, classes)
        base.outputs(target)
        base.check(y)
        base.observe(y, weight)
        shift, scale = base.double().start(y, weight)
        outputs = shift.shape[-1]
        some = slice(0, min(len(y), 16))
        dispersions = dispersion_columns(base, shift.double().expand(len(y[some]), -1), y[some])
        heads = [head for head in base.modules() if isinstance(head, PositiveHead)]
        if dispersion == "predicted" and heads and not dispersions:
            raise UsageError(
                f"dispersion='predicted' needs a {likelihood.name} likelihood made with it, but "
                f"this one has a constant dispersion: create('{likelihood.name}', "
                "dispersion='predicted')."
            )
        later: Kind = "x" if dispersion == "predicted" else "one"
        kinds: list[Kind] = [later if column in dispersions else "x" for column in range(outputs)]
        loss, constants = row_loss(base, outputs)
        kinds += ["one"] * len(constants)
        family = family_of(base) if all(kinds[d] == "one" for d in dispersions) else None
        start = torch.cat([shift.double(), constants])
        unit = torch.cat([scale.double(), torch.ones_like(constants)])
        redundancy = find_redundancy(loss, y, start, unit)
        for column, direction in zip(redundancy.columns, redundancy.directions, strict=True):
            # With constants in it the intercept is redundant, not what depends on x.
            shared = bool(direction[outputs:].abs().max() > 0) if len(constants) else False
            kinds[column] = "slopes" if shared and kinds[column] == "x" else "fixed"
            start = start - start[column] * direction
        return cls(
            base, family, tuple(kinds), dispersions, outputs, start, unit, redundancy, target
        )

    @property
    def locations(self) -> int:
        """The number of raw numbers that carry the location."""
        return self.outputs - len(self.dispersions)

    @property
    def predicted(self) -> bool:
        """Whether dispersions depend on x."""
        return any(self.kinds[column] == "x" for column in self.dispersions)

    @property
    def intercepts(self) -> int:
        """The number of the location's intercepts: 1, or K - 1."""
        kinds = [k for j, k in enumerate(self.kinds[: self.outputs]) if j not in self.dispersions]
        return kinds.count("x")

    def criterion(self, rows: DesignRows, matrix: Tensor, width: float | None = None) -> Criterion:
        """The total loss over ``rows``; a kinked one smoothed over ``width`` if given."""
        function: LikelihoodLoss | None = None
        y = rows.y
        if rows.precision is not None:
            columns = rows.y.double().reshape(len(rows.y), -1)
            y = torch.cat([columns, rows.precision.unsqueeze(1)], 1)
            function = _precise
        if width is not None:
            function = partial(smooth_loss, width=width)
        if getattr(self.likelihood, "prior", 0):  # a stated prior is part of what is maximised
            function = _with_prior
        loss, _ = row_loss(self.likelihood, self.outputs, function)
        return Criterion(loss, matrix, y, rows.weight, self.kinds, rows.offset, self.unit)

    def location_mask(self, criterion: Criterion) -> Tensor:
        """``(T,)`` True for the coefficients of the location."""
        mask = torch.zeros(criterion.size, dtype=torch.bool)
        for column in range(self.outputs):
            mask[criterion.parts[column]] = column not in self.dispersions
        return mask

    def maximise(self, rows: DesignRows, matrix: Tensor) -> Maximum:
        """Newton's method from the constant model."""
        if rows.precision is not None and self.family is None:
            raise UsageError(
                f"precision= needs an exponential family with constant dispersion, "
                f"not {self.likelihood.name} with these options. For repeated rows use weight=."
            )
        criterion = self.criterion(rows, matrix)
        table = criterion.table(torch.zeros(criterion.size, dtype=torch.float64))
        table[0] = self.start
        if rows.offset is not None:
            table[0, 0] -= rows.weight @ rows.offset / rows.weight.sum()
        theta, mask = criterion.pack(table), self.location_mask(criterion)
        every = torch.ones_like(mask)
        if self.likelihood.name in GATED and matrix.shape[1] > 1:
            # A gate that x may close before the counts follow x never opens again.
            free = self._gate_mask(criterion)
            theta = minimise(criterion, theta, free, self.unit, rescue=False).theta
        location = self._minimise(rows, criterion, theta, mask)
        if bool(mask.all()):
            derivatives, differenced = location.derivatives, criterion.differenced
            return Maximum(location.theta, derivatives, location, None, every, differenced)
        constant = all(self.kinds[column] == "one" for column in self.dispersions)
        if self.family is not None or (constant and self.likelihood.name in KINKED):
            # The location's estimate does not depend on the dispersion: that comes by itself.
            scale = minimise(criterion, location.theta, ~mask, self.unit)
            derivatives = criterion.derivatives(scale.theta)
            differenced = criterion.differenced
            return Maximum(scale.theta, derivatives, location, scale, every, differenced)
        theta, count = location.theta, location.iterations
        if matrix.shape[1] > 1 and not is_kinked(self.likelihood):
            # The scale and shape of what is left, by themselves: few numbers, and a good start.
            theta = self._relaxed(criterion, theta)
            rest = minimise(criterion, theta, ~mask, self.unit, iterations=20, rescue=False)
            theta, count = rest.theta, count + rest.iterations
        joint = self._minimise(rows, criterion, theta, every)
        count += joint.iterations
        held = self._at_limit(criterion, joint)
        if bool(held.any()):
            theta, every = self._hold(criterion, joint.theta, held), ~held
            joint = self._minimise(rows, criterion, theta, every)
            count += joint.iterations
        joint = joint._replace(iterations=count)
        derivatives = joint.derivatives if every.all() else criterion.derivatives(joint.theta)
        return Maximum(joint.theta, derivatives, joint, None, every, criterion.differenced)

    def _gate_mask(self, criterion: Criterion) -> Tensor:
        """``(T,)`` True for all but the slopes of what comes after the first raw number."""
        mask = torch.ones(criterion.size, dtype=torch.bool)
        for column in range(1, self.outputs):
            part = criterion.parts[column]
            mask[part.start + 1 : part.stop] = False
        return mask

    def _relaxed(self, criterion: Criterion, theta: Tensor) -> Tensor:
        """Shapes where a gradient can move them: the constant model's do not fit what is left.

        Outcomes that follow x closely look normal, whatever the tails of their noise.
        """
        likelihood = self.fitted(criterion, theta)
        likelihood.relax_shapes()
        table = criterion.table(theta)
        table[0, self.outputs :] = Constants.of(likelihood).values(likelihood)
        return criterion.pack(table)

    def _at_limit(self, criterion: Criterion, found: Minimum) -> Tensor:
        """``(T,)`` True for learned constants whose estimate is an end of their range."""
        held = torch.zeros(criterion.size, dtype=torch.bool)
        if found.recession is not None:  # down to a floor
            change = found.recession.table / self.unit
            if float(change[:, : self.outputs].abs().max()) < 0.1:
                for column in range(self.outputs, len(self.kinds)):
                    held[criterion.parts[column]] = bool(change[0, column].abs() > 0.1)
        part = self.freedom_part(criterion)
        if part is not None and self._nu(criterion, found.theta) > NORMAL_TAILS:
            held[part] = True
        return held

    def _hold(self, criterion: Criterion, theta: Tensor, held: Tensor) -> Tensor:
        part = self.freedom_part(criterion)
        if part is None or not bool(held[part]) or self._nu(criterion, theta) < NORMAL_TAILS:
            return theta
        theta = theta.clone()
        theta[part] = raw_of_freedom(self.likelihood, NORMAL_TAILS)
        return theta

    def freedom_part(self, criterion: Criterion) -> slice | None:
        """The place of a Student t's learned degrees of freedom among the estimates."""
        place = learned_freedom(self.likelihood)
        return None if place is None else criterion.parts[self.outputs + place]

    def _nu(self, criterion: Criterion, theta: Tensor) -> float:
        return freedom(self.fitted(criterion, theta))

    def _minimise(
        self, rows: DesignRows, criterion: Criterion, theta: Tensor, free: Tensor
    ) -> Minimum:
        if not is_kinked(self.likelihood):
            part = self.freedom_part(criterion)
            normal_tails = None
            if part is not None and bool(free[part]):

                def normal_tails(theta: Tensor) -> bool:
                    return self._nu(criterion, theta) > NORMAL_TAILS

            return minimise(criterion, theta, free, self.unit, stop=normal_tails)
        found = minimise_absolute(
            lambda width: self.criterion(rows, criterion.matrix, width),
            theta,
            free,
            self.unit,
            vertex=self.likelihood.name in KINKED,
        )
        return found._replace(derivatives=criterion.derivatives(found.theta))

    def fitted(self, criterion: Criterion, theta: Tensor) -> Likelihood:
        """A copy of the likelihood with its constants as estimated."""
        likelihood = copy.deepcopy(self.likelihood)
        Constants.of(likelihood).store(likelihood, criterion.table(theta)[0, self.outputs :])
        return likelihood


def _precise(likelihood: Likelihood, raw: Tensor, y: Tensor) -> Tensor:
    outcome = y[:, :-1] if likelihood.event_ndim else y[:, 0]
    return precise_loss(likelihood, raw, outcome, y[:, -1])


def _with_prior(likelihood: Likelihood, raw: Tensor, y: Tensor) -> Tensor:
    return likelihood.training_loss(raw, y)


NORMAL_TAILS = 1000.0


def learned_freedom(likelihood: Likelihood) -> int | None:
    """Which of the likelihood's parameters is a learned nu, by its place; None without one."""
    if inner(likelihood).name != "student_t":
        return None
    names = [name for name, _ in likelihood.named_parameters()]
    return next((j for j, name in enumerate(names) if name.endswith("freedom.constant")), None)


def freedom(likelihood: Likelihood) -> float:
    """The degrees of freedom nu."""
    head = cast(PositiveHead, inner(likelihood).get_submodule("freedom"))
    return float(head.value(torch.float64).detach())


def raw_of_freedom(likelihood: Likelihood, nu: float) -> Tensor:
    """The parameter ``()`` whose nu is this."""
    head = cast(PositiveHead, inner(copy.deepcopy(likelihood)).get_submodule("freedom"))
    return head.start(torch.tensor(nu, dtype=torch.float64)).detach()
