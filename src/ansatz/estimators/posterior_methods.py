"""What estimators with draws of named parameters offer besides predictions."""

from typing import TYPE_CHECKING, Any, Self

from sklearn.utils.validation import check_is_fitted

from ansatz.fitting.model import Model
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

    def allow_unconverged(self) -> Self:
        """Lets a model answer whose draws have failed to converge."""
        check_is_fitted(self)
        self.model_.allows_unconverged = True
        return self
