import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansatz.errors import ModelError, UsageError
from ansatz.storage import encode_json, read_json, write_json

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=20,
)  # fmt: skip


@given(values)
def test_reading_undoes_writing_to_the_bit(value):
    assert repr(read_json(encode_json(value))) == repr(
        json.loads(json.dumps(value, sort_keys=True))
    )


@given(values)
def test_any_json_text_is_read_as_python_reads_it(value):
    text = json.dumps(value, indent=2)
    assert read_json(text.encode()) == json.loads(text)


def test_equal_values_have_equal_texts():
    assert encode_json({"b": 1, "a": 2.5}) == encode_json({"a": 2.5, "b": 1})


@pytest.mark.parametrize(
    "text, sentence",
    [
        (b"", r"line 1: not JSON"),
        (b'{"a": 1,\n "b": }', r"line 2: not JSON"),
        (b'{"a": 1}\n{"b": 2}', r"line 2: not JSON: Extra data"),
        (b'{"a": 1,\n\n "a": 2}', r"line 3: the key 'a' appears twice"),
        (b'{"a": 1,\n "\\u0061": 2}', r"line 2: the key 'a' appears twice"),
        (b'[{"a": 1}, {"a": 2},\n {"b": {"a": 3},\n "b": 4}]', r"line 3: the key 'b' appears"),
        (b'[1,\n "NaN",\n NaN]', r"line 3: NaN is not a finite number"),
        (b"[Infinity]", r"line 1: Infinity is not a finite number"),
        (b"[-Infinity]", r"line 1: -Infinity is not a finite number"),
        (b'["1e999",\n 1e999]', r"line 2: 1e999 is not a finite number"),
        (b'[1,\n "\xff"]', r"line 2: not UTF-8"),
        ('{"a": 1}'.encode("utf-16"), r"line 1: not UTF-8"),
        (b'\xef\xbb\xbf{"a": 1}', r"line 1: not JSON: .*BOM"),
        (b"9" * 5000, r"digits"),
        (b'"\\ud800"', r"surrogate"),
        (b"\n" + b"[" * 65 + b"]" * 65, r"line 2: nested deeper than 64"),
        (b'{"a":' * 1000 + b"1" + b"}" * 1000, r"line 1: nested deeper than 64"),
        (b"[" * 1_000_000, r"line 1: nested deeper than 64"),
        (b'{"a": ' + b'"\\"' * 1_000_000, r"not JSON"),
    ],
)
def test_each_fault_has_its_sentence(text, sentence):
    with pytest.raises(ModelError, match=rf"^state.json.*{sentence}"):
        read_json(text, name="state.json")


def test_brackets_in_strings_are_not_depth():
    text = json.dumps(["[" * 500, {'"[{': "\\" + "{" * 500}]).encode()
    assert read_json(text) == json.loads(text)


def test_a_thousand_small_objects_are_not_deep():
    assert len(read_json(encode_json([{"a": [i]} for i in range(1000)]))) == 1000


def test_the_deepest_allowed_is_read():
    assert read_json(b"[" * 64 + b"]" * 64)


def test_size_is_bounded_before_reading(tmp_path):
    (tmp_path / "big.json").write_bytes(b"[" + b"1," * 5000 + b"1]")
    for source in (tmp_path / "big.json", (tmp_path / "big.json").read_bytes()):
        with pytest.raises(ModelError, match=r"10003 bytes, at most 1000 are read"):
            read_json(source, limit_bytes=1000)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_a_pipe_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "state.json")
    with pytest.raises(ModelError, match=r"state.json: not a regular file"):
        read_json(tmp_path / "state.json")


def test_a_folder_and_a_missing_file_are_named(tmp_path):
    with pytest.raises(ModelError, match=r"not a regular file"):
        read_json(tmp_path)
    with pytest.raises(ModelError, match=r"state.json: missing"):
        read_json(tmp_path / "state.json")


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {1: {2}}, object(), "\ud800"])
def test_what_is_no_json_is_not_written(tmp_path, value):
    with pytest.raises(UsageError, match=r"cannot be written as JSON"):
        write_json(tmp_path / "a.json", value)
    assert os.listdir(tmp_path) == []


def test_an_existing_file_is_replaced_only_on_request(tmp_path):
    path = write_json(tmp_path / "a.json", 1)
    with pytest.raises(UsageError, match=r"a.json exists.*--overwrite"):
        write_json(path, 2)
    assert read_json(path) == 1
    assert read_json(write_json(path, 2, overwrite=True)) == 2
    assert os.listdir(tmp_path) == ["a.json"]
