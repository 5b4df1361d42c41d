"""Several networks trained from different starts on different rows, mixed and recalibrated."""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ansatz import optim
from ansatz.data import Batch
from ansatz.data.batch import take_rows
from ansatz.errors import ModelError, NumericalError, UsageError
from ansatz.fitting.contracts.inference import (
    Build,
    Fitted,
    Inference,
    Posterior,
)
from ansatz.fitting.contracts.rows import Encoder
from ansatz.fitting.contracts.structure import Facts, Structure
from ansatz.fitting.job import Job, take
from ansatz.fitting.model import PointPosterior, Trained
from ansatz.fitting.recipe import FEW, SMALL, Recipe
from ansatz.fitting.recipe_options import require_members
from ansatz.fitting.task import TrainingPlan
from ansatz.fitting.training import build_network, build_objective, finish_pair, train, typed
from ansatz.inference.combination import probability_of_best, stack_weights
from ansatz.inference.ensemble_posterior import EnsemblePosterior
from ansatz.inference.left_out import (
    Fold,
    MemberPredictions,
    evaluate_elements,
    folds_of,
    left_out,
    plan_members,
)
from ansatz.inference.member_step import MemberStep
from ansatz.inference.member_training import MemberRows, member_folder, train_together
from ansatz.inference.recalibration import recalibrate, served_factor
from ansatz.likelihoods import Likelihood
from ansatz.networks import MLP
from ansatz.seeds import derive
from ansatz.storage import load_into
from ansatz.training import History, Penalty, Supervised, choose_device

IN_TURN = "members were trained one after another, which takes longer: all at once are trained by "
IN_TURN += "AdamW, without a penalty or a teacher, at a rate that is a function of the step."


class Ensemble(Inference):
    """Trains several networks, mixes them by their out-of-fold scores and recalibrates the mixture.

    Member k leaves out fold k mod 10 of repeat k div 10, and stops by it. Every repeat of the folds
    counts as much as its out-of-fold log score deserves, and so does the linear model below 500
    rows; members without dropout and with it count by the chance that theirs is the better score.
    One factor then recalibrates the out-of-fold mixture.

    References:
        Lakshminarayanan et al. (2017), Simple and scalable predictive uncertainty estimation using
        deep ensembles. https://arxiv.org/abs/1612.01474
    """

    name: ClassVar[str] = "ensemble"
    words: ClassVar[str] = "an ensemble of networks"
    averages: ClassVar[bool] = True
    few: ClassVar[float] = SMALL  # members average their dispersions
    settings: ClassVar[frozenset[str]] = frozenset({"members"})

    def recipe(self, base: Recipe, facts: Facts, options: Mapping[str, Any]) -> Recipe:
        """The structure's recipe of averaged networks, with as many members as asked for."""
        members = options.get("members")
        require_members(members)
        return base if members is None else base.model_copy(update={"members": members})

    def fit(
        self,
        plan: TrainingPlan,
        job: Job,
        likelihood: Likelihood,
        previous: Posterior | None = None,
    ) -> Fitted:
        if plan.options.get("warm_start"):
            raise UsageError("an ensemble has no warm_start: its members start anew.")
        structure = plan.structure
        encoder = structure.encoder(job.rows, job.weight.numpy(), plan.recipe, plan.options)
        rows = structure.batch(job, encoder, plan.recipe)
        # What exaggerates without dropout has it in all members, and so has what was asked for.
        plain = (
            likelihood.additive and not job.target.classes and plan.options.get("dropout") is None
        )
        mixed = rows is not None and plain and _can_be_together(plan)
        members = plan_members(job, plan.recipe, plan.seed, mixed=mixed)
        trained, history = _train(plan, job, likelihood, members, encoder, rows)
        models = [PointPosterior(structure, encoder, each, plan.options) for each in trained]
        linear, penalty = None, None
        if rows is not None and float(job.weight.sum()) < FEW:
            penalty = structure.penalty(likelihood, job, plan.seed)
            linear = _linear(structure, job, likelihood, models[0], penalty)
        if job.target.axis == "row":
            evaluated = _out_of_fold(job, rows, members, models, linear, penalty)
        else:
            job, evaluated = evaluate_elements(job, members, models, plan.seed)
        fitted = combine(job, models, members, linear, evaluated, history, plan.seed)
        return fitted if _can_be_together(plan) else fitted._replace(notes=(IN_TURN,))

    def rebuild(
        self,
        structure: Structure,
        encoder: Encoder,
        record: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        build: Build,
    ) -> EnsemblePosterior:
        """The posterior of a saved model: members put together as they were."""
        count, weights = int(record["members"]), record["weights"]
        own = {n: t for n, t in tensors.items() if n.startswith(("network.", "objective."))}
        for name, tensor in own.items():
            if not tensor.ndim or len(tensor) != count:
                raise ModelError(f"'{name}' should hold {count} members.")
        if len(weights) != count + (record["linear"] is not None):
            raise ModelError(f"{count} members have {len(weights)} weights.")
        parts = [{name: tensor[k] for name, tensor in own.items()} for k in range(count)]
        members = [PointPosterior(structure, encoder, build(part)) for part in parts]
        if record["linear"] is not None:
            linear = structure.load_linear(record["linear"], _named(tensors, "linear."))
            assert isinstance(linear, PointPosterior)
            members.append(linear)
        posterior = EnsemblePosterior(
            members, torch.tensor(weights, dtype=torch.float64), record["factor"]
        )
        if posterior.combination.merged:
            served, likelihood = _named(tensors, "served."), posterior.combination.likelihood
            likelihood.load_state_dict(served, strict=False)  # takes the shapes
            load_into(likelihood, served, where="weights.safetensors")
        return posterior


def _can_be_together(plan: TrainingPlan) -> bool:
    """Tests whether the step of all members can do what a plan asks for."""
    if not plan.recipe.is_plain or any(plan.options.get(each) for each in ("teacher", "recompute")):
        return False
    return not hasattr(optim.schedules.get(plan.recipe.schedule), "observe")


def _named(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}


def _train(
    plan: TrainingPlan,
    job: Job,
    likelihood: Likelihood,
    members: list[MemberRows],
    encoder: Encoder,
    rows: Batch | None,
) -> tuple[list[Trained], History]:
    """Trains the members: together where that is fast, else one after another."""
    if rows is None:  # rows that are not held as tensors: each member by itself
        return _in_turn(plan, job, likelihood, members, encoder, None)
    objective = build_objective(likelihood, rows)
    objective.likelihood.relax_shapes()
    networks = [_member(plan, job, encoder, objective, n) for n in range(len(members))]
    on_cpu = choose_device(plan.trainer_options.get("device", "auto")).type == "cpu"
    together = _can_be_together(plan) and MemberStep.supports(networks[0], objective)
    if not on_cpu or not together:
        starts = [(member, objective) for member in networks]
        return _in_turn(plan, job, likelihood, members, encoder, starts)
    recipe, options = plan.recipe, {**plan.trainer_options, **job.trainer_options}
    options["callbacks"] = plan.options.get("callbacks") or ()
    pairs, history = train_together(
        rows,
        members,
        [n for n in networks if isinstance(n, MLP)],
        objective,
        recipe,
        seed=plan.seed,
        trainer_options=options,
    )
    return [finish_pair(plan, encoder, *pair) for pair in pairs], history


def _member(
    plan: TrainingPlan, job: Job, encoder: Encoder, objective: Supervised, number: int
) -> nn.Module:
    assert objective.shift is not None
    module = build_network(
        plan.network,
        plan.network_options,
        inputs=encoder.spec,
        outputs=objective.shift.numel(),
        dtype=getattr(torch, plan.recipe.dtype),
        seed=derive(plan.seed, "member", number),
    )
    return plan.structure.adapt(module, encoder, job, objective)


def _in_turn(
    plan: TrainingPlan,
    job: Job,
    likelihood: Likelihood,
    members: list[MemberRows],
    encoder: Encoder,
    starts: list[tuple[nn.Module, Supervised]] | None,
) -> tuple[list[Trained], History]:
    """Networks that cannot be trained side by side, one after another."""
    found, histories = [], []
    for number, member in enumerate(members):
        options = member_folder(dict(job.trainer_options), number)
        part = job._replace(valid=member.valid.numpy(), trainer_options=options)
        own = plan._replace(seed=derive(plan.seed, "member", number))
        start = None if starts is None else starts[number]
        done = train(own, part, likelihood, encoder=encoder, start=start)
        found.append(done.trained)
        histories.append(done.history)
    return found, max(histories, key=lambda history: history.steps)


def _linear(
    structure: Structure,
    job: Job,
    likelihood: Likelihood,
    like: PointPosterior,
    penalty: Penalty | None,
) -> PointPosterior | None:
    """The linear model of the likelihood, where it predicts the same raw numbers."""
    try:
        found = structure.linear(likelihood, job, penalty=penalty)
    except NumericalError:  # separated classes and the like: the networks go without it
        return None
    if found is None or not isinstance(found.posterior, PointPosterior):
        return None
    return found.posterior if _compatible(found.posterior, like) else None


def _compatible(model: PointPosterior, like: PointPosterior) -> bool:
    mine, theirs = model.trained.likelihood, like.likelihood
    names = [name for name, _ in theirs.named_parameters()]
    same = [name for name, _ in mine.named_parameters()] == names and mine.name == theirs.name
    return same and not theirs.event_ndim and theirs.has_distribution


def _out_of_fold(
    job: Job,
    rows: Batch | None,
    members: list[MemberRows],
    models: list[PointPosterior],
    linear: PointPosterior | None,
    penalty: Penalty | None,
) -> MemberPredictions:
    """Predicts every evaluated row by the members that left it out, one of each repeat."""
    who = left_out(members, len(job.y))  # (N, G)
    wide = None if rows is None else typed(rows, torch.float64)
    refits = _linear_refits(job, members, models[0], penalty) if linear is not None else []
    folds = []
    for group in who[(who >= 0).all(1)].unique(dim=0):
        index = (who == group).all(1).nonzero().squeeze(1)
        chosen = [models[member] for member in group.tolist()]
        candidates = [model.likelihood for model in chosen]
        mine = take(job, index.numpy())
        if wide is None:
            raws = [model.predictive(mine.rows, mine.offset).raw for model in chosen]
        else:
            part = take_rows(wide, index)
            raws = [model.answer(part.inputs, part.offset) for model in chosen]
        if refits:
            refit = refits[int(group[0])]
            candidates.append(refit.likelihood)
            raws.append(refit.predictive(mine.rows, mine.offset, notes=[]).raw)
        folds.append(Fold(index, candidates, raws))
    groups = who.shape[1] + (linear is not None)
    return MemberPredictions(who, folds, torch.full((groups,), 1 / groups, dtype=torch.float64))


def _linear_refits(
    job: Job, members: list[MemberRows], like: PointPosterior, penalty: Penalty | None
) -> list[Posterior]:
    """The linear model of the rows that each member of the first repeat was trained on."""
    found = []
    for member in members[: folds_of(members)]:
        linear = like.structure.linear(
            like.likelihood, take(job, member.train.numpy()), penalty=penalty
        )
        assert linear is not None
        found.append(linear.posterior)
    return found


def combine(
    job: Job,
    models: list[PointPosterior],
    members: list[MemberRows],
    linear: PointPosterior | None,
    evaluated: MemberPredictions,
    history: History,
    seed: int,
) -> Fitted:
    """Mixes and recalibrates the members by their out-of-fold predictions."""
    folds, likelihood = folds_of(members), models[0].likelihood
    share = torch.ones(len(models), dtype=torch.float64)  # of members within their repeat
    recalibration = None
    if evaluated.folds:
        if likelihood.has_distribution and likelihood.additive and folds > 1:
            scores = torch.cat([_scores(fold, job) for fold in evaluated.folds])
            share = _dropout_shares(evaluated, members, scores, seed)
            weight = _row_weights(job, evaluated, share)
            evaluated = evaluated._replace(weights=stack_weights(scores, weight))
        recalibration = recalibrate(job, evaluated, _row_weights(job, evaluated, share))
    weights = evaluated.weights[: len(models) // folds].repeat_interleave(folds) * share / folds
    everyone = models
    if linear is not None:
        everyone = [*models, linear]
        networks = weights * (1 - evaluated.weights[-1]) / weights.sum()
        weights = torch.cat([networks, evaluated.weights[-1:]])
    if recalibration is not None and folds > 1:
        value = served_factor(job, everyone, weights, evaluated, recalibration)
        recalibration = recalibration._replace(value=value)
    factor = 1.0 if recalibration is None else recalibration.value
    posterior = EnsemblePosterior(everyone, weights, factor)
    return Fitted(posterior, history, evaluated._replace(factor=factor), recalibration)


def _dropout_shares(
    evaluated: MemberPredictions, members: list[MemberRows], scores: Tensor, seed: int
) -> Tensor:
    """The weight of each member by its dropout, 1 on average."""
    rates = torch.tensor([member.dropout for member in members])
    if len(rates.unique()) == 1 or evaluated.who.shape[1] > 1:
        return torch.ones(len(members), dtype=torch.float64)
    kind = (rates > 0).long()
    who = torch.cat([evaluated.who[fold.rows, 0] for fold in evaluated.folds])
    chance = probability_of_best(scores[:, 0], kind[who], seed).clamp(min=1e-3)
    share = chance[kind] / torch.bincount(kind)[kind]
    return share * len(members)


def _row_weights(job: Job, evaluated: MemberPredictions, share: Tensor) -> Tensor:
    """Weights of the evaluated rows: a row counts as much as the member that evaluates it."""
    found = []
    for fold in evaluated.folds:
        mine = share[evaluated.who[fold.rows]].mean(1).clamp(min=1e-3)
        found.append(job.weight[fold.rows] * mine)
    return torch.cat(found)


def _scores(fold: Fold, job: Job) -> Tensor:
    """The log scores of one fold's rows by each group, ``(M, G)``."""
    y = job.y[fold.rows]
    with torch.no_grad():
        terms = [
            -likelihood.loss(raw, y)
            for likelihood, raw in zip(fold.likelihoods, fold.raws, strict=True)
        ]
    return torch.stack([term.reshape(len(y), -1).sum(1) for term in terms], 1)
