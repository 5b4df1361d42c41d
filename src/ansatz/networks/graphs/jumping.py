"""Jumping knowledge: an answer from the features of all layers."""

from typing import Literal

import torch
from torch import Tensor, nn

from ansatz.layers.init import affine
from ansatz.layers.schemes import draw_uniform

Jump = Literal["last", "cat", "max", "lstm"]
JUMPS = ("last", "cat", "max", "lstm")


class JumpingKnowledge(nn.Module):
    r"""Joins the features that a node has after each layer.

    ``cat`` puts them side by side, ``max`` takes the largest of each feature, ``lstm`` their sum
    with weights of an attention that a bidirectional LSTM over the layers computes. Nodes may so
    use neighbourhoods of different sizes.

    Args:
        kind: one of the three.
        features: of a node after each layer.
        depth: number of layers.
        generator: where weights are drawn from; torch's global one when not given.

    Example:
        >>> import torch
        >>> from ansatz.networks.graphs.jumping import JumpingKnowledge
        >>> JumpingKnowledge("cat", 4, 2)([torch.ones(3, 4), torch.ones(3, 4)]).shape
        torch.Size([3, 8])

    References:
        Xu et al. (2018), Representation learning on graphs with jumping knowledge networks.
        https://arxiv.org/abs/1806.03536
    """

    def __init__(
        self,
        kind: Jump,
        features: int,
        depth: int,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.kind = kind
        if kind == "lstm":
            units = depth * features // 2
            with torch.random.fork_rng(devices=[]):  # its own draws are replaced
                self.lstm = nn.LSTM(features, units, bidirectional=True, batch_first=True)
            for weight in self.lstm.parameters():
                draw_uniform(weight, (3 * units) ** -0.5, generator)
            self.att = affine(2 * units, 1, init="lecun_uniform", generator=generator)

    def forward(self, layers: list[Tensor]) -> Tensor:
        if self.kind == "cat":
            return torch.cat(layers, 1)
        x = torch.stack(layers, 1)  # (N, L, D)
        if self.kind == "max":
            return x.amax(1)
        weight = self.att(self.lstm(x)[0]).softmax(1)  # (N, L, 1)
        return (x * weight).sum(1)
