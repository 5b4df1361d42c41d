"""Numbers as outcomes: regression with any likelihood."""

from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from ansatz.estimators.estimator import Estimator


class Regressor(RegressorMixin, Estimator):
    """A network, or a linear model, that predicts the distribution of a number.

    With no argument it chooses its recipe from the number of rows: below 100 rows a small
    penalised network in float64 that sees all rows at every step; above, two layers of 128 with
    early stopping on held-out rows; above 50,000 rows, two of 256. ``recipe_`` says what was done.

    Args:
        likelihood: the likelihood of y by name (``ansatz list likelihoods``), or an instance.
        likelihood_options: options of a likelihood given by name, like
            ``{"components": 2}`` of ``"normal_mixture"``.
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
        >>> from ansatz import Regressor
        >>> x = np.linspace(0, 3, 60).reshape(-1, 1)
        >>> model = Regressor().fit(x, np.sin(x[:, 0]))
        >>> model.interval([[1.0]], level=0.9).shape
        (1, 2)

    References:
        Lakshminarayanan et al. (2017), Simple and scalable predictive uncertainty estimation,
        section 2.2.1, for the network that predicts mean and spread.
    """

    outcome = "number"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        return tags
