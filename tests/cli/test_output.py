import json
import os
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ansatz.cli.output import number, plain, print_table, printable, require_free, text_of
from ansatz.errors import ResourceError, UsageError


@given(st.text())
def test_nothing_that_steers_a_terminal_is_left(text):
    kinds = {unicodedata.category(character) for character in printable(text)}
    assert not kinds & {"Cc", "Cf", "Cs", "Zl", "Zp"}


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_plain_text_stays_what_it_is(text):
    assert printable(text) == text


def test_a_name_of_ten_kilobytes_is_cut_and_marked():
    assert printable("x" * 10_000, limit=10) == "x" * 9 + "…"


def test_markup_in_a_column_name_is_text(capsys):
    print_table(["column"], [["[bold red]a[/]"], ["\x1b[31mb"], [":smile:"]])
    assert capsys.readouterr().out.split() == [
        "column",
        "[bold",
        "red]a[/]",
        "\\x1b[31mb",
        ":smile:",
    ]


def test_a_pipe_gets_whole_lines(capsys):
    print_table(["a", "b"], [["x" * 150, "y" * 150]], limit=None)
    assert len(capsys.readouterr().out.splitlines()[1].rstrip()) == 150 + 2 + 150


def test_numbers_are_read_at_a_glance():
    values = [1.23456, 123456.7, 1e-5, 3, True, None, float("nan"), float("inf"), "text"]
    shown = ["1.235", "123,457", "1e-05", "3", "True", "-", "-", "inf", "text"]
    assert [number(value) for value in values] == shown


def refuse(path, overwrite=False):
    with pytest.raises(UsageError) as caught:
        require_free(Path(path), overwrite=overwrite, advice="Do otherwise.")
    return str(caught.value)


def test_what_exists_is_not_replaced_unasked(tmp_path):
    assert refuse(tmp_path).endswith("exists. Do otherwise.")
    require_free(tmp_path, overwrite=True, advice="")


def test_a_dangling_link_counts_as_something(tmp_path):
    link = tmp_path / "link"
    try:
        link.symlink_to(tmp_path / "nowhere")
    except OSError:
        pytest.skip("this system makes no links")
    assert "exists" in refuse(link)


def test_folders_on_the_way_may_be_missing(tmp_path):
    require_free(tmp_path / "a" / "b" / "model", overwrite=False, advice="")


def test_a_file_on_the_way_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    assert "is a file, not a folder" in refuse(tmp_path / "file" / "model")


def test_a_name_of_300_characters_is_refused_in_words(tmp_path):
    assert "Choose another path" in refuse(tmp_path / ("x" * 300))


def test_a_nul_in_a_path_is_refused_in_words(tmp_path):
    assert "Choose another path" in refuse(f"{tmp_path}/a\0b")


def test_spaces_and_unicode_are_fine(tmp_path):
    require_free(tmp_path / "ein Modell für später 模型", overwrite=False, advice="")


@pytest.mark.skipif(
    os.name == "nt" or not hasattr(os, "geteuid") or os.geteuid() == 0,
    reason="root may write anywhere",
)
def test_a_folder_that_may_not_be_written_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(ResourceError, match="no permission"):
        require_free(tmp_path / "model", overwrite=False, advice="")


def test_no_permission_is_a_lack_of_resource(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(ResourceError, match="no permission in"):
        require_free(tmp_path / "model", overwrite=False, advice="")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e300, 1e300) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_what_json_can_say_is_said_unchanged(value):
    assert plain(value) == value


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_text_survives_the_round_trip(text):
    assert json.loads(text_of({"name": text})) == {"name": text}


def test_what_is_not_a_number_is_null():
    value = {"a": float("nan"), "b": [float("inf"), np.float32("nan")], "c": torch.tensor(1.5)}
    assert json.loads(text_of(value)) == {"a": None, "b": [None, None], "c": 1.5}


def test_arrays_paths_and_numpy_numbers_become_plain():
    value = [np.arange(2), np.int64(3), np.bool_(True), Path("a"), (1,), {1: 2}]
    assert plain(value) == [[0, 1], 3, True, "a", [1], {"1": 2}]


def test_an_undecodable_file_name_is_still_a_document():
    assert json.loads(text_of("a\udcff").encode("utf-8")) == "a\udcff"
