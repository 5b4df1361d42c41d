"""Series in time: windows of their past, from which the steps ahead are forecast."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ansatz.data import Batch
from ansatz.data.sequences.windows import Windows, WindowSource
from ansatz.data.source import Source
from ansatz.errors import UsageError
from ansatz.fitting.contracts.exporter import Exporter
from ansatz.fitting.contracts.structure import Facts, Feed
from ansatz.fitting.job import Job
from ansatz.fitting.model import Model, Trained
from ansatz.fitting.recipe import Recipe, default_recipe
from ansatz.fitting.request import settings_of
from ansatz.fitting.tensor_structure import TensorStructure
from ansatz.fitting.training import typed
from ansatz.networks import Summary, summary
from ansatz.seeds import derive
from ansatz.structures.series.encoder import fit_window_encoder, load_window_encoder
from ansatz.structures.series.start import settle_level, window_recipe
from ansatz.training import Supervised

AT_ONCE = 4_096  # windows that are predicted at once


class SeriesStructure(TensorStructure):
    """Windows of series: what was seen up to an origin, and what is known of the time ahead.

    A network's inputs are those of :class:`~ansatz.data.sequences.windows.WindowInputs`.
    """

    name: ClassVar[str] = "series"
    unit: ClassVar[tuple[str, str]] = ("origin", "origins")

    def leaves_to(self, network: str | nn.Module) -> frozenset[str]:
        """The shape and dropout of networks, which have defaults of their own."""
        return settings_of("network")

    def network(self, axis: str) -> str:
        """A linear map of the window and a multilayer perceptron."""
        return "window"

    def linear_network(self, axis: str) -> str:
        """A linear map of the window."""
        return "linear_window"

    # Reading.

    def as_rows(self, X: Any) -> Any:
        """Windows, which a forecast's reader makes of tables."""
        if not isinstance(X, Windows):
            raise UsageError("series are read by --horizon, or by a Forecaster.")
        return X

    def summary(self, model: Model) -> Summary | str:
        """The size of the network."""
        return summary(model.posterior.networks[0].network, model.encoder.spec)

    # Recipe and encoder.

    def recipe(self, facts: Facts) -> Recipe:
        """At most five members; the number of origins settles the rest."""
        base = default_recipe(facts)
        return base.model_copy(update={"members": min(5, base.members)})

    def settle(
        self, recipe: Recipe, job: Job, network: str | nn.Module, options: Mapping[str, Any]
    ) -> Recipe:
        """Some twenty passes over the origins."""
        return window_recipe(recipe, job)

    def encoder(
        self, rows: Any, weight: NDArray[Any], recipe: Recipe, options: Mapping[str, Any]
    ) -> Any:
        """The units of the training windows and their covariates."""
        return fit_window_encoder(rows, options)

    def load_encoder(self, state: Mapping[str, Any]) -> Any:
        """The encoder of a saved model."""
        return load_window_encoder(state)

    # Training.

    def batch(self, job: Job, encoder: Any, recipe: Recipe) -> Batch | None:
        """None: windows are gathered batch by batch."""
        return None

    def adapt(self, network: nn.Module, encoder: Any, job: Job, objective: Supervised) -> nn.Module:
        """Starts at the best constant beside the level of each window."""
        settle_level(network, encoder, job, objective)
        return super().adapt(network, encoder, job, objective)

    def source(self, job: Job, encoder: Any, feed: Feed, options: Mapping[str, Any]) -> Source:
        """Origins in a new order each epoch; those that are evaluated in their own."""
        dtype = getattr(torch, feed.recipe.dtype)
        rows = typed(Batch((), job.y, job.weight, job.offset, job.index), dtype)
        gather, windows = encoder.gather(job.rows, rows.weight.dtype), job.rows
        assert isinstance(windows, Windows)
        if not feed.training:
            return WindowSource(gather, rows, windows, AT_ONCE, shuffle=False)
        size, seed = feed.recipe.batch_size or len(job.y), derive(feed.seed, "rows")
        shuffle = feed.recipe.batch_size > 0
        return WindowSource(gather, rows, windows, size, seed=seed, shuffle=shuffle)

    # Predictions.

    def raws(
        self,
        networks: Sequence[Trained],
        encoder: Any,
        rows: Any,
        offset: Tensor | None,
        *,
        notes: list[str] | None,
        options: Mapping[str, Any],
    ) -> Iterator[Iterable[Tensor]]:
        """4,096 windows at a time."""
        for first in range(0, max(len(rows), 1), AT_ONCE):
            part = slice(first, first + AT_ONCE)
            extra = None if offset is None else offset[part]
            inputs = encoder.inputs(rows[part])
            yield [network(inputs, extra) for network in networks]

    def exporter(self, encoder: Any, names: Sequence[str] | None) -> Exporter | None:
        """None: windows are made outside a graph."""
        return None
