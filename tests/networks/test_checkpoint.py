"""Files of weights from anyone: tensors or a refusal, and nothing is ever run."""

import collections
import contextlib
import io
import pickle
import random
import struct
import tarfile
import zipfile

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz.errors import ModelError, UsageError
from ansatz.networks import (
    VGG11,
    DenseNet121,
    GoogLeNet,
    LeNet5,
    ResNet18,
    load_weights,
    read_weights,
)
from ansatz.spec import InputSpec
from ansatz.storage import write_tensors

WEIGHTS = {"conv.weight": torch.arange(6.0).view(2, 3), "conv.bias": torch.ones(2)}


class Canary:
    """Unpickling it writes a file."""

    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return (exec, (f"open({str(self.place)!r}, 'w').write('sung')",))


@pytest.fixture
def canary(tmp_path):
    return Canary(tmp_path / "sung")


def refused(path, canary, match):
    with pytest.raises(ModelError, match=match) as caught:
        read_weights(path)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300
    assert not canary.place.exists()


@pytest.mark.parametrize("zipped", [True, False])
def test_both_formats_of_torch_are_read(tmp_path, zipped):
    torch.save(WEIGHTS, tmp_path / "a.pth", _use_new_zipfile_serialization=zipped)
    for key, value in read_weights(tmp_path / "a.pth").items():
        assert_close(value, WEIGHTS[key])


def test_safetensors_are_read(tmp_path):
    assert read_weights(write_tensors(tmp_path / "a.safetensors", WEIGHTS)).keys() == WEIGHTS.keys()


@pytest.mark.parametrize("zipped", [True, False])
def test_code_in_a_file_is_refused_and_not_run(tmp_path, canary, zipped, monkeypatch):
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")  # nor can a setting allow it
    path = tmp_path / "a.pth"
    torch.save({**WEIGHTS, "x": canary}, path, _use_new_zipfile_serialization=zipped)
    refused(path, canary, r"a.pth: it holds Python objects \(.*exec\).* nothing was run")


def test_a_plain_pickle_with_code_is_refused_and_not_run(tmp_path, canary):
    for protocol in (0, 2, 4):
        (tmp_path / "a.pt").write_bytes(pickle.dumps(canary, protocol=protocol))
        refused(tmp_path / "a.pt", canary, "a.pt: ")


def test_code_in_a_tar_is_refused_and_not_run(tmp_path, canary):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name in ("sys_info", "storages", "tensors", "pickle"):
            content = pickle.dumps(canary, protocol=2)
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    refused(tmp_path / "a.tar", canary, "not a file of weights as torch.save writes it")


def test_a_whole_network_is_refused(tmp_path, canary):
    torch.save(torch.nn.Linear(2, 1), tmp_path / "a.pth")
    refused(tmp_path / "a.pth", canary, r"Python objects \(torch.nn.modules.linear.Linear\)")


def test_an_archive_that_unpacks_to_more_than_the_limit_is_refused(tmp_path, canary):
    with zipfile.ZipFile(tmp_path / "a.pth", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"\0" * 10**6)
    with pytest.raises(ModelError, match="unpacks to 1000000 bytes, at most 100000"):
        read_weights(tmp_path / "a.pth", limit_bytes=10**5)
    with pytest.raises(ModelError, match="at most 100 are read"):
        read_weights(tmp_path / "a.pth", limit_bytes=100)


def test_a_truncated_file_is_refused(tmp_path, canary):
    for zipped in (True, False):
        torch.save(WEIGHTS, tmp_path / "a.pth", _use_new_zipfile_serialization=zipped)
        content = (tmp_path / "a.pth").read_bytes()
        for size in (0, 1, 4, len(content) // 2, len(content) - 1):
            (tmp_path / "b.pth").write_bytes(content[:size])
            refused(tmp_path / "b.pth", canary, "b.pth: ")


def test_noise_is_refused(tmp_path, canary):
    for begin in (b"", b"PK\x03\x04", b"\x80\x02", b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."):
        (tmp_path / "a.pt").write_bytes(begin + struct.pack("<64Q", *range(64)))
        refused(tmp_path / "a.pt", canary, "a.pt: ")


@pytest.mark.parametrize("zipped", [True, False])
def test_a_damaged_byte_is_read_over_or_refused(tmp_path, zipped):
    torch.save(WEIGHTS, tmp_path / "a.pth", _use_new_zipfile_serialization=zipped)
    content, chance = (tmp_path / "a.pth").read_bytes(), random.Random(0)
    for _ in range(80):
        damaged = bytearray(content)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        (tmp_path / "b.pth").write_bytes(damaged)
        with contextlib.suppress(ModelError):
            read_weights(tmp_path / "b.pth")


def test_a_directory_that_claims_a_later_zip_is_refused(tmp_path, canary):
    torch.save(WEIGHTS, tmp_path / "a.pth")
    content = bytearray((tmp_path / "a.pth").read_bytes())
    content[content.index(b"PK\x01\x02") + 6] = 200  # version needed to extract
    (tmp_path / "b.pth").write_bytes(content)
    refused(tmp_path / "b.pth", canary, "damaged or truncated")


def test_what_is_no_state_dict_is_named(tmp_path, canary):
    for value, match in [
        ([torch.ones(1)], "holds a list, expected tensors by name"),
        ({}, "holds nothing"),
        ({"epoch": 3}, "holds a int under 'epoch'"),
        ({0: torch.ones(1)}, "holds a Tensor under '0'"),
    ]:
        torch.save(value, tmp_path / "a.pth")
        refused(tmp_path / "a.pth", canary, match)
    refused(tmp_path / "none.pth", canary, "none.pth: missing")
    refused(tmp_path / "a.h5", canary, r"weights come as .safetensors, .pth or .pt")


def test_what_wrappers_put_around_names_is_taken_off(tmp_path):
    wrapped = collections.OrderedDict((f"module._orig_mod.{k}", v) for k, v in WEIGHTS.items())
    torch.save({"epoch": 3, "optimizer": {"lr": 0.1}, "state_dict": wrapped}, tmp_path / "a.pth")
    assert read_weights(tmp_path / "a.pth").keys() == WEIGHTS.keys()
    mixed = {"model.a": torch.ones(1), "b": torch.ones(1)}  # not common to all: part of the name
    torch.save(mixed, tmp_path / "b.pth")
    assert read_weights(tmp_path / "b.pth").keys() == mixed.keys()


def test_containers_and_prefixes_without_end_are_refused_or_left(tmp_path, canary):
    cycle, deep = {}, {"w": torch.ones(1)}
    cycle["state_dict"] = cycle
    for _ in range(100):
        deep = {"model": deep}
    for found in (cycle, deep):
        torch.save(found, tmp_path / "a.pth")
        refused(tmp_path / "a.pth", canary, "a.pth: its weights lie more than 16 containers deep")
    torch.save({"module." * 3000 + "w": torch.ones(1)}, tmp_path / "b.pth")
    (name,) = read_weights(tmp_path / "b.pth")
    assert name == "module." * (3000 - 16) + "w"


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_tensor_without_a_shape_is_refused(tmp_path, canary):
    ragged = torch.nested.nested_tensor([torch.ones(1), torch.ones(2)])
    torch.save({"w": ragged}, tmp_path / "a.pth")
    refused(tmp_path / "a.pth", canary, "holds a Tensor under 'w'")


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


def test_what_is_unused_is_reported_in_the_order_of_the_file(tmp_path):
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
