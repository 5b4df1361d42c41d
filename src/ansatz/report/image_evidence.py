"""All sections on classified images, in the order of a report."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from ansatz.attribution import convolutions, feature_maps, filters
from ansatz.report import (
    image_confusion,
    image_examples,
    image_filters,
    image_mistakes,
    image_robustness,
    image_saliency,
)
from ansatz.report.image_perturbations import Predict, robustness
from ansatz.report.section import Section
from ansatz.symmetry import Certificate, certify, suitable_groups

PERTURBED = 500  # images that are shifted, turned and made noisy
CERTIFIED = 32  # images of a certificate


def sections(
    images: NDArray[np.uint8],
    truth: ArrayLike,
    probabilities: ArrayLike,
    classes: Sequence[Any],
    *,
    predict: Predict | None = None,
    network: nn.Module | None = None,
    encode: Callable[[NDArray[np.uint8]], Tensor] | None = None,
    names: Sequence[Any] | None = None,
    seed: int = 0,
) -> list[Section]:
    """Examples, confusion, mistakes; given the model also robustness, attributions and filters.

    Args:
        images: of the test rows, as they are stored.
        truth: codes of their classes.
        probabilities: predicted.
        classes: names by code.
        predict: images to probabilities, for those that are perturbed.
        network: what gives the raw outputs, for attributions, filters and certificates.
        encode: images to what the network takes; bytes over 255 when not given.
        names: of the images.
        seed: of what is drawn at random.

    Shapes:
        - images: ``(N, H, W, C)`` bytes.
        - truth: ``(N,)``; probabilities: ``(N, K)``.
        - encode: ``(n, H, W, C)`` bytes to ``(n, C, H, W)``.

    Example:
        >>> import numpy as np
        >>> from ansatz.report.image_evidence import sections
        >>> images = np.zeros((4, 8, 8, 1), np.uint8)
        >>> p = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]])
        >>> [section.title for section in sections(images, [0, 1, 1, 1], p, ["cat", "dog"])]
        ['What the images look like', 'Which classes are taken for which', 'The most confident ...']
    """
    code, probs = np.asarray(truth), np.asarray(probabilities, dtype=np.float64)
    reading = _unit if encode is None else encode
    found = [
        image_examples.section(images, code, classes, seed=seed),
        image_confusion.section(code, probs, classes),
        image_mistakes.section(images, code, probs, classes, names=names),
    ]
    drawn = np.sort(np.random.default_rng(seed).permutation(len(code))[:PERTURBED])
    if len(code) and (predict is not None or network is not None):
        curves = robustness(predict, images[drawn], code[drawn], seed=seed) if predict else []
        proofs = certificates(network, reading(images[drawn[:CERTIFIED]])) if network else []
        found.append(image_robustness.section(curves, proofs))
    if len(code) and network is not None:
        found.append(_attributed(images, code, probs, classes, network, reading))
        found.append(_filtered(images[drawn[0]], network, reading))
    return [section for section in found if section is not None]


def certificates(network: nn.Module, x: Tensor, *, samples: int = 16) -> list[Certificate]:
    """How far a network of images breaks the symmetries that pictures may have.

    Args:
        network: from images to outputs that should not change.
        x: as it takes them.
        samples: elements of each group.

    Shapes:
        - x: ``(B, C, H, W)``; quarter turns are for squares.

    Example:
        >>> import torch
        >>> from ansatz.report.image_evidence import certificates
        >>> found = certificates(lambda x: x.mean((2, 3)), torch.rand(3, 1, 8, 8))
        >>> [each.group for each in found if each.relative < 1e-4]
        ['cyclic_shift', 'flip', 'rotation90']
    """
    groups = suitable_groups(x.shape[2:])
    drawing = [torch.Generator().manual_seed(k) for k in range(len(groups))]
    return [
        certify(network, x, group, samples=samples, generator=generator)
        for group, generator in zip(groups, drawing, strict=True)
    ]


def ground(images: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], str]:
    """An image that shows nothing, and its colour in words.

    Black where most cells are nearly black, as behind white digits; white where most are nearly
    white; else the mean colour of all images, as neither is special in photographs.

    Shapes:
        - images: ``(N, H, W, C)``.
        - returns: ``(1, H, W, C)``.

    Example:
        >>> import numpy as np
        >>> from ansatz.report.image_evidence import ground
        >>> ground(np.zeros((2, 4, 4, 1), np.uint8))[1]
        'black'
    """
    some = images[:PERTURBED]
    middle = float(np.median(some))
    if middle < 32 or middle > 223:
        return np.full_like(images[:1], 0 if middle < 32 else 255), (
            "black" if middle < 32 else "white"
        )
    colour = some.mean((0, 1, 2)).round().astype(np.uint8)
    return np.broadcast_to(colour, images[:1].shape).copy(), "mean-coloured"


def _unit(images: NDArray[np.uint8]) -> Tensor:
    return torch.from_numpy(images).permute(0, 3, 1, 2) / 255


def _attributed(
    images: NDArray[np.uint8],
    code: NDArray[Any],
    probs: NDArray[np.float64],
    classes: Sequence[Any],
    network: nn.Module,
    reading: Callable[[NDArray[np.uint8]], Tensor],
) -> Section | None:
    """Three confident mistakes, as there are, and the first images that are right."""
    top = probs.argmax(1)
    wrong = np.flatnonzero(top != code)
    wrong = wrong[np.argsort(-probs[wrong, top[wrong]], kind="stable")][:3]
    right = np.flatnonzero(top == code)[: image_saliency.SHOWN - len(wrong)]
    rows = np.concatenate([wrong, right])
    empty, word = ground(images)
    maps = image_saliency.attributions(network, reading(images[rows]), baseline=reading(empty))
    return image_saliency.section(
        images[rows], maps, code[rows], probs[rows], classes, baseline=word
    )


def _filtered(
    image: NDArray[np.uint8],
    network: nn.Module,
    reading: Callable[[NDArray[np.uint8]], Tensor],
) -> Section | None:
    if not convolutions(network):
        return None
    seen = feature_maps(network, reading(image[None]))
    maps = seen[0].double().cpu().numpy() if seen.ndim == 4 else None
    return image_filters.section(filters(network).double().cpu().numpy(), image, maps)
