import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz.errors import ModelError, UsageError
from ansatz.networks import VGG11, DenseNet121, GoogLeNet, LeNet5, ResNet18, load_weights
from ansatz.spec import InputSpec
from ansatz.storage import write_tensors


def resnet(channels=3, outputs=5, seed=0):
    torch.manual_seed(seed)
    return ResNet18(channels, outputs, width=2, stem="small")


@pytest.fixture
def saved(tmp_path):
    torch.save(resnet(seed=1).state_dict(), tmp_path / "w.pth")
    return tmp_path / "w.pth"


def test_the_network_is_the_one_that_was_saved(saved, tmp_path):
    network, x = resnet().eval(), torch.randn(2, 3, 8, 8)
    told = load_weights(network, saved, head="strict")
    assert_close(network(x), resnet(seed=1).eval()(x), rtol=0, atol=0)
    assert len(told.tensors) == len(network.state_dict()) and not told.fresh
    other = resnet().eval()
    load_weights(
        other, write_tensors(tmp_path / "w.safetensors", network.state_dict()), head="keep"
    )
    assert_close(other(x), network(x), rtol=0, atol=0)


def test_a_reset_head_stays_as_it_was_although_it_would_fit(saved):
    network, fresh = resnet(), resnet()
    told = load_weights(network, saved)
    assert torch.equal(network.fc.weight, fresh.fc.weight)
    assert torch.equal(network.conv1.weight, resnet(seed=1).conv1.weight)
    assert told.fresh == ("fc.weight", "fc.bias") and "left fresh: fc.weight, fc.bias" in str(told)


def test_a_head_of_other_outputs_is_kept_only_if_it_fits(saved):
    assert load_weights(resnet(outputs=7), saved, head="keep").fresh == ("fc.weight", "fc.bias")
    assert load_weights(resnet(outputs=5), saved, head="keep").fresh == ()
    with pytest.raises(ModelError, match=r"'fc.weight' is \(5, 16\), expected \(7, 16\).*reset"):
        load_weights(resnet(outputs=7), saved, head="strict")


def test_a_file_of_a_backbone_alone_will_do(tmp_path):
    state = {k: v for k, v in resnet(seed=1).state_dict().items() if not k.startswith("fc.")}
    torch.save(state, tmp_path / "w.pth")
    assert load_weights(resnet(), tmp_path / "w.pth").fresh == ("fc.weight", "fc.bias")
    with pytest.raises(ModelError, match=r"lacks 2 \(fc.weight, fc.bias\)"):
        load_weights(resnet(), tmp_path / "w.pth", head="strict")


def test_other_names_are_counted_and_the_first_are_named(saved):
    torch.manual_seed(0)
    network = VGG11(3, 5, width=2, hidden=4)
    before = {k: v.clone() for k, v in network.state_dict().items()}
    with pytest.raises(ModelError) as caught:
        load_weights(network, saved)
    message = str(caught.value)
    assert "lacks 20 (features.0.weight, features.0.bias, features.3.weight and 17 more)" in message
    assert "holds 122 unknown (conv1.weight, bn1.weight, bn1.bias and 119 more)" in message
    assert all(torch.equal(before[k], v) for k, v in network.state_dict().items())


def test_other_channels_are_refused_unless_asked_for(saved):
    with pytest.raises(ModelError, match=r"'conv1.weight' is \(2, 3, 3, 3\).*channels='mean'"):
        load_weights(resnet(channels=1), saved)
    assert load_weights(resnet(channels=1), saved, channels="mean").adapted == ("conv1.weight",)
    assert load_weights(resnet(), saved, channels="mean").adapted == ()


@pytest.mark.parametrize("rule", ["mean", "repeat"])
@pytest.mark.parametrize("channels", [1, 2, 6])
def test_equal_channels_are_seen_as_before(saved, rule, channels):
    network = resnet(channels=channels).eval()
    load_weights(network, saved, head="strict", channels=rule)
    x = torch.randn(2, 1, 8, 8)
    if rule == "repeat" and channels % 3:  # the old channels do not come out even
        assert network(x.expand(-1, channels, -1, -1)).isfinite().all()
    else:
        old = resnet(seed=1).eval()
        assert_close(network(x.expand(-1, channels, -1, -1)), old(x.expand(-1, 3, -1, -1)))


def test_counters_of_batches_may_be_missing_as_in_old_files(tmp_path):
    state = resnet(seed=1).state_dict()
    torch.save({k: v for k, v in state.items() if "tracked" not in k}, tmp_path / "w.pth")
    told = load_weights(resnet(), tmp_path / "w.pth", head="strict")
    assert len(told.tensors) == len(state) - 20 and not told.fresh


def test_the_old_names_of_dense_layers_are_known(tmp_path):
    network = DenseNet121(1, 2, growth=2, blocks=(1, 1, 1, 1))
    old = {
        k.replace("norm1.", "norm.1.").replace("norm2.", "norm.2.").replace("conv1.", "conv.1.")
        .replace("conv2.", "conv.2."): v
        for k, v in network.state_dict().items()
    }  # fmt: skip
    torch.save(old, tmp_path / "w.pth")
    assert not load_weights(network, tmp_path / "w.pth", head="strict").fresh


def test_auxiliary_heads_of_a_file_are_left_out_of_a_network_without(tmp_path):
    torch.save(GoogLeNet(1, 2, width=0.05).state_dict(), tmp_path / "w.pth")
    alone = GoogLeNet(1, 2, width=0.05, auxiliary=False)
    told = load_weights(alone, tmp_path / "w.pth", head="strict")
    assert len(told.tensors) == len(alone.state_dict())
    assert all(name.startswith("aux") for name in told.unused) and told.unused


def test_weights_of_lower_precision_are_widened_and_bad_numbers_refused(saved, tmp_path):
    state = resnet(seed=1).state_dict()
    half = {k: v.half() if v.is_floating_point() else v for k, v in state.items()}
    torch.save(half, tmp_path / "half.pth")
    network = resnet()
    load_weights(network, tmp_path / "half.pth")
    assert network.conv1.weight.dtype == torch.float64
    state["bn1.bias"][0] = torch.nan
    torch.save(state, tmp_path / "nan.pth")
    with pytest.raises(ModelError, match=r"'bn1.bias' holds numbers that are not finite"):
        load_weights(resnet(), tmp_path / "nan.pth")


def test_any_module_loads_too_its_last_part_being_the_head(tmp_path):
    network = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    torch.save({f"module.{k}": v for k, v in network.state_dict().items()}, tmp_path / "w.pt")
    assert load_weights(network, tmp_path / "w.pt").fresh == ("2.weight", "2.bias")


def test_a_wrong_choice_is_an_error_of_usage(saved):
    with pytest.raises(UsageError, match="head must be one of reset, keep, strict, got 'new'"):
        load_weights(LeNet5(InputSpec.grid(1, 12, 12), 2), saved, head="new")


def refusal(tmp_path, state, **options):
    torch.save(state, tmp_path / "w.pth")
    with pytest.raises(ModelError) as caught:
        load_weights(resnet(channels=1).float(), tmp_path / "w.pth", **options)
    message = str(caught.value)
    assert message.isprintable() and len(message) < 400
    return message


@pytest.mark.parametrize("rule", ["mean", "repeat"])
@pytest.mark.parametrize(
    "kernel, says",
    [
        (torch.zeros(5), r"'conv1.weight' is (5,), expected (2, 1, 3, 3)"),
        (torch.zeros(2, 3, 3, 3, dtype=torch.long), "is (2, 3, 3, 3), expected (2, 1, 3, 3)"),
        (torch.zeros(2, 0, 3, 3), "is (2, 0, 3, 3), expected (2, 1, 3, 3)."),
        (torch.zeros(2, 3, 3, 3).to_sparse(), "is (2, 3, 3, 3), expected (2, 1, 3, 3)."),
        (torch.zeros(2, 3, 5, 5), "is (2, 3, 5, 5), expected (2, 1, 3, 3)."),
    ],
    ids=["vector", "whole numbers", "no channels", "sparse", "other window"],
)
def test_a_kernel_that_cannot_be_adapted_is_refused_in_one_line(tmp_path, rule, kernel, says):
    told = refusal(tmp_path, {**resnet().state_dict(), "conv1.weight": kernel}, channels=rule)
    assert says in told


def test_a_kernel_of_eight_bits_is_adapted_too(tmp_path):
    state = resnet(seed=1).state_dict()
    state["conv1.weight"] = state["conv1.weight"].to(torch.float8_e4m3fn)
    torch.save(state, tmp_path / "w.pth")
    network = resnet(channels=1)
    load_weights(network, tmp_path / "w.pth", channels="mean")
    total = state["conv1.weight"].double().sum(1, keepdim=True)
    assert_close(network.conv1.weight.detach(), total)


@pytest.mark.parametrize(
    "value, says",
    [
        (torch.full((2,), 1e300, dtype=torch.float64), "not finite in torch.float32"),
        (torch.full((2,), torch.inf).to(torch.float8_e5m2), "not finite in torch.float32"),
        (torch.ones(2).to_sparse(), "torch.sparse_coo, expected torch.float32"),
        (torch.ones(2, dtype=torch.complex64), "complex64, torch.strided, expected torch.float32"),
    ],
    ids=["too large", "eight bits", "sparse", "complex"],
)
def test_numbers_that_the_network_cannot_hold_are_refused(tmp_path, value, says):
    state = {**resnet(channels=1).state_dict(), "bn1.bias": value}
    assert says in refusal(tmp_path, state)


def test_names_that_steer_a_terminal_are_spelled_out(tmp_path):
    told = refusal(tmp_path, {"a\nb\x1b[2J": torch.ones(1)})
    assert r"a\nb\x1b[2J" in told


def test_what_is_unused_is_told_in_the_order_of_the_file(tmp_path):
    torch.save(GoogLeNet(1, 2, width=0.05).state_dict(), tmp_path / "w.pth")
    alone = GoogLeNet(1, 2, width=0.05, auxiliary=False)
    told = load_weights(alone, tmp_path / "w.pth", head="strict")
    names = [key for key in torch.load(tmp_path / "w.pth") if key.startswith("aux")]
    assert list(told.unused) == names


def test_a_dictionary_of_tensors_is_loaded_like_its_file(saved):
    one, two = resnet(outputs=7), resnet(outputs=7)
    state = {f"module.{name}": values for name, values in resnet(seed=1).state_dict().items()}
    assert load_weights(one, state)[1:] == load_weights(two, saved)[1:]
    assert_close(one.state_dict(), two.state_dict(), rtol=0, atol=0)
