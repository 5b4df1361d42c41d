"""Reports accuracy under shifts, rotations and noise, and certificates of symmetry."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn import functional

from ansatz.data.grids import Grids
from ansatz.figures.number_format import number, percent
from ansatz.figures.section import Cell, Figure, Section, Table, Text
from ansatz.figures.style import INK, MODEL, figure, to_svg
from ansatz.report.effect import wilson
from ansatz.report.evidence import Evidence, ExampleNoun
from ansatz.report.reliability import class_probabilities
from ansatz.structures.grid.report.network import inputs_of, one_network, some_rows
from ansatz.structures.grid.report.pictures import IMAGE, affordable, pictures_of
from ansatz.symmetry import Certificate, certify, suitable_groups

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Predict = Callable[[NDArray[np.uint8]], ArrayLike]
ANGLES = (0.0, 5.0, 10.0, 20.0, 30.0, 45.0)  # degrees
NOISE = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3)  # of the range of a byte
CHUNK = 256  # images at once
STEPS = (0.0, 1 / 32, 1 / 16, 1 / 8, 3 / 16, 1 / 4)  # of the smaller side


class AccuracyCurve(NamedTuple):
    """The number of correct predictions at each strength of a perturbation."""

    name: str  # of the perturbation
    unit: str  # of its strength
    strength: list[float]  # from 0
    correct: list[int]  # correct predictions at each
    total: int  # number of images


def perturbed(
    images: NDArray[np.uint8], kind: str, strength: float, *, seed: int = 0
) -> NDArray[np.uint8]:
    """Shifts or rotates images or adds noise, each in a random direction.

    A shift is by ``strength`` pixels in one of eight directions, a rotation by ``strength`` degrees
    either way, interpolated; edges are replicated. Noise is normal and independent, with a
    standard deviation of ``strength`` times 255, clipped. Directions and noise depend only on the
    seed: the same at every strength.
    """
    if strength == 0:
        return images
    rng = np.random.default_rng(seed)
    if kind == "noise":
        noise = 255 * strength * rng.standard_normal(images.shape, dtype=np.float32)
        return (images + noise).round().clip(0, 255).astype(np.uint8)
    turn, right, down = np.zeros((3, len(images)))
    if kind == "rotation":
        turn = np.radians(strength) * rng.choice([-1, 1], len(images))
    elif kind == "shift":
        eight = np.array([(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j])
        right, down = strength * eight[rng.integers(8, size=len(images))].T
    else:
        raise ValueError(f"kind of perturbed must be shift, rotation or noise, got {kind!r}.")
    return _warped(images, turn, right, down)


def robustness(
    predict: Predict, images: NDArray[np.uint8], truth: ArrayLike, *, seed: int = 0
) -> list[AccuracyCurve]:
    """Counts correct predictions under shifts, rotations and noise of growing strength.

    Args:
        predict: from bytes ``(N, H, W, C)`` to probabilities ``(N, K)``.
        images: of the test rows.
        truth: codes of their classes.
        seed: of the directions and the noise.

    Example:
        >>> import numpy as np
        >>> from ansatz.diagnostics import robustness
        >>> images = np.zeros((4, 8, 8, 1), np.uint8)
        >>> predict = lambda images: np.tile([0.9, 0.1], (len(images), 1))
        >>> found = robustness(predict, images, [0, 0, 1, 1])
        >>> [(curve.name, curve.correct[-1]) for curve in found]
        [('shift', 2), ('rotation', 2), ('noise', 2)]
    """
    code = np.asarray(truth)
    side = min(images.shape[1:3])
    shifts = sorted({float(round(step * side)) for step in STEPS})
    found = []
    for name, unit, strengths in (
        ("shift", "pixels", shifts),
        ("rotation", "degrees", list(ANGLES)),
        ("noise", "% of the range", list(NOISE)),
    ):
        correct = [_correct(predict, images, code, name, strength, seed) for strength in strengths]
        shown = [100 * s for s in strengths] if name == "noise" else strengths
        found.append(AccuracyCurve(name, unit, shown, correct, len(code)))
    return found


def _correct(
    predict: Predict,
    images: NDArray[np.uint8],
    code: NDArray[Any],
    kind: str,
    strength: float,
    seed: int,
) -> int:
    """Counts correct predictions in chunks, since perturbed images are floats in memory."""
    found = 0
    for first in range(0, len(images), CHUNK):
        rows = slice(first, first + CHUNK)
        probs = np.asarray(predict(perturbed(images[rows], kind, strength, seed=seed + first)))
        found += int((probs.argmax(1) == code[rows]).sum())
    return found


def _warped(
    images: NDArray[np.uint8], turn: NDArray[Any], right: NDArray[Any], down: NDArray[Any]
) -> NDArray[np.uint8]:
    """Rotates each image anticlockwise and then shifts it."""
    height, width = images.shape[1:3]
    cos, sin = np.cos(turn), np.sin(turn)
    # From coordinates of the result back to the image; they run from -1 to 1 along either side.
    there = np.stack(
        [
            np.stack([cos, -sin * height / width, -2 * right / width], 1),
            np.stack([sin * width / height, cos, -2 * down / height], 1),
        ],
        1,
    )
    x = torch.from_numpy(images).permute(0, 3, 1, 2).to(torch.float32)
    places = functional.affine_grid(
        torch.from_numpy(there).to(x.dtype), list(x.shape), align_corners=False
    )
    moved: Tensor = functional.grid_sample(x, places, padding_mode="border", align_corners=False)
    return moved.permute(0, 2, 3, 1).round().clamp(0, 255).to(torch.uint8).numpy()


WORK = 5e10  # multiply-adds of all perturbations; of the certificates of one group
TIMES = 18  # perturbations
ELEMENTS = 16  # of a group, sampled
CROP = {1: 128, 2: 128, 3: 32}  # side of the crops of masks, by axes


def section(evidence: Evidence) -> Section | None:
    """Reports accuracy under shifts, rotations and noise, and certificates of symmetry."""
    found, notes = certificates(evidence)
    curves, more = _curves(evidence)
    made = robustness_section(curves, found, unit=evidence.unit)
    if made is None:
        return None
    title = made.title if curves else "Symmetries"
    return Section(title, made.lead, [*made.parts, *(Text(note, "note") for note in more + notes)])


def _curves(evidence: Evidence) -> tuple[list[AccuracyCurve], list[str]]:
    """Computes the curves, for classes of images only."""
    is_classes = evidence.axis == "row" and evidence.classes is not None
    if not is_classes or evidence.distribution is None or evidence.unit != IMAGE:
        return [], []
    if evidence.job.offset is not None:
        return [], []
    count = affordable(evidence, WORK, least=50, most=500, times=TIMES)
    rows = some_rows(evidence, count)
    _, code = class_probabilities(evidence)
    images, back = _as_bytes(pictures_of(evidence.X[rows]))
    model = evidence.model

    def predict(pictures: NDArray[np.uint8]) -> NDArray[np.float64]:
        grids = Grids(torch.from_numpy(np.ascontiguousarray(np.moveaxis(back(pictures), -1, 1))))
        served = model.predictive(grids, notes=[])
        found: NDArray[np.float64] = model.of_classes.probabilities(served).numpy()
        return found

    found = robustness(predict, images, code[rows], seed=evidence.seed)
    notes = []
    if len(rows) < len(evidence.outcome):
        notes.append(f"The curves are of {len(rows)} random test images.")
    if pictures_of(evidence.X[rows[:1]]).dtype != np.uint8:
        notes.append("For the curves pixels are rounded to 256 levels.")
    return found, notes


def _as_bytes(images: NDArray[Any]) -> tuple[NDArray[np.uint8], Any]:
    """Converts images to bytes, with the inverse function."""
    if images.dtype == np.uint8:
        return images, lambda pictures: pictures
    low, high = float(images.min()), float(images.max())
    unit = max(high - low, 1e-30) / 255
    codes = ((images - low) / unit).round().clip(0, 255).astype(np.uint8)
    return codes, lambda pictures: (low + unit * pictures.astype(np.float32)).astype(np.float32)


def certificates(evidence: Evidence) -> tuple[list[Certificate], list[str]]:
    """Measures how far the network violates each symmetry of its grid.

    Networks of one output per example are tested for invariance, those of masks for
    equivariance. Returns certificates and notes.
    """
    dense = evidence.axis == "element"
    count = affordable(evidence, WORK, least=2, most=256, times=ELEMENTS + 1)
    whole = inputs_of(evidence, some_rows(evidence, count))
    x = _cropped(whole) if dense else whole
    network = one_network(evidence).answering
    generator = torch.Generator().manual_seed(evidence.seed)
    found = []
    for group in suitable_groups(x.shape[2:]):
        try:
            certificate = certify(
                network,
                x,
                group,
                samples=ELEMENTS,
                generator=generator,
                kind="equivariant" if dense else "invariant",
            )
        except ValueError:  # too small for this group
            continue
        found.append(certificate)
    size = " × ".join(map(str, x.shape[2:]))
    note = f"Certificates are of {len(x)} test {evidence.unit.many}"
    note += f", cropped to the central {size}." if x.shape != whole.shape else "."
    return found, [note] if found else []


def _cropped(x: Tensor) -> Tensor:
    """Crops the centre of large examples."""
    for axis, length in enumerate(x.shape[2:], start=2):
        kept = min(length, CROP[x.ndim - 2])
        x = x.narrow(axis, (length - kept) // 2, kept)
    return x.contiguous()


def draw_curve(axes: "Axes", curve: AccuracyCurve) -> None:
    """Draws accuracy against strength, with Wilson intervals."""
    shares = [wilson(n, curve.total) for n in curve.correct]
    value, low, high = (100 * np.array(part) for part in zip(*shares, strict=True))
    axes.axhline(value[0], color=INK, lw=0.8, alpha=0.6)
    axes.fill_between(curve.strength, low, high, color=MODEL, alpha=0.2, lw=0)
    axes.plot(curve.strength, value, "o-", color=MODEL)
    axes.set(xlabel=f"{curve.name}, {curve.unit}", ylim=(0, 102))


def robustness_section(
    curves: Sequence[AccuracyCurve],
    certificates: Sequence[Certificate] = (),
    *,
    unit: ExampleNoun = IMAGE,
) -> Section | None:
    """Reports accuracy under perturbations and certificates of symmetry.

    Args:
        curves: from :func:`ansatz.diagnostics.robustness`.
        certificates: from :func:`ansatz.symmetry.certify`.
        unit: what an example is called.

    Example:
        >>> import numpy as np
        >>> from ansatz.diagnostics import robustness, robustness_section
        >>> images = np.zeros((4, 8, 8, 1), np.uint8)
        >>> predict = lambda images: np.tile([0.9, 0.1], (len(images), 1))
        >>> found = robustness(predict, images, [0, 0, 1, 1])
        >>> robustness_section(found).lead[:38]
        'Accuracy: 50 %, 50 % under shift of 2 '
    """
    parts: list[Text | Table | Figure] = []
    if curves:
        parts.append(_figure(curves))
    if certificates:
        parts.append(_certificate_table(certificates, unit))
    if not parts:
        return None
    return Section("Accuracy under shifts, rotations and noise", _lead(curves, certificates), parts)


def _lead(curves: Sequence[AccuracyCurve], certificates: Sequence[Certificate]) -> str:
    falls = [f"{_share(curve, -1)} under {curve.name} of {_strength(curve)}" for curve in curves]
    words = f"Accuracy: {_share(curves[0], 0)}, {', '.join(falls)}." if curves else ""
    exact = [c for c in certificates if c.relative < 1e-4]
    if certificates and exact:
        kept = ", ".join(dict.fromkeys(c.group for c in exact))
        words += f" Exact symmetries, up to rounding: {kept}."
    elif certificates:
        words += " None of the symmetries holds exactly."
    return words.strip()


def _share(curve: AccuracyCurve, place: int) -> str:
    return percent(curve.correct[place] / max(curve.total, 1))


def _strength(curve: AccuracyCurve) -> str:
    amount = number(float(curve.strength[-1]))
    return f"{amount} %" if curve.unit.startswith("%") else f"{amount} {curve.unit}"


def _figure(curves: Sequence[AccuracyCurve]) -> Figure:
    with figure(6.6 if len(curves) > 1 else 3.4, 2.5) as paper:
        grid = paper.subplots(1, len(curves), squeeze=False, sharey=True)
        for axes, curve in zip(grid.flat, curves, strict=True):
            draw_curve(axes, curve)
        grid.flat[0].set_ylabel("accuracy, %")
        svg = to_svg(paper)
    described = "; ".join(
        f"{curve.name}: {_share(curve, 0)} to {_share(curve, -1)} at {_strength(curve)}"
        for curve in curves
    )
    return Figure(
        svg,
        f"Accuracy on {curves[0].total} test images, with 95 % Wilson intervals, under growing "
        "perturbations in random directions; grey line: unperturbed. Edges are replicated.",
        f"Accuracy under perturbations. {described}.",
    )


def _certificate_table(certificates: Sequence[Certificate], unit: ExampleNoun) -> Table:
    rows: list[list[Cell]] = [
        [
            certificate.group + ("" if certificate.exact else " (approximate)"),
            certificate.kind,
            number(certificate.largest, 3),
            number(certificate.mean, 3),
            number(certificate.relative, 3),
            _element(certificate.worst_element)
            + (" rad" if certificate.group == "rotation" else ""),
            certificate.samples,
        ]
        for certificate in certificates
    ]
    head = ["group", "outputs", "largest", "mean", "relative", "at", "samples"]
    return Table(
        head,
        rows,
        "Certificates of symmetry: the largest change of any raw output under random elements of a "
        "group (for equivariance, after transforming the output likewise); its mean over "
        f"elements; the largest relative to the standard deviation of outputs among {unit.many}: "
        f"at 1, transforming {unit.an} matters as much as replacing it.",
    )


def _element(element: Any) -> str:
    """Formats an element of a group."""
    if isinstance(element, bool | int | float):
        return number(element, 3)
    if isinstance(element, tuple) and all(isinstance(each, int | float) for each in element):
        return f"({', '.join(number(each, 3) for each in element)})"
    return "–"
