import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.networks import BasicBlock, Bottleneck, ResNet18, ResNet50
from ansatz.spec import InputSpec

BLOCKS = {
    "basic": lambda: BasicBlock(2, 8, 8),
    "bottleneck": lambda: Bottleneck(2, 8, 2),
}


@pytest.mark.parametrize("make", BLOCKS.values(), ids=BLOCKS)
def test_a_zero_factor_in_the_last_norm_makes_a_block_relu(make):
    block, x = make(), torch.randn(3, 8, 5, 6)
    nn.init.zeros_(block.last_norm.weight)
    assert_close(block(x), torch.relu(x))
    assert_close(block(x.abs()), x.abs())  # the identity on what a block before it gives


def test_blocks_that_start_as_the_identity_leave_the_stem_and_the_shortcuts():
    network, x = ResNet18(3, 4, width=4, zero_init_last=True), torch.randn(2, 3, 32, 32)
    h = network.maxpool(network.relu(network.bn1(network.conv1(x))))
    for stage in (network.layer1, network.layer2, network.layer3, network.layer4):
        h = h if stage[0].downsample is None else torch.relu(stage[0].downsample(h))
    assert_close(network(x), network.fc(h.mean((2, 3))))


@pytest.mark.parametrize(
    "spec, stem, cells",
    [
        (InputSpec.grid(1, 64, 64), "imagenet", [16, 8, 4, 2]),
        (InputSpec.grid(1, 64, 64), "small", [64, 32, 16, 8]),
        (InputSpec.grid(1, 64), "imagenet", [16, 8, 4, 2]),
        (InputSpec.grid(1, 16, 16, 16), "small", [16, 8, 4, 2]),
    ],
)
def test_each_stage_halves_the_pixels(spec, stem, cells):
    network, found = ResNet18(spec, 2, width=2, stem=stem).eval(), []
    for number in range(1, 5):
        network.get_submodule(f"layer{number}").register_forward_hook(
            lambda _, __, out: found.append(out.shape[-1])
        )
    network(torch.randn(1, 1, *spec.size))
    assert found == cells


def test_small_stems_and_widths_change_what_they_say():
    network = ResNet50(3, 2, width=8, stem="small")
    assert network.conv1.kernel_size == (3, 3) and isinstance(network.maxpool, nn.Identity)
    assert network.fc.in_features == 8 * 8 * 4


def test_a_wrong_stem_is_refused():
    with pytest.raises(UsageError, match="stem of resnet18 must be imagenet or small, got 'tiny'"):
        ResNet18(3, 2, stem="tiny")
