import torch
from torch import nn
from torch.testing import assert_close

from ansatz.networks.layout import channels_last
from ansatz.training.optimizer_layout import align_state


def test_moments_of_a_file_move_the_weights_that_they_are_of():
    """Two steps at once, and one step before and one after the moments went through a file."""
    start = torch.randn(4, 3, 5, 5)

    def make():
        weight = nn.Parameter(start.clone().to(memory_format=torch.channels_last))
        return weight, torch.optim.AdamW([weight], lr=0.1, fused=True)

    def step(weight, optimizer, gradient):
        weight.grad = channels_last(gradient.clone())
        optimizer.step()

    gradients = torch.randn(2, 4, 3, 5, 5)
    expected, optimizer = make()
    step(expected, optimizer, gradients[0])
    middle = expected.detach().clone()
    saved = optimizer.state_dict()
    written = {
        name: value.contiguous().clone() for name, value in saved["state"][0].items()
    }  # as files hold tensors
    step(expected, optimizer, gradients[1])
    found, resumed = make()
    found.data.copy_(middle)
    resumed.load_state_dict({**saved, "state": {0: written}})
    align_state(resumed)
    step(found, resumed, gradients[1])
    assert_close(found, expected, rtol=0, atol=0)
