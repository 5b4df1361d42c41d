"""Reports the attention maps of a network on one text."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.attribution import attention_maps
from ansatz.figures.number_format import percent, printable
from ansatz.figures.section import Figure, Section
from ansatz.figures.style import MODEL, figure, to_svg
from ansatz.report.evidence import Evidence
from ansatz.structures.sequence.report.contribution import are_texts

TOKENS = 24  # of the text that is shown, at most
SHOWN = 6  # attentions: the first and the last ones


def section(evidence: Evidence) -> Section | None:
    """The weights of every attention on a text of middle length, heads averaged."""
    networks = evidence.model.posterior.networks
    if not networks or not are_texts(evidence.X):
        return None
    model: Any = evidence.model
    row = _middle(evidence)
    if row is None:
        return None
    inputs = model.encoder.inputs(evidence.X[[row]], notes=[])
    maps = attention_maps(networks[0].network, *inputs)
    if not maps:
        return None
    words = [printable(word, 12) for word in model.encoder.tokens.split(evidence.X.texts[row])]
    words = words[: inputs.mask.shape[1]]
    each = [found[0].mean(0).double().numpy() for found in maps]  # heads averaged, (T, T)
    chosen = list(range(len(each)))
    if len(chosen) > SHOWN:
        chosen = [*chosen[: SHOWN // 2], *chosen[-SHOWN // 2 :]]
    breadth = np.array([_entropy(found[0, :, :, :].double()) for found in maps])
    lead = (
        f"Attention of {len(maps)} layers on one text of {len(words)} tokens. On average a token "
        f"attends to as many as {breadth[0]:.1f} tokens in the first layer and {breadth[-1]:.1f} "
        "in the last, by the exponential of the entropy."
    )
    own = np.mean([np.trace(found) / len(found) for found in each])
    caption = (
        "Each row is a token that reads, each column one that is read; dark is a weight of "
        f"{max(found.max() for found in each):.2f}, heads averaged. "
        f"{percent(float(own))} of the weight stays on the token itself. The weights say what is "
        "averaged, not what the prediction depends on."
    )
    svg = draw_maps([each[k] for k in chosen], words, [f"layer {k + 1}" for k in chosen])
    return Section("Attention", lead, [Figure(svg, caption, "Attention maps of one text.")])


def _middle(evidence: Evidence) -> int | None:
    """The text of median length among those that are short enough to be read."""
    encoder: Any = evidence.model.encoder
    lengths = encoder.ragged(evidence.X).offsets.diff().numpy()
    rows = np.flatnonzero((lengths > 1) & (lengths <= TOKENS))
    if not len(rows):
        return None
    return int(rows[np.argsort(lengths[rows], kind="stable")[len(rows) // 2]])


def _entropy(weights: torch.Tensor) -> float:
    """The exponential of the mean entropy of the rows, a number of tokens."""
    return float(torch.special.entr(weights).sum(-1).mean().exp())


def draw_maps(maps: list[NDArray[np.float64]], words: list[str], titles: list[str]) -> str:
    """Draws square maps beside each other, three in a line, with the tokens at their sides."""
    from matplotlib.colors import LinearSegmentedColormap

    columns = min(3, len(maps))
    lines = -(-len(maps) // columns)
    top = max(float(found.max()) for found in maps)
    shade = LinearSegmentedColormap.from_list("model", [(*_rgb(MODEL), 0.0), (*_rgb(MODEL), 1.0)])
    with figure(7.2, 0.5 + 2.6 * lines) as paper:
        axes = paper.subplots(lines, columns, squeeze=False)
        for place, panel in enumerate(axes.flat):
            if place >= len(maps):
                panel.set_visible(False)
                continue
            panel.imshow(maps[place], cmap=shade, vmin=0, vmax=top, interpolation="nearest")
            panel.set_title(titles[place])
            ticks = range(len(words))
            panel.set_xticks(ticks, words, rotation=90, fontsize=6)
            panel.set_yticks(ticks, words if place % columns == 0 else [""] * len(words))
            panel.tick_params(axis="both", length=0, labelsize=6)
        return to_svg(paper)


def _rgb(code: str) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    return to_rgb(code)
