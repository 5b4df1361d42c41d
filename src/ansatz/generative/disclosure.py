"""What drawn rows tell about training rows: duplicates, nearness, membership."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ansatz.generative.coding import row_hashes
from ansatz.generative.distances import standardized
from ansatz.generative.two_sample import Share, area_error

MOST = 4_000  # rows of each kind


class Disclosure(NamedTuple):
    """Measures of what drawn rows disclose; none of them is a guarantee.

    Args:
        duplicates: share of drawn rows that equal a training row.
        held_out: share that equal one of as many held-out rows.
        nearer: share of drawn rows that are nearer to a training row than to a held-out row,
            among equally many of both; 0.5 is expected.
        membership: AUC of the log density as a test of who was trained on; nan without a density.
        rows: of each kind that were compared.
    """

    duplicates: float
    held_out: float
    nearer: Share
    membership: Share
    rows: int

    def words(self) -> list[str]:
        """The measures as sentences."""
        low, high = (self.nearer.value + s * 1.96 * self.nearer.error for s in (-1, 1))
        found = [
            f"{self.duplicates:.2%} of the drawn rows equal a training row; {self.held_out:.2%} "
            f"equal one of as many held-out rows, which the model never saw.",
            f"{self.nearer.value:.1%} of the drawn rows are nearer to a training row than to a "
            f"held-out row (95 % interval {low:.1%} to {high:.1%}; 50 % without disclosure).",
        ]
        if not np.isnan(self.membership.value):
            found.append(
                f"The log density tells training rows from held-out rows with an AUC of "
                f"{self.membership.value:.3f} +- {self.membership.error:.3f} (0.5: not at all)."
            )
        found.append("These are measurements, with no guarantee against other attacks.")
        return found


def measure_disclosure(
    train: Tensor,
    held_out: Tensor,
    drawn: Tensor,
    scores: tuple[Tensor, Tensor] | None = None,
    *,
    seed: int = 0,
) -> Disclosure:
    """Compares drawn rows with equally many training and held-out rows.

    Args:
        train: features of rows that were trained on, ``(N, D)``.
        held_out: of rows that were not.
        drawn: of drawn rows.
        scores: log densities of training and held-out rows; None without a density.
        seed: of the rows that are compared.

    Example:
        >>> import torch
        >>> from ansatz.generative.disclosure import measure_disclosure
        >>> rng = torch.Generator().manual_seed(0)
        >>> a, b = torch.randn(2, 200, 3, generator=rng)
        >>> measure_disclosure(a, b, a).nearer.value
        1.0

    References:
        Platzer and Reutterer (2021), Holdout-based empirical assessment of mixed-type synthetic
        data. https://doi.org/10.3389/fdata.2021.679939
    """
    rng = torch.Generator().manual_seed(seed)
    count = min(len(train), len(held_out), MOST)
    a = train[torch.randperm(len(train), generator=rng)[:count]]
    b = held_out[torch.randperm(len(held_out), generator=rng)[:count]]
    drawn = drawn[:MOST]
    hashes = row_hashes(drawn.double())
    same = [float(np.isin(hashes, row_hashes(each.double())).mean()) for each in (a, b)]
    _, drawn_z = standardized(train, drawn)
    near = []
    for each in (a, b):
        _, own = standardized(train, each)
        near.append(torch.cat([torch.cdist(p, own).min(1).values for p in drawn_z.split(512)]))
    share = float(((near[0] < near[1]).double() + 0.5 * (near[0] == near[1]).double()).mean())
    error = float(np.sqrt(max(share * (1 - share), 1e-12) / max(len(drawn), 1)))
    membership = Share(float("nan"), float("nan"))
    if scores is not None:
        membership = _membership(*scores)
    return Disclosure(same[0], same[1], Share(share, error), membership, count)


def _membership(inside: Tensor, outside: Tensor) -> Share:
    from scipy.stats import rankdata

    ranks = rankdata(torch.cat([inside, outside]).double().numpy())
    first, second = len(inside), len(outside)
    area = (ranks[:first].sum() - first * (first + 1) / 2) / max(first * second, 1)
    return Share(float(area), area_error(float(area), first, second))
