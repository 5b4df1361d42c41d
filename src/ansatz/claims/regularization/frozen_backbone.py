"""A frozen backbone stays as it is, weights and running statistics alike."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.convolution._images import answers, descend, images
from ansatz.layers import affine
from ansatz.networks import SmallResNet, discriminative_groups, freeze, layer_groups
from ansatz.spec import InputSpec

WIDTH, RATE = 4, 0.05


def measure(generator: torch.Generator, *, rows: int = 200, steps: int = 20) -> Finding:
    """A new last map learns digits on layers that are frozen, half frozen and free."""
    found = images("digits", rows, 0, generator)
    networks = [
        SmallResNet(InputSpec.grid(1, 8, 8), 10, depth=8, width=WIDTH, generator=generator)
        for _ in range(3)
    ]
    frozen, half, free = networks
    freeze(frozen, "backbone")
    for weight in half.parameters():  # the weights alone
        weight.requires_grad_(False)
    changes, fall = [], 0.0
    for network in networks:
        network.fc = affine(4 * WIDTH, 10, generator=generator)
        before, loss = state(network), cross_entropy(answers(network, found.x), found.y)
        descend(network, found.x, found.y, generator, steps=steps, rate=RATE)
        after = state(network)
        changes.append(
            max(float((after[name] - value).abs().max()) for name, value in before.items())
        )
        if network is frozen:
            fall = float(loss - cross_entropy(answers(network, found.x), found.y))
    trained = sum(weight.numel() for weight in frozen.parameters() if weight.requires_grad)
    rates = [group["lr"] for group in discriminative_groups(free, RATE, factor=2.0)]
    groups = len(layer_groups(free))
    checks = [
        Check(
            "largest change of a frozen number: weights and running statistics",
            changes[0],
            0.0,
            0.0,
            "nothing frozen changes by a bit",
            wrong=Wrong("weights frozen, norms in training mode", measured=changes[1]),
        ),
        Check(
            "weights that are trained",
            trained,
            4 * WIDTH * 10 + 10,
            0,
            "whole numbers: the new head",
            wrong=Wrong("all", measured=sum(weight.numel() for weight in free.parameters())),
        ),
        Check(
            "how far the loss falls while only the head learns",
            fall,
            0.0,
            0.0,
            "above 0: the head learns",
            ">=",
        ),
        Check(
            "rate of the first group over that of the last, halved from group to group",
            rates[0] / rates[-1],
            2.0 ** (1 - groups),
            0.0,
            "powers of two are exact",
            wrong=Wrong("one rate for all", predicted=1.0),
        ),
    ]
    names = ["frozen", "weights frozen, norms in training mode", "nothing frozen"]
    table = Table(["backbone", "largest change"], list(zip(names, changes, strict=True)))
    return Finding(checks, table)


def state(network: nn.Module) -> dict[str, Tensor]:
    """Weights and running statistics of everything but the head."""
    found = network.state_dict().items()
    counts = "fc.", "num_batches_tracked"  # of calls: no number of the backbone's function
    kept = [(name, value) for name, value in found if not any(word in name for word in counts)]
    return {name: value.clone() for name, value in kept}


claim = Claim(
    id="frozen-backbone",
    title="A frozen backbone stays as it is",
    statement=(
        "Fine-tuning the last map of a network leaves the layers before it unchanged to the last "
        "bit only if their normalisations freeze their running statistics too: taking the weights "
        "out of training is not enough. Discriminative rates are a compromise: each group of "
        "layers learns at a fraction of the rate of the next."
    ),
    formula=(
        r"f = A_{\text{new}} \circ h_\theta, \quad \theta_{\text{after}} = \theta_{\text{before}}, "
        r"\qquad \eta_g = \eta / \lambda^{G - g}"
    ),
    sources=("M174",),
    measure=measure,
    reference=(
        "Howard and Ruder (2018), Universal language model fine-tuning for text classification, "
        "section 3.2. https://arxiv.org/abs/1801.06146"
    ),
    full={"rows": 1_000, "steps": 100},
)
