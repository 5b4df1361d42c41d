"""A class for every element of an example as outcome: pixels, voxels, samples of a signal."""

import math
from collections.abc import Mapping
from dataclasses import fields
from os import PathLike
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz import likelihoods
from ansatz.data import Cleaning, components
from ansatz.data.batch import UNLABELLED
from ansatz.data.grids import Grids, Masks
from ansatz.data.grids.masks import are_colours
from ansatz.errors import DataError, UsageError
from ansatz.fitting.contracts.inference import Posterior, Predictive
from ansatz.fitting.contracts.outcome import (
    NO_INTERVAL,
    PROBABILITIES,
    Metrics,
    Outcome,
    labels_of,
    plain_labels,
)
from ansatz.fitting.job import Job
from ansatz.fitting.model import Given, Model
from ansatz.fitting.task import Settings
from ansatz.likelihoods import Distribution, Likelihood
from ansatz.metrics import boundary_f1, dice, iou, pixel_error
from ansatz.spec import TargetSpec

MASK_LIKELIHOODS = ("categorical", "cross_entropy", "focal", "dice", "sum")


class Mask(Outcome):
    """One of several classes for every pixel, voxel or sample of a signal."""

    name: ClassVar[str] = "mask"
    estimator: ClassVar[str] = "ansatz.estimators.segmenter:Segmenter"
    labels: NDArray[Any]

    plural: ClassVar[str] = "masks"
    report: ClassVar[str] = "ansatz.outcomes.report.mask:MaskReport"
    axis: ClassVar[str] = "element"
    is_quantity: ClassVar[bool] = False
    frame_options: ClassVar[frozenset[str]] = frozenset({"instances"})
    settings: ClassVar[frozenset[str]] = frozenset({"clean", "symmetry", "tile"})
    outputs: ClassVar[Mapping[str, str]] = {**Outcome.outputs, "probabilities": PROBABILITIES}
    intervals: ClassVar[Mapping[str, str]] = {"probabilities": NO_INTERVAL}
    no_interval: ClassVar[str] = "classes have no interval; p_CLASS shows how sure the model is."

    def __init__(self) -> None:
        self.names: list[str] = ["mask"]
        self.cleaning: Cleaning | None = None
        self.axes = 0  # of an example's elements

    # Reading.

    def encode(self, y: Any, settings: Settings, *, reset: bool) -> tuple[NDArray[Any], TargetSpec]:
        self.choose(settings)
        if not reset:
            y = _without_channel(y, self.axes)
        masks = y if isinstance(y, Masks) else _coded(y)
        if reset:
            self.labels, self.axes = _labels(y, masks), len(masks.shape)
        else:
            masks = self._recoded(masks)
        codes: NDArray[Any] = masks.load().numpy()
        target = TargetSpec(shape=masks.shape, classes=len(self.labels), axis="element")
        return codes, target

    def choose(self, settings: Settings) -> None:
        self.cleaning = _cleaning(settings.get("clean"))

    def beside(self, y: Any, rows: Any) -> Any:
        """Masks without an axis of one channel, of the size of their examples."""
        size = tuple(rows.shape[1:])
        y = _without_channel(y, len(size))
        if getattr(y, "ndim", 0) > 1:  # before their values: they may be no classes at all
            _require_size(tuple(y.shape[1:]), size)
        return y

    def read(self, job: Job) -> Job:
        if job.rows.spec is not None:
            _require_size(job.target.shape, job.rows.spec.size)
        if len(self.labels) < 2:
            raise DataError(f"every pixel is of class {self.labels[0]}: nothing to classify.")
        return job

    def _recoded(self, masks: Masks) -> Masks:
        """Masks with the codes of the training masks: a class may be missing among a few."""
        places = {str(name): k for k, name in enumerate(self.labels)}
        names = _as_colours(masks.classes) if are_colours(places) else masks.classes
        if names == tuple(places):
            return masks
        unknown = [name for name in names if name not in places]
        if unknown:
            raise DataError(f"masks hold {unknown[0]}, which no mask of the fit does.")
        kept = masks.load()
        codes = torch.full_like(kept, UNLABELLED)
        for code, name in enumerate(names):
            codes[kept == code] = places[name]
        stored = torch.where(codes == UNLABELLED, 255, codes).to(torch.uint8).unsqueeze(1)
        return Masks(stored, classes=tuple(places))

    # Fitting.

    def likelihood(self, settings: Settings, target: TargetSpec, *, few: bool) -> Likelihood:
        likelihood = settings.likelihood
        if isinstance(likelihood, str):
            options = dict(settings.likelihood_options)
            if likelihood in ("dice", "sum"):
                options = {"axes": len(target.shape), **options}
            likelihood = likelihoods.create(likelihood, **options)
        if likelihood.name not in MASK_LIKELIHOODS:
            known = ", ".join(MASK_LIKELIHOODS)
            raise UsageError(
                f"{likelihood.name} is not a likelihood of masks. Take one of: {known}."
            )
        made: Likelihood = likelihood
        return made

    # Predictions.

    def probabilities(self, predictive: Predictive) -> Tensor:
        likelihood, raw = predictive
        found: Tensor = likelihood.probs(raw)  # type: ignore[operator]  # every likelihood of masks has it
        if found.ndim < raw.ndim:  # dice of two classes: the share of class 1
            found = torch.stack([1 - found, found], -1)
        return found

    def codes(self, predictive: Predictive) -> Tensor:
        """The most probable class of every element, tidied as asked for."""
        codes = self.probabilities(predictive).argmax(-1)
        return codes if self.cleaning is None else self.cleaning(codes)

    def distribution(self, predictive: Predictive, y: Tensor) -> tuple[Distribution | None, Tensor]:
        return None, y

    def row_losses(self, predictive: Predictive, y: Tensor) -> Tensor:
        """The mean negative log-likelihood of the labelled elements of each example, ``(N,)``."""
        likelihood, raw = predictive
        seen = (y != UNLABELLED).double().flatten(1)
        with torch.no_grad():
            pixels = likelihood.loss(raw, y.clamp(min=0)).double().flatten(1)
        return (pixels * seen).sum(1) / seen.sum(1).clamp(min=1)

    def estimate(self, predictive: Predictive, y: Tensor) -> Tensor:
        return self.codes(predictive)

    def disagreement(self, posterior: Posterior, rows: Any) -> Tensor:
        """The mutual information of an element's class and the component, ``(N, *size)``."""
        mean: Tensor = torch.zeros(())
        within: Tensor = torch.zeros(())
        for weight, predictive in posterior.components(rows):
            probs = self.probabilities(predictive)
            mean = mean + weight * probs
            within = within + weight * torch.special.entr(probs).sum(-1)
        total: Tensor = torch.special.entr(mean).sum(-1)
        return (total - within).clamp(min=0)

    def point(self, predictive: Predictive) -> NDArray[Any]:
        found: NDArray[Any] = self.labels[self.codes(predictive).numpy()]
        return found

    def evaluate(self, predictive: Predictive, y: Tensor, weight: Tensor | None = None) -> Metrics:
        """Overlap of predicted and true masks, and for a likelihood its score per element."""
        likelihood, raw = predictive
        _require_size(tuple(y.shape[1:]), tuple(raw.shape[1:-1]))
        known = y != UNLABELLED
        pixels = known.double()
        if weight is not None:
            pixels = pixels * weight.reshape(-1, *(1,) * (y.ndim - 1))
        target, count = y.clamp(min=0), len(self.labels)
        codes = self.codes(predictive)
        found: Metrics = {}
        if likelihood.has_distribution:
            losses = likelihood.loss(raw, target)
            found["nll"] = float((losses * pixels).sum() / pixels.sum())
        settings: dict[str, Any] = {"classes": count}
        error = float(pixel_error(target, codes, pixels))
        found |= {"pixel_error": error, "accuracy": 1 - error}
        found["dice"] = float(dice(target, codes, pixels, **settings))
        found["iou"] = float(iou(target, codes, pixels, **settings))
        found["boundary_f1"] = float(boundary_f1(target, codes, pixels, **settings))
        if count > 2:
            by_class = dice(target, codes, pixels, reduction="class", **settings)
            named = zip(self.labels, by_class.tolist(), strict=True)
            found |= {f"dice_{name}": value for name, value in named}
        return {name: None if math.isnan(v) else v for name, v in found.items() if v is not None}

    def answers(self, likelihood: Likelihood, raw: Tensor) -> dict[str, Tensor]:
        if self.cleaning is not None:
            raise UsageError("masks that are tidied (clean=...) have no ONNX operations for it.")
        pixels = self.probabilities(Predictive(likelihood, raw))
        return {"prediction": pixels.argmax(-1), "probabilities": pixels}

    def frame(self, model: Model, rows: Given, **options: Any) -> dict[str, Any]:
        labels = self.point(model.predictive(rows.rows, rows.offset))
        pixels = labels.reshape(len(labels), -1)
        found = {f"share_{name}": (pixels == name).mean(axis=1) for name in self.labels}
        for name in self.labels[1:] if options.get("instances") else ():
            found[f"objects_{name}"] = [len(components(each == name)[1]) for each in labels]
        return found

    # On disk.

    def target(self, likelihood: Likelihood) -> TargetSpec:
        return TargetSpec(classes=len(self.labels), axis="element")

    def state(self) -> dict[str, Any]:
        return {"names": self.names, **plain_labels(self.labels), "axes": self.axes}

    def load(self, state: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self.names, self.labels = list(state["names"]), labels_of(state)  # type: ignore[assignment]
        self.axes = int(state["axes"])


def _cleaning(given: Mapping[str, Any] | None) -> Cleaning | None:
    """Makes what cleans predicted masks; None where nothing was asked for."""
    if not given:
        return None
    try:
        return Cleaning(**given)
    except TypeError:
        known = ", ".join(field.name for field in fields(Cleaning))
        raise UsageError(f"clean takes {known}, got {given!r}.") from None


def _as_colours(names: tuple[str, ...]) -> tuple[str, ...]:
    """Grey values as colours: of a few coloured masks, none may show a colour."""
    are_grey = all(name.isdecimal() and int(name) < 256 for name in names)
    return tuple("#" + 3 * f"{int(name):02x}" for name in names) if are_grey else names


def _require_size(masks: tuple[int, ...], examples: tuple[int, ...]) -> None:
    """Rejects masks that do not have the size of their examples."""
    if masks == examples:
        return
    got, size = (" x ".join(map(str, each)) for each in (masks, examples))
    for axis, count, rest in ((-1, masks[-1], masks[:-1]), (1, masks[0], masks[1:])):
        if rest == examples:
            raise DataError(
                f"masks of {got} hold {count} numbers for each of {size} pixels; a "
                f"pixel has one class: y.argmax({axis}) of one-hot masks. Coloured masks are read "
                "from their files, by read_grids."
            )
    raise DataError(f"masks of {got} pixels for examples of {size}: a mask has its example's.")


def _coded(y: Any) -> Masks:
    """Masks from an array."""
    if isinstance(y, list | tuple | np.ndarray) and len(y) and isinstance(y[0], str | PathLike):
        raise UsageError(
            "y names files: read images and masks together, table = read_grids(images, "
            "masks=masks), and fit table.grids and table.masks."
        )
    return Masks.coded(y.load() if isinstance(y, Grids) else y, "masks")


def _without_channel(y: Any, axes: int) -> Any:
    """Masks ``(N, 1, *size)`` or ``(N, *size, 1)`` as ``(N, *size)``."""
    shape = tuple(getattr(y, "shape", ()))
    if isinstance(y, Grids) or len(shape) != axes + 2 or 1 not in (shape[1], shape[-1]):
        return y
    return y.squeeze(1 if shape[1] == 1 else -1)


def _labels(y: Any, masks: Masks) -> NDArray[Any]:
    """The classes as the user wrote them: names of a file's masks, numbers of an array's."""
    if isinstance(y, Masks):
        return np.array(masks.classes)
    return np.array([int(name) for name in masks.classes])
