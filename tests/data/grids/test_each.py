import numpy as np
import pytest
from PIL import Image

from ansatz.data.grids import read_grids
from ansatz.data.grids.read import read_each
from ansatz.errors import DataError


@pytest.fixture
def folder(tmp_path):
    """Images of three sizes, one of them in colour."""
    for k, size in enumerate([(4, 6), (5, 5), (8, 4)]):
        Image.new("RGB" if k == 1 else "L", size[::-1], k + 1).save(tmp_path / f"{k}.png")
    return tmp_path


def test_every_file_keeps_its_size(folder):
    notes = []
    found = list(read_each(folder, notes=notes, channels=1))
    assert [each.table.grids.shape[1:] for each in found] == [(4, 6), (5, 5), (8, 4)]
    assert [each.table.grids.names for each in found] == [("0.png",), ("1.png",), ("2.png",)]
    assert [each.size for each in found] == [None] * 3
    assert notes == ["some images have colours: they were read as grey."]


def test_a_size_that_is_asked_for_comes_with_the_image_s_own(folder):
    found = list(read_each(folder, notes=[], size=4))
    assert {each.table.grids.shape[1:] for each in found} == {(4, 4)}
    assert [each.size for each in found] == [(4, 6), (5, 5), (8, 4)]


def test_damaged_files_are_refused_or_left_out_and_told(folder):
    (folder / "1.png").write_text("none")
    with pytest.raises(DataError, match=r"1.png is not an image.*--skip-corrupt"):
        list(read_each(folder, notes=[]))
    notes = []
    assert len(list(read_each(folder, notes=notes, on_corrupt="skip"))) == 2
    assert len(notes) == 1 and notes[0].startswith("1 of 3 files left out:")
    assert "--skip-corrupt" not in notes[0]
    for k in range(3):
        (folder / f"{k}.png").write_text("none")
    with pytest.raises(DataError, match="Nothing is left"):
        list(read_each(folder, notes=[], on_corrupt="skip"))


def test_what_is_no_list_of_files_is_one_table():
    x = np.zeros((3, 4, 4), np.uint8)
    ((table, size, stack),) = read_each(x, notes=[], channels=1)
    assert len(table) == len(read_grids(x)) and size is stack is None
