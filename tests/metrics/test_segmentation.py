import pytest
import torch
from torch.testing import assert_close

from ansatz.data import instances
from ansatz.metrics import (
    accuracy,
    boundary,
    boundary_f1,
    dice,
    iou,
    overlap,
    panoptic_quality,
    pixel_error,
)


def labels(*shape, classes=3):
    return torch.randint(classes, shape)


def sets(mask, k, keep):
    """The places of class k, as a set."""
    return {tuple(place) for place in ((mask == k) & keep).nonzero().tolist()}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("shape", [(7,), (4, 5), (3, 3, 2)], ids=str)
def test_dice_and_iou_are_those_of_sets(classes, shape):
    y, guess = labels(6, *shape, classes=classes), labels(6, *shape, classes=classes)
    keep = torch.rand(6, *shape) < 0.8
    first = 1 if classes == 2 else 0
    found = [f(y, guess, keep.double(), classes=classes, reduction="none") for f in (dice, iou)]
    for i in range(6):
        for k in range(first, classes):
            a, b = (sets(t[i], k, keep[i]) for t in (y, guess))
            sizes = (2 * len(a & b), len(a) + len(b)), (len(a & b), len(a | b))
            for values, (part, whole) in zip(found, sizes, strict=True):
                expected = part / whole if whole else 1
                assert values[i, k - first].item() == pytest.approx(expected)


def test_dice_is_twice_iou_over_one_plus_iou():
    """M102, class by class and image by image."""
    y, guess = labels(20, 6, 6), labels(20, 6, 6)
    j = iou(y, guess, reduction="none")
    assert_close(dice(y, guess, reduction="none"), 2 * j / (1 + j))


def test_two_empty_masks_agree_and_one_empty_mask_does_not():
    empty = torch.zeros(1, 3, 3, dtype=torch.long)
    some = empty.clone()
    some[0, 0, 0] = 1
    for metric in (dice, iou, boundary_f1):
        assert metric(empty, empty).item() == 1 and metric(some, some).item() == 1
        assert metric(empty, some).item() == 0 == metric(some, empty).item()


def test_the_mean_is_over_images_and_then_over_classes():
    y, guess, weight = labels(5, 4, 4), labels(5, 4, 4), torch.tensor([1.0, 2.0, 0.0, 1.0, 3.0])
    each = dice(y, guess, reduction="none")
    weighted = (each * weight.unsqueeze(1)).sum(0) / weight.sum()
    assert_close(dice(y, guess, weight, reduction="class"), weighted)
    assert_close(dice(y, guess, weight), weighted.mean())
    assert_close(dice(y, guess, weight, background=False), weighted[1:].mean())
    assert_close(dice(y, guess, reduction="image"), each.mean(1))
    assert dice(y, guess, weight, reduction="none")[2].isnan().all()


def test_what_is_not_labelled_does_not_matter():
    y, guess, keep = labels(4, 5, 5), labels(4, 5, 5), torch.rand(4, 5, 5) < 0.7
    other = torch.where(keep, guess, labels(4, 5, 5))
    nan = torch.where(keep, y.double(), torch.nan)
    for metric in (dice, iou, pixel_error, boundary_f1):
        options = {} if metric is pixel_error else {"classes": 3}
        first = metric(nan, guess.double(), keep.double(), **options)
        assert_close(first, metric(y, other, keep.double(), **options))
    same = torch.where(keep, y, labels(4, 5, 5))
    for metric in (dice, iou, boundary_f1):
        assert metric(y, same, keep.double(), classes=3).item() == 1


def test_pixel_error_is_the_share_of_wrong_pixels():
    y, guess, weight = labels(4, 5, 5), labels(4, 5, 5), torch.rand(4, 5, 5)
    wrong = 1 - accuracy(y.flatten(), guess.flatten(), weight.flatten())
    assert_close(pixel_error(y, guess, weight), wrong)
    assert_close(pixel_error(y, guess, reduction="image"), (y != guess).double().mean((1, 2)))


def test_a_boundary_pixel_has_a_neighbour_outside_the_mask():
    mask = torch.rand(6, 7) < 0.6
    keep = torch.rand(6, 7) < 0.8
    expected = torch.zeros_like(mask)
    for i, j in (mask & keep).nonzero().tolist():
        for a, b in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
            if 0 <= a < 6 and 0 <= b < 7 and keep[a, b] and not mask[a, b]:
                expected[i, j] = True
    assert boundary(mask.numpy(), keep.numpy()).tolist() == expected.tolist()


@pytest.mark.parametrize("tolerance", [0.0, 1.0, 1.5, 3.0])
def test_boundary_f1_is_that_of_all_distances(tolerance):
    y, guess = (torch.rand(5, 9, 9) < 0.15).long(), (torch.rand(5, 9, 9) < 0.15).long()
    for i in range(5):
        a, b = (torch.tensor(boundary((t[i] == 1).numpy())).nonzero().double() for t in (y, guess))
        near = torch.cdist(a, b) <= tolerance
        recall, precision = near.any(1).double().mean(), near.any(0).double().mean()
        total = recall + precision
        expected = 2 * recall * precision / total if total > 0 else 0.0
        found = boundary_f1(y[i : i + 1], guess[i : i + 1], tolerance=tolerance)
        assert found.item() == pytest.approx(float(expected))


def test_a_shifted_square_is_within_its_shift():
    y, guess = torch.zeros(2, 1, 12, 12, dtype=torch.long)
    y[0, 3:8, 3:8], guess[0, 3:8, 5:10] = 1, 1
    scores = [boundary_f1(y, guess, tolerance=t).item() for t in (0.0, 1.0, 2.0)]
    assert scores == sorted(scores) and scores[0] < 1 and scores[2] == 1


def test_a_full_mask_and_an_empty_one_have_no_outline_and_do_not_agree():
    empty = torch.zeros(1, 6, 6, dtype=torch.long)
    full = empty + 1
    assert boundary_f1(empty, full) == 0
    assert boundary_f1(full, full) == boundary_f1(empty, empty) == 1
    unlabelled = torch.zeros(1, 6, 6)
    unlabelled[:, :3] = 1
    half = full.clone()
    half[:, 3:] = 0
    assert boundary_f1(full, half, unlabelled) == 1


def test_no_masks_have_no_score():
    none = torch.zeros(0, 4, 4, dtype=torch.long)
    for metric in (dice, iou, boundary_f1, pixel_error):
        assert metric(none, none).isnan()


def test_symmetry():
    y, guess = labels(3, 8, 8), labels(3, 8, 8)
    for metric in (dice, iou, boundary_f1, pixel_error):
        assert_close(metric(y, guess), metric(guess, y))


def test_what_they_refuse():
    y = labels(2, 4, 4)
    with pytest.raises(ValueError, match=r"codes 0..1 of 2 classes"):
        dice(y, y, classes=2)
    with pytest.raises(
        ValueError, match=r"predictions of the shape of y, \(2, 4, 4\), got \(2, 4\)"
    ):
        iou(y, y[:, 0])
    with pytest.raises(
        ValueError, match=r"per image, \(2,\), or per pixel, \(2, 4, 4\), got \(4,\)"
    ):
        dice(y, y, torch.ones(4))
    with pytest.raises(ValueError, match=r"shape \(N, \*size\), got \(2,\)"):
        overlap(y[:, 0, 0], y[:, 0, 0])
    with pytest.raises(ValueError, match="tolerance of boundary_f1 must be >= 0, got -1"):
        boundary_f1(y, y, tolerance=-1)
    with pytest.raises(ValueError, match=r"reduction must be one of mean, image, .*got 'sum'"):
        dice(y, y, reduction="sum")
    with pytest.raises(ValueError, match=r"reduction of pixel_error must be mean or image"):
        pixel_error(y, y, reduction="class")
    with pytest.raises(ValueError, match=r"shape \(N, \*size\), got \(2,\)"):
        pixel_error(y[:, 0, 0], y[:, 0, 0])


def test_masks_of_0_and_255_are_not_256_classes():
    """254 classes that nobody has would agree, and the mean over all would be near 1."""
    y, other = torch.zeros(2, 3, 8, 8, dtype=torch.long)
    y[:, :4], other[:, 4:] = 255, 255
    for metric in (dice, iou, boundary_f1):
        with pytest.raises(ValueError, match=r"2 different ones up to 255.*mask > 0"):
            metric(y, other)
    assert dice(y > 0, other > 0).item() == 0
    assert dice(y, other, classes=256).item() > 0.99


@pytest.mark.parametrize("metric", [dice, iou, boundary_f1])
def test_one_image_that_is_taken_for_signals_is_reported(metric):
    i, j = torch.meshgrid(torch.arange(20), torch.arange(30), indexing="ij")
    disc = ((i - 9) ** 2 + (j - 12) ** 2 < 40).long()
    with pytest.warns(UserWarning, match=r"\(20, 30\) are taken for 20 signals.*y\[None\]"):
        metric(disc, disc)
    metric(disc[None], disc[None])  # a warning would be an error
    metric(disc, disc, classes=2)
    metric(disc, disc, torch.ones(20))


def test_masks_of_signals_are_no_image():
    start = torch.randint(0, 20, (40, 1))
    beats = ((torch.arange(60) >= start) & (torch.arange(60) < start + 20)).long()
    for signals in (beats, labels(40, 60, classes=2), beats[:1].expand(40, 60)):
        assert dice(signals, signals) == 1  # a warning would be an error


def test_probabilities_are_no_labels():
    for metric in (dice, pixel_error):
        with pytest.raises(ValueError, match=r"not whole.*p > 0.5"):
            metric(torch.ones(1, 4), torch.full((1, 4), 0.7))


def test_numpy_masks_have_the_numbers_of_tensors():
    y, other = torch.randint(3, (2, 4, 8, 8))
    weight = torch.rand(4)
    for metric in (dice, iou, boundary_f1, pixel_error):
        found = metric(y.numpy(), other.numpy(), weight.numpy())
        assert found == metric(y, other, weight).item()


def test_objects_are_compared_pair_by_pair():
    y, predicted = (instances(labels(4, 9, 9)) for _ in range(2))
    matched, total = [], 0
    for a, b in zip(y, predicted, strict=True):
        ones, others = ([m == k for k in range(1, int(m.max()) + 1)] for m in (a, b))
        total += len(ones) + len(others)
        ious = [float((p & q).sum() / (p | q).sum()) for p in ones for q in others]
        matched += [iou for iou in ious if iou > 0.5]
    found = panoptic_quality(y, predicted)
    assert found.found == len(matched) > 0
    assert found.quality == pytest.approx(2 * sum(matched) / total)
    assert found.quality == pytest.approx(found.segmentation * found.recognition)
    assert found.missed + found.invented == total - 2 * len(matched)


def test_the_numbers_of_objects_do_not_matter():
    y = instances(labels(2, 8, 8))
    assert panoptic_quality(y, 1000 * y).quality == 1
    assert panoptic_quality(y, torch.zeros_like(y)).quality == 0
    assert panoptic_quality(torch.zeros(1, 3, 3), torch.zeros(1, 3, 3)).quality == 1
