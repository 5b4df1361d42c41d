"""The weights with which the attentions of a network average."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

from ansatz.layers.mode import evaluation_mode


def attention_maps(network: Callable[..., Any], *inputs: Tensor) -> list[Tensor]:
    r"""Collects the attention weights of a network while it answers.

    .. math:: a_{it} = \mathrm{softmax}_t\bigl(q_i \cdot k_t / \sqrt{d}\bigr)

    They are those of every ``scaled_dot_product_attention`` in the order of the calls, the
    attentions of the library among them. They say what is averaged, not what an answer depends on.

    Args:
        network: any callable; a module is in evaluation mode meanwhile.
        inputs: what it takes.

    Shapes:
        - returns: ``(B, heads, T, S)`` for each attention; rows sum to 1.

    Example:
        >>> import torch
        >>> from ansatz.attribution import attention_maps
        >>> from ansatz.networks import Transformer
        >>> from ansatz.spec import InputSpec
        >>> network = Transformer(InputSpec.sequence(features=3), 2, width=8, depth=2)
        >>> [tuple(each.shape) for each in attention_maps(network, torch.randn(1, 5, 3))]
        [(1, 4, 5, 5), (1, 4, 5, 5)]

    References:
        Jain and Wallace (2019), Attention is not explanation. https://arxiv.org/abs/1902.10186
    """
    with torch.no_grad(), evaluation_mode(network), _Recorder() as recorder:
        network(*inputs)
    return recorder.found


class _Recorder(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Tensor] = []

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func is scaled_dot_product_attention:
            self.found.append(_weights(*args, **kwargs))
        return func(*args, **kwargs)


def _weights(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    **_: Any,
) -> Tensor:
    """The weights of one attention: the average of the identity in place of the values."""
    unit = torch.eye(k.shape[-2], dtype=v.dtype, device=v.device)
    unit = unit.expand(*k.shape[:-2], *unit.shape)
    with torch._C.DisableTorchFunction():
        return scaled_dot_product_attention(
            q, k, unit, attn_mask=attn_mask, is_causal=is_causal, scale=scale
        )
