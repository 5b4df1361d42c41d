"""From clouds to a network's inputs: centred coordinates in one unit, standardised features."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import chi2

from ansatz.data import Column
from ansatz.data.points.clouds import Clouds
from ansatz.data.sets.batch import ElementBatch, SetBatch
from ansatz.data.sets.sets import Elements
from ansatz.errors import DataError
from ansatz.layers.ragged import segment_mean, spread
from ansatz.spec import InputSpec

LEVEL = 1e-3  # of the test of uniform poses


class PointEncoder:
    """Every cloud centred at the mean of its points, all divided by one length.

    Args:
        scale: the root mean square radius of the training clouds.
        mean: of the features of points.
        deviation: of the features of points.
        rotates: whether the training clouds stand in no common pose.
        rows: ``"sets"`` or ``"elements"``.
    """

    dtype = torch.float32

    def __init__(
        self, scale: float, mean: list[float], deviation: list[float], rotates: bool, rows: str
    ) -> None:
        self.scale, self.mean, self.deviation = scale, mean, deviation
        self.rotates, self.rows = rotates, rows

    @classmethod
    def fit(cls, rows: Clouds | Elements) -> "PointEncoder":
        """Fits the units to the training clouds."""
        clouds = rows.packed()[0] if isinstance(rows, Elements) else rows
        if not len(clouds):
            raise DataError("there are no clouds to train on.")
        points, offsets = _centred(clouds)
        scale = float(points.square().sum(1).mean().sqrt())
        features = np.asarray(clouds.values[:, 3:], dtype=np.float64)
        deviation = features.std(0)
        return cls(
            scale if scale > 0 else 1.0,
            features.mean(0).tolist(),
            np.where(deviation > 0, deviation, 1.0).tolist(),
            bool(pose_p_value(points, offsets) > LEVEL),
            "elements" if isinstance(rows, Elements) else "sets",
        )

    @property
    def spec(self) -> InputSpec:
        """The numbers of a point."""
        rows = "elements" if self.rows == "elements" else "sets"
        return InputSpec("points", 3 + len(self.mean), rows=rows)  # type: ignore[arg-type]

    @property
    def notes(self) -> list[str]:
        """Whether clouds are rotated in training."""
        if not self.rotates:
            return []
        return ["the clouds stand in no common pose: each is rotated at random in training."]

    @property
    def columns(self) -> list[Column]:
        """None: points have no columns."""
        return []

    def inputs(
        self, rows: Clouds | Elements, *, notes: list[str] | None = None
    ) -> SetBatch | ElementBatch:
        """Values and offsets; for points, which are asked for."""
        if isinstance(rows, Elements):
            clouds, chosen = rows.packed()
            return ElementBatch(*self._of_clouds(clouds), torch.tensor(chosen))
        return self._of_clouds(rows)

    def _of_clouds(self, clouds: Clouds | Any) -> SetBatch:
        width = 3 + len(self.mean)
        if len(clouds) and clouds.values.shape[1] != width:
            raise DataError(
                f"clouds have {clouds.values.shape[1]} numbers per point, the model was fitted to "
                f"{width}."
            )
        points, offsets = _centred(clouds)
        parts = [points / self.scale]
        if self.mean:
            features = (clouds.values[:, 3:] - np.array(self.mean)) / np.array(self.deviation)
            parts.append(torch.tensor(features))
        values = torch.cat(parts, 1).to(self.dtype)
        return SetBatch(
            values,
            offsets,
            torch.zeros(len(values), 0, dtype=torch.int64),
            torch.zeros(len(clouds), 0, dtype=self.dtype),
        )

    def state(self) -> dict[str, Any]:
        """All of it as JSON."""
        names = ("scale", "mean", "deviation", "rotates", "rows")
        return {name: getattr(self, name) for name in names}


def load_encoder(state: Mapping[str, Any]) -> PointEncoder:
    """The encoder of a saved model."""
    return PointEncoder(
        float(state["scale"]),
        list(state["mean"]),
        list(state["deviation"]),
        bool(state["rotates"]),
        str(state["rows"]),
    )


def _centred(clouds: Any) -> tuple[torch.Tensor, torch.Tensor]:
    points = torch.tensor(np.asarray(clouds.values)[:, :3], dtype=torch.float64)
    offsets = torch.tensor(clouds.offsets)
    return points - spread(segment_mean(points, offsets), offsets, len(points)), offsets


def pose_p_value(points: torch.Tensor, offsets: torch.Tensor) -> float:
    r"""Tests whether the longest axes of centred clouds have no common direction (Bingham's test).

    .. math:: S = \tfrac{15}{2} N \big(\operatorname{tr} \bar{T}^2 - \tfrac13\big) \sim \chi^2_5,
        \qquad \bar{T} = \tfrac1N \sum_i u_i u_i^\top

    with :math:`u_i` the first principal axis of cloud i.

    References:
        Mardia and Jupp (2000), Directional statistics, section 10.7.
    """
    covariance = segment_mean(points.unsqueeze(2) * points.unsqueeze(1), offsets)
    axes: NDArray[np.float64] = torch.linalg.eigh(covariance).eigenvectors[..., -1].numpy()
    T = np.einsum("ni,nj->ij", axes, axes) / len(axes)
    return float(chi2.sf(7.5 * len(axes) * (np.trace(T @ T) - 1 / 3), 5))
