"""Two models of masks scored image by image."""

import numpy as np
import torch
from numpy.typing import NDArray

from ansatz.metrics import dice, pixel_error
from ansatz.report.judged import Judged
from ansatz.report.mask_losses import labelled
from ansatz.report.paired_scores import ScorePair


def dice_pair(a: Judged, b: Judged) -> ScorePair:
    """Dice's coefficient of each image, the mean over its classes.

    Args:
        a: the one model of masks.
        b: the other.

    Example:
        >>> import numpy as np
        >>> from ansatz import Segmenter
        >>> from ansatz.report.judged import judge_rows
        >>> from ansatz.report.mask_pair import dice_pair
        >>> images = np.random.default_rng(0).normal(size=(6, 8, 8)).astype(np.float32)
        >>> model = Segmenter(network="linear_pixels", epochs=1).fit(images, images > 0)
        >>> judged = judge_rows("it", model, model._read(images, images > 0))
        >>> dice_pair(judged, judged).gain.tolist()
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    return ScorePair("dice", _dice(a), _dice(b), higher=True)


def cell_pair(a: Judged, b: Judged) -> ScorePair:
    """The log score of the cells of each image; the share of wrong cells where one has no law.

    Args:
        a: the one model of masks.
        b: the other.

    Example:
        >>> import numpy as np
        >>> from ansatz import Segmenter
        >>> from ansatz.report.judged import judge_rows
        >>> from ansatz.report.mask_pair import cell_pair
        >>> images = np.random.default_rng(0).normal(size=(6, 8, 8)).astype(np.float32)
        >>> model = Segmenter("dice", network="linear_pixels", epochs=1).fit(images, images > 0)
        >>> judged = judge_rows("it", model, model._read(images, images > 0))
        >>> cell_pair(judged, judged).name
        'pixel_error'
    """
    if a.law.is_law and b.law.is_law:
        return ScorePair("log score", a.log_scores.numpy(), b.log_scores.numpy(), higher=True)
    return ScorePair("pixel_error", _wrong(a), _wrong(b), higher=False)


def _codes(judged: Judged) -> torch.Tensor:
    found: torch.Tensor = judged.model._codes(judged.raw)
    return found


def _dice(judged: Judged) -> NDArray[np.float64]:
    y, count = judged.job.y, len(judged.model.classes_)
    found = dice(y.clamp(min=0), _codes(judged), labelled(y), classes=count, reduction="image")
    return found.nan_to_num().numpy()


def _wrong(judged: Judged) -> NDArray[np.float64]:
    y = judged.job.y
    wrong = pixel_error(y.clamp(min=0), _codes(judged), labelled(y), reduction="image")
    return wrong.nan_to_num().numpy()
