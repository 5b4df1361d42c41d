"""Gradual unfreezing: the head learns first, the layers before it follow."""

from collections.abc import Sequence

from torch import nn

from ansatz.errors import UsageError
from ansatz.networks.transfer import freeze, layer_groups
from ansatz.training.callbacks import Callback, Run


class Unfreezing(Callback):
    r"""Wakes one more group of layers, from the head towards x, at each of some epochs.

    With G groups and the given epochs :math:`e_1 \le e_2 \le \dots`, the number of frozen ones is

    .. math:: \max(0,\; G - 1 - \#\{i : e_i \le e\})

    in epoch e, counted from 0. It depends on nothing but e, so that a run that was interrupted and
    resumed freezes as one that was not. The network is frozen at once, when this is made: make it
    before the optimizer, which must hold all groups, as ``discriminative_groups`` gives them.

    Args:
        network: one with groups, see ``ansatz.networks.layer_groups``; frozen but for its head.
        epochs: when the groups wake, one each; fewer than groups leave the first ones frozen.

    Example:
        >>> from ansatz.networks import ResNet18
        >>> from ansatz.training import Unfreezing
        >>> schedule = Unfreezing(ResNet18(3, 10, width=4), epochs=(2, 4))
        >>> [schedule.frozen(epoch) for epoch in range(6)]
        [5, 5, 4, 4, 3, 3]

    References:
        Howard & Ruder (2018), Universal language model fine-tuning for text classification,
        section 3.3. https://arxiv.org/abs/1801.06146
    """

    def __init__(self, network: nn.Module, epochs: Sequence[int]) -> None:
        for epoch in epochs:
            if isinstance(epoch, bool) or not isinstance(epoch, int) or epoch < 0:
                raise UsageError(f"epochs of Unfreezing must be whole numbers >= 0, got {epoch!r}.")
        groups = layer_groups(network)
        if not 0 < len(epochs) < len(groups):
            raise UsageError(
                f"Unfreezing needs 1 to {len(groups) - 1} epochs, one per group before the head "
                f"of this network, got {len(epochs)}."
            )
        self.network, self.epochs = network, tuple(sorted(epochs))
        self._groups = len(groups)
        freeze(network, "backbone")
        woken = groups[len(groups) - 1 - len(epochs) : -1]
        for parameter in (p for group in woken for part in group for p in part.parameters()):
            # Frozen for a time only: the trainer keeps its best value with the others.
            parameter.rests = True  # type: ignore[attr-defined]
        self._frozen = self._groups - 1

    def frozen(self, epoch: int) -> int:
        """How many groups are frozen in ``epoch``."""
        return max(0, self._groups - 1 - sum(each <= epoch for each in self.epochs))

    def on_start(self, run: Run) -> None:
        """Also after a resume, in the middle of whatever epoch."""
        self._apply(run)

    def on_step(self, run: Run, logs: dict[str, float]) -> None:
        """After the last step of an epoch, the next one counts."""
        if run.number % run.period == 0:
            self._apply(run)

    def _apply(self, run: Run) -> None:
        count = self.frozen(run.number // run.period)
        if count != self._frozen:
            freeze(self.network, count)
            self._frozen = count
