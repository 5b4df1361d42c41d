"""Transfer learning: freezing layers, and rates by depth."""

from typing import Any, Literal

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ansatz.errors import UsageError
from ansatz.layers.limits import require_positive
from ansatz.layers.lora import LoRA


def layer_groups(network: nn.Module) -> list[list[nn.Module]]:
    """Lists the layers of a network from x to the outcome, in groups that freeze together.

    A network of ours names them itself: stem, stages, last map. Of another network each part that
    has weights is a group, in the order in which its parts were assigned.

    Args:
        network: any module.

    Returns:
        The groups; the last one is the head, all before it are the backbone.

    Example:
        >>> from ansatz.networks import ResNet18, layer_groups
        >>> [len(group) for group in layer_groups(ResNet18(3, 10, width=4))]
        [2, 1, 1, 1, 1, 1]
    """
    own = getattr(network, "layer_groups", None)
    if own is not None:
        groups: list[list[nn.Module]] = own()
        return groups
    parts = [part for part in network.children() if any(True for _ in part.parameters())]
    return [[part] for part in parts] or [[network]]


def head_names(network: nn.Module) -> tuple[str, ...]:
    """The names of the modules that belong to the outcome: the last group, as modules."""
    own = getattr(network, "heads", None)
    if isinstance(own, tuple):  # of torchvision's vision transformers it is a module
        return own
    last = layer_groups(network)[-1]
    return tuple(name for name, module in network.named_modules() if module in last)


def freeze(network: nn.Module, what: Literal["backbone", "none"] | int = "backbone") -> int:
    """Takes the first groups of a network out of training, and the others into it.

    Frozen weights get no gradient, and batch normalisations among them use and keep their running
    statistics even while the network is in training mode: nothing frozen changes by a bit.

    Args:
        network: changed in place.
        what: ``"backbone"``, all groups but the last; ``"none"``; or how many groups from the
            start, see :func:`layer_groups`.

    Returns:
        How many groups are frozen.

    Example:
        >>> from ansatz.networks import ResNet18, freeze
        >>> network = ResNet18(3, 10, width=4)
        >>> freeze(network, "backbone")
        5
        >>> sum(p.numel() for p in network.parameters() if p.requires_grad)
        330

    References:
        Yosinski et al. (2014), How transferable are features in deep neural networks?
        https://arxiv.org/abs/1411.1792
    """
    groups = layer_groups(network)
    count = _count(what, len(groups))
    for number, group in enumerate(groups):
        for part in group:
            part.requires_grad_(number >= count)
            for module in part.modules():
                if isinstance(module, _BatchNorm):
                    _hold(module) if number < count else _release(module)
    return count


def freeze_but_adapters(network: nn.Module) -> int:
    """Trains the low-rank changes of a network and its last maps alone.

    Args:
        network: changed in place; one without :class:`~ansatz.layers.LoRA` stays as it is.

    Returns:
        The number of maps with such changes.
    """
    adapters = [part for part in network.modules() if isinstance(part, LoRA)]
    if adapters:
        network.requires_grad_(False)
        for part in adapters:
            part.A.requires_grad_()
            part.B.requires_grad_()
        for name in head_names(network):
            network.get_submodule(name).requires_grad_()
    return len(adapters)


def discriminative_groups(
    network: nn.Module, rate: float, *, factor: float = 2.6
) -> list[dict[str, Any]]:
    r"""Makes parameter groups with smaller learning rates for earlier layers.

    .. math:: \eta_g = \eta / \lambda^{G - g}, \qquad g = 1, \dots, G

    Early layers hold what images have in common and need to move little; the head starts anew.
    Groups that are frozen for good are left out; those that an ``Unfreezing`` will wake are in.

    Args:
        network: its :func:`layer_groups` are the groups.
        rate: :math:`\eta`, of the last group.
        factor: :math:`\lambda`; 1 gives all the same rate.

    Returns:
        A list of ``{"params": ..., "lr": ...}`` from the first group to the last.

    Example:
        >>> from ansatz.networks import LeNet5, discriminative_groups
        >>> from ansatz.spec import InputSpec
        >>> groups = discriminative_groups(LeNet5(InputSpec.grid(1, 28, 28), 10), 0.08, factor=2)
        >>> [group["lr"] for group in groups]
        [0.01, 0.02, 0.04, 0.08]

    References:
        Howard & Ruder (2018), Universal language model fine-tuning for text classification,
        section 3.2. https://arxiv.org/abs/1801.06146
    """
    rate, factor = require_positive("rate", rate), require_positive("factor", factor)
    groups, found = layer_groups(network), []
    for number, group in enumerate(groups, 1):
        learned = [p for part in group for p in part.parameters() if p.requires_grad or rests(p)]
        if learned:
            found.append({"params": learned, "lr": rate / factor ** (len(groups) - number)})
    if not found:
        raise UsageError("every group of the network is frozen: nothing is left to be trained.")
    return found


def rests(parameter: Tensor) -> bool:
    """Tests whether a parameter is frozen for a time only; see ``ansatz.training.Unfreezing``."""
    return bool(getattr(parameter, "rests", False))


def _count(what: object, groups: int) -> int:
    if what in ("backbone", "none") and isinstance(what, str):
        return groups - 1 if what == "backbone" else 0
    whole = isinstance(what, int) and not isinstance(what, bool)
    if not whole or not 0 <= what <= groups:  # type: ignore[operator]
        raise UsageError(
            f"freeze must be backbone, none or a number of groups from 0 to {groups}, got {what!r}."
        )
    return int(what)  # type: ignore[call-overload]


def _evaluate(module: nn.Module, _: Any) -> None:
    """network.train() reaches every part: a frozen norm leaves training for its call alone."""
    module.mode, module.training = module.training, False  # type: ignore[assignment]


def _back(module: nn.Module, *_: Any) -> None:
    module.training = bool(module.mode)


def _hold(norm: nn.Module) -> None:
    if _evaluate not in norm._forward_pre_hooks.values():
        norm.register_forward_pre_hook(_evaluate)
        norm.register_forward_hook(_back, always_call=True)


def _release(norm: nn.Module) -> None:
    for hooks, hook in ((norm._forward_pre_hooks, _evaluate), (norm._forward_hooks, _back)):
        for key in [key for key, each in hooks.items() if each is hook]:
            del hooks[key]
            norm._forward_hooks_always_called.pop(key, None)
