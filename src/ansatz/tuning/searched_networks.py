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
    """
    task.rehearse(learn)
    plan, inputs = task.plan(task.recipe(learn), learn), learn.rows.spec or InputSpec.of(1)
    made = networks.create(plan.network_name, inputs=inputs, outputs=2, **plan.network_options)
    axis = learn.target.axis
    task.structure.require_answers(made.eval(), plan.network_name, inputs, axis)
