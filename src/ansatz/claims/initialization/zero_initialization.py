"""Hidden units that start equal stay equal for ever."""

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure
from ansatz.claims.finding import EPS
from ansatz.networks import MLP
from ansatz.optim import create


def measure(
    generator: torch.Generator, *, rows: int = 40, width: int = 6, steps: int = 150
) -> Finding:
    """Trains the same network from zeros, from equal weights and from He's."""
    x = torch.randn(rows, 2, dtype=torch.float64, generator=generator)
    y = torch.sin(2 * x[:, :1]) + x[:, 1:]
    differences, losses, networks = {}, {}, {}
    for init in ("zeros", "constant", "he_normal"):
        network = MLP(2, 1, widths=(width,), activation="tanh", init=init, generator=generator)
        networks[init] = network.double()
        differences[init], losses[init] = train(network, x, y, steps)
    with torch.no_grad():
        constant = networks["zeros"](x)
    least = float(0.5 * ((y - y.mean()) ** 2).mean())
    moved = float((first_weight(networks["constant"]) - 1).abs().max())
    rounding = 4 * steps * EPS
    checks = [
        Check(
            "largest difference between hidden units trained from equal weights",
            float(differences["constant"].max()),
            0.0,
            rounding,
            "equal sums; rounding of each step if a kernel orders them differently",
            wrong=Wrong("random weights", measured=float(differences["he_normal"].max())),
        ),
        Check(
            "the same from zeros",
            float(differences["zeros"].max()),
            0.0,
            0.0,
            "exact: no gradient reaches the hidden layer, nor the last weights",
            wrong=Wrong("random weights", measured=float(differences["he_normal"].max())),
        ),
        Check(
            "range of the predictions of a network trained from zeros",
            float(constant.max() - constant.min()),
            0.0,
            0.0,
            "exact: only the last bias has a gradient",
            wrong=Wrong(
                "the network learned",
                measured=float(networks["he_normal"](x).detach().std()),
            ),
        ),
        Check(
            "loss from zeros, over the least of any constant",
            float(losses["zeros"][-1]) / least,
            1.0,
            64 * EPS,
            "a bias at rate 0.5 halves its error at every step: rounding is left",
            wrong=Wrong("as from random weights", measured=float(losses["he_normal"][-1]) / least),
        ),
        Check(
            "how far equal units moved together: they did train",
            moved,
            0.0,
            -10 * rounding,
            "more than rounding",
            relation=">=",
        ),
    ]
    rows_ = [[k, float(differences[k][-1]), float(losses[k][-1])] for k in differences]
    table = Table(["initialisation", "difference of units", "loss"], rows_)
    return Finding(checks, table, {"differences": differences, "losses": losses, "least": least})


def train(network: MLP, x: Tensor, y: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """Descent; the largest difference between hidden units, and the loss, before each step."""
    optimizer = create("sgd", network.parameters(), lr=0.5)
    differences, losses = [], []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = 0.5 * ((network(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        weight = first_weight(network)
        differences.append((weight - weight[:1]).abs().max())
        losses.append(loss.detach())
    return torch.stack(differences), torch.stack(losses)


def first_weight(network: MLP) -> Tensor:
    """(K, D): a row per hidden unit."""
    return network.get_parameter("hidden.0.weight").detach()


def draw(paper: Figure, finding: Finding) -> None:
    """The loss and the difference between units while training."""
    from ansatz.figures.style import INK, LINEAR, MODEL, THIRD

    left, right = paper.subplots(1, 2)
    rows = (("zeros", LINEAR, "zeros"), ("constant", THIRD, "equal"), ("he_normal", MODEL, "He"))
    for name, colour, label in rows:
        wide = 3.5 if name == "zeros" else 1.3  # two lines at 0, one over the other
        left.plot(finding.data["differences"][name], color=colour, lw=wide, label=label)
        right.plot(finding.data["losses"][name], color=colour, label=label)
    right.axhline(finding.data["least"], color=INK, ls="--", lw=0.8)
    right.annotate(
        "best constant",
        (0.98, finding.data["least"]),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="right",
    )
    left.set(xlabel="step", ylabel="difference between hidden units")
    left.set_title("units that start equal stay equal ...")
    right.set(xlabel="step", ylabel="training loss")
    right.set_title("... and learn as one, or not at all")
    left.legend(loc="center right")


claim = Claim(
    id="zero-initialization",
    title="Hidden units that start equal stay equal",
    statement=(
        "Hidden units with equal weights get equal gradients, so that they are still equal after "
        "any training: the layer acts as a single unit. From zeros not even that: only the last "
        "bias has a gradient, and the network learns the mean of the outcomes."
    ),
    formula=(
        r"w_j = w_k,\; v_j = v_k \;\Rightarrow\; \nabla_{w_j} h = \nabla_{w_k} h, \qquad "
        r"W = 0,\; v = 0 \;\Rightarrow\; \nabla_W h = 0,\; \nabla_v h = 0 \;\; (\tanh)"
    ),
    sources=("M140",),
    measure=measure,
    reference="Goodfellow, Bengio and Courville (2016), Deep Learning, section 8.4.",
    full={"rows": 400, "steps": 2000},
    draw=draw,
)
