"""SciPy's special functions on tensors of any device and precision."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def elementwise(function: Callable[..., Any], *tensors: Tensor) -> Tensor:
    """A NumPy function of doubles, computed in double precision and given back as the tensors were.

    There is no gradient: callers that need one supply it, and detach first.

    Example:
        >>> import torch
        >>> from scipy.special import gammaincinv
        >>> elementwise(gammaincinv, torch.tensor([1.0]), torch.tensor([0.5]))  # log 2
        tensor([0.6931])
    """
    tensors = torch.broadcast_tensors(*tensors)
    first = tensors[0]
    if first.is_meta:
        return torch.empty_like(first)
    values = function(*(t.detach().cpu().double().numpy() for t in tensors))
    return torch.as_tensor(values).to(dtype=first.dtype, device=first.device)
