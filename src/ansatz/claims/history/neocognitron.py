"""The publications of the Neocognitron and of DenseNet."""

import torch

from ansatz.claims import Check, Claim, Erratum, Finding, Table, Wrong
from ansatz.networks import Neocognitron

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
    """Years of record; the network of 1980 itself, with its fixed filters."""
    network = Neocognitron(1, 10, generator=generator).double()
    trained = sum(weight.numel() for weight in network.parameters())
    image = torch.rand(1, 1, 20, 20, generator=generator, dtype=torch.float64)
    seen, bright = network.features(image), network.features(3 * image)
    number = RECORDS["DenseNet"][1].split("arxiv.org/abs/")[1][:4]  # yymm
    checks = [
        Check(
            "year of the Neocognitron",
            RECORDS["Neocognitron"][0],
            1980,
            0,
            "a fact of record: the volume's year",
            wrong=Wrong("the year of an earlier network", predicted=1969, erratum="E65"),
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


claim = Claim(
    id="neocognitron",
    title="The Neocognitron is of 1980",
    statement=(
        "Fukushima's Neocognitron appeared in 1980 (in Japanese in 1979); his paper of 1969, a "
        "date that is often printed, has fixed filters and another name. DenseNet is the paper of "
        "Huang, Liu, van der Maaten and Weinberger (2017). These dates are facts of record. The "
        "network's S- and C-cells are fixed; their outputs scale with brightness."
    ),
    formula=r"\text{Neocognitron} = 1980",
    sources=("E65", "M206"),
    measure=measure,
    reference="Fukushima (1980), Neocognitron. https://doi.org/10.1007/BF00344251",
    errata=(Erratum("E65", "Neocognitron (1969)", "Neocognitron (1980)"),),
)
