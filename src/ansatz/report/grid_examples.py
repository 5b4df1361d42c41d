"""What the examples of a fit look like, and what the fit noted about them."""

from typing import Any

from ansatz.figures.section import Section, Text
from ansatz.report import image_examples
from ansatz.report.evidence import Evidence
from ansatz.report.grid_pictures import shown_late


def section(evidence: Evidence) -> Section | None:
    """Some examples of each class, and the notes of the fit.

    Args:
        evidence: of a model of grids on its test rows.

    Example:
        >>> import numpy as np
        >>> from ansatz import Classifier
        >>> from ansatz.report import gather
        >>> from ansatz.report.grid_examples import section
        >>> images = np.random.default_rng(0).normal(size=(20, 12, 12)).astype(np.float32)
        >>> model = Classifier(network="linear_grid", epochs=1).fit(images, np.arange(20) % 2)
        >>> section(gather(model, images, np.arange(20) % 2)).title
        'What the images look like'
    """
    notes: list[Any] = [Text(note, _kind(note)) for note in evidence.fit.get("notes", [])]
    if evidence.structure == "grid" and evidence.classes is not None:
        codes, classes = evidence.value.long().numpy(), list(evidence.classes)
        images = shown_late(evidence.X)
        made = image_examples.section(images, codes, classes, seed=evidence.seed)
        if made is not None:
            return Section(made.title, _lead(evidence), [*made.parts, *notes])
    return Section("The data", _lead(evidence), notes)


def _lead(evidence: Evidence) -> str:
    channels, *size = evidence.X.shape
    learned = 0 if evidence.learn is None else len(evidence.learn.weight)
    many = f"{len(evidence.weight)} test {evidence.unit} that the model never saw"
    if learned:
        many = f"{learned} {evidence.unit} to learn from and {many}"
    what = f"{' × '.join(map(str, size))} cells and {channels} channel{'s' * (channels > 1)} each"
    return f"{many}, {what}."


def _kind(note: str) -> str:
    return "warning" if note.startswith("warning") else "note"
