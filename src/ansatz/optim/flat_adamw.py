"""AdamW over one flat vector: an update whose cost does not grow with the number of layers."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ansatz.errors import UsageError

_MANY = 50_000  # numbers whose memory costs more than a call


class FlatAdamW:
    r"""Parameters as views into one vector, updated by AdamW in one or two calls.

    .. math::
        m \leftarrow \beta_1 m + (1-\beta_1) g, \qquad
        v \leftarrow \beta_2 v + (1-\beta_2) g^2, \qquad
        \theta \leftarrow (1 - \eta\lambda) \theta - \eta \hat m / (\sqrt{\hat v} + \epsilon)

    with :math:`\hat m = m / (1 - \beta_1^t)` and :math:`\hat v = v / (1 - \beta_2^t)`. The caller
    writes gradients into ``gradients`` (views too) and calls :meth:`update`; the same path as
    ``torch.optim.AdamW`` with two groups, without its bookkeeping of some 60 us per step.

    Args:
        decayed: parameters that weight decay acts on; each becomes a view.
        plain: parameters without decay.
        betas: :math:`\beta_1, \beta_2`.
        eps: :math:`\epsilon`, outside the root.
        weight_decay: :math:`\lambda`.

    Example:
        >>> import torch
        >>> from ansatz.optim import FlatAdamW
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> rule = FlatAdamW([weight], [], weight_decay=0.0)
        >>> rule.gradients[0].copy_(torch.tensor([3.0, -7.0]))
        tensor([ 3., -7.])
        >>> rule.update(0.1)  # the first step is rate * sign(gradient)
        >>> weight.data
        tensor([0.9000, 1.1000])

    References:
        Loshchilov and Hutter (2019), Decoupled weight decay regularization, algorithm 2.
        https://arxiv.org/abs/1711.05101
    """

    def __init__(
        self,
        decayed: Sequence[Tensor],
        plain: Sequence[Tensor],
        *,
        betas: tuple[float, float] = (0.9, 0.99),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        self.parameters = [*decayed, *plain]
        if len({(p.dtype, p.device) for p in self.parameters}) != 1:
            raise UsageError("FlatAdamW needs parameters of one dtype on one device.")
        self.betas, self.eps, self.weight_decay = betas, eps, weight_decay
        self.steps = 0
        self._split = sum(p.numel() for p in decayed)
        size = sum(p.numel() for p in self.parameters)
        self.first = self.parameters[0].data.new_zeros(size)
        self.second = torch.zeros_like(self.first)
        self.bind()

    def bind(self) -> None:
        """Gathers the parameters' present values into the flat vector and makes them its views."""
        like = self.parameters[0].data
        self.flat = torch.cat([p.data.reshape(-1) for p in self.parameters])
        self.gradient = torch.zeros_like(self.flat)
        self.first, self.second = self.first.to(like), self.second.to(like)
        self.values, self.gradients = self._views(self.flat), self._views(self.gradient)
        for parameter, value in zip(self.parameters, self.values, strict=True):
            parameter.data = value
        self._address = self.parameters[0].data_ptr()
        self._count = torch.zeros((), dtype=torch.float32, device=like.device)
        # On the CPU small things go through NumPy, whose calls cost a third of torch's.
        on_cpu = like.device.type == "cpu"
        self._array = self.gradient.numpy() if on_cpu else None
        self._count_array = self._count.numpy() if on_cpu else None
        # Few numbers are shrunk apart, so that one call serves all; many are passed over but once.
        self._shrinks = on_cpu and len(self.flat) < _MANY and self.weight_decay > 0
        self._decayed = self.flat[: self._split].numpy() if on_cpu else None
        decays = self.weight_decay > 0 and not self._shrinks
        ends = [0, self._split, len(self.flat)] if decays else [0, len(self.flat)]
        self._groups = [
            ([[t[a:b]] for t in (self.flat, self.gradient, self.first, self.second)], decay)
            for a, b, decay in zip(
                ends, ends[1:], (self.weight_decay if decays else 0.0, 0.0), strict=False
            )
            if b > a
        ]

    @property
    def moved(self) -> bool:
        """Whether the parameters were given other memory, as by ``network.to(device)``."""
        return self.parameters[0].data_ptr() != self._address

    def gradient_norm(self) -> float:
        """The Euclidean norm of the whole gradient; not finite if and only if an entry is not."""
        g: Any = self._array if self._array is not None else self.gradient
        with np.errstate(all="ignore"):
            square = float(g.dot(g))
        if math.isfinite(square):
            return math.sqrt(square)
        return float(self.gradient.double().norm())  # a square overflows long before its root

    def scale_gradient(self, factor: float) -> None:
        """Multiplies the whole gradient, as clipping does."""
        self.gradient.mul_(factor)

    def update(self, learning_rate: float) -> None:
        """One step at the given rate."""
        self.steps += 1
        if self._count_array is None:
            self._count.fill_(self.steps)
        else:
            self._count_array[()] = self.steps
        if self._shrinks and self._decayed is not None:  # before the gradient's own step
            self._decayed *= self._decayed.dtype.type(1 - learning_rate * self.weight_decay)
        beta1, beta2 = self.betas
        for (value, gradient, first, second), decay in self._groups:
            # The kernel that torch.optim.AdamW(fused=True) calls.
            torch._fused_adamw_(
                value,
                gradient,
                first,
                second,
                [],
                [self._count],
                amsgrad=False,
                lr=learning_rate,
                beta1=beta1,
                beta2=beta2,
                weight_decay=decay,
                eps=self.eps,
                maximize=False,
            )

    def moments(self) -> list[Tensor]:
        """The first moments, then the second, as views with the parameters' shapes."""
        return [*self._views(self.first), *self._views(self.second)]

    def state_dict(self) -> dict[str, Any]:
        """Both moments, in the order [decayed | plain], and the number of steps."""
        return {"steps": self.steps, "first": self.first.clone(), "second": self.second.clone()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what ``state_dict`` gave."""
        if state["first"].shape != self.first.shape:
            raise UsageError(
                f"the saved optimiser state is of {len(state['first'])} parameters, "
                f"this network has {len(self.first)}."
            )
        self.steps = int(state["steps"])
        self.first.copy_(state["first"])
        self.second.copy_(state["second"])

    def _views(self, flat: Tensor) -> list[Tensor]:
        sizes = [p.numel() for p in self.parameters]
        chunks = flat.split(sizes)
        return [chunk.view(p.shape) for chunk, p in zip(chunks, self.parameters, strict=True)]
