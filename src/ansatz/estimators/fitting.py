"""From typed rows to a trained network, by a recipe."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ansatz import networks, optim
from ansatz.data import Batch, TensorSource
from ansatz.data.batch import map_tensors, take_rows
from ansatz.errors import UsageError
from ansatz.estimators.recipe import Recipe
from ansatz.estimators.rehearsal import require_outputs
from ansatz.likelihoods import Likelihood
from ansatz.networks.transfer import rests
from ansatz.seeds import derive, generator
from ansatz.spec import InputSpec
from ansatz.training import AnalyticStep, GradientStep, History, Step, Supervised, Trainer

Start = tuple[nn.Module, Supervised]


class Fitted(NamedTuple):
    """A trained network, the objective it was trained by, the step that can go on, and the story.

    Example:
        >>> from ansatz.estimators.fitting import Fitted
        >>> Fitted._fields
        ('network', 'objective', 'step', 'history')
    """

    network: nn.Module
    objective: Supervised
    step: Step
    history: History


def build_objective(likelihood: Likelihood, rows: Batch) -> Supervised:
    """The objective of ``rows``: outcomes checked, unit and floor observed, started at the MLE.

    Example:
        >>> import torch
        >>> from ansatz.data import Batch
        >>> from ansatz.estimators.fitting import build_objective
        >>> from ansatz.likelihoods import Poisson
        >>> rows = Batch.of(torch.zeros(3, 1), torch.tensor([0.0, 2.0, 4.0]))
        >>> build_objective(Poisson(), rows).shift.exp()
        tensor([2.])
    """
    likelihood = copy.deepcopy(likelihood).to(rows.weight.dtype)
    likelihood.check(rows.target)
    likelihood.observe(rows.target, rows.weight)
    shift, scale = likelihood.start(rows.target, rows.weight)
    if rows.offset is not None:
        shift = _shift_beside_offset(likelihood, shift, rows)
    return Supervised(likelihood, shift, scale)


def build_network(
    network: str | nn.Module,
    options: dict[str, Any],
    *,
    inputs: InputSpec,
    outputs: int,
    dtype: torch.dtype,
    seed: int,
) -> nn.Module:
    """A network by name, or a copy of the user's own, in ``dtype``.

    Example:
        >>> import torch
        >>> from ansatz.estimators.fitting import build_network
        >>> from ansatz.spec import InputSpec
        >>> spec = InputSpec.of(3)
        >>> network = build_network(
        ...     "mlp", {}, inputs=spec, outputs=2, dtype=torch.float32, seed=0
        ... )
        >>> network(torch.zeros(1, 3)).shape
        torch.Size([1, 2])
    """
    if isinstance(network, nn.Module):
        if next(network.parameters(), None) is None:
            raise UsageError(f"the network {type(network).__name__} has no parameters to train.")
        return copy.deepcopy(network).to(dtype)
    with _single_precision():
        built: nn.Module = networks.create(
            network, inputs=inputs, outputs=outputs, generator=generator(seed, "init"), **options
        )
    return built.to(dtype)


@contextmanager
def _single_precision() -> Iterator[None]:
    """One seed gives one network, whatever torch's default dtype is."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def build_step(
    network: nn.Module,
    objective: Supervised,
    recipe: Recipe,
    *,
    seed: int,
    schedule: optim.Schedule | None = None,
    groups: list[dict[str, Any]] | None = None,
) -> Step:
    """The fastest step that trains ``network`` by AdamW as the recipe says.

    Args:
        network: gives raw numbers.
        objective: of the outcomes.
        recipe: how to train.
        seed: of dropout.
        schedule: of the learning rate.
        groups: parameters of the network with rates of their own.

    Example:
        >>> import torch
        >>> from ansatz.estimators.fitting import build_step
        >>> from ansatz.estimators.recipe import Recipe
        >>> from ansatz.likelihoods import Normal
        >>> from ansatz.training import Supervised
        >>> step = build_step(torch.nn.Linear(2, 2), Supervised(Normal()), Recipe(), seed=0)
        >>> hasattr(step, "step")
        True
    """
    if AnalyticStep.supports(network, objective):
        return AnalyticStep(
            network,
            objective,
            learning_rate=recipe.learning_rate,
            betas=(0.9, 0.99),
            weight_decay=recipe.weight_decay,
            schedule=schedule,
            clip=recipe.clip,
            generator=generator(seed, "dropout"),
        )
    rates = groups or [{"params": list(network.parameters()), "lr": recipe.learning_rate}]
    rates = [*rates, {"params": list(objective.parameters()), "lr": recipe.learning_rate}]
    parts = [part for group in rates for part in _by_decay(group, recipe.weight_decay)]
    optimizer = optim.create("adamw", parts, lr=recipe.learning_rate, betas=(0.9, 0.99))
    return GradientStep(network, objective, optimizer, schedule=schedule, clip=recipe.clip)


def _by_decay(group: dict[str, Any], decay: float) -> list[dict[str, Any]]:
    """Decay shrinks matrices; biases, scales and learned shapes are left alone."""
    learned = [p for p in group["params"] if p.requires_grad or rests(p)]
    matrices, others = [p for p in learned if p.ndim >= 2], [p for p in learned if p.ndim < 2]
    parts = ((matrices, decay), (others, 0.0))
    return [{**group, "params": some, "weight_decay": much} for some, much in parts if some]


def fit_network(
    rows: Batch,
    *,
    train: Tensor,
    valid: Tensor,
    inputs: InputSpec,
    likelihood: Likelihood,
    network: str | nn.Module,
    network_options: dict[str, Any],
    recipe: Recipe,
    seed: int,
    trainer_options: dict[str, Any] | None = None,
    start: Start | None = None,
    folds: Tensor | None = None,
) -> Fitted:
    """Trains ``network`` on the rows ``train``, stopping by the rows ``valid`` if there are any.

    Args:
        rows: all rows, already typed; ``index`` names them in errors.
        train: numbers of the rows to learn from.
        valid: numbers of the rows that decide when to stop; may be empty.
        inputs: what a row's inputs look like.
        likelihood: copied, never changed.
        network: a name of the registry, or a module, which is copied.
        network_options: the factory's options.
        recipe: how to train.
        seed: of order, initial weights and dropout.
        trainer_options: passed to :class:`~ansatz.training.Trainer` (checkpoint, progress, ...).
        start: a network and an objective to begin from, copied; None begins anew.
        folds: ``(N,)``, the fold of each row of ``train``, where the recipe stops by folds.

    Example:
        >>> import torch
        >>> from ansatz.data import Batch
        >>> from ansatz.estimators.fitting import fit_network
        >>> from ansatz.estimators.recipe import Recipe
        >>> from ansatz.likelihoods import Normal
        >>> from ansatz.spec import InputSpec
        >>> x = torch.linspace(-1, 1, 64).unsqueeze(1)
        >>> fitted = fit_network(
        ...     Batch.of(x, x[:, 0]), train=torch.arange(64), valid=torch.arange(0),
        ...     inputs=InputSpec.of(1), likelihood=Normal(), network="mlp",
        ...     network_options={"widths": (8,)}, recipe=Recipe(steps=20, holdout=0), seed=0,
        ... )
        >>> fitted.history.steps
        20
    """
    rows = in_dtype(rows, recipe)
    learn, stop = take_rows(rows, train), take_rows(rows, valid) if len(valid) else None

    def begin(part: Batch) -> Step:
        module, objective = _begin(part, inputs, likelihood, network, network_options, seed, start)
        schedule = optim.create_schedule(recipe.schedule, steps=recipe.steps, warmup=0.05)
        return build_step(module, objective, recipe, seed=seed, schedule=schedule)

    if recipe.folds and stop is None and folds is not None:
        steps = choose_steps(begin, learn, folds, recipe)
        recipe = recipe.model_copy(update={"steps": steps})
    step = begin(learn)
    history = _train(step, learn, stop, recipe, seed, trainer_options or {})
    assert isinstance(step.objective, Supervised)
    return Fitted(step.network, step.objective, step, history)


def choose_steps(begin: Callable[[Batch], Step], rows: Batch, folds: Tensor, recipe: Recipe) -> int:
    """The number of full-batch steps with the least out-of-fold loss.

    Each fold is predicted along the path of a network that learns from the other folds. A network
    that has seen every row can only be stopped by rows it has not seen; with few rows, folds use
    all of them for that.

    Args:
        begin: makes a fresh step for some rows.
        rows: all rows to learn from.
        folds: ``(N,)``, the fold of each row; a row of fold -1 is never left out.
        recipe: gives the budget and how often to look.

    Example:
        >>> import inspect
        >>> list(inspect.signature(choose_steps).parameters)
        ['begin', 'rows', 'folds', 'recipe']
    """
    every = max(1, recipe.steps // recipe.evaluations)
    totals = torch.zeros(recipe.steps // every, dtype=torch.float64)
    for fold in folds[folds >= 0].unique():
        learn = take_rows(rows, (folds != fold).nonzero().squeeze(1))
        step = begin(learn)
        outside = take_rows(rows, (folds == fold).nonzero().squeeze(1))
        for place in range(len(totals)):
            for _ in range(every):
                step.step(learn)
            totals[place] += step.evaluate(outside).total.double()
    return every * (int(totals.argmin()) + 1)


def update_network(
    rows: Batch,
    *,
    inputs: InputSpec,
    likelihood: Likelihood,
    network: str | nn.Module,
    network_options: dict[str, Any],
    recipe: Recipe,
    seed: int,
    trainer_options: dict[str, Any] | None = None,
    start: Start | None = None,
    state: dict[str, Any] | None = None,
) -> Fitted:
    """One pass over ``rows`` at a constant rate, going on from ``start`` and the step's ``state``.

    Example:
        >>> import torch
        >>> from ansatz.data import Batch
        >>> from ansatz.estimators.fitting import update_network
        >>> from ansatz.estimators.recipe import Recipe
        >>> from ansatz.likelihoods import Normal
        >>> from ansatz.spec import InputSpec
        >>> x = torch.linspace(-1, 1, 64).unsqueeze(1)
        >>> fitted = update_network(
        ...     Batch.of(x, x[:, 0]), inputs=InputSpec.of(1), likelihood=Normal(), network="mlp",
        ...     network_options={"widths": (8,)}, recipe=Recipe(batch_size=16), seed=0,
        ... )
        >>> fitted.history.steps
        4
    """
    rows = in_dtype(rows, recipe)
    module, objective = _begin(rows, inputs, likelihood, network, network_options, seed, start)
    step = build_step(module, objective, recipe, seed=seed)
    if state is not None:
        step.load_state_dict(state)
    size = recipe.batch_size or len(rows.index)
    one_pass = recipe.model_copy(update={"steps": -(-len(rows.index) // size)})
    history = _train(step, rows, None, one_pass, seed, trainer_options or {})
    return Fitted(module, objective, step, history)


def in_dtype(rows: Batch, recipe: Recipe) -> Batch:
    """The rows in the number type of the recipe.

    Example:
        >>> import torch
        >>> from ansatz.data import Batch
        >>> from ansatz.estimators.recipe import Recipe
        >>> rows = Batch.of(torch.zeros(2, 1), torch.zeros(2))
        >>> in_dtype(rows, Recipe(dtype="float64")).target.dtype
        torch.float64
    """
    dtype = getattr(torch, recipe.dtype)
    typed: Batch = map_tensors(lambda t: t.to(dtype) if t.is_floating_point() else t, rows)
    return typed


def _begin(
    rows: Batch,
    inputs: InputSpec,
    likelihood: Likelihood,
    network: str | nn.Module,
    options: dict[str, Any],
    seed: int,
    start: Start | None,
) -> tuple[nn.Module, Supervised]:
    dtype = rows.weight.dtype
    if start is not None:
        previous = copy.deepcopy(start[1]).to(dtype).requires_grad_()
        previous.likelihood.check(rows.target)
        return copy.deepcopy(start[0]).to(dtype).train(), previous
    objective = build_objective(likelihood, rows)
    objective.likelihood.loosen()
    assert objective.shift is not None
    outputs = objective.shift.numel()
    module = build_network(network, options, inputs=inputs, outputs=outputs, dtype=dtype, seed=seed)
    if isinstance(module, networks.MLP):
        module.observe(rows.inputs[0])  # an embedding may need the quantiles of the columns
    require_outputs(module, rows.inputs, outputs)
    return module, objective


def _normalises_by_batch(network: nn.Module) -> bool:
    """Whether a row alone has nothing to be normalised by."""
    return any(isinstance(part, nn.BatchNorm1d) for part in network.modules())


def _train(
    step: Step,
    learn: Batch,
    stop: Batch | None,
    recipe: Recipe,
    seed: int,
    trainer_options: dict[str, Any],
) -> History:
    size = recipe.batch_size or len(learn.index)
    objective = step.objective
    additive = not isinstance(objective, Supervised) or objective.likelihood.additive
    source = TensorSource(
        learn,
        size,
        smallest=2 if _normalises_by_batch(step.network) else 1,
        seed=derive(seed, "rows"),
        shuffle=recipe.batch_size > 0,
        strata=None if additive else learn.target[:, 1],  # whether it is an event
    )
    held_out = None
    if stop is not None:  # rows that are coupled are judged together
        held_out = TensorSource(stop, 8_192 if additive else len(stop.index), shuffle=False)
    trainer = Trainer(
        steps=recipe.steps,
        evaluate_every=max(1, recipe.steps // recipe.evaluations) if held_out else None,
        patience=recipe.patience if held_out else None,
        average=recipe.average,
        seed=seed,
        **trainer_options,
    )
    return trainer.fit(step, source, held_out)


def _shift_beside_offset(likelihood: Likelihood, shift: Tensor, rows: Batch) -> Tensor:
    """The constant model's raw numbers when part of the linear predictor is given.

    The first raw number of each outcome is moved by a few Newton steps on the mean loss; laws
    whose predictor is an identity or a logarithm need one or two.
    """
    assert rows.offset is not None
    move = torch.zeros(shift.shape[:-1], dtype=torch.float64, requires_grad=True)
    offset = rows.offset.double().reshape(-1, *([1] * (shift.ndim - 1)))
    weight = rows.weight.double()
    law = copy.deepcopy(likelihood).double()
    target = rows.target.double() if rows.target.is_floating_point() else rows.target
    for _ in range(25):
        first = shift[..., 0].double() + move + offset
        raw = torch.cat([first.unsqueeze(-1), shift[..., 1:].double().expand(*first.shape, -1)], -1)
        terms = law.loss(raw, target)
        loss = (terms * weight.reshape(-1, *([1] * (terms.ndim - 1)))).sum()
        (gradient,) = torch.autograd.grad(loss, move, create_graph=True)
        (curvature,) = torch.autograd.grad(gradient.sum(), move)
        update = (gradient / curvature.clamp(min=1e-12)).detach().clamp(-2, 2)
        move = (move - update).detach().requires_grad_()
        if update.abs().max() < 1e-10:
            break
    moved = shift[..., :1] + move.detach().to(shift.dtype).unsqueeze(-1)
    return torch.cat([moved, shift[..., 1:]], -1)
