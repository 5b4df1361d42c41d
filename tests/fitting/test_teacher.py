"""Networks that are trained on the predictions of a fitted model."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch.testing import assert_close
from typer.testing import CliRunner

import ansatz
from ansatz import Classifier, Regressor
from ansatz.cli.main import app
from ansatz.data import Batch
from ansatz.errors import UsageError
from ansatz.fitting.teacher import QUANTILES
from ansatz.likelihoods import Normal
from ansatz.training import Supervised
from ansatz.training.distillation import TeacherObjective

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(150, 3))
Y = X[:, 0] + 0.3 * GENERATOR.normal(size=150)
CODES = (Y > 0).astype(int) + (Y > 1)
SMALL = {"widths": (8,), "epochs": 60, "learning_rate": 1e-2, "dropout": 0.0, "holdout": 0.0}


@pytest.fixture(scope="module")
def numbers():
    return Regressor(epochs=30).fit(X, Y)


@pytest.fixture(scope="module")
def classes():
    return Classifier(epochs=30).fit(X, CODES)


def test_the_loss_of_numbers_is_that_of_outcomes_which_the_teacher_draws():
    likelihood, batch = Normal(), Batch.of(torch.randn(4, 2), torch.randn(4))
    batch = batch._replace(index=torch.tensor([7, 3, 11, 5]))
    index, soft = torch.tensor([3, 5, 7, 11]), torch.randn(4, QUANTILES)
    made = TeacherObjective(Supervised(likelihood), index, soft, temperature=1.0, weight=0.3)
    total, count = made(torch.nn.Identity(), batch)
    naive = 0.0
    for row, place in enumerate([2, 0, 3, 1]):
        raw = batch.inputs[0][row : row + 1]
        taught = sum(likelihood.training_loss(raw, q.reshape(1)) for q in soft[place]) / QUANTILES
        naive += 0.7 * likelihood.training_loss(raw, batch.target[row : row + 1]) + 0.3 * taught
    assert_close(total, naive.sum()) and assert_close(count, torch.tensor(4.0))
    assert_close(
        made.evaluate(torch.nn.Identity(), batch).total,
        likelihood.loss(batch.inputs[0], batch.target).sum(),
    )
    assert made.state_dict().keys() == made.plain().state_dict().keys()


def test_a_student_of_numbers_follows_its_teacher_where_outcomes_do_not():
    teacher = Regressor(epochs=30).fit(X, -Y)
    student = Regressor(**SMALL, teacher=teacher, teacher_weight=1.0).fit(X, Y)
    assert np.corrcoef(student.predict(X), teacher.predict(X))[0, 1] > 0.95
    sds = [np.diff(model.interval(X, level=0.68)).mean() / 2 for model in (student, teacher)]
    assert sds[0] == pytest.approx(sds[1], rel=0.25)
    assert student.model_.notes == ("the predictions of Regressor are 100% of the loss.",)


@pytest.mark.parametrize("codes", [CODES, CODES > 0], ids=["three", "two"])
def test_a_student_of_classes_follows_its_teacher_where_labels_do_not(codes):
    other = codes.max() - codes if codes.dtype == int else ~codes
    teacher = Classifier(epochs=60, learning_rate=1e-2).fit(X, other)
    student = Classifier(**SMALL, teacher=teacher, teacher_weight=1.0).fit(X, codes)
    assert np.mean(student.predict(X) == teacher.predict(X)) > 0.9


def test_a_saved_model_teaches_from_the_command_line(numbers, tmp_path):
    table = tmp_path / "table.csv"
    pd.DataFrame(X, columns=list("abc")).assign(y=Y).to_csv(table, index=False)
    teacher, student = str(tmp_path / "teacher"), str(tmp_path / "student")
    words = [
        "fit",
        str(table),
        "--target",
        "y",
        "--likelihood",
        "normal",
        "-q",
        "--set",
        "epochs=2",
    ]
    for more in (["--out", teacher], ["--out", student, "--teacher", teacher]):
        done = CliRunner().invoke(app, [*words, *more])
        assert done.exit_code == 0, done.output
    assert "are 50% of the loss" in done.output.replace("\n", " ")
    model = ansatz.load(student)
    assert model.teacher == teacher and model.model_.posterior.networks[0].objective.state_dict()


@pytest.mark.parametrize(
    "options, data, message",
    [
        ({"teacher_weight": 0.5}, (X, CODES), "needs a teacher"),
        ({"teacher": 3}, (X, CODES), "a fitted estimator, got a int"),
        ({"teacher": "classes", "teacher_weight": 2}, (X, CODES), r"in \[0, 1\], got 2.0 and 2"),
        ({"teacher": "classes"}, (X[:, :2], CODES), "fitted to other columns"),
        ({"teacher": "classes"}, (X, CODES > 0), r"knows the classes \[0, 1, 2\]"),
        ({"teacher": "classes"}, (X, CODES + 1), r"knows the classes \[0, 1, 2\]"),
        ({"teacher": "numbers"}, (X, CODES), "another kind of outcome"),
        ({"teacher": "classes", "network": "linear"}, (X, CODES), "'teacher' is for the training"),
        ({"teacher": "classes", "likelihood": "ordinal"}, (X, CODES), "no logit for each class"),
    ],
)
def test_a_teacher_that_does_not_go_is_named(options, data, message, numbers, classes):
    known = {"numbers": numbers, "classes": classes}
    options = {
        **options,
        **({"teacher": known[options["teacher"]]} if options.get("teacher") in known else {}),
    }
    with pytest.raises(UsageError, match=message):
        Classifier(epochs=1, **options).fit(*data)


def test_a_teacher_of_numbers_has_values_that_the_student_can_have(numbers):
    with pytest.raises(UsageError, match="values that gamma does not have"):
        Regressor("gamma", epochs=1, teacher=numbers).fit(X, np.exp(Y))
    with pytest.raises(UsageError, match="numbers have none"):
        Regressor(epochs=1, teacher=numbers, teacher_temperature=2.0).fit(X, Y)


def test_partial_fits_have_no_teacher(numbers):
    with pytest.raises(UsageError, match="partial_fit has no teacher"):
        Regressor(teacher=numbers).partial_fit(X, Y)
