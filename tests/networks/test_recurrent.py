"""Recurrent networks: padded as alone, generators, options."""

import pytest
import torch
from torch.testing import assert_close

from ansatz import networks
from ansatz.errors import UsageError
from ansatz.spec import InputSpec

NAMES = ["rnn", "lstm", "gru", "mingru", "minlstm", "lru"]
NUMBERS, TOKENS = InputSpec.sequence(features=3), InputSpec.sequence(vocabulary=9)
MASK = torch.arange(8) < torch.tensor([[8], [5], [0]])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("each", [False, True])
def test_padded_is_alone(name, bidirectional, each):
    net = networks.create(
        name, NUMBERS, 2, width=8, bidirectional=bidirectional, each=each
    ).eval()  # fmt: skip
    x = torch.randn(3, 8, 3)
    found = net(x.masked_fill(~MASK.unsqueeze(-1), torch.nan), MASK)
    for k, length in ((0, 8), (1, 5)):
        alone = net(x[k : k + 1, :length])[0]
        assert_close(found[k, :, :length] if each else found[k], alone)
    assert found.shape == ((3, 2, 8) if each else (3, 2)) and found.isfinite().all()
    found.square().sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in net.parameters())


@pytest.mark.parametrize("name", NAMES)
def test_tokens_are_embedded_and_weights_come_from_the_generator(name):
    before = torch.get_rng_state()
    one, two = (
        networks.create(name, TOKENS, 2, width=8, generator=torch.Generator().manual_seed(1)).eval()
        for _ in "12"
    )
    assert torch.equal(before, torch.get_rng_state())
    codes = torch.randint(1, 9, (3, 8)) * MASK
    assert_close(one(codes, MASK), two(codes, MASK), rtol=0, atol=0)
    assert not torch.equal(one(codes, MASK), one(codes.flip(1), MASK))


@pytest.mark.parametrize("name", NAMES)
def test_learns_which_half_is_larger(name):
    net = networks.create(name, InputSpec.sequence(features=1), 1, width=16, depth=1, dropout=0.0)
    x = torch.randn(64, 12, 1)
    y = (x[:, :6].sum((1, 2)) > x[:, 6:].sum((1, 2))).double()
    optimizer = torch.optim.Adam(net.parameters(), 0.01)
    for _ in range(150):
        loss = torch.nn.functional.binary_cross_entropy_with_logits(net(x).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.3  # a constant has log 2


def test_what_is_no_sequence_is_named():
    with pytest.raises(UsageError, match="lstm takes sequences, got inputs of structure 'vector'"):
        networks.create("lstm", 3, 1)
    with pytest.raises(UsageError, match="even width"):
        networks.create("gru", NUMBERS, 1, width=7, bidirectional=True)
    with pytest.raises(UsageError, match=r"values of shape \(B, T, 3\), got \(2, 5\)"):
        networks.create("gru", NUMBERS, 1)(torch.zeros(2, 5))
