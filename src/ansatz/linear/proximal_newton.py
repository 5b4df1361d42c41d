"""The penalised minimum of a smooth loss: proximal Newton steps with coordinate descent inside."""

import warnings
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ansatz.linear.newton import Objective

MIXINGS = {"l2": 0.0, "elastic_net": 0.5, "l1": 1.0}  # the share of the absolute values
_GRID = {"l2": 20, "elastic_net": 30, "l1": 30}


class PenalisedLoss(NamedTuple):
    r"""A loss per row plus :math:`\lambda \sum_j (\alpha |b_j| + (1 - \alpha) b_j^2 / 2)`."""

    criterion: Objective
    free: Tensor  # (T,) what is estimated
    penalised: Tensor  # (T,)
    unit: Tensor  # (T,) of the coefficients: that of y where the link is the identity
    penalty: str
    total: Tensor  # the sum of the weights, which the criterion is divided by

    @property
    def mixing(self) -> float:
        """The share of the absolute values."""
        return MIXINGS[self.penalty]

    def grid(self, start: Tensor, *, few: bool) -> Tensor:
        """Strengths from the least that leaves no column to a thousandth of it.

        Ridge never leaves a column out: its strengths go from 100 to 1e-4.

        Args:
            start: the minimum without columns.
            few: whether there are fewer rows than columns; then to a hundredth.
        """
        count = _GRID[self.penalty]
        if self.mixing == 0:
            return torch.logspace(2, -4, count, dtype=torch.float64)
        _, gradient = self.criterion.gradient(start)
        gradient = (gradient * self.unit)[self.penalised]
        most = gradient.abs().max() if len(gradient) else 1.0
        most = float(most) / float(self.total) / self.mixing
        least = -2.0 if few else -3.0
        return max(most, 1e-12) * torch.logspace(0, least, count, dtype=torch.float64)

    def value(self, theta: Tensor, strength: float) -> float:
        loss = float(self.criterion.value(theta) / self.total)
        return loss + self.size(theta, strength)

    def size(self, theta: Tensor, strength: float) -> float:
        """The penalty."""
        b = (theta / self.unit)[self.penalised]
        size = self.mixing * b.abs().sum() + 0.5 * (1 - self.mixing) * b.square().sum()
        return strength * float(size)

    def minimum(self, theta: Tensor, strength: float, *, rough: bool = False) -> Tensor:
        """Proximal Newton steps, halved until the penalised loss falls.

        A rough minimum is enough for the loss of other rows: it ends when the loss falls as much as
        the quadratic approximation says.
        """
        free, total = self.free, self.total
        value, damping = self.value(theta, strength), 0.0
        for _ in range(100):
            derivatives = self.criterion.derivatives(theta, free)
            g = derivatives.gradient[free] / total
            h = derivatives.hessian[free][:, free] / total
            scale = h.diagonal().abs().clamp(min=1e-12)
            h = h + torch.diag(damping * scale)
            u, inside = self.unit[free], self.penalised[free]
            b, step = h @ theta[free] - g, torch.zeros_like(theta)
            found = quadratic_minimum(u.unsqueeze(1) * h * u, u * b, inside, strength, self.mixing)
            step[free] = u * found - theta[free]
            if float((step[free] * scale.sqrt()).abs().max()) < 1e-9:
                break
            length = 1.0
            while length > 1e-6:
                trial = self.value(theta + length * step, strength)
                if trial <= value + 1e-13 * abs(value):
                    break
                length /= 2
            else:
                if damping > 1e4:
                    break
                damping = max(10 * damping, 1e-3)
                continue
            damping = damping / 10 if damping > 1e-6 else 0.0
            expected = float(g @ step[free] + 0.5 * step[free] @ h @ step[free])
            expected += self.size(theta + step, strength) - self.size(theta, strength)
            fell, theta, value = trial - value, theta + length * step, trial
            if rough and length == 1 and (abs(fell - expected) < 0.1 * abs(fell) or -fell < 1e-5):
                break
        return theta


def quadratic_minimum(
    h: Tensor, b: Tensor, penalised: Tensor, strength: float, mixing: float
) -> Tensor:
    r"""Minimises :math:`\frac12 u^\top H u - b^\top u` plus the penalty of some of u.

    What is not penalised is eliminated; then coordinate descent finds the columns that remain and
    their signs, and a linear system their values.
    """
    ridge = strength * (1 - mixing)
    if mixing == 0 or strength == 0 or not bool(penalised.any()):
        return torch.linalg.lstsq(
            h + torch.diag(ridge * penalised.to(h)), b.unsqueeze(1), driver="gelsd"
        ).solution.squeeze(1)
    a = ~penalised
    gain = torch.linalg.solve(h[a][:, a], torch.cat([h[a][:, penalised], b[a].unsqueeze(1)], 1))
    s = h[penalised][:, penalised] - h[penalised][:, a] @ gain[:, :-1]
    c = b[penalised] - h[penalised][:, a] @ gain[:, -1]
    v = _soft_minimum((s + s.T) / 2, c, strength * mixing, ridge)
    found = torch.zeros_like(b)
    found[penalised] = v
    found[a] = gain[:, -1] - gain[:, :-1] @ v
    return found


def _soft_minimum(s: Tensor, c: Tensor, lasso: float, ridge: float) -> Tensor:
    """Minimises v' S v / 2 - c' v + lasso |v| + ridge |v|^2 / 2."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import enet_path

    values, vectors = torch.linalg.eigh(s)
    keep = values > 1e-12 * values[-1].clamp(min=1e-300)
    root = values[keep].sqrt()
    if not len(root):
        return torch.zeros_like(c)
    x, y = root.unsqueeze(1) * vectors[:, keep].T, (vectors[:, keep].T @ c) / root
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        _, paths, _ = enet_path(
            np.asfortranarray(x.numpy()),
            y.numpy().copy(),
            l1_ratio=lasso / (lasso + ridge),
            alphas=[(lasso + ridge) / len(root)],
            tol=1e-10,
            max_iter=10_000,
        )
    v = torch.from_numpy(paths[:, 0].copy())
    for _ in range(20):  # exact on what remains, where the signs agree
        on = v != 0
        if not bool(on.any()):
            return v
        matrix = s[on][:, on] + ridge * torch.eye(int(on.sum())).to(s)
        right = c[on] - lasso * v[on].sign()
        exact = torch.linalg.lstsq(matrix, right.unsqueeze(1), driver="gelsd").solution.squeeze(1)
        if bool((exact.sign() == v[on].sign()).all()):
            v[on] = exact
            return v
        weak = v.clone()
        weak[on] = torch.where(exact.sign() == v[on].sign(), exact, 0.0)
        v = weak
    return v
