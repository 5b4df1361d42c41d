"""Rows of one patient stay on one side of every split within a fit."""

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from tests.estimators.conftest import TINY

from ansatz import Classifier, Regressor, Segmenter, SurvivalRegressor
from ansatz.errors import DataError
from ansatz.estimators import estimator
from ansatz.estimators.ranker import Ranker
from ansatz.fitting.recipe import Recipe
from ansatz.fitting.split import split, stopping_folds
from ansatz.training import Trainer

N = 60
PATIENT = np.array([f"p{k % 12}" for k in range(N)])
ONE_STEP = {"epochs": 1, "holdout": 0.25, "batch_size": 0}


def outcomes(kind):
    rng = np.random.default_rng(0)
    if kind is Classifier:
        return rng.integers(0, 2, N)
    if kind is Ranker:
        return np.array(["a>b>c", "b>a>c", "c>a>b"])[rng.integers(0, 3, N)]
    if kind is Segmenter:
        return rng.integers(0, 2, (N, 8, 8))
    return rng.uniform(1, 2, N)


@pytest.fixture
def seen(monkeypatch):
    """The rows that each training learned from, and those that stopped it."""
    found, original = [], Trainer.fit

    def spy(self, step, train, valid=None):
        rows = [
            np.array(sorted({int(i) for batch in source.batches(0) for i in batch.index}))
            for source in (train, valid)
        ]
        found.append(rows)
        return original(self, step, train, valid)

    monkeypatch.setattr(Trainer, "fit", spy)
    return found


@pytest.mark.parametrize("kind", [Regressor, Classifier, SurvivalRegressor, Ranker])
@pytest.mark.parametrize("shape", [(N, 3), (N, 8, 8)])
def test_no_patient_is_trained_on_and_stops_the_fit(kind, shape, seen):
    X, y = np.random.default_rng(1).normal(size=shape), outcomes(kind)
    network = {"widths": (4,)} if len(shape) == 2 else {"network": "linear_grid"}
    kind(**ONE_STEP, **network).fit(X, y, groups=PATIENT)
    ((learned, stopped),) = seen
    assert len(learned) + len(stopped) == N and len(stopped) == 15
    assert not set(PATIENT[learned]) & set(PATIENT[stopped])


def test_no_patient_is_on_both_sides_of_a_fit_of_masks(seen):
    X, y = np.random.default_rng(1).normal(size=(N, 8, 8)), outcomes(Segmenter)
    model = Segmenter(network="linear_pixels", epochs=1, batch_size=N)
    model.fit(X, y, groups=PATIENT)
    ((learned, stopped),) = seen
    assert len(stopped) and not set(PATIENT[learned]) & set(PATIENT[stopped])


@pytest.mark.parametrize("shape", [(N, 3), (N, 8, 8)])
def test_members_of_an_ensemble_leave_out_whole_patients(shape):
    X, y = np.random.default_rng(1).normal(size=shape), outcomes(Regressor)
    network = {"widths": (4,)} if len(shape) == 2 else {"network": "linear_grid"}
    model = Regressor("normal", inference="ensemble", members=3, epochs=1, **network)
    left_out_by = model.fit(X, y, groups=PATIENT).model_.out_of_fold.who[:, 0].numpy()
    members = {patient: set(left_out_by[patient == PATIENT]) for patient in PATIENT}
    assert all(len(one) == 1 for one in members.values())
    assert set.union(*members.values()) == {0, 1, 2}


def test_folds_that_count_the_steps_of_few_rows_keep_patients_whole(numbers):
    mixed = np.array([*PATIENT[:30], *range(30)], dtype=object)  # words and numbers
    for groups in (PATIENT, mixed):
        job = Regressor().read(*numbers, groups=groups)
        folds = stopping_folds(job, Recipe(folds=5), seed=0)
        assert all(len(folds[torch.from_numpy(groups == g)].unique()) == 1 for g in groups)


def test_rows_of_weight_0_take_their_group_with_them(numbers):
    weight = (np.arange(N) >= 10).astype(float)
    job = Regressor().read(*numbers, weight, groups=pd.Series(PATIENT, dtype="category"))
    assert job.group.tolist() == PATIENT[10:].tolist()


def test_the_test_of_the_data_leaves_groups_to_the_rest(numbers):
    """Only the rows that stop the training are chosen then, and by whole groups, too."""
    part = np.where(np.arange(N) < 12, "test", "train")
    job = Regressor().read(*numbers, groups=PATIENT)._replace(part=part)
    parts = split(job, Regressor(holdout=0.25).task(numbers[0]), 0.2, seed=0, given=True)
    group = PATIENT[parts.learn]
    assert set(group[parts.valid]).isdisjoint(np.delete(group, parts.valid)) and len(parts.valid)


@pytest.mark.parametrize(
    "groups, says",
    [
        (PATIENT[:-1], r"groups must have shape \(60,\), one per row, got \(59,\)"),
        (np.zeros((N, 1)), r"groups must have shape \(60,\).*got \(60, 1\)"),
        (["a", float("nan"), *PATIENT[2:]], "groups is missing at row 1: give that row"),
        (pd.Series([1, 2, None] * 20, dtype="Int64"), "groups is missing at row 2"),
    ],
)
def test_a_fault_in_groups_is_named(numbers, groups, says):
    with pytest.raises(DataError, match=says):
        Regressor(**TINY).fit(*numbers, groups=groups)


def test_one_group_cannot_stop_its_own_fit(numbers):
    with pytest.raises(DataError, match="1 distinct rows or groups cannot be split into 2 parts"):
        Regressor(**ONE_STEP).fit(*numbers, groups=np.zeros(N))
    Regressor(**TINY).fit(*numbers, groups=np.zeros(N))  # below 100 rows nothing is held out


def test_scikit_learn_routes_groups_to_the_fits_of_a_search(numbers, monkeypatch):
    seen, original = [], estimator.fit_model

    def spy(task, job, **options):
        seen.append(job.group)
        return original(task, job, **options)

    monkeypatch.setattr(estimator, "fit_model", spy)
    with sklearn.config_context(enable_metadata_routing=True):
        model = Regressor(**ONE_STEP).set_fit_request(groups=True)
        cross_val_score(model, *numbers, cv=GroupKFold(3), params={"groups": PATIENT})
        search = GridSearchCV(model, {"widths": [(2,), (4,)]}, cv=GroupKFold(2), refit=False)
        search.fit(*numbers, groups=PATIENT)
    assert [len(set(groups)) for groups in seen] == [8] * 3 + [6] * 4  # of 12 patients
