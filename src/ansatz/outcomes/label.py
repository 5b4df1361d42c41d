"""One of several labels as outcome: what classes and links have in common."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.utils import column_or_1d, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _assert_all_finite
from torch import Tensor, nn

from ansatz import likelihoods
from ansatz.errors import DataError, ModelError, UsageError
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
from ansatz.fitting.intervals import refuse_others
from ansatz.fitting.job import Job
from ansatz.fitting.model import Given, Model
from ansatz.fitting.refits import out_of_fold
from ansatz.fitting.scores import evaluate_predictive
from ansatz.fitting.task import Settings
from ansatz.likelihoods import (
    CategoricalDistribution,
    CrossEntropy,
    Distribution,
    Focal,
    Likelihood,
)
from ansatz.metrics import compute_metrics
from ansatz.outcomes.registry import CLASS_LIKELIHOODS
from ansatz.spec import TargetSpec


class Label(Outcome):
    """One of several labels, each of which has a probability."""

    labels: NDArray[Any]

    def __init__(self) -> None:
        self.names: list[str] = []
        self.log_weights: list[float] | None = None
        self.temperature = 1.0
        self.given = False  # classes named beforehand: rows need not show all of them
        self.rarest: float | None = None  # training rows of the class that has fewest

    plural: ClassVar[str] = "classes"
    report: ClassVar[str] = "ansatz.outcomes.report.classes:ClassesReport"
    has_columns: ClassVar[bool] = True
    is_quantity: ClassVar[bool] = False
    settings: ClassVar[frozenset[str]] = frozenset({"classes", "class_weight"})
    outputs: ClassVar[Mapping[str, str]] = {**Outcome.outputs, "probabilities": PROBABILITIES}
    intervals: ClassVar[Mapping[str, str]] = {"probabilities": NO_INTERVAL}
    no_interval: ClassVar[str] = "classes have no interval; p_CLASS shows how sure the model is."

    def name_classes(self, labels: NDArray[Any]) -> None:
        """Fixes the classes before any row is read."""
        self.labels, self.given = labels, True

    # Reading.

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
        """Refuses several columns, a single class, and names that are hardly classes."""
        if len(column_roles.target) > 1:
            raise UsageError("one target at a time for classes; fit each column by itself.")
        column = frame[column_roles.target[0]]
        levels = column.nunique()
        if levels < 2:
            raise DataError(
                f"column '{column.name}': only one class, {str(column.iloc[0])[:60]!r}. "
                "There is nothing to classify."
            )
        if not named and (levels > 1_000 or (levels > 20 and levels > len(column) / 2)):
            raise DataError(
                f"column '{column.name}': {levels} classes in {len(column)} rows. If it "
                "holds numbers or names rather than classes, choose another target or "
                "--likelihood; if they are classes: --likelihood categorical."
            )

    def encode(self, y: Any, settings: Settings, *, reset: bool) -> tuple[NDArray[Any], TargetSpec]:
        values = column_or_1d(y, warn=True)
        if values.dtype.kind in "fc":
            _assert_all_finite(values, input_name="y")
        check_classification_targets(values)
        if reset and not self.given:
            self.labels = self._known_classes(y, values, settings)
        order = np.argsort(self.labels, kind="stable")
        found = np.searchsorted(self.labels[order], values).clip(max=len(order) - 1)
        codes = order[found]
        unknown = np.flatnonzero(self.labels[codes] != values)
        if len(unknown):
            raise DataError(
                f"the class {values.tolist()[unknown[0]]!r} at y[{unknown[0]}] is not among the "
                f"known classes {self.labels.tolist()}."
            )
        if reset:
            self.names = [str(getattr(y, "name", None) or "y")]
        target = TargetSpec(classes=len(self.labels))
        if (
            self.likelihood(settings, target, few=False).name == "bernoulli"
        ):  # outcomes are 0.0 and 1.0
            return codes.astype(np.float64), target
        return codes, target

    def _known_classes(self, y: Any, values: NDArray[Any], settings: Settings) -> NDArray[Any]:
        """Takes the classes given, those of an ordered column, or those that occur."""
        classes = settings.get("classes")
        if classes is not None:
            listed = np.asarray(classes)
            if len(np.unique(listed)) != len(listed):
                raise UsageError(f"classes names a class twice: {list(classes)}.")
            return listed.astype(values.dtype) if values.dtype.kind in "UO" else listed
        dtype = getattr(y, "dtype", None)
        if getattr(dtype, "ordered", False):
            return np.asarray(dtype.categories)  # type: ignore[union-attr]
        found = np.unique(values)
        if settings.likelihood_name == "ordinal" and found.dtype.kind not in "biuf":
            raise UsageError(
                f"ordinal needs the order of the classes {found.tolist()[:8]}: give "
                "classes=[lowest, ..., highest], --set 'classes=[\"lowest\", ...]'."
            )
        return found

    def reweight(
        self, codes: NDArray[Any], weight: NDArray[Any], settings: Settings
    ) -> NDArray[Any]:
        codes = codes.astype(np.intp)
        present = np.unique(codes)
        if len(present) < 2 and not self.given:
            raise ValueError(
                "Classifier can't train when only one class is present: "
                f"every row has {self.labels.tolist()[present[0]]!r}."
            )
        self.log_weights = None
        wanted = settings.get("class_weight")
        if wanted is None:
            return weight
        if settings.likelihood_name == "ordinal":
            raise UsageError("ordinal takes no class_weight: shift the threshold of a decision.")
        labels = self.labels[codes]
        try:
            factors = compute_class_weight(
                wanted, classes=self.labels, y=labels, sample_weight=weight
            )
        except ValueError as error:
            raise UsageError(f"class_weight: {error}") from None
        factors = factors * (weight.sum() / (weight * factors[codes]).sum())
        self.log_weights = np.log(np.maximum(factors, 1e-300)).tolist()
        weighted: NDArray[Any] = weight * factors[codes]
        return weighted

    def weighted(self, codes: NDArray[Any], weight: NDArray[Any]) -> NDArray[Any]:
        if self.log_weights is None:
            return weight
        found: NDArray[Any] = weight * np.exp(self.log_weights)[codes.astype(np.intp)]
        return found

    def plain(self, job: Job) -> Job:
        if self.log_weights is None:
            return job
        factors = torch.as_tensor(self.log_weights, dtype=job.weight.dtype).exp()
        return job._replace(weight=job.weight / factors[job.y.long()])

    # Fitting.

    def likelihood(self, settings: Settings, target: TargetSpec, *, few: bool) -> Likelihood:
        if settings.likelihood == "auto":
            name = "bernoulli" if target.classes == 2 else "categorical"
            created: Likelihood = likelihoods.create(name)
            return created
        likelihood = settings.make_likelihood(few=few)
        if likelihood.name not in CLASS_LIKELIHOODS:
            raise UsageError(
                f"{likelihood.name} is not a likelihood of classes. A Classifier takes "
                f"{', '.join(CLASS_LIKELIHOODS)}; numbers are for a Regressor."
            )
        return likelihood

    def variants(self, likelihood: Likelihood, settings: Settings) -> list[Likelihood]:
        """Two classes may have one logit or two, where no likelihood was named."""
        if settings.likelihood != "auto" or likelihood.name == "categorical":
            return [likelihood]
        return [likelihood, likelihoods.create("categorical")]

    def begin(self, likelihood: Likelihood, job: Job) -> None:
        self.temperature = 1.0
        self.rarest = float(torch.bincount(job.y.long(), job.weight).min())

    def notes(self, model: Model) -> list[str]:
        """A warning of probabilities by more coefficients than the rows of a class allow.

        References:
            Peduzzi et al. (1996), A simulation study of the number of events per variable.
        """
        if not model.linear or model.task.settings.penalty is not None or self.rarest is None:
            return []
        count = model.linear[0].rank - model.linear[0].locations
        if self.rarest >= 10 * count:
            return []
        return [
            f"{count} coefficients and {self.rarest:.0f} rows of the rarest class: with fewer than "
            "10 rows for each, probabilities without a penalty are too near 0 and 1 (--penalty "
            "ridge)."
        ]

    def finish(self, model: Model, job: Job) -> None:
        """Finds the temperature of losses that do not estimate P(y | x), out of fold."""
        likelihood = model.likelihood
        if not (
            isinstance(likelihood, Focal)
            or (isinstance(likelihood, CrossEntropy) and likelihood.smoothed)
        ):
            return
        evaluated = model.out_of_fold
        if evaluated is not None:
            parts = [(rows, raw) for rows, _, raw in evaluated.served()]
        else:
            refits = out_of_fold(model, job)
            parts = [(refit.outside, refit.raw[refit.outside]) for refit in refits]
        if not parts:
            return
        with torch.no_grad():
            raw = torch.cat([self.serve(Predictive(likelihood, raw)).raw for _, raw in parts])
            logits = self.log_probabilities(Predictive(likelihood, raw))
        rows = torch.cat([rows for rows, _ in parts])
        self.temperature = find_temperature(logits, job.y[rows].long(), job.weight[rows])

    # Predictions.

    def serve(self, predictive: Predictive) -> Predictive:
        """Takes the class weights out of the logits: weights estimate w_c P(c | x)."""
        if self.log_weights is None:
            return predictive
        likelihood, raw = predictive
        log_weights = torch.as_tensor(self.log_weights)
        if raw.shape[-1] == len(log_weights):
            return Predictive(likelihood, raw - log_weights)
        return Predictive(
            likelihood, raw - (log_weights - log_weights[0])[1:]
        )  # against the first class

    def log_probabilities(self, predictive: Predictive) -> Tensor:
        """Log probabilities ``(N, K)`` from the raw numbers of a class likelihood or loss."""
        likelihood, raw = predictive
        if likelihood.name == "bernoulli":
            # Both from their own tail: 1 - p is 0 long before P(class 0) is.
            return nn.functional.logsigmoid(torch.cat([-raw, raw], -1))
        if isinstance(likelihood, CrossEntropy | Focal):
            found = torch.log_softmax(likelihood.unweighted(raw), -1)
        else:
            found = likelihood.probs(raw).log()  # type: ignore[operator]  # class likelihoods have it
        return found if self.temperature == 1 else torch.log_softmax(found / self.temperature, -1)

    def probabilities(self, predictive: Predictive) -> Tensor:
        return self.log_probabilities(predictive).exp()

    def evaluate(self, predictive: Predictive, y: Tensor, weight: Tensor | None = None) -> Metrics:
        """A loss of classes is evaluated by the probabilities that it is served as."""
        if predictive.likelihood.has_distribution:
            return evaluate_predictive(predictive, y, weight)
        served, _ = self.distribution(predictive, y)
        return compute_metrics(y, distribution=served, weight=weight)

    def distribution(self, predictive: Predictive, y: Tensor) -> tuple[Distribution, Tensor]:
        if predictive.likelihood.has_distribution:
            with torch.no_grad():
                return predictive.likelihood.given(predictive.raw, y)
        with torch.no_grad():
            return CategoricalDistribution(self.log_probabilities(predictive)), y

    def row_losses(self, predictive: Predictive, y: Tensor) -> Tensor:
        """A loss of classes is evaluated by the probabilities that it is served as."""
        if predictive.likelihood.has_distribution:
            return super().row_losses(predictive, y)
        found, _ = self.distribution(predictive, y)
        with torch.no_grad():
            return -found.log_prob(y).double()

    def point(self, predictive: Predictive) -> NDArray[Any]:
        likelihood, raw = predictive
        codes = (
            self.probabilities(predictive).argmax(-1)
            if likelihood.has_distribution
            else likelihood.point(raw)
        )
        chosen: NDArray[Any] = self.labels[codes.numpy()]
        return chosen

    def answers(self, likelihood: Likelihood, raw: Tensor) -> dict[str, Tensor]:
        own = Predictive(likelihood, raw)
        chance = self.probabilities(self.serve(own)).to(raw.dtype)
        codes = (
            self.log_probabilities(own).argmax(-1)
            if likelihood.has_distribution
            else likelihood.point(raw)
        )
        return {"prediction": codes, "probabilities": chance}

    def frame(self, model: Model, rows: Given, **options: Any) -> dict[str, Any]:
        """``prediction``, and ``p_<class>`` for each class; classes have no interval."""
        options.pop("interval", None), options.pop("method", None)
        refuse_others(options)
        own = model.posterior.predictive(rows.rows, rows.offset)  # once: images take time
        chance = self.probabilities(self.serve(own))
        named = {f"p_{name}": chance[:, k].numpy() for k, name in enumerate(self.labels)}
        return {"prediction": self.point(own), **named}

    def unseen(self, learn: Job, test: Job) -> list[str]:
        tested, learned = (set(part.y.long().tolist()) for part in (test, learn))
        absent = [str(self.labels[k]) for k in sorted(tested - learned)]
        if not absent:
            return []
        more = f" and {len(absent) - 5} more" if len(absent) > 5 else ""
        return [f"no training row is of class {', '.join(absent[:5])}{more}, which the test has."]

    # On disk.

    def target(self, likelihood: Likelihood) -> TargetSpec:
        return TargetSpec(classes=len(self.labels))

    def state(self) -> dict[str, Any]:
        return {
            "names": self.names,
            **plain_labels(self.labels),
            "log_weights": self.log_weights,
            "temperature": self.temperature,
        }

    def load(self, state: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self.names, self.labels = list(state["names"]), labels_of(state)  # type: ignore[assignment]
        weights = state["log_weights"]
        self.log_weights = None if weights is None else [float(each) for each in weights]
        self.temperature = float(state["temperature"])
        if self.log_weights is not None and len(self.log_weights) != len(self.labels):
            raise ModelError("outcome.state.log_weights: expected a number for each class")


def find_temperature(logits: Tensor, y: Tensor, weight: Tensor) -> float:
    r"""The temperature T of the best log score of softmax(logits / T).

    .. math:: \hat T = \arg\max_T \sum_i w_i \log \mathrm{softmax}(z_i / T)_{y_i}

    A T above 1 takes confidence back. The logits must come from models that were not trained on
    the rows they are evaluated on, or T comes out too small.

    Args:
        logits: ``(N, K)``.
        y: ``(N,)`` class codes.
        weight: ``(N,)``.

    References:
        Guo et al. (2017), On calibration of modern neural networks.
        https://arxiv.org/abs/1706.04599
    """
    finite = logits.clamp(min=torch.finfo(logits.dtype).min / 1e4)

    def loss(log_temperature: float) -> float:
        log_p = torch.log_softmax(finite * torch.exp(torch.tensor(-log_temperature)), -1)
        return -float(weight @ log_p.gather(-1, y.unsqueeze(-1)).squeeze(-1))

    best = minimize_scalar(loss, bounds=(-3.0, 3.0), method="bounded")
    return float(torch.exp(torch.tensor(best.x, dtype=torch.float64)))
