"""ansatz demo: a model at work, as pictures in the terminal."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ansatz.cli.output import print_document, print_line, print_note, print_table, require_free
from ansatz.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor

app = typer.Typer(help="Models at work, as pictures.", invoke_without_command=True)

_DEMOS = {"hopfield": "a memory of digits that recalls them from noise"}
_RULES = ("hebb", "pseudo_inverse", "storkey")
_FORMATS = (".png", ".svg", ".pdf")
_SIDE = 8  # pixels
_PER_LINE = 7  # pictures side by side in 80 columns
_BLOCKS = " ▄▀█"  # neither, the lower, the upper, both of two pixels
_ASCII = " .':"


class HopfieldDemo(NamedTuple):
    """The states of the Hopfield demonstration, one row for each digit."""

    digits: list[int]
    stored: "Tensor"
    noisy: "Tensor"
    recalled: "Tensor"
    steps: "Tensor"
    energies: "tuple[Tensor, Tensor]"


@app.callback()
def demo(context: typer.Context) -> None:
    """Models at work, as pictures. Without a name: the list.

    Example:
        ansatz demo
        ansatz demo hopfield
    """
    if context.invoked_subcommand is None:
        print_table(["demo", "what it shows"], _DEMOS.items())


@app.command("hopfield")
def hopfield(
    patterns: Annotated[int, typer.Option(min=1, max=64, help="Digits to store.")] = 6,
    noise: Annotated[float, typer.Option(min=0, max=1, help="Share of pixels to flip.")] = 0.15,
    rule: Annotated[str, typer.Option(help="hebb, pseudo_inverse or storkey.")] = "pseudo_inverse",
    seed: Annotated[int, typer.Option(min=0, help="Of the digits and the noise.")] = 0,
    figure: Annotated[
        Path | None, typer.Option(help="Draw it: .png, .svg or .pdf.", metavar="FILE")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the figure.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Store handwritten digits in a Hopfield network, and recall them from noise.

    Digits are alike, which confuses Hebb's rule; the pseudo-inverse knows what they share.

    Example:
        ansatz demo hopfield
        ansatz demo hopfield --patterns 3 --rule hebb
        ansatz demo hopfield --noise 0.3 --figure recall.png
    """
    if rule not in _RULES:
        raise UsageError(f"--rule is one of {', '.join(_RULES)}, got '{rule[:40]}'.")
    if figure is not None:
        if figure.suffix.lower() not in _FORMATS:
            raise UsageError(f"--figure writes .png, .svg or .pdf, got '{figure.name}'.")
        require_free(figure, overwrite=overwrite, advice="To replace it: --overwrite.")
    shown = remember(patterns=patterns, noise=noise, rule=rule, seed=seed)
    if as_json:
        print_document(_summary(shown, rule=rule, noise=noise, seed=seed))
    else:
        _print(shown, rule)
    if figure is not None:
        _save(figure, shown, overwrite=overwrite)


def remember(*, patterns: int, noise: float, rule: Any, seed: int) -> HopfieldDemo:
    """Stores digits, flips pixels, recalls."""
    import torch

    from ansatz.connectionism import Hopfield
    from ansatz.data import load

    table = load("digits").frame
    generator = torch.Generator().manual_seed(seed)
    digits = [k % 10 for k in range(patterns)]
    rows = []
    for k, digit in enumerate(digits):
        same = (table["digit"].astype(int) == digit).to_numpy().nonzero()[0]
        order = torch.randperm(len(same), generator=torch.Generator().manual_seed(seed))
        rows.append(int(same[int(order[k // 10])]))  # no digit twice
    pixels = torch.tensor(table.drop(columns="digit").to_numpy(float)[rows])
    stored = torch.where(pixels > 7.5, 1.0, -1.0)  # of 0 to 16
    flips = torch.rand(stored.shape, generator=generator).argsort(1) < round(noise * _SIDE**2)
    noisy = torch.where(flips, -stored, stored)
    memory = Hopfield(_SIDE**2, rule=rule).store(stored)
    found = memory.recall(noisy, generator=generator)
    energies = memory.energy(noisy), memory.energy(found.state)
    return HopfieldDemo(digits, stored, noisy, found.state, found.steps, energies)


def _wrong(shown: HopfieldDemo) -> list[int]:
    return [int(count) for count in (shown.stored != shown.recalled).sum(1)]


def _summary(shown: HopfieldDemo, **options: Any) -> dict[str, Any]:
    flipped = (shown.stored != shown.noisy).sum(1).tolist()
    before, after = (energy.tolist() for energy in shown.energies)
    columns = (shown.digits, flipped, _wrong(shown), shown.steps.tolist(), before, after)
    names = ("digit", "flipped", "wrong", "sweeps", "energy_before", "energy_after")
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return {"neurons": _SIDE**2, **options, "digits": rows}


def _print(shown: HopfieldDemo, rule: str) -> None:
    signs = _BLOCKS if _can_print(_BLOCKS) else _ASCII
    wrong = _wrong(shown)
    for start in range(0, len(wrong), _PER_LINE):
        here = slice(start, start + _PER_LINE)
        for name, states in (
            ("stored", shown.stored), ("noisy", shown.noisy), ("recalled", shown.recalled)
        ):  # fmt: skip
            pictures = [_picture(state.tolist(), signs) for state in states[here]]
            for position, line in enumerate(zip(*pictures, strict=True)):
                print((f"{name if position == 0 else '':10}" + "  ".join(line)).rstrip())
            print()
        verdicts = ("exact" if count == 0 else f"{count} wrong" for count in wrong[here])
        print((" " * 10 + "  ".join(f"{verdict:8}" for verdict in verdicts)).rstrip() + "\n")
    flipped = int((shown.stored[0] != shown.noisy[0]).sum())
    print_line(
        f"{wrong.count(0)} of {len(wrong)} digits recalled exactly, each from {flipped} flipped "
        f"of {_SIDE**2} pixels."
    )
    before, after = (float(energy.mean()) for energy in shown.energies)
    sweeps = int(shown.steps.max())
    print_line(
        f"rule: {rule}; sweeps: {sweeps}; mean energy: {before:.1f} noisy, {after:.1f} recalled"
    )


def _can_print(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def _picture(state: list[float], signs: str) -> list[str]:
    """Two rows of pixels in a line of characters, which are twice as high as wide."""
    rows = [state[k : k + _SIDE] for k in range(0, len(state), _SIDE)]
    return [
        "".join(signs[2 * (a > 0) + (b > 0)] for a, b in zip(upper, lower, strict=True))
        for upper, lower in zip(rows[::2], rows[1::2], strict=True)
    ]


def _save(path: Path, shown: HopfieldDemo, *, overwrite: bool) -> None:
    import io

    from ansatz.figures.style import figure
    from ansatz.storage import write_file

    written = io.BytesIO()
    with figure(max(0.85 * len(shown.digits) + 0.6, 3.0), 3.2) as paper:
        _draw(paper, shown)
        options: dict[str, Any] = {"dpi": 160, "facecolor": "white"}
        paper.savefig(written, format=path.suffix[1:].lower(), **options)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, written.getvalue(), overwrite=overwrite)
    print_note(f"figure: {path}")


def _draw(paper: "Figure", shown: HopfieldDemo) -> None:
    from ansatz.figures.style import INK, LINEAR, MODEL

    rows = (shown.stored, shown.noisy, shown.recalled)
    axes = paper.subplots(3, len(shown.digits), squeeze=False)
    for names, states, line in zip(("stored", "noisy", "recalled"), rows, axes, strict=True):
        line[0].set_ylabel(names)
        for panel, state in zip(line, states, strict=True):
            image = state.reshape(_SIDE, _SIDE).numpy()
            panel.imshow(image, cmap="Greys", vmin=-1, vmax=1, interpolation="nearest")
            panel.set(xticks=[], yticks=[])
            panel.spines[["top", "right"]].set_visible(True)
    for panel, count in zip(axes[2], _wrong(shown), strict=True):
        panel.set_xlabel("exact" if count == 0 else f"{count} wrong")
        panel.xaxis.label.set_color(LINEAR if count else MODEL)
        panel.spines[:].set_color(LINEAR if count else INK)
