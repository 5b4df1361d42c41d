"""Draws of several chains, and how they were made."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from torch import Tensor

from ansatz.inference.convergence import ess_bulk, ess_tail, mcse_mean, r_hat
from ansatz.inference.diagnosis import Diagnosis, diagnose

if TYPE_CHECKING:
    import pandas as pd


class Chains(NamedTuple):
    """Draws of several chains, and how they were made.

    Args:
        draws: ``(C, N, D)``, the warm-up left out.
        log_density: ``(C, N)``.
        acceptance: ``(C, N)``, the probability of accepting, or its mean over a path.
        diverging: ``(C, N)`` bool, whether the path left the region where its energy is kept.
        depth: ``(C, N)``, doublings of the paths of ``nuts``; 0 for others.
        energy: ``(C, N)``; nan for samplers without momentum.
        step_size: ``(C,)``.
        max_depth: the largest depth allowed.

    Example:
        >>> import torch
        >>> from ansatz.inference import sample
        >>> found = sample(lambda x: -(x**2).sum(1) / 2, torch.zeros(1), warmup=100, draws=200)
        >>> found.summary(["x"]).index.tolist()
        ['x']
    """

    draws: Tensor
    log_density: Tensor
    acceptance: Tensor
    diverging: Tensor
    depth: Tensor
    energy: Tensor
    step_size: Tensor
    max_depth: int

    def summary(self, names: list[str] | None = None) -> "pd.DataFrame":
        """Mean, standard deviation, quantiles, Monte-Carlo error, R-hat and effective draws.

        Args:
            names: of the parameters; x0, x1, ... by default.
        """
        import pandas as pd

        x = self.draws.numpy()
        flat = x.reshape(-1, x.shape[2])
        low, high = np.quantile(flat, [0.05, 0.95], axis=0)
        columns = {
            "mean": flat.mean(0),
            "sd": flat.std(0, ddof=1),
            "mcse": mcse_mean(x),
            "5%": low,
            "95%": high,
            "r_hat": r_hat(x),
            "ess_bulk": ess_bulk(x),
            "ess_tail": ess_tail(x),
        }
        return pd.DataFrame(columns, index=names or [f"x{k}" for k in range(x.shape[2])])

    def diagnose(self, names: list[str] | None = None) -> Diagnosis:
        """Whether the draws are to be believed, with the numbers behind it.

        Args:
            names: of the parameters, for the sentences; x0, x1, ... by default.
        """
        return diagnose(self, names)

    @property
    def problems(self) -> list[str]:
        """Reasons not to believe the draws, in sentences; none where there are none."""
        return list(self.diagnose().reasons)
