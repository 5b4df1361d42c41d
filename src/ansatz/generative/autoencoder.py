"""Autoencoders: a code of few numbers, and the likelihood of the example given its code."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from ansatz.data import Batch
from ansatz.errors import UsageError
from ansatz.generative.coding import Coding, GridCoding
from ansatz.generative.columns import Decoded, fit_decoded, load_decoded
from ansatz.generative.contract import Density, Examples, Generator
from ansatz.generative.decoder import Autoencoding
from ansatz.generative.normal_law import NormalLaw, covariance_of
from ansatz.generative.objectives import Evidence, Reconstruction, log_ratio
from ansatz.generative.simple import averaged
from ansatz.generative.training import train
from ansatz.seeds import derive, generator
from ansatz.storage import load_into
from ansatz.training import History

if TYPE_CHECKING:
    from ansatz.fitting.task import TrainingPlan

ROUNDS = 30  # of imputation: from missing values to latents and back
OF_TABLES = {"latents": 16, "widths": (256, 256)}
OF_GRIDS = {"latents": 40, "widths": (500, 500)}


class _Coded(Generator):
    """What generators with an encoder and a decoder share."""

    has_latents: ClassVar[bool] = True
    trains: ClassVar[bool] = True
    stochastic: ClassVar[bool] = True
    network: Autoencoding
    decoded: Decoded

    def __init__(
        self,
        latents: int | None,
        widths: Sequence[int] | None,
        activation: str,
        **own: Any,
    ) -> None:
        if latents is not None and latents < 1:
            raise UsageError(f"latents of {self.name} must be 1 or more, got {latents}.")
        given = {"latents": latents, "widths": None if widths is None else list(widths), **own}
        given["activation"] = activation
        self.options = {name: value for name, value in given.items() if value is not None}

    def _objective(self, seed: int) -> nn.Module:
        raise TypeError(f"{type(self).__name__} does not define its objective.")

    def fit(self, examples: Examples, held_out: Examples | None, plan: "TrainingPlan") -> History:
        self.coding, self.given_coding = examples.coding, examples.given_coding
        asked = plan.options.get("laws")
        self.decoded = fit_decoded(self.coding, examples.codes, asked)
        self.encoder_name = plan.network_name
        self.encoder_options = {} if self.encoder_name == "mlp" else dict(plan.network_options)
        self.network = self._build(plan.seed)
        rng = generator(derive(plan.seed, "targets"))
        rows = self._batch(examples, rng)
        stop = None if held_out is None else self._batch(held_out, rng)
        history = train(self.network, self._objective(plan.seed), rows, stop, plan)
        self.network.eval()
        with torch.no_grad():
            some = examples.take(slice(0, 10_000))
            latents = self.encode(some.codes, some.given)
            weight = some.weight.double()
            mean, covariance = covariance_of(latents, weight)
        self.law = NormalLaw(mean, covariance)
        return history

    def _build(self, seed: int) -> Autoencoding:
        sizes: dict[str, Any] = OF_GRIDS if isinstance(self.coding, GridCoding) else OF_TABLES
        options: dict[str, Any] = dict(self.encoder_options)
        if self.encoder_name == "mlp":
            options["widths"] = list(self.options.get("widths", sizes["widths"]))
            options["activation"] = self.options["activation"]
        condition = 0 if self.given_coding is None else self.given_coding.spec.features
        return Autoencoding(
            self.coding.spec,
            int(self.options.get("latents", sizes["latents"])),
            self.decoded.outputs,
            network=self.encoder_name,
            options=options,
            condition=condition,
            stochastic=self.stochastic,
            generator=generator(seed, "init"),
        ).float()

    def _batch(self, examples: Examples, rng: torch.Generator) -> Batch:
        """Features, targets and condition of all examples; grids are encoded batch by batch."""
        codes = examples.codes
        features = codes if isinstance(self.coding, GridCoding) else self._features(codes)
        inputs: tuple[Tensor, ...] = (features, self.decoded.targets(codes, rng))
        condition = examples.condition
        if condition is not None:
            inputs = (*inputs, condition.float())
        weight = examples.weight.float()
        return Batch(inputs, torch.zeros(len(weight)), weight, None, torch.arange(len(weight)))

    def _features(self, codes: Tensor) -> Tensor:
        return self.coding.features(codes).float()

    def _condition(self, given: Tensor | None) -> Tensor | None:
        if self.given_coding is None:
            return None
        if given is None:
            raise UsageError("this model is of x given other columns: pass given as well.")
        return self.given_coding.features(given).float()

    @property
    def parameters(self) -> int:
        return sum(each.numel() for each in self.network.parameters())

    def encode(self, codes: Tensor, given: Tensor | None) -> Tensor:
        with torch.no_grad():
            return self.network.encode(self._features(codes), self._condition(given)).double()

    def decode(self, latents: Tensor, given: Tensor | None) -> Tensor:
        with torch.no_grad():
            raw = self.network.decode(latents.float(), self._condition(given))
            return self.decoded.mean(raw)

    def sample(self, count: int, given: Tensor | None, rng: torch.Generator) -> Tensor:
        latents = self._prior(count, rng)
        with torch.no_grad():
            raw = self.network.decode(latents.float(), self._condition(given))
            return self.decoded.draw(raw, rng)

    def _prior(self, count: int, rng: torch.Generator) -> Tensor:
        return torch.randn(count, self.network.latents, generator=rng)

    def impute(self, codes: Tensor, given: Tensor | None, rng: torch.Generator) -> Tensor:
        """A chain from missing values to latents and back, of 30 rounds."""
        gone, condition = codes.isnan(), self._condition(given)
        filled = codes
        with torch.no_grad():
            for _ in range(ROUNDS):
                latents = self._posterior_draw(self._features(filled), condition, rng)
                drawn = self.decoded.draw(self.network.decode(latents, condition), rng)
                filled = torch.where(gone, drawn.to(codes), codes)
        return filled

    def _posterior_draw(
        self, features: Tensor, condition: Tensor | None, rng: torch.Generator
    ) -> Tensor:
        return self.network.encode(features, condition)

    def record(self) -> dict[str, Any]:
        return {
            "decoded": self.decoded.record(),
            "encoder": {"name": self.encoder_name, "options": self.encoder_options},
        }

    def tensors(self) -> dict[str, Tensor]:
        found = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        return {**found, "mean": self.law.mean, "covariance": self.law.covariance}

    def load(
        self,
        coding: Coding,
        given_coding: Coding | None,
        record: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
    ) -> None:
        self.coding, self.given_coding = coding, given_coding
        self.decoded = load_decoded(coding, record["decoded"])
        self.encoder_name = record["encoder"]["name"]
        self.encoder_options = dict(record["encoder"]["options"])
        self.network = self._build(0)
        prefix = "network."
        own = {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
        load_into(self.network, own, where=self.name)
        self.network.eval()
        self.law = NormalLaw(tensors["mean"], tensors["covariance"])


class Autoencoder(_Coded):
    r"""An encoder and a decoder; new examples come from a normal distribution of the codes.

    .. math:: \min -\log p(x \mid d(e(x))), \qquad u \sim N(\bar u, S_u)

    A linear one with normal numbers spans the principal components. It has no density.

    Args:
        latents: numbers of the code; 16 for tables and 40 for grids if not given.
        widths: hidden units of an ``mlp`` encoder; of the decoder backwards.
        activation: of an ``mlp``; ``"identity"`` makes it linear.
        noise: standard deviation of noise on the features, in training (denoising).
        sparsity: price of the absolute values of the code.

    Example:
        >>> import numpy as np
        >>> from ansatz import Synthesizer
        >>> x = np.random.default_rng(0).normal(size=(60, 3)) @ np.ones((3, 3))
        >>> options = {"latents": 1, "widths": [8]}
        >>> model = Synthesizer("autoencoder", generator_options=options, steps=20).fit(x)
        >>> model.transform(x).shape
        (60, 1)

    References:
        Baldi and Hornik (1989), Neural networks and principal component analysis.
        https://doi.org/10.1016/0893-6080(89)90014-2
    """

    name: ClassVar[str] = "autoencoder"
    has_density: ClassVar[bool] = False
    stochastic: ClassVar[bool] = False

    def __init__(
        self,
        *,
        latents: int | None = None,
        widths: Sequence[int] | None = None,
        activation: str = "silu",
        noise: float = 0.0,
        sparsity: float = 0.0,
    ) -> None:
        if noise < 0 or sparsity < 0:
            raise UsageError("noise and sparsity of autoencoder must be 0 or more.")
        super().__init__(latents, widths, activation, noise=noise, sparsity=sparsity)

    def _objective(self, seed: int) -> nn.Module:
        own = {name: float(self.options[name]) for name in ("noise", "sparsity")}
        return _Unfeatured(self.coding, Reconstruction(self.decoded, **own, seed=seed))

    def _prior(self, count: int, rng: torch.Generator) -> Tensor:
        return self.law.sample(count, rng)


class VariationalAutoencoder(_Coded):
    r"""A latent normal variable decoded by a network, trained by a bound on log p(x).

    .. math:: p(x) = \int p(x \mid u) N(u; 0, I)\, du

    ``score_samples`` averages draws of :math:`u \sim q(u \mid x)` (importance weights): a lower
    bound that grows with their number.

    Args:
        latents: numbers of u; 16 for tables and 40 for grids if not given.
        widths: hidden units of an ``mlp`` encoder; of the decoder backwards.
        activation: of an ``mlp``; ``"identity"`` makes it linear.
        beta: weight of the divergence of q from the prior in training.
        free_bits: nats of each latent that cost nothing in training.
        draws: of the importance-weighted bound in training.

    Example:
        >>> import numpy as np
        >>> from ansatz import Synthesizer
        >>> x = np.random.default_rng(0).normal(size=(60, 3))
        >>> options = {"latents": 2, "widths": [8]}
        >>> model = Synthesizer("vae", generator_options=options, steps=20).fit(x)
        >>> model.score_samples(x).shape, model.sample(4).shape
        ((60,), (4, 3))

    References:
        Kingma and Welling (2014), Auto-encoding variational Bayes. https://arxiv.org/abs/1312.6114
    """

    name: ClassVar[str] = "vae"

    def __init__(
        self,
        *,
        latents: int | None = None,
        widths: Sequence[int] | None = None,
        activation: str = "silu",
        beta: float = 1.0,
        free_bits: float = 0.0,
        draws: int = 1,
    ) -> None:
        if beta < 0 or free_bits < 0 or draws < 1:
            raise UsageError("vae: beta and free_bits must be 0 or more, draws 1 or more.")
        if draws > 1 and (beta != 1.0 or free_bits):
            raise UsageError("vae: draws > 1 is a bound of log p(x), with beta 1 and no free bits.")
        super().__init__(latents, widths, activation, beta=beta, free_bits=free_bits, draws=draws)

    def _objective(self, seed: int) -> nn.Module:
        own = {name: self.options[name] for name in ("beta", "free_bits", "draws")}
        return _Unfeatured(self.coding, Evidence(self.decoded, **own, seed=seed))

    def log_density(
        self, codes: Tensor, given: Tensor | None, rng: torch.Generator, *, draws: int = 16
    ) -> Density:
        features, condition = self._features(codes), self._condition(given)
        terms = []
        with torch.no_grad():
            mean, log_scale = self.network.posterior(features, condition)
            uniform = None
            if codes.ndim > 2:  # one binarised or dequantised image for all draws
                size = math.prod(codes.shape[1:])
                uniform = torch.rand(len(codes), size, generator=rng, dtype=mean.dtype)
            targets = self.decoded.targets(codes, rng)
            for _ in range(max(draws, 1)):
                noise = torch.randn(mean.shape, generator=rng, dtype=mean.dtype)
                latents = mean + log_scale.exp() * noise
                raw = self.network.decode(latents, condition)
                loss = self.decoded.loss(raw, targets, uniform)
                terms.append((log_ratio(latents, noise, log_scale) - loss).double())
        return averaged(torch.stack(terms))

    def bound(self, codes: Tensor, given: Tensor | None, rng: torch.Generator) -> Tensor:
        """The evidence lower bound of each row with one draw, ``(N,)``."""
        return self.log_density(codes, given, rng, draws=1).value

    def _posterior_draw(
        self, features: Tensor, condition: Tensor | None, rng: torch.Generator
    ) -> Tensor:
        mean, log_scale = self.network.posterior(features, condition)
        return mean + log_scale.exp() * torch.randn(mean.shape, generator=rng, dtype=mean.dtype)


class _Unfeatured(nn.Module):
    """An objective of features, for batches of grids that are scaled when they are used."""

    def __init__(self, coding: Coding, objective: nn.Module) -> None:
        super().__init__()
        self.coding, self.objective = coding, objective

    def _scaled(self, batch: Batch) -> Batch:
        if not isinstance(self.coding, GridCoding):
            return batch
        codes, *rest = batch.inputs
        return batch._replace(inputs=(self.coding.features(codes), *rest))

    def forward(self, network: nn.Module, batch: Batch) -> Any:
        return self.objective(network, self._scaled(batch))

    def evaluate(self, network: nn.Module, batch: Batch) -> Any:
        """Computes the loss without noise in training's sense."""
        return self.objective.evaluate(network, self._scaled(batch))  # type: ignore[operator]
