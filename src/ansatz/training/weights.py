"""Weights put aside, to come back to."""

import torch
from torch import Tensor, nn

from ansatz.networks.transfer import rests
from ansatz.training.sharded import is_sharded
from ansatz.training.step import Step

Snapshot = dict[str, Tensor]


def snapshot(step: Step) -> Snapshot:
    """A copy of all that training can change in the network and the objective.

    Frozen parameters are left out, unless they only rest for a time (``Unfreezing``): nothing
    moves them, and a teacher may be large.

    Example:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> from ansatz.training.weights import snapshot
        >>> step = SimpleNamespace(network=torch.nn.Linear(1, 1), objective=torch.nn.Identity())
        >>> sorted(snapshot(step))
        ['network.bias', 'network.weight']
    """
    return {name: tensor.detach().clone() for name, tensor in moving(step).items()}


def restore(step: Step, kept: Snapshot) -> None:
    """Puts a snapshot back, in place: optimizers keep pointing at the same parameters.

    Example:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> from ansatz.training.weights import restore, snapshot
        >>> step = SimpleNamespace(network=torch.nn.Linear(1, 1), objective=torch.nn.Identity())
        >>> kept = snapshot(step)
        >>> _ = step.network.weight.data.zero_()
        >>> restore(step, kept)
        >>> torch.equal(step.network.weight, kept["network.weight"])
        True
    """
    live = moving(step)
    with torch.no_grad():
        for name, value in kept.items():
            live[name].copy_(value)


def spoiled(step: Step, kept: Snapshot) -> bool:
    """True when something that was finite in ``kept`` is not finite any more.

    Example:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> from ansatz.training.weights import snapshot, spoiled
        >>> step = SimpleNamespace(network=torch.nn.Linear(1, 1), objective=torch.nn.Identity())
        >>> kept = snapshot(step)
        >>> _ = step.network.weight.data.fill_(torch.inf)
        >>> spoiled(step, kept)
        True
    """
    # Compared with before, since a buffer may be infinite on purpose, as an attention mask is.
    live = moving(step)
    if any(is_sharded(t) for t in live.values()):
        return True  # what this process sees is not what all see, and all must do the same
    return any(bool((kept[n].isfinite() & ~t.isfinite()).any()) for n, t in live.items())


def moving(step: Step) -> dict[str, Tensor]:
    """The tensors themselves that training can change, by name.

    Example:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> from ansatz.training.weights import moving
        >>> step = SimpleNamespace(network=torch.nn.Linear(1, 1), objective=torch.nn.Identity())
        >>> moving(step)["network.bias"] is step.network.bias
        True
    """
    return {
        f"{part}.{name}": tensor
        for part in ("network", "objective")
        for name, tensor in _state(getattr(step, part)).items()
    }


def _state(module: nn.Module) -> dict[str, Tensor]:
    named = module.named_parameters(remove_duplicate=False)
    frozen = {name for name, p in named if not p.requires_grad and not rests(p)}
    state = module.state_dict(keep_vars=True).items()
    return {name: t for name, t in state if name not in frozen and isinstance(t, Tensor)}
