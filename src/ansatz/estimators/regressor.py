"""Numbers as outcomes: regression with any likelihood."""

from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from ansatz.estimators.estimator import Estimator


class Regressor(RegressorMixin, Estimator):
    """A network, or a linear model, that predicts the distribution of a number.

    With no argument it chooses its recipe from the number of rows: below 100 rows a small
    penalised network in float64 that sees all rows at every step; above, two layers of 128 with
    early stopping on held-out rows; above 50,000 rows, two of 256. ``recipe_`` holds what was done.

    Args:
        likelihood: the likelihood of y by name (``ansatz list likelihoods``), or an instance.
        likelihood_options: options of a likelihood given by name, like
            ``{"components": 2}`` of ``"normal_mixture"``.

    Example:
        >>> import numpy as np
        >>> from ansatz import Regressor
        >>> x = np.linspace(0, 3, 60).reshape(-1, 1)
        >>> model = Regressor().fit(x, np.sin(x[:, 0]))
        >>> model.interval([[1.0]], level=0.9).shape
        (1, 2)

    References:
        Lakshminarayanan et al. (2017), Simple and scalable predictive uncertainty estimation,
        section 2.2.1, for the network that predicts mean and standard deviation.
    """

    outcome = "number"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        return tags
