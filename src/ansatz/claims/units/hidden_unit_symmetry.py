"""Renaming the hidden units changes the weights and not the function."""

from itertools import permutations
from typing import cast

import torch
from torch import Tensor, nn

from ansatz.claims import Check, Claim, Finding, Wrong
from ansatz.claims.finding import EPS
from ansatz.networks import MLP


def measure(generator: torch.Generator, *, units: int = 4, rows: int = 30) -> Finding:
    """Every order of the units of both hidden layers of a network."""
    network = MLP(3, 2, widths=(units, units), activation="silu", generator=generator).double()
    x = torch.randn(rows, 3, generator=generator, dtype=torch.float64)
    W = [cast(nn.Linear, layer) for layer in (*network.hidden, network.output)]
    weights, biases = [layer.weight.detach() for layer in W], [layer.bias.detach() for layer in W]
    truth = network(x).detach()
    orders = [torch.eye(units, dtype=torch.float64)[list(p)] for p in permutations(range(units))]
    both = [run(weights, biases, [P, Q], x) for P in orders for Q in orders[:: len(orders) // 6]]
    only_rows = run(weights, biases, [orders[-1], orders[0]], x, columns=False)
    # Rows and columns that sum to one, but not of zeros and ones: half way between two orders.
    blend = 0.75 * orders[0] + 0.25 * orders[-1]
    mixed = run(weights, biases, [blend, orders[0]], x)
    scale = units**2 * EPS * float(weights[-1].abs().sum() + truth.abs().max())
    layer = nn.functional.silu
    z = torch.randn(rows, units, generator=generator, dtype=torch.float64)
    equivariance = max(float((layer(z @ P.T) - layer(z) @ P.T).abs().max()) for P in orders)
    copies = {tuple((P @ weights[0]).flatten().tolist()) for P in orders}
    checks = [
        Check(
            f"largest change of the output over {len(both)} orders of the hidden units",
            max(float((y - truth).abs().max()) for y in both),
            0.0,
            scale,
            "rounding: sums over the units in another order",
            wrong=Wrong(
                "rows permuted, the next layer's columns not",
                measured=float((only_rows - truth).abs().max()),
            ),
        ),
        Check(
            "largest |φ(Pz) - Pφ(z)| over all P with one 1 in each row and column",
            equivariance,
            0.0,
            0.0,
            "exact: numbers change place",
            wrong=Wrong(
                "rows and columns sum to 1, entries not 0 or 1",
                measured=float((layer(z @ blend.T) - layer(z) @ blend.T).abs().max()),
            ),
        ),
        Check(
            "change of the output when one layer is reversed, the other swapped",
            float((run(weights, biases, [orders[-1], orders[1]], x) - truth).abs().max()),
            0.0,
            scale,
            "rounding, as above",
            wrong=Wrong("a blend of two orders", measured=float((mixed - truth).abs().max())),
        ),
        Check(
            f"different weight matrices of the same function, {units} units",
            len(copies),
            len(orders),
            0,
            "whole numbers: m!",
            wrong=Wrong("2^m", predicted=2**units),
        ),
    ]
    return Finding(checks)


def run(
    weights: list[Tensor],
    biases: list[Tensor],
    orders: list[Tensor],
    x: Tensor,
    *,
    columns: bool = True,
) -> Tensor:
    """The network with rows of W_l and columns of W_(l+1) in another order."""
    h, before = x, torch.eye(x.shape[1], dtype=x.dtype)
    for W, b, P in zip(weights, biases, [*orders, None], strict=True):
        inner = W @ torch.linalg.inv(before) if columns else W
        if P is None:
            return h @ inner.T + b
        h, before = nn.functional.silu(h @ (P @ inner).T + P @ b), P
    raise AssertionError("the last layer has no order")


claim = Claim(
    id="hidden-unit-symmetry",
    title="Hidden units may be permuted",
    statement=(
        "Permuting the rows of a layer's weights and biases, and the columns of the next layer's "
        "weights with them, does not change the function, so every network of m hidden units has "
        "m! equivalents. It needs a permutation, whose entries are zero or one: a matrix whose "
        "rows and columns merely sum to one is not enough."
    ),
    formula=(
        r"F[W, b] = P^{-1} F[PW, Pb], \qquad p_{ij} \in \{0, 1\}, \quad "
        r"\sum_i p_{ij} = \sum_j p_{ij} = 1"
    ),
    sources=("M041",),
    measure=measure,
    reference=(
        "Hecht-Nielsen (1990), On the algebraic structure of feedforward network weight spaces."
    ),
    full={"units": 6},
)
