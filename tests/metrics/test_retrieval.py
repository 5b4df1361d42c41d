import pytest
import torch
from sklearn.neighbors import KNeighborsClassifier
from torch.testing import assert_close

from ansatz import metrics
from ansatz.metrics import neighbour_precision

z, y = torch.randn(60, 4, dtype=torch.float64), torch.arange(60) % 4
y[59] = 9  # alone in its class


def naive(y, z, k, weight):
    total, mass = 0.0, 0.0
    for i in range(len(y)):
        others = [j for j in range(len(y)) if j != i]
        others.sort(key=lambda j: float(((z[i] - z[j]) ** 2).sum()))
        count = sum(bool(y[j] == y[i]) for j in others) if k is None else k
        if count:
            hits = sum(bool(y[j] == y[i]) for j in others[:count])
            total, mass = total + weight[i] * hits / count, mass + weight[i]
    return total / mass


@pytest.mark.parametrize("k", [1, 5, None])
def test_is_the_formula(k):
    weight = torch.rand(60)
    assert_close(neighbour_precision(y, z, weight, k=k), naive(y, z, k, weight))
    assert_close(neighbour_precision(y, z, k=k), naive(y, z, k, torch.ones(60)))


def test_one_neighbour_is_scikit_learns_leave_one_out_classifier():
    model = KNeighborsClassifier(2).fit(z.numpy(), y.numpy())
    nearest = model.kneighbors(z.numpy(), return_distance=False)[:, 1]
    expected = (y[nearest] == y).double().mean()
    assert_close(neighbour_precision(y, z), expected)


def test_classes_apart_are_found_and_distances_decide():
    apart = z + 100 * y.unsqueeze(1)
    assert neighbour_precision(y, apart, k=None) == 1
    turn = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64))[0]
    assert_close(neighbour_precision(y, 3 * z @ turn + 7, k=5), neighbour_precision(y, z, k=5))


def test_blocks_of_rows_change_nothing(monkeypatch):
    whole = neighbour_precision(y, z, k=None)
    monkeypatch.setattr(metrics.retrieval, "_BLOCK", 60 * 7)
    assert neighbour_precision(y, z, k=None) == whole


def test_mistakes_are_named():
    with pytest.raises(ValueError, match=r"y \(N,\) and embeddings \(N, D\)"):
        neighbour_precision(y, z[:, 0])
    with pytest.raises(ValueError, match="k must be from 1 to 59 other rows, got 60"):
        neighbour_precision(y, z, k=60)
