"""Synthesizers: models of x itself, which draw, score, reconstruct and impute."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ansatz.errors import DataError, UsageError
from ansatz.estimators.arguments import Arguments
from ansatz.estimators.estimator import Estimator
from ansatz.fitting.job import Job
from ansatz.fitting.task import Settings, Task
from ansatz.generative.contract import Density
from ansatz.generative.imputation import Imputations, impute_codes
from ansatz.generative.posterior import GenerativePosterior
from ansatz.generative.ranks import two_sided_rank

_OF_OTHERS = (
    *("calibration", "members", "priors", "random", "errors", "formula", "impute", "link"),
    *("quantile", "bins", "tokens", "augment", "length", "vocabulary", "likelihood_options"),
    "folds",
)


class Synthesizer(Estimator, without=_OF_OTHERS):
    r"""A model :math:`p(x \mid \text{given})` of rows of a table, of signals, images or volumes.

    ``sample`` draws new examples with the columns, types, decimals, levels and dates of the fit;
    ``score_samples`` says how likely examples are; ``impute`` fills values that are missing;
    ``transform`` and ``inverse_transform`` go to latents and back, where there are some.

    Args:
        generator: by name (``ansatz list generators``); ``"auto"`` takes the default of what X
            looks like.
        likelihood: the likelihood of columns or pixels that are decoded: ``"auto"``
            chooses by the values, ``{"age": "gamma"}`` names that of a column.
        network: the encoder of generators that have one, by name.
        given: names of columns of X that the others are drawn given.
        generator_options: of the generator, like ``{"latents": 20}``.

    Example:
        >>> import pandas as pd
        >>> from ansatz import Synthesizer
        >>> table = pd.DataFrame({"n": [1, 2, 3, 4] * 10, "kind": ["a", "b"] * 20})
        >>> model = Synthesizer("copula").fit(table)
        >>> model.sample(3, seed=1).dtypes.equals(table.dtypes)
        True

    References:
        Hoff (2007), https://doi.org/10.1214/07-AOAS107
    """

    outcome = "generate"

    def __init__(
        self,
        generator: str = "auto",
        likelihood: Any = "auto",
        *,
        given: Sequence[str] | None = None,
        generator_options: dict[str, Any] | None = None,
        **options: Unpack[Arguments],
    ) -> None:
        super().__init__(likelihood, **options)
        self.generator, self.given = generator, given
        self.generator_options = generator_options

    def settings(self) -> Settings:
        """Gives the arguments as settings of a fit; the likelihood is that of the columns."""
        given = {**self.get_params(deep=False), "random_state": self._seed()}
        own = Settings.of_arguments({**given, "likelihood": "normal"})
        laws = None if self.likelihood == "auto" else self.likelihood
        kept = {k: v for k, v in own.options.items() if k not in ("given", "generator")}
        kept |= {"generator": None if self.generator == "auto" else self.generator, "laws": laws}
        inference = "point" if own.inference == "auto" else own.inference
        return own.change(likelihood="normal", inference=inference, options=kept)

    def adopt(self, model: Any) -> None:
        super().adopt(model)
        options = model.task.settings.options
        self.likelihood = options.get("laws") or "auto"
        self.generator = options.get("generator") or "auto"

    def fit(  # type: ignore[override]  # x is its own outcome
        self, X: Any, given: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fits the generator to examples.

        Args:
            X: a table, an array of rows, or images as other estimators take them.
            given: ``(N,)`` or ``(N, G)``: what each example is drawn given, like its class; None
                where the constructor names columns of X, or nothing is given.
            sample_weight: ``(N,)`` frequency weights.
        """
        X, given = self._apart(X, given)
        task, job = self._begin(X, given, sample_weight, roles=_roles(X))
        return self._fit(task, job)

    def _apart(self, X: Any, given: Any) -> tuple[Any, Any]:
        """X without the columns that are given, and these."""
        if not self.given:
            return X, given
        if given is not None:
            raise UsageError("given is named in the constructor and passed to fit: leave one out.")
        frame = pd.DataFrame(X)
        odd = [name for name in self.given if name not in frame.columns]
        if odd:
            raise DataError(f"no column '{odd[0]}' to be given. Columns: {list(frame.columns)}.")
        return frame.drop(columns=list(self.given)), frame[list(self.given)]

    def _job(
        self,
        task: Task,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *others: Any,
        reset: bool,
        **more: Any,
    ) -> Job:
        if isinstance(X, dict):
            X = pd.DataFrame(X)
        if y is None:
            y = pd.DataFrame(index=range(len(X)))
        return super()._job(task, X, y, sample_weight, *others, reset=reset, **more)

    @property
    def posterior(self) -> GenerativePosterior:
        """The fitted generator with its codings."""
        check_is_fitted(self)
        found = self.model_.posterior
        assert isinstance(found, GenerativePosterior)
        return found

    def parts(self, table: Any) -> tuple[Any, Any]:
        """Examples and what they are given, of a table like that of the fit.

        Args:
            table: of a model of ``ansatz.fit``: its columns, or images with columns beside them.
        """
        names = bool(self.model_.outcome.names)
        found = self._from_table(table, outcomes=names)
        return found.X, found.y if names else None

    # Draws.

    def sample(  # type: ignore[override]
        self,
        n: int,
        given: Any = None,
        *,
        seed: int = 0,
        steps: int | None = None,
        sampler: str | None = None,
        guidance: float | None = None,
    ) -> Any:
        """Draws new examples: a frame of a table, an array otherwise.

        Args:
            n: how many.
            given: what they are drawn given: a mapping ``{"class": 3}`` for all of them, or one
                row for each; None draws that from the training rows too.
            seed: of the draws.
            steps: of a diffusion: evaluations of its network, 20 at first. This and the next two
                hold for later draws too.
            sampler: of a diffusion: ``"normal_exact"``, ``"ddim"``, ``"dpm2m"``, ...
            guidance: of a diffusion: 0 ignores what is given, 1 follows it, 2 exaggerates it.
        """
        posterior = self.posterior
        posterior.model.sampling(steps=steps, sampler=sampler, guidance=guidance)
        codes = posterior.draw(n, self._given_codes(given, n), seed)
        return self._contents(codes)

    def _contents(self, codes: Tensor) -> Any:
        """Examples as they were given to the fit."""
        found = self.posterior.coding.contents(codes)
        if isinstance(found, Tensor):
            return found.numpy()
        return found if self.model_.features["names"] is not None else found.to_numpy()

    def _given_codes(self, given: Any, count: int) -> Tensor | None:
        """The codes of what is given, one row for each example."""
        coding = self.posterior.given_coding
        if coding is None:
            if given is not None:
                raise UsageError("this model was fitted without given columns: leave given out.")
            return None
        if given is None:
            return None
        names = self.model_.outcome.names
        if isinstance(given, dict):
            lacking = [name for name in names if name not in given]
            if lacking or len(given) != len(names):
                raise UsageError(f"given needs a value for each of {', '.join(names)}.")
            frame = pd.DataFrame({name: [given[name]] * count for name in names})
        else:
            values = pd.DataFrame(given)
            frame = values.set_axis(names, axis=1) if values.shape[1] == len(names) else values
        if len(frame) != count:
            raise DataError(f"given has {len(frame)} rows, {count} examples are asked for.")
        return coding.codes(frame)

    # Densities.

    def score_samples(
        self, X: Any, given: Any = None, *, seed: int = 0, draws: int | None = None
    ) -> NDArray[np.float64]:
        """Computes log p(x | given) of each row in nats, or a lower bound.

        Args:
            X: as in ``fit``.
            given: as in ``fit``.
            seed: of the draws of a bound.
            draws: of a bound; None takes the generator's own number.
        """
        found: NDArray[np.float64] = self._density(X, given, seed, draws).value.numpy()
        return found

    def score(self, X: Any, given: Any = None) -> float:
        """Computes the mean log density of rows.

        Args:
            X: as in ``fit``.
            given: as in ``fit``.
        """
        return float(self.score_samples(X, given).mean())

    def density(self, X: Any, given: Any = None, *, seed: int = 0) -> pd.DataFrame:
        """Computes ``log_density``, its standard error ``se``, and ``p_value`` of each row.

        The p-value is the two-sided rank of the row's log density among rows that were held out
        of the fit: a stranger may well be *more* likely than they are.

        Args:
            X: as in ``fit``.
            given: as in ``fit``.
            seed: of the draws of a bound.
        """
        found = self._density(X, given, seed, None)
        outcome: Any = self.model_.outcome
        columns = {"log_density": found.value.numpy(), "se": found.error.numpy()}
        if outcome.held_out is not None:
            columns["p_value"] = two_sided_rank(found.value, outcome.held_out).numpy()
        return pd.DataFrame(columns)

    def _density(self, X: Any, given: Any, seed: int, draws: int | None) -> Density:
        X, given = self._apart_again(X, given)
        codes = self._codes(X)
        likelihood = self.posterior.likelihood
        likelihood.seed, likelihood.draws = seed, draws
        y = self._given_codes(given, len(codes))
        if self.posterior.given_coding is not None and y is None:
            raise UsageError("this model is of x given other columns: pass given as well.")
        return likelihood.density(codes, y)

    def _apart_again(self, X: Any, given: Any) -> tuple[Any, Any]:
        names = self.model_.outcome.names
        if names and given is None and isinstance(X, pd.DataFrame) and set(names) <= set(X):
            return X.drop(columns=names), X[names]
        return X, given

    def _codes(self, X: Any) -> Tensor:
        if isinstance(X, Tensor):
            X = X.numpy()
        if isinstance(X, dict):
            X = pd.DataFrame(X)
        known = self.model_.features["names"]
        if isinstance(X, pd.DataFrame) and known is not None and set(known) <= set(X.columns):
            X = X[list(known)]
        rows: Any = self.model_.structure.from_python(X, estimator=self, reset=False)
        return self.posterior.codes(rows)

    # Missing values, latents.

    def impute(self, X: Any, draws: int = 20, *, given: Any = None, seed: int = 0) -> Imputations:
        """Fills missing values by ``draws`` draws of their distribution given the others.

        Args:
            X: as in ``fit``, with values that are missing.
            draws: tables that are made.
            given: as in ``fit``.
            seed: of the draws.
        """
        X, given = self._apart_again(X, given)
        codes = self._codes(X)
        y = self._given_codes(given, len(codes))
        tables = impute_codes(self.posterior, codes, y, draws=draws, seed=seed)
        return Imputations([self._contents(each) for each in tables], codes.isnan().numpy())

    def transform(self, X: Any, given: Any = None) -> NDArray[np.float64]:
        """Computes the latents of rows, ``(N, L)``.

        Args:
            X: as in ``fit``.
            given: as in ``fit``.
        """
        codes = self._codes(X)
        found = self.posterior.model.encode(codes, self._given_codes(given, len(codes)))
        latents: NDArray[np.float64] = found.double().numpy()
        return latents

    def inverse_transform(self, latents: ArrayLike, given: Any = None) -> Any:
        """Computes the examples that latents stand for, without noise.

        Args:
            latents: ``(N, L)``.
            given: as in ``fit``.
        """
        check_is_fitted(self)
        values = torch.as_tensor(np.asarray(latents), dtype=torch.float64)
        own = self._given_codes(given, len(values))
        return self._contents(self.posterior.model.decode(values, own))

    def reconstruct(self, X: Any, given: Any = None) -> Any:
        """Encodes examples and decodes them again.

        Args:
            X: as in ``fit``.
            given: as in ``fit``.
        """
        return self.inverse_transform(self.transform(X, given), given)

    def interpolate(self, X: Any, steps: int = 8, given: Any = None) -> Any:
        """Decodes points on the line between the latents of the first and the second example.

        Args:
            X: two examples.
            steps: points, both ends among them.
            given: one row, for all points.
        """
        ends = self.transform(X, None if given is None else [given] * 2)
        if len(ends) != 2:
            raise DataError(f"interpolate goes between two examples, got {len(ends)}.")
        share = np.linspace(0, 1, steps)[:, None]
        own = None if given is None else [given] * steps
        return self.inverse_transform(ends[:1] * (1 - share) + ends[1:] * share, own)

    def predict(self, X: Any, **options: Any) -> Any:
        """Computes the log density of each row; the same as ``score_samples``.

        Args:
            X: as in ``fit``.
            options: of ``score_samples``.
        """
        return self.score_samples(X, **options)

    def evaluate(  # type: ignore[override]
        self, X: Any, given: Any = None, sample_weight: ArrayLike | None = None, **options: Any
    ) -> dict[str, float | None]:
        """Computes nats per row (bits per number of grids) and the energy distance of samples.

        Args:
            X: as in ``fit``; a model of ``ansatz.fit`` takes its file's table.
            given: as in ``fit``.
            sample_weight: frequency weights.
            options: ``warn``, whether to warn of training rows.
        """
        X, given = self._apart_again(X, given)
        if given is None:
            if self.model_.outcome.names:
                raise UsageError("this model is of x given other columns: pass given as well.")
            given = pd.DataFrame(index=range(len(X)))
        return super().evaluate(X, given, sample_weight, **options)

    def report(  # type: ignore[override]
        self, X: Any, given: Any = None, path: str | Path | None = None, **options: Any
    ) -> Any:
        """Writes the evidence of the model on given rows, as one page of HTML.

        Args:
            X: as in ``fit``.
            given: as in ``fit``.
            path: the file to write; None writes none.
            options: of :func:`ansatz.report.report_model`.
        """
        X, given = self._apart_again(X, given)
        if given is None:
            given = pd.DataFrame(index=range(len(X)))
        return super().report(X, given, path, **options)


def _roles(X: Any) -> dict[str, str] | None:
    """A role that keeps a frame of numbers a frame, so that samples have its types."""
    if not isinstance(X, pd.DataFrame) or not X.shape[1]:
        return None
    varying = [
        name
        for name in X.columns
        if getattr(X[name].dtype, "kind", "O") in "iuf" and X[name].nunique() > 1
    ]
    return {str(varying[0]): "numeric"} if varying else None
