"""One record of what was asked; every option is written once and has one owner."""

import json
from collections import Counter

import numpy as np
import pytest
from typer.testing import CliRunner

import ansatz
from ansatz.cli.main import app
from ansatz.errors import UsageError
from ansatz.estimators import Classifier, Ranker, Regressor, Segmenter, SurvivalRegressor
from ansatz.fitting import FitOptions, Request
from ansatz.fitting.options import TuneOptions, declared
from ansatz.fitting.options.commands import InferenceSettings, SearchOptions
from ansatz.fitting.options.generative import GenerativeOptions, GenerativeSettings
from ansatz.fitting.options.sets import SetSettings
from ansatz.fitting.provenance import Provenance, provenance_of
from ansatz.fitting.request import OWNERS

OF_REQUESTS = {"likelihood", "network", "inference", "x", "random_state", "device", "time_limit"}
OF_REQUESTS |= {
    "inference_options",
    "likelihood_options",
    "network_options",
}  # by the constructors' signatures
TABLE = {"x": np.linspace(0, 1, 60), "y": np.linspace(1, 2, 60) ** 2}


def test_every_argument_of_an_estimator_is_declared_in_one_table():
    """Structures may share a table of options, like those of texts."""
    kinds = (Classifier, Ranker, Regressor, Segmenter, SurvivalRegressor)
    names = {name for kind in kinds for name in kind._get_param_names()}
    tables = {table for owner in OWNERS.values() for table in owner.settings}
    found = Counter(name for table in tables for name in declared(table))
    others = {name: found[name] for name in names - OF_REQUESTS if found[name] != 1}
    # Of texts, and of the questions beside images; of images, and of clouds.
    assert others == {"vocabulary": 2, "augment": 2}
    of_inferences = set(declared(InferenceSettings))  # inference_options={...}, --set
    of_inferences |= set(declared(GenerativeSettings))  # of synthesizers
    of_inferences |= set(declared(SetSettings))  # of estimators of sets
    assert found.keys() - names == of_inferences - names


def test_a_search_takes_the_options_of_a_fit_that_it_does_not_set_itself():
    own = {"folds", "force", "time_limit", "tensorboard", "progress", "validation_data"}
    own |= set(declared(GenerativeOptions))  # models of x are not searched
    shared = set(declared(FitOptions)) - own
    assert set(declared(TuneOptions)) - set(declared(SearchOptions)) == shared


@pytest.mark.parametrize(
    "given, kept",
    [
        ({"target": "y"}, {"target": ["y"]}),
        ({"target": ("a", "b")}, {"target": ["a", "b"]}),
        ({"seed": np.int64(3)}, {"seed": 3}),
        ({"seed": 0, "roles": None, "options": None, "header": True}, {}),
        ({"size": 32}, {"size": [32]}),
        ({"channels": None}, {"channels": None}),  # no channels, which is not the default
        ({"test": 0}, {"test": 0.0}),
    ],
    ids=str,
)
def test_what_is_given_is_kept_as_json_would_give_it(given, kept):
    assert Request.of("a.csv", given).given == kept


@pytest.mark.parametrize(
    "given, message",
    [
        ({"tagret": "y"}, "ansatz.fit: unknown key 'tagret'. Did you mean 'target'"),
        ({"processes": 2}, "unknown key 'processes'"),
        ({"seed": "3"}, "seed: .*integer"),
        ({"pages": "all"}, "pages: .*'auto', 'first', 'images' or 'volume'"),
        ({"size": [0]}, "size.0: .*greater than or equal to 1"),
    ],
)
def test_what_is_wrong_is_named(given, message):
    with pytest.raises(UsageError, match=message):
        Request.of("a.csv", given)


def test_objects_among_the_options_stay_what_they_are():
    masks, how = np.zeros((2, 3)), object()
    request = Request.of("a.csv", {"masks": masks, "options": {"augment": how}})
    assert request.given["masks"] is masks and request.settings() == {"augment": how}


def test_an_owner_may_be_named():
    options = {"training.epochs": 2, "network.dropout": 0.1, "network.residual": True}
    found = Request.of("a.csv", {"options": options}).settings()
    assert found == {"epochs": 2, "dropout": 0.1, "network.residual": True}
    for key, message in [("epochs.x", "nobody is called 'epochs'"), ("grid.bins", "not an option")]:
        with pytest.raises(UsageError, match=message):
            Request.of("a.csv", {"options": {key: 1}}).settings()


def test_folds_of_a_cross_validation_are_not_those_of_a_training():
    given = {"folds": 3, "optimizer": "sgd", "options": {"training.folds": 5}}
    request = Request.of("a.csv", given)
    assert request.settings() == {"optimizer": "sgd", "folds": 5}
    assert request.options["folds"] == 3


def test_options_with_an_owner_reach_the_fit():
    given = {"target": "y", "likelihood": "normal_mixture"}
    options = {"likelihood.components": 3, "training.epochs": 2, "network.widths": [4]}
    model = ansatz.fit(TABLE, **given, options=options).model
    assert model.likelihood_options == {"components": 3}
    assert (model.epochs, model.widths, model.network_options) == (2, [4], None)
    with pytest.raises(UsageError, match=r"likelihood\.comps: not an option of normal_mixture"):
        ansatz.fit(TABLE, **given, options={"likelihood.comps": 3})


GIVEN = {
    "target": ["y"],
    "event": "died",
    "likelihood": "weibull",
    "network": "mlp",
    "options": {"widths": [8, 8], "activation": "relu"},
    "test": 0.3,
    "drop": ["a b", "c"],
    "roles": {"zip": "categorical"},
    "delimiter": ";",
    "header": False,
    "missing": ["n/a", "-"],
    "size": [48, 64],
    "on_corrupt": "skip",
    "freeze": 2,
    "seed": 7,
}


def test_the_command_that_repeats_a_request_asks_for_the_same():
    import shlex

    request = Request.of("a.csv", GIVEN)
    assert request.given == GIVEN
    words = shlex.split(request.command("a.csv"))
    done = CliRunner().invoke(app, [*words[1:], "--print-config"])
    config = json.loads(done.stdout)
    assert {name: config[name] for name in GIVEN} == GIVEN
    assert eval(request.python("'a.csv'"), {"ansatz": Recorder}) == ("a.csv", request.given)


class Recorder:
    @staticmethod
    def fit(data, **options):
        return data, Request.of(data, options).given


def test_a_record_of_before_requests_still_loads():
    """What was asked for stood beside what came of it."""
    how = {"target": "y", "likelihood": "normal", "network": "linear", "seed": 3}
    now = provenance_of(ansatz.fit(TABLE, **how, inference="point").fitted)
    record = now.model_dump(mode="json")
    del record["request"], record["default_inference"]
    old = {"reader": {}, "roles": {}, "drop": [], "seed": 3, "folds": None, "x": "vector"}
    old |= {"likelihood": "normal", "inference": "point", "options": {}}
    found = Provenance.model_validate({**record, **old})
    assert found.request == now.request and found.asked.options["inference"] == "point"
    assert Provenance.model_validate(found.model_dump(mode="json")) == found


def test_a_record_of_before_the_automatic_inference_asks_for_a_point():
    now = provenance_of(ansatz.fit(TABLE, target="y", network="linear").fitted)
    record = now.model_dump(mode="json")
    assert now.asked.options["inference"] == "auto" and "inference" not in now.asked.given
    assert Provenance.model_validate(record) == now
    del record["default_inference"]
    old = Provenance.model_validate(record)
    assert old.asked.given == now.asked.given | {"inference": "point"}
    assert "--inference point" in old.asked.command("a.csv")


def test_weights_name_a_column():
    with pytest.raises(UsageError, match=r"--weights names a column.*--pretrained w\.pth"):
        ansatz.fit(TABLE, target="y", weights="w.pth")


def test_names_of_registries_are_known_in_any_spelling():
    given = {"likelihood": "Log-Normal", "network": "MLP", "inference": "Ensemble", "x": "Vector"}
    request = Request.of("t.csv", {"target": "y", **given})
    found = [request.options[name] for name in given]
    assert found == ["log_normal", "mlp", "ensemble", "vector"]
