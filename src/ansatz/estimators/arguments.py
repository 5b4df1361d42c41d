"""The arguments that all estimators share, and how a class takes them over."""

import inspect
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from torch import nn

from ansatz.fitting.recipe_options import Augment
from ansatz.training import Callback


class Arguments(TypedDict, total=False):
    """The arguments that all estimators share.

    Args:
        likelihood_options: options of a likelihood given by name, like
            ``{"components": 2}`` of ``"normal_mixture"``.
        x: what X looks like: ``"auto"`` recognizes signals, images and volumes by the axes of
            arrays and the names of files; ``"grid"`` takes the rows of a table as signals.
        network: by name (``"mlp"``, ``"linear"``, ``"lenet5"``, ...), or a module; ``"auto"`` takes
            the default of what X looks like.
        inference: ``"auto"``: an ensemble for tables of 100 to 1,000 rows where no option of the
            training is set, else one network; ``"point"``: one weight vector, the penalised
            maximum-likelihood estimate; ``"ensemble"``: the mixture of several that stop on
            different rows.
        inference_options: options of the inference, like ``{"chains": 2, "draws": 500}`` of
            ``"nuts"``.
        priors: distributions by name, like ``{"sigma": "half_cauchy(2)"}``: of ``coefficients``,
            ``intercept``, a column, ``sigma``, ``sd`` or ``correlation``.
        random: terms that vary between groups, like ``["days|subject"]``.
        members: networks of an ensemble; ten if not given, five beyond 50,000 rows.
        calibration: share of the rows that conformal intervals are measured on.
        widths: hidden units per layer.
        activation: of the hidden layers.
        dropout: share of hidden units dropped in training.
        network_options: further options of the network's factory.
        epochs: passes over the rows, in place of the recipe's budget.
        steps: the budget in updates, in place of ``epochs``.
        batch_size: rows per step; 0 takes all rows at once.
        optimizer: by name (``ansatz list optimizers``); ``"adamw"`` if not given.
        optimizer_options: options of the optimizer, like ``{"momentum": 0.8}``.
        learning_rate: peak of the rate; by default one that suits the optimizer.
        schedule: of the rate by name (``ansatz list schedules``); ``"cosine"`` if not given.
        schedule_options: options of the schedule, like ``{"drops": 3}``.
        weight_decay: on matrices; decoupled where the optimizer can, else an L2 penalty.
        clip: the largest norm of a gradient; 0 for any.
        average: of the weights: ``"ema"``, ``"swa"`` or ``"none"``.
        penalty: ``"l1"`` or ``"lasso"``, ``"l2"`` or ``"ridge"``, ``"elastic_net"``, ``"group"``
            and others of ``ansatz list penalties``, as ``"lasso=0.01"``: times the strength it is
            added to the mean loss. A linear model chooses a strength that is not given.
        holdout: share of the rows that decide when to stop; 0 for none.
        folds: with all rows at once, folds whose out-of-fold loss chooses the number of steps.
        evaluations: how often the held-out rows are scored within the budget.
        patience: evaluations without progress before stopping.
        min_improvement: what counts as progress: a validation loss that is lower by this (by this
            share of the gain since the first evaluation, where that is below 1); 0 for any.
        dtype: ``"float32"`` or ``"float64"``, the type of the training.
        recompute: gradient checkpointing: activations are computed again in the backward pass, for
            less memory and the same gradients.
        teacher: a fitted estimator, or the folder of a saved model, whose predictions of the rows
            are part of the loss (distillation).
        teacher_temperature: of a teacher of classes; 2 if not given.
        teacher_weight: of the teacher in the loss, in [0, 1]; 0.5 if not given.
        callbacks: of :class:`~ansatz.training.Callback`, which see each step and evaluation.
        quantile: True, or the columns, whose heavy tails are mapped to normal scores.
        bins: bins into which the range of each number is cut, as features beside the number, so
            that a network can bend sharply; by default 32 from 10,000 rows on (fewer where columns
            are many), 0 for none.
        formula: terms of the design matrix as in R, ``"~ age * sex + bs(bmi, 4) + C(site)"``, in
            place of the columns themselves.
        errors: standard errors of a linear model: ``"classical"``, ``"HC0"`` to ``"HC3"``, which
            allow any variance, or ``"cluster"``, which allows dependence within ``groups``; by
            default the latter where ``fit`` gets groups.
        link: of a linear model's mean, where not the likelihood's own: ``"probit"``,
            ``"cloglog"``, ``"identity"``, ``"log"``, ``"sqrt"``, ``"inverse"``, ...
        impute: completed tables of a linear model: missing values are imputed that often by
            chained equations, and the fits pooled by Rubin's rules; 20 is usual.
        augment: whether grids are augmented in training (shifted, rotated, flipped, as their shape
            allows), or how: ``[Flip(), Noise(0.1)]`` or ``"flip,noise"``
            of :mod:`ansatz.data.augmentation`; None follows the recipe.
        tokens: what texts are cut into: ``"word"``, ``"char"``, ``"byte"``, ``"bpe"`` or
            ``"wordpiece"``; words if not given, characters where texts have no spaces.
        vocabulary: different tokens at most; 30,000 if not given.
        length: tokens of a text that are read; 512 words or 2,048 characters if not given.
        pretrained: a file of weights, ``.safetensors`` or ``.pth``, that the network begins with;
            for texts a folder of Hugging Face, which decides the network and its tokens.
        freeze: ``"backbone"`` trains the last layer alone; a number freezes that many groups
            of layers from the input on; a list of epochs wakes one group at each, the last first.
        adapter: ``"lora"`` trains low-rank changes of the attention's maps and the last map alone;
            their rank is ``network_options={"rank": 8}``.
        warm_start: begin the next ``fit`` at the weights of the last.
        random_state: one seed decides split, initial weights, order and dropout. None draws it
            from numpy's global generator.
        n_jobs: threads; None chooses by the network's size.
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.
        time_limit: seconds after which training stops with the best weights so far.
        verbose: 0 silent, 1 a progress bar, 2 one line per evaluation.
    """

    likelihood_options: Mapping[str, Any] | None
    x: str
    network: str | nn.Module
    inference: str
    inference_options: Mapping[str, Any] | None
    priors: Mapping[str, str] | None
    random: str | Sequence[str] | None
    members: int | None
    calibration: float | None
    widths: Sequence[int] | None
    activation: str | None
    dropout: float | None
    network_options: Mapping[str, Any] | None
    epochs: int | None
    steps: int | None
    batch_size: int | None
    optimizer: str | None
    optimizer_options: Mapping[str, Any] | None
    learning_rate: float | None
    schedule: str | None
    schedule_options: Mapping[str, Any] | None
    weight_decay: float | None
    penalty: str | None
    clip: float | None
    average: str | None
    holdout: float | None
    folds: int | None
    evaluations: int | None
    patience: int | None
    min_improvement: float | None
    dtype: str | None
    recompute: bool
    teacher: Any
    teacher_temperature: float | None
    teacher_weight: float | None
    callbacks: Sequence[Callback] | None
    quantile: bool | Sequence[str]
    bins: int | None
    formula: str | None
    errors: str | None
    link: str | None
    impute: int | None
    augment: Augment | None
    tokens: str | None
    vocabulary: int | None
    length: int | None
    pretrained: str | Path | None
    freeze: str | int | Sequence[int] | None
    adapter: str | None
    warm_start: bool
    random_state: int | np.random.RandomState | None
    n_jobs: int | None
    device: str
    time_limit: float | None
    verbose: int


DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(Arguments.__annotations__),
    **{"x": "auto", "network": "auto", "inference": "auto", "device": "auto"},
    **{"quantile": False, "warm_start": False, "recompute": False, "random_state": 0, "verbose": 0},
}


def share_arguments(kind: type, names: Collection[str]) -> None:
    """Writes shared arguments into the signature and the docstring of an estimator.

    A constructor without ``**options`` and a docstring without arguments stay as they are.
    """
    own = inspect.signature(kind.__init__)  # type: ignore[misc]
    first = [each for each in own.parameters.values() if each.kind is not each.VAR_KEYWORD]
    if "__init__" in vars(kind) and len(first) < len(own.parameters):
        more = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint
            )
            for (name, hint), default in zip(
                Arguments.__annotations__.items(), DEFAULTS.values(), strict=True
            )
            if name in names and name not in own.parameters
        ]
        kind.__init__.__signature__ = own.replace(parameters=[*first, *more])  # type: ignore[misc]
    listed = re.search(r"    Args:\n(?: {8}.*\n)+", kind.__doc__ or "")
    if listed and kind.__doc__ and Arguments.__doc__:
        entries = re.findall(r" {8}(\w+): ((?:.|\n {12})*)", Arguments.__doc__)
        lines = [
            f"        {name}: {text}\n"
            for name, text in entries
            if name in names and f"        {name}: " not in listed[0]
        ]
        end = listed.end()
        kind.__doc__ = kind.__doc__[:end] + "".join(lines) + kind.__doc__[end:]
