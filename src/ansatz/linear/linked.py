"""Likelihoods whose mean is tied to a linear predictor by another link."""

import inspect
from typing import Any

import torch
from torch import Tensor

from ansatz.errors import UsageError
from ansatz.layers.link import LINKS, Link
from ansatz.likelihoods.distribution import Distribution
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.spec import TargetSpec

LINKED = (
    *("normal", "poisson", "negative_binomial", "gamma", "inverse_gaussian", "exponential"),
    *("bernoulli", "binomial", "beta"),
)


def link_of(likelihood: Likelihood, name: str) -> Link:
    """The link of a likelihood by name; a wrong one lists those that it has."""
    known = LINKS[likelihood.link_name] if likelihood.name in LINKED else {}
    if name not in known:
        listed = ", ".join([likelihood.link_name, *known]) if known else likelihood.link_name
        raise UsageError(f"{likelihood.name} has no link '{name}'. Links: {listed}.")
    return known[name]


class Linked(Likelihood):
    r"""A likelihood whose mean is tied to the linear predictor by another link.

    .. math:: g(\mu) = \text{raw}_0

    for the link g that is named; the other raw numbers are the likelihood's. A predictor without a
    mean (a negative rate of the identity link) has loss nan, from which the fit steps back.

    Args:
        base: the likelihood, with its own link.
        link: ``"identity"``, ``"sqrt"``, ``"inverse"``, ``"inverse_squared"`` of positive means;
            ``"probit"``, ``"cloglog"``, ``"loglog"``, ``"cauchit"``, ``"log"``, ``"identity"`` of
            probabilities; ``"log"`` and ``"inverse"`` of the normal.

    References:
        McCullagh and Nelder (1989), Generalized Linear Models, sections 2.2.2 and 4.3.
    """

    def __init__(self, base: Likelihood, link: str) -> None:
        super().__init__()
        link_of(base, link)  # refuses a link that the likelihood does not have
        self.base = base
        own = ("name", "has_distribution", "event_ndim", "support", "additive")
        vars(self).update({name: getattr(base, name) for name in own})
        vars(self)["link_name"] = link
        vars(self)["options"] = dict(base.options)

    @property
    def _link(self) -> Link:
        return link_of(self.base, self.link_name)

    def own(self, raw: Tensor) -> Tensor:
        """The raw numbers of the likelihood itself."""
        return torch.cat([self._link.to_raw(raw[..., :1]), raw[..., 1:]], -1)

    def __getattr__(self, name: str) -> Any:
        """Attributes of the likelihood; a method of raw numbers takes the linear predictor."""
        if name in ("base", "_modules"):
            return super().__getattr__(name)
        found = getattr(super().__getattr__("base"), name)
        if not callable(found) or isinstance(found, torch.nn.Module):
            return found
        parameters = list(inspect.signature(found).parameters)
        if not parameters or parameters[0] != "raw":
            return found
        return lambda raw, *given, **options: found(self.own(raw), *given, **options)

    def outputs(self, target: TargetSpec) -> int:
        return self.base.outputs(target)

    def check(self, y: Any) -> None:
        self.base.check(y)

    def observe(self, y: Any, weight: Tensor) -> None:
        self.base.observe(y, weight)

    def start(self, y: Any, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The constant model on the scale of the link; units by the link's slope there."""
        shift, scale = self.base.start(y, weight)
        first = shift[..., :1].detach().double().requires_grad_()
        with torch.enable_grad():
            eta = self._link.from_raw(first)
            (slope,) = torch.autograd.grad(eta.sum(), first)
        if not bool(torch.isfinite(eta).all()):
            raise UsageError(
                f"the {self.link_name} link needs another mean than that of these outcomes."
            )
        return (
            torch.cat([eta.detach().to(shift), shift[..., 1:]], -1),
            torch.cat([scale[..., :1] * slope.abs().to(scale), scale[..., 1:]], -1),
        )

    def relax_shapes(self) -> None:
        self.base.relax_shapes()

    def loss(self, raw: Tensor, y: Any) -> Tensor:
        return self.base.loss(self.own(raw), y)

    def training_loss(self, raw: Tensor, y: Any) -> Tensor:
        return self.base.training_loss(self.own(raw), y)

    def distribution(self, raw: Tensor, **given: Any) -> Distribution:
        return self.base.distribution(self.own(raw), **given)

    def given(self, raw: Tensor, y: Any) -> tuple[Distribution, Tensor]:
        return self.base.given(self.own(raw), y)

    def point(self, raw: Tensor) -> Tensor:
        return self.base.point(self.own(raw))

    def unit_deviance(self, raw: Tensor, y: Any) -> Tensor:
        return self.base.unit_deviance(self.own(raw), y)

    def variance_function(self, mu: Tensor) -> Tensor:
        return self.base.variance_function(mu)

    def pearson(self, raw: Tensor, y: Any) -> Tensor:
        return self.base.pearson(self.own(raw), y)
