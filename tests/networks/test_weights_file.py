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
from torch.testing import assert_close

from ansatz.errors import ModelError
from ansatz.networks import read_weights
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
