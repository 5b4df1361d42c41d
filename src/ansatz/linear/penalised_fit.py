"""A fitted penalised linear model: its path of strengths and its summary."""

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from ansatz.errors import UsageError
from ansatz.linear.linear_fit import LinearFit
from ansatz.linear.summary import Summary, align, format_column, plain

NAMES = {"l2": "ridge", "elastic_net": "elastic net", "l1": "lasso"}


class PenaltyPath(NamedTuple):
    """The penalised coefficients along a grid of strengths, and their out-of-fold losses.

    Args:
        penalty: ``"l1"``, ``"l2"`` or ``"elastic_net"``.
        strengths: ``(L,)``, from strong to weak.
        coefficients: ``(L, D + 1, P)``, of the columns as they came.
        standardised: ``(L, D + 1, P)``, of columns with standard deviation 1.
        losses: ``(L,)``, the mean loss of rows that were left out; nan where no folds were given.
        errors: ``(L,)``, their standard errors over the folds.
        chosen: the place of the strength that was taken.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Normal
        >>> from ansatz.linear import fit_penalised
        >>> x, y = torch.eye(4), torch.tensor([0.0, 1.0, 2.0, 9.0])
        >>> fit = fit_penalised(Normal(dispersion="constant"), x, y, penalty="l1", strength=0.1)
        >>> fit.path.strengths
        tensor([0.1000], dtype=torch.float64)
    """

    penalty: str
    strengths: Tensor
    coefficients: Tensor
    standardised: Tensor
    losses: Tensor
    errors: Tensor
    chosen: int

    @property
    def strength(self) -> float:
        """The strength that was taken."""
        return float(self.strengths[self.chosen])


@dataclass(frozen=True)
class PenalisedFit(LinearFit):
    """A penalised linear model; it has no standard errors.

    Args:
        path: the coefficients along the strengths.

    Example:
        >>> import torch
        >>> from ansatz.likelihoods import Poisson
        >>> from ansatz.linear import fit_penalised
        >>> x, y = torch.arange(4.0).unsqueeze(1), torch.tensor([1.0, 2.0, 4.0, 9.0])
        >>> fit_penalised(Poisson(), x, y, penalty="l1", strength=5.0).coefficients[1]
        tensor([0.], dtype=torch.float64)
    """

    path: PenaltyPath | None = None

    def confint(self, level: float = 0.95) -> Tensor:
        raise UsageError(f"a penalised fit has no confidence intervals: {WHY}.")

    def summary(self, call: str = "", rows_dropped: int = 0) -> Summary:
        return PenalisedSummary(self, call=call, rows_dropped=rows_dropped)


WHY = (
    "a penalty biases the coefficients towards 0 and selects among the columns by the same rows, "
    "and the formulas of standard errors and p-values account for neither"
)


class PenalisedSummary(Summary):
    """The summary of a penalised fit: its penalty and its coefficients, without p-values."""

    fit: PenalisedFit

    def __str__(self) -> str:
        blocks = super().__str__().split("\n\n")
        return "\n\n".join(block for block in blocks if "Newton" not in block)

    def _likelihood(self) -> str:
        path = self.fit.path
        assert path is not None
        how = "given" if len(path.strengths) == 1 else "chosen by cross-validation"
        likelihood = self.fit.likelihood
        noun = "Likelihood" if likelihood.has_distribution else "Loss"
        return (
            f"{noun}: {likelihood.name}, link {self.fit.link}\n"
            f"Penalty: {NAMES[path.penalty]}, strength {path.strength:.4g} ({how})"
        )

    def _tables(self) -> list[list[str]]:
        fit, path, blocks = self.fit, self.fit.path, []
        assert path is not None
        for column, output in enumerate(fit.outputs):
            shown = sorted(row for row, own in fit.entries if own == column)
            if not any(shown):
                continue
            kept = [j for j in shown if j == 0 or float(fit.coefficients[j, column]) != 0]
            estimates = format_column(fit.coefficients[kept, column].tolist())
            unit = format_column(path.standardised[path.chosen, kept, column].tolist())
            rows = [
                [plain(fit.names[j]), estimates[i], "" if j == 0 else unit[i]]
                for i, j in enumerate(kept)
            ]
            of = f" of {plain(output)}" if len(fit.outputs) > 1 else ""
            block = [f"Coefficients{of}:", *align(["", "Estimate", "per sd"], rows)]
            if len(kept) < len(shown):
                columns = sum(j > 0 for j in shown)
                block.append(f"({len(shown) - len(kept)} of {columns} columns have 0)")
            blocks.append(block)
        return blocks

    def _deviances(self) -> list[str]:
        left_out = ("AIC", "Likelihood ratio")
        return [line for line in super()._deviances() if not line.startswith(left_out)]
