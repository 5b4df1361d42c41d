import pytest
import torch
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.networks import AttentionGate, AttentionUNet, UNet, UNet3d
from ansatz.spec import InputSpec


def sizes(network, x):
    """Cells along the last axis after each block, from the first to the last."""
    found = []
    blocks = [*network.down, *reversed(network.merge)]
    for block in blocks:
        block.register_forward_hook(lambda module, given, y: found.append(y.shape[-1]))
    found.append(network(x).shape[-1])
    return found[1:] + found[:1] if len(found) < len(blocks) else found


def test_the_unpadded_network_has_the_sizes_of_the_paper():
    """M235: 572 pixels; 568, 280, 136, 64, 28 on the way down; 388 out; 64 to 1024 channels."""
    with torch.device("meta"):
        network = UNet(InputSpec.grid(1, 572, 572), 2, padded=False, norm=None)
        found = sizes(network, torch.empty(1, 1, 572, 572))
    assert found[:5] == [568, 280, 136, 64, 28]
    assert found[5:] == [52, 100, 196, 388, 388]
    assert network.output_size(572, 572) == (388, 388)
    assert [block[2].out_channels for block in network.down] == [64, 128, 256, 512, 1024]


def test_its_parameters_are_those_of_figure_1():
    """Two 3x3 convolutions per block, 2x2 up-convolutions that halve, one 1x1: 23 layers."""
    with torch.device("meta"):
        network = UNet(1, 2, norm=None)
    c = [64, 128, 256, 512, 1024]
    conv = [9 * a * b + b for a, b in zip([1, *c[:-1]], c, strict=True)] + [
        9 * b * b + b for b in c
    ]
    up = [4 * 2 * a * a + a for a in c[:-1]] + [9 * 2 * a * a + a + 9 * a * a + a for a in c[:-1]]
    assert sum(p.numel() for p in network.parameters()) == sum(conv) + sum(up) + 2 * 64 + 2
    layers = [m for m in network.modules() if isinstance(m, torch.nn.Conv2d)]
    assert len(layers) + len(network.up) == 23


def test_the_3d_network_has_the_sizes_channels_and_parameters_of_the_paper():
    """M236: three down-samplings; 132 x 132 x 116 -> 44 x 44 x 28; 19,069,955 parameters."""
    with torch.device("meta"):
        network = UNet3d(3, 3, padded=False)
        assert network(torch.empty(1, 3, 132, 132, 116)).shape == (1, 3, 44, 44, 28)
    channels = [[layer.out_channels for layer in block[::3]] for block in network.down]
    assert channels == [[32, 64], [64, 128], [128, 256], [256, 512]]
    with torch.device("meta"):
        plain = UNet3d(3, 3, norm=None)
    # The paper counts neither its norms nor biases of its up-convolutions.
    biases = sum(up.bias.numel() for up in plain.up)
    assert sum(p.numel() for p in plain.parameters()) - biases == 19_069_955


def test_an_unpadded_answer_depends_on_its_own_surroundings_alone():
    """Shift equivariance by the total stride, which padding would break at the border."""
    network = UNet(1, 2, depth=2, width=3, padded=False).eval()
    x = torch.randn(1, 1, 48, 52)
    assert network.output_size(44) == (4,)
    assert_close(network(x[..., 4:, :])[..., :4, :], network(x)[..., 4:8, :])


@pytest.mark.parametrize("up", ["transposed", "upsample"])
def test_a_padded_answer_far_from_the_border_is_the_unpadded_one(up):
    options = {"depth": 1, "width": 3, "up": up}
    padded, unpadded = UNet(2, 2, **options), UNet(2, 2, padded=False, **options)
    unpadded.load_state_dict(padded.state_dict())
    x = torch.randn(1, 2, 36, 36)
    whole, inner = padded.eval()(x), unpadded.eval()(x)
    # Both pool the same pairs only if the border taken off above is even: 2 pixels are.
    assert inner.shape[-1] == 20
    assert_close(whole[..., 10:26, 10:26], inner[..., 2:18, 2:18])


def test_zeros_at_the_end_do_not_move_the_answer():
    """A size that is no multiple of 2^depth is continued by zeros and cropped again."""
    network, x = UNet(1, 2, depth=2, width=3).eval(), torch.randn(2, 1, 9, 10)
    wide = torch.zeros(2, 1, 12, 12)
    wide[..., :9, :10] = x
    assert_close(network(x), network(wide)[..., :9, :10])


def test_sizes_that_do_not_fit_are_named():
    network = UNet(1, 1, depth=2, width=2, padded=False)
    with pytest.raises(UsageError, match=r"cannot take 46 pixels along an axis.*take 44 or 48"):
        network(torch.zeros(1, 1, 44, 46))
    with pytest.raises(UsageError, match=r"cannot take 3 pixels along an axis.*; take 44\.$"):
        network(torch.zeros(1, 1, 44, 3))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"depth": 0}, r"depth of unet must be a whole number in \[1, 10\], got 0"),
        ({"up": "nearest"}, "up of unet must be 'transposed' or 'upsample', got 'nearest'"),
        ({"norm": "layer"}, "norm of unet must be 'batch' or None, got 'layer'"),
        ({"doubling": True}, "doubling of unet must be 'after' or 'before', got True"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(UsageError, match=message):
        UNet(1, 1, **options)
    with pytest.raises(UsageError, match="unet3d takes volumes, got a grid of 2 axes"):
        UNet3d(InputSpec.grid(1, 8, 8), 1)


def test_the_gate_is_the_equation():
    """M237: sigma(psi relu(W_x x + W_g g + b_g) + b_psi) x, place by place of the coarse grid."""
    gate, x, g = AttentionGate(2, 4, 6), torch.randn(2, 4, 6, 8), torch.randn(2, 6, 3, 4)
    for parameter in gate.parameters():
        torch.nn.init.normal_(parameter)
    alpha = torch.empty(2, 1, 3, 4)
    for i in range(3):
        for j in range(4):
            patch = x[:, :, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
            seen = torch.einsum("bcij,kcij->bk", patch, gate.fine.weight)
            told = g[:, :, i, j] @ gate.coarse.weight[:, :, 0, 0].T + gate.coarse.bias
            score = torch.relu(seen + told) @ gate.score.weight[:, :, 0, 0].T + gate.score.bias
            alpha[:, :, i, j] = torch.sigmoid(score)
    wide = torch.nn.functional.interpolate(alpha, scale_factor=2, mode="bilinear")
    assert_close(gate(x, g), wide * x)


def test_open_gates_leave_a_plain_u_net():
    plain, gated = UNet(1, 2, depth=2, width=4), AttentionUNet(1, 2, depth=2, width=4)
    gated.load_state_dict(plain.state_dict(), strict=False)
    for gate in gated.gates:
        torch.nn.init.constant_(gate.score.bias, 1000.0)
    x = torch.randn(2, 1, 8, 8)
    assert_close(gated.eval()(x), plain.eval()(x))
    for alpha in gated.attention(x):
        assert (alpha == 1).all()


def test_an_unpadded_network_can_be_gated():
    network = AttentionUNet(1, 2, depth=1, width=2, padded=False).eval()
    assert network(torch.randn(1, 1, 20, 24)).shape == (1, 2, *network.output_size(20, 24))


def test_the_attention_of_an_unpadded_network_is_that_of_the_pixels_that_pass():
    network = AttentionUNet(1, 2, depth=2, width=2, padded=False)
    found = network.attention(torch.randn(1, 1, 44, 48))
    assert [alpha.shape[2:] for alpha in found] == [(8, 12), (8, 10)]


def test_looking_at_the_attention_changes_nothing():
    network, x = AttentionUNet(1, 2, depth=1, width=2), torch.randn(3, 1, 8, 8)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    alone = network.attention(x[:1])[0]
    assert_close(network.attention(x)[0][:1], alone)  # rows do not see each other
    assert network.training and network.down[0].training
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
