"""Mutated files (S4): whatever a file holds, the only error is ours."""

import hashlib
import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ansatz.errors import ModelError
from ansatz.storage import (
    encode_json,
    encode_tensors,
    pack_state,
    read_json,
    read_tensors,
    unpack_state,
)
from ansatz.storage.folder import FileEntry, Manifest, decode_manifest, encode_manifest

TENSORS = encode_tensors(
    {"a": torch.arange(3.0), "b": torch.ones(2, 2, dtype=torch.int8), "c": torch.zeros(0, 4)}
)
MANIFEST = encode_manifest(
    Manifest(1, "model", {"ansatz": "0.1.0"}, {"step": 3}, {"a.json": FileEntry.of(b"{}")})
)
STATE = encode_json(
    pack_state({0: (1.5, float("inf")), "m": [torch.ones(1)], "s": {"$x": None}})[0]
)

# Eight kinds of mutation: 800 files in every run, 100 000 in the slow one.
FEW, MANY = settings(max_examples=100), settings(max_examples=12_500, derandomize=False)


def read(name, content):
    """Reads as the library would; only a ModelError is an answer besides a value."""
    try:
        if name == "tensors":
            found = read_tensors(content)
            assert sum(tensor.nbytes for tensor in found.values()) <= len(content)
        elif name == "manifest":
            decode_manifest(content)
        else:
            unpack_state(read_json(content), {"m.0": torch.ones(1)})
    except ModelError as error:
        assert 0 < len(str(error)) < 1000 and "\n" not in str(error)


START = {"tensors": TENSORS, "manifest": MANIFEST, "state": STATE}

edits = st.lists(
    st.tuples(
        st.sampled_from(["set", "insert", "delete", "copy", "digits"]),
        st.integers(0, 2**16),
        st.binary(min_size=1, max_size=8),
    ),
    min_size=1,
    max_size=6,
)


def mutate(content, changes):
    for kind, place, new in changes:
        i = place % (len(content) + 1)
        if kind == "set":
            content = content[:i] + new + content[i + len(new) :]
        elif kind == "insert":
            content = content[:i] + new + content[i:]
        elif kind == "delete":
            content = content[:i] + content[i + new[0] :]
        elif kind == "copy":
            content = content[:i] + content[i : i + new[0]] + content[i:]
        else:  # numbers are where headers lie
            digits = str(int.from_bytes(new, "big")).encode()
            content = content[:i] + digits + content[i:]
    return content


def mutated_bytes(name):
    return edits.map(lambda changes: mutate(START[name], changes))


def mutated_header(name):
    """The tensors' header edited, with its length made right again: deeper than random bytes go."""
    length = int.from_bytes(TENSORS[:8], "little")
    header, data = TENSORS[8 : 8 + length], TENSORS[8 + length :]

    def build(changes):
        text = mutate(header, changes)
        return len(text).to_bytes(8, "little") + text + data

    return edits.map(build)


scalars = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=4)
)
words = st.sampled_from(
    ["dtype", "shape", "data_offsets", "F32", "U8", "__metadata__", "$tensor", "$dict", "$tuple",
     "$float", "format", "kind", "files", "header", "versions", "sha256", "size", "nan", "m.0"]
)  # fmt: skip
structures = st.recursive(
    scalars | words,
    lambda s: st.lists(s, max_size=4) | st.dictionaries(words | st.text(max_size=3), s, max_size=4),
    max_leaves=12,
)


def structured(name):
    def build(value):
        text = json.dumps(value).encode()
        return len(text).to_bytes(8, "little") + text if name == "tensors" else text

    return structures.map(build)


def signed(name):
    """A manifest of any shape whose own sum is right."""

    def build(value):
        try:
            row = {**json.loads(MANIFEST), **value}
            row.pop("sha256")
            return encode_json({**row, "sha256": hashlib.sha256(encode_json(row)).hexdigest()})
        except ValueError:
            return MANIFEST

    fields = st.sampled_from(["format", "kind", "files", "header", "versions", "more"])
    return st.dictionaries(fields, structures, max_size=3).map(build)


MUTATIONS = {
    "bytes of tensors": ("tensors", mutated_bytes),
    "header of tensors": ("tensors", mutated_header),
    "any header of tensors": ("tensors", structured),
    "bytes of a manifest": ("manifest", mutated_bytes),
    "any manifest": ("manifest", structured),
    "any signed manifest": ("manifest", signed),
    "bytes of a state": ("state", mutated_bytes),
    "any state": ("state", structured),
}
every_mutation = pytest.mark.parametrize("name, strategy", MUTATIONS.values(), ids=MUTATIONS)


@pytest.mark.parametrize("name", START)
def test_the_file_before_its_mutation_is_read(name):
    if name == "tensors":
        assert set(read_tensors(TENSORS)) == {"a", "b", "c"}
    elif name == "manifest":
        assert decode_manifest(MANIFEST).header == {"step": 3}
    else:
        assert unpack_state(read_json(STATE), {"m.0": torch.ones(1)})[0] == (1.5, float("inf"))


@every_mutation
def test_a_mutated_file_is_read_or_refused_by_our_error(name, strategy):
    @FEW
    @given(strategy(name))
    def check(content):
        read(name, content)

    check()


@pytest.mark.slow
@pytest.mark.timeout(3600)
@every_mutation
def test_a_hundred_thousand_mutated_files(name, strategy):
    @MANY
    @given(strategy(name))
    def check(content):
        read(name, content)

    check()
