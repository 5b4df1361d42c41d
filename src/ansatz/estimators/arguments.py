"""The arguments that all estimators share, and the settings that a fit makes of them."""

import inspect
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypedDict, Unpack

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from torch import nn

from ansatz.errors import UsageError
from ansatz.fitting.recipe import Augment
from ansatz.fitting.task import Settings
from ansatz.likelihoods import Likelihood


class Arguments(TypedDict, total=False):
    """The arguments that all estimators share; :class:`EstimatorArguments` describes them."""

    likelihood_options: Mapping[str, Any] | None
    x: str
    network: str | nn.Module
    inference: str
    members: int | None
    calibration: float | None
    widths: Sequence[int] | None
    activation: str | None
    dropout: float | None
    network_options: Mapping[str, Any] | None
    epochs: int | None
    batch_size: int | None
    learning_rate: float | None
    weight_decay: float | None
    holdout: float | None
    quantile: bool | Sequence[str]
    bins: int | None
    augment: Augment | None
    pretrained: str | Path | None
    freeze: str | int | Sequence[int] | None
    warm_start: bool
    random_state: int | np.random.RandomState | None
    n_jobs: int | None
    device: str
    time_limit: float | None
    verbose: int


_DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(Arguments.__annotations__),
    **{"x": "auto", "network": "auto", "inference": "point", "device": "auto"},
    **{"quantile": False, "warm_start": False, "random_state": 0, "verbose": 0},
}


def _show_arguments(kind: type, without: Collection[str]) -> None:
    """Writes the shared arguments into the signature and the docstring of an estimator."""
    own = inspect.signature(kind.__init__)  # type: ignore[misc]
    first = [each for each in own.parameters.values() if each.kind is not each.VAR_KEYWORD]
    names = [name for name in _DEFAULTS if name not in {*without, *own.parameters}]
    if "__init__" in vars(kind):
        hints = Arguments.__annotations__
        more = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=_DEFAULTS[name],
                annotation=hints[name],
            )
            for name in names
        ]
        kind.__init__.__signature__ = own.replace(parameters=[*first, *more])  # type: ignore[misc]
    place = re.search(r"    Args:\n(?: {8}.*\n)+", kind.__doc__ or "")
    if place and kind.__doc__ and EstimatorArguments.__doc__ and kind is not EstimatorArguments:
        shared = EstimatorArguments.__doc__.split("    Args:\n")[1].split("\n\n")[0]
        entries = re.findall(r"        (\w+): ((?:.|\n {12})*)", shared)
        lines = "".join(
            f"        {name}: {text}\n"
            for name, text in entries
            if name not in without and f"        {name}: " not in kind.__doc__
        )
        kind.__doc__ = kind.__doc__[: place.end()] + lines + kind.__doc__[place.end() :]


class EstimatorArguments(BaseEstimator):
    """The constructor of all estimators; a fit takes its arguments as settings.

    The constructor of a subclass takes arguments of its own and ``**options: Unpack[Arguments]``,
    except those that the class is made ``without``.

    Args:
        likelihood: by name (``ansatz list likelihoods``), or an instance.
        likelihood_options: options of a likelihood given by name, like
            ``{"components": 2}`` of ``"normal_mixture"``.
        x: what X looks like: ``"auto"`` recognizes signals, images and volumes by the axes of
            arrays and the names of files; ``"grid"`` takes the rows of a table as signals.
        network: by name (``"mlp"``, ``"linear"``, ``"lenet5"``, ...), or a module; ``"auto"`` takes
            the default of what X looks like.
        inference: ``"point"``: one weight vector, the penalised maximum-likelihood estimate;
            ``"ensemble"``: the mixture of several that stop on different rows.
        members: networks of an ensemble; ten if not given, five beyond 50,000 rows.
        calibration: share of the rows that conformal intervals are measured on.
        widths: hidden units per layer.
        activation: of the hidden layers.
        dropout: share of hidden units dropped in training.
        network_options: further options of the network's factory.
        epochs: passes over the rows, in place of the recipe's budget.
        batch_size: rows per step; 0 takes all rows at once.
        learning_rate: peak rate of AdamW.
        weight_decay: decoupled, on matrices.
        holdout: share of the rows that decide when to stop; 0 for none.
        quantile: True, or the columns, whose heavy tails are mapped to normal scores.
        bins: bins into which the range of each number is cut, as features beside the number, so
            that a network can bend sharply; by default 32 from 10,000 rows on (fewer where columns
            are many), 0 for none.
        augment: whether grids are augmented in training (shifted, rotated, flipped, as their shape
            allows), or how: ``[Flip(), Noise(0.1)]`` or ``"flip,noise"``
            of :mod:`ansatz.data.augmentation`; None follows the recipe.
        pretrained: a file of weights, ``.safetensors`` or ``.pth``, that the network begins with.
        freeze: ``"backbone"`` trains the last layer alone; a number freezes that many groups
            of layers from the input on; a list of epochs wakes one group at each, the last first.
        warm_start: begin the next ``fit`` at the weights of the last.
        random_state: one seed decides split, initial weights, order and dropout. None draws it
            from numpy's global generator.
        n_jobs: threads; None chooses by the network's size.
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.
        time_limit: seconds after which training stops with the best weights so far.
        verbose: 0 silent, 1 a progress bar, 2 one line per evaluation.
    """

    random_state: int | np.random.RandomState | None
    warm_start: bool

    def __init_subclass__(cls, *, without: Collection[str] = (), **options: Any) -> None:
        super().__init_subclass__(**options)
        _show_arguments(cls, without)

    def __init__(
        self, likelihood: str | Likelihood = "normal", **options: Unpack[Arguments]
    ) -> None:
        self.likelihood = likelihood
        mine = [name for name in self._get_param_names() if name in _DEFAULTS]
        for name in options:
            if name not in mine:
                kind = type(self).__name__
                raise TypeError(f"{kind}.__init__() got an unexpected keyword argument '{name}'")
        for name in mine:
            setattr(self, name, options.get(name, _DEFAULTS[name]))

    def set_params(self, **params: Any) -> Self:
        """Sets arguments; ``network_options__widths`` sets one entry of a mapping."""
        plain = {name: value for name, value in params.items() if "__" not in name}
        super().set_params(**plain)
        for name, value in params.items():
            owner, found, key = name.partition("__")
            if not found:
                continue
            before = self.get_params(deep=False).get(owner)
            if owner not in self._get_param_names() or not isinstance(before, Mapping | None):
                raise ValueError(f"Invalid parameter {owner!r} for estimator {self}.")
            setattr(self, owner, {**(before or {}), key: value})
        return self

    def settings(self) -> Settings:
        """The arguments as settings of a fit."""
        given = {**self.get_params(deep=False), "random_state": self._seed()}
        return Settings.of_arguments(given)

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        try:
            return int(check_random_state(self.random_state).randint(2**31 - 1))
        except ValueError:
            raise UsageError(
                f"random_state must be a whole number, a RandomState or None, "
                f"got {self.random_state!r}."
            ) from None


_show_arguments(EstimatorArguments, ())
