"""From windows of series to a network's inputs, each scaled by its own window."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data import Column
from ansatz.data.sequences.panel import NEIGHBOURS, Panel
from ansatz.data.sequences.windows import WindowInputs, Windows, window_spec
from ansatz.errors import DataError
from ansatz.spec import InputSpec

LEAST_UNIT = 0.05  # of the scale of all series: a window that hardly moves is not blown up
Array = NDArray[np.float64]


class WindowState(NamedTuple):
    """What training rows showed, as JSON holds it."""

    link: str  # identity, log, or another
    scale: float  # of the target
    center: float  # subtracted where neither link applies
    added: float  # to counts before their logarithm
    length: int
    horizon: int
    season: int
    gaps: bool  # whether steps say if they were observed
    past: tuple[str, ...]
    past_mean: tuple[float, ...]
    past_scale: tuple[float, ...]
    known: tuple[str, ...]
    known_mean: tuple[float, ...]
    known_scale: tuple[float, ...]
    calendar: tuple[str, ...]


class WindowEncoder:
    r"""Scales each window by what it holds itself.

    With the last observed value :math:`\ell` before the origin and the standard deviation
    :math:`u` of the window (in units of the scale s of the training outcomes, at least 0.05),

    .. math:: x_t = \frac{y_t - \ell}{s u} \quad\text{(identity link)}, \qquad
        x_t = \log\frac{y_t + c}{E_t} - \ell, \quad
        \ell = \log\frac{y_\text{last} + c}{E_\text{last}} \quad\text{(log link)}

    with the exposure E and c = 1 for counts, 0 for positive numbers. Steps that were not observed
    hold the last value before them. The outcomes stay as they are:
    :class:`~ansatz.networks.WindowLevel` brings the answer back to the level.
    """

    dtype = torch.float64

    def __init__(self, state: WindowState) -> None:
        self.learned = state

    @property
    def spec(self) -> InputSpec:
        """The numbers of a step, what is known at the origin, and the level."""
        s = self.learned
        features = 1 + s.gaps + len(s.past)
        known = len(s.calendar) + s.horizon * len(s.known) + (2 if s.link == "log" else 1)
        return window_spec(features, s.length, known, s.horizon)

    @property
    def notes(self) -> list[str]:
        """None."""
        return []

    @property
    def columns(self) -> list[Column]:
        """None: steps are not columns."""
        return []

    def inputs(self, rows: Windows, *, notes: list[str] | None = None) -> WindowInputs:
        """The inputs of all rows at once."""
        gather = self.gather(rows, torch.float64)
        return gather(torch.from_numpy(rows.series), torch.from_numpy(rows.origin))

    def gather(self, rows: Windows, dtype: torch.dtype) -> "Gather":
        """What gathers the windows of a panel by index."""
        if not isinstance(rows, Windows):
            raise DataError("the model forecasts series; these are not windows of series.")
        return Gather(self.learned, rows.panel, dtype)

    def state(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {"kind": "window", **self.learned._asdict()}


class Gather:
    """The series of a panel as tensors, and their windows by index."""

    def __init__(self, state: WindowState, panel: Panel, dtype: torch.dtype) -> None:
        self.state, self.dtype = state, dtype
        lengths = panel.lengths
        seen = np.isfinite(panel.target)
        first = np.array(
            [
                a + (int(seen[a:b].argmax()) if seen[a:b].any() else 0)
                for a, b in zip(panel.offsets[:-1], panel.offsets[1:], strict=True)
            ]
        )
        exposure = np.ones_like(panel.target)
        if panel.exposure is not None:
            exposure = np.where(np.isnan(filled := _carried(panel.exposure, panel)), 1.0, filled)
        x = self._transformed(panel.target, exposure)
        self.x = torch.from_numpy(np.nan_to_num(_carried(x, panel)))
        self.seen = torch.from_numpy(seen.astype(np.float64))
        self.first, self.end = torch.from_numpy(first), torch.from_numpy(panel.offsets[1:])
        self.log_exposure = torch.from_numpy(np.log(exposure))
        covariates = past_values(panel, state.link, state.added)
        past = _standard(panel, covariates, panel.past_names, state.past, state.past_mean,
                         state.past_scale)  # fmt: skip
        self.past = torch.from_numpy(past).to(dtype)
        known = _standard(panel, panel.known, panel.known_names, state.known, state.known_mean,
                          state.known_scale)  # fmt: skip
        self.known = torch.from_numpy(known)
        # The step on the clock of place p of series i is p + shift[i].
        self.shift = torch.from_numpy(panel.starts - panel.offsets[:-1])
        steps = int((panel.starts + lengths).max()) + 1
        calendar, names = panel.clock.calendar(steps)
        if tuple(names) != state.calendar:
            raise DataError(
                "the steps of these series are of another length than those of the fit."
            )
        self.calendar = torch.from_numpy(calendar)

    def _transformed(self, y: Array, exposure: Array) -> Array:
        s = self.state
        if s.link == "log":
            return np.log((np.maximum(y, 0) + s.added).clip(1e-12) / exposure)
        return (y - s.center) / s.scale

    def __call__(self, series: Tensor, origin: Tensor) -> WindowInputs:
        s = self.state
        first = self.first[series].unsqueeze(1)
        places = origin.unsqueeze(1) + torch.arange(1 - s.length, 1)
        inside = places >= first
        places = torch.maximum(places, first)
        x, level = self.x[places], self.x[origin].unsqueeze(1)
        x = torch.where(inside, x - level, 0)
        if s.link == "identity":
            count = inside.sum(1, keepdim=True)
            mean = x.sum(1, keepdim=True) / count
            unit = (torch.where(inside, x - mean, 0).square().sum(1, keepdim=True) / count).sqrt()
            unit = torch.where(count > 1, unit, 1).clamp(min=LEAST_UNIT)
            x = x / unit
        else:
            unit = torch.ones_like(level)
            if s.link != "log":
                x, level = x + level, torch.zeros_like(level)
        channels = [x.unsqueeze(2).to(self.dtype)]
        if s.gaps:
            channels.append((self.seen[places] * inside).unsqueeze(2).to(self.dtype))
        if s.past:
            channels.append(torch.where(inside.unsqueeze(2), self.past[places], 0))
        ahead = (origin.unsqueeze(1) + 1 + torch.arange(s.horizon)).minimum(
            self.end[series].unsqueeze(1) - 1
        )
        base = self.log_exposure[ahead]
        known = [self.calendar[self.shift[series] + origin + 1]]
        if s.known:
            known.append(self.known[ahead].flatten(1))
        known.append(unit.log())
        if s.link == "log":
            known.append(level + base[:, :1])
        values = torch.cat(channels, 2) if len(channels) > 1 else channels[0]
        return WindowInputs(
            values,
            torch.cat(known, 1).to(self.dtype),
            torch.cat([level, unit, base], 1).to(self.dtype),
        )


def past_values(panel: Panel, link: str, added: float) -> Array:
    """The covariates that end at the origin; beside a logarithmic link neighbours' logarithms."""
    if link != "log" or NEIGHBOURS not in panel.past_names:
        return panel.past
    found = panel.past.copy()
    column = panel.past_names.index(NEIGHBOURS)
    found[:, column] = np.log((found[:, column] + added).clip(1e-12))
    return found


def _carried(values: Array, panel: Panel) -> Array:
    """Each gap filled with the last value before it in its series."""
    flat = values if values.ndim == 2 else values[:, None]
    found = np.empty_like(flat)
    place = np.arange(len(flat))
    begin = np.repeat(panel.offsets[:-1], panel.lengths)
    for c in range(flat.shape[1]):
        last = np.maximum.accumulate(np.where(np.isfinite(flat[:, c]), place, -1))
        found[:, c] = np.where(last >= begin, flat[np.maximum(last, 0), c], np.nan)
    return found if values.ndim == 2 else found[:, 0]


def _standard(
    panel: Panel,
    values: Array,
    names: list[str],
    wanted: tuple[str, ...],
    mean: tuple[float, ...],
    scale: tuple[float, ...],
) -> Array:
    """The columns of the fit, standardised by its training rows; 0 before the first value."""
    missing = [name for name in wanted if name not in names]
    if missing:
        raise DataError(f"the table has no column '{missing[0]}', which the model needs.")
    columns = values[:, [names.index(name) for name in wanted]]
    found: Array = np.nan_to_num((_carried(columns, panel) - np.array(mean)) / np.array(scale))
    return found


def fit_window_encoder(rows: Windows, options: Mapping[str, Any]) -> WindowEncoder:
    """An encoder of the training rows: of the steps up to their last outcomes."""
    panel = rows.panel
    until = np.full(len(panel), -1)
    np.maximum.at(until, rows.series, rows.origin + rows.horizon)
    begin = np.repeat(panel.offsets[:-1], panel.lengths)
    series = np.repeat(np.arange(len(panel)), panel.lengths)
    learned = (np.arange(len(panel.target)) <= until[series]) & (begin >= 0)
    y = panel.target[learned]
    y = y[np.isfinite(y)]
    scale, center = float(y.std()), float(y.mean())
    link, added = rows.link, 0.0
    if link == "log":
        added = 1.0 if (y == np.round(y)).all() else (0.0 if y.min() > 0 else 0.01 * center)
    plain = link in ("identity", "log")
    past = _carried(past_values(panel, link, added), panel)[learned]
    known = _carried(panel.known, panel)[learned]
    _, calendar = panel.clock.calendar(1)
    short = bool((rows.origin - rows.length + 1 < panel.offsets[rows.series]).any())
    state = WindowState(
        link=link,
        scale=scale if scale > 0 else 1.0,
        center=0.0 if plain else center,
        added=added,
        length=rows.length,
        horizon=rows.horizon,
        season=rows.season,
        gaps=short or not bool(np.isfinite(panel.target[learned]).all()),
        past=tuple(panel.past_names),
        past_mean=tuple(_mean(past)),
        past_scale=tuple(_scale(past)),
        known=tuple(panel.known_names),
        known_mean=tuple(_mean(known)),
        known_scale=tuple(_scale(known)),
        calendar=tuple(calendar),
    )
    return WindowEncoder(state)


def _mean(columns: Array) -> list[float]:
    return [float(np.nanmean(c)) if np.isfinite(c).any() else 0.0 for c in columns.T]


def _scale(columns: Array) -> list[float]:
    found = [float(np.nanstd(c)) if np.isfinite(c).any() else 0.0 for c in columns.T]
    return [each if each > 0 else 1.0 for each in found]


def load_window_encoder(state: Mapping[str, Any]) -> WindowEncoder:
    """The encoder of a saved model."""
    given: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v for k, v in state.items() if k != "kind"
    }
    return WindowEncoder(WindowState(**given))
