import pytest
import torch
from torch.testing import assert_close

from ansatz.likelihoods import create
from ansatz.spec import TargetSpec

CLASSES = 6


def raw_of(logits, codes):
    """What a network that has read the sequence says of it: see the class."""
    log_p = logits.log_softmax(-1)
    own = log_p.gather(-1, codes.unsqueeze(-1)).squeeze(-1).sum(-1)
    steps = torch.full_like(own, codes.shape[-1])
    return torch.stack([own, log_p.mean(-1).sum(-1), steps], -1)


def test_the_loss_is_the_mean_over_steps_of_torchs_cross_entropy():
    logits, codes = torch.randn(4, 5, CLASSES), torch.randint(CLASSES, (4, 5))
    raw, y = raw_of(logits, codes), torch.zeros(4)
    likelihood = create("autoregressive", label_smoothing=0.2)
    assert likelihood.outputs(TargetSpec()) == raw.shape[-1]
    for loss, smoothing in ((likelihood.loss, 0.0), (likelihood.training_loss, 0.2)):
        expected = torch.nn.functional.cross_entropy(
            logits.mT, codes, label_smoothing=smoothing, reduction="none"
        )
        assert_close(loss(raw, y), expected.mean(-1))
    assert_close(likelihood.point(raw), raw[:, 0])


def test_the_outcome_is_not_looked_at_and_the_start_leaves_the_raw_numbers_alone():
    raw = raw_of(torch.randn(4, 5, CLASSES), torch.zeros(4, 5).long())
    likelihood = create("autoregressive")
    y = torch.tensor([torch.nan, -1.0, 0.5, torch.inf])
    likelihood.check(y)
    assert torch.equal(likelihood.loss(raw, y), likelihood.loss(raw, torch.zeros(4)))
    shift, scale = likelihood.start(y, torch.ones(4))
    assert torch.equal(shift + scale * raw, raw)


@pytest.mark.parametrize("smoothing", [-0.1, 1.0])
def test_a_share_that_is_none_is_refused(smoothing):
    with pytest.raises(ValueError, match=r"label_smoothing must be in \[0, 1\)"):
        create("autoregressive", label_smoothing=smoothing)
