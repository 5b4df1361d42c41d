"""Signals, images and volumes: values on a regular grid, whose neighbours matter."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz.data import Batch
from ansatz.data.grids import GridPreprocessor, Grids, read_grids
from ansatz.data.grids.tiles import cut_tiles
from ansatz.data.source import Source
from ansatz.errors import DataError, UsageError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.contracts.exporter import Exporter
from ansatz.fitting.contracts.inference import Posterior
from ansatz.fitting.contracts.structure import Facts, Feed, Structure, TableParts
from ansatz.fitting.job import Job
from ansatz.fitting.model import Model, Trained
from ansatz.fitting.problem import Problem
from ansatz.fitting.provenance import provenance_of
from ansatz.fitting.read_again import Notify
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.request import settings_of
from ansatz.fitting.space import Space
from ansatz.fitting.tensor_structure import answer_of
from ansatz.likelihoods import Likelihood
from ansatz.networks import Summary, predict_tiles, summary
from ansatz.networks.grid_inputs import channels_last
from ansatz.networks.receptive_field import receptive_field
from ansatz.spec import InputSpec
from ansatz.structures.grid.baselines import fit_linear_grid
from ansatz.structures.grid.encoder import PIXELS, GridEncoder, grid_source
from ansatz.structures.grid.problem import MASK, grid_problem
from ansatz.structures.grid.reading import grid_table, grids_of
from ansatz.structures.grid.reading_again import Images, LabelledImages
from ansatz.structures.grid.recipe import (
    acting_group,
    choose_grid_recipe,
    default_options,
    grid_space,
    mask_symmetry,
)
from ansatz.symmetry import Group, GroupAverage, suitable_groups
from ansatz.training import Supervised

ONE_FILE = (".csv", ".tsv", ".parquet", ".arrow", ".npz", ".npy")  # of many examples
STACKS = (".tif", ".tiff")
MOST = 512  # examples that are predicted at once
LARGEST_TILE = {1: 2**20, 2: 1024, 3: 128}  # pixels a side that are predicted at once, by axes


class Grid(Structure):
    """C numbers in every pixel of a signal, an image or a volume.

    A network's input is ``(x,)`` with x ``(B, C, L)``, ``(B, C, H, W)`` or ``(B, C, D, H, W)``.
    The answer should not change when the content is shifted, and for masks it should shift with
    it.
    """

    name: ClassVar[str] = "grid"
    unit: ClassVar[tuple[str, str]] = ("image", "images")
    element: ClassVar[tuple[str, str] | None] = ("pixel", "pixels")
    solves: ClassVar[bool] = False
    report: ClassVar[str] = "ansatz.structures.grid.report.contribution:GridReport"

    def leaves_to(self, network: str | nn.Module) -> frozenset[str]:
        """The shape and dropout of networks that are not an mlp."""
        return frozenset() if network == "mlp" else settings_of("network")

    def network(self, axis: str) -> str:
        """A residual network, and a U-Net where every pixel has an answer."""
        return "small_resnet" if axis == "row" else "unet"

    def linear_network(self, axis: str) -> str:
        """A linear map of the pixels; of those around it where every pixel has an answer."""
        return "linear_grid" if axis == "row" else "linear_pixels"

    # Rows.

    def problem(self, data: Any, column_roles: ColumnRoles, **how: Any) -> Problem:
        """Reads grids with the columns beside them, and decides what is predicted."""
        return grid_problem(data, column_roles, **how)

    def read_again(
        self, model: Model, data: str, *, outcomes: bool, options: Mapping[str, Any], notify: Notify
    ) -> Images:
        """Examples of the size of the fit's; masks are predicted at the size of their images."""
        kind = Images if model.axis == "row" else LabelledImages
        return kind(model, data, outcomes=outcomes, options=options, notify=notify)

    def new_data(self, model: Model, source: str) -> str:
        """A file of many examples like that of the fit, else a folder; masks go to another."""
        suffix, dense = Path(source).suffix.lower(), model.axis == "element"
        if dense and suffix in STACKS:
            return f"NEW{suffix} --out MASKS{suffix}"
        examples = f"NEW{suffix}" if suffix in ONE_FILE else "NEW-IMAGES/"
        return f"{examples} --out MASKS/" if dense else examples

    def groups(self, spec: InputSpec) -> list[Group]:
        """Shifts, flips and rotations, as the axes of such examples allow."""
        return suitable_groups(spec.size)

    def group(self, spec: InputSpec, name: str) -> Group:
        """Any group that moves pixels or changes their numbers."""
        return acting_group(name, spec.size)

    def from_python(
        self, X: Any, *, estimator: Any, reset: bool, roles: Mapping[str, str] | None = None
    ) -> Grids:
        """Arrays, lists of images or of their files, and what ``read_grids`` gives."""
        if roles:
            raise UsageError(f"{self.unit[1]} have no column '{next(iter(roles))}'.")
        return grids_of(X, estimator=estimator, reset=reset)

    def of_columns(
        self, frame: Any, names: list[str], place: tuple[str, Any], spec: InputSpec | None
    ) -> Grids:
        """The images that a column of a table names, beside the table's file."""
        folder, name = place[1], names[0]
        paths = frame[[name]].assign(**{name: [str(folder / str(p)) for p in frame[name]]})
        like: dict[str, Any] = (
            {} if spec is None else {"size": spec.size, "channels": spec.features}
        )
        return read_grids(paths, image=name, outcomes=False, **like).grids

    def contents(self, rows: Grids) -> Tensor:
        return rows.load()

    def from_table(self, model: Model, table: Any, *, outcomes: bool) -> TableParts:
        """Examples with the columns beside them, read from files if they are not."""
        column_roles = model.column_roles
        assert column_roles is not None
        found = grid_table(model, table, outcomes=outcomes)
        frame, y = found.frame, None
        if outcomes:
            y = found.masks if column_roles.target == [MASK] else column_roles.outcomes(frame)
            if y is None:
                raise DataError(
                    f"{found.origin}: no masks to evaluate by: --masks says where they are."
                )
        return TableParts(
            found.grids,
            y,
            column_roles.weight(frame),
            column_roles.offsets(frame),
            column_roles.trial_counts(frame),
        )

    def cuts(self, model: Model, table: Any) -> Iterator[tuple[int, Any]]:
        """Cuts examples with masks into as many tiles as the fit did."""
        asked = provenance_of(model)
        tiles = None if asked is None else asked.asked.reader().get("tiles")
        if tiles is None:
            return
        found = grid_table(model, table, outcomes=True)
        with suppress(UsageError):  # examples too short for tiles gave none
            for number in range(len(found)):
                yield number, cut_tiles(found.rows(np.array([number])), tiles)

    def summary(self, model: Model) -> Summary:
        """The layers of the network; of several, those of the first."""
        return summary(model.posterior.networks[0].network, model.encoder.spec)

    def more_examples(self, axis: str) -> str:
        """Advice where examples are too few to be split."""
        if axis == "row":
            return ""
        return " Examples with masks can be cut into several: --tiles 5 (tiles=5)."

    # Recipe and encoder.

    def recipe(self, facts: Facts) -> Recipe:
        """By the number of examples and of their pixels."""
        assert facts.spec is not None
        masks = facts.target.axis == "element"
        recipe = choose_grid_recipe(facts.rows, facts.spec, masks=masks, coupled=facts.coupled)
        if not facts.averaged:
            return recipe
        # Folds stop the members; what the user holds out in their place is shared by all. Members
        # are several answers already, and networks on grids take long.
        return recipe.model_copy(update={"members": 5, "holdout": 0.0, "symmetry": None})

    def settle(
        self, recipe: Recipe, job: Job, network: str | nn.Module, options: Mapping[str, Any]
    ) -> Recipe:
        """The recipe as it is."""
        return recipe

    def network_options(
        self, network: str | nn.Module, recipe: Recipe, spec: InputSpec | None
    ) -> dict[str, Any]:
        """Width and depth of U-Nets by the size of the examples; the shape of an mlp."""
        if recipe.symmetry and spec is not None:
            mask_symmetry(recipe.symmetry, spec.size)  # what cannot be rotated is refused
        if network != "mlp":
            return dict(default_options(network, spec))
        return {
            "widths": list(recipe.widths),
            "activation": recipe.activation,
            "dropout": recipe.dropout,
        }

    def encoder(
        self, rows: Grids, weight: NDArray[np.float64], recipe: Recipe, options: Mapping[str, Any]
    ) -> GridEncoder:
        """Mean and standard deviation of every channel."""
        return GridEncoder(GridPreprocessor.fit(rows, weight))

    def load_encoder(self, state: Mapping[str, Any]) -> GridEncoder:
        """The encoder of a saved model."""
        return GridEncoder(GridPreprocessor.from_state(dict(state)))

    # Training.

    def batch(self, job: Job, encoder: GridEncoder, recipe: Recipe) -> Batch | None:
        """None: examples are read and augmented batch by batch."""
        return None

    def adapt(
        self, network: nn.Module, encoder: GridEncoder, job: Job, objective: Supervised
    ) -> nn.Module:
        """Asks the network once, and keeps its weights channels last."""
        assert objective.shift is not None
        (x,) = encoder.preprocessor.transform(job.rows[np.arange(1)])  # type: ignore[arg-type]
        got = answer_of(network, (x.to(next(network.parameters()).dtype),))
        dense = objective.axis == 1
        wanted = (1, objective.shift.numel(), *(job.target.shape if dense else ()))
        if tuple(got.shape) != wanted:
            raise UsageError(
                f"the network answers {tuple(got.shape[1:])} to one example, the outcome needs "
                f"{wanted[1:]}: small_resnet has one answer per example, unet one for every pixel "
                "(of a Segmenter)."
            )
        return channels_last(network)

    def count_outputs(
        self, network: nn.Module, job: Job, recipe: Recipe, options: Mapping[str, Any]
    ) -> int:
        """Asks the network about one example."""
        one: Grids = job.rows[np.arange(1)]  # type: ignore[assignment]
        encoder = self.encoder(one, job.weight[:1].numpy(), recipe, options)
        (x,) = encoder.preprocessor.transform(one)
        return int(answer_of(network, (x.to(next(network.parameters()).dtype),)).shape[1])

    def answering(
        self, network: nn.Module, encoder: GridEncoder, recipe: Recipe | None
    ) -> tuple[nn.Module, nn.Module]:
        """The network, averaged over the symmetry that its masks should have."""
        network = channels_last(network)
        if recipe is None or recipe.symmetry is None:
            return network, network
        group = mask_symmetry(recipe.symmetry, encoder.preprocessor.shape[1:])
        return network, GroupAverage(network, group)

    def source(
        self, job: Job, encoder: GridEncoder, feed: Feed, options: Mapping[str, Any]
    ) -> Source:
        """Examples in a new order each epoch, augmented in training."""
        return grid_source(job, encoder, feed)

    # Predictions.

    def raws(
        self,
        networks: Sequence[Trained],
        encoder: GridEncoder,
        rows: Grids,
        offset: Tensor | None,
        *,
        notes: list[str] | None,
        options: Mapping[str, Any],
    ) -> Iterator[Iterable[Tensor]]:
        """A few examples at a time; masks of large ones tile by tile."""
        first = networks[0]
        dense, seen = first.objective.axis == 1, encoder.preprocessor
        seen.check(rows, any_size=dense)
        sides = _tile(rows.shape[1:], seen.shape[1:], options.get("tile")) if dense else None
        if sides is not None:
            tiled = [_tiled(network, rows.shape[0], sides) for network in networks]
            for number in range(len(rows)):
                (x,) = encoder.inputs(rows[np.arange(number, number + 1)])
                yield (answer(x) for answer in tiled)
            return
        for part in chunks(rows, dense=dense):
            inputs = encoder.inputs(rows[part])
            extra = None if offset is None else offset[torch.as_tensor(part)]
            yield (network(inputs, extra) for network in networks)
        if not len(rows):
            assert first.objective.shift is not None
            empty = torch.zeros(0, *first.objective.shift.shape, dtype=torch.float64)
            yield (empty for _ in networks)

    # Linear models.

    def baseline(self, likelihood: Likelihood, job: Job, seed: int) -> tuple[Posterior, list[str]]:
        """The linear model in the pixels; of few examples it is penalised."""
        return fit_linear_grid(self, likelihood, job, seed), []

    # Search and export.

    def search_space(
        self, recipe: Recipe, facts: Facts, *, network: str | None, takes: Collection[str]
    ) -> Space:
        """Learning rates and batches around the recipe's, and whether to augment."""
        return grid_space(recipe, facts, network=network, takes=takes)

    def require_answers(self, network: nn.Module, name: str, inputs: InputSpec, axis: str) -> None:
        """Refuses masks by a network of one answer, and one answer by a network of masks."""
        masks = axis != "row"
        with torch.no_grad():
            answer = network(torch.zeros(1, inputs.features, *inputs.size))
        if masks and answer.shape[2:] != inputs.size:
            raise UsageError(f"{name} answers once for each example, not for its pixels.")
        if not masks and answer.ndim > 2:
            raise UsageError(f"{name} labels every pixel; these outcomes are one for each example.")

    def exporter(self, encoder: GridEncoder, names: Sequence[str] | None) -> Exporter:
        """Pixels, as they are stored."""
        from ansatz.structures.grid.export import GridExporter

        return GridExporter(encoder, names)


def chunks(rows: Grids, *, dense: bool) -> Iterator[NDArray[np.intp]]:
    """The numbers of the examples that are predicted at once, chunk by chunk."""
    share = PIXELS // 4 if dense else PIXELS
    size = min(MOST, max(1, share // math.prod(rows.shape)))
    for first in range(0, len(rows), size):
        yield np.arange(first, min(first + size, len(rows)))


def _tile(size: tuple[int, ...], seen: tuple[int, ...], tile: int | None) -> tuple[int, ...] | None:
    """The sides of the tiles that examples are predicted in; None where they fit at once."""
    most = tile or LARGEST_TILE[len(size)]
    sides = tuple(min(most, side) for side in (seen if tile is None else size))
    fits = all(side <= part for side, part in zip(size, sides, strict=True))
    return None if fits else sides


def _tiled(trained: Trained, channels: int, sides: tuple[int, ...]) -> Callable[[Tensor], Tensor]:
    """The likelihood's parameters at every pixel of an example, tile by tile."""
    stride = int(getattr(trained.network, "stride", 1))  # tiles are pooled as the whole would be
    multiple = stride if all(side >= 6 * stride for side in sides) else 1
    overlap = _context(trained.network, channels, sides, multiple)

    def answer(x: Tensor) -> Tensor:
        pixels = predict_tiles(
            trained.answering, x, tile=sides, overlap=overlap, multiple=multiple, border="keep"
        )
        return trained.objective.attach(pixels.movedim(1, -1)).double().detach()

    return answer


def _context(
    network: nn.Module, channels: int, sides: tuple[int, ...], multiple: int
) -> tuple[int, ...]:
    """The overlap of tiles: the receptive field, at most a third of a tile."""
    seen = receptive_field(network, InputSpec.grid(channels, *sides)).size
    most = [side // 3 // multiple * multiple for side in sides]
    return tuple(
        max(1, min(third, -(-reach // 2))) for third, reach in zip(most, seen, strict=True)
    )
