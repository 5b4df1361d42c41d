"""Attributions of some grids by several methods, and how far their sums are off."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz.attribution import grad_cam, integrated_gradients, last_maps, occlusion, score
from ansatz.attribution.target import resolved
from ansatz.figures.number import number, percent
from ansatz.figures.printable import printable
from ansatz.fitting.model import Trained
from ansatz.layers.mode import evaluation_mode
from ansatz.likelihoods import Likelihood
from ansatz.report.evidence import Evidence
from ansatz.report.reliability import class_probabilities
from ansatz.structures.grid.report.network import ClassScores, one_network

STEPS = 32  # points on the way from the baseline, at least
ENOUGH = 0.01  # of the mean difference that a sum may miss; else the points are doubled
PARTS = {1: 16, 2: 8, 3: 4}  # of an axis that a window covers one of, by the number of axes
NUMBERS = 2**21  # cells that are computed with at once


class Attributions(NamedTuple):
    """What outputs rest on.

    Args:
        maps: ``(B, *size)`` by the name of the method; channels are summed.
        start: ``(B,)``, the outputs at the baseline.
        gain: ``(B,)``, by how much the outputs at the examples are larger.
        gap: ``(B,)``, by how much the sums of the integrated gradients are larger than that.
        steps: points that these were computed at.
    """

    maps: dict[str, NDArray[np.float64]]
    start: NDArray[np.float64]
    gain: NDArray[np.float64]
    gap: NDArray[np.float64]
    steps: int

    def completeness(self) -> str:
        """How nearly the integrated gradients add up, in words."""
        off, mean = float(np.abs(self.gap).max()), float(np.abs(self.gain).mean())
        share = f" ({percent(off / mean, 2)})" if mean > 0 else ""
        return (
            f"with {self.steps} points on the way their sum misses it by {number(off, 2)} at most, "
            f"where the differences are {number(mean, 3)} on average{share}"
        )


def attributions(
    network: nn.Module,
    x: Tensor,
    target: Tensor | int | Callable[[Tensor], Tensor] | None = None,
    *,
    baseline: float = 0.0,
    most: int = 256,
    overlap: bool = True,
) -> Attributions:
    """Integrated gradients, Grad-CAM and occlusion of some signals, images or volumes.

    Grad-CAM needs maps of several cells: a network without any goes without it. The windows of
    occlusion cover a sixteenth of a signal, an eighth of each axis of an image and a quarter of
    those of a volume. Integrated gradients take 32 points, and twice as many
    again while a sum misses more than a hundredth of what it should be.

    Args:
        network: on grids.
        x: as the network takes them.
        target: which output; None: the largest of each example.
        baseline: where nothing is shown, as the network sees it.
        most: points of the integrated gradients.
        overlap: whether windows overlap by half; else they stand side by side.

    Shapes:
        - x: ``(B, C, *size)``.
    """
    at, start, gain = _outputs(network, x, target, baseline)
    batch = max(len(x), min(256, NUMBERS // x[0].numel()))
    steps = STEPS // 2
    while True:
        steps *= 2
        shares = integrated_gradients(
            network, x, at, baseline=baseline, steps=steps, batch_size=batch
        )
        gap = shares.double().flatten(1).sum(1) - gain
        if 2 * steps > most or float(gap.abs().max()) <= ENOUGH * float(gain.abs().mean()):
            break
    found = {"integrated gradients": shares.sum(1)}
    if _has_maps(network, x):
        found["Grad-CAM"] = grad_cam(network, x, at)
    window = tuple(-(-cells // PARTS[x.ndim - 2]) for cells in x.shape[2:])
    found["occlusion"] = occlusion(
        network,
        x,
        at,
        window=window,
        stride=None if overlap else window,
        fill=baseline,
        batch_size=batch,
    )
    return Attributions(
        {name: _numbers(value) for name, value in found.items()},
        _numbers(start),
        _numbers(gain),
        _numbers(gap),
        steps,
    )


def _outputs(
    network: nn.Module, x: Tensor, target: Any, baseline: float
) -> tuple[Any, Tensor, Tensor]:
    """What is explained, its value at the baseline, and by how much it is larger at x."""
    with evaluation_mode(network), torch.no_grad():
        output = network(x)
        at = resolved(output, target)
        start = score(network(torch.full_like(x, baseline)), at).double()
        return at, start, score(output, at).double() - start


def _has_maps(network: nn.Module, x: Tensor) -> bool:
    try:
        last_maps(network, x)
    except ValueError:
        return False
    return True


def _numbers(value: Tensor) -> NDArray[np.float64]:
    return value.detach().double().cpu().numpy()


Number = Callable[[Tensor], Tensor]  # (B, P) or (B, K, P) raw numbers to (B,)


class Explained(NamedTuple):
    """A number for each example, and how it is spoken of."""

    network: nn.Module  # from examples to what ``target`` chooses from
    target: Any  # see :func:`ansatz.attribution.score`
    subject: str  # what rests on the cells
    signs: str  # what the two colours mean
    is_number: bool  # whether it has the unit of the outcome


class RawNumbers(nn.Module):
    """A function of the raw numbers of a likelihood, in float64.

    Args:
        trained: a network with its objective.
        number: of the raw numbers.

    Shapes:
        - x: ``(B, C, *size)``, standardised.
        - returns: what ``number`` gives.
    """

    def __init__(self, trained: Trained, number: Number) -> None:
        super().__init__()
        self.network, self.objective, self.number = trained.network, trained.objective, number

    def forward(self, x: Tensor) -> Tensor:
        return self.number(self.objective.raw(self.network, (x,)).double())


def explained(evidence: Evidence, rows: NDArray[np.intp], x: Tensor) -> Explained:
    """What is explained of the predictions of some examples.

    - Classes: the score of the most probable one; of ordered classes the linear predictor.
    - Directions: the part of the likelihood's vector (a, b) that points to the predicted direction.
      An angle itself jumps where the circle closes.
    - Rankings: the log-worth of the item that is placed first. Cox: the log-risk.
    - Censored outcomes of a likelihood: its median, as predicted; hazards: the restricted mean
      time.
    - Successes of trials: their share.
    - Other numbers: the mean, or whatever the likelihood predicts in its place; of several outcomes
      the first one's.
    - Where that is not finite, or has no slope: the first raw number.
    """
    trained = one_network(evidence)
    raw = _raw(trained, x)
    if evidence.classes is not None:
        return _class(evidence, rows, trained, raw)
    likelihood: Likelihood = trained.objective.likelihood
    predicted = likelihood.distribution(raw) if likelihood.has_distribution else None
    if getattr(predicted, "circular", False) and raw.ndim == 2:
        return _direction(trained, evidence.point[rows])
    if hasattr(predicted, "ranks"):
        return _first_place(trained, likelihood, evidence.point[rows])
    subject, number = _number(evidence, likelihood, predicted)
    subject += _of_several(evidence, number(raw))
    if not _is_smooth(number, raw):
        subject, number = f"the linear predictor ({likelihood.link_name} link)", _predictor
    one = RawNumbers(trained, lambda raw: number(raw).reshape(len(raw), -1)[:, 0])
    return Explained(one, 0, subject, _raises(subject), number is not _predictor)


def _raw(trained: Trained, x: Tensor) -> Tensor:
    with torch.no_grad():
        raw: Tensor = trained.objective.raw(trained.network, (x,)).double()
    return raw


def _class(evidence: Evidence, rows: NDArray[np.intp], trained: Trained, raw: Tensor) -> Explained:
    assert evidence.classes is not None
    if max(raw.shape[1], 2) == len(evidence.classes):
        top = torch.as_tensor(class_probabilities(evidence)[0][rows].argmax(1))
        subject = "the score of the predicted class"
        signs = "Blue speaks for the predicted class, vermilion against it"
        return Explained(ClassScores(trained), top, subject, signs, False)
    subject = "the linear predictor of the ordered classes"
    signs = "Blue speaks for higher classes, vermilion for lower ones"
    return Explained(RawNumbers(trained, _predictor), 0, subject, signs, False)


def _direction(trained: Trained, angle: NDArray[Any]) -> Explained:
    towards = torch.as_tensor(np.stack([np.cos(angle), np.sin(angle)], -1)).double()  # (B, 2)

    def along(raw: Tensor) -> Tensor:
        """Versions of one example stand together."""
        versions = raw.reshape(len(towards), -1, 2)
        return torch.einsum("bvi,bi->bv", versions, towards).flatten()

    subject = "the pull towards the predicted direction"
    signs = (
        "Blue speaks for the predicted direction, vermilion against it (the pull is κ times the "
        "cosine of the angle between the likelihood's direction and the predicted one)"
    )
    return Explained(RawNumbers(trained, lambda raw: raw), along, subject, signs, False)


def _first_place(trained: Trained, likelihood: Any, order: NDArray[Any]) -> Explained:
    subject = "the log-worth of the item that is placed first"
    worths = RawNumbers(trained, lambda raw: likelihood.distribution(raw).scores)
    return Explained(worths, torch.as_tensor(order[:, 0]).long(), subject, _raises(subject), False)


def _number(evidence: Evidence, likelihood: Likelihood, predicted: Any) -> tuple[str, Number]:
    if not likelihood.additive:
        return "the log-risk", _predictor
    if likelihood.event_ndim and hasattr(likelihood, "likelihood"):  # a censored likelihood
        return "the predicted median", lambda raw: likelihood.distribution(raw).median
    if hasattr(predicted, "restricted_mean"):
        return "the predicted restricted mean time", likelihood.point
    if evidence.value is not evidence.outcome:
        return "the predicted share of successes", likelihood.point
    is_mean = type(likelihood).point is Likelihood.point
    return "the predicted mean" if is_mean else "the prediction", likelihood.point


def _predictor(raw: Tensor) -> Tensor:
    return raw[..., 0]


def _of_several(evidence: Evidence, point: Tensor) -> str:
    count = point[0].numel()
    if count == 1:
        return ""
    names = evidence.model.outcome.names
    if len(names) != count:
        return f" of the first of {count} outcomes"
    return f" of {printable(names[0], 30)} (the first of {count} outcomes)"


def _is_smooth(number: Number, raw: Tensor) -> bool:
    """Whether it is finite at all examples, and moves with the raw numbers."""
    with torch.enable_grad():
        given = raw.clone().requires_grad_()
        found = number(given)
        if not found.requires_grad or not bool(found.isfinite().all()):
            return False
        (slope,) = torch.autograd.grad(found.sum(), given)
    return bool(slope.isfinite().all())


def _raises(subject: str) -> str:
    return f"Blue raises {subject}, vermilion lowers it"
