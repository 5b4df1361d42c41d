"""What estimators with draws of named parameters offer besides predictions."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from sklearn.utils.validation import check_is_fitted

from ansatz.errors import UsageError
from ansatz.fitting.fit_model import fit_model
from ansatz.fitting.model import Model
from ansatz.fitting.replay import replay
from ansatz.inference.named_draws import (
    Hypothesis,
    hypothesis,
    named_draws,
    posterior_frame,
    to_arviz,
)

if TYPE_CHECKING:
    import pandas as pd


class PosteriorMethods:
    """Draws by name, probabilities of hypotheses, an export to ArviZ."""

    model_: Model

    def posterior_frame(self) -> "pd.DataFrame":
        """Gives all draws of the parameters by name, on the data's scale, by chain and draw."""
        check_is_fitted(self)
        self.model_.require_converged()
        return posterior_frame(named_draws(self.model_.posterior))

    def hypothesis(self, statement: str) -> Hypothesis:
        """Gives the probability of a statement about parameters, with its Monte-Carlo error.

        Args:
            statement: like ``"age > 0"`` or ``"age > 2 * bmi and sigma < 1"``; names as in the
                summary.
        """
        check_is_fitted(self)
        self.model_.require_converged()
        return hypothesis(named_draws(self.model_.posterior), statement)

    def to_arviz(self) -> Any:
        """Gives the draws as ArviZ has them: InferenceData, or a DataTree from version 1 on."""
        check_is_fitted(self)
        return to_arviz(named_draws(self.model_.posterior))

    def extend(self, draws: int, X: Any = None, y: Any = None, **columns: Any) -> Self:
        """Goes on with the chains until each has this many draws after the warm-up.

        The draws are those that one longer run would have made.

        Args:
            draws: of each chain.
            X: the rows of the fit; a model of ``ansatz.fit`` reads them again.
            y: their outcomes.
            columns: ``sample_weight`` and ``offset``, if the fit had them.
        """
        check_is_fitted(self)
        model = self.model_
        drawn = getattr(model.posterior, "drawn", 0)
        if not drawn or draws <= drawn:
            raise UsageError(
                f"extend goes on with chains: they have {drawn:,} draws each, and {draws:,} were "
                "asked for."
            )
        again: Any = self
        job = replay(self).learn if X is None else again.read_again(X, y, **columns)
        options = {**model.task.settings.options, "draws": draws}
        task = model.task._replace(settings=model.task.settings.change(options=options))
        longer = fit_model(task, job, previous=model)
        self.model_ = replace(model, task=task, posterior=longer.posterior, notes=longer.notes)
        return self

    def allow_unconverged(self) -> Self:
        """Lets a model answer whose draws have failed to converge."""
        check_is_fitted(self)
        self.model_.allows_unconverged = True
        return self
