"""The networks that a search tries, and whether they can be tried."""

import torch

from ansatz import networks
from ansatz.errors import UsageError
from ansatz.estimators.table_estimator import TableEstimator
from ansatz.fitting.job import Job, has_masks
from ansatz.spec import InputSpec
from ansatz.tuning.space import Choice, Space


def searched_networks(asked: Space, network: str, *, grid: bool = False) -> list[str]:
    """The names of ``--space network=A,B``, or the one network of every fit.

    Args:
        asked: changes to the space.
        network: of the fits, where it is not searched.
        grid: whether x are signals, images or volumes: there a linear model is trained too.

    Example:
        >>> from ansatz.tuning.searched_networks import searched_networks
        >>> from ansatz.tuning.space import parse_space
        >>> searched_networks(parse_space(["network=lenet5,small_resnet"]), "lenet5")
        ['lenet5', 'small_resnet']
    """
    wanted = asked.get("network")
    if wanted is None:
        return [network]
    if not isinstance(wanted, Choice):
        raise UsageError("--space network: give names, network=A,B.")
    for name in wanted.values:
        networks.registry.get(name)
        if name == "linear" and not grid:
            raise UsageError("--space network: a linear model has nothing to search: leave it out.")
    return list(wanted.values)


def require_answers(estimator: TableEstimator, learn: Job) -> None:
    """Raises, before any work, what a fit would raise about the network and its options.

    Args:
        estimator: with the network by name.
        learn: the rows to learn from.

    Example:
        >>> import numpy as np
        >>> from ansatz import Classifier
        >>> from ansatz.tuning.searched_networks import require_answers
        >>> model = Classifier(network="unet")
        >>> job = model._read(np.zeros((4, 16, 16), np.float32), [0, 1, 0, 1])
        >>> require_answers(model, job)
        Traceback (most recent call last):
        ...
        ansatz.errors.UsageError: unet labels every cell; these outcomes are one for each example.
    """
    estimator._rehearse(learn)
    inputs, masks = learn.grid or InputSpec.of(1), has_masks(learn)
    recipe, seed = estimator._recipe(learn), estimator._seed()
    plan = estimator._plan(recipe, seed, grid=learn.grid, masks=masks)
    made = networks.create(plan.network_name, inputs=inputs, outputs=2, **plan.options).eval()
    with torch.no_grad():
        answer = made(torch.zeros(1, inputs.features, *inputs.size))
    if masks and answer.shape[2:] != inputs.size:
        raise UsageError(f"{plan.network_name} answers once for each example, not for its cells.")
    if not masks and answer.ndim > 2:
        raise UsageError(
            f"{plan.network_name} labels every cell; these outcomes are one for each example."
        )
