"""Rankings as outcomes."""

import copy
from collections.abc import Mapping
from typing import Any, ClassVar, cast

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz import likelihoods
from ansatz.data.rankings import Rankings, read_rankings
from ansatz.errors import DataError, UsageError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.contracts.inference import Predictive
from ansatz.fitting.contracts.outcome import (
    NO_INTERVAL,
    PROBABILITIES,
    Metrics,
    Outcome,
    labels_of,
    plain_labels,
)
from ansatz.fitting.contracts.structure import LinearBaseline, Structure
from ansatz.fitting.intervals import refuse_others
from ansatz.fitting.job import Job
from ansatz.fitting.model import Given, Model
from ansatz.fitting.scores import evaluate_predictive
from ansatz.fitting.summaries import SavedSummary
from ansatz.fitting.task import Settings
from ansatz.likelihoods import Likelihood, PlackettLuce, RankingDistribution
from ansatz.spec import TargetSpec
from ansatz.training import Penalty, Supervised


class Ranking(Outcome):
    """The order in which items are ranked, some of them perhaps left out."""

    name: ClassVar[str] = "ranking"
    estimator: ClassVar[str] = "ansatz.estimators.ranker:Ranker"
    labels: NDArray[Any]

    plural: ClassVar[str] = "rankings"
    report: ClassVar[str] = "ansatz.outcomes.report.ranking:RankingReport"
    labels_are: ClassVar[str] = "items"
    has_columns: ClassVar[bool] = False  # the columns together are one order
    is_quantity: ClassVar[bool] = False
    settings: ClassVar[frozenset[str]] = frozenset({"layout", "prior", "unranked"})
    outputs: ClassVar[Mapping[str, str]] = {**Outcome.outputs, "probabilities": PROBABILITIES}
    intervals: ClassVar[Mapping[str, str]] = {"probabilities": NO_INTERVAL}

    def __init__(self) -> None:
        self.names: list[str] = []
        self.shape: tuple[int, ...] = ()
        self._said: list[str] = []  # about reading
        self._left_out = 0

    @classmethod
    def known(cls, frame: pd.DataFrame, column_roles: ColumnRoles) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = frame[column_roles.target].notna().any(axis=1).to_numpy()
        return found

    @classmethod
    def check_columns(
        cls,
        frame: pd.DataFrame,
        column_roles: ColumnRoles,
        likelihood: str,
        options: dict[str, Any],
        *,
        named: bool,
    ) -> None:
        read_rankings(frame[column_roles.target])

    def encode(self, y: Any, settings: Settings, *, reset: bool) -> tuple[NDArray[Any], TargetSpec]:
        if reset:
            found = read_rankings(y, layout=settings.get("layout", "auto"))
            items = np.array(found.items)
            if len(items) < 2:
                raise DataError(
                    f"a ranking needs two items at least, got only {items.tolist()[0]!r}."
                )
            self.labels, self._said = items, found.notes
            # One item alone may be left out: it can only be the last.
            self._left_out = int(((found.codes >= 0).sum(1) < len(found.items) - 1).sum())
            self.names, self.shape = _names(y, found), found.codes.shape[1:]
        else:  # written in any layout, and where two are possible, in that of the fit
            names = [str(item) for item in self.labels]
            prefer = "items" if self.names == names else "places"
            found = read_rankings(y, items=self.labels.tolist(), prefer=prefer)
        return found.codes, TargetSpec(classes=len(self.labels), event=found.codes.shape[1:])

    def read(self, job: Job) -> Job:
        if job.offset is not None or job.precision is not None:
            raise UsageError("rankings take neither offset nor precision; weights are welcome.")
        return job

    def likelihood(self, settings: Settings, target: TargetSpec, *, few: bool) -> Likelihood:
        if isinstance(settings.likelihood, str):
            likelihoods.registry.get(settings.likelihood)  # an unknown name gets advice
        if settings.likelihood_name != PlackettLuce.name:
            raise UsageError(
                f"{settings.likelihood_name} is not a likelihood of rankings. Take plackett_luce."
            )
        if isinstance(settings.likelihood, Likelihood):
            likelihood = cast(PlackettLuce, settings.likelihood)
        else:
            options = {
                "unranked": settings.get("unranked", "last"), "prior": settings.get("prior", 0.0)
            }  # fmt: skip
            likelihood = PlackettLuce(**{**options, **settings.likelihood_options})
        likelihood.item_names = [str(item) for item in self.labels]
        return likelihood

    def solve(
        self,
        structure: Structure,
        likelihood: Likelihood,
        job: Job,
        penalty: Penalty | None = None,
    ) -> LinearBaseline:
        """The linear model; without features where it has no finite maximum, its limit."""
        made = cast(PlackettLuce, likelihood)
        if job.rows.has_features:
            if made.prior:
                raise UsageError(
                    "a linear model is fitted by maximum likelihood, without a prior: set prior=0, "
                    "or take a network."
                )
            return super().solve(structure, likelihood, job, penalty)
        made = copy.deepcopy(made).double()
        made.observe(job.y, job.weight)
        shift, scale = made.start(job.y, job.weight)
        if not made.notes and not made.prior:
            return super().solve(structure, likelihood, job, penalty)
        return LinearBaseline(structure.constant(Supervised(made, shift, scale), job), [])

    def evaluate(self, predictive: Predictive, y: Tensor, weight: Tensor | None = None) -> Metrics:
        return evaluate_predictive(predictive, y, weight)

    def point(self, predictive: Predictive) -> NDArray[Any]:
        found = cast(RankingDistribution, predictive.distribution)
        chosen: NDArray[Any] = self.labels[found.mode.numpy()]
        return chosen

    def answers(self, likelihood: Likelihood, raw: Tensor) -> dict[str, Tensor]:
        found = cast(RankingDistribution, likelihood.distribution(raw))
        # Not its mode: ONNX sorts by the k largest, equal ones in their order.
        order = torch.topk(found.scores, found.scores.shape[-1]).indices
        return {"prediction": order, "probabilities": found.probs}

    def frame(self, model: Model, rows: Given, **options: Any) -> dict[str, Any]:
        if options.pop("interval", None) is not None:
            raise UsageError("an order has no interval: ask predict_ranks or predict_proba.")
        options.pop("method", None)
        refuse_others(options)
        served = model.predictive(rows.rows, rows.offset)
        order = self.point(served)
        first = cast(RankingDistribution, served.distribution).probs.numpy()
        columns: dict[str, Any] = {f"place{k + 1}": order[:, k] for k in range(order.shape[1])}
        return columns | {f"p_{item}": first[:, k] for k, item in enumerate(self.labels)}

    def notes(self, model: Model) -> list[str]:
        likelihood = cast(PlackettLuce, model.likelihood)
        count = self._left_out if likelihood.unranked == "last" else 0
        left_out = [
            f"in {count} of the rankings two or more of the {len(self.labels)} items are left out: "
            "they count as behind all that are named; if they took no part: unranked='absent' "
            "(--set unranked=absent)."
        ] * bool(count)
        return [*self._said, *left_out, *likelihood.notes]

    def summary(self, model: Model) -> SavedSummary | None:
        """The items by worth, where all rows share one likelihood; else None."""
        if model.has_features:
            return None
        likelihood = cast(RankingDistribution, model.constant().distribution)
        table = [
            {
                "item": str(self.labels[k]),
                "worth": float(likelihood.probs[0, k]),
                "score": float(likelihood.scores[0, k]),
            }
            for k in likelihood.mode[0].tolist()
        ]
        width = max(4, *(len(str(row["item"])) for row in table))
        lines = [f"{'item':{width}}      worth     score"]
        lines += [f"{r['item']:{width}} {r['worth']:10.4g} {r['score']:9.4f}" for r in table]
        text = "Plackett-Luce, the same for all rows; worth is the chance of coming first.\n\n"
        return SavedSummary(text=text + "\n".join(lines), table={"items": table})

    def target(self, likelihood: Likelihood) -> TargetSpec:
        return TargetSpec(classes=len(self.labels), event=self.shape)

    def state(self) -> dict[str, Any]:
        return {"names": self.names, "shape": list(self.shape), **plain_labels(self.labels)}

    def load(self, state: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self.names, self.shape = list(state["names"]), tuple(state["shape"])
        self.labels = labels_of(state)  # type: ignore[assignment]


def _names(y: Any, found: Rankings) -> list[str]:
    if found.layout == "items":
        return [str(item) for item in found.items]
    if hasattr(y, "columns"):
        return [str(name) for name in y.columns]
    return [str(y.name) if getattr(y, "name", None) is not None else "ranking"]
