import pytest
import torch
from torch.nn.functional import pad

from ansatz.layers import mirror_pad


@pytest.mark.parametrize("size", [(7,), (6, 7), (4, 6, 7)], ids=str)
def test_it_is_torchs_reflection_where_torch_allows_it(size):
    x = torch.randn(2, 3, *size)
    padding = ((3, 1), (0, 2), (2, 5))[-len(size) :]
    flat = [n for pair in reversed(padding) for n in pair]
    assert torch.equal(mirror_pad(x, padding), pad(x, flat, mode="reflect"))


def test_a_wide_border_is_reflected_again_and_again():
    x = torch.arange(4.0)
    wide = mirror_pad(x, ((13, 17),))
    assert torch.equal(wide[13:17], x)
    for place in range(-13, 20):  # even about both outermost cells
        if place + 13 < len(wide) and 0 <= 13 - place < len(wide):
            assert wide[13 + place] == wide[13 - place]
        if 0 <= 19 - place < len(wide):
            assert wide[13 + place] == wide[19 - place]


def test_a_single_cell_is_repeated_and_no_border_changes_nothing():
    x = torch.randn(2, 1, 5)
    assert torch.equal(mirror_pad(x, ((2, 1), (0, 0))), x.expand(2, 1, 5).repeat(1, 4, 1))
    assert mirror_pad(x, ((0, 0), (0, 0))) is x
