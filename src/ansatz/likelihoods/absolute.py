"""The absolute value, for losses that are differentiated twice."""

from torch import Tensor


def absolute(x: Tensor) -> Tensor:
    r"""The absolute value :math:`|x|` with slope sign x, 0 at 0, and second derivative 0.

    It is ``x.abs()``, bit for bit. Torch gives that one a second derivative that is a symbolic zero,
    and the sum of two of these imports ``torch._dynamo``: over a second, once per process.

    Example:
        >>> import torch
        >>> absolute(torch.tensor([-2.0, 0.0, 3.0]))
        tensor([2., 0., 3.])
    """
    return x * x.detach().sign()
