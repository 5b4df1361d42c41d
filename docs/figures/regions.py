"""Draws images/regions.png: the regions of a network that has learned rings.

Run it from anywhere: ``python docs/figures/regions.py``.
"""

from pathlib import Path

import torch
from torch import nn

from ansatz.figures.style import figure
from ansatz.networks import draw_regions

IMAGE = Path(__file__).parents[1] / "images" / "regions.png"


def main() -> None:
    """Trains a 2-16-16-1 network and draws it by value and by slope."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    network = nn.Sequential(
        nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1)
    )
    x = 4 * torch.rand(2000, 2) - 2
    rings = torch.sin(3 * x.norm(dim=1, keepdim=True))
    rule = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(1500):
        rule.zero_grad()
        nn.functional.mse_loss(network(x), rings).backward()
        rule.step()
    with figure(8, 3.6) as paper:
        left, right = paper.subplots(1, 2)
        draw_regions(network, (-2, 2), left)
        draw_regions(network, (-2, 2), right, shade="slope")
        for axes in (left, right):
            axes.set(aspect="equal", xlabel="first input", ylabel="second input")
            axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
        paper.savefig(IMAGE, dpi=130, transparent=True, metadata={"Software": None})


if __name__ == "__main__":
    main()
