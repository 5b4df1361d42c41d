import json

import pytest

from ansatz.cli.options import make_config, read_config
from ansatz.errors import UsageError

LEAST = {"data": "houses.csv", "target": ["price"]}


def test_toml_and_json_say_the_same(tmp_path):
    toml, as_json = tmp_path / "fit.toml", tmp_path / "fit.json"
    toml.write_text('target = ["price"]\nseed = 3\n[options]\nwidths = [8, 8]\n')
    as_json.write_text(json.dumps({"target": ["price"], "seed": 3, "options": {"widths": [8, 8]}}))
    assert read_config(toml) == read_config(as_json)


def test_one_target_needs_no_list():
    assert make_config({**LEAST, "target": "price"}, "x").request.given["target"] == ["price"]


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"likelyhood": "gamma"}, "unknown key 'likelyhood'. Did you mean 'likelihood'?"),
        ({"_target_": "os.system"}, "unknown key '_target_'"),
        ({"seed": "3"}, "seed: .*integer.*'3'"),
        ({"seed": -1}, "seed: .*greater than or equal to 0"),
        ({"test": 1.0}, "test: .*less than 1"),
        ({"test": float("nan")}, "test: .*finite"),
        ({"folds": 1}, "folds: .*at least 2|folds: .*greater than or equal to 2"),
        ({"overwrite": "yes"}, "overwrite: .*boolean"),
        ({"roles": {"a": 1}}, "roles.a: .*string"),
        ({"time_limit": 0.0}, "time_limit: .*greater than 0"),
    ],
    ids=str,
)
def test_a_wrong_key_or_value_is_named(wrong, message):
    with pytest.raises(UsageError, match=f"^fit.toml: {message}"):
        make_config({**LEAST, **wrong}, "fit.toml")


@pytest.mark.parametrize("given", [{}, {"target": []}], ids=str)
def test_what_is_missing_is_named_as_the_user_spells_it(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"missing\. houses\.csv does not exist"):
        make_config({"data": "houses.csv"}, "ansatz fit")
    (tmp_path / "houses.csv").write_text("area;price\n1;2\n")
    with pytest.raises(UsageError, match=r"--target COLUMN is missing\. Columns: area, price\."):
        make_config({"data": "houses.csv", **given}, "ansatz fit")
    with pytest.raises(UsageError, match=r"Columns: a, b\."):
        make_config({"data": "houses.csv", "names": ["a", "b"], **given}, "ansatz fit")


@pytest.mark.parametrize(
    "name, content",
    [
        ("fit.toml", b"target = "),
        ("fit.toml", b"a = 1\na = 2\n"),
        ("fit.toml", b"\xff\xfe"),
        ("fit.json", b"[1]"),
        ("fit.json", b'{"a": 1, "a": 2}'),
        ("fit.json", b"[" * 100_000),
        ("fit.json", b"x" * (1 << 20) + b"x"),
    ],
    ids=["cut", "twice", "no text", "no table", "twice in JSON", "deep", "large"],
)
def test_a_file_that_is_no_configuration_is_refused_in_one_line(tmp_path, name, content):
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(UsageError, match=f"--config .*{name}") as caught:
        read_config(file)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"none\.toml: No such file"):
        read_config(tmp_path / "none.toml")


def test_the_configuration_covers_every_option_of_fit():
    import inspect

    from ansatz.cli.fit import fit

    own = {"config", "print_config", "dry_run", "as_json", "help_all"}
    options = set(inspect.signature(fit).parameters) - own
    assert options == set(make_config(LEAST, "x").to_dict())
