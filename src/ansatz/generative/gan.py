"""Generative adversarial networks: one draws examples, another tells them from real ones."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus
from torch.nn.utils.parametrizations import spectral_norm as with_spectral_norm

from ansatz import networks
from ansatz.data import Batch
from ansatz.errors import UsageError
from ansatz.generative.coding import Coding
from ansatz.generative.contract import Examples, Generator
from ansatz.generative.diffusion.space import PixelSpace, fit_space, load_space
from ansatz.generative.distances import energy_distance
from ansatz.generative.training import row_noise, train
from ansatz.layers.mode import evaluation_mode
from ansatz.seeds import derive
from ansatz.seeds import generator as seeded
from ansatz.storage import load_into
from ansatz.training import GameStep, History, Loss, Player
from ansatz.training.game_step import Mode

if TYPE_CHECKING:
    from ansatz.fitting.task import TrainingPlan

GameLoss = Literal["non_saturating", "minimax", "wasserstein"]
CHUNK = 512  # examples drawn at once
COLLAPSED = 0.1  # variance of samples, as a share of the data's, below which they are all alike


class Game(nn.Module):
    r"""The two networks, and the losses of a game between them.

    .. math:: \text{minimax: } \min_G \max_D\; E \log\sigma(D(x)) + E \log(1 - \sigma(D(G(z))))

    ``"non_saturating"``: G maximises :math:`E \log\sigma(D(G(z)))` instead, whose gradient does not
    vanish where D is sure. ``"wasserstein"``: :math:`\max_D E D(x) - E D(G(z))`, whose D must be
    1-Lipschitz. The penalty of D is :math:`\gamma E (\|\nabla D(\hat x)\| - 1)^2` between real and
    drawn examples for ``"wasserstein"``, and :math:`\gamma/2\, E \|\nabla D(x)\|^2` at real ones
    for the others.

    Args:
        generator: G, ``generator(z, given)``.
        discriminator: D, ``discriminator(x, given)``; patches are averaged.
        latents: numbers of z.
        loss: see above.
        penalty: :math:`\gamma`.

    References:
        Goodfellow et al. (2014), Generative adversarial nets. https://arxiv.org/abs/1406.2661;
        Gulrajani et al. (2017), Improved training of Wasserstein GANs.
        https://arxiv.org/abs/1704.00028; Mescheder et al. (2018), Which training methods for GANs
        do actually converge? eq. 9. https://arxiv.org/abs/1801.04406
    """

    def __init__(
        self,
        generator: nn.Module,
        discriminator: nn.Module,
        latents: int,
        loss: GameLoss,
        penalty: float,
    ) -> None:
        super().__init__()
        self.generator, self.discriminator, self.latents = generator, discriminator, latents
        self.loss, self.penalty = loss, penalty

    def drawn(self, batch: Batch, z: Tensor | None = None) -> Tensor:
        """Examples like those of a batch, from new noise or from z."""
        if z is None:
            z = torch.randn(len(batch.weight), self.latents).to(batch.inputs[0])
        found: Tensor = self.generator(z, *batch.inputs[1:])
        return found

    def score(self, x: Tensor, batch: Batch) -> Tensor:
        """D, one number for each example."""
        found: Tensor = self.discriminator(x, *batch.inputs[1:]).flatten(1).mean(1)
        return found

    def generator_loss(self, batch: Batch) -> Tensor:
        """The loss of G."""
        score = self.score(self.drawn(batch), batch)
        terms = {
            "non_saturating": softplus(-score),
            "minimax": -softplus(score),
            "wasserstein": -score,
        }[self.loss]
        return _mean(terms, batch)

    def discriminator_loss(self, batch: Batch) -> Tensor:
        """The loss of D, with its penalty."""
        real = batch.inputs[0]
        with torch.no_grad():
            drawn = self.drawn(batch)
        of_real, of_drawn = self.score(real, batch), self.score(drawn, batch)
        if self.loss == "wasserstein":
            terms = of_drawn - of_real
        else:
            terms = softplus(-of_real) + softplus(of_drawn)
        if self.penalty:
            terms = terms + self.penalty * self._steepness(real, drawn, batch)
        return _mean(terms, batch)

    def _steepness(self, real: Tensor, drawn: Tensor, batch: Batch) -> Tensor:
        at = real
        if self.loss == "wasserstein":
            share = torch.rand(len(real), *(1,) * (real.ndim - 1)).to(real)
            at = share * real + (1 - share) * drawn
        at = at.detach().requires_grad_()
        (slope,) = torch.autograd.grad(self.score(at, batch).sum(), at, create_graph=True)
        square = slope.flatten(1).square().sum(1)
        if self.loss == "wasserstein":
            return ((square + 1e-12).sqrt() - 1) ** 2
        return square / 2


class Distance(nn.Module):
    """The energy distance of held-out examples and as many drawn ones, which stops a training.

    Args:
        seed: of the noise, a function of (seed, row).
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed

    def forward(self, network: Any, batch: Batch) -> Loss:
        game: Game = network
        drawn = game.drawn(batch, row_noise(batch.index, game.latents, self.seed))
        count = batch.weight.sum()
        return Loss(energy_distance(batch.inputs[0], drawn, scaled=False) * count, count)


class _Scaled(nn.Module):
    """Gives the parts of a game batches whose codes are numbers of the space."""

    def __init__(self, space: Any, inner: Any) -> None:
        super().__init__()
        self.space, self.inner = space, inner

    def forward(self, network: Any, batch: Batch) -> Any:
        codes, *rest = batch.inputs
        if isinstance(self.space, PixelSpace):
            codes = self.space.plain(codes)
        x = codes.float().nan_to_num(0.0)
        return self.inner(network, batch._replace(inputs=(x, *rest)))


class GenerativeAdversarial(Generator):
    """A game: one network draws examples from noise, another learns to tell them from real ones.

    Images are drawn by ``dcgan`` and looked at by ``patchgan``, tables by perceptrons on normal
    scores and one-hot levels. A training is stopped by the energy distance of held-out examples
    and drawn ones, never by a player's loss. There is no density.

    Args:
        loss: ``"non_saturating"``, ``"minimax"`` or ``"wasserstein"``; see :class:`Game`.
        gradient_penalty: weight of the penalty of steep answers; 10 for ``"wasserstein"``, else 1.
        spectral_norm: whether the discriminator is Lipschitz by its weights.
        latents: numbers of the noise; 64 for grids, 32 for tables.
        width: channels, or hidden units, of both networks; 32 or 256.
        updates: moves of the discriminator and of the generator in each step.
        mode: ``"alternating"``, ``"simultaneous"`` or ``"extragradient"``.
        rate: learning rate of both Adam optimizers; 2e-4 for grids, 1e-3 for tables.

    Example:
        >>> from ansatz import generative
        >>> generative.create("gan", loss="wasserstein").options["gradient_penalty"]
        10.0

    References:
        Goodfellow et al. (2014), Generative adversarial nets. https://arxiv.org/abs/1406.2661
    """

    name: ClassVar[str] = "gan"
    trains: ClassVar[bool] = True
    has_density: ClassVar[bool] = False

    def __init__(
        self,
        *,
        loss: GameLoss = "non_saturating",
        gradient_penalty: float | None = None,
        spectral_norm: bool = False,
        latents: int | None = None,
        width: int | None = None,
        updates: Sequence[int] = (1, 1),
        mode: Mode = "alternating",
        rate: float | None = None,
    ) -> None:
        if loss not in get_args(GameLoss):
            known = ", ".join(get_args(GameLoss))
            raise UsageError(f"loss of gan must be one of {known}, got {loss!r}.")
        if gradient_penalty is None:
            gradient_penalty = 10.0 if loss == "wasserstein" else 1.0
        if gradient_penalty < 0 or (rate is not None and not rate > 0):
            raise UsageError("gan: gradient_penalty must be 0 or more, rate positive.")
        self.options = {
            "loss": loss, "gradient_penalty": float(gradient_penalty), "latents": latents,
            "spectral_norm": bool(spectral_norm), "width": width, "updates": list(updates),
            "mode": mode, "rate": rate,
        }  # fmt: skip

    def fit(self, examples: Examples, held_out: Examples | None, plan: "TrainingPlan") -> History:
        """Plays the game; the generator is an exponential average over its steps."""
        self.space, self.given_coding = fit_space(examples), examples.given_coding
        self.coding, condition = examples.coding, examples.condition
        self.condition = 0 if condition is None else condition.shape[1]
        rng = seeded(plan.seed, "init")
        network = self._generator(rng)
        game = Game(
            network,
            self._discriminator(rng),
            self.latents,
            self.options["loss"],
            self.options["gradient_penalty"],
        ).float()
        if not isinstance(self.space, PixelSpace):
            scores = seeded(plan.seed, "scores")
            examples = examples._replace(codes=self.space.into(examples.codes, scores)[0])
            if held_out is not None:
                held_out = held_out._replace(codes=self.space.into(held_out.codes, scores)[0])
        rate = self.options["rate"] or (2e-4 if self.space.spec.size else 1e-3)
        betas = (0.5, 0.999)
        losses = (
            (game.discriminator, Game.discriminator_loss),
            (game.generator, Game.generator_loss),
        )
        players = [
            Player(
                name,
                torch.optim.Adam(network.parameters(), lr=rate, betas=betas),
                _Scaled(self.space, loss),
            )
            for name, (network, loss) in zip(("discriminator", "generator"), losses, strict=True)
        ]
        objective = _Scaled(self.space, Distance(derive(plan.seed, "distance")))
        updates, mode = self.options["updates"], self.options["mode"]
        step = GameStep(game, objective, players, updates=updates, mode=mode)
        # The distance of two small samples is noisy: all steps are taken, the best are kept.
        kept = {"average": plan.recipe.average or "ema", "patience": plan.recipe.evaluations}
        recipe = plan.recipe.model_copy(update=kept)
        plan = plan._replace(recipe=recipe)
        history = train(game, objective, examples, held_out, plan, step=step)
        self.network = game.generator.eval()
        self.share = self._share_of_variance(examples, derive(plan.seed, "collapse"))
        return history

    @property
    def latents(self) -> int:
        """The number of numbers of the noise."""
        return int(self.options["latents"] or (64 if self.space.spec.size else 32))

    def _generator(self, rng: torch.Generator | None) -> nn.Module:
        spec, width = self.space.spec, self.options["width"]
        if spec.size:
            own = {"size": spec.size, "width": width or 32, "classes": self.condition}
            return networks.create("dcgan", self.latents, spec.features, generator=rng, **own)
        count = self.latents + self.condition
        return _OfVectors(self._perceptron(count, spec.features, rng))

    def _discriminator(self, rng: torch.Generator | None) -> nn.Module:
        spec, width, bounded = self.space.spec, self.options["width"], self.options["spectral_norm"]
        if spec.size:
            own = {"width": width or 32, "classes": self.condition, "spectral_norm": bounded}
            own["depth"] = min(3, min(spec.size).bit_length() - 1)
            return networks.create("patchgan", spec, 1, generator=rng, **own)
        found = self._perceptron(spec.features + self.condition, 1, rng)
        if bounded:
            for part in found.modules():
                if isinstance(part, nn.Linear):
                    with_spectral_norm(part)
        return _OfVectors(found)

    def _perceptron(self, inputs: int, outputs: int, rng: torch.Generator | None) -> nn.Module:
        widths = [self.options["width"] or 256] * 2
        return networks.create(
            "mlp", inputs, outputs, widths=widths, activation="silu", generator=rng
        )

    def _share_of_variance(self, examples: Examples, seed: int) -> float:
        """The variance of drawn examples as a share of that of real ones."""
        real = examples.codes[:CHUNK].float()
        if isinstance(self.space, PixelSpace):
            real = self.space.plain(examples.codes[:CHUNK])
        given = None if examples.given is None else examples.given[: len(real)]
        drawn = self._numbers(len(real), given, seeded(seed))
        of_real = real.flatten(1).nan_to_num(0.0).var(0).sum()
        return float(drawn.flatten(1).var(0).sum() / of_real.clamp(min=1e-12))

    def sample(self, count: int, given: Tensor | None, rng: torch.Generator) -> Tensor:
        return self.space.back(self._numbers(count, given, rng))

    @torch.no_grad()
    def _numbers(self, count: int, given: Tensor | None, rng: torch.Generator) -> Tensor:
        condition: tuple[Tensor, ...] = ()
        if self.given_coding is not None:
            if given is None:
                raise UsageError("this model is of x given other columns: pass given as well.")
            condition = (self.given_coding.features(given).float(),)
        z = torch.randn(count, self.latents, generator=rng, dtype=torch.float32)
        with evaluation_mode(self.network):
            found = [
                self.network(*(each[k : k + CHUNK] for each in (z, *condition)))
                for k in range(0, max(count, 1), CHUNK)
            ]
        return torch.cat(found)

    @property
    def parameters(self) -> int:
        return sum(each.numel() for each in self.network.parameters())

    def notes(self) -> list[str]:
        """Names a collapse."""
        if self.share >= COLLAPSED:
            return []
        return [
            f"the game collapsed: samples vary by {self.share:.1%} of the variance of the data. "
            "Try --generator-option loss=wasserstein, or a larger gradient_penalty."
        ]

    def record(self) -> dict[str, Any]:
        return {"space": self.space.record(), "condition": self.condition, "share": self.share}

    def tensors(self) -> dict[str, Tensor]:
        return {f"network.{name}": value for name, value in self.network.state_dict().items()}

    def load(
        self,
        coding: Coding,
        given_coding: Coding | None,
        record: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
    ) -> None:
        self.coding, self.given_coding = coding, given_coding
        self.space = load_space(coding, record["space"])
        self.condition, self.share = int(record["condition"]), float(record["share"])
        self.network = self._generator(None).float().eval()
        own = {name.removeprefix("network."): value for name, value in tensors.items()}
        load_into(self.network, own, where=self.name)


class _OfVectors(nn.Module):
    """A perceptron of a vector and a condition beside it."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor, given: Tensor | None = None) -> Tensor:
        found: Tensor = self.inner(x if given is None else torch.cat([x, given], 1))
        return found


def _mean(terms: Tensor, batch: Batch) -> Tensor:
    return (terms * batch.weight).sum() / batch.weight.sum()
