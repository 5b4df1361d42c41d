"""Classes as outcomes."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags, column_or_1d, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _assert_all_finite
from torch import Tensor, nn

from ansatz import likelihoods
from ansatz.errors import DataError, UsageError
from ansatz.fitting.job import Job
from ansatz.fitting.recipe_options import Augment
from ansatz.fitting.refits import out_of_fold
from ansatz.estimators.table_estimator import TableEstimator
from ansatz.outcomes.temperature import find_temperature
from ansatz.likelihoods import CategoricalDistribution, CrossEntropy, Focal, Likelihood
from ansatz.metrics import judge
from ansatz.spec import TargetSpec

CLASS_LAWS = ("bernoulli", "categorical", "ordinal", "cross_entropy", "focal")


class Classifier(ClassifierMixin, TableEstimator):
    """A network, or a linear model, that predicts the probability of each class.

    Args:
        likelihood: ``"auto"`` (bernoulli for two classes, categorical for more), a name or an
            instance.
        likelihood_options: options of a likelihood given by name.
        classes: all classes in their order, which ``"ordinal"`` needs where the order is not that
            of numbers; default: those that occur, sorted.
        class_weight: ``"balanced"``, a mapping class -> weight, or None. Weights move the decision
            of ``predict``; ``predict_proba`` takes them out again and keeps estimating P(y | x).
        x: what X looks like: ``"auto"`` tells tables from signals, images and volumes by the axes
            of arrays and the names of files; ``"grid"`` takes the rows of a table as signals.
        network: by name (``"mlp"``, ``"linear"``, ``"lenet5"``, ...), or a module; ``"auto"`` takes
            the default of what X looks like.
        inference: ``"point"``: one weight vector, the penalised maximum-likelihood estimate;
            ``"ensemble"``: the mixture of several that stop on different rows.
        members: networks of an ensemble; ten if not given, five beyond 50,000 rows.
        widths: hidden units per layer.
        activation: of the hidden layers.
        dropout: share of hidden units dropped in training.
        network_options: further options of the network's factory.
        epochs: passes over the rows, in place of the recipe's budget.
        batch_size: rows per step; 0 takes all rows at once.
        learning_rate: peak rate of AdamW.
        weight_decay: decoupled, on matrices.
        holdout: share of the rows that decide when to stop; 0 for none.
        quantile: True, or the columns, whose heavy tails are mapped to normal scores.
        bins: pieces into which the range of each number is cut, as features beside the number, so
            that a network can bend sharply; by default 32 from 10,000 rows on (fewer where columns
            are many), 0 for none.
        augment: whether grids are varied at random while they are learned from (shifted, turned,
            flipped, as their shape allows), or how: ``[Flip(), Noise(0.1)]`` or ``"flip,noise"``
            of :mod:`ansatz.data.augmentation`; None does what the recipe says.
        pretrained: a file of weights, ``.safetensors`` or ``.pth``, that the network begins with.
        freeze: ``"backbone"`` trains the last layer alone; a number freezes so many groups of
            layers from the input on; a list of epochs wakes one group at each, the last first.
        warm_start: begin the next ``fit`` at the weights of the last.
        random_state: one seed decides split, initial weights, order and dropout. None draws it
            from numpy's global generator.
        n_jobs: threads; None chooses by the network's size.
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.
        time_limit: seconds after which training stops with the best weights so far.
        verbose: 0 silent, 1 a progress bar, 2 one line per evaluation.

    Example:
        >>> import numpy as np
        >>> from ansatz import Classifier
        >>> x = np.linspace(-1, 1, 60).reshape(-1, 1)
        >>> model = Classifier().fit(x, np.where(x[:, 0] > 0, "yes", "no"))
        >>> model.predict([[-0.9], [0.9]]).tolist()
        ['no', 'yes']

    References:
        Bishop (2006), Pattern Recognition and Machine Learning, section 4.3.4.
    """

    def __init__(
        self,
        likelihood: str | Likelihood = "auto",
        *,
        likelihood_options: Mapping[str, Any] | None = None,
        classes: Sequence[Any] | None = None,
        class_weight: Literal["balanced"] | Mapping[Any, float] | None = None,
        x: Literal["auto", "vector", "grid"] = "auto",
        network: str | nn.Module = "auto",
        inference: Literal["point", "ensemble"] = "point",
        members: int | None = None,
        widths: Sequence[int] | None = None,
        activation: str | None = None,
        dropout: float | None = None,
        network_options: Mapping[str, Any] | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        holdout: float | None = None,
        quantile: bool | Sequence[str] = False,
        bins: int | None = None,
        augment: Augment | None = None,
        pretrained: str | Path | None = None,
        freeze: str | int | Sequence[int] | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = 0,
        n_jobs: int | None = None,
        device: str = "auto",
        time_limit: float | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            likelihood,
            likelihood_options=likelihood_options,
            x=x,
            network=network,
            inference=inference,
            members=members,
            widths=widths,
            activation=activation,
            dropout=dropout,
            network_options=network_options,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            holdout=holdout,
            quantile=quantile,
            bins=bins,
            augment=augment,
            pretrained=pretrained,
            freeze=freeze,
            warm_start=warm_start,
            random_state=random_state,
            n_jobs=n_jobs,
            device=device,
            time_limit=time_limit,
            verbose=verbose,
        )
        self.classes = classes
        self.class_weight = class_weight

    def partial_fit(  # type: ignore[override]  # scikit-learn's order: classes before weights
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
    ) -> Self:
        """One pass over the rows, from where the last call left weights and optimiser.

        Args:
            X: rows as in ``fit``.
            y: ``(N,)`` classes.
            classes: all classes there will ever be; needed at the first call only.
            sample_weight: ``(N,)`` frequency weights.
            offset: ``(N,)``, known parts of the linear predictor.
        """
        first = not hasattr(self, "model_")
        if first:
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            self.classes_ = np.unique(np.asarray(classes))
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes={classes!r} differ from the first call's {self.classes_!r}.")
        self._classes_are_given = True
        try:
            job = self._read(X, y, sample_weight, offset, reset=first)
        finally:
            del self._classes_are_given
        return self._partial_fit_job(job, first=first)

    def predict(self, X: Any, *, offset: ArrayLike | None = None) -> NDArray[Any]:
        """The most probable class; with ``class_weight``, the class of least weighted cost.

        Args:
            X: rows as in ``fit``.
            offset: ``(N,)``, known parts of the linear predictor.
        """
        return self._decide(self._raw(X, offset))

    def _decide(self, raw: Tensor) -> NDArray[Any]:
        law = self.model_.objective.likelihood
        codes = self._probabilities(raw).argmax(-1) if law.is_law else law.point(raw)
        chosen: NDArray[Any] = self.classes_[codes.numpy()]
        return chosen

    def predict_proba(self, X: Any, *, offset: ArrayLike | None = None) -> NDArray[np.float64]:
        """P(y = class | x), ``(N, K)`` in the order of ``classes_``.

        Args:
            X: rows as in ``fit``.
            offset: ``(N,)``, known parts of the linear predictor.
        """
        raw = self._served_raw(self._raw(X, offset))
        found: NDArray[np.float64] = self._probabilities(raw).numpy()
        return found

    def _served_raw(self, raw: Tensor) -> Tensor:
        """Takes the class weights out of the logits: weights estimate w_c P(c | x)."""
        if self._log_weights is None:
            return raw
        log_weights = torch.as_tensor(self._log_weights)
        if raw.shape[-1] == len(log_weights):
            return raw - log_weights
        return raw - (log_weights - log_weights[0])[1:]  # logits against the first class

    def _probabilities(self, raw: Tensor) -> Tensor:
        """(N, K) probabilities from the raw numbers of a class law or loss."""
        return self._log_probabilities(self.model_.objective.likelihood, raw).exp()

    def _log_probabilities(self, likelihood: Likelihood, raw: Tensor) -> Tensor:
        if likelihood.name == "bernoulli":
            # Both from their own tail: 1 - p is 0 long before P(class 0) is.
            return nn.functional.logsigmoid(torch.cat([-raw, raw], -1))
        if isinstance(likelihood, CrossEntropy | Focal):
            found = torch.log_softmax(likelihood.unweighted(raw), -1)
        else:
            found = likelihood.probs(raw).log()  # type: ignore[operator]  # class laws have it
        temperature = getattr(self, "_temperature", 1.0)
        return found if temperature == 1 else torch.log_softmax(found / temperature, -1)

    def _judge(
        self, likelihood: Likelihood, raw: Tensor, y: Tensor, weight: Tensor | None = None
    ) -> dict[str, float | None]:
        """A loss of classes is judged by the probabilities that it is served as."""
        if likelihood.is_law:
            return super()._judge(likelihood, raw, y, weight)
        served = CategoricalDistribution(self._log_probabilities(likelihood, raw))
        return judge(y, distribution=served, weight=weight)

    def _fit_job(self, job: Job) -> Self:
        self._temperature = 1.0
        super()._fit_job(job)
        law = self.model_.objective.likelihood
        if isinstance(law, Focal) or (isinstance(law, CrossEntropy) and law.smoothed):
            self._temperature = self._recalibrate(job)
        return self

    def _recalibrate(self, job: Job) -> float:
        """The temperature of least out-of-fold log score: such losses do not estimate P(y | x)."""
        law = self.model_.objective.likelihood
        if self.inference == "ensemble":
            parts = [(rows, raw) for rows, _, raw in self._judged.served()]
        else:
            refits = out_of_fold(self, job)
            parts = [(refit.outside, refit.raw[refit.outside]) for refit in refits]
        if not parts:
            return 1.0
        with torch.no_grad():
            raw = torch.cat([self._served_raw(raw) for _, raw in parts])
            logits = self._log_probabilities(law, raw)
        rows = torch.cat([rows for rows, _ in parts])
        return find_temperature(logits, job.y[rows].long(), job.weight[rows])

    def _encode(self, y: Any, *, reset: bool) -> tuple[NDArray[Any], TargetSpec]:
        values = column_or_1d(y, warn=True)
        if values.dtype.kind in "fc":
            _assert_all_finite(values, input_name="y")
        check_classification_targets(values)
        given = getattr(self, "_classes_are_given", False)
        if reset and not given:
            self._set_classes(self._known_classes(y, values))
        order = np.argsort(self.classes_, kind="stable")
        found = np.searchsorted(self.classes_[order], values).clip(max=len(order) - 1)
        codes = order[found]
        unknown = np.flatnonzero(self.classes_[codes] != values)
        if len(unknown):
            raise DataError(
                f"the class {values.tolist()[unknown[0]]!r} at y[{unknown[0]}] is not among the "
                f"known classes {self.classes_.tolist()}."
            )
        if reset:
            self.target_names_ = [str(getattr(y, "name", None) or "y")]
        target = TargetSpec(classes=len(self.classes_))
        if self._law(target).name == "bernoulli":  # its outcomes are 0.0 and 1.0
            return codes.astype(np.float64), target
        return codes, target

    def _known_classes(self, y: Any, values: NDArray[Any]) -> NDArray[Any]:
        """Those given, those of an ordered column, or those that occur."""
        if self.classes is not None:
            listed = np.asarray(self.classes)
            if len(np.unique(listed)) != len(listed):
                raise UsageError(f"classes names a class twice: {list(self.classes)}.")
            return listed.astype(values.dtype) if values.dtype.kind in "UO" else listed
        dtype = getattr(y, "dtype", None)
        if getattr(dtype, "ordered", False):
            return np.asarray(dtype.categories)  # type: ignore[union-attr]
        found = np.unique(values)
        if self._law_name() == "ordinal" and found.dtype.kind not in "biuf":
            raise UsageError(
                f"ordinal needs the order of the classes {found.tolist()[:8]}: say "
                "classes=[lowest, ..., highest], --set 'classes=[\"lowest\", ...]'."
            )
        return found

    def _set_classes(self, classes: NDArray[Any]) -> None:
        before = getattr(self, "classes_", None)
        if self.warm_start and before is not None and not np.array_equal(before, classes):
            raise ValueError(
                f"warm_start goes on with the classes {before.tolist()}, got {classes.tolist()}."
            )
        self.classes_ = classes

    def _reweight(self, codes: NDArray[Any], weight: NDArray[Any]) -> NDArray[Any]:
        codes = codes.astype(np.intp)
        present = np.unique(codes)
        if len(present) < 2 and not hasattr(self, "_classes_are_given"):
            raise ValueError(
                "Classifier can't train when only one class is present: "
                f"every row has {self.classes_.tolist()[present[0]]!r}."
            )
        self._log_weights = None
        if self.class_weight is None:
            return weight
        if self._law_name() == "ordinal":
            raise UsageError("ordinal takes no class_weight: shift the threshold of a decision.")
        labels = self.classes_[codes]
        try:
            factors = compute_class_weight(
                self.class_weight, classes=self.classes_, y=labels, sample_weight=weight
            )
        except ValueError as error:
            raise UsageError(f"class_weight: {error}") from None
        factors = factors * (weight.sum() / (weight * factors[codes]).sum())
        self._log_weights = np.log(np.maximum(factors, 1e-300)).tolist()
        weighted: NDArray[Any] = weight * factors[codes]
        return weighted

    def _plain(self, job: Job) -> Job:
        if self._log_weights is None:
            return job
        factors = torch.as_tensor(self._log_weights, dtype=job.weight.dtype).exp()
        return job._replace(weight=job.weight / factors[job.y.long()])

    def _law(self, target: TargetSpec, rows: float = math.inf) -> Likelihood:
        if self.likelihood == "auto":
            name = "bernoulli" if target.classes == 2 else "categorical"
            created: Likelihood = likelihoods.create(name)
            return created
        law = super()._law(target, rows)
        if law.name not in CLASS_LAWS:
            raise UsageError(
                f"{law.name} is no law of classes. A Classifier takes {', '.join(CLASS_LAWS)}; "
                "numbers are for a Regressor."
            )
        return law

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
