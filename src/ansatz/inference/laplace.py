"""Laplace's approximation: a normal posterior around a mode, in the linearised network."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from ansatz.data.batch import count_rows, take_rows
from ansatz.errors import NumericalError, UsageError
from ansatz.fitting.contracts.inference import (
    Build,
    Composition,
    Fitted,
    Inference,
    Posterior,
    Predictive,
)
from ansatz.fitting.contracts.rows import Encoder
from ansatz.fitting.contracts.structure import Facts, Feed, Structure
from ansatz.fitting.job import Job
from ansatz.fitting.model import Trained
from ansatz.fitting.recipe import FEW, Recipe
from ansatz.fitting.task import TrainingPlan
from ansatz.fitting.training import finish_pair, typed
from ansatz.inference.combination import Combination
from ansatz.inference.curvature import (
    AT_ONCE,
    Curvature,
    Jacobian,
    loss_factor,
    make_curvature,
)
from ansatz.inference.glm.laplace import fit_linear_laplace, is_linear
from ansatz.inference.glm.posterior import LinearDraws, is_of_linear, rebuild_linear_draws
from ansatz.inference.normal_points import normal_points
from ansatz.inference.posterior_fit import (
    Beginning,
    PriorPenalty,
    begin,
    fit_mode,
    mode_note,
    polish,
    posterior_recipe,
    priors_note,
)
from ansatz.likelihoods import Likelihood, Normal
from ansatz.likelihoods.dispersion import softplus_inverse
from ansatz.seeds import derive

SAMPLES = 100
ROUNDS = 3  # of the mode and the evidence, where rows are in memory
KINDS, SUBSETS = ("kron", "full", "diag"), ("all", "last")
_PREFIX = "laplace."


class Noise(NamedTuple):
    """The noise of a normal likelihood, of which the evidence is a function."""

    sd: float  # at the mode
    squares: float  # the weighted sum of squared residuals
    rows: float  # the sum of the weights


class LaplacePosterior:
    r"""Normal weights around a mode, in the network that is linearised there.

    .. math:: \text{raw}(x) \sim N\big(\text{raw}_{\hat\theta}(x),\; J(x) \Sigma J(x)^T\big),
        \qquad \Sigma = (H + P)^{-1}

    The predictive is the mixture over S draws of raw, the same standard normal numbers for every
    row.
    """

    name: ClassVar[str] = "laplace"
    keeps_rows: ClassVar[bool] = False

    def __init__(
        self,
        structure: Structure,
        encoder: Encoder,
        trained: Trained,
        curvature: Curvature,
        jacobian: Jacobian,
        state: Mapping[str, Any],
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.structure, self.encoder, self.trained = structure, encoder, trained
        self.curvature, self.jacobian = curvature, jacobian
        self.state, self.options = dict(state), dict(options or {})
        samples = int(state["samples"])
        outputs = 1 if trained.objective.shift is None else trained.objective.shift.numel()
        self.normals = normal_points(samples, outputs, int(state["seed"]))  # (S, Q)
        weights = torch.full((samples,), 1 / samples, dtype=torch.float64)
        self.combination = Combination([trained.likelihood] * samples, weights)

    @property
    def likelihood(self) -> Likelihood:
        return self.combination.likelihood

    @property
    def parameters(self) -> int:
        return self.trained.parameters

    @property
    def networks(self) -> Sequence[Trained]:
        """The network at the mode."""
        return [self.trained]

    def functional(
        self, inputs: tuple[Tensor, ...], offset: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Mean ``(B, Q)`` and covariance ``(B, Q, Q)`` of the raw numbers."""
        raw, slopes = self.jacobian(inputs, offset)
        return raw, self.curvature.covariance(slopes)

    def _draws(self, inputs: tuple[Tensor, ...], offset: Tensor | None) -> Tensor:
        """Draws of the raw numbers, ``(S, B, ..., P)``."""
        mean, covariance = self.functional(inputs, offset)
        values, vectors = torch.linalg.eigh(covariance)
        # The symmetric root, which moves continuously with x.
        root = (vectors * values.clamp(min=0).sqrt().unsqueeze(-2)) @ vectors.mT
        raws = mean + torch.einsum("bqr,sr->sbq", root, self.normals)
        shift = self.trained.objective.shift
        shape = raws.shape[2:] if shift is None else shift.shape
        return raws.reshape(*raws.shape[:2], *shape)

    def answer(self, inputs: tuple[Tensor, ...], offset: Tensor | None = None) -> Tensor:
        size = max(1, AT_ONCE // (self.jacobian.size * self.normals.shape[1]))
        rows = count_rows(inputs)
        found = []
        for first in range(0, max(rows, 1), size):
            part = slice(first, first + size)
            extra = None if offset is None else offset[part]
            draws = self._draws(take_rows(inputs, part), extra)
            found.append(self.combination.serve(list(draws)))
        return torch.cat(found)

    def _asked(self, rows: Any, offset: Tensor | None, notes: list[str] | None, ask: Any) -> Any:
        asked: list[Any] = [ask]
        chunks = self.structure.raws(
            asked, self.encoder, rows, offset, notes=notes, options=self.options
        )
        return [next(iter(each)) for each in chunks]

    def predictive(
        self, rows: Any, offset: Tensor | None = None, *, notes: list[str] | None = None
    ) -> Predictive:
        raws = self._asked(rows, offset, notes, _Asked(self.trained, self.answer))
        return Predictive(self.likelihood, torch.cat(raws))

    def components(self, rows: Any, offset: Tensor | None = None) -> list[tuple[float, Predictive]]:
        def ask(inputs: tuple[Tensor, ...], extra: Tensor | None = None) -> Tensor:
            return self._draws(inputs, extra).movedim(0, 1)

        draws = torch.cat(self._asked(rows, offset, [], _Asked(self.trained, ask)))
        parts = [Predictive(self.trained.likelihood, raw) for raw in draws.unbind(1)]
        if self.combination.merged:
            parts = [self.combination.of_member(part) for part in parts]
        return [(1 / len(parts), part) for part in parts]

    def without_recalibration(self) -> Self:
        return self

    def composition(self, kind: torch.dtype) -> Composition:
        raise UsageError(
            "inference laplace needs derivatives, which a graph has not. Export a fit with "
            "inference map or ensemble."
        )

    def tensors(self) -> dict[str, Tensor]:
        own = {f"{_PREFIX}{name}": value for name, value in self.curvature.tensors().items()}
        return {**self.trained.tensors(), **own}

    def record(self) -> dict[str, Any]:
        return dict(self.state)


class _Asked:
    """A function of encoded rows in the place of a trained network."""

    def __init__(self, trained: Trained, ask: Any) -> None:
        self.network, self.answering = trained.network, trained.answering
        self.objective, self._ask = trained.objective, ask

    def __call__(self, inputs: tuple[Tensor, ...], offset: Tensor | None = None) -> Tensor:
        found: Tensor = self._ask(inputs, offset)
        return found


class Laplace(Inference):
    r"""Approximates the posterior by a normal distribution around a mode.

    .. math:: \theta \mid y \approx N\big(\hat\theta, (H + P)^{-1}\big), \qquad
        H = \sum_i J_i^T \big( w_i \nabla^2 \ell(r_i, y_i) \big) J_i

    with the Gauss-Newton matrix H (``curvature``: all of it, Kronecker blocks or a diagonal) of all
    weights or of the last map (``subset``), and the prior's precision P. The scales of the prior,
    and a constant noise of a normal likelihood, maximise the evidence

    .. math:: \log p(y) \approx \log p(y \mid \hat\theta) + \log p(\hat\theta) + \tfrac D2 \log 2\pi
        - \tfrac12 \log \det (H + P)

    together with their own prior; with rows in memory the mode and the evidence take turns.
    Predictions are those of the network linearised at the mode.

    References:
        MacKay (1992); Immer et al. (2021), Improving predictions of Bayesian neural nets via local
        linearization. https://arxiv.org/abs/2008.08400
    """

    name: ClassVar[str] = "laplace"
    words: ClassVar[str] = "a normal posterior around a mode"
    averages: ClassVar[bool] = False
    few: ClassVar[float] = FEW
    infers_linear: ClassVar[bool] = True
    settings: ClassVar[frozenset[str]] = frozenset(
        {"priors", "random", "samples", "curvature", "subset"}
    )

    def recipe(self, base: Recipe, facts: Facts, options: Mapping[str, Any]) -> Recipe:
        return posterior_recipe(base, facts)

    def fit(
        self,
        plan: TrainingPlan,
        job: Job,
        likelihood: Likelihood,
        previous: Posterior | None = None,
    ) -> Fitted:
        if is_linear(plan):
            return fit_linear_laplace(self.name, plan, job, likelihood, sampled=True)
        if job.target.axis != "row":
            raise UsageError("inference laplace has one outcome for each row; take ensemble.")
        kind = _choice(plan, "curvature", KINDS)
        subset = _choice(plan, "subset", SUBSETS)
        start = begin(plan, job, likelihood, self.name)
        history, norm = fit_mode(plan, job, start)
        start.network.double()
        start.prior.double()
        found = _Evidence(plan, job, start, kind, subset)
        found.measure()
        for _ in range(ROUNDS - 1 if norm is not None else 0):
            if not found.maximise():
                break
            rows = plan.structure.batch(job, start.encoder, plan.recipe)
            assert rows is not None
            norm = polish(start, rows, PriorPenalty(start.prior, start.outcomes))
            found.measure()
        found.maximise()
        trained = finish_pair(plan, start.encoder, start.network, start.objective)
        found.condition()
        state = {
            "prior": start.prior.words(),
            "scales": _scales(start),
            "columns": _columns(start),
            "log_evidence": found.value,
            "gradient_norm": norm,
            "curvature": kind,
            "subset": subset,
            "samples": plan.options.get("samples") or SAMPLES,
            "seed": derive(plan.seed, "laplace") % 2**31,
        }
        jacobian = Jacobian(trained, last=subset == "last")
        posterior = LaplacePosterior(
            plan.structure, start.encoder, trained, found.curvature, jacobian, state, plan.options
        )
        notes = (priors_note(start.prior), mode_note(norm), f"log evidence {found.value:.1f}.")
        return Fitted(posterior, history, notes=notes)

    def rebuild(
        self,
        structure: Structure,
        encoder: Encoder,
        record: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        build: Build,
    ) -> LaplacePosterior | LinearDraws:
        if is_of_linear(record):
            return rebuild_linear_draws(self.name, structure, encoder, record, tensors, build)
        own = {n: t for n, t in tensors.items() if n.startswith(("network.", "objective."))}
        trained = build(own)
        jacobian = Jacobian(trained, last=record["subset"] == "last")
        curvature = make_curvature(str(record["curvature"]), jacobian, torch.zeros(0))
        curvature.load(
            {n.removeprefix(_PREFIX): t for n, t in tensors.items() if n.startswith(_PREFIX)}
        )
        return LaplacePosterior(structure, encoder, trained, curvature, jacobian, record)


class _Evidence:
    """The evidence as a function of the prior's scales and the noise, at one mode."""

    def __init__(
        self, plan: TrainingPlan, job: Job, start: Beginning, kind: str, subset: str
    ) -> None:
        self.plan, self.job, self.start, self.kind = plan, job, start, kind
        self.last = subset == "last"
        self.value = -math.inf
        self.curvature: Curvature
        self.noise: Noise | None = None
        self.log_likelihood = 0.0

    def _trained(self) -> Trained:
        start = self.start
        return finish_pair(self.plan, start.encoder, start.network, start.objective)

    def _batches(self) -> Any:
        plan, start = self.plan, self.start
        feed = Feed(plan.recipe, plan.seed, False, True, False)
        return plan.structure.source(self.job, start.encoder, feed, plan.options).batches(0)

    def measure(self) -> None:
        """Computes H and the likelihood at the mode."""
        trained = self._trained()
        jacobian = Jacobian(trained, last=self.last)
        start, likelihood = self.start, trained.likelihood
        own = [list(start.network.parameters())[k] for k in jacobian.places]
        places = jacobian.places
        self.places, self.shapes = places, [p.shape for p in own]
        self.mode = torch.cat([p.detach().double().reshape(-1) for p in own])
        with torch.no_grad():
            self.unit = self._vector(start.prior.sds()) / _block_scales(start, places, self.shapes)
        self.curvature = make_curvature(self.kind, jacobian, self.unit)
        shift = start.objective.shift
        shape = torch.Size((1,)) if shift is None else shift.shape
        self.log_likelihood = squares = count = 0.0
        normal = type(likelihood) is Normal and likelihood.dispersion.kind == "constant"
        normal = normal and len(shape) == 1
        for whole in self._batches():
            for batch in jacobian.chunks(whole, shape.numel()):
                rows = typed(batch, next(trained.network.parameters()).dtype)
                raw, slopes = jacobian(rows.inputs, rows.offset)
                self.curvature.add(slopes, loss_factor(likelihood, raw, rows, shape))
                y = rows.target.double() if rows.target.is_floating_point() else rows.target
                with torch.no_grad():
                    terms = likelihood.loss(raw.reshape(len(raw), *shape), y)
                weight = rows.weight.double().reshape(-1, *(1,) * (terms.ndim - 1))
                self.log_likelihood -= float((weight * terms).sum())
                if normal:
                    squares += float((weight * (y - raw[:, 0]).square()).sum())
                    count += float(weight.sum())
        sd = float(likelihood.dispersion.value(torch.float64).detach()) if normal else 1.0
        self.noise = Noise(sd, squares, count) if normal else None

    def _vector(self, parts: list[Tensor]) -> Tensor:
        chosen = [parts[k].double() for k in self.places]
        pairs = zip(chosen, self.shapes, strict=True)
        return torch.cat([part.expand(shape).reshape(-1) for part, shape in pairs])

    def _log_evidence(self, layers: Tensor, columns: Tensor, log_sd: Tensor) -> Tensor:
        prior = self.start.prior
        sds = self._vector(prior.sds(layers, columns))
        scale, likelihood = log_sd.new_ones(()), torch.tensor(self.log_likelihood)
        if self.noise is not None:
            sd, squares, count = self.noise
            scale = (2 * (math.log(sd) - log_sd)).exp()
            base = count * math.log(sd) + squares / (2 * sd**2)
            likelihood = likelihood + base - count * log_sd - squares / 2 * (-2 * log_sd).exp()
        means = self._vector([torch.tensor(mean) for mean in prior.means])
        z = (self.mode - means) / sds
        fit = likelihood - 0.5 * z.square().sum() - sds.log().sum()
        fit = fit - 0.5 * self.curvature.log_det(sds.square().reciprocal(), scale)
        return fit - 0.5 * layers.square().sum() - 0.5 * columns.square().sum()

    def maximise(self) -> bool:
        """Moves scales and noise to the largest evidence; True where they moved much."""
        prior = self.start.prior
        learn_columns = self.kind != "kron" and not self.last
        parts = [prior.layers.detach().double(), prior.columns.detach().double()]
        noise = 0.0 if self.noise is None else math.log(self.noise.sd)
        parts.append(torch.tensor([noise], dtype=torch.float64))
        sizes = [part.numel() for part in parts]

        def value(vector: np.ndarray) -> tuple[float, np.ndarray]:
            leaf = torch.from_numpy(vector.copy()).requires_grad_()
            layers, columns, log_sd = leaf.split(sizes)
            columns = columns if learn_columns else parts[1]
            found = -self._log_evidence(layers, columns, log_sd.squeeze(0))
            (gradient,) = torch.autograd.grad(found, leaf)
            return float(found.detach()), gradient.numpy()

        begin = torch.cat(parts).numpy()
        try:
            before = value(begin)[0]
            options = {"maxiter": 30 if self.kind == "full" else 100}
            found = minimize(value, begin, jac=True, method="L-BFGS-B", options=options)
        except torch.linalg.LinAlgError as error:
            raise NumericalError(
                "the curvature at the mode is not positive definite. Take --set curvature=diag, or "
                "a narrower prior."
            ) from error
        if not math.isfinite(found.fun) or found.fun > before:
            self.value = -before
            return False
        self.value = -float(found.fun)
        layers, columns, log_sd = torch.from_numpy(found.x).split(sizes)
        with torch.no_grad():
            prior.layers.copy_(layers)
            prior.columns.copy_(columns)
            if self.noise is not None:
                self._set_noise(float(log_sd.exp()))
        return before - float(found.fun) > 0.1

    def _set_noise(self, sd: float) -> None:
        head: Any = self.start.objective.likelihood.dispersion
        excess = (sd - head.floor.double()) / head.unit.double()
        head.constant.copy_(softplus_inverse(excess.clamp(min=1e-4)).to(head.constant))

    def condition(self) -> None:
        """Inverts H + P at the scales and the noise that were found."""
        sds = self._vector(self.start.prior.sds()).detach()
        scale = 1.0
        if self.noise is not None:
            head: Any = self.start.objective.likelihood.dispersion
            now = float(head.value(torch.float64).detach())
            scale = (self.noise.sd / now) ** 2
        self.curvature.condition(sds.square().reciprocal(), scale)


def _block_scales(start: Beginning, places: list[int], shapes: list[torch.Size]) -> Tensor:
    """The scale of the layer of every weight."""
    prior = start.prior
    if prior.is_fixed:
        return torch.ones(sum(shape.numel() for shape in shapes), dtype=torch.float64)
    scales = (prior.center + prior.width * prior.layers.detach()).exp().double()
    parts = [
        scales[prior.layer_of[k]].expand(shape.numel())
        for k, shape in zip(places, shapes, strict=True)
    ]
    return torch.cat(parts)


def _scales(start: Beginning) -> list[float]:
    prior = start.prior
    found: list[float] = (prior.center + prior.width * prior.layers.detach()).exp().tolist()
    return found


def _columns(start: Beginning) -> list[float]:
    prior = start.prior
    found: list[float] = (prior.column_width * prior.columns.detach()).exp().tolist()
    return found


def _choice(plan: TrainingPlan, name: str, known: tuple[str, ...]) -> str:
    value = plan.options.get(name) or known[0]
    if value not in known:
        raise UsageError(f"{name} of laplace is {', '.join(known)}, got {value!r}.")
    return str(value)
