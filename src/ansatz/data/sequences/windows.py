"""Examples that are windows of time series: the steps up to an origin, and those after it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data.batch import Batch, take_rows
from ansatz.data.keys import mix
from ansatz.data.sequences.panel import Panel
from ansatz.seeds import derive, generator
from ansatz.spec import InputSpec


class Windows:
    """N origins in the series of a panel; the series are held once.

    Args:
        panel: the series.
        series: ``(N,)`` the number of each row's series.
        origin: ``(N,)`` the last step that a forecast may see, as a place in ``panel.target``.
        horizon: steps ahead, H.
        length: steps of a window, T; earlier ones than the series has count as not observed.
        season: steps of a cycle.
        link: of the likelihood whose first number the level of a window is added to.
        parts: steps of training, validation and test, where the data come with them.
        reading: how the table was read, to read others alike.

    Example:
        >>> import pandas as pd
        >>> from ansatz.data.sequences.panel import panel_of
        >>> from ansatz.data.sequences.windows import Windows
        >>> table = pd.DataFrame({"week": range(9), "cases": range(9)})
        >>> panel = panel_of(table, "the table", time="week", target="cases")
        >>> Windows.all(panel, horizon=2, length=3)[[0]].outcomes()
        array([[3., 4.]])
    """

    has_features = True

    def __init__(
        self,
        panel: Panel,
        series: NDArray[np.int64],
        origin: NDArray[np.int64],
        *,
        horizon: int,
        length: int,
        season: int = 1,
        link: str = "identity",
        parts: tuple[int, int, int] | None = None,
        reading: Mapping[str, Any] | None = None,
    ) -> None:
        self.panel, self.series, self.origin = panel, series, origin
        self.horizon, self.length, self.season, self.link = horizon, length, season, link
        self.parts, self.reading = parts, reading or {}

    @classmethod
    def all(cls, panel: Panel, *, horizon: int, length: int, season: int = 1) -> "Windows":
        """Every origin with a whole window behind it and an observed outcome ahead.

        Where a series is too short for two windows, origins begin at its first observed step.
        """
        parts: list[tuple[Any, Any]] = []
        for k in range(len(panel)):
            first, end = panel.offsets[k], panel.offsets[k + 1]
            seen = np.isfinite(panel.target[first:end])
            begin = int(seen.argmax()) if seen.any() else end - first
            if end - first - begin >= 2 * length + horizon:
                begin += length - 1
            ahead = np.concatenate([[0], np.cumsum(seen)])
            places = np.arange(begin, end - first - 1)
            until = np.minimum(places + 1 + horizon, end - first)
            places = places[ahead[until] > ahead[places + 1]]
            parts.append((np.full(len(places), k), places + first))
        series, origin = (
            np.concatenate(each).astype(np.int64) for each in zip(*parts, strict=True)
        )
        return cls(panel, series, origin, horizon=horizon, length=length, season=season)

    @classmethod
    def latest(cls, panel: Panel, *, horizon: int, length: int, season: int = 1) -> "Windows":
        """The last observed step of each series, from which the future is forecast."""
        last = panel.last
        series = np.flatnonzero(last >= 0)
        origin = panel.offsets[series] + last[series]
        return cls(panel, series, origin, horizon=horizon, length=length, season=season)

    def __len__(self) -> int:
        return len(self.origin)

    def __getitem__(self, index: Any) -> "Windows":
        return self._but(self.series[index], self.origin[index], self.link)

    def with_link(self, link: str) -> "Windows":
        """The same rows for a likelihood with this link."""
        return self._but(self.series, self.origin, link)

    def _but(self, series: Any, origin: Any, link: str) -> "Windows":
        return Windows(
            self.panel,
            series,
            origin,
            horizon=self.horizon,
            length=self.length,
            season=self.season,
            link=link,
            parts=self.parts,
            reading=self.reading,
        )

    @property
    def spec(self) -> InputSpec:
        """The numbers of a step, before an encoder has seen the rows."""
        return window_spec(1 + self.panel.past.shape[1], self.length, 1, self.horizon)

    @property
    def step(self) -> NDArray[np.int64]:
        """The step of each origin on the clock of the panel."""
        return self.panel.starts[self.series] + self.origin - self.panel.offsets[self.series]

    def outcomes(self) -> NDArray[np.float64]:
        """The H values after each origin, ``(N, H)``; nan where there is none."""
        return self._ahead(self.panel.target, np.nan)

    def weights(self) -> NDArray[np.float64]:
        """The weights of the outcomes, ``(N, H)``; 0 where there is none."""
        return self._ahead(self.panel.weight, 0.0) * np.isfinite(self.outcomes())

    def _ahead(self, values: NDArray[np.float64], fill: float) -> NDArray[np.float64]:
        places = self.origin[:, None] + 1 + np.arange(self.horizon)
        inside = places < self.panel.offsets[self.series + 1][:, None]
        return np.where(inside, values[np.minimum(places, len(values) - 1)], fill)

    def values_back(self, steps: int) -> NDArray[np.float64]:
        """The values of each series ``steps`` before, ..., at its origin, ``(N, steps)``."""
        places = self.origin[:, None] + np.arange(1 - steps, 1)
        inside = places >= self.panel.offsets[self.series][:, None]
        return np.where(inside, self.panel.target[np.maximum(places, 0)], np.nan)

    def content_keys(self, seed: int = 0) -> NDArray[np.uint64]:
        """A hash of each row: its series' values and its origin."""
        salt = np.uint64(derive(seed, "window"))
        place = (self.origin - self.panel.offsets[self.series]).astype(np.uint64)
        keys: NDArray[np.uint64] = mix(mix(self.panel.digests()[self.series] ^ salt) + place)
        return keys

    def describe(self) -> dict[str, Any]:
        """The numbers of a step."""
        return {"names": None, "count": 1 + self.panel.past.shape[1], "columns": None}


def window_spec(features: int, length: int, ahead: int, horizon: int) -> InputSpec:
    """The inputs of a forecasting network, by their sizes."""
    parts = (("ahead", InputSpec.of(ahead)), ("level", InputSpec.of(2 + horizon)))
    return replace(InputSpec.sequence(features=features, length=length), parts=parts)


class WindowInputs(NamedTuple):
    """The inputs of a forecasting network.

    Args:
        values: ``(B, T, D)`` the window, the target first: less its level, over its unit.
        ahead: ``(B, F)`` what is known at the origin of the time to come.
        level: ``(B, 2 + H)`` the level of the window, its unit, and log exposures ahead.
    """

    values: Tensor
    ahead: Tensor
    level: Tensor

    def count_rows(self) -> int:
        """The number of windows, B."""
        return len(self.values)

    def take_rows(self, rows: slice | Tensor) -> "WindowInputs":
        """Some of the windows."""
        return WindowInputs(self.values[rows], self.ahead[rows], self.level[rows])


class Gathers(Protocol):
    """What makes inputs of origins."""

    def __call__(self, series: Tensor, origin: Tensor) -> WindowInputs: ...


class WindowSource:
    """Batches of windows, gathered by index from series that are held once.

    Args:
        gather: makes the inputs of some rows.
        rows: everything but the inputs.
        windows: the rows.
        batch_size: windows per batch.
        seed: the order of epoch e is a function of (seed, e).
        shuffle: False keeps the rows' own order.
    """

    def __init__(
        self,
        gather: Gathers,
        rows: Batch,
        windows: Windows,
        batch_size: int,
        *,
        seed: int = 0,
        shuffle: bool = True,
    ) -> None:
        self.gather, self.rows, self.batch_size = gather, rows, batch_size
        self.series = torch.from_numpy(np.array(windows.series))
        self.origin = torch.from_numpy(np.array(windows.origin))
        self.seed, self.shuffle = seed, shuffle

    def __len__(self) -> int:
        return -(-len(self.rows.index) // self.batch_size)

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of ``epoch`` from position ``start`` on."""
        order = torch.arange(len(self.rows.index))
        if self.shuffle:
            order = torch.randperm(len(order), generator=generator(self.seed, "order", epoch))
        for rows in order.split(self.batch_size)[start:]:
            inputs = self.gather(self.series[rows], self.origin[rows])
            yield take_rows(self.rows, rows)._replace(inputs=inputs)
