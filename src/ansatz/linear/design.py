"""The rows and columns of a linear model: checked, centred, scaled, without redundant ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.errors import DataError, UsageError


class DesignRows(NamedTuple):
    """Columns, outcomes and weights of the rows that count, in float64."""

    x: Tensor  # (N, D)
    y: Tensor  # (N,), or (N, L) where an outcome is a vector; codes stay whole numbers
    weight: Tensor  # (N,) frequency weights, positive
    precision: Tensor | None  # (N,) R's prior weights, positive
    offset: Tensor | None  # (N,)
    group: Tensor | None = None  # (N,) codes; rows alike in it may depend on each other

    @classmethod
    def of(
        cls,
        x: Tensor,
        y: Tensor,
        weight: Tensor | None,
        precision: Tensor | None,
        offset: Tensor | None,
        names: Sequence[str],
        event_ndim: int = 0,
        group: Tensor | None = None,
    ) -> "DesignRows":
        """Checks shapes and values; rows with weight or precision 0 are left out.

        ``event_ndim`` is the likelihood's: 1 where an outcome is a vector.
        """
        if x.ndim != 2:
            raise UsageError(f"a linear model needs x of shape (N, D), got {tuple(x.shape)}.")
        if y.shape[:1] != x.shape[:1] or y.ndim != 1 + event_ndim:
            expected = f"({len(x)},)" if not event_ndim else f"({len(x)}, L)"
            advice = " Fit several targets one by one." if not event_ndim else ""
            raise UsageError(
                f"a linear model needs one outcome per row: {len(x)} rows go with y {expected}, "
                f"got y {tuple(y.shape)}.{advice}"
            )
        if len(names) != x.shape[1]:
            raise UsageError(f"{x.shape[1]} columns need as many names, got {len(names)}.")
        for label, values in (("weight", weight), ("precision", precision), ("offset", offset)):
            _check_column(label, values, len(x))
        if group is not None and group.shape != (len(x),):
            raise UsageError(f"groups must have shape ({len(x)},), got {tuple(group.shape)}.")
        weight = torch.ones(len(x)) if weight is None else weight
        counts = weight > 0
        if precision is not None:
            counts &= precision > 0
        if not bool(counts.any()):
            raise DataError("a linear model needs a row with a positive weight, got none.")
        x = x[counts].double()
        bad = ~torch.isfinite(x)
        if bool(bad.any()):
            row, column = (int(i) for i in bad.nonzero()[0])
            raise DataError(
                f"column '{names[column]}' must be finite, got {float(x[row, column])} in "
                f"row {int(counts.nonzero()[row])}. Impute or drop the row."
            )
        y = y[counts]
        return cls(
            x,
            y.double() if y.is_floating_point() or y.dtype == torch.bool else y,
            weight[counts].double(),
            None if precision is None else precision[counts].double(),
            None if offset is None else offset[counts].double(),
            None if group is None else group[counts],
        )


def _check_column(label: str, values: Tensor | None, count: int) -> None:
    if values is None:
        return
    if values.shape != (count,):
        raise UsageError(f"{label} must have shape ({count},), got {tuple(values.shape)}.")
    bad = ~torch.isfinite(values)
    if label != "offset":
        bad |= values < 0
    if bool(bad.any()):
        row = int(bad.nonzero()[0])
        expected = "finite" if label == "offset" else "finite and >= 0"
        raise DataError(f"{label} must be {expected}, got {float(values[row])} in row {row}.")


INTERCEPT = "(Intercept)"
TOLERANCE = 1e-7  # R's lm: a column is aliased when this share of its length is its own


@dataclass(frozen=True)
class Design:
    """An intercept and the columns that are linearly independent, each centred and scaled.

    Centring and scaling change no fit, but they make Newton's matrix as well conditioned as the
    data allow; :meth:`restore` gives the coefficients of the columns as they came.

    Args:
        matrix: ``(N, Q)``, a column of ones and the Q - 1 kept columns in units of their sd.
        names: of all D columns as they came.
        kept: ``(Q - 1,)`` positions of the kept columns.
        centre: ``(Q - 1,)`` weighted means.
        scale: ``(Q - 1,)`` weighted standard deviations.
        aliased: name of each dropped column -> in words, what determines it.

    Example:
        >>> import torch
        >>> from ansatz.linear import Design
        >>> x = torch.tensor([[1.0, 2.0], [2.0, 4.0], [4.0, 8.0]], dtype=torch.float64)
        >>> Design.of(x, torch.ones(3, dtype=torch.float64), ["a", "b"]).aliased
        {'b': '2 a'}
    """

    matrix: Tensor
    names: tuple[str, ...]
    kept: Tensor
    centre: Tensor
    scale: Tensor
    aliased: dict[str, str]

    @classmethod
    def of(
        cls, x: Tensor, weight: Tensor, names: Sequence[str], dtype: torch.dtype = torch.float64
    ) -> "Design":
        """The design of the columns of ``x``, ``(N, D)``, under frequency weights ``(N,)``.

        ``dtype`` is the precision in which the columns came: a column that varies by no more than
        its rounding is a constant.
        """
        centre = weight @ x / weight.sum()
        centred = x - centre
        rest = weight @ centred / weight.sum()  # what rounding left of a mean far from 0
        centre, centred = centre + rest, centred - rest
        scale = (weight @ centred.square() / weight.sum()).sqrt()
        length = x.abs().amax(0) if len(x) else centre.abs()
        rounding = 4 * torch.finfo(dtype).eps
        constant = scale <= rounding * length.clamp(min=torch.finfo(x.dtype).tiny)
        centred /= torch.where(constant, torch.ones_like(scale), scale)
        factor = triangular_factor(centred * weight.sqrt().unsqueeze(1))
        kept, combinations = independent_columns(factor, constant)
        aliased = {
            names[j]: _words(combination, kept, scale, scale[j], names)
            for j, combination in combinations.items()
        }
        ones = torch.ones(len(x), 1, dtype=x.dtype)
        matrix = torch.cat([ones, centred[:, kept]], 1)
        return cls(matrix, tuple(names), kept, centre[kept], scale[kept], aliased)

    @property
    def back(self) -> Tensor:
        """``(Q, Q)``: kept coefficients as the columns came = back @ coefficients of ``matrix``."""
        back = torch.diag(torch.cat([self.scale.new_ones(1), 1 / self.scale]))
        back[0, 1:] = -self.centre / self.scale
        return back

    def restore(self, coefficients: Tensor, missing: float = torch.nan) -> Tensor:
        """``(Q, P)`` of ``matrix`` -> ``(D + 1, P)`` of the columns as they came.

        Dropped columns get ``missing``: nan in a table, as R's NA; 0 in a prediction.
        """
        full = coefficients.new_full((len(self.names) + 1, coefficients.shape[1]), missing)
        full[self.rows] = self.back @ coefficients
        return full

    @property
    def rows(self) -> Tensor:
        """``(Q,)`` rows of a full coefficient table that belong to kept columns."""
        return torch.cat([self.kept.new_zeros(1), self.kept + 1])


def triangular_factor(x: Tensor, rows: int = 2**16) -> Tensor:
    """R of x = QR with at most D rows, taken block by block so that Q is never held."""
    factor = x[:0]
    for block in x.split(max(rows, 2 * x.shape[1])):
        factor = torch.linalg.qr(torch.cat([factor, block]), mode="r").R
    return factor


def independent_columns(
    factor: Tensor, constant: Tensor, *, explain: bool = True
) -> tuple[Tensor, dict[int, dict[int, float]]]:
    """Keeps each column that the ones before it do not determine, as R's pivoting does."""
    kept: list[int] = []
    dropped: list[int] = []
    basis = torch.zeros(factor.shape[0], min(factor.shape), dtype=factor.dtype)
    for j in range(factor.shape[1]):
        column = factor[:, j]
        length = column.norm()
        rest = column.clone()
        for _ in range(2):  # Gram-Schmidt twice is enough (Kahan and Parlett)
            own = basis[:, : len(kept)]
            rest = rest - own @ (own.T @ rest)
        full = len(kept) == basis.shape[1]
        if full and not explain:
            break
        if constant[j] or full or rest.norm() <= TOLERANCE * length:
            dropped.append(j)
        else:
            basis[:, len(kept)] = rest / rest.norm()
            kept.append(j)
    chosen = torch.tensor(kept, dtype=torch.long)
    if not explain:
        return chosen, {}
    return chosen, {j: _combination(factor, chosen, j, bool(constant[j])) for j in dropped}


def _combination(factor: Tensor, kept: Tensor, j: int, constant: bool) -> dict[int, float]:
    if constant or not len(kept):
        return {}
    solution = torch.linalg.lstsq(factor[:, kept], factor[:, j : j + 1]).solution.squeeze(1)
    return {
        i: float(value)
        for i, value in enumerate(solution)
        if abs(float(value)) > 1e-6 * float(solution.abs().max())
    }


def _words(
    combination: dict[int, float], kept: Tensor, scale: Tensor, own: Tensor, names: Sequence[str]
) -> str:
    """Describes what determines a column, in its own units: '2 a - b', or 'a constant'."""
    if not combination:
        return "a constant"
    parts = []
    for i, value in list(combination.items())[:4]:
        j = int(kept[i])
        share = value * float(own / scale[j])
        size = "" if abs(abs(share) - 1) < 1e-6 else f"{abs(share):.6g} "
        sign = "-" if share < 0 else "+"
        parts.append((sign, f"{size}{names[j]}"))
    first = ("-" if parts[0][0] == "-" else "") + parts[0][1]
    text = first + "".join(f" {sign} {term}" for sign, term in parts[1:])
    return text + (" + ..." if len(combination) > 4 else "")


def standardise(x: Tensor, weight: Tensor, names: Sequence[str]) -> Design:
    """All columns but constants, centred and scaled; columns that others determine stay."""
    centre = weight @ x / weight.sum()
    scale = (weight @ (x - centre).square() / weight.sum()).sqrt()
    length = x.abs().amax(0) if len(x) else centre.abs()
    varies = scale > 1e-9 * length.clamp(min=1e-300)
    kept = varies.nonzero().squeeze(1)
    matrix = torch.cat([torch.ones_like(x[:, :1]), ((x - centre) / scale)[:, kept]], 1)
    if not x.shape[1]:
        matrix = torch.ones(len(x), 1, dtype=x.dtype)
    aliased = {names[int(j)]: "a constant" for j in (~varies).nonzero().squeeze(1)}
    return Design(matrix, tuple(names), kept, centre[kept], scale[kept], aliased)


def take_design_rows(rows: DesignRows, index: NDArray[np.intp]) -> DesignRows:
    """Some of the rows."""
    chosen = torch.from_numpy(np.asarray(index))
    parts = (None if part is None else part[chosen] for part in rows)
    return DesignRows(*parts)  # type: ignore[arg-type]
