"""Agreement of masks: overlap and wrong pixels. N images, K classes."""

import warnings
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from ansatz.arrays import takes_arrays
from ansatz.metrics.weights import require_equal_shapes

Reduction = Literal["mean", "image", "class", "none"]


class Overlap(NamedTuple):
    """Pixels of each class in each image: in the true mask, in the predicted one, and in both.

    Args:
        true: ``(N, K)`` weighted pixels.
        predicted: ``(N, K)``.
        both: ``(N, K)``.
        weight: ``(N,)``, the mean weight of the observed pixels of each image.

    Example:
        >>> import torch
        >>> from ansatz.metrics import Overlap
        >>> one = torch.ones(1, 1)
        >>> Overlap(2 * one, one, one, torch.ones(1)).true.item()
        2.0
    """

    true: Tensor
    predicted: Tensor
    both: Tensor
    weight: Tensor


@takes_arrays
def overlap(
    y: Tensor, predicted: Tensor, weight: Tensor | None = None, *, classes: int | None = None
) -> Overlap:
    r"""Counts the pixels of each class in two label arrays, image by image.

    .. math:: |A_{nk}| = \sum_j u_{nj} 1[y_{nj} = k], \qquad u_{nj} = w_{nj} / \bar w_n

    with :math:`w` the weight of a pixel, 0 where it is not labelled, and :math:`\bar w_n` the mean
    weight of the observed pixels of image n.

    Args:
        y: true labels, codes 0..K-1; anything where the weight is 0.
        predicted: labels of the same shape.
        weight: per image or per pixel; ones when not given.
        classes: :math:`K`; one more than the largest code when not given, and at least 2.

    Shapes:
        - y, predicted: ``(N, *size)``.
        - weight: ``(N,)`` or ``(N, *size)``.

    Example:
        >>> import torch
        >>> from ansatz.metrics import overlap
        >>> y, predicted = torch.tensor([[0, 1, 1, 1]]), torch.tensor([[0, 0, 1, 1]])
        >>> overlap(y, predicted).both
        tensor([[1., 2.]], dtype=torch.float64)
    """
    require_equal_shapes("the overlap of masks", y, predicted)
    _require_masks(y)
    if weight is None and classes is None and _looks_like_one_image(y):
        warnings.warn(
            f"masks of shape {tuple(y.shape)} are taken for {len(y)} signals. Of one image: "
            "y[None] and predicted[None]; of signals give classes= to avoid this warning.",
            stacklevel=5,
        )
    weight, image = _weights(y, weight)
    seen = weight > 0
    a, b = (_codes(torch.where(seen, t, 0)) for t in (y, predicted))
    count = _count(a, b, classes)
    shares = (weight / torch.where(image > 0, image, 1).reshape(-1, *(1,) * (y.ndim - 1))).flatten(
        1
    )
    empty = shares.new_zeros(len(y), count)
    return Overlap(
        empty.scatter_add(1, a, shares),
        empty.scatter_add(1, b, shares),
        empty.scatter_add(1, a, torch.where(a == b, shares, 0)),
        image,
    )


def _require_masks(y: Tensor) -> None:
    if y.ndim < 2:
        raise ValueError(f"masks need the shape (N, *size), got {tuple(y.shape)}.")


def _looks_like_one_image(masks: Tensor) -> bool:
    """Two axes alike, and neighbouring rows much more alike than distant ones: no signals are."""
    if masks.ndim != 2 or min(masks.shape) < 8 or max(masks.shape) > 4 * min(masks.shape):
        return False
    near, far = ((masks[rows:] != masks[:-rows]).double().mean() for rows in (1, len(masks) // 2))
    return bool(near < far / 2)


def _codes(masks: Tensor) -> Tensor:
    """``(N, pixels)`` int64."""
    codes = masks.long()
    if masks.is_floating_point() and not bool((codes == masks).all()):
        raise ValueError(
            "masks hold numbers that are not whole; labels are codes 0, 1, ...: threshold "
            "probabilities first, p > 0.5 or p.argmax(1)."
        )
    return codes.flatten(1)


def _count(a: Tensor, b: Tensor, classes: int | None) -> int:
    """K, where the codes allow it."""
    if not a.numel():
        return classes or 2
    least, most = (int(each) for each in torch.stack([*a.aminmax(), *b.aminmax()]).aminmax())
    count = max(most + 1, 2) if classes is None else classes
    if least < 0 or most >= count:
        odd = least if least < 0 else most
        raise ValueError(
            f"labels must be codes 0..{count - 1} of {count} classes, got {odd}. "
            "Pixels without a label have weight 0."
        )
    # Codes that nobody has would count as empty masks that agree: 0 and 255 are not 256 classes.
    found = len(torch.unique(torch.cat([a.unique(), b.unique()]))) if most > 3 else count
    if classes is None and count > 2 * found:
        raise ValueError(
            f"labels must be codes 0..K-1, got {found} different ones up to {most}. "
            f"Say classes={count} if there are as many; of a mask of 0 and {most}: mask > 0."
        )
    return count


@takes_arrays
def dice(
    y: Tensor,
    predicted: Tensor,
    weight: Tensor | None = None,
    *,
    classes: int | None = None,
    background: bool = True,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Computes Dice's coefficient of two masks: twice what they share, over what both hold.

    .. math:: D_{nk} = \frac{2 |A_{nk} \cap B_{nk}|}{|A_{nk}| + |B_{nk}|}

    for image n and class k, A true and B predicted. *Two empty masks* agree fully, D = 1: the
    convention of :class:`ansatz.likelihoods.Dice`, which is 1 - D on hard masks when its smoothing
    is 0. Of two classes only class 1 is evaluated; of more each one, and their mean is taken.
    D = 2 J / (1 + J) with J the :func:`iou`.

    Args:
        y: true labels, codes 0..K-1; anything where the weight is 0.
        predicted: labels of the same shape.
        weight: per image or per pixel, 0 = not labelled.
        classes: :math:`K`; from the labels when not given.
        background: False leaves class 0 of K > 2 out.
        reduction: ``"mean"`` over images and then classes; ``"image"`` or ``"class"``: one number
            each; ``"none"``: both axes.

    Shapes:
        - y, predicted: ``(N, *size)``.
        - weight: ``(N,)`` or ``(N, *size)``.
        - returns: ``()``, ``(N,)``, ``(K,)`` or ``(N, K)``; K - 1 without the background, and 1 for
          two classes.

    Example:
        >>> import torch
        >>> from ansatz.metrics import dice
        >>> y, predicted = torch.tensor([[0, 1, 1, 1]]), torch.tensor([[0, 0, 1, 1]])
        >>> dice(y, predicted).item()  # 2 * 2 / (3 + 2)
        0.8

    References:
        Dice (1945), Measures of the amount of ecologic association between species.
        https://doi.org/10.2307/1932409
    """
    found = overlap(y, predicted, weight, classes=classes)
    values = _ratio(2 * found.both, found.true + found.predicted)
    return reduce_classes(values, found.weight, background=background, reduction=reduction)


@takes_arrays
def iou(
    y: Tensor,
    predicted: Tensor,
    weight: Tensor | None = None,
    *,
    classes: int | None = None,
    background: bool = True,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Computes the intersection over union of two masks, Jaccard's index.

    .. math:: J_{nk} = \frac{|A_{nk} \cap B_{nk}|}{|A_{nk} \cup B_{nk}|}

    Arguments, shapes and conventions are those of :func:`dice`: two empty masks have J = 1.

    Shapes:
        - y, predicted: ``(N, *size)``.
        - weight: ``(N,)`` or ``(N, *size)``.

    Example:
        >>> import torch
        >>> from ansatz.metrics import iou
        >>> round(iou(torch.tensor([[0, 1, 1, 1]]), torch.tensor([[0, 0, 1, 1]])).item(), 4)
        0.6667

    References:
        Jaccard (1912), The distribution of the flora in the alpine zone.
        https://doi.org/10.1111/j.1469-8137.1912.tb05611.x
    """
    found = overlap(y, predicted, weight, classes=classes)
    values = _ratio(found.both, found.true + found.predicted - found.both)
    return reduce_classes(values, found.weight, background=background, reduction=reduction)


@takes_arrays
def pixel_error(
    y: Tensor,
    predicted: Tensor,
    weight: Tensor | None = None,
    *,
    reduction: Literal["mean", "image"] = "mean",
) -> Tensor:
    r"""Computes the share of pixels with a wrong label.

    .. math:: e = \sum_{nj} w_{nj} 1[y_{nj} \neq \hat y_{nj}] / \sum_{nj} w_{nj}

    Args:
        y: true labels; anything where the weight is 0.
        predicted: labels of the same shape.
        weight: per image or per pixel, 0 = not labelled.
        reduction: over all pixels, or ``"image"`` by image; nan where none is labelled.

    Shapes:
        - y, predicted: ``(N, *size)``.
        - weight: ``(N,)`` or ``(N, *size)``.

    Example:
        >>> import torch
        >>> from ansatz.metrics import pixel_error
        >>> pixel_error(torch.tensor([[0, 1, 1, 1]]), torch.tensor([[0, 0, 1, 1]])).item()
        0.25
    """
    require_equal_shapes("pixel_error", y, predicted)
    _require_masks(y)
    if reduction not in ("mean", "image"):
        raise ValueError(f"reduction of pixel_error must be mean or image, got {reduction!r}.")
    weight, _ = _weights(y, weight)
    y, predicted = (_codes(torch.where(weight > 0, t, 0)).view_as(t) for t in (y, predicted))
    wrong, count = ((weight * (y != predicted)).flatten(1).sum(1), weight.flatten(1).sum(1))
    return wrong / count if reduction == "image" else wrong.sum() / count.sum()


def reduce_classes(
    values: Tensor, weight: Tensor, *, background: bool = True, reduction: Reduction = "mean"
) -> Tensor:
    """Numbers per image and class, ``(N, K)``, as the metrics of masks report them.

    An image of weight 0 is left out; a class without a defined number (nan) is, too.
    """
    if reduction not in get_args(Reduction):
        known = ", ".join(get_args(Reduction))
        raise ValueError(f"reduction must be one of {known}, got {reduction!r}.")
    first = 1 if values.shape[1] == 2 or not background else 0
    values = values[:, first:].double()
    present = (weight > 0).unsqueeze(1) & ~values.isnan()
    if reduction == "none":
        return torch.where(present, values, torch.nan)
    if reduction == "image":
        return torch.where(present, values, 0).sum(1) / present.sum(1)
    mass = torch.where(present, weight.double().unsqueeze(1), 0)
    means = torch.where(present, values * mass, 0).sum(0) / mass.sum(0)  # (K,)
    return means if reduction == "class" else means.nanmean()


def _ratio(part: Tensor, whole: Tensor) -> Tensor:
    """``part / whole``, and 1 for two empty masks."""
    return torch.where(whole > 0, part / torch.where(whole > 0, whole, 1), 1.0)


def _weights(y: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
    """A weight per pixel, and the mean weight of the observed pixels of each image, in double."""
    if weight is None:
        weight = torch.ones(len(y), dtype=torch.float64, device=y.device)
    if weight.shape not in (y.shape, y.shape[:1]):
        raise ValueError(
            f"weight needs one entry per image, {tuple(y.shape[:1])}, or per pixel, "
            f"{tuple(y.shape)}, got {tuple(weight.shape)}."
        )
    weight = weight.to(y.device).double()
    weight = weight.reshape(*weight.shape, *(1,) * (y.ndim - weight.ndim)).expand_as(y)
    flat = weight.flatten(1)
    return weight, flat.sum(1) / (flat > 0).sum(1).clamp(min=1)
