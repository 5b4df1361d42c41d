"""Groups that act on tensors."""

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor

Element = Any  # what a group's own methods exchange: a number, a tensor, a pair of them


class Group(ABC):
    r"""A group with an action on tensors, :math:`x \mapsto g x`; the contract of all its members.

    .. math:: e x = x, \qquad g (h x) = (g h) x, \qquad g^{-1} (g x) = x

    A member of the family writes ``identity``, ``sample``, ``act``, ``inverse`` and ``compose``.
    What needs the size of the input (how many elements there are to permute) takes it from ``x``.
    Where ``exact`` is False the three likelihoods hold for a continuous picture, and on a grid only
    up to interpolation or to what leaves the frame; ``inside`` then says where outputs are
    comparable.

    Example:
        >>> import torch
        >>> from ansatz.symmetry import Flip
        >>> group, x = Flip(), torch.arange(3.0).reshape(1, 1, 3)
        >>> element = group.sample(x)
        >>> torch.equal(group.act(group.inverse(element), group.act(element, x)), x)
        True
    """

    name = ""
    exact = True

    @abstractmethod
    def identity(self, x: Tensor) -> Element:
        """Gives the element that moves nothing."""

    @abstractmethod
    def sample(self, x: Tensor, generator: torch.Generator | None = None) -> Element:
        """Draws a random element for inputs such as ``x``; uniform (Haar) for a compact group."""

    @abstractmethod
    def act(self, element: Element, x: Tensor) -> Tensor:
        """Computes :math:`g x` for every row of ``x``."""

    @abstractmethod
    def inverse(self, element: Element) -> Element:
        """Computes :math:`g^{-1}`."""

    @abstractmethod
    def compose(self, first: Element, second: Element) -> Element:
        """Computes :math:`g h`, for ``first`` g and ``second`` h: h acts before g."""

    def move(self, element: Element, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Acts on a network's inputs: on each of them alike, unless a group knows better."""
        return tuple(self.act(element, each) for each in inputs)

    def others(self, x: Tensor) -> list[Element] | None:
        """Lists all elements but the identity where they are few; else None."""
        return None

    def inside(self, y: Tensor) -> Tensor | None:
        """Marks where dense outputs can be compared, broadcastable to ``y``; None: everywhere."""
        return None

    def __repr__(self) -> str:
        return f"<group {self.name or type(self).__name__}>"


def whole(high: int, count: int, generator: torch.Generator | None) -> list[int]:
    """Draws numbers, uniform on 0..high-1."""
    device = generator.device if generator is not None else "cpu"
    return [int(n) for n in torch.randint(high, (count,), generator=generator, device=device)]


def normal(*shape: int, generator: torch.Generator | None) -> Tensor:
    """Standard normal numbers in float64, where the generator lives."""
    device = generator.device if generator is not None else "cpu"
    return torch.randn(shape, generator=generator, dtype=torch.float64, device=device)


def uniform(generator: torch.Generator | None) -> float:
    """A number in [0, 1)."""
    device = generator.device if generator is not None else "cpu"
    return float(torch.rand((), generator=generator, dtype=torch.float64, device=device))


def grid_axes(name: str, x: Tensor, least: int = 1) -> tuple[int, ...]:
    """The spatial axes of ``(B, C, *size)``, at least a number of them."""
    if x.ndim < 2 + least:
        wanted = ", ".join("HW"[-least:])
        raise ValueError(
            f"{name} moves the pixels of grids (B, C, {wanted}), got {tuple(x.shape)}. For outputs "
            "of another shape give output_action, or ask for kind='invariant'."
        )
    return tuple(range(2, x.ndim))
