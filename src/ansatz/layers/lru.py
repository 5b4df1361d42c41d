"""The linear recurrent unit: a diagonal recurrence of complex numbers."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from ansatz.errors import UsageError
from ansatz.layers.init import affine
from ansatz.layers.limits import require_whole
from ansatz.layers.recurrent import Recurrent, State
from ansatz.layers.scan import scan
from ansatz.layers.schemes import draw_normal, draw_uniform


class LRU(Recurrent):
    r"""The linear recurrent unit.

    .. math::
        \zeta_t = \lambda \odot \zeta_{t-1} + \sqrt{1 - |\lambda|^2} \odot B x_t, \qquad
        y_t = \mathrm{Re}(C \zeta_t) + D x_t, \qquad \lambda = \exp(-e^\nu + i \varphi)

    For any :math:`\nu` the modulus is below one, so the recurrence is stable, and the square root
    keeps the variance of the state that of Bx for white noise x. It is linear in x: a network puts
    nonlinear maps between such layers, and an MLP of :math:`\zeta_t` can approximate any continuous
    function of the past.

    Moduli start with :math:`r^2` uniform on :math:`[r_{min}^2, r_{max}^2]`, even over the area of
    the ring as the eigenvalues of a Glorot matrix are over the disk, and phases uniform on
    :math:`[0, \varphi_{max}]`. The paper trains the square root as a parameter of its own.

    Args:
        in_features: numbers per step.
        out_features: numbers per step of y.
        units: complex numbers of the state, :math:`N`; None for ``out_features``.
        r_min: the smallest modulus at the start; 0.9 and more for long sequences.
        r_max: the largest.
        max_phase: :math:`\varphi_{max}`.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, T, D)``; mask: ``(B, T)``; state: ``(B, N)`` complex.
        - returns: y ``(B, T, H)`` real, and the state.

    Example:
        >>> import torch
        >>> from ansatz.layers import LRU
        >>> layer = LRU(3, 8, r_min=0.9, r_max=0.999)
        >>> y, state = layer(torch.randn(2, 1000, 3))
        >>> y.shape, bool((layer.eigenvalues.abs() < 1).all())
        (torch.Size([2, 1000, 8]), True)

    References:
        Orvieto et al. (2023), Resurrecting recurrent neural networks for long sequences, sections
        3.2 to 3.4. https://arxiv.org/abs/2303.06349
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        units: int | None = None,
        r_min: float = 0.0,
        r_max: float = 1.0,
        max_phase: float = 2 * math.pi,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(in_features, out_features)
        if not 0 <= r_min < r_max <= 1:
            raise UsageError(f"LRU needs 0 <= r_min < r_max <= 1, got {r_min} and {r_max}.")
        N = self.units = require_whole("units of LRU", out_features if units is None else units)
        ring, phase = (
            draw_uniform(torch.empty(2, N), 12**-0.5, generator) + 0.5
        ).unbind()  # U[0, 1]
        r2 = (r_min**2 + ring * (r_max**2 - r_min**2)).clamp(1e-12, 1 - 1e-6)
        self.nu = nn.Parameter((-0.5 * r2.log()).log())  # log(-log r)
        self.phase = nn.Parameter(max_phase * phase)
        # Rows are real and imaginary parts in turn, |B_jk|^2 = 1/D in the mean.
        self.input = nn.Parameter(torch.empty(2 * N, self.in_features))
        draw_normal(self.input, (2 * self.in_features) ** -0.5, generator)
        self.output = affine(
            2 * N, self.out_features, init="lecun_normal", bias=None, generator=generator
        )  # Re C and -Im C in turn
        self.skip = affine(
            self.in_features, self.out_features, init="lecun_normal", generator=generator
        )  # D

    @property
    def eigenvalues(self) -> Tensor:
        """The factors λ, ``(N,)`` complex."""
        return torch.polar(torch.exp(-self._rate()), self.phase)

    def _rate(self) -> Tensor:
        # exp(-e^nu) would round to one below: two ulps keep the modulus under it.
        return self.nu.clamp(min=math.log(2 * torch.finfo(self.nu.dtype).eps)).exp()

    def initial(self, x: Tensor) -> State:
        return torch.zeros(len(x), self.units, dtype=x.dtype.to_complex(), device=x.device)

    def _added(self, x: Tensor) -> Tensor:
        scale = torch.sqrt(-torch.expm1(-2 * self._rate()))  # sqrt(1 - |lambda|^2)
        weight = self.input * scale.repeat_interleave(2).unsqueeze(1)
        return torch.view_as_complex(linear(x, weight).unflatten(-1, (self.units, 2)))

    def _read(self, states: Tensor, x: Tensor) -> Tensor:
        return self.output(torch.view_as_real(states).flatten(-2)) + self.skip(x)

    def step(self, state: State, x: Tensor) -> tuple[State, Tensor]:
        state = self.eigenvalues * state + self._added(x)
        return state, self._read(state, x)

    def run(self, x: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
        a, b = self.eigenvalues, self._added(x)
        if mask is not None:
            present = mask.unsqueeze(-1)
            a, b = torch.where(present, a, 1), torch.where(present, b, 0)
        states = scan(a, b, state)
        return self._read(states, x), states[:, -1]
