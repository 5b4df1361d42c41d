"""Links: the functions that tie a mean to a linear predictor, as maps of raw numbers."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


class Link(NamedTuple):
    """The map between a linear predictor and the first raw number of a likelihood, both ways."""

    to_raw: Callable[[Tensor], Tensor]  # nan where the predictor has no mean
    from_raw: Callable[[Tensor], Tensor]


def _log_expm1(e: Tensor) -> Tensor:
    return e + torch.log(-torch.expm1(-e))


def _probit(eta: Tensor) -> Tensor:
    return torch.special.log_ndtr(eta) - torch.special.log_ndtr(-eta)


def _cauchit(eta: Tensor) -> Tensor:
    tail = torch.atan2(torch.ones_like(eta), eta.abs()) / math.pi  # the smaller probability
    return torch.where(eta < 0, -1.0, 1.0) * (torch.log1p(-tail) - tail.log())


# By the likelihood's own link, whose inverse its raw number goes through, and the link asked for.
LINKS: dict[str, dict[str, Link]] = {
    "log": {
        "identity": Link(torch.log, torch.exp),
        "sqrt": Link(lambda eta: 2 * eta.log(), lambda raw: (raw / 2).exp()),
        "inverse": Link(lambda eta: -eta.log(), lambda raw: (-raw).exp()),
        "inverse_squared": Link(lambda eta: -eta.log() / 2, lambda raw: (-2 * raw).exp()),
    },
    "logit": {
        "probit": Link(_probit, lambda raw: torch.special.ndtri(torch.sigmoid(raw))),
        "cloglog": Link(
            lambda eta: _log_expm1(eta.exp()),
            lambda raw: (-torch.nn.functional.logsigmoid(-raw)).log(),
        ),
        "loglog": Link(
            lambda eta: -_log_expm1((-eta).exp()),
            lambda raw: -(-torch.nn.functional.logsigmoid(raw)).log(),
        ),
        "cauchit": Link(_cauchit, lambda raw: torch.tan(math.pi * (torch.sigmoid(raw) - 0.5))),
        "log": Link(lambda eta: eta - torch.log(-torch.expm1(eta)), torch.nn.functional.logsigmoid),
        "identity": Link(torch.logit, torch.sigmoid),
    },
    "identity": {
        "log": Link(torch.exp, torch.log),
        "inverse": Link(torch.reciprocal, torch.reciprocal),
    },
}
