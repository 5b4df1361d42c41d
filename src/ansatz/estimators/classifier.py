"""Classes as outcomes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from torch import nn

from ansatz import outcomes
from ansatz.estimators.estimator import Estimator, Fitted
from ansatz.fitting.recipe import Augment
from ansatz.likelihoods import Likelihood


class Classifier(ClassifierMixin, Estimator):
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
        bins: number of bins into which the range of each number is cut, as features beside the number, so
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

    outcome = "class"
    classes_ = Fitted(lambda model: model.outcome.labels)

    def __init__(
        self,
        likelihood: str | Likelihood = "auto",
        *,
        likelihood_options: Mapping[str, Any] | None = None,
        classes: Sequence[Any] | None = None,
        class_weight: Literal["balanced"] | Mapping[Any, float] | None = None,
        x: str = "auto",
        network: str | nn.Module = "auto",
        inference: str = "point",
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
        self.likelihood = likelihood
        self.likelihood_options = likelihood_options
        self.classes = classes
        self.class_weight = class_weight
        self.x = x
        self.network = network
        self.inference = inference
        self.members = members
        self.widths = widths
        self.activation = activation
        self.dropout = dropout
        self.network_options = network_options
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.holdout = holdout
        self.quantile = quantile
        self.bins = bins
        self.augment = augment
        self.pretrained = pretrained
        self.freeze = freeze
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.time_limit = time_limit
        self.verbose = verbose

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
        before = getattr(self, "model_", None)
        outcome = None
        if before is None:
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            outcome = outcomes.create(self.outcome)
            outcome.name_classes(np.unique(np.asarray(classes)))
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes={classes!r} differ from the first call's {self.classes_!r}.")
        return self._partial_fit(*self._continue(X, y, sample_weight, offset, outcome))

    def predict_proba(self, X: Any, *, offset: ArrayLike | None = None) -> NDArray[np.float64]:
        """P(y = class | x), ``(N, K)`` in the order of ``classes_``.

        Args:
            X: rows as in ``fit``.
            offset: ``(N,)``, known parts of the linear predictor.
        """
        served = self._served(X, offset)
        found: NDArray[np.float64] = self.model_.of_classes.probabilities(served).numpy()
        return found

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
