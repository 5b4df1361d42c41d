"""What the Neocognitron of 1980 added to the network of 1969: layers that tolerate shifts."""

import copy
from math import exp

import torch
from torch import Tensor

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.networks import Neocognitron
from ansatz.networks.neocognitron import CCells

RECORDS = {
    "rectified analog threshold elements": (
        1969,
        "Fukushima, Visual feature extraction by a multilayered network of analog threshold "
        "elements, IEEE Trans. Systems Science and Cybernetics 5(4), 322-333",
    ),
    "Cognitron": (1975, "Fukushima, Biological Cybernetics 20, 121-136"),
    "Neocognitron": (
        1980,
        "Fukushima, Neocognitron, Biological Cybernetics 36, 193-202; "
        "https://doi.org/10.1007/BF00344251 (in Japanese in 1979)",
    ),
    "DenseNet": (
        2016,
        "Huang, Liu, van der Maaten and Weinberger, Densely connected convolutional networks; "
        "https://arxiv.org/abs/1608.06993 (CVPR 2017)",
    ),
}


def measure(generator: torch.Generator) -> Finding:
    """The network itself: its answers to a shifted and to a brighter image, its fixed filters."""
    network = Neocognitron(1, 10, generator=generator).double()
    trained = sum(weight.numel() for weight in network.parameters())
    image = torch.rand(1, 1, 20, 20, generator=generator, dtype=torch.float64)
    seen, bright = network.features(image), network.features(3 * image)
    layered = Neocognitron(1, 10, stages=1, generator=generator).double()
    noise = torch.rand(1, 1, 40, 40, generator=generator, dtype=torch.float64)
    number = RECORDS["DenseNet"][1].split("arxiv.org/abs/")[1][:4]  # yymm
    checks = [
        Check(
            "cosine of the answers to noise and to noise shifted by a pixel, one stage",
            shifted_cosine(layered, noise),
            exp(-1 / 4),
            0.0,
            "at least the overlap of two Gaussians of sd 1 that are a pixel apart",
            ">=",
            wrong=Wrong(
                "threshold elements alone, as in 1969",
                measured=shifted_cosine(without_blur(layered), noise),
                erratum="E65",
            ),
        ),
        Check(
            "year of DenseNet, from its arXiv number",
            2000 + int(number[:2]),
            RECORDS["DenseNet"][0],
            0,
            "arXiv numbers begin with year and month",
        ),
        Check(
            "trained weights of a Neocognitron besides its last map",
            trained - sum(weight.numel() for weight in network.output.parameters()),
            0,
            0,
            "whole numbers: S- and C-cells are fixed",
            wrong=Wrong(
                "its filters counted too", measured=sum(map(torch.numel, network.buffers()))
            ),
        ),
        Check(
            "largest change of its features, over brightness, for an image three times as bright",
            float((bright / 3 - seen).abs().max()),
            0.0,
            1e-5,
            "inhibition is proportional; its root has a floor of 1e-6 in each of three stages",
            wrong=Wrong("not over brightness", measured=float((bright - seen).abs().max())),
        ),
    ]
    table = Table(["what", "year", "where"], [[name, *row] for name, row in RECORDS.items()])
    return Finding(checks, table)


def shifted_cosine(network: Neocognitron, image: Tensor) -> float:
    """The cosine of the features of two crops of an image that lie a pixel apart, no borders."""
    here, there = (network.features(image[..., k : k + 32])[..., 2:-2, 2:-2] for k in (0, 1))
    return float(torch.cosine_similarity(here.flatten(), there.flatten(), dim=0))


def without_blur(network: Neocognitron) -> Neocognitron:
    """Makes the C layers pass on the middle of what they see."""
    plain = copy.deepcopy(network)
    for cells in plain.modules():
        if isinstance(cells, CCells):
            middle = torch.zeros_like(cells.blur)
            middle[..., cells.blur.shape[-2] // 2, cells.blur.shape[-1] // 2] = 1
            cells.blur = middle
    return plain


claim = Claim(
    id="neocognitron",
    title="The Neocognitron is of 1980",
    statement=(
        "Fukushima's Neocognitron appeared in 1980 (in Japanese in 1979); his paper of 1969, a "
        "date that is often printed, has fixed filters and another name. DenseNet is the paper of "
        "Huang, Liu, van der Maaten and Weinberger (2017). Dates are facts of record; what can be "
        "measured is what 1980 added: C layers, which answer nearly alike when a feature moves by "
        "a pixel. S and C layers are fixed; their outputs scale with brightness."
    ),
    formula=r"\cos\bigl(C(S(x)), C(S(x_{+1}))\bigr) \ge e^{-1 / (4 \sigma^2)}",
    sources=("E65", "M206"),
    measure=measure,
    reference="Fukushima (1980), Neocognitron. https://doi.org/10.1007/BF00344251",
    errata=(Erratum("E65", "Neocognitron (1969)", "Neocognitron (1980)"),),
)
