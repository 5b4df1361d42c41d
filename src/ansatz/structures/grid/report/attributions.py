"""Computes attributions of predictions on grids by several methods."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz.attribution import grad_cam, integrated_gradients, last_maps, occlusion, score
from ansatz.attribution.target import resolved
from ansatz.figures.number_format import number, percent, printable
from ansatz.fitting.model import Trained
from ansatz.layers.mode import evaluation_mode
from ansatz.likelihoods import Likelihood
from ansatz.report.evidence import Evidence
from ansatz.report.reliability import class_probabilities
from ansatz.structures.grid.report.network import ClassScores, one_network

STEPS = 32  # least number of points on the path from the baseline
ENOUGH = 0.01  # error of a sum, relative to the mean difference, beyond which points double
PARTS = {1: 16, 2: 8, 3: 4}  # windows side by side along an axis, by the number of axes
NUMBERS = 2**21  # elements of a batch


class Attributions(NamedTuple):
    """Attribution maps of some examples."""

    maps: dict[str, NDArray[np.float64]]  # ``(B, *size)`` by method, summed over channels
    start: NDArray[np.float64]  # ``(B,)``, the outputs at the baseline
    gain: NDArray[np.float64]  # ``(B,)``, the outputs at the examples minus those
    gap: NDArray[np.float64]  # ``(B,)``, the sums of the integrated gradients minus the gain
    steps: int  # points of the integrated gradients

    def completeness(self) -> str:
        """Writes how nearly the integrated gradients add up."""
        off, mean = float(np.abs(self.gap).max()), float(np.abs(self.gain).mean())
        share = f" ({percent(off / mean, 2)})" if mean > 0 else ""
        return (
            f"with {self.steps} points the error of their sum is at most {number(off, 2)}, the "
            f"mean difference {number(mean, 3)}{share}"
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
    """Computes integrated gradients, Grad-CAM and occlusion of signals, images or volumes.

    Grad-CAM needs convolutional maps and is left out without them. The windows of occlusion
    cover a sixteenth of a signal, an eighth of each axis of an image and a quarter of those of a
    volume. Integrated gradients take 32 points, doubled while a sum is off by more than 1 %.

    Args:
        network: a network of grids.
        x: encoded examples.
        target: the output to explain; None: the largest of each example.
        baseline: the value of an empty example.
        most: largest number of points of the integrated gradients.
        overlap: whether windows overlap by half.

    Shapes:
        - x: ``(B, C, *size)``.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from ansatz.diagnostics import attributions
        >>> network = nn.Sequential(nn.Flatten(), nn.Linear(16, 2))
        >>> found = attributions(network, torch.rand(3, 1, 4, 4))
        >>> list(found.maps), found.maps["occlusion"].shape
        (['integrated gradients', 'occlusion'], (3, 4, 4))
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
    """Computes the explained outputs, their values at the baseline and the gains at x."""
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
    """The number that is explained for each example, with its description."""

    network: nn.Module  # its outputs are indexed by ``target``
    target: Any  # see :func:`ansatz.attribution.score`
    subject: str  # the name of the number
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
    """Chooses the number of the predictions that is explained.

    - Classes: the score of the most probable one; of ordered classes the linear predictor.
    - Directions: the component of the vector (a, b) along the predicted direction; an angle is
      discontinuous.
    - Rankings: the log-worth of the predicted first item. Cox: the log-risk.
    - Censored outcomes: the predicted median; hazards: the restricted mean time.
    - Successes of trials: their share.
    - Other numbers: the mean, or the point prediction; of several outcomes the first.
    - Where that is not finite or not differentiable: the first raw output.
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
        signs = "Blue: evidence for the predicted class, vermilion: against it"
        return Explained(ClassScores(trained), top, subject, signs, False)
    subject = "the linear predictor of the ordered classes"
    signs = "Blue: evidence for higher classes, vermilion: for lower ones"
    return Explained(RawNumbers(trained, _predictor), 0, subject, signs, False)


def _direction(trained: Trained, angle: NDArray[Any]) -> Explained:
    towards = torch.as_tensor(np.stack([np.cos(angle), np.sin(angle)], -1)).double()  # (B, 2)

    def along(raw: Tensor) -> Tensor:
        versions = raw.reshape(len(towards), -1, 2)
        return torch.einsum("bvi,bi->bv", versions, towards).flatten()

    subject = "the component along the predicted direction"
    signs = (
        "Blue: evidence for the predicted direction, vermilion: against it (the component is κ "
        "times the cosine of the angle to the predicted direction)"
    )
    return Explained(RawNumbers(trained, lambda raw: raw), along, subject, signs, False)


def _first_place(trained: Trained, likelihood: Any, order: NDArray[Any]) -> Explained:
    subject = "the log-worth of the predicted first item"
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
    """Tests whether it is finite and differentiable at all examples."""
    with torch.enable_grad():
        given = raw.clone().requires_grad_()
        found = number(given)
        if not found.requires_grad or not bool(found.isfinite().all()):
            return False
        (slope,) = torch.autograd.grad(found.sum(), given)
    return bool(slope.isfinite().all())


def _raises(subject: str) -> str:
    return f"Blue raises {subject}, vermilion lowers it"
