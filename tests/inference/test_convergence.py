import numpy as np
import pytest
from numpy.testing import assert_allclose

from ansatz.inference import ess_bulk, ess_mean, ess_tail, mcse_mean, r_hat


def chains(kind):
    r = np.random.default_rng(1)
    if kind == "independent":
        return r.normal(size=(4, 200))
    if kind == "slow":
        noise, x = r.normal(size=(3, 301)), np.zeros((3, 301))
        for t in range(1, 301):
            x[:, t] = 0.9 * x[:, t - 1] + noise[:, t]
        return x
    if kind == "apart":
        return r.normal(size=(4, 100)) + np.arange(4)[:, None]
    if kind == "heavy":
        return r.standard_cauchy((3, 151))
    if kind == "short":
        return r.normal(size=(2, 11))
    return r.integers(0, 3, (4, 100)).astype(float)


ARVIZ = {  # 0.23.4: R-hat, bulk, tail and mean ESS, standard error of the mean
    "independent": (1.0100997205665552, 834.085900151714, 741.2547671184135, 833.1492403460376,
                    0.03408450890965228),
    "slow": (1.0638179665935543, 36.98402684203224, 107.73295129081892, 38.350439813091064,
             0.3749653701363011),
    "apart": (1.6159211304244399, 7.330445034726304, 159.39658692117197, 7.1363419160979795,
              0.5427106756883827),
    "heavy": (1.003854667791021, 414.59119938025407, 453.09287794373716, 464.10226932003286,
              15.895421102565388),
    "short": (1.105689248305148, 26.020599913279625, 19.41747572815534, 26.020599913279625,
              0.11119281883284712),
    "ties": (0.9977671908060455, 395.99537329639986, 400.0, 396.52933677121206,
             0.04119993723931927),
}  # fmt: skip


@pytest.mark.parametrize("kind", ARVIZ)
def test_it_is_what_arviz_computes(kind):
    x = chains(kind)
    found = [float(f(x)) for f in (r_hat, ess_bulk, ess_tail, ess_mean, mcse_mean)]
    assert_allclose(found, ARVIZ[kind], rtol=1e-10)


def test_quantities_are_taken_one_by_one():
    x = np.stack([chains("independent"), chains("independent") ** 3], -1)
    for function in (r_hat, ess_bulk, ess_tail, ess_mean, mcse_mean):
        both = function(x)
        assert_allclose(both, [function(x[..., 0]), function(x[..., 1])])


def test_ranks_do_not_change_under_a_monotone_map():
    x = chains("slow")
    assert_allclose(ess_bulk(x), ess_bulk(np.exp(x)))
    assert_allclose(ess_tail(x), ess_tail(np.exp(x)))


def test_fewer_than_four_draws_are_refused():
    with pytest.raises(ValueError, match=r"4 draws or more, got \(4, 3\)"):
        r_hat(np.zeros((4, 3)))
