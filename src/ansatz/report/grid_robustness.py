"""What becomes of right answers when images are perturbed, and which symmetries hold."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ansatz.data.grids import Grids
from ansatz.figures.section import Section, Text
from ansatz.report import image_robustness
from ansatz.report.class_questions import class_probabilities
from ansatz.report.evidence import Evidence
from ansatz.report.grid_network import inputs_of, one_network, some_rows
from ansatz.report.grid_pictures import pictures_of
from ansatz.report.grid_sample import affordable
from ansatz.report.image_perturbations import Curve, robustness
from ansatz.symmetry import Certificate, certify, suitable_groups

WORK = 5e10  # multiply-adds of all perturbations; of the certificates of one group
TIMES = 18  # perturbations
ELEMENTS = 16  # of a group that are tried
CROP = {1: 128, 2: 128, 3: 32}  # cells of a side of what masks are certified on, by axes


def section(evidence: Evidence) -> Section | None:
    """Accuracy under shifts, turns and noise, and certificates of symmetry.

    Args:
        evidence: of a model of grids on its test rows.

    Example:
        >>> import numpy as np
        >>> from ansatz import Classifier
        >>> from ansatz.report import gather
        >>> from ansatz.report.grid_robustness import section
        >>> images = np.random.default_rng(0).normal(size=(20, 12, 12)).astype(np.float32)
        >>> model = Classifier(network="linear_grid", epochs=1).fit(images, np.arange(20) % 2)
        >>> section(gather(model, images, np.arange(20) % 2)).title
        'When images move, turn or grow noisy'
    """
    found, notes = certificates(evidence)
    curves, said = _curves(evidence)
    made = image_robustness.section(curves, found)
    if made is None:
        return None
    title = made.title if curves else "Symmetries"
    return Section(title, made.lead, [*made.parts, *(Text(note, "note") for note in said + notes)])


def _curves(evidence: Evidence) -> tuple[list[Curve], list[str]]:
    """Of classes of images alone; numbers and masks have no right answers to count."""
    is_classes = evidence.structure == "grid" and evidence.classes is not None
    if not is_classes or evidence.distribution is None or evidence.unit != "images":
        return [], []
    if evidence.job.offset is not None:
        return [], []
    count = affordable(evidence, WORK, least=50, most=500, times=TIMES)
    rows = some_rows(evidence, count)
    _, code = class_probabilities(evidence)
    images, back = _as_bytes(pictures_of(evidence.X[rows]))
    model: Any = evidence.model

    def predict(pictures: NDArray[np.uint8]) -> NDArray[np.float64]:
        grids = Grids(torch.from_numpy(np.ascontiguousarray(np.moveaxis(back(pictures), -1, 1))))
        raw = model._served_raw(model.model_.raw(grids, None, notes=[]))
        found: NDArray[np.float64] = model._probabilities(raw).numpy()
        return found

    found = robustness(predict, images, code[rows], seed=evidence.seed)
    said = []
    if len(rows) < len(evidence.outcome):
        said.append(f"The curves are of {len(rows)} test images drawn at random.")
    if pictures_of(evidence.X[rows[:1]]).dtype != np.uint8:
        said.append("For the curves the images' numbers are rounded to 256 levels.")
    return found, said


def _as_bytes(images: NDArray[Any]) -> tuple[NDArray[np.uint8], Any]:
    """Images as bytes, and the way back."""
    if images.dtype == np.uint8:
        return images, lambda pictures: pictures
    low, high = float(images.min()), float(images.max())
    unit = max(high - low, 1e-30) / 255
    codes = ((images - low) / unit).round().clip(0, 255).astype(np.uint8)
    return codes, lambda pictures: (low + unit * pictures.astype(np.float32)).astype(np.float32)


def certificates(evidence: Evidence) -> tuple[list[Certificate], list[str]]:
    """By how much the network breaks each symmetry that its grid may have.

    A network that answers once is asked whether the answer stays; one that answers for every cell,
    whether the answer moves along.

    Args:
        evidence: of a model of grids on its test rows.

    Returns:
        Certificates, and what is to be said about them.

    Example:
        >>> import numpy as np
        >>> from ansatz import Classifier
        >>> from ansatz.report import gather
        >>> from ansatz.report.grid_robustness import certificates
        >>> images = np.random.default_rng(0).normal(size=(20, 12, 12)).astype(np.float32)
        >>> model = Classifier(network="linear_grid", epochs=1).fit(images, np.arange(20) % 2)
        >>> [found.group for found in certificates(gather(model, images, np.arange(20) % 2))[0]]
        ['shift', 'cyclic_shift', 'flip', 'rotation90', 'rotation']
    """
    dense = evidence.structure == "masks"
    count = affordable(evidence, WORK, least=2, most=256, times=ELEMENTS + 1)
    x = inputs_of(evidence, some_rows(evidence, count))
    if dense:
        x = _cropped(x)
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
        except ValueError:  # too small to be moved so
            continue
        found.append(certificate)
    size = " × ".join(map(str, x.shape[2:]))
    said = f"Certificates are of {len(x)} test {evidence.unit}"
    said += f", {size} cells of their middle." if dense and size else "."
    return found, [said] if found else []


def _cropped(x: Tensor) -> Tensor:
    """The middle of large examples, by even numbers of cells."""
    for axis, length in enumerate(x.shape[2:], start=2):
        kept = min(length, CROP[x.ndim - 2])
        x = x.narrow(axis, (length - kept) // 2, kept)
    return x.contiguous()
