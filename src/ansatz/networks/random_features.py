"""The random feature model: a network whose hidden layer is frozen."""

import torch
from torch import Tensor, nn

from ansatz.layers.init import affine
from ansatz.layers.random_features import Kind, RandomFeatures
from ansatz.networks.inputs import TableInputs
from ansatz.spec import Inputs


class RandomFeatureNetwork(nn.Module):
    r"""A two-layer network of which only the output layer is trained.

    .. math:: f(x) = a^T \phi(x) + b

    With squared loss it is convex least squares, and with a ridge penalty on a it tends to
    kernel ridge regression as the number of features grows. The features are saved with it.

    Args:
        inputs: the columns, or their number :math:`D`; codes enter by frozen random vectors.
        outputs: :math:`P`.
        features: :math:`M`, number of random features.
        kind: ``"cosine"`` for the RBF kernel, ``"relu"`` for the arc-cosine kernel.
        bandwidth: length over which the function varies; :math:`\sqrt D` when not given.
        category_dim: length of a level's vector; by a rule of thumb when not given.
        generator: where features are drawn from; torch's global one when not given.

    Shapes:
        - x: ``(B, D)``.
        - codes: ``(B, C)``, only for inputs with cardinalities.
        - returns: ``(B, P)``.

    Example:
        >>> from ansatz.networks import RandomFeatureNetwork
        >>> model = RandomFeatureNetwork(3, 1, features=100)
        >>> sum(p.numel() for p in model.parameters() if p.requires_grad)
        101

    References:
        Rahimi & Recht (2008), Weighted sums of random kitchen sinks.
    """

    def __init__(
        self,
        inputs: Inputs,
        outputs: int,
        *,
        features: int = 1024,
        kind: Kind = "cosine",
        bandwidth: float | None = None,
        category_dim: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.outputs = outputs
        self.inputs = TableInputs(
            "random_features", inputs, category_dim=category_dim, generator=generator
        ).requires_grad_(False)
        self.features = RandomFeatures(
            self.inputs.out_features, features, kind=kind, bandwidth=bandwidth, generator=generator
        )
        self.widths = (self.features.out_features,)
        self.output = affine(features, outputs, init="zeros", generator=generator)

    def forward(self, x: Tensor, codes: Tensor | None = None) -> Tensor:
        return self.output(self.features(self.inputs(x, codes)))
