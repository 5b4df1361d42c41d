"""The networks that a search tries, and whether they can be tried."""

from ansatz import networks
from ansatz.errors import UsageError
from ansatz.fitting.job import Job
from ansatz.fitting.space import Choice, Space
from ansatz.fitting.task import Task
from ansatz.spec import InputSpec


def searched_networks(asked: Space, network: str, *, solves: bool) -> list[str]:
    """The names of ``--space network=A,B``, or the one network of every fit.

    Args:
        asked: changes to the space.
        network: of the fits, where it is not searched.
        solves: whether the linear model is solved, not trained: then it has nothing to search.

    Example:
        >>> from ansatz.tuning.searched_networks import searched_networks
        >>> from ansatz.tuning.space import parse_space
        >>> asked = parse_space(["network=lenet5,small_resnet"])
        >>> searched_networks(asked, "lenet5", solves=False)
        ['lenet5', 'small_resnet']
    """
    wanted = asked.get("network")
    if wanted is None:
        return [network]
    if not isinstance(wanted, Choice):
        raise UsageError("--space network: give names, network=A,B.")
    for name in wanted.values:
        networks.registry.get(name)
        if name == "linear" and solves:
            raise UsageError("--space network: a linear model has nothing to search: leave it out.")
    return list(wanted.values)


def require_answers(task: Task, learn: Job) -> None:
    """Raises, before any work, what a fit would raise about the network and its options.

    Args:
        task: with the network by name.
        learn: the training rows.

    Example:
        >>> import numpy as np
        >>> from ansatz import Classifier
        >>> from ansatz.tuning.searched_networks import require_answers
        >>> model, x = Classifier(network="unet"), np.zeros((4, 16, 16), np.float32)
        >>> job = model.read(x, [0, 1, 0, 1])
        >>> require_answers(model.task(x), job)
        Traceback (most recent call last):
        ...
        ansatz.errors.UsageError: unet labels every cell; these outcomes are one for each example.
    """
    task.rehearse(learn)
    plan, inputs = task.plan(task.recipe(learn), learn), learn.rows.spec or InputSpec.of(1)
    made = networks.create(plan.network_name, inputs=inputs, outputs=2, **plan.network_options)
    axis = learn.target.axis
    task.structure.require_answers(made.eval(), plan.network_name, inputs, axis)
