"""Hopfield networks: stored patterns, energy and updates."""

from typing import Literal, NamedTuple, Self, get_args

import torch
from torch import Tensor, nn

from ansatz.connectionism.learning_rules import Rule, hebb, pseudo_inverse, storkey

BLOCK = 128  # neurons that are settled together; measured best of 32 to 256 for 1,000 neurons
CHUNK = 512  # states that are swept together: their block of fields stays in a core's own cache


class Block(NamedTuple):
    """Neurons that follow one another in the order of a sweep, and their weights."""

    neurons: Tensor
    weight: Tensor
    within: Tensor
    threshold: Tensor


def in_blocks(weight: Tensor, threshold: Tensor, order: Tensor) -> list[Block]:
    """The order of a sweep, cut into blocks."""
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


Dynamics = Literal["asynchronous", "synchronous"]
_WORTH_PACKING = 0.75  # of the states still move: sweep those alone; the copy is paid by one sweep


class Recall(NamedTuple):
    """The result of a recall: final states, and whether they settled.

    Args:
        state: the last state, ``(B, D)``.
        steps: sweeps (asynchronous) or steps (synchronous) until it was last changed, ``(B,)``.
        settled: whether it is a fixed point, ``(B,)``.
        cycling: whether it goes back and forth between two states, ``(B,)``; synchronous only.

    Example:
        >>> import torch
        >>> from ansatz.connectionism import Hopfield
        >>> memory = Hopfield(4).store(torch.tensor([[1.0, 1.0, -1.0, -1.0]]))
        >>> memory.recall(torch.tensor([[1.0, 1.0, 1.0, -1.0]])).settled
        tensor([True])
    """

    state: Tensor
    steps: Tensor
    settled: Tensor
    cycling: Tensor


class Hopfield(nn.Module):
    r"""An associative memory of sign patterns, whose recall descends an energy.

    .. math:: H(x) = -\tfrac{1}{2} x^\top W x + b^\top x, \qquad
        x_i \leftarrow \mathrm{sgn}\Big(\sum_j w_{ij} x_j - b_i\Big), \qquad x \in \{-1, 1\}^D

    With W symmetric and :math:`w_{ii} = 0`, an update of one neuron never raises H, so that
    asynchronous dynamics come to rest; all neurons at once may end in a cycle of two states.
    :math:`\mathrm{sgn}(0) = 1`, and a field that is 0 but for rounding counts as 0.
    Hebb's rule holds about :math:`D / (2 \ln D)` random patterns without an error, and up to
    :math:`0.138\, D` with few; the pseudo-inverse holds any number below D of linearly
    independent ones, though what is recalled from noise shrinks as they become many.

    Args:
        size: neurons, :math:`D`.
        rule: how patterns are written: ``"hebb"``, ``"pseudo_inverse"`` or ``"storkey"``.
        bias: :math:`b`, ``(D,)``; default: zeros.

    Shapes:
        - x: ``(B, D)`` or ``(D,)``, signs -1 and 1.
        - returns: what was recalled, of the same shape.

    Example:
        >>> import torch
        >>> from ansatz.connectionism import Hopfield
        >>> pattern = torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
        >>> memory = Hopfield(6).store(pattern)
        >>> broken = torch.tensor([1.0, -1.0, -1.0, -1.0, 1.0, -1.0])
        >>> torch.equal(memory(broken), pattern)
        True

    References:
        Hopfield (1982), Neural networks and physical systems with emergent collective
        computational abilities. https://doi.org/10.1073/pnas.79.8.2554
    """

    weight: Tensor
    bias: Tensor
    diagonal: Tensor
    count: Tensor

    def __init__(self, size: int, *, rule: Rule = "hebb", bias: Tensor | None = None) -> None:
        super().__init__()
        if size < 1:
            raise ValueError(f"size of Hopfield must be at least 1, got {size}.")
        if rule not in get_args(Rule):
            raise ValueError(
                f"rule of Hopfield is one of {', '.join(get_args(Rule))}, got {rule!r}."
            )
        if bias is not None and bias.shape != (size,):
            raise ValueError(f"bias of Hopfield needs shape ({size},), got {tuple(bias.shape)}.")
        self.size = size
        self.rule = rule
        self.register_buffer("weight", torch.zeros(size, size))
        self.register_buffer("bias", torch.zeros(size) if bias is None else bias.clone())
        self.register_buffer("diagonal", torch.zeros(size))  # what the rule put there, taken out
        self.register_buffer("count", torch.zeros((), dtype=torch.long))  # patterns stored

    @torch.no_grad()
    def store(self, patterns: Tensor) -> Self:
        """Writes patterns into the weights, beside those that are there.

        Args:
            patterns: ``(N, D)`` or ``(D,)``, signs -1 and 1.
        """
        x = self._signs(patterns).reshape(-1, self.size)
        if self.rule == "hebb":
            self.weight = hebb(self.weight, x)
            self.diagonal = self.diagonal + len(x) / self.size
        elif self.rule == "storkey":
            self.weight = storkey(self.weight, x)
        else:
            self.weight, self.diagonal = pseudo_inverse(self.weight, self.diagonal, x)
        self.count = self.count + len(x)
        return self

    def energy(self, x: Tensor) -> Tensor:
        """The energy H of each state.

        Shapes:
            - x: ``(..., D)``.
            - returns: ``(...)``.
        """
        x = self._signs(x)
        return (x * (self.bias - 0.5 * (x @ self.weight))).sum(-1)

    def fields(self, x: Tensor) -> Tensor:
        """The local fields W x - b, whose signs the neurons take.

        Shapes:
            - x: ``(..., D)``.
            - returns: ``(..., D)``.
        """
        return self._signs(x) @ self.weight - self.bias

    def forward(self, x: Tensor) -> Tensor:
        return self.recall(x).state

    @torch.no_grad()
    def recall(
        self,
        x: Tensor,
        steps: int = 100,
        *,
        dynamics: Dynamics = "asynchronous",
        order: Literal["random", "fixed"] | Tensor = "random",
        generator: torch.Generator | None = None,
    ) -> Recall:
        """Follows the dynamics until nothing changes.

        Args:
            x: where to begin, ``(B, D)`` or ``(D,)``; it is not changed.
            steps: sweeps over all neurons, or synchronous steps, at most.
            dynamics: ``"asynchronous"``: one neuron after the other, each seeing the changes before
                it; ``"synchronous"``: all at once.
            order: of an asynchronous sweep, the same for all states of the batch: ``"random"``, a
                new one for each sweep; ``"fixed"``, by number; or a permutation of the neurons.
            generator: of random orders; by default one with seed 0.

        Example:
            >>> import torch
            >>> from ansatz.connectionism import Hopfield
            >>> memory = Hopfield(4).store(torch.tensor([[1.0, 1.0, -1.0, -1.0]]))
            >>> memory.recall(torch.tensor([1.0, 1.0, 1.0, -1.0]), order="fixed").steps
            tensor(1)
        """
        if steps < 0:
            raise ValueError(f"steps of recall must be at least 0, got {steps}.")
        if dynamics not in get_args(Dynamics):
            raise ValueError(
                f"dynamics of recall is one of {', '.join(get_args(Dynamics))}, got {dynamics!r}."
            )
        rows = self._signs(x).reshape(-1, self.size)
        if dynamics == "synchronous":
            found = self._synchronous(rows, steps)
        else:
            found = self._asynchronous(rows, steps, order, generator)
        if x.ndim > 1:
            return found
        return Recall(*(part.squeeze(0) for part in found))

    def _asynchronous(
        self,
        x: Tensor,
        steps: int,
        order: Literal["random", "fixed"] | Tensor,
        generator: torch.Generator | None,
    ) -> Recall:
        generator = torch.Generator().manual_seed(0) if generator is None else generator
        # Zeros and ones, a column for each state: w·x >= b is w·s >= (b + sum of w) / 2.
        threshold = (self._threshold() + self.weight.sum(1)) / 2
        layout = torch.contiguous_format  # a copy, even where the transpose would do as it is
        parts = [rows.T.clone(memory_format=layout).gt_(0) for rows in x.split(CHUNK)]
        final, last = x.clone(), torch.zeros(len(x), dtype=torch.long, device=x.device)
        there = torch.arange(len(x), device=x.device)  # which states the columns of parts are
        for step in range(1, steps + 1):
            blocks = in_blocks(self.weight, threshold, self._order(order, generator))
            changed = torch.cat([sweep(part, blocks) for part in parts])
            last[there[changed]] = step
            if int(changed.sum()) <= _WORTH_PACKING * len(there):
                self._write(final, parts, there, ~changed)
                moving = [p[:, c] for p, c in zip(parts, changed.split(CHUNK), strict=True)]
                parts = [part.contiguous() for part in torch.cat(moving, 1).split(CHUNK, 1)]
                there = there[changed]
            if not len(there):
                break
        moves = torch.ones_like(there, dtype=torch.bool)
        self._write(final, parts, there, moves)
        settled = torch.ones_like(last, dtype=torch.bool)
        settled[there] = (self._signs_of(final[there]) == final[there]).all(1)
        return Recall(final, last, settled, torch.zeros_like(settled))

    @staticmethod
    def _write(final: Tensor, parts: list[Tensor], there: Tensor, which: Tensor) -> None:
        """Puts the chosen columns back as rows of signs."""
        for part, rows, chosen in zip(parts, there.split(CHUNK), which.split(CHUNK), strict=True):
            if chosen.any():
                final[rows[chosen]] = (part.T * 2 - 1)[chosen]

    def _synchronous(self, x: Tensor, steps: int) -> Recall:
        before, state = x, x.clone()
        last = torch.zeros(len(x), dtype=torch.long, device=x.device)
        cycling = torch.zeros_like(last, dtype=torch.bool)
        for step in range(1, steps + 1):
            after = self._signs_of(state)
            changed = (after != state).any(1)
            cycling = changed & (after == before).all(1) & (step > 1)
            before, state = state, after
            last[changed] = step
            if not (changed & ~cycling).any():
                break
        settled = (self._signs_of(state) == state).all(1)
        return Recall(state, last, settled, cycling)

    def _signs_of(self, x: Tensor) -> Tensor:
        return torch.where(x @ self.weight >= self._threshold(), 1.0, -1.0).to(x.dtype)

    def _threshold(self) -> Tensor:
        """The bias, less the rounding of a sum of D terms: ties go to +1 whatever the order."""
        rounding = torch.finfo(self.weight.dtype).eps * self.size**0.5
        return self.bias - rounding * (self.weight.abs().sum(1) + self.bias.abs())

    def _order(self, order: str | Tensor, generator: torch.Generator) -> Tensor:
        device = self.weight.device
        if isinstance(order, Tensor):
            if not torch.equal(order.sort().values.cpu(), torch.arange(self.size)):
                raise ValueError(f"order of recall must hold each of the {self.size} neurons once.")
            return order.to(device)
        if order == "random":
            return torch.randperm(self.size, generator=generator).to(device)
        if order == "fixed":
            return torch.arange(self.size, device=device)
        raise ValueError(f"order of recall is 'random', 'fixed' or a permutation, got {order!r}.")

    def _signs(self, x: Tensor) -> Tensor:
        if x.ndim == 0 or x.shape[-1] != self.size:
            raise ValueError(f"Hopfield needs x of shape (..., {self.size}), got {tuple(x.shape)}.")
        if not (x.abs() == 1).all():
            wrong = x[x.abs() != 1][0].item()
            raise ValueError(
                f"states of Hopfield are -1 and 1, got {wrong}. From zeros and ones: 2 * x - 1."
            )
        return x.to(self.weight)

    def extra_repr(self) -> str:
        return f"{self.size}, rule={self.rule!r}, patterns={int(self.count)}"
