import io
import json
import os
import pickle
import tarfile
import tracemalloc

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn
from torch.testing import assert_close

from ansatz.errors import ModelError, UsageError
from ansatz.storage import (
    encode_json,
    encode_tensors,
    load_into,
    read_json,
    read_tensors,
    verify_folder,
    write_folder,
    write_tensors,
)
from ansatz.storage.tensors import _DTYPES, _ITEM_BYTES


def file(header, data=b"", length=None):
    """A safetensors file by hand: length, header, data."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def entry(begin, end, shape, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


# Every dtype, corner shapes.


@pytest.mark.parametrize("dtype", sorted(_DTYPES, key=str), ids=str)
def test_every_dtype_comes_back_to_the_bit(dtype):
    raw = torch.arange(2 * 3 * 8, dtype=torch.uint8).remainder(2)  # 0 and 1 are bools too
    tensor = raw.view(dtype).reshape(2, -1)
    back = read_tensors(encode_tensors({"x": tensor}))["x"]
    assert back.dtype == dtype and torch.equal(back.view(torch.uint8), tensor.view(torch.uint8))


def test_the_table_of_dtypes_is_that_of_the_library():
    theirs = {name: d.itemsize for name, d in safetensors.torch._TYPES.items() if d in _DTYPES}
    assert theirs == _ITEM_BYTES


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3, 4, 5)])
def test_every_shape_comes_back(shape):
    x = torch.randn(shape)
    assert_close(read_tensors(encode_tensors({"x": x, "y": x + 1})), {"x": x, "y": x + 1})


def test_no_tensors_is_a_file_too():
    assert read_tensors(encode_tensors({})) == {}


def test_the_library_reads_what_we_write_and_we_what_it_writes(tmp_path):
    tensors = {"a": torch.randn(3), "b": torch.arange(4)}
    write_tensors(tmp_path / "ours.safetensors", tensors)
    assert_close(safetensors.torch.load_file(tmp_path / "ours.safetensors"), tensors)
    safetensors.torch.save_file(tensors, tmp_path / "theirs.safetensors", {"format": "pt"})
    assert_close(read_tensors(tmp_path / "theirs.safetensors"), tensors)


def test_views_transposes_gradients_and_tied_weights_are_written_by_value():
    flat = torch.randn(12, requires_grad=True)
    tensors = {
        "whole": flat,
        "front": flat[:6].view(2, 3),
        "back": flat[6:],
        "turned": flat.view(3, 4).t(),
        "spread": flat[:1].expand(5),
        "again": flat,
        "parameter": nn.Parameter(flat[::2]),
    }
    back = read_tensors(encode_tensors(tensors))
    assert_close(back, {name: tensor.detach() for name, tensor in tensors.items()})
    assert len({tensor.data_ptr() for tensor in back.values()}) == len(back)


def test_a_network_with_tied_weights_comes_back_tied():
    def make():
        network = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
        network[1].weight = network[0].weight
        return network

    old, new = make(), make()
    load_into(new, read_tensors(encode_tensors(old.state_dict())), where="w")
    assert_close(new.state_dict(), old.state_dict())
    assert new[0].weight is new[1].weight


@pytest.mark.parametrize(
    "tensor",
    [
        torch.ones(2).to_sparse(),
        torch.empty(2, device="meta"),
        torch.ones(2, dtype=torch.complex128),
    ],
)
def test_what_the_format_cannot_hold_is_named(tensor):
    with pytest.raises(UsageError, match=r"tensor 'w' cannot be saved"):
        encode_tensors({"w": tensor})


def test_reading_is_bounded(tmp_path):
    path = write_tensors(tmp_path / "a.safetensors", {"x": torch.zeros(1000)})
    for source in (path, path.read_bytes()):
        with pytest.raises(ModelError, match=r"\d+ bytes, at most 1000 are read"):
            read_tensors(source, limit_bytes=1000)


# A file from a stranger: each fault its sentence, with the tensor's name (S5).

FAULTS = {
    "nothing": (b"", r"0 bytes, too short"),
    "seven bytes": (b"\0" * 7, r"7 bytes, too short"),
    "a header of 2^62 bytes": (file({}, length=2**62), r"claims 4611686018427387904 bytes"),
    "a header longer than the file": (file({}, length=3), r"truncated: its header claims 3 bytes"),
    "no header": (file(b""), r"line 1: not JSON"),
    "a list for a header": (file([]), r"not a JSON object"),
    "one name twice": (
        file(b'{"w":%b,"w":%b}' % ((json.dumps(entry(0, 4, [1])).encode(),) * 2), b"\0" * 4),
        r"the key 'w' appears twice",
    ),
    "overlap": (
        file({"v": entry(0, 8, [2]), "w": entry(4, 12, [2])}, b"\0" * 12),
        r"tensor 'w' overlaps",
    ),
    "the same bytes twice": (
        file({"v": entry(0, 8, [2]), "w": entry(0, 8, [2])}, b"\0" * 8),
        r"tensor 'w' overlaps",
    ),
    "gap": (
        file({"v": entry(0, 8, [2]), "w": entry(12, 16, [1])}, b"\0" * 16),
        r"4 bytes before tensor 'w' belong to none",
    ),
    "overflow": (file({"w": entry(0, 0, [2**32, 2**32])}), r"tensor 'w' .*overflows"),
    "overflow times nothing": (file({"w": entry(0, 0, [2**62, 0])}), r"tensor 'w' .*overflows"),
    "trailing bytes": (file({"w": entry(0, 4, [1])}, b"\0" * 9), r"5 bytes after the last tensor"),
    "truncated": (
        file({"w": entry(0, 8, [2])}, b"\0" * 7),
        r"truncated: 8 bytes of data expected, 7",
    ),
    "unknown dtype": (
        file({"w": entry(0, 4, [1], "F31")}, b"\0" * 4),
        r"'w' .*unknown dtype 'F31'",
    ),
    "dtype of a wrong type": (file({"w": entry(0, 4, [1], [])}, b"\0" * 4), r"'w' .*unknown dtype"),
    "negative size": (file({"w": entry(0, 4, [-1])}, b"\0" * 4), r"'w' .*impossible shape \[-1\]"),
    "fractional size": (file({"w": entry(0, 4, [1.0])}, b"\0" * 4), r"'w' .*impossible shape"),
    "true for a size": (file({"w": entry(0, 4, [True])}, b"\0" * 4), r"'w' .*impossible shape"),
    "1000 axes": (file({"w": entry(0, 4, [1] * 1000)}, b"\0" * 4), r"'w' .*impossible shape"),
    "offsets backwards": (file({"w": entry(4, 0, [1])}, b"\0" * 4), r"needs 4 bytes.*give -4"),
    "one offset": (
        file({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0]}}),
        r"'w' .*impossible offsets",
    ),
    "size and offsets disagree": (file({"w": entry(0, 8, [1])}, b"\0" * 8), r"'w' needs 4 bytes"),
    "a missing field": (file({"w": {"dtype": "F32", "shape": [1]}}), r"'w' must have exactly"),
    "an extra field": (
        file({"w": {**entry(0, 4, [1]), "code": "x"}}, b"\0" * 4),
        r"'w' must have exactly",
    ),
    "metadata of numbers": (file({"__metadata__": {"a": 1}}), r"__metadata__"),
    "deep nesting": (file(b'{"w":' * 50 + b"1" + b"}" * 50), r"nested deeper than 8"),
    "a name to confuse a terminal": (
        file({"\x1b[2J\u202e": entry(0, 4, [2])}, b"\0" * 4),
        r"tensor '\\x1b\[2J\\u202e' needs 8 bytes",
    ),
}


@pytest.mark.parametrize("content, sentence", FAULTS.values(), ids=FAULTS)
def test_each_fault_has_its_sentence(tmp_path, content, sentence):
    (tmp_path / "weights.safetensors").write_bytes(content)
    for source in (tmp_path / "weights.safetensors", content):
        with pytest.raises(ModelError, match=rf"^weights.safetensors.*{sentence}") as caught:
            read_tensors(source, name="weights.safetensors")
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def test_no_memory_is_asked_for_on_a_headers_word():
    content = file({"w": entry(0, 2**40, [2**38])})
    tracemalloc.start()
    try:
        with pytest.raises(ModelError, match=r"truncated"):
            read_tensors(content)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


# Against the architecture.


@pytest.mark.parametrize(
    "change, sentence",
    [
        (lambda t: t.pop("bias"), r"lacks the tensor 'bias'"),
        (lambda t: t.clear(), r"lacks the tensors 'weight', 'bias'"),
        (lambda t: t.update(scale=torch.ones(1)), r"holds the unknown tensor 'scale'"),
        (
            lambda t: t.update({f"x{i}": torch.ones(1) for i in range(9)}),
            r"holds the unknown tensors 'x0', 'x1', 'x2' and 6 more",
        ),
        (lambda t: t.update(bias=torch.ones(5)), r"tensor 'bias' is \(5,\), expected \(2,\)"),
        (
            lambda t: t.update(bias=torch.ones(2, dtype=torch.float32)),
            r"tensor 'bias' is torch.float32, expected torch.float64",
        ),
    ],
)
def test_a_misfit_is_named_and_nothing_is_loaded(change, sentence):
    module, other = nn.Linear(3, 2), nn.Linear(3, 2)
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    tensors = dict(other.state_dict())
    change(tensors)
    with pytest.raises(ModelError, match=f"^w.safetensors: {sentence}$"):
        load_into(module, tensors, where="w.safetensors")
    assert_close(module.state_dict(), before, rtol=0, atol=0)
    load_into(module, other.state_dict(), where="w.safetensors")
    assert_close(module.state_dict(), other.state_dict(), rtol=0, atol=0)


# Pickles in disguise (S1): refused, and their code never runs.


class Payload:
    def __init__(self, canary):
        self.canary = canary

    def __reduce__(self):
        return os.mkdir, (self.canary,)


def zipped(payload):
    torch.save({"w": payload}, buffer := io.BytesIO())
    return buffer.getvalue()


def legacy(payload):
    torch.save({"w": payload}, buffer := io.BytesIO(), _use_new_zipfile_serialization=False)
    return buffer.getvalue()


def tarred(payload):
    with tarfile.open(fileobj=(buffer := io.BytesIO()), mode="w") as archive:
        for name in ("storages", "tensors", "pickle"):
            content = pickle.dumps(payload)
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def npy(payload):
    np.save(buffer := io.BytesIO(), np.array([payload], dtype=object), allow_pickle=True)
    return buffer.getvalue()


def in_metadata(payload):
    text = pickle.dumps(payload, protocol=0).decode("latin-1")
    return file({"__metadata__": {"config": text}, "w": entry(0, 4, [2])}, b"\0" * 4)


DISGUISES = [pickle.dumps, zipped, legacy, tarred, npy, in_metadata]


def test_the_payload_is_live(tmp_path):
    pickle.loads(pickle.dumps(Payload(str(tmp_path / "canary"))))
    assert (tmp_path / "canary").exists()


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("name", ["weights.safetensors", "state.json", "manifest.json"])
def test_a_pickle_never_runs(tmp_path, disguise, name):
    canary = tmp_path / "canary"
    content = disguise(Payload(str(canary)))
    listed = {"weights.safetensors": {"w": torch.ones(1)}, "state.json": {"a": 1}}
    path = write_folder(tmp_path / "model", {**listed, name: content} if name in listed else listed,
                        kind="model")  # fmt: skip
    if name == "manifest.json":
        (path / name).write_bytes(content)
        with pytest.raises(ModelError):
            verify_folder(path, "model")
    else:  # the manifest vouches for it: a stranger can write a manifest too
        verify_folder(path, "model")
        with pytest.raises(ModelError, match=rf"^{name}"):
            (read_json if name == "state.json" else read_tensors)(path / name)
    assert not canary.exists()


@pytest.mark.parametrize("disguise", DISGUISES)
def test_a_pickle_for_a_folder_is_refused(tmp_path, disguise):
    (tmp_path / "model.pt").write_bytes(disguise(Payload(str(tmp_path / "canary"))))
    with pytest.raises(ModelError, match=r"model.pt: not a folder; a saved model is a folder"):
        verify_folder(tmp_path / "model.pt", "model")
    assert not (tmp_path / "canary").exists()


def test_a_pickle_as_text_in_json_is_only_text():
    text = pickle.dumps(print, protocol=0).decode()
    assert read_json(encode_json({"state": text})) == {"state": text}
