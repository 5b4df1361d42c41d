"""The gates of the attention U-Net: open, it is the U-Net; shut, its skips are gone."""

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.finding import EPS
from ansatz.networks import AttentionGate, AttentionUNet, UNet

FAR = 60.0  # a sigmoid of it differs from 1 by e^-60, below all rounding


def measure(generator: torch.Generator, *, size: int = 16) -> Finding:
    """A gate beside its formula, and a network whose gates are opened and shut."""
    gate = AttentionGate(2, 3, 5, generator=generator).double()
    x = torch.randn(1, 3, size, size, generator=generator, dtype=torch.float64)
    g = torch.randn(1, 5, size // 2, size // 2, generator=generator, dtype=torch.float64)
    image = torch.randn(1, 1, size, size, generator=generator, dtype=torch.float64)
    gated = AttentionUNet(1, 2, depth=2, width=4, generator=generator).double().eval()
    plain = UNet(1, 2, depth=2, width=4, generator=generator).double().eval()
    plain.load_state_dict(
        {k: v for k, v in gated.state_dict().items() if not k.startswith("gates")}
    )
    with torch.no_grad():
        alpha, by_hand = gate.alpha(x, g), written_out(gate, x, g)
        coarse = interpolate(by_hand, size=x.shape[2:], mode="bilinear")
        usual, half = plain(image), gated(image)
        opened, shut = (set_gates(gated, value)(image) for value in (FAR, -FAR))
        without = no_skips(plain)(image)
    scale = max(float(usual.abs().max()), 1.0)
    checks = [
        Check(
            "largest difference of alpha from its formula, place by place",
            gap(alpha, coarse),
            0.0,
            64 * EPS,
            "rounding: alpha is below 1",
            wrong=Wrong("without the coarse features", measured=gap(alpha, alone(gate, x))),
        ),
        Check(
            "largest difference of the network with open gates from the U-Net of the same weights",
            gap(opened, usual),
            0.0,
            1024 * EPS * scale,
            "rounding: 1024 eps times the largest output; e^-60 is less",
            wrong=Wrong("gates as they start", measured=gap(half, usual)),
        ),
        Check(
            "largest difference of the network with shut gates from a U-Net without skips",
            gap(shut, without),
            0.0,
            1024 * EPS * scale,
            "rounding: 1024 eps times the largest output; e^-60 is less",
            wrong=Wrong("the U-Net with skips", measured=gap(shut, usual)),
        ),
        Check("largest alpha", float(alpha.max()), 1.0, 0.0, "a sigmoid, interpolated", "<="),
    ]
    cases = ("open", opened), ("as they start", half), ("shut", shut)
    rows = [[name, gap(answer, usual)] for name, answer in cases]
    table = Table(["gates", "largest difference from the U-Net"], rows)
    return Finding(checks, table)


def written_out(gate: AttentionGate, x: Tensor, g: Tensor) -> Tensor:
    """The formula at each coarse place, from the 2 x 2 pixels of x and one of g."""
    cells = x.unfold(2, 2, 2).unfold(3, 2, 2)  # (1, C, h, w, 2, 2)
    inner = torch.einsum("bchwij,kcij->bkhw", cells, gate.fine.get_parameter("weight"))
    inner = inner + torch.einsum("bchw,kc->bkhw", g, gate.coarse.get_parameter("weight")[..., 0, 0])
    inner = torch.relu(inner + gate.coarse.get_parameter("bias")[:, None, None])
    score = torch.einsum("bkhw,k->bhw", inner, gate.score.get_parameter("weight")[0, :, 0, 0])
    return torch.sigmoid(score + gate.score.get_parameter("bias")).unsqueeze(1)


def alone(gate: AttentionGate, x: Tensor) -> Tensor:
    """Alpha without the coarse features."""
    nothing = x.new_zeros(
        1, gate.coarse.get_parameter("weight").shape[1], *(n // 2 for n in x.shape[2:])
    )
    return gate.alpha(x, nothing)


def set_gates(network: AttentionUNet, value: float) -> AttentionUNet:
    """Sets all scores to one value, whatever the input."""
    for gate in network.gates:
        score = gate.get_submodule("score")
        nn.init.zeros_(score.get_parameter("weight"))
        nn.init.constant_(score.get_parameter("bias"), value)
    return network


def no_skips(network: UNet) -> UNet:
    """The same network with zeros in place of its skips."""
    network.skip = lambda level, fine, coarse: torch.zeros_like(fine)  # type: ignore[method-assign]
    return network


def gap(a: Tensor, b: Tensor) -> float:
    """The largest difference."""
    return float((a - b).detach().abs().max())


claim = Claim(
    id="attention-gate",
    title="Gates on the skips of a U-Net",
    statement=(
        "An attention gate multiplies the features of a skip by a number in (0, 1) per place, "
        "computed from the fine and the coarse features. With all gates open the attention U-Net "
        "is the U-Net of the same weights; with all shut it is a U-Net without skips."
    ),
    formula=(
        r"\alpha = \sigma(\psi^\top \mathrm{ReLU}(W_x x + W_g g + b) + c), \qquad "
        r"\alpha \to 1: \text{U-Net}, \quad \alpha \to 0: \text{no skips}"
    ),
    sources=("M237",),
    measure=measure,
    reference="Oktay et al. (2018), Attention U-Net, eq. 1. https://arxiv.org/abs/1804.03999",
    full={"size": 128},
)
