"""The first formal neuron: it fires when the signed count of its inputs reaches a threshold."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

WIDEST_TABLE = 20  # inputs: 2^20 rows are a million


class McCullochPitts(nn.Module):
    r"""A unit that gives 1 if the excited inputs outnumber the inhibited ones by a threshold.

    .. math:: f(x) = 1\{\sigma^\top x \ge \theta\}, \qquad
        x \in \{0, 1\}^D,\; \sigma \in \{-1, 1\}^D

    And is :math:`\sigma = (1, 1), \theta = 2`; or is :math:`\sigma = (1, 1), \theta = 1`; not is
    :math:`\sigma = -1, \theta = 0`. Nothing is learned: the unit is wired.

    Args:
        signs: :math:`\sigma`, one of -1 and 1 for each input; none at all for a constant.
        threshold: :math:`\theta`, a whole number.

    Shapes:
        - x: ``(..., D)``, zeros and ones of any type.
        - returns: ``(...)``, bool.

    Example:
        >>> import torch
        >>> from ansatz.connectionism import McCullochPitts
        >>> conjunction = McCullochPitts([1, 1], 2)
        >>> conjunction(torch.tensor([[0, 1], [1, 1]])).tolist()
        [False, True]

    References:
        McCulloch and Pitts (1943), A logical calculus of the ideas immanent in nervous activity.
        https://doi.org/10.1007/BF02478259
    """

    signs: Tensor

    def __init__(self, signs: Sequence[int], threshold: int) -> None:
        super().__init__()
        for position, sign in enumerate(signs):
            if sign not in (-1, 1):
                raise ValueError(
                    f"a sign of McCullochPitts is -1 or 1, got {sign} at signs[{position}]. "
                    "To count an input twice, wire it twice."
                )
        if threshold != int(threshold):
            raise ValueError(
                f"the threshold of McCullochPitts is a whole number, got {threshold}: "
                "the count it is compared with is one."
            )
        self.threshold = int(threshold)
        self.register_buffer("signs", torch.tensor([int(s) for s in signs], dtype=torch.long))

    def forward(self, x: Tensor) -> Tensor:
        bits = as_bits(x, len(self.signs), "McCullochPitts")
        return self.fires(bits.unbind(-1), bits.shape[:-1])

    def fires(self, inputs: Sequence[Tensor], shape: torch.Size) -> Tensor:
        """The answer to inputs that are given one by one, each bool of ``shape``."""
        total = torch.zeros(shape, dtype=torch.long, device=self.signs.device)
        for sign, value in zip(self.signs.tolist(), inputs, strict=True):
            total.add_(value, alpha=sign)
        return total >= self.threshold

    def extra_repr(self) -> str:
        return f"signs={self.signs.tolist()}, threshold={self.threshold}"


class Wire(NamedTuple):
    """A unit of a network, and where its inputs come from.

    Args:
        unit: the neuron.
        sources: one number per input of the unit: ``k`` below the number of the network's inputs
            is input ``k``; beyond, it is an earlier unit.

    Example:
        >>> from ansatz.connectionism import McCullochPitts, Wire
        >>> Wire(McCullochPitts([1, -1], 1), (0, 1)).sources
        (0, 1)
    """

    unit: McCullochPitts
    sources: tuple[int, ...]


class McCullochPittsNetwork(nn.Module):
    """Units wired forward: each reads inputs and earlier units, the last one answers.

    Args:
        names: of the inputs, in their order.
        wires: the units in an order in which they can be computed.

    Shapes:
        - x: ``(..., D)``, zeros and ones; column ``k`` is ``names[k]``.
        - returns: ``(...)``, bool.

    Example:
        >>> import torch
        >>> from ansatz.connectionism import McCullochPitts, McCullochPittsNetwork, Wire
        >>> either, both = McCullochPitts([1, 1], 1), McCullochPitts([1, 1], 2)
        >>> one = McCullochPitts([1, -1], 1)  # either, and not both
        >>> xor = McCullochPittsNetwork(
        ...     ["a", "b"], [Wire(either, (0, 1)), Wire(both, (0, 1)), Wire(one, (2, 3))]
        ... )
        >>> xor.truth_table()[:, -1].int().tolist()
        [0, 1, 1, 0]

    References:
        Minsky (1967), Computation: finite and infinite machines, chapter 3.
    """

    def __init__(self, names: Sequence[str], wires: Sequence[Wire]) -> None:
        super().__init__()
        if not wires:
            raise ValueError("McCullochPittsNetwork needs at least one unit, got none.")
        for position, (unit, sources) in enumerate(wires):
            known = len(names) + position
            if len(sources) != len(unit.signs) or not all(0 <= s < known for s in sources):
                raise ValueError(
                    f"unit {position} of McCullochPittsNetwork needs {len(unit.signs)} sources "
                    f"below {known} (inputs and earlier units), got {tuple(sources)}."
                )
        self.names = tuple(names)
        self.units = nn.ModuleList(unit for unit, _ in wires)
        self.sources = [tuple(sources) for _, sources in wires]

    def forward(self, x: Tensor) -> Tensor:
        bits = as_bits(x, len(self.names), "McCullochPittsNetwork")
        values = list(bits.unbind(-1))
        for unit, sources in zip(self.units, self.sources, strict=True):
            assert isinstance(unit, McCullochPitts)
            values.append(unit.fires([values[s] for s in sources], bits.shape[:-1]))
        return values[-1]

    @property
    def depth(self) -> int:
        """Units on the longest way from an input to the answer."""
        depths = [0] * len(self.names)
        for sources in self.sources:
            depths.append(1 + max((depths[s] for s in sources), default=0))
        return depths[-1]

    def truth_table(self) -> Tensor:
        """All inputs in the order of counting, and the answer as the last column.

        Shapes:
            - returns: ``(2^D, D + 1)``, bool.
        """
        x = every_input(len(self.names))
        return torch.cat([x, self(x).unsqueeze(-1)], -1)


def every_input(count: int) -> Tensor:
    """All rows of ``count`` bits, the last changing fastest."""
    if count > WIDEST_TABLE:
        raise ValueError(
            f"a truth table of {count} inputs has 2^{count} rows; at most {WIDEST_TABLE} inputs. "
            "Evaluate the network on the rows that you need."
        )
    digits = torch.arange(2**count).unsqueeze(-1) >> torch.arange(count - 1, -1, -1)
    return digits.bitwise_and(1).bool()


def as_bits(x: Tensor, count: int, name: str) -> Tensor:
    """``x`` as bool, if it is rows of ``count`` zeros and ones."""
    if x.ndim == 0 or x.shape[-1] != count:
        raise ValueError(f"{name} needs x of shape (..., {count}), got {tuple(x.shape)}.")
    if x.dtype == torch.bool:
        return x
    if not ((x == 0) | (x == 1)).all():
        raise ValueError(f"{name} takes zeros and ones, got {x[(x != 0) & (x != 1)][0].item()}.")
    return x == 1
