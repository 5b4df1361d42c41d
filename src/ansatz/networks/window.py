"""Forecasting networks on a window of a series: a linear map, and a perceptron beside it."""

from itertools import pairwise

import torch
from torch import Tensor, nn

from ansatz.errors import UsageError
from ansatz.layers.init import affine
from ansatz.layers.limits import require_whole
from ansatz.spec import Inputs, InputSpec

RECENT = 4  # steps whose covariates a window's perceptron sees


class WindowLevel(nn.Module):
    r"""Brings the answer of a network back to the level and the unit of its window.

    .. math:: f \mapsto f \, (1 + a (u - 1)) + b \, \ell + c \log E + d \log u

    with the level :math:`\ell` and unit :math:`u` of the window and the exposure E of each
    step. a, b, c and d, one for each output, are 0 until :meth:`settle` sets them.
    With an identity link the location has a = 1, b undoes the scale of the outcomes, and the
    numbers of the dispersion have d = 1: softplus(f + log u) is near u exp(f). With a logarithmic
    link the first number has b and c. Other numbers stay as they are.

    Args:
        outputs: numbers of an answer, P for each of H steps.
        horizon: steps ahead, H.

    Shapes:
        - answer: ``(B, H * P)``; level: ``(B, 2 + H)`` with the level, the unit, log exposures.
        - returns: ``(B, H * P)``.

    Example:
        >>> import torch
        >>> from ansatz.networks import WindowLevel
        >>> level = WindowLevel(outputs=2, horizon=1).settle("identity", torch.ones(1, 2), 1.0)
        >>> level(torch.tensor([[0.5, 0.1]]), torch.tensor([[10.0, 2.0, 0.0]]))
        tensor([[11.0000,  0.7931]])
    """

    unit: Tensor
    location: Tensor
    exposure: Tensor
    dispersion: Tensor

    def __init__(self, outputs: int, horizon: int) -> None:
        super().__init__()
        self.horizon = horizon
        for name in ("unit", "location", "exposure", "dispersion"):
            self.register_buffer(name, torch.zeros(outputs))

    def settle(self, link: str, scale: Tensor, size: float, dispersions: int = 1) -> "WindowLevel":
        """Sets a, b and c.

        Args:
            link: of the likelihood; only ``"identity"`` and ``"log"`` change answers.
            scale: ``(H, P)``, what answers are multiplied by before the likelihood takes them.
            size: of the outcomes, which levels are measured in.
            dispersions: numbers after the first that grow with the unit.
        """
        first = torch.zeros_like(scale)
        first[:, 0] = 1 / scale[:, 0]
        first = first.flatten()
        if link == "identity":
            self.unit.copy_((first != 0).to(first))
            self.location.copy_(first * size)
            wide = torch.zeros_like(scale)
            wide[:, 1 : 1 + dispersions] = 1 / scale[:, 1 : 1 + dispersions]
            self.dispersion.copy_(wide.flatten())
        elif link == "log":
            self.location.copy_(first)
            self.exposure.copy_(first)
        return self

    def forward(self, answer: Tensor, level: Tensor) -> Tensor:
        at, unit, base = level[:, :1], level[:, 1:2], level[:, 2:]
        found = torch.addcmul(answer, answer * self.unit, unit - 1) + self.location * at
        found = torch.addcmul(found, self.dispersion, unit.log())
        per_step = self.exposure.view(self.horizon, -1) * base.unsqueeze(-1)  # (B, H, P)
        return found + per_step.flatten(1)


def window_parts(owner: str, inputs: Inputs) -> tuple[InputSpec, int, int]:
    """The spec of windows, how much is known ahead, and the horizon."""
    spec = InputSpec.of(inputs)
    parts = dict(spec.parts)
    if spec.structure != "sequence" or not {"ahead", "level"} <= parts.keys() or not spec.size:
        raise UsageError(f"{owner} forecasts series: fit it with --horizon, or a Forecaster.")
    return spec, parts["ahead"].features, parts["level"].features - 2


class Window(nn.Module):
    r"""A linear map of the window less its last value, plus a perceptron of everything.

    .. math:: f = A x + B z + W_2 \phi(W_1 [x, z, c] + b_1) + b

    with the scaled target x of the window, what is known of the time ahead z, and the window's
    other numbers c (covariates, which steps were observed) at the last four steps, and their means:
    all of them at all steps would be far more numbers than a series can teach.

    Args:
        inputs: what an encoder of windows describes.
        outputs: numbers of an answer, P for each of H steps.
        widths: hidden units of the perceptron's layers; none leaves the linear map.
        dropout: the probability that a hidden unit is dropped in training.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - values: ``(B, T, D)``, the target first; ahead: ``(B, F)``; level: ``(B, 2 + H)``.
        - returns: ``(B, H * P)``.

    Example:
        >>> import torch
        >>> from dataclasses import replace
        >>> from ansatz import networks
        >>> from ansatz.spec import InputSpec
        >>> parts = (("ahead", InputSpec.of(3)), ("level", InputSpec.of(2 + 4)))
        >>> spec = replace(InputSpec.sequence(features=1, length=8), parts=parts)
        >>> network = networks.create("window", spec, outputs=8)
        >>> network(torch.randn(5, 8, 1), torch.randn(5, 3), torch.ones(5, 6)).shape
        torch.Size([5, 8])

    References:
        Zeng et al. (2023), Are transformers effective for time series forecasting?, section 4.
        https://arxiv.org/abs/2205.13504
    """

    heads: tuple[str, ...] = ("linear", "output")

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        widths: tuple[int, ...] | list[int] = (128,),
        dropout: float = 0.2,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        spec, ahead, horizon = window_parts("window", inputs)
        for width in widths:
            require_whole("widths of window", width)
        if not 0 <= dropout < 1:
            raise UsageError(f"dropout of window must be in [0, 1), got {dropout}.")
        length = spec.size[0]
        self.linear = affine(
            length + ahead, outputs, init="lecun_normal", gain=0.1, generator=generator
        )
        others = (spec.features - 1) * (min(length, RECENT) + 1)
        sizes = [length + ahead + others, *widths]
        self.hidden = nn.ModuleList(
            affine(a, b, init="lecun_normal", generator=generator) for a, b in pairwise(sizes)
        )
        self.output = (
            affine(sizes[-1], outputs, init="lecun_normal", gain=0.1, generator=generator)
            if widths
            else None
        )
        self.dropout = nn.Dropout(dropout)
        self.level = WindowLevel(outputs, horizon)

    def layer_groups(self) -> list[list[nn.Module]]:
        """Its layers from x to the outcome."""
        last: list[nn.Module] = [self.linear, *([self.output] if self.output is not None else [])]
        return [*([layer] for layer in self.hidden), last]

    def forward(self, values: Tensor, ahead: Tensor, level: Tensor) -> Tensor:
        x = torch.cat([values[:, :, 0], ahead], 1)
        answer = self.linear(x)
        if self.output is not None:
            others = values[:, :, 1:]
            h = torch.cat([x, others[:, -RECENT:].flatten(1), others.mean(1)], 1)
            for layer in self.hidden:
                h = self.dropout(nn.functional.silu(layer(h)))
            answer = answer + self.output(h)
        found: Tensor = self.level(answer, level)
        return found


class LinearWindow(Window):
    """A linear map of the window less its last value and of what is known of the time ahead.

    Args:
        inputs: what an encoder of windows describes.
        outputs: numbers of an answer, P for each of H steps.
        generator: where weights are drawn from; torch's global one when not given.

    Shapes:
        - values: ``(B, T, D)``, the target first; ahead: ``(B, F)``; level: ``(B, 2 + H)``.
        - returns: ``(B, H * P)``.

    Example:
        >>> import torch
        >>> from dataclasses import replace
        >>> from ansatz import networks
        >>> from ansatz.spec import InputSpec
        >>> parts = (("ahead", InputSpec.of(3)), ("level", InputSpec.of(2 + 4)))
        >>> spec = replace(InputSpec.sequence(features=1, length=8), parts=parts)
        >>> network = networks.create("linear_window", spec, outputs=8)
        >>> sum(weight.numel() for weight in network.parameters())  # 8 * (8 + 3 + 1)
        96

    References:
        Zeng et al. (2023), Are transformers effective for time series forecasting?, section 4.
        https://arxiv.org/abs/2205.13504
    """

    def __init__(
        self, inputs: Inputs, outputs: int, *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__(inputs, outputs, widths=(), dropout=0.0, generator=generator)
