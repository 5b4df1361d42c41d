"""Tables in the files of other programs, and in archives."""

import builtins
import struct
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ansatz.data import infer_columns, read_table
from ansatz.errors import DataError, MissingExtraError

pyreadr = pytest.importorskip("pyreadr")
pyreadstat = pytest.importorskip("pyreadstat")
pytest.importorskip("openpyxl")
pytest.importorskip("xlrd")

FRAME = pd.DataFrame({"age": [31.0, 45.5, np.nan, 60.0], "sex": [1.0, 2.0, 2.0, 1.0]})
LABELS = {"sex": {1: "female", 2: "male"}}
CSV = b"age,town\n31,Jena\n45,Ulm\n"

WRITERS = {
    ".dta": lambda path: pyreadstat.write_dta(FRAME, path, variable_value_labels=LABELS),
    ".sav": lambda path: pyreadstat.write_sav(FRAME, path, variable_value_labels=LABELS),
    ".zsav": lambda path: pyreadstat.write_sav(
        FRAME, path, variable_value_labels=LABELS, compress=True
    ),
    ".xpt": lambda path: pyreadstat.write_xport(_words(), path, table_name="T"),
    ".rds": lambda path: pyreadr.write_rds(path, _words(), compress="gzip"),
    ".RData": lambda path: pyreadr.write_rdata(path, _words(), df_name="patients"),
    ".xlsx": lambda path: _words().to_excel(path, index=False),
    ".xls": lambda path: Path(path).write_bytes(_old_excel(_words())),
}


def _words():
    return FRAME.assign(sex=FRAME["sex"].map(LABELS["sex"]))


def _old_excel(frame):
    """A worksheet of Excel 2.1 (BIFF2), the oldest that .xls files hold: cell after cell."""
    records = [(0x0009, struct.pack("<HH", 7, 16))]  # begin of a worksheet
    for row, cells in enumerate([list(frame.columns), *frame.itertuples(index=False)]):
        for column, cell in enumerate(cells):
            place = struct.pack("<HH3x", row, column)
            if isinstance(cell, str):
                records.append((0x0004, place + bytes([len(cell)]) + cell.encode()))
            elif cell == cell:
                records.append((0x0003, place + struct.pack("<d", cell)))
    records.append((0x000A, b""))  # end
    return b"".join(struct.pack("<HH", kind, len(body)) + body for kind, body in records)


@pytest.fixture(params=WRITERS)
def written(request, tmp_path):
    path = tmp_path / f"patients{request.param}"
    WRITERS[request.param](str(path))
    return path


def test_values_gaps_and_labels_are_those_that_were_written(written, capfd):
    frame = read_table(written).frame
    np.testing.assert_array_equal(frame["age"], FRAME["age"])
    assert frame["sex"].astype(str).tolist() == ["female", "male", "male", "female"]
    assert infer_columns(frame)[1].levels == ("female", "male")
    assert capfd.readouterr() == ("", "")


def test_a_damaged_file_is_one_line_with_its_name(written):
    raw = written.read_bytes()
    written.write_bytes(raw[: len(raw) // 3])
    with pytest.raises(DataError, match=r"patients\.\w+ is not a readable \w+ file: ") as caught:
        read_table(written)
    assert "\n" not in str(caught.value)


def test_without_the_package_the_error_names_the_extra(written, monkeypatch):
    plain = builtins.__import__

    def refuse(name, *args, **more):
        if name.partition(".")[0] in ("openpyxl", "pyreadstat", "pyreadr", "xlrd"):
            raise ImportError(name)
        return plain(name, *args, **more)

    monkeypatch.setattr("importlib.import_module", refuse)
    with pytest.raises(MissingExtraError, match=r"files need .*ansatz-learn\[tables\]"):
        read_table(written)


def test_labels_of_some_values_only_stay_numbers(tmp_path):
    path = str(tmp_path / "t.sav")
    frame = pd.DataFrame({"income": [1200.0, 900.0, -9.0]})
    pyreadstat.write_sav(frame, path, variable_value_labels={"income": {-9: "refused"}})
    table = read_table(path)
    assert table.frame["income"].tolist() == [1200, 900, -9]
    assert table.notes == [
        "column 'income': only some values have labels (-9 'refused'): read as numbers."
    ]
    assert read_table(path, missing=["-9.0"]).frame["income"].isna().tolist() == [0, 0, 1]


def test_a_sheet_and_an_object_are_named_after_a_mark(tmp_path):
    book = tmp_path / "book.xlsx"
    with pd.ExcelWriter(book) as writer:
        FRAME.to_excel(writer, sheet_name="first", index=False)
        pd.DataFrame({"z": [1]}).to_excel(writer, sheet_name="second", index=False)
    assert list(read_table(book).frame) == ["age", "sex"]
    assert "sheet 'first'" in read_table(book).notes[0]
    assert list(read_table(f"{book}!second").frame) == ["z"]
    with pytest.raises(DataError, match="no sheet 'third'"):
        read_table(f"{book}!third")


def zipped(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, raw in members.items():
            archive.writestr(name.replace("__", "/").replace("_csv", ".csv"), raw)
    return path


def test_an_archive_with_one_table_is_that_table(tmp_path):
    path = zipped(tmp_path / "a.zip", **{"data__t_csv": CSV, "readme": b"words", ".DS_Store": b""})
    assert read_table(path).frame["age"].tolist() == [31, 45]
    assert read_table(f"{path}!data/t.csv").frame.shape == (2, 2)
    with pytest.raises(DataError, match=r"holds no file 'data/u.csv'. Did you mean 'a.zip!data/t"):
        read_table(f"{path}!data/u.csv")


def test_other_formats_are_read_from_archives(tmp_path):
    pyreadstat.write_dta(FRAME, str(tmp_path / "t.dta"), variable_value_labels=LABELS)
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(tmp_path / "t.dta", "t.dta")
    assert read_table(path).frame["sex"].tolist() == ["female", "male", "male", "female"]


@pytest.mark.parametrize("name", ["../outside.csv", "/outside.csv", "a/../../outside.csv"])
def test_a_member_never_leaves_the_archive(tmp_path, name):
    inner = tmp_path / "inner"
    inner.mkdir()
    with zipfile.ZipFile(inner / "a.zip", "w") as archive:
        archive.writestr(name, CSV)
    assert read_table(inner / "a.zip").frame.shape == (2, 2)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["a.zip", "inner"]


def test_what_an_archive_cannot_give_is_refused_in_one_line(tmp_path):
    two = zipped(tmp_path / "two.zip", a_csv=CSV, b_csv=CSV)
    with pytest.raises(DataError, match=r"holds 2 files: a.csv, b.csv. .*'two.zip!FILE'"):
        read_table(two)
    (tmp_path / "bad.zip").write_bytes(two.read_bytes()[:50])
    with pytest.raises(DataError, match="damaged zip archive"):
        read_table(tmp_path / "bad.zip")
    bomb = zipped(tmp_path / "bomb.zip", a_csv=b"a\n" + b"0\n" * 20_000_000)
    with pytest.raises(DataError, match=r"unpacks to 40,000,002 bytes from .* refused"):
        read_table(bomb)
    with pytest.raises(DataError, match="unpacks to"):
        read_table(zipped(tmp_path / "a.zip", a_csv=CSV), limit_bytes=10)
    nested = zipped(tmp_path / "n.zip", **{"two.zip": two.read_bytes()})
    with pytest.raises(DataError, match="is an archive itself"):
        read_table(nested)
    cell = zipped(tmp_path / "cell.zip", a_csv=b"a,b\n1,2\n3\n")
    with pytest.raises(DataError, match=r"cell.zip!a.csv, line 3: 1 cell, expected 2"):
        read_table(cell)
