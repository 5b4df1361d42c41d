"""Where Student's t is the normal law: degrees of freedom that no data can tell from infinity."""

import copy
from typing import cast

import torch
from torch import Tensor

from ansatz.likelihoods.dispersion import PositiveHead
from ansatz.likelihoods.likelihood import Likelihood
from ansatz.linear.naming import inner

NORMAL_TAILS = 1000.0


def learned_freedom(likelihood: Likelihood) -> int | None:
    """Which of the likelihood's parameters is a learned nu, by its place; None without one.

    Example:
        >>> from ansatz.likelihoods import Normal, StudentT
        >>> learned_freedom(StudentT(dispersion="constant")), learned_freedom(Normal())
        (1, None)
    """
    if inner(likelihood).name != "student_t":
        return None
    names = [name for name, _ in likelihood.named_parameters()]
    return next((j for j, name in enumerate(names) if name.endswith("freedom.constant")), None)


def freedom(likelihood: Likelihood) -> float:
    """nu.

    Example:
        >>> from ansatz.likelihoods import StudentT
        >>> freedom(StudentT(nu=4.0))
        4.0
    """
    head = cast(PositiveHead, inner(likelihood).get_submodule("freedom"))
    return float(head.value(torch.float64).detach())


def raw_of_freedom(likelihood: Likelihood, nu: float) -> Tensor:
    """The parameter ``()`` whose nu is this.

    Example:
        >>> from ansatz.likelihoods import StudentT
        >>> raw_of_freedom(StudentT(), 10.0).shape
        torch.Size([])
    """
    head = cast(PositiveHead, inner(copy.deepcopy(likelihood)).get_submodule("freedom"))
    return head.start(torch.tensor(nu, dtype=torch.float64)).detach()
