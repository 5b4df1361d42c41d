"""Rankings as outcomes."""

import copy
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import nn

from ansatz import likelihoods, networks
from ansatz.data import Preprocessor
from ansatz.data.rankings import Layout, Rankings, read_rankings
from ansatz.errors import DataError, UsageError
from ansatz.fitting.job import Job
from ansatz.structures.vector.linear_model import fit_linear_model
from ansatz.fitting.recipe_options import Augment
from ansatz.structures.vector.rows import read_column
from ansatz.fitting.summaries import SavedSummary
from ansatz.estimators.table_estimator import TableEstimator
from ansatz.fitting.model import TableModel
from ansatz.likelihoods import Likelihood, PlackettLuce, RankingDistribution
from ansatz.metrics import kendall_tau
from ansatz.spec import TargetSpec
from ansatz.training import Supervised


class Ranker(TableEstimator):
    """A network, or a linear model, that predicts in which order items will be ranked.

    A row is an occasion of ranking: a voter, a race, a taster; x is what is known about it. With
    ``X=None`` all rows share one law, and the fit is the exact maximum-likelihood estimate.

    Args:
        likelihood: ``"plackett_luce"``, or an instance.
        unranked: what a ranking that leaves items out says about them: ``"last"``, they came after
            all others (top-k rankings), or ``"absent"``, they took no part.
        prior: comparisons of every item with one at the mean of the scores, half of them won, for
            items that too few rankings link with the rest; 0 for none.
        layout: how y is written: ``"places"``, a column per place that holds items; ``"items"``, a
            column per item that holds its rank; ``"orders"``, text like ``b>a>c``; ``"auto"``.
        likelihood_options: further options of a likelihood given by name.
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

    Attributes:
        items_: what is ranked, in the order of the codes.
        notes_: what there is to say about reading and fitting: items without a finite score.

    Example:
        >>> from ansatz.estimators.ranker import Ranker
        >>> model = Ranker().fit(None, ["tea>rum>milk", "tea>milk>rum", "milk>tea>rum", "rum>tea"])
        >>> model.predict(None).tolist()
        [['tea', 'milk', 'rum']]

    References:
        Plackett (1975), The analysis of permutations. Applied Statistics 24, 193-202.
        Hunter (2004), MM algorithms for generalized Bradley-Terry models.
        https://doi.org/10.1214/aos/1079120141
    """

    _labels: ClassVar[str] = "items_"
    items_: NDArray[Any]

    def __init__(
        self,
        likelihood: str | Likelihood = "plackett_luce",
        *,
        unranked: Literal["last", "absent"] = "last",
        prior: float = 0.0,
        layout: Layout = "auto",
        likelihood_options: Mapping[str, Any] | None = None,
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
        self.unranked = unranked
        self.prior = prior
        self.layout = layout

    @property
    def notes_(self) -> list[str]:
        """What there is to say about reading and fitting the rankings."""
        read: list[str] = getattr(self, "_reading", [])
        law = cast(PlackettLuce, self.model_.objective.likelihood)
        told = getattr(self, "_left_out", 0) if law.unranked == "last" else 0
        left_out = [
            f"in {told} of the rankings two or more of the {len(self.items_)} items are left out: "
            "they count as behind all that are named; if they took no part: unranked='absent' "
            "(--set unranked=absent)."
        ] * bool(told)
        return [*read, *left_out, *law.notes]

    # Predictions.

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable order of the items, best first, ``(N, K)``.

        Args:
            X: rows as in ``fit``; None for a model without features.
        """
        chosen: NDArray[Any] = self.items_[self._rankings(X).mode.numpy()]
        return chosen

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """P(item comes first | x), ``(N, K)`` in the order of ``items_``.

        Args:
            X: rows as in ``fit``.
        """
        found: NDArray[np.float64] = self._rankings(X).probs.numpy()
        return found

    def predict_scores(self, X: Any) -> NDArray[np.float64]:
        """The log worth of each item, ``(N, K)`` in the order of ``items_``; a row adds up to 0.

        Args:
            X: rows as in ``fit``.
        """
        found: NDArray[np.float64] = self._rankings(X).scores.numpy()
        return found

    def predict_ranks(self, X: Any) -> NDArray[np.float64]:
        """The expected rank of each item among all, 1 the best, ``(N, K)``.

        Args:
            X: rows as in ``fit``.
        """
        found: NDArray[np.float64] = self._rankings(X).ranks.numpy()
        return found

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """The mean of Kendall's tau between predicted and observed orders: 1 is perfect.

        ``log_score`` gives the mean log-likelihood.

        Args:
            X: rows as in ``fit``.
            y: their rankings.
            sample_weight: ``(N,)`` frequency weights.
        """
        codes = self._outcomes(y, len(y))
        law = self._rankings(X)
        weight = read_column("sample_weight", sample_weight, len(codes))
        tau = kendall_tau(
            codes,
            law.mode.expand(len(codes), -1),
            None if weight is None else torch.from_numpy(weight),
            unranked=law.unranked,
        )
        return float(tau)

    def predict_frame(self, X: Any, interval: float | None = None, **options: Any) -> pd.DataFrame:
        """Predictions as a table: ``place1``, ``place2``, ... and ``p_<item>`` of coming first.

        Args:
            X: rows as in ``fit``; the frame's index is kept.
            interval: None: orders have no interval.
            options: none.
        """
        if interval is not None:
            raise UsageError("an order has no interval: ask predict_ranks or predict_proba.")
        if options:
            raise UsageError(f"predictions of rankings take no {', '.join(options)}.")
        index = X.index if isinstance(X, pd.DataFrame) else None
        if getattr(self, "uses_", None) is not None:
            X, *_ = self._from_table(X, outcomes=False)
        order, first = self.predict(X), self.predict_proba(X)
        columns = {f"place{k + 1}": order[:, k] for k in range(order.shape[1])}
        columns |= {f"p_{item}": first[:, k] for k, item in enumerate(self.items_)}
        return pd.DataFrame(columns, index=index)

    def _rankings(self, X: Any) -> RankingDistribution:
        return cast(RankingDistribution, self.predict_dist(X))

    def summary(
        self,
        X: Any = None,
        y: Any = None,
        *,
        training: tuple[Any, Any] | None = None,
        refits: int = 20,
    ) -> Any:
        """Without features, the items by worth; else as of any model.

        Args:
            X: as for other models.
            y: as for other models.
            training: as for other models.
            refits: as for other models.
        """
        check_is_fitted(self)
        if self.n_features_in_:
            return super().summary(X, y, training=training, refits=refits)
        law = self._rankings(None)
        order = law.mode[0].tolist()
        table = [
            {
                "item": str(self.items_[k]),
                "worth": float(law.probs[0, k]),
                "score": float(law.scores[0, k]),
            }
            for k in order
        ]
        width = max(4, *(len(str(row["item"])) for row in table))
        lines = [f"{'item':{width}}      worth     score"]
        lines += [f"{r['item']:{width}} {r['worth']:10.4g} {r['score']:9.4f}" for r in table]
        text = "Plackett-Luce, the same for all rows; worth is the chance of coming first.\n\n"
        return SavedSummary(text=text + "\n".join(lines), table={"items": table})

    # Fitting.

    def _read(self, X: Any, y: Any, *args: Any, **options: Any) -> Job:
        job = super()._read(X, y, *args, **options)
        if job.offset is not None or job.precision is not None:
            raise UsageError("rankings take neither offset nor precision; weights are welcome.")
        return job

    def _encode(self, y: Any, *, reset: bool) -> tuple[NDArray[Any], TargetSpec]:
        if reset:
            found = read_rankings(y, layout=self.layout)
            self._set_items(np.array(found.items))
            self._reading = found.notes
            # One item alone may be left out: it can only be the last.
            self._left_out = int(((found.codes >= 0).sum(1) < len(found.items) - 1).sum())
            self.target_names_ = _names(y, found)
            self._target_shape, self._y_is_column = found.codes.shape[1:], False
        else:  # written in any layout, and where two are possible, in that of the fit
            names = [str(item) for item in self.items_]
            prefer = "items" if self.target_names_ == names else "places"
            found = read_rankings(y, items=self.items_.tolist(), prefer=prefer)
        return found.codes, TargetSpec(classes=len(self.items_), event=found.codes.shape[1:])

    def _set_items(self, items: NDArray[Any]) -> None:
        if len(items) < 2:
            raise DataError(f"a ranking needs two items at least, got only {items.tolist()[0]!r}.")
        before = getattr(self, "items_", None)
        if self.warm_start and before is not None and not np.array_equal(before, items):
            raise ValueError(
                f"warm_start goes on with the items {before.tolist()}, got {items.tolist()}."
            )
        self.items_ = items

    def _law(self, target: TargetSpec, rows: float = math.inf) -> Likelihood:
        if isinstance(self.likelihood, str):
            likelihoods.registry.get(self.likelihood)  # an unknown name is an error with advice
        if self._law_name() != PlackettLuce.name:
            raise UsageError(f"{self._law_name()} is no law of rankings. Take plackett_luce.")
        if isinstance(self.likelihood, Likelihood):
            return super()._law(target, rows)
        options = {"unranked": self.unranked, "prior": self.prior}
        return PlackettLuce(**{**options, **(self.likelihood_options or {})})

    def _law_of(self, target: TargetSpec, rows: float = math.inf) -> Likelihood:
        law = cast(PlackettLuce, super()._law_of(target, rows))
        law.item_names = [str(item) for item in self.items_]
        return law

    def _fit_linear(self, job: Job, law: Likelihood) -> None:
        """The linear model; without features where it has no finite maximum, its limit."""
        law = cast(PlackettLuce, law)
        constant = job.columns is not None and not job.columns
        if law.prior and not constant:
            raise UsageError(
                "a linear model is fitted by maximum likelihood, without a prior: set prior=0, or "
                "take a network."
            )
        if constant and self._fit_constant(job, law):
            return
        names = [str(item) for item in self.items_]
        self.model_, (fit,) = fit_linear_model(law, job, class_names=names)
        self.linear_, self.n_iter_ = fit, fit.iterations

    def _fit_constant(self, job: Job, law: PlackettLuce) -> bool:
        """Takes the law's own constant model where no Newton step could end: True if it did."""
        law = copy.deepcopy(law).double()
        law.observe(job.y, job.weight)
        shift, scale = law.start(job.y, job.weight)
        if not law.notes and not law.prior:
            return False
        weight = job.weight.numpy()
        preprocessor = Preprocessor.fit(job.rows, job.columns, weight=weight, purpose="linear")
        network = networks.create("linear", inputs=preprocessor.spec, outputs=len(shift))
        nn.init.zeros_(cast(nn.Linear, network.output).bias)
        self.model_ = TableModel(preprocessor, network, Supervised(law, shift, scale), "linear", {})
        self.n_iter_ = 1
        return True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        return tags


def _names(y: Any, found: Rankings) -> list[str]:
    if found.layout == "items":
        return [str(item) for item in found.items]
    if hasattr(y, "columns"):
        return [str(name) for name in y.columns]
    return [str(y.name) if getattr(y, "name", None) is not None else "ranking"]
