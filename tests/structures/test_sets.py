"""Sets from the file to the prediction."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import ansatz
from ansatz import Classifier, Regressor
from ansatz.data import Sets
from ansatz.errors import DataError, UsageError

RNG = np.random.default_rng(0)
QUICK = {"options": {"steps": 60, "batch_size": 16}}


def long_table(count=120):
    sizes = RNG.integers(1, 6, count)
    owner = np.repeat(np.arange(count), sizes)
    dose = RNG.normal(size=len(owner))
    total = np.bincount(owner, dose, count)
    table = pd.DataFrame(
        {
            "patient": [f"p{k}" for k in owner],
            "age": RNG.integers(20, 80, count)[owner].astype(float),
            "dose": dose,
            "drug": RNG.choice(list("abc"), len(owner)),
            "visits": RNG.poisson(np.exp(0.4 * total))[owner],
            "excess": dose - (total / sizes)[owner],
        }
    )
    return table.sample(frac=1, random_state=0).reset_index(drop=True)


TABLE = long_table()


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets")
    TABLE.to_csv(folder / "long.csv", index=False)
    fit = ansatz.fit(
        str(folder / "long.csv"),
        x="set",
        identifier="patient",
        target="visits",
        likelihood="poisson",
        drop=["excess"],
        out=str(folder / "model"),
        **QUICK,
    )
    return folder, fit


def test_a_long_table_is_fitted_saved_and_predicted_by_the_name_of_the_set(fitted):
    folder, fit = fitted
    assert fit.structure == "set" and fit.network == "deepsets"
    assert sum(fit.rows.values()) == 120
    assert any("constant within sets, so of the sets: 'age'" in note for note in fit.notes)
    assert fit.linear is not None and np.isfinite(fit.linear["nll"])
    again = ansatz.load(folder / "model")
    shuffled = TABLE.sample(frac=1, random_state=1)
    one, other = (fit.model.predict(table) for table in (TABLE, TABLE))
    assert_array_equal(one, other)
    names = list(dict.fromkeys(shuffled["patient"]))
    place = [list(dict.fromkeys(TABLE["patient"])).index(name) for name in names]
    assert_allclose(again.predict(shuffled), one[place], rtol=0, atol=1e-10)


def test_an_outcome_that_varies_within_a_set_is_refused_with_row_and_name(fitted):
    folder, _ = fitted
    with pytest.raises(DataError, match=r"long.csv, row \d+: 'excess' varies within patient p\d+"):
        ansatz.fit(str(folder / "long.csv"), x="set", identifier="patient", target="excess")


def test_labels_are_outcomes_of_elements_in_the_order_of_the_file(fitted):
    folder, _ = fitted
    fit = ansatz.fit(
        str(folder / "long.csv"),
        x="set",
        identifier="patient",
        labels="excess",
        likelihood="normal",
        drop=["visits"],
        network="linear_set",
        options={"steps": 400, "learning_rate": 0.03},
    )
    assert sum(fit.rows.values()) == len(TABLE)
    assert fit.metrics["r2"] > 0.9  # the outcome is linear in the element and the mean
    new = TABLE.drop(columns=["excess", "visits"])
    assert np.corrcoef(fit.model.predict(new), TABLE["excess"])[0, 1] > 0.95


def test_no_set_is_divided_between_training_and_test():
    sets = Sets.of([RNG.normal(size=(4, 2)) for _ in range(100)])
    rows = sets.elements()
    from ansatz.data import split_rows

    parts = split_rows(rows.content_keys(), seed=0, test=0.3)
    owners = [set(rows.owners[part].tolist()) for part in (parts.train, parts.test)]
    assert not owners[0] & owners[1]


def test_files_of_arrays_hold_values_offsets_and_outcomes(tmp_path):
    sets = [RNG.normal(size=(n, 2)) for n in RNG.integers(0, 6, 100)]
    offsets = np.cumsum([0, *map(len, sets)])
    y = np.array([len(each) for each in sets])
    np.savez(tmp_path / "a.npz", x=np.concatenate(sets), offsets=offsets, y=y)
    fit = ansatz.fit(str(tmp_path / "a.npz"), x="set", likelihood="normal", **QUICK)
    assert fit.rows["test"] == 20
    z = np.concatenate(sets)[:, 0]
    np.savez(tmp_path / "b.npz", x=np.concatenate(sets), offsets=offsets, z=z)
    fit = ansatz.fit(str(tmp_path / "b.npz"), x="set", labels="z", likelihood="normal", **QUICK)
    assert sum(fit.rows.values()) == len(z)
    np.savez(tmp_path / "c.npz", x=np.array([[1], ["a"]], dtype=object), offsets=[0, 2])
    with pytest.raises(DataError, match=r"c.npz: it holds Python objects"):
        ansatz.fit(str(tmp_path / "c.npz"), x="set", target="y")
    np.savez(tmp_path / "d.npz", x=np.zeros((4, 2)), y=np.zeros(2))
    with pytest.raises(DataError, match=r"x of shape \(4, 2\) needs offsets"):
        ansatz.fit(str(tmp_path / "d.npz"), x="set", target="y")


def test_estimators_take_lists_and_a_set_alone_is_as_among_others():
    X = [RNG.normal(size=(n, 3)) for n in RNG.integers(0, 9, 120)]
    y = np.where([len(each) > 4 for each in X], "many", "few")
    model = Classifier(x="set", steps=200, batch_size=32).fit(X, y)
    assert model.score(X, y) > 0.85
    alone = np.concatenate([model.predict_proba([each]) for each in X[:6]])
    assert_allclose(alone, model.predict_proba(X)[:6], rtol=0, atol=1e-12)
    again = Classifier(x="set", steps=200, batch_size=32).fit(X, y)
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    members = Classifier(x="set", steps=30, batch_size=32, inference="ensemble", members=2)
    assert members.fit(X, y).predict_proba(X).shape == (120, 2)


def test_parts_are_kept_apart_by_pine(fitted):
    folder, _ = fitted
    how = {"x": "set", "identifier": "patient", "target": "visits", "likelihood": "poisson"}
    fit = ansatz.fit(
        str(folder / "long.csv"), network="pine", part="drug", drop=["excess"], **how, **QUICK
    )
    assert fit.model.model_.encoder.kinds == ["a", "b", "c"]
    with pytest.raises(DataError, match=r"set p\d+, element \d+: part 'z' is none of a, b, c"):
        fit.model.predict(TABLE.assign(drug="z"))
    with pytest.raises(UsageError, match="no column 'cure' to name the parts"):
        ansatz.fit(str(folder / "long.csv"), part="cure", **how, **QUICK)


def test_a_column_of_the_set_that_varies_in_new_data_is_refused(fitted):
    _, fit = fitted
    with pytest.raises(DataError, match=r"'age' varies within the set"):
        fit.model.predict(TABLE.assign(age=np.arange(len(TABLE))))


def test_a_fit_says_what_a_table_lacks(fitted):
    folder, _ = fitted
    with pytest.raises(UsageError, match="--id COL"):
        ansatz.fit(str(folder / "long.csv"), x="set", target="visits")
    with pytest.raises(UsageError, match="no column 'pat'"):
        ansatz.fit(str(folder / "long.csv"), x="set", identifier="pat", target="visits")
    with pytest.raises(UsageError, match="a table of elements needs the set of each row"):
        Regressor(x="set").fit(TABLE[["dose"]], TABLE["visits"])


def test_the_encoder_knows_training_rows_alone():
    from ansatz.structures.set.encoder import SetEncoder, load_encoder

    sets = Sets(TABLE[["age", "dose", "drug"]].sort_values("age"), [0, len(TABLE)])
    encoder = SetEncoder.fit(Sets.of([[[1.0], [3.0]], [[5.0]]]), np.ones(2), {})
    assert encoder.inputs(Sets.of([[[3.0]]])).values.tolist() == [[0.0]]
    again = load_encoder(json.loads(json.dumps(encoder.state())))
    assert again.spec == encoder.spec and len(sets) == 1


def test_a_certificate_reorders_the_elements_of_saved_models(fitted, capsys):
    from ansatz.cli.main import run

    folder, _ = fitted
    run(["certify", str(folder / "model"), str(folder / "long.csv"), "--samples", "4", "--json"])
    (found,) = json.loads(capsys.readouterr().out)
    assert found["group"] == "permutation" and found["largest"] < 1e-10


def test_folds_with_dropout_choose_the_same_steps_whatever_was_drawn_before():
    sets = [RNG.normal(size=(1 + k % 4, 2)) for k in range(40)]
    y = np.array([each.sum() for each in sets])
    found = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        model = Regressor(steps=12).fit(sets, y)
        assert torch.equal(torch.get_rng_state(), before)  # the user's own random state
        found.append(model.predict(sets))
    assert_array_equal(*found)
