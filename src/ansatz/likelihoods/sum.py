"""A sum of losses of masks: overlap and pixel by pixel at once."""

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from ansatz.errors import UsageError
from ansatz.likelihoods.dice import class_logits, pixel_rows, pixel_shares
from ansatz.likelihoods.likelihood import Likelihood, expand_weight
from ansatz.likelihoods.registry import create
from ansatz.spec import TargetSpec

_TERMS = ("bernoulli", "categorical", "cross_entropy", "dice", "focal")
_ALL_LOGITS = ("categorical", "cross_entropy")  # they read two classes from two logits


class Sum(Likelihood):
    r"""Several losses of one mask, added up: each image costs one number.

    .. math:: \ell = \sum_t a_t \ell_t, \qquad
              \ell_t = \frac{\sum_j u_j \ell_{tj}}{\sum_j u_j} \text{ for losses of pixels}

    with :math:`a_t` from ``terms`` and :math:`u_j` the weight of pixel j (1, or 0 where it is not
    labelled). Losses of pixels (``categorical``, ``focal``, ...) are averaged over the pixels of an
    image, so that they weigh as much as those of whole images (``dice``). All terms read the same
    raw numbers: K logits per pixel, one log odds for two classes.

    Dice's gradient in a logit contains p (1 - p) and vanishes where a network is sure and wrong;
    cross-entropy's does not, yet a large background drowns it. The sum has neither fault. It is a
    loss and not a likelihood; ``probs`` are those that the terms are computed from.

    Args:
        terms: the weight of each loss by name: ``bernoulli``, ``categorical``, ``cross_entropy``,
            ``dice`` and ``focal`` can be added. Dice and categorical, 1 each, when not given.
        options: of the terms, by name.
        axes: trailing axes of y that make up one mask: 2 for images, 3 for volumes.

    Shapes:
        - raw: ``(B, H, W, 1)`` for two classes, else ``(B, H, W, K)``.
        - y: ``(B, H, W)`` class codes.
        - weight: ``(B, H, W)``, of ``partial_loss``.
        - loss: ``(B,)``.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Sum
        >>> likelihood, y = Sum({"dice": 1.0, "focal": 0.5}), torch.zeros(1, 2, 2)
        >>> likelihood.loss(torch.zeros(1, 2, 2, 1), y)  # 2 / (2 + 1) + log(2) / 8
        tensor([0.7533])

    References:
        Isensee et al. (2021), nnU-Net, online methods (dice and cross-entropy).
        https://doi.org/10.1038/s41592-020-01008-z
    """

    name = "sum"
    has_distribution = False
    link_name = "logit"

    def __init__(
        self,
        terms: Mapping[str, float] | None = None,
        *,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        axes: int = 2,
    ) -> None:
        super().__init__()
        given = {"dice": 1.0, "categorical": 1.0} if terms is None else _checked(terms)
        extra = {} if options is None else _checked_options(options)
        if not isinstance(axes, (int, Integral)) or axes < 1:
            raise UsageError(f"axes of sum must be a whole number, at least 1, got {axes!r}.")
        if unused := sorted(set(extra) - set(given)):
            raise UsageError(f"sum has options for '{unused[0]}', which is none of its terms.")
        if extra.get("categorical", {}).get("reference"):
            raise UsageError("sum needs a logit for every class: leave out 'reference'.")
        self.terms, self.axes, self.classes = given, axes, 2
        self.losses = nn.ModuleDict(
            {
                name: create(name, **{**({"axes": axes} if name == "dice" else {}), **more})
                for name, more in ((name, extra.get(name, {})) for name in given)
            }
        )
        self.event_ndim = axes  # type: ignore[misc]  # of images or volumes, by its options
        self.options = {"terms": given, "options": extra, "axes": axes}

    def outputs(self, target: TargetSpec) -> int:
        """1 for two classes, else K."""
        self.classes = max(target.classes, 2)
        if self.classes > 2 and "bernoulli" in self.terms:
            raise UsageError(f"bernoulli has two classes, y has {self.classes}: take categorical.")
        for loss in self._likelihoods():
            loss.outputs(TargetSpec(target.shape, self.classes, target.event))
        return 1 if self.classes == 2 else self.classes

    def check(self, y: Tensor) -> None:
        """Rejects what a term rejects."""
        for loss in self._likelihoods():
            loss.check(y)

    def observe(self, y: Tensor, weight: Tensor) -> None:
        """Class weights of the terms, from all pixels."""
        rows = pixel_rows(y, weight, self.axes)
        for loss in self._likelihoods():
            loss.observe(*((y, weight) if loss.event_ndim else rows))

    def start(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The logits of the classes' shares of the pixels."""
        shift = class_logits(y, weight, self.axes, self.classes)
        return shift, torch.ones_like(shift)

    def loss(self, raw: Tensor, y: Tensor) -> Tensor:
        """The weighted sum, one number per image."""
        total = raw.new_zeros(())
        for name, loss in zip(self.terms, self._likelihoods(), strict=True):
            value = loss.loss(self._for(name, raw), y)
            if not loss.event_ndim:
                value = value.flatten(-self.axes).mean(-1)
            total = total + self.terms[name] * value
        return total

    def partial_loss(self, raw: Tensor, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The same over weighted pixels, and the weight of each image: see ``pixel_shares``."""
        weight = expand_weight(weight, y)
        shares, image = pixel_shares(weight, self.axes)
        shares = shares.to(raw.dtype)
        y = torch.where(shares > 0, y, 0)  # a pixel that is not labelled may be nan
        count = shares.flatten(-self.axes).sum(-1).clamp(min=torch.finfo(shares.dtype).tiny)
        total = raw.new_zeros(())
        for name, loss in zip(self.terms, self._likelihoods(), strict=True):
            own = self._for(name, raw)
            if loss.event_ndim:
                value = loss.partial_loss(own, y, weight)[0]
            else:
                value = (shares * loss.loss(own, y)).flatten(-self.axes).sum(-1) / count
            total = total + self.terms[name] * value
        return total, image

    def logits(self, raw: Tensor) -> Tensor:
        """``(..., K)``: raw, or (0, raw) for two classes."""
        return pad(raw, (1, 0)) if raw.shape[-1] == 1 else raw

    def probs(self, raw: Tensor) -> Tensor:
        """``(B, H, W, K)``; of two classes ``(B, H, W)``, that of class 1."""
        return torch.sigmoid(raw[..., 0]) if raw.shape[-1] == 1 else torch.softmax(raw, -1)

    def point(self, raw: Tensor) -> Tensor:
        """``(B, H, W)``: the code of the most probable class."""
        return self.logits(raw).argmax(-1)

    def _likelihoods(self) -> list[Likelihood]:
        return [loss for loss in self.losses.values() if isinstance(loss, Likelihood)]

    def _for(self, name: str, raw: Tensor) -> Tensor:
        return self.logits(raw) if name in _ALL_LOGITS else raw


def _checked(terms: object) -> dict[str, float]:
    if not isinstance(terms, Mapping) or not terms:
        raise UsageError(f'terms of sum must be like {{"dice": 1, "focal": 0.5}}, got {terms!r}.')
    for name, weight in terms.items():
        if name not in _TERMS:
            raise UsageError(f"sum can add {', '.join(_TERMS)}; got '{name}'.")
        number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
        if not number or not 0 < weight < float("inf"):
            raise UsageError(f"the weight of '{name}' in sum must be positive, got {weight!r}.")
    return {name: float(weight) for name, weight in terms.items()}


def _checked_options(options: object) -> dict[str, dict[str, Any]]:
    of_terms = options.values() if isinstance(options, Mapping) else [None]
    if not isinstance(options, Mapping) or not all(isinstance(own, Mapping) for own in of_terms):
        raise UsageError(
            f'options of sum must be like {{"dice": {{"smooth": 1}}}}, got {options!r:.60}.'
        )
    return {name: dict(own) for name, own in options.items()}
