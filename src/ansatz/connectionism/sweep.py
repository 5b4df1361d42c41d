"""One asynchronous sweep over the neurons, for a whole batch of states at once."""

from typing import NamedTuple

import torch
from torch import Tensor

BLOCK = 128  # neurons that are settled together; measured best of 32 to 256 for 1,000 neurons
CHUNK = 512  # states that are swept together: their block of fields stays in a core's own cache


class Block(NamedTuple):
    """Neurons that follow one another in the order of a sweep, and their weights.

    Args:
        neurons: their numbers, ``(K,)``.
        weight: from all neurons, ``(K, D)``.
        within: from those before in the block, ``(K, K)``, strictly lower triangular.
        threshold: ``(K, 1)``.
    """

    neurons: Tensor
    weight: Tensor
    within: Tensor
    threshold: Tensor


def in_blocks(weight: Tensor, threshold: Tensor, order: Tensor) -> list[Block]:
    """The order of a sweep, cut into blocks.

    Args:
        weight: ``(D, D)``.
        threshold: ``(D,)``.
        order: a permutation of the neurons.
    """
    found = []
    for neurons in order.split(BLOCK):
        rows = weight[neurons]
        within = rows[:, neurons].tril(-1)
        found.append(Block(neurons, rows, within, threshold[neurons].unsqueeze(1)))
    return found


def sweep(active: Tensor, blocks: list[Block]) -> Tensor:
    r"""Updates each neuron in turn, in place, on states of zeros and ones.

    .. math:: s_i \leftarrow 1\{ w_i^\top s \ge \theta_i \} \quad \text{for } i \text{ in order}

    Neuron by neuron this is a row times the states each time, which waits for memory. Here the
    fields of a block are one matrix product with the states before the block. The new states
    :math:`s'` of the block then solve a triangular system,

    .. math:: s' = 1\{ f + L (s' - s) \ge \theta \}, \qquad L \text{ strictly lower triangular},

    whose one solution is that of the plain loop. Iterated from :math:`1\{f \ge \theta\}`, the first
    neuron is right at once, the second after one step, and so on; as few changes matter within a
    block, most states are right after one step, and only the others go on.

    Args:
        active: :math:`s`, ``(D, B)``, zeros and ones, one *column* for each state.
        blocks: of :func:`in_blocks`.

    Returns:
        ``(B,)`` bool, whether anything changed.
    """
    changed = torch.zeros_like(active[0])
    all_changed = False
    for block in blocks:
        before = active[block.neurons]  # (K, B)
        after = _settled(before, block.weight @ active, block)
        active[block.neurons] = after
        if not all_changed:
            changed = torch.maximum(changed, _differs(before, after))
            all_changed = bool(changed.all())
    return changed > 0


def _settled(before: Tensor, fields: Tensor, block: Block) -> Tensor:
    """The solution of the triangular system of one block."""
    guess = torch.empty_like(fields)
    torch.ge(fields, block.threshold, out=guess)
    after = torch.addmm(fields, block.within, guess - before).ge_(block.threshold)
    columns = _differs(guess, after).nonzero().squeeze(1)
    for _ in range(len(block.neurons)):  # each step makes one more neuron right for good
        if not len(columns):
            break
        guess = after[:, columns]
        moves = guess - before[:, columns]
        new = torch.addmm(fields[:, columns], block.within, moves).ge_(block.threshold)
        after[:, columns] = new
        columns = columns[_differs(guess, new) > 0]
    return after


def _differs(one: Tensor, other: Tensor) -> Tensor:
    """1 for each column in which they differ, else 0; faster than != and any."""
    return (one - other).abs_().amax(0)
