"""Diffusion as a generator: of images, signals, volumes and tables."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, get_args

import torch
from torch import Tensor, nn

from ansatz import networks
from ansatz.errors import UsageError
from ansatz.generative.coding import Coding, GridCoding
from ansatz.generative.contract import Density, Examples, Generator
from ansatz.generative.diffusion.denoising import NetworkDenoiser, Predict
from ansatz.generative.diffusion.density import continuous_bound
from ansatz.generative.diffusion.masked import DiffusionObjective, KnowingNetwork, with_indicator
from ansatz.generative.diffusion.normal_exact import Moments
from ansatz.generative.diffusion.process import Process, Schedule, Spacing, Weight
from ansatz.generative.diffusion.sampler import draw, samplers
from ansatz.generative.diffusion.space import PixelSpace, fit_space, load_space
from ansatz.generative.training import train
from ansatz.layers.mode import evaluation_mode
from ansatz.seeds import derive

if TYPE_CHECKING:
    from ansatz.fitting.task import TrainingPlan
    from ansatz.training import History

CHUNK = 256  # examples that are drawn at once
MOST_AXES = 1_024  # numbers of an example whose principal axes are computed
OF_MOMENTS = 20_000  # rows that give mean and variances
DENSITY_TIMES, OF_GRIDS = 20, 8  # of the bound on the density
EVALUATED, EVALUATED_GRIDS = 4_000, 256  # rows whose densities an evaluation averages
_EVEN = ("dpm2m", "normal_exact")  # samplers that take equal steps in log SNR


class Diffusion(Generator):
    r"""A diffusion: noise is added to examples, and a network removes it step by step.

    Pixels are scaled to [-1, 1]; columns of numbers become normal scores and levels one number
    each. The network is ``denoising_unet`` on grids and ``denoising_mlp`` on tables; it predicts
    the velocity of a cosine process in continuous time by default, and its weights are averaged
    over the steps. Samples take 20 evaluations of ``normal_exact``; ``sampling`` changes that.

    With ``masked`` (tables by default) half of the training rows show a random part of their
    numbers to the network, which then draws the rest given that part: imputation, inpainting.

    Args:
        schedule: of the noise, see :class:`Process`.
        predict: ``"velocity"``, ``"noise"``, ``"start"`` or ``"score"``.
        weight: ``"simple"``, ``"snr"`` or ``"evidence"``.
        masked: train for missing parts; None for tables alone.
        drop: share of conditions hidden in training, for guidance.
        network: options of the network.

    Example:
        >>> from ansatz import generative
        >>> generative.create("diffusion", predict="noise").name
        'diffusion'

    References:
        Ho, Jain and Abbeel (2020), Denoising diffusion probabilistic models.
        https://arxiv.org/abs/2006.11239
    """

    name: ClassVar[str] = "diffusion"
    trains: ClassVar[bool] = True
    has_density: bool = True  # type: ignore[misc]  # not of a table with levels

    def __init__(
        self,
        *,
        schedule: Schedule = "cosine",
        predict: Predict = "velocity",
        weight: Weight = "simple",
        masked: bool | None = None,
        drop: float = 0.1,
        network: Mapping[str, Any] | None = None,
    ) -> None:
        if predict not in get_args(Predict):
            known = ", ".join(get_args(Predict))
            raise UsageError(f"predict of diffusion must be one of {known}, got {predict!r}.")
        self.options = {
            "schedule": schedule, "predict": predict, "weight": weight, "masked": masked,
            "drop": drop, "network": dict(network or {}),
        }  # fmt: skip
        self.process, self.predict = Process(schedule), predict
        self._sampling: dict[str, Any] = {}

    # --- fitting ---------------------------------------------------------------------------------

    def fit(self, examples: Examples, held_out: Examples | None, plan: "TrainingPlan") -> "History":
        """Trains the network; its weights are an exponential average over the steps."""
        self.space = fit_space(examples)
        self._place(examples.coding, examples.given_coding)
        condition = 0 if examples.condition is None else examples.condition.shape[1] + 1
        self.network = self._make(condition, seed=derive(plan.seed, "weights"))
        rng = torch.Generator().manual_seed(derive(plan.seed, "moments"))
        some = torch.randperm(len(examples.codes), generator=rng)[:OF_MOMENTS]
        x, _ = self.space.into(examples.codes[some], None)
        flat = x.flatten(1)
        flat = torch.where(flat.isnan(), flat.nanmean(0).nan_to_num(0.0), flat)
        self.moments = Moments.of(flat, axes=flat.shape[1] <= MOST_AXES)
        options: dict[str, Any] = {"masked": self.masked, "drop": self.options["drop"]}
        if isinstance(self.space, PixelSpace):
            low, high = self.space.coding.low, self.space.coding.high
            options |= {"scale": 2 / (high - low), "shift": -1 - 2 * low / (high - low)}
        else:
            options["owner"] = self.space.owner  # type: ignore[attr-defined]  # of columns
            examples, held_out = (self._scored(each, plan.seed) for each in (examples, held_out))
        seed = derive(plan.seed, "denoising")
        weight = self.options["weight"]
        objective = DiffusionObjective(self.process, self.predict, weight, seed=seed, **options)
        average = plan.recipe.average or "ema"
        plan = plan._replace(recipe=plan.recipe.model_copy(update={"average": average}))
        history = train(self.network, objective, examples, held_out, plan)
        self.network.eval()
        return history

    def _scored(self, examples: Examples | None, seed: int) -> Any:
        """Examples whose codes are the numbers of the space."""
        if examples is None:
            return None
        rng = torch.Generator().manual_seed(derive(seed, "scores"))
        return examples._replace(codes=self.space.into(examples.codes, rng)[0])

    def _place(self, coding: Coding, given_coding: Coding | None) -> None:
        self.coding, self.given_coding = coding, given_coding
        self.has_density = self.space.has_density
        self.evaluated = EVALUATED_GRIDS if self.space.spec.size else EVALUATED
        masked = self.options["masked"]
        self.masked = not isinstance(coding, GridCoding) if masked is None else bool(masked)

    def _make(self, condition: int, seed: int = 0) -> nn.Module:
        spec: Any = self.space.spec
        self.condition = condition
        options = {"classes": condition, **self.options["network"]}
        name = "denoising_mlp"
        if spec.size:
            name = "denoising_unet"
            # Tiles of 2 x 2 pixels are a quarter of the work, where there are enough of them.
            patch = 2 if min(spec.size) >= 16 else 1
            options = {"widths": (32, 64), "patch": patch, "head_dim": 16, **options}
        parts = 3 if self.masked else 1
        inputs: Any = (parts * spec.features, *spec.size) if spec.size else parts * spec.features
        generator = torch.Generator().manual_seed(seed)
        made = networks.create(name, inputs, spec.features, generator, **options)
        return KnowingNetwork(made) if self.masked else made

    # --- draws -----------------------------------------------------------------------------------

    def sampling(
        self,
        *,
        steps: int | None = None,
        sampler: str | None = None,
        guidance: float | None = None,
        sampler_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Sets how examples are drawn from now on; what is None stays.

        Args:
            steps: of the sampler, 20 at first.
            sampler: by name, ``"normal_exact"`` at first.
            guidance: 0 ignores the condition, 1 follows it, more exaggerates it.
            sampler_options: of the sampler: ``eta``, ``variance``.
        """
        if sampler is not None:
            samplers.get(sampler)
        if steps is not None and (type(steps) is not int or steps < 1):
            raise UsageError(f"steps must be a whole number >= 1, got {steps!r}.")
        if guidance is not None and guidance != 1 and self.given_coding is None:
            raise UsageError(f"guidance={guidance:g} needs a condition: fit with --given COLUMN.")
        found = {
            "steps": steps,
            "sampler": sampler,
            "guidance": guidance,
            "options": sampler_options,
        }
        self._sampling |= {key: value for key, value in found.items() if value is not None}

    def sample(self, count: int, given: Tensor | None, rng: torch.Generator) -> Tensor:
        return self._draw(count, given, rng, None)

    def impute(self, codes: Tensor, given: Tensor | None, rng: torch.Generator) -> Tensor:
        if not self.masked:
            raise UsageError(
                "this diffusion was not trained for missing parts. Fit it with "
                "--generator-option masked=true."
            )
        known, _ = self.space.into(codes, rng)
        drawn = self._draw(len(codes), given, rng, known)
        return torch.where(codes.isnan(), drawn.to(codes), codes)

    @torch.no_grad()
    def _draw(
        self, count: int, given: Tensor | None, rng: torch.Generator, known: Tensor | None
    ) -> Tensor:
        condition = self._condition(given, count)
        name = self._sampling.get("sampler", "normal_exact")
        steps = self._sampling.get("steps", 20)
        spacing: Spacing = "snr" if name in _EVEN else "time"
        options = dict(self._sampling.get("options") or {})
        if name == "normal_exact":
            options["moments"] = self.moments
        sampler = samplers.create(name, self.process, self.process.times(steps, spacing), **options)
        shape = (self.space.spec.features, *self.space.spec.size)
        found = []
        with evaluation_mode(self.network):
            for first in range(0, count, CHUNK):
                part = slice(first, min(first + CHUNK, count))
                denoise = self._denoiser(condition, part, shape, known)
                flat = draw(sampler, denoise, (part.stop - first, math.prod(shape)), generator=rng)
                found.append(self.space.back(flat.reshape(-1, *shape)))
        if not found:
            return self.coding.shaped(torch.zeros(0, math.prod(self.coding.shape)))
        return torch.cat(found)

    def _denoiser(
        self, condition: Tensor | None, part: slice, shape: tuple[int, ...], known: Tensor | None
    ) -> Any:
        """The estimate of the start for flat examples."""
        bounds = (-1.0, 1.0) if isinstance(self.space, PixelSpace) else None
        network = self.network
        if isinstance(network, KnowingNetwork):
            network.known = None if known is None else known[part]
        own = None if condition is None else condition[part]
        guidance = 1.0 if own is None else self._sampling.get("guidance", 1.0)
        inner = NetworkDenoiser(
            network, self.process, self.predict, given=own, guidance=guidance, bounds=bounds
        )

        def denoise(x: Tensor, t: float) -> Tensor:
            return inner(x.reshape(-1, *shape).float(), t).flatten(1).to(x)

        return denoise

    def _condition(self, given: Tensor | None, count: int) -> Tensor | None:
        if not self.condition:
            return None
        if given is None or self.given_coding is None:
            return torch.zeros(count, self.condition)
        return with_indicator(self.given_coding.features(given).float())

    # --- densities -------------------------------------------------------------------------------

    @torch.no_grad()
    def log_density(
        self, codes: Tensor, given: Tensor | None, rng: torch.Generator, *, draws: int = 1
    ) -> Density:
        if not self.space.has_density:
            raise UsageError(
                "diffusion has no density of tables with levels. For one: --generator vae."
            )
        if codes.is_floating_point() and bool(codes.isnan().any()):
            raise UsageError("diffusion has no density of rows with missing values: impute first.")
        condition = self._condition(given, len(codes))
        count = OF_GRIDS if self.space.spec.size else DENSITY_TIMES
        shape = (self.space.spec.features, *self.space.spec.size)
        terms = []
        with evaluation_mode(self.network):
            for _ in range(max(draws, 1)):
                parts = []
                for first in range(0, len(codes), CHUNK):
                    part = slice(first, first + CHUNK)
                    x, volume = self.space.into(codes[part], rng)
                    denoise = self._denoiser(condition, part, shape, None)
                    bound = continuous_bound(
                        denoise, self.process, x.flatten(1).double(), count, generator=rng
                    )
                    parts.append(bound + volume)
                terms.append(torch.cat(parts) if parts else torch.zeros(0).double())
        every = torch.stack(terms)
        error = every.std(0) / len(every) ** 0.5 if len(every) > 1 else torch.zeros_like(every[0])
        return Density(every.mean(0), error)

    # --- on disk ---------------------------------------------------------------------------------

    @property
    def parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.network.parameters())

    def notes(self) -> list[str]:
        """Sentences about the process."""
        found = [f"signal-to-noise ratio at the last time: {self.process.terminal_snr:.2g}."]
        if self.has_density:
            found.append(f"nll is evaluated on at most {self.evaluated:,} rows, chosen at random.")
        return found

    def record(self) -> dict[str, Any]:
        return {"space": self.space.record(), "condition": self.condition}

    def tensors(self) -> dict[str, Tensor]:
        found = {f"network.{key}": value for key, value in self.network.state_dict().items()}
        found |= {"mean": self.moments.mean, "variance": self.moments.variance}
        if self.moments.axes is not None:
            found["axes"] = self.moments.axes
        return found

    def load(
        self,
        coding: Coding,
        given_coding: Coding | None,
        record: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
    ) -> None:
        self.space = load_space(coding, record["space"])
        self._place(coding, given_coding)
        self.network = self._make(int(record["condition"])).eval()
        prefix = "network."
        own = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
        self.network.load_state_dict(own)
        self.moments = Moments(tensors["mean"], tensors["variance"], tensors.get("axes"))
