"""A network asked once before it is trained: what it cannot take is said in a line."""

import torch
from torch import Tensor, nn

from ansatz.data.batch import take_rows
from ansatz.errors import AnsatzError, DataError, UsageError


def answer_of(network: nn.Module, inputs: tuple[Tensor, ...]) -> Tensor:
    """What a network answers to a few examples, without learning from them."""
    was_training = network.training
    try:
        with torch.no_grad():
            answer: Tensor = network.eval()(*inputs)
    except (AnsatzError, torch.OutOfMemoryError):
        raise
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        reason = str(error).strip().split("\n")[0].rstrip(".")
        shapes = " and ".join(f"(B, {', '.join(map(str, x.shape[1:]))})" for x in inputs)
        raise UsageError(
            f"the network {type(network).__name__} was given x of shape {shapes} and cannot take "
            f"it: {reason}."
        ) from error
    finally:
        network.train(was_training)
    return answer


def require_outputs(network: nn.Module, inputs: tuple[Tensor, ...], outputs: int) -> None:
    """Refuses a network of another number of outputs than the likelihood has parameters.

    Args:
        network: asked about the first two rows.
        inputs: of all rows.
        outputs: parameters of the likelihood.
    """
    got = answer_of(network, take_rows(inputs, slice(2)))
    if got.shape[-1] != outputs:
        raise DataError(
            f"the network gives {got.shape[-1]} numbers per row, the likelihood needs {outputs}. "
            "Build it with that many outputs."
        )
