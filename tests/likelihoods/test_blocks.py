import pytest
import torch
from torch.testing import assert_close

from ansatz.likelihoods.special.tensors import in_blocks


@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4)])
def test_blocks_of_any_size_give_the_whole(shape):
    x, y = torch.randn(shape), torch.randn(shape)
    for size in (1, 3, 100):
        assert_close(in_blocks(torch.add, x, y, size=size), x + y)
        pairs = in_blocks(lambda a, b: torch.stack([a, b], -1), x, y, size=size)
        assert_close(pairs, torch.stack([x, y], -1))
