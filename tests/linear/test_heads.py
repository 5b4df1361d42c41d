import torch

from ansatz.linear.heads import find_redundancy


def test_rows_far_in_a_tail_whose_gradient_nearly_vanishes_make_nothing_redundant():
    """A gradient of 1e-170 has a square of 0: its length must not be taken for 0."""
    faint = torch.tensor([1.0, 1e-170, 0.0, 1.0, 1e-310]).double()
    loss = lambda z, y: y * (z[:, 0] + y * z[:, 1] ** 2 + z[:, 0] * z[:, 1])  # noqa: E731
    found = find_redundancy(loss, faint, torch.zeros(2).double(), torch.ones(2).double())
    assert found.columns == ()
