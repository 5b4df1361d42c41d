"""Prints draws of a linear model as brms does."""

import html
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ansatz.inference.convergence import ess_bulk, ess_tail, r_hat
from ansatz.linear.summary import align, format_column

if TYPE_CHECKING:
    import pandas as pd

    from ansatz.inference.glm.posterior import LinearDraws

Array = NDArray[np.float64]
HEADER = ("Estimate", "Est.Error", "l-95% CI", "u-95% CI", "Rhat", "Bulk_ESS", "Tail_ESS")


class PosteriorSummary:
    """Estimates with intervals, R-hat and effective draws: of the population, groups and family.

    ``str()`` gives the text, ``table`` the numbers; the estimate is the mean of the draws, or
    the mode of a normal approximation.

    Args:
        posterior: the draws.
        call: the model's formula.
    """

    def __init__(self, posterior: "LinearDraws", call: str) -> None:
        self.posterior, self.call = posterior, call

    @property
    def table(self) -> "pd.DataFrame":
        """The numbers, a row for each parameter."""
        import pandas as pd

        x = self.posterior.numbers.numpy()
        flat = x.reshape(-1, x.shape[2])
        mode = self.posterior.state.get("mode")
        at = None if mode is None else np.array([mode[name] for name in self.posterior.names])
        columns = [flat.mean(0) if at is None else at]
        if len(flat) > 1:
            columns += [flat.std(0, ddof=1), *np.quantile(flat, [0.025, 0.975], axis=0)]
        if self._is_sampled and x.shape[1] >= 4:
            columns += [r_hat(x), ess_bulk(x), ess_tail(x)]
        columns += [np.full(x.shape[2], np.nan)] * (len(HEADER) - len(columns))
        rows = dict(zip(HEADER, columns, strict=True))
        return pd.DataFrame(rows, index=self.posterior.names)

    @property
    def _is_sampled(self) -> bool:
        return "sampler" in self.posterior.state

    def to_dict(self) -> dict[str, Any]:
        """The numbers behind the text."""
        table = self.table
        rows = {
            name: {k: None if np.isnan(v) else float(v) for k, v in row.items()}
            for name, row in table.to_dict("index").items()
        }
        state = self.posterior.state
        named = {name: state.get(name) for name in ("priors", "prior_range", "verdict", "sampler")}
        return {"call": self.call, "parameters": rows, **named}

    def __str__(self) -> str:
        state, table = self.posterior.state, self.table
        likelihood = self.posterior.trained.likelihood
        lines = [f"Call: {self.call}", ""]
        lines += [f"Likelihood: {likelihood.name}, link {state['link']}"]
        lines += [f"Rows: {state['observations']:,.0f}; {self._draws()}", ""]
        population, family = state["population"], state["family"]
        groups = [name for name in table.index if name not in {*population, *family}]
        if groups:
            counts = [f"{each.term.label}, {len(each.levels)} levels" for each in self._terms]
            lines += [f"Group-level effects ({'; '.join(dict.fromkeys(counts))}):"]
            lines += [*_rows(table, groups), ""]
        lines += ["Population-level effects:", *_rows(table, population), ""]
        if family:
            lines += ["Family:", *_rows(table, family), ""]
        lines += ["Priors:", *_priors(state["priors"])]
        simulated = state["prior_range"]
        if simulated is not None:
            low, high, what = simulated
            lines += [f"  before the data, 90 % of {what} lie between {low:.4g} and {high:.4g}"]
        if state.get("verdict"):
            lines += ["", f"Draws {_said(state['verdict'])}"]
        return "\n".join(lines)

    @property
    def _terms(self) -> Sequence[Any]:
        return self.posterior.terms

    def _draws(self) -> str:
        sampler = self.posterior.state.get("sampler")
        if sampler is None:
            count = self.posterior.numbers.shape[1]
            drawn = f"; errors of {count:,} draws" if count > 1 else ""
            return f"the mode of the density{drawn}, by {self.posterior.name}"
        return (
            f"{sampler['chains']} chains by {self.posterior.name}, each with {sampler['draws']:,} "
            f"draws after {sampler['warmup']:,} of warm-up"
        )

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f'<pre class="ansatz-summary">{html.escape(str(self))}</pre>'


def _rows(table: "pd.DataFrame", names: Sequence[str]) -> list[str]:
    part = table.loc[list(names)]
    shown = [name for name in HEADER if not table[name].isna().all()]
    forms = {"Rhat": "{:.2f}", "Bulk_ESS": "{:,.0f}", "Tail_ESS": "{:,.0f}"}
    columns = [
        [forms[name].format(value) for value in part[name]]
        if name in forms
        else format_column(part[name].tolist(), 4)
        for name in shown
    ]
    cells = [[name, *row] for name, row in zip(names, zip(*columns, strict=True), strict=True)]
    return align(["", *shown], cells)


def _priors(priors: Sequence[Sequence[str]]) -> list[str]:
    return [f"  {name} ~ {prior}" for name, prior in priors]


def _said(verdict: Mapping[str, Any]) -> str:
    reasons = " ".join(verdict["reasons"])
    return f"{verdict['status']}.{' ' if reasons else ''}{reasons}"
