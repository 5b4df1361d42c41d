"""What autoencoders minimise: reconstruction, and the evidence lower bound."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from ansatz.data import Batch
from ansatz.generative.columns import Decoded
from ansatz.generative.training import row_noise, row_uniform
from ansatz.seeds import derive
from ansatz.training import Loss


class Reconstruction(nn.Module):
    r"""-log p(x | decode(encode(x + noise))), with a price on active latents.

    .. math:: -\log p(x \mid d(e(\tilde x))) + \lambda \sum_j |u_j|

    Args:
        decoded: the likelihood of examples.
        noise: standard deviation of the noise that is added to the features, in training only.
        sparsity: the price :math:`\lambda`.
        seed: of the noise of validation.

    References:
        Vincent et al. (2008), Extracting and composing robust features with denoising autoencoders.
        https://doi.org/10.1145/1390156.1390294
    """

    def __init__(
        self, decoded: Decoded, *, noise: float = 0.0, sparsity: float = 0.0, seed: int = 0
    ) -> None:
        super().__init__()
        self.decoded, self.noise, self.sparsity, self.seed = decoded, noise, sparsity, seed

    def forward(self, network: Any, batch: Batch) -> Loss:
        features, targets, condition = parts_of(batch)
        if self.noise:
            features = features + self.noise * torch.randn_like(features)
        return self._loss(network, (features, targets, condition), batch, None)

    def evaluate(self, network: Any, batch: Batch) -> Loss:
        """Computes the loss without noise; pixels are drawn by (seed, row)."""
        targets = parts_of(batch)[1]
        uniform = pixel_noise(batch, targets, self.seed)
        return self._loss(network, parts_of(batch), batch, uniform)

    def _loss(self, network: Any, parts: Any, batch: Batch, uniform: Tensor | None) -> Loss:
        features, targets, condition = parts
        latents = network.encode(features, condition)
        terms = self.decoded.loss(network.decode(latents, condition), targets, uniform)
        if self.sparsity:
            terms = terms + self.sparsity * latents.abs().sum(1)
        return Loss((terms * batch.weight).sum(), batch.weight.sum())


class Evidence(nn.Module):
    r"""The negative evidence lower bound, or its importance-weighted form.

    .. math:: -\log p(x) \le -E_q[\log p(x \mid u)]
              + \beta\, \mathrm{KL}(q(u \mid x) \,\|\, N(0, I))

    with :math:`q = N(\mu(x), \sigma^2(x))` and draws :math:`u = \mu + \sigma \varepsilon`. With K
    draws it is :math:`-E \log \frac{1}{K} \sum_k p(x, u_k) / q(u_k \mid x)`, which is tighter.

    Args:
        decoded: the likelihood of examples.
        beta: weight of the divergence.
        free_bits: nats of each latent that cost nothing, on the mean of a batch.
        draws: K.
        seed: of the noise of validation, a function of (seed, row).

    References:
        Kingma and Welling (2014), Auto-encoding variational Bayes. https://arxiv.org/abs/1312.6114
        Burda et al. (2016), Importance weighted autoencoders. https://arxiv.org/abs/1509.00519
        Kingma et al. (2016), Improved variational inference with inverse autoregressive flow, C.8.
    """

    def __init__(
        self,
        decoded: Decoded,
        *,
        beta: float = 1.0,
        free_bits: float = 0.0,
        draws: int = 1,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.decoded, self.beta, self.free_bits = decoded, beta, free_bits
        self.draws, self.seed = draws, seed

    def forward(self, network: Any, batch: Batch) -> Loss:
        features, targets, condition = parts_of(batch)
        mean, log_scale = network.posterior(features, condition)
        if self.draws > 1 and self.beta == 1.0:
            weights = torch.stack(
                [
                    self._log_weight(network, batch, mean, log_scale, torch.randn_like(mean))
                    for _ in range(self.draws)
                ]
            )
            terms = math.log(self.draws) - weights.logsumexp(0)
            return Loss((terms * batch.weight).sum(), batch.weight.sum())
        latents = mean + log_scale.exp() * torch.randn_like(mean)
        terms = self.decoded.loss(network.decode(latents, condition), targets, None)
        divergence = kl_to_standard(mean, log_scale)  # (B, L)
        total = (terms * batch.weight).sum()
        mass = batch.weight.sum()
        if self.free_bits:
            per_latent = (divergence * batch.weight.unsqueeze(1)).sum(0) / mass
            price = per_latent.clamp(min=self.free_bits).sum() * mass
        else:
            price = (divergence.sum(1) * batch.weight).sum()
        return Loss(total + self.beta * price, mass)

    def evaluate(self, network: Any, batch: Batch) -> Loss:
        """Computes the plain bound with one draw, a function of (seed, row)."""
        features, targets, condition = parts_of(batch)
        mean, log_scale = network.posterior(features, condition)
        noise = row_noise(batch.index, mean.shape[1], self.seed).to(mean)
        uniform = pixel_noise(batch, targets, self.seed)
        raw = network.decode(mean + log_scale.exp() * noise, condition)
        terms = self.decoded.loss(raw, targets, uniform) + kl_to_standard(mean, log_scale).sum(1)
        return Loss((terms * batch.weight).sum(), batch.weight.sum())

    def _log_weight(
        self, network: Any, batch: Batch, mean: Tensor, log_scale: Tensor, noise: Tensor
    ) -> Tensor:
        """log p(x, u) - log q(u | x) at u = mean + scale * noise, ``(B,)``."""
        _, targets, condition = parts_of(batch)
        latents = mean + log_scale.exp() * noise
        raw = network.decode(latents, condition)
        return log_ratio(latents, noise, log_scale) - self.decoded.loss(raw, targets, None)


def kl_to_standard(mean: Tensor, log_scale: Tensor) -> Tensor:
    r"""KL(N(m, s^2) || N(0, 1)) of each latent: :math:`(m^2 + s^2 - 1) / 2 - \log s`.

    Example:
        >>> import torch
        >>> from ansatz.generative.objectives import kl_to_standard
        >>> kl_to_standard(torch.tensor([1.0]), torch.tensor([0.0])).item()
        0.5
    """
    return 0.5 * (mean.square() + (2 * log_scale).exp() - 1) - log_scale


def kl_of_normals(mean: Tensor, scale: Tensor, other: Tensor, other_scale: Tensor) -> Tensor:
    r"""KL(N(m, s^2) || N(n, t^2)) = :math:`\log (t / s) + (s^2 + (m - n)^2) / (2 t^2) - 1/2`.

    Example:
        >>> import torch
        >>> from ansatz.generative.objectives import kl_of_normals
        >>> one, zero = torch.ones(1), torch.zeros(1)
        >>> kl_of_normals(one, one, zero, one).item()
        0.5
    """
    ratio = (scale.square() + (mean - other).square()) / (2 * other_scale.square())
    return (other_scale / scale).log() + ratio - 0.5


def log_ratio(latents: Tensor, noise: Tensor, log_scale: Tensor) -> Tensor:
    """log N(u; 0, I) - log q(u | x) where u = mean + scale * noise, ``(B,)``."""
    return (0.5 * (noise.square() - latents.square()) + log_scale).sum(-1)


def parts_of(batch: Batch) -> tuple[Tensor, Tensor, Tensor | None]:
    """Features, targets and the condition of a batch."""
    features, targets, *rest = batch.inputs
    return features, targets, rest[0] if rest else None


def pixel_noise(batch: Batch, targets: Tensor, seed: int) -> Tensor | None:
    """Uniform numbers for the pixels of grids, a function of (seed, row); None for tables."""
    if targets.ndim == 3:
        return None
    size = math.prod(targets.shape[1:])
    return row_uniform(batch.index, size, derive(seed, "pixels")).float()
