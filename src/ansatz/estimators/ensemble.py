"""From the rows of a table to an ensemble: folds, members, weights, recalibration."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz.data import Batch, Preprocessor, row_keys, split_rows
from ansatz.data.batch import take_rows
from ansatz.errors import NumericalError
from ansatz.estimators.ensemble_model import EnsembleModel
from ansatz.estimators.fitting import build_network, build_objective, fit_network, in_dtype
from ansatz.estimators.job import Job
from ansatz.estimators.linear_model import fit_linear_model
from ansatz.estimators.out_of_fold import choose_folds
from ansatz.estimators.parts import take as take_job
from ansatz.estimators.recipe import FEW, Recipe
from ansatz.estimators.rehearsal import require_outputs
from ansatz.estimators.table_model import TableModel
from ansatz.inference.combination import Combination
from ansatz.inference.member_step import MemberStep
from ansatz.inference.recalibration import (
    Recalibration,
    find_factor,
    for_mixture,
    kind_of,
    mean_of,
)
from ansatz.inference.stacking import chance_of_best, stack_weights
from ansatz.inference.training import Rows, member_folder, train_together
from ansatz.likelihoods import Likelihood
from ansatz.networks import MLP
from ansatz.seeds import derive
from ansatz.spec import InputSpec
from ansatz.training import History, Supervised, choose_device

FOLDS = 10  # a member learns from nine tenths of the rows; five folds cost 0.05 nats on concrete


class Ensembled(NamedTuple):
    """A fitted ensemble and how it came about.

    Example:
        >>> from ansatz.estimators.ensemble import Ensembled
        >>> Ensembled._fields
        ('model', 'history', 'recalibration', 'judged')
    """

    model: EnsembleModel
    history: History
    recalibration: Recalibration | None
    judged: "OutOfFold"  # every row by members that left it out


class Piece(NamedTuple):
    """Rows that the same members left out: the laws of these members and their raw numbers.

    Example:
        >>> from ansatz.estimators.ensemble import Piece
        >>> Piece._fields
        ('rows', 'laws', 'raws')
    """

    rows: Tensor
    laws: list[Likelihood]
    raws: list[Tensor]


class OutOfFold(NamedTuple):
    """What members that did not learn from a row say about it.

    Args:
        who: ``(N, G)``, for each row one member of each repeat that left it out; -1 for none.
        pieces: the rows that the same members left out.
        weights: ``(G,)`` of the repeats, and of the linear model where it takes part.
        factor: of recalibration.

    Example:
        >>> from ansatz.estimators.ensemble import OutOfFold
        >>> OutOfFold._fields
        ('who', 'pieces', 'weights', 'factor')
    """

    who: Tensor
    pieces: list[Piece]
    weights: Tensor
    factor: float = 1.0

    def served(self) -> Iterator[tuple[Tensor, Likelihood, Tensor]]:
        """Rows, the law of their out-of-fold predictive, and what it takes, piece by piece."""
        for piece in self.pieces:
            mixed = Combination(piece.laws, self.weights, self.factor)
            yield piece.rows, mixed.likelihood, mixed.serve(piece.raws)


def fit_ensemble(
    job: Job,
    *,
    preprocessor: Preprocessor,
    law: Likelihood,
    network: str | nn.Module,
    network_name: str,
    options: dict[str, Any],
    recipe: Recipe,
    mixed: bool,
    seed: int,
    trainer_options: dict[str, Any],
) -> Ensembled:
    """Trains the members and mixes them by what they say about rows they did not learn from.

    Member k leaves out fold k mod 10 of repeat k div 10, and stops by it. Every repeat of the folds
    counts as much as its out-of-fold log score deserves, and so does the linear model below 500
    rows; members without dropout and with it count by the chance that theirs is the better score.
    One factor then recalibrates the out-of-fold mixture.

    Args:
        job: the rows to learn from.
        preprocessor: fitted to them.
        law: copied, never changed.
        network: a name of the registry, or a module.
        network_name: to be saved under.
        options: the factory's options.
        recipe: how to train; ``recipe.members`` of them.
        mixed: half of the members go without dropout.
        seed: of folds, initial weights, order and dropout.
        trainer_options: passed to the trainer.

    Example:
        >>> import inspect
        >>> from ansatz.estimators.ensemble import fit_ensemble
        >>> list(inspect.signature(fit_ensemble).parameters)[:2]
        ['job', 'preprocessor']
    """
    inputs = preprocessor.transform(job.rows, notes=[])
    rows = in_dtype(Batch(inputs, job.y, job.weight, job.offset, job.index), recipe)
    members = plan_members(job, recipe, seed, mixed=mixed)
    pairs, history = _train(
        rows, members, preprocessor.spec, law, network, options, recipe, seed, trainer_options
    )
    saved = options if isinstance(network, str) else None
    models = [TableModel(preprocessor, *pair, network_name, saved) for pair in pairs]
    linear = _linear(job, law, models[0]) if float(job.weight.sum()) < FEW else None
    judged = _out_of_fold(job, rows, members, models, linear)
    return combine(job, models, members, linear, judged, history, seed)


def plan_members(job: Job, recipe: Recipe, seed: int, *, mixed: bool = False) -> list[Rows]:
    """The rows that each member learns from and stops by.

    With rows held out for all (``job.valid``), or in order of time, all members share them; else
    member k leaves out fold k mod 10 of repeat k div 10; fewer members than ten have as many folds.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> from ansatz.estimators.ensemble import plan_members
        >>> from ansatz.estimators.recipe import Recipe
        >>> job = Regressor()._read(np.arange(20.0).reshape(-1, 1), np.arange(20.0))
        >>> plan = plan_members(job, Recipe(members=10, holdout=0), seed=0)
        >>> len(plan), len(plan[0].valid)
        (10, 2)
    """
    shared = _shared_valid(job, recipe, seed)
    everyone = np.arange(len(job.y))
    found = []
    count = FOLDS if recipe.members % FOLDS == 0 else recipe.members
    for member in range(recipe.members):
        repeat, fold = divmod(member, count)
        if shared is not None:
            train, valid = np.setdiff1d(everyone, shared), shared
        else:
            folds = choose_folds(job, count, derive(seed, "repeat", repeat))
            train, valid = folds[fold % len(folds)] if folds else (everyone, everyone[:0])
        plain = mixed and member < recipe.members // 2
        dropout = 0.0 if plain else recipe.dropout
        found.append(Rows(torch.from_numpy(train), torch.from_numpy(valid), dropout))
    return found


def _shared_valid(job: Job, recipe: Recipe, seed: int) -> NDArray[np.intp] | None:
    if job.valid is not None and len(job.valid):
        return job.valid
    if job.time is None and not recipe.holdout:
        return None
    keys = row_keys(job.rows, job.y.numpy(), seed=seed)
    share = recipe.holdout or 0.1
    return split_rows(
        keys,
        seed=seed,
        test=0.0,
        valid=share,
        group=job.group,
        time=job.time,
        weight=job.weight.numpy(),
    ).valid


def _train(
    rows: Batch,
    members: list[Rows],
    spec: InputSpec,
    law: Likelihood,
    network: str | nn.Module,
    options: dict[str, Any],
    recipe: Recipe,
    seed: int,
    trainer_options: dict[str, Any],
) -> tuple[list[tuple[nn.Module, Supervised]], History]:
    objective = build_objective(law, rows)
    objective.likelihood.loosen()
    assert objective.shift is not None
    outputs = objective.shift.numel()

    def make(number: int) -> nn.Module:
        return build_network(
            network,
            options,
            inputs=spec,
            outputs=outputs,
            dtype=rows.weight.dtype,
            seed=derive(seed, "member", number),
        )

    networks = [make(number) for number in range(len(members))]
    for member in networks:
        if isinstance(member, MLP):
            member.observe(rows.inputs[0])
    require_outputs(networks[0], rows.inputs, outputs)
    on_cpu = choose_device(trainer_options.get("device", "auto")).type == "cpu"
    if on_cpu and MemberStep.supports(networks[0], objective):
        return train_together(
            rows,
            members,
            [n for n in networks if isinstance(n, MLP)],
            objective,
            recipe,
            seed=seed,
            trainer_options=trainer_options,
        )
    starts = [(member, objective) for member in networks]
    return _in_turn(rows, members, starts, spec, law, recipe, seed, trainer_options)


def _in_turn(
    rows: Batch,
    members: list[Rows],
    starts: list[tuple[nn.Module, Supervised]],
    spec: InputSpec,
    law: Likelihood,
    recipe: Recipe,
    seed: int,
    trainer_options: dict[str, Any],
) -> tuple[list[tuple[nn.Module, Supervised]], History]:
    """Networks that are no plain MLP, or on another device, one after another."""
    pairs, histories = [], []
    for number, (member, start) in enumerate(zip(members, starts, strict=True)):
        fitted = fit_network(
            rows,
            train=member.train,
            valid=member.valid,
            inputs=spec,
            likelihood=law,
            network=start[0],
            network_options={},
            recipe=recipe,
            seed=derive(seed, "member", number),
            trainer_options=member_folder(trainer_options, number),
            start=start,
        )
        pairs.append((fitted.network, fitted.objective))
        histories.append(fitted.history)
    return pairs, max(histories, key=lambda history: history.steps)


def _linear(job: Job, law: Likelihood, like: TableModel) -> TableModel | None:
    """The linear model of the law, where it predicts the same raw numbers."""
    try:
        model, _ = fit_linear_model(law, job, null=False)
    except NumericalError:  # separated classes and the like: the networks go without it
        return None
    return model if _compatible(model, like) else None


def _compatible(model: TableModel, like: TableModel) -> bool:
    mine, theirs = model.objective.likelihood, like.objective.likelihood
    names = [name for name, _ in theirs.named_parameters()]
    same = [name for name, _ in mine.named_parameters()] == names and mine.name == theirs.name
    return same and not theirs.event_ndim and theirs.is_law


def _out_of_fold(
    job: Job,
    rows: Batch,
    members: list[Rows],
    models: list[TableModel],
    linear: TableModel | None,
) -> OutOfFold:
    """Every judged row, with what those members say that left it out: one of each repeat."""
    who = left_out(members, len(job.y))  # (N, G)
    judged = (who >= 0).all(1)
    wide = in_dtype(rows, Recipe(dtype="float64"))
    refits = _linear_refits(job, members, models[0]) if linear is not None else []
    pieces = []
    for group in who[judged].unique(dim=0):
        index = ((who == group).all(1)).nonzero().squeeze(1)
        part = take_rows(wide, index)
        chosen = [models[member] for member in group.tolist()]
        laws = [model.objective.likelihood for model in chosen]
        raws = [model.raw_of(part.inputs, part.offset) for model in chosen]
        if refits:
            refit = refits[int(group[0])]
            mine = take_job(job, index.numpy())
            laws.append(refit.objective.likelihood)
            raws.append(refit.raw(mine.rows, mine.offset, notes=[]))
        pieces.append(Piece(index, laws, raws))
    groups = who.shape[1] + (linear is not None)
    return OutOfFold(who, pieces, torch.full((groups,), 1 / groups, dtype=torch.float64))


def left_out(members: list[Rows], count: int) -> Tensor:
    """For each row the members that did not learn from it, -1 where all did: ``(N, G)``.

    Where folds part the rows, one for each repeat; where all members share what they leave out,
    all of them.

    Example:
        >>> import torch
        >>> from ansatz.estimators.ensemble import left_out
        >>> from ansatz.inference.training import Rows
        >>> one, two = torch.tensor([0]), torch.tensor([1])
        >>> left_out([Rows(two, one, 0.0), Rows(one, two, 0.0)], 2).tolist()
        [[0], [1]]
    """
    folds = _folds(members)
    groups = len(members) // folds
    who = torch.full((count, groups), -1, dtype=torch.int64)
    for number, member in enumerate(members):
        who[member.valid, number // folds] = number
    return who


def _folds(members: list[Rows]) -> int:
    """Members per repeat of the folds; 1 where all leave out the same rows."""
    if len(members) > 1 and torch.equal(members[0].valid, members[1].valid):
        return 1
    return FOLDS if len(members) % FOLDS == 0 else len(members)


def _linear_refits(job: Job, members: list[Rows], like: TableModel) -> list[TableModel]:
    """The linear model of the rows that each member of the first repeat learned from."""
    law = like.objective.likelihood
    return [
        fit_linear_model(law, take_job(job, member.train.numpy()), null=False)[0]
        for member in members[: _folds(members)]
    ]


def combine(
    job: Job,
    models: list[TableModel],
    members: list[Rows],
    linear: TableModel | None,
    judged: OutOfFold,
    history: History,
    seed: int,
) -> Ensembled:
    """The members mixed and recalibrated by what they say about rows they did not learn from.

    Example:
        >>> import inspect
        >>> from ansatz.estimators.ensemble import combine
        >>> list(inspect.signature(combine).parameters)[:3]
        ['job', 'models', 'members']
    """
    folds, law = _folds(members), models[0].objective.likelihood
    share = torch.ones(len(models), dtype=torch.float64)  # of members within their repeat
    recalibration = None
    if judged.pieces:
        if law.is_law and law.additive and folds > 1:
            scores = torch.cat([_scores(piece, job) for piece in judged.pieces])
            share = _dropout_shares(judged, members, scores, seed)
            weight = _row_weights(job, judged, share)
            judged = judged._replace(weights=stack_weights(scores, weight))
        recalibration = _recalibrate(job, judged, _row_weights(job, judged, share))
        if recalibration is not None and folds > 1 and judged.who.shape[1] == 1:
            gap = _disagreement(job, models, share) if recalibration.kind == "scale" else 0.0
            value = for_mixture(recalibration.kind, recalibration.value, gap)
            recalibration = recalibration._replace(value=value)
    factor = 1.0 if recalibration is None else recalibration.value
    judged = judged._replace(factor=factor)
    weights = judged.weights[: len(models) // folds].repeat_interleave(folds) * share / folds
    everyone = models
    if linear is not None:
        everyone = [*models, linear]
        networks = weights * (1 - judged.weights[-1]) / weights.sum()
        weights = torch.cat([networks, judged.weights[-1:]])
    return Ensembled(EnsembleModel(everyone, weights, factor), history, recalibration, judged)


def _disagreement(job: Job, models: list[TableModel], share: Tensor) -> float:
    """The mean over rows of the variance between members over that within them."""
    inputs = models[0].prepare(job.rows, notes=[])
    with torch.no_grad():
        laws = [m.objective.likelihood.distribution(m.raw_of(inputs, job.offset)) for m in models]
    weight = (share / share.sum()).reshape(-1, *(1,) * laws[0].mean.ndim)
    means = torch.stack([law.mean for law in laws])
    within = (weight * torch.stack([law.variance for law in laws])).sum(0)
    between = (weight * (means - (weight * means).sum(0)) ** 2).sum(0)
    ratio = torch.nan_to_num(between / within, nan=0.0, posinf=0.0)
    return float(ratio.clamp(max=10).mean())


def _dropout_shares(judged: OutOfFold, members: list[Rows], scores: Tensor, seed: int) -> Tensor:
    """How much each member counts by its dropout, 1 on average."""
    rates = torch.tensor([member.dropout for member in members])
    if len(rates.unique()) == 1 or judged.who.shape[1] > 1:
        return torch.ones(len(members), dtype=torch.float64)
    kind = (rates > 0).long()
    who = torch.cat([judged.who[piece.rows, 0] for piece in judged.pieces])
    chance = chance_of_best(scores[:, 0], kind[who], seed).clamp(min=1e-3)
    share = chance[kind] / torch.bincount(kind)[kind]
    return share * len(members)


def _row_weights(job: Job, judged: OutOfFold, share: Tensor) -> Tensor:
    """Weights of the judged rows: a row counts as much as the member that judges it."""
    found = []
    for piece in judged.pieces:
        mine = share[judged.who[piece.rows]].mean(1).clamp(min=1e-3)
        found.append(job.weight[piece.rows] * mine)
    return torch.cat(found)


def _scores(piece: Piece, job: Job) -> Tensor:
    """The log scores of one piece's rows by each group, ``(M, G)``."""
    y = job.y[piece.rows]
    with torch.no_grad():
        terms = [-law.loss(raw, y) for law, raw in zip(piece.laws, piece.raws, strict=True)]
    return torch.stack([term.reshape(len(y), -1).sum(1) for term in terms], 1)


def _recalibrate(job: Job, judged: OutOfFold, weight: Tensor) -> Recalibration | None:
    kind = kind_of(judged.pieces[0].laws[0])
    if kind is None:
        return None

    def loss(factor: float) -> Tensor:
        mixed = judged._replace(factor=factor).served()
        with torch.no_grad():
            terms = [law.loss(raw, job.y[rows]).reshape(len(rows), -1) for rows, law, raw in mixed]
        return torch.cat(terms).sum(1)

    factor = find_factor(loss, weight)
    before, after = ({"nll": mean_of(loss(value), weight)} for value in (1.0, factor))
    return Recalibration(kind, factor, before, after)
