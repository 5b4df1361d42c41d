"""Encoders and decoders of examples: any registered network, and one that mirrors it."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ansatz import networks
from ansatz.spec import InputSpec

CHANNELS = 32  # of a convolutional decoder where its output is whole


class Autoencoding(nn.Module):
    """An encoder of features and a decoder of latents, both given a condition where there is one.

    Args:
        spec: of the features.
        latents: numbers of the code.
        outputs: raw numbers of an example.
        network: the encoder, by name.
        options: of the encoder's factory; ``widths`` are those of the decoder too.
        condition: numbers of the condition.
        stochastic: whether the encoder gives scales as well.
        generator: of the initial weights.

    Shapes:
        - encode(features): ``(B, L)``.
        - posterior(features): mean and logarithm of the scale, ``(B, L)`` each.
        - decode(latents): ``(B, P)``.
    """

    def __init__(
        self,
        spec: InputSpec,
        latents: int,
        outputs: int,
        *,
        network: str = "mlp",
        options: Mapping[str, Any] | None = None,
        condition: int = 0,
        stochastic: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.latents, self.stochastic, self.network_name = latents, stochastic, network
        options = dict(options or {})
        self.size = spec.features * math.prod(spec.size or (1,))
        self.is_flat = network == "mlp"
        inputs = InputSpec.of(self.size + condition)
        if not self.is_flat:
            inputs = InputSpec.grid(spec.features + condition, *spec.size)
        count = latents * (2 if stochastic else 1)
        self.encoder = networks.create(
            network, inputs=inputs, outputs=count, generator=generator, **options
        )
        self.decoder = mirror(
            spec, latents + condition, outputs, network, options.get("widths"), generator, options
        )

    def _encoded(self, features: Tensor, condition: Tensor | None) -> Tensor:
        if self.is_flat:
            features = features.reshape(len(features), -1)
            if condition is not None:
                features = torch.cat([features, condition.to(features)], 1)
        elif condition is not None:
            planes = condition.to(features).reshape(*condition.shape, *[1] * (features.ndim - 2))
            planes = planes.expand(*condition.shape, *features.shape[2:])
            features = torch.cat([features, planes], 1)
        found: Tensor = self.encoder(features)
        return found

    def encode(self, features: Tensor, condition: Tensor | None) -> Tensor:
        """The latents, or their mean."""
        return self._encoded(features, condition)[:, : self.latents]

    def posterior(self, features: Tensor, condition: Tensor | None) -> tuple[Tensor, Tensor]:
        """Mean and logarithm of the scale of the latents."""
        mean, log_scale = self._encoded(features, condition).chunk(2, 1)
        return mean, log_scale.clamp(-8.0, 4.0)

    def decode(self, latents: Tensor, condition: Tensor | None) -> Tensor:
        """Raw numbers of the examples."""
        if condition is not None:
            latents = torch.cat([latents, condition.to(latents)], 1)
        found: Tensor = self.decoder(latents)
        return found

    def forward(self, features: Tensor, condition: Tensor | None = None) -> Tensor:
        return self.decode(self.encode(features, condition), condition)


def mirror(
    spec: InputSpec,
    inputs: int,
    outputs: int,
    network: str,
    widths: Sequence[int] | None,
    generator: torch.Generator | None,
    options: Mapping[str, Any] | None = None,
) -> nn.Module:
    """A decoder that goes the way of an encoder backwards: an mlp, or convolutions."""
    if network == "mlp":
        kept = {k: v for k, v in dict(options or {}).items() if k != "widths"}
        own = {"output_scale": 1.0, **kept, "widths": list(reversed(widths or (256, 256)))}
        made: nn.Module = networks.create(
            "mlp", inputs=inputs, outputs=outputs, generator=generator, **own
        )
        return made
    return ConvolutionalDecoder(spec, inputs, outputs)


class ConvolutionalDecoder(nn.Module):
    """Latents as a coarse grid, enlarged twice by convolutions: for signals, images, volumes.

    Args:
        spec: of the grids.
        inputs: numbers of the code.
        outputs: raw numbers of an example, a multiple of the number of its values.
        channels: where the grid is whole; twice and four times as many before.

    Shapes:
        - latents: ``(B, inputs)``.
        - returns: ``(B, outputs)``, the numbers of a value beside each other.
    """

    def __init__(
        self, spec: InputSpec, inputs: int, outputs: int, channels: int = CHANNELS
    ) -> None:
        super().__init__()
        axes = len(spec.size)
        conv = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}[axes]
        self.sizes = [tuple(-(-side // factor) for side in spec.size) for factor in (4, 2, 1)]
        self.channels, self.features = channels, spec.features
        self.first = nn.Linear(inputs, 4 * channels * math.prod(self.sizes[0]))
        self.each = outputs // (spec.features * math.prod(spec.size))
        self.blocks = nn.ModuleList(
            [
                conv(4 * channels, 2 * channels, 3, padding=1),
                conv(2 * channels, channels, 3, padding=1),
                conv(channels, spec.features * self.each, 3, padding=1),
            ]
        )

    def forward(self, latents: Tensor) -> Tensor:
        act = nn.functional.silu
        h = act(self.first(latents)).reshape(len(latents), 4 * self.channels, *self.sizes[0])
        for block, size in zip(self.blocks[:2], self.sizes[1:], strict=True):
            h = act(block(nn.functional.interpolate(h, size=size)))  # (B, C, *size)
        raw = self.blocks[2](h)  # (B, C * P, *size)
        raw = raw.reshape(len(raw), self.features, self.each, -1).movedim(2, -1)
        found: Tensor = raw.reshape(len(raw), -1)  # (B, C * values * P)
        return found
