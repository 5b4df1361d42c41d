"""A note where the latest rows are not like those before them."""

import torch

from ansatz.fitting.job import Job
from ansatz.fitting.model import Model

LEVEL = 0.9
FEWEST = 20  # rows: of fewer, a share says little


def note_on_drift(model: Model, test: Job) -> list[str]:
    r"""Reports that intervals hold fewer of the latest rows than they claim.

    Intervals describe rows like the training rows. Of the latest rows they hold their level only
    if the relation of y and x stays as it was. A note follows where the share :math:`\hat p` of n
    rows inside 90 % intervals is too small for chance,

    .. math:: \hat p < 0.9 - 3 \sqrt{0.9 \cdot 0.1 / n}

    Args:
        model: as fitted to the earlier rows.
        test: the latest rows.
    """
    likelihood = model.likelihood
    if len(test.y) < FEWEST or test.target.classes or test.target.event:
        return []
    if likelihood.event_ndim or not likelihood.has_distribution:
        return []
    with torch.no_grad():
        served = model.predictive(test.rows, test.offset, notes=[])
        lower, upper = served.likelihood.distribution(served.raw).interval(LEVEL)
    inside = ((lower <= test.y) & (test.y <= upper)).double().mean()
    held, count = float(inside), len(test.y)
    if held >= LEVEL - 3 * (LEVEL * (1 - LEVEL) / count) ** 0.5:
        return []
    return [
        f"of the latest {count} rows, {LEVEL:.0%} intervals hold {held:.0%}: y depends on x in "
        "another way than before. Intervals describe rows like the training rows; fit again as "
        "rows come in, and plan with wider ones."
    ]
