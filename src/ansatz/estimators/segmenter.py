"""A label for every cell of an image, a signal or a volume as outcome."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from ansatz import likelihoods
from ansatz.data import Cleaning
from ansatz.data.grids import Grids, GridTable, Masks
from ansatz.data.grids.colours import are_colours
from ansatz.data.grids.pieces import cut_pieces
from ansatz.data.unlabelled import UNLABELLED
from ansatz.errors import DataError, UsageError
from ansatz.inference.ensemble_model import EnsembleModel
from ansatz.structures.grid.model import GridModel, mask_symmetry
from ansatz.fitting.job import Job
from ansatz.fitting.provenance import origin_of
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.recipe_options import Augment
from ansatz.structures.vector.rows import read_rows
from ansatz.estimators.table_estimator import TableEstimator
from ansatz.likelihoods import Likelihood
from ansatz.metrics import boundary_f1, dice, iou, pixel_error
from ansatz.spec import TargetSpec

MASK_LAWS = ("categorical", "cross_entropy", "focal", "dice", "sum")


class Segmenter(TableEstimator):
    """A network that predicts the class of every cell.

    Args:
        likelihood: ``"categorical"``: every cell is an outcome of its own; ``"dice"``, ``"focal"``,
            or ``"sum"`` of several (``likelihood_options={"terms": {"dice": 1, "focal": 1}}``).
        likelihood_options: options of a likelihood given by name.
        network: ``"unet"``, ``"unet3d"``, ``"attention_unet"``, ``"fcn"``, ``"sliding_window"``,
            ``"linear_pixels"`` or a module that gives ``(B, K, *size)``; ``"auto"`` takes a U-Net.
        inference: ``"point"`` for one network, or ``"ensemble"``: several, whose probabilities are
            mixed cell by cell and recalibrated by one temperature.
        members: networks of the ensemble; None takes five.
        tile: cells along each side of the pieces that larger examples are predicted in, with
            overlap; None takes the size of the examples of the fit.
        clean: how predicted masks are tidied: options of :func:`ansatz.data.clean`, like
            ``{"min_size": 20, "fill_holes": True}``.
        symmetry: the group that answers are averaged over: ``"flip"``, ``"rotation90"``,
            ``"dihedral"`` (turns and mirror images) or ``"none"``. None takes, of fewer than 100
            images, those that the default augmentation draws from: masks are better and take
            eight times as long to predict.
        network_options: options of the network's factory.
        epochs: passes over the examples, in place of the recipe's budget.
        batch_size: examples per step.
        learning_rate: peak rate of AdamW.
        weight_decay: decoupled, on matrices.
        holdout: share of the examples that decide when to stop; 0 for none.
        augment: whether examples are varied, with their masks, while they are learned from, or
            how: ``[Flip((-1, -2)), Turn()]`` of :mod:`ansatz.data.augmentation`.
        pretrained: a file of weights, ``.safetensors`` or ``.pth``, that the network begins with.
        freeze: ``"backbone"`` trains the last layer alone; a number freezes so many groups of
            layers from the input on; a list of epochs wakes one group at each, the last first.
        warm_start: begin the next ``fit`` at the weights of the last.
        random_state: one seed decides split, initial weights, order and variations.
        n_jobs: threads; None chooses by the network's size.
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.
        time_limit: seconds after which training stops with the best weights so far.
        verbose: 0 silent, 1 a progress bar, 2 one line per evaluation.

    Attributes:
        classes_: the labels, in the order of the probabilities.

    Example:
        >>> import numpy as np
        >>> from ansatz import Segmenter
        >>> images = np.zeros((8, 16, 16), dtype=np.float32)
        >>> images[:, 4:9, 5:12] = 1
        >>> model = Segmenter(network="linear_pixels", epochs=30).fit(images, images > 0)
        >>> model.predict(images).shape
        (8, 16, 16)

    References:
        Ronneberger, Fischer and Brox (2015), U-Net. https://arxiv.org/abs/1505.04597
    """

    def __init__(
        self,
        likelihood: str | Likelihood = "categorical",
        *,
        likelihood_options: Mapping[str, Any] | None = None,
        network: str | nn.Module = "auto",
        inference: Literal["point", "ensemble"] = "point",
        members: int | None = None,
        tile: int | None = None,
        clean: Mapping[str, Any] | None = None,
        symmetry: str | None = None,
        network_options: Mapping[str, Any] | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        holdout: float | None = None,
        augment: Augment | None = None,
        pretrained: str | Path | None = None,
        freeze: str | int | Sequence[int] | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = 0,
        n_jobs: int | None = None,
        device: str = "auto",
        time_limit: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.likelihood = likelihood
        self.likelihood_options = likelihood_options
        self.network = network
        self.inference = inference
        self.members = members
        self.tile = tile
        self.clean = clean
        self.symmetry = symmetry
        self.network_options = network_options
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.holdout = holdout
        self.augment = augment
        self.pretrained = pretrained
        self.freeze = freeze
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.time_limit = time_limit
        self.verbose = verbose

    labels_cells = True
    # What a table's estimator has and a segmenter does not.
    x = "grid"
    calibration = widths = activation = dropout = bins = None
    quantile = False

    def _recipe(self, job: Job, recipe: Recipe | None = None) -> Recipe:
        found = super()._recipe(job, recipe)
        if found.symmetry and job.grid is not None:
            mask_symmetry(found.symmetry, job.grid.size)  # what cannot be turned is refused
        return found

    def _require_inference(self) -> None:
        self._cleaning()  # what cannot be done afterwards is refused before
        super()._require_inference()

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of every cell, ``(N, *size)``.

        Args:
            X: examples as in ``fit``, of any size that the network takes.
        """
        grids = self._grids(X)
        codes = [self._codes(raw) for raw in self._raw_pieces(grids)]
        if not codes:
            return np.empty((0, *grids.shape[1:]), self.classes_.dtype)
        found: NDArray[Any] = self.classes_[torch.cat(codes).numpy()]
        return found

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """P(class of a cell), ``(N, *size, K)`` in the order of ``classes_``.

        Args:
            X: examples as in ``fit``.
        """
        grids = self._grids(X)
        found = [self._probabilities(raw) for raw in self._raw_pieces(grids)]
        if not found:
            return np.empty((0, *grids.shape[1:], len(self.classes_)))
        return torch.cat(found).numpy()

    def between_entropy(self, X: Any) -> NDArray[np.float64]:
        r"""How much the members of an ensemble disagree about every cell, ``(N, *size)`` in nats.

        .. math:: H\Big(\sum_s \pi_s p_s\Big) - \sum_s \pi_s H(p_s)

        with :math:`p_s` member s's probabilities of the classes, before recalibration: what
        knowing the member would tell about the class, their mutual information. It is large where
        more examples would help; where classes overlap and all members say so, it is 0.

        Args:
            X: examples as in ``fit``.
        """
        grids = self._grids(X)
        if not isinstance(self.model_, EnsembleModel):
            raise UsageError("one network has nobody to disagree with: inference='ensemble'.")
        found = [self._between(grids[np.array([n])]) for n in range(len(grids))]
        return torch.cat(found).numpy() if found else np.empty((0, *grids.shape[1:]))

    def _between(self, grids: Grids) -> Tensor:
        """The same of one example."""
        model: EnsembleModel = self.model_  # type: ignore[assignment]
        mean = within = torch.zeros(())
        for weight, member in zip(model.weights.tolist(), model.members, strict=True):
            assert isinstance(member, GridModel)
            raw = member.raw_in_tiles(grids, self.tile)
            probs = self._probabilities(raw, member.objective.likelihood)
            mean = mean + weight * probs
            within = within + weight * torch.special.entr(probs).sum(-1)
        return (torch.special.entr(mean).sum(-1) - within).clamp(min=0)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """The share of cells with the right class.

        Args:
            X: examples as in ``fit``.
            y: their masks.
            sample_weight: ``(N,)``.
        """
        error = self.evaluate(X, y, sample_weight)["pixel_error"]
        assert error is not None
        return 1 - error

    def copies(self, table: Any) -> NDArray[np.bool_]:
        """Which examples of a table with masks the model learned from, or from a piece of.

        Args:
            table: as for ``evaluate``; a model of ``ansatz.fit`` remembers a hash of each example.
        """
        table = self._grid_table(table, outcomes=True)
        found = super().copies(table)
        told = origin_of(self)
        pieces = None if told is None else told.asked.options["pieces"]
        if pieces is None:
            return found
        with suppress(UsageError):  # examples too short for pieces gave none
            for number in range(len(table)):
                cut = cut_pieces(table.rows(np.array([number])), pieces)
                found[number] |= super().copies(cut).any()
        return found

    def _grids(self, X: Any) -> Grids:
        check_is_fitted(self)
        found: Grids = read_rows(self, X, reset=False)
        return found

    def _raw_pieces(self, grids: Grids) -> Iterator[Tensor]:
        for first in range(len(grids)):  # one at a time: K numbers for every cell are many
            yield self._raw(grids[np.arange(first, first + 1)])

    def _raw(self, X: Any, offset: ArrayLike | None = None) -> Tensor:
        check_is_fitted(self)
        if offset is not None:
            raise UsageError("masks take no offset.")
        model: GridModel | EnsembleModel = self.model_  # type: ignore[assignment]
        return model.raw_in_tiles(read_rows(self, X, reset=False), self.tile)

    def _codes(self, raw: Tensor, law: Likelihood | None = None) -> Tensor:
        """The most probable class of every cell, tidied as asked for."""
        codes = self._probabilities(raw, law).argmax(-1)
        cleaning = self._cleaning()
        return codes if cleaning is None else cleaning(codes)

    def _cleaning(self) -> Cleaning | None:
        """What tidies predicted masks; None where nothing was asked for."""
        if not self.clean:
            return None
        try:
            return Cleaning(**self.clean)
        except TypeError:
            known = ", ".join(field.name for field in fields(Cleaning))
            raise UsageError(f"clean takes {known}, got {self.clean!r}.") from None

    def _probabilities(self, raw: Tensor, law: Likelihood | None = None) -> Tensor:
        law = law or self.model_.objective.likelihood
        found: Tensor = law.probs(raw)  # type: ignore[operator]  # every law of masks has it
        if found.ndim < raw.ndim:  # dice of two classes: the share of class 1
            found = torch.stack([1 - found, found], -1)
        return found

    def _judge(
        self, likelihood: Likelihood, raw: Tensor, y: Tensor, weight: Tensor | None = None
    ) -> dict[str, float | None]:
        """Overlap of predicted and true masks, and for a law its score per cell."""
        _require_size(tuple(y.shape[1:]), tuple(raw.shape[1:-1]))
        known = y != UNLABELLED
        cells = known.double()
        if weight is not None:
            cells = cells * weight.reshape(-1, *(1,) * (y.ndim - 1))
        target, count = y.clamp(min=0), len(self.classes_)
        codes = self._codes(raw, likelihood)
        found: dict[str, float | None] = {}
        if likelihood.is_law:
            losses = likelihood.loss(raw, target)
            found["nll"] = float((losses * cells).sum() / cells.sum())
        settings: dict[str, Any] = {"classes": count}
        found["pixel_error"] = float(pixel_error(target, codes, cells))
        found["accuracy"] = 1 - found["pixel_error"]  # type: ignore[operator]
        found["dice"] = float(dice(target, codes, cells, **settings))
        found["iou"] = float(iou(target, codes, cells, **settings))
        found["boundary_f1"] = float(boundary_f1(target, codes, cells, **settings))
        if count > 2:
            by_class = dice(target, codes, cells, reduction="class", **settings)
            named = zip(self.classes_, by_class.tolist(), strict=True)
            found |= {f"dice_{name}": value for name, value in named}
        return {name: None if math.isnan(v) else v for name, v in found.items() if v is not None}

    def _read(self, X: Any, y: Any, *given: Any, reset: bool = True, **options: Any) -> Job:
        if X is not None and y is not None:
            X = read_rows(self, X, reset=reset)
            y = _without_channel(y, len(X.shape) - 1)
            if getattr(y, "ndim", 0) > 1:  # before their values: they may be no classes at all
                _require_size(tuple(y.shape[1:]), X.shape[1:])
        job = super()._read(X, y, *given, reset=reset, **options)
        if job.grid is not None:
            _require_size(job.target.shape, job.grid.size)
        if len(self.classes_) < 2:
            raise DataError(f"every cell is of class {self.classes_[0]}: nothing to tell apart.")
        return job

    def _encode(self, y: Any, *, reset: bool) -> tuple[NDArray[Any], TargetSpec]:
        if not reset:
            y = _without_channel(y, len(self.model_.preprocessor.shape) - 1)
        masks = y if isinstance(y, Masks) else _coded(y)
        if reset:
            self.classes_ = _labels(y, masks)
            self.target_names_ = ["mask"]
        else:
            masks = self._recoded(masks)
        codes: NDArray[Any] = masks.load().numpy()
        return codes, TargetSpec(shape=masks.shape, classes=len(self.classes_))

    def _recoded(self, masks: Masks) -> Masks:
        """Masks with the codes of those learned from: a class may be missing among a few."""
        places = {str(name): k for k, name in enumerate(self.classes_)}
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

    def _law(self, target: TargetSpec, rows: float = math.inf) -> Likelihood:
        law = self.likelihood
        if isinstance(law, str):
            options = dict(self.likelihood_options or {})
            if law in ("dice", "sum"):
                options = {"axes": len(target.shape), **options}
            law = likelihoods.create(law, **options)
        if law.name not in MASK_LAWS:
            known = ", ".join(MASK_LAWS)
            raise UsageError(f"{law.name} is no law of masks. Take one of: {known}.")
        made: Likelihood = law
        return made

    def predict_frame(self, X: Any, interval: float | None = None, **options: Any) -> pd.DataFrame:
        """The share of cells of each class in every example.

        Args:
            X: examples as in ``fit``.
            interval: classes have none.
            options: as for tables; none applies.
        """
        labels = self.predict(X.grids if isinstance(X, GridTable) else X)
        cells = labels.reshape(len(labels), -1)
        return pd.DataFrame(
            {f"share_{name}": (cells == name).mean(axis=1) for name in self.classes_}
        )


def _as_colours(names: tuple[str, ...]) -> tuple[str, ...]:
    """Grey values as colours: of a few coloured masks, none may show a colour."""
    are_grey = all(name.isdecimal() and int(name) < 256 for name in names)
    return tuple("#" + 3 * f"{int(name):02x}" for name in names) if are_grey else names


def _require_size(masks: tuple[int, ...], examples: tuple[int, ...]) -> None:
    """A mask has the cells of its example, and one class for each of them."""
    if masks == examples:
        return
    got, size = (" x ".join(map(str, each)) for each in (masks, examples))
    for axis, count, rest in ((-1, masks[-1], masks[:-1]), (1, masks[0], masks[1:])):
        if rest == examples:
            raise DataError(
                f"masks of {got} hold {count} numbers for each of {size} cells; a "
                f"cell has one class: y.argmax({axis}) of one-hot masks. Coloured masks are read "
                "from their files, by read_grids."
            )
    raise DataError(f"masks of {got} cells for examples of {size}: a mask has its example's.")


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
