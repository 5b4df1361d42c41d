import math

import pytest
import torch
from sklearn.metrics.pairwise import rbf_kernel
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.layers import RandomFeatures


def rbf(x, s):
    return torch.as_tensor(rbf_kernel(x.numpy(), gamma=1 / (2 * s**2)))


def arc_cosine(x, s):
    u = torch.cat([x / s, torch.ones(len(x), 1)], 1)
    size = u.norm(dim=1)
    t = torch.acos((u @ u.T / torch.outer(size, size)).clamp(-1, 1))
    return torch.outer(size, size) * (t.sin() + (math.pi - t) * t.cos()) / math.pi


def error(kind, kernel, m, s=1.5, draws=30):
    """Root mean square error of the Gram matrix over independent draws of m features."""
    x = torch.randn(12, 3, generator=torch.Generator().manual_seed(9))
    total = 0.0
    for seed in range(draws):
        generator = torch.Generator().manual_seed(seed)
        phi = RandomFeatures(3, m, kind=kind, bandwidth=s, generator=generator)(x)
        total += ((phi @ phi.T - kernel(x, s)) ** 2).mean().item() / draws
    return math.sqrt(total)


@pytest.mark.parametrize("kind, kernel", [("cosine", rbf), ("relu", arc_cosine)])
def test_inner_products_tend_to_the_kernel_at_the_root_m_rate(kind, kernel):
    # 16 times the features, a quarter of the error; 30 draws of a 12 x 12 Gram matrix leave
    # a relative spread of about 1/sqrt(2 * 30) on each mean square error at the worst.
    ratio = error(kind, kernel, 128) / error(kind, kernel, 2048)
    assert ratio == pytest.approx(4, rel=5 * math.sqrt(2) / math.sqrt(4 * 30))
    assert error(kind, kernel, 2048) < 0.12


def test_cosine_features_are_the_formula_and_bounded():
    layer, x = RandomFeatures(3, 50, bandwidth=2.0), torch.randn(7, 3)
    assert_close(layer(x), math.sqrt(2 / 50) * torch.cos(x @ layer.weight.T + layer.phase))
    assert layer.weight.std().item() == pytest.approx(0.5, rel=5 / math.sqrt(2 * 150))
    assert not list(layer.parameters())


def test_the_default_bandwidth_makes_typical_rows_similar_by_one_over_e():
    assert RandomFeatures(9, 4).bandwidth == 3.0


def test_bad_options_are_named():
    with pytest.raises(ValueError, match="'cosine' or 'relu', got 'sine'"):
        RandomFeatures(3, 4, kind="sine")
    with pytest.raises(UsageError, match="features of RandomFeatures must be a whole number"):
        RandomFeatures(3, 2**40)
    with pytest.raises(UsageError, match="bandwidth of RandomFeatures must be a positive"):
        RandomFeatures(3, 4, bandwidth=-1.0)
