"""A random classifier with a bound on its error, by PAC-Bayes."""

import copy
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, softplus

from ansatz.errors import DataError, UsageError
from ansatz.fitting.contracts.inference import Build, Fitted, Inference, Posterior
from ansatz.fitting.contracts.rows import Encoder
from ansatz.fitting.contracts.structure import Facts, Feed, Structure
from ansatz.fitting.job import Job, take
from ansatz.fitting.recipe import FEW, Recipe
from ansatz.fitting.task import TrainingPlan
from ansatz.fitting.training import finish_pair, train, typed
from ansatz.inference.certificate import SCALES, Certificate
from ansatz.inference.draws import DrawsPosterior, rebuild_draws, thin
from ansatz.inference.row_noise import RowNoise
from ansatz.likelihoods import Likelihood
from ansatz.seeds import generator

SHARE = 0.5  # of the rows, on which the prior is learned
START = math.exp(-3.5)
PASSES = 5  # of the bound's rows, with fresh weights for every row
LEAST = 1e-4  # probability at which the bounded cross-entropy ends
STEPS, FEW_STEPS, BATCH, RATE = 600, 150, 250, 0.1
SAMPLES = 20
FEWEST = 10  # rows on either side


class PacBayes(Inference):
    r"""A normal posterior of linear maps that minimises a bound on its own error.

    .. math:: \mathrm{kl}(\hat r \| r) \le \frac1n
        \Big( KL(q \| p) + \log \frac{2 \sqrt n\, J}{\epsilon} \Big)

    The prior p is centred on a network trained on a share of the rows (``prior_share``, a half);
    its scale is one of J, which the level pays for. On the other n rows q minimises the bound of a
    bounded cross-entropy. :math:`\hat r` is simulated with weights of their own for every row; a
    tenth of the level pays for the simulation. Predictions average over draws of q; the bound is
    about one draw for each row.

    References:
        Dziugaite and Roy (2017), Computing nonvacuous generalization bounds.
        https://arxiv.org/abs/1703.11008; Perez-Ortiz et al. (2021), Tighter risk certificates for
        neural networks. https://arxiv.org/abs/2007.12911
    """

    name: ClassVar[str] = "pac_bayes"
    words: ClassVar[str] = "a random classifier with a bound"
    averages: ClassVar[bool] = False
    few: ClassVar[float] = FEW
    settings: ClassVar[frozenset[str]] = frozenset({"prior_share", "samples"})
    likelihoods: ClassVar[tuple[str, ...]] = ("bernoulli", "categorical")
    certifies: ClassVar[bool] = True

    def recipe(self, base: Recipe, facts: Facts, options: Mapping[str, Any]) -> Recipe:
        return base

    def fit(
        self,
        plan: TrainingPlan,
        job: Job,
        likelihood: Likelihood,
        previous: Posterior | None = None,
    ) -> Fitted:
        known, others = _split(plan, job, likelihood)
        done = train(plan, known, likelihood)
        trained = copy.deepcopy(done.trained)
        network = trained.network.float().eval()
        objective = copy.deepcopy(trained.objective).float()
        trained.network, trained.objective = network, objective
        recipe = plan.recipe.model_copy(update={"augment": False, "batch_size": BATCH})
        plan = plan._replace(recipe=recipe)
        encoder = done.encoder

        def batches(epoch: int, *, training: bool) -> Any:
            feed = Feed(recipe, plan.seed, training, True, False)
            source = plan.structure.source(others, encoder, feed, plan.options)
            return (typed(batch, torch.float32) for batch in source.batches(epoch))

        first = next(iter(batches(0, training=False)))
        field = RowNoise(network, first.inputs, START)
        source = generator(plan.seed, "weights")
        rows = len(others.y)

        def logits(batch: Any) -> Tensor:
            with field.noise(source):
                raw = objective.raw(network, batch.inputs, batch.offset)
            own: Any = objective.likelihood
            if raw.shape[-1] == 1:
                return torch.cat([torch.zeros_like(raw), raw], -1)
            found: Tensor = own.logits(raw) if hasattr(own, "logits") else raw
            return found

        _minimise(field, logits, batches, rows)
        error, draws = _simulate(logits, batches)
        certificate = Certificate(error, float(field.kl().detach()), rows, draws)
        return _fitted(plan, done, field, objective, certificate, likelihood)

    def rebuild(
        self,
        structure: Structure,
        encoder: Encoder,
        record: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        build: Build,
    ) -> DrawsPosterior:
        return rebuild_draws(self.name, structure, encoder, record, tensors, build)


def _split(plan: TrainingPlan, job: Job, likelihood: Likelihood) -> tuple[Job, Job]:
    """The rows of the prior and those of the bound."""
    if likelihood.name not in PacBayes.likelihoods or job.target.shape or job.target.axis != "row":
        raise UsageError(
            f"inference pac_bayes bounds the error of classes, got {likelihood.name}. Take "
            "inference vi, or conformal intervals."
        )
    if float(job.weight.min()) != float(job.weight.max()) or job.group is not None:
        raise UsageError(
            "a bound needs independent rows, all of one weight: leave weights and groups out."
        )
    given = plan.options.get("prior_share")
    share = SHARE if given is None else given
    if not 0 < share < 1:
        raise UsageError(f"prior_share must be in (0, 1), got {share}.")
    order = torch.randperm(len(job.y), generator=generator(plan.seed, "prior")).numpy()
    count = round(share * len(order))
    if min(count, len(order) - count) < FEWEST:
        raise DataError(
            f"a bound needs {FEWEST} rows for its prior and {FEWEST} others, got {count} and "
            f"{len(order) - count}. Give more rows, or another --prior-share."
        )
    known, others = order[:count], order[count:]
    known.sort()
    others.sort()
    return take(job, known)._replace(valid=None), take(job, others)._replace(valid=None)


def _minimise(field: RowNoise, logits: Any, batches: Any, rows: int) -> None:
    """Descends on the bound of the bounded cross-entropy, by gradients scaled as the KL's own."""
    rule = torch.optim.SGD(
        [
            {"params": [*field.shift, *field.log_ratio], "lr": RATE * rows},
            {"params": [field.log_scale], "lr": 0.1},
        ],
        momentum=0.9,
    )
    steps = STEPS if rows > FEW_STEPS * BATCH else FEW_STEPS
    step, epoch = 0, 0
    budget = math.log(2 * math.sqrt(rows) * len(SCALES) / 0.05)
    while step < steps:
        for batch in batches(epoch, training=True):
            fade = 0.5 * (1 + math.cos(math.pi * step / steps))
            for group, rate in zip(rule.param_groups, (RATE * rows, 0.1), strict=True):
                group["lr"] = rate * fade
            nll = cross_entropy(logits(batch), batch.target.long(), reduction="none")
            # Smoothly at most 1, as the bound asks.
            ceiling = -math.log(LEAST)
            risk = ((ceiling - softplus(ceiling - nll)) / ceiling).clamp(min=0).mean()
            slack = (field.kl().float() + budget) / (2 * rows)
            objective = ((risk + slack).sqrt() + slack.sqrt()).square()
            rule.zero_grad()
            objective.backward()
            torch.nn.utils.clip_grad_norm_(list(field.parameters()), 1.0)
            rule.step()
            step += 1
            if step >= steps:
                break
        epoch += 1
    with torch.no_grad():  # the prior's scale is one that the level pays for
        chosen = min(SCALES, key=lambda s: abs(math.log(s) - float(field.log_scale.detach())))
        field.log_scale.fill_(math.log(chosen))


def _simulate(logits: Any, batches: Any) -> tuple[float, int]:
    """The share of errors of fresh weights for every row, and the number of draws."""
    wrong = count = 0
    with torch.no_grad():
        for _ in range(PASSES):
            for batch in batches(0, training=False):
                wrong += int((logits(batch).argmax(-1) != batch.target.long()).sum())
                count += len(batch.target)
    return wrong / count, count


def _fitted(
    plan: TrainingPlan,
    done: Any,
    field: RowNoise,
    objective: Any,
    certificate: Certificate,
    likelihood: Likelihood,
) -> Fitted:
    network = field.network[0]
    names = {id(p): name for name, p in network.named_parameters()}
    deviations, places = {}, {}
    with torch.no_grad():
        for k, (part, name, mean, sd) in enumerate(field.weights()):
            own = getattr(part, name)
            own.copy_(mean)
            deviations[f"sd.{k}"] = sd.clone()
            places[names[id(own)]] = sd
        source = generator(plan.seed, "draws")
        count = plan.options.get("samples") or SAMPLES
        parts = []
        for name, p in network.named_parameters():
            found = p.detach().reshape(1, -1).expand(count, -1)
            if name in places:
                noise = torch.randn(found.shape, generator=source)
                found = found + places[name].reshape(1, -1) * noise
            parts.append(found)
        others = [p.detach().reshape(1, -1).expand(count, -1) for p in objective.parameters()]
        draws, note = thin(torch.cat([*parts, *others], 1).float())
    trained = finish_pair(plan, done.encoder, network, objective)
    numbers = certificate._asdict()
    state = {"certificate": {n: numbers[n] for n in ("error", "kl", "rows", "draws")}}
    posterior = DrawsPosterior(
        PacBayes.name, plan.structure, done.encoder, trained, draws, plan.options,
        state=state, others=deviations,
    )  # fmt: skip
    notes = [certificate.sentence(), *([] if note is None else [note])]
    return Fitted(posterior, done.history, notes=tuple(notes))
