"""The golden cases: small fits of every structure, outcome and inference, by public names alone.

Tables are here, images, signals and masks in golden_grids.py. Few steps each: they pin what a fit
does, not how good it becomes, and longer training would amplify the last bit of a processor.
"""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import golden_data as data
import golden_grids
import numpy as np
import torch
from golden_record import (
    Record,
    nested,
    of_array,
    of_command,
    of_fit,
    of_model,
    plain,
    with_evaluation,
)

import ansatz
from ansatz import Classifier, Ranker, Regressor, SurvivalRegressor

Case = Callable[[Path], Record]
CASES: dict[str, Case] = {}
FEATURES = ["a", "b", "c", "word"]


def case(function: Case) -> Case:
    """Adds a function to the cases by its name."""
    CASES[function.__name__] = function
    return function


def used(table: Any, *names: str) -> Any:
    """The features and these columns of a table."""
    return table[[*FEATURES, *names]]


# Numbers.


@case
def normal_few_rows(folder: Path) -> Record:
    """Below 100 rows: all at once in float64, the number of steps by folds."""
    table = used(data.numbers(70), "y")
    fit = ansatz.fit(table, target="y", likelihood="normal", out=folder / "model")
    return of_fit(fit, table.head(20), interval=0.9)


@case
def normal_every_role(folder: Path) -> Record:
    """The commands fit, predict and evaluate on numbers with gaps, words, dates and a counter."""
    path = data.write_csv(folder, data.flats(300))
    fit = [path, "--target", "rent", "--likelihood", "normal", "--set", "epochs=2"]
    found = of_command(folder, *fit, predict=[path, "--interval", "0.9"])
    return with_evaluation(found, folder, path)


@case
def likelihood_chosen_by_linear_models(folder: Path) -> Record:
    """Counts without a likelihood, below 100 rows."""
    table = used(data.numbers(80), "count")
    fit = ansatz.fit(table, target="count", options={"epochs": 5}, out=folder / "model")
    return of_fit(fit, table.head(20))


@case
def likelihood_chosen_by_networks(folder: Path) -> Record:
    """Positive numbers without a likelihood, from 100 rows on."""
    table = used(data.numbers(160), "positive")
    fit = ansatz.fit(table, target="positive", options={"epochs": 2}, out=folder / "model")
    return of_fit(fit, table.head(20))


@case
def poisson_with_exposure(folder: Path) -> Record:
    """Counts by years at risk."""
    table = used(data.numbers(250), "count", "years")
    options = {"target": "count", "likelihood": "poisson", "exposure": "years"}
    fit = ansatz.fit(table, **options, options={"epochs": 2}, out=folder / "model")
    return of_fit(fit, table.head(20), interval=0.9)


@case
def weights_and_offset(folder: Path) -> Record:
    """Frequency weights, a known part of the predictor, and another seed."""
    table = used(data.numbers(120), "y", "z", "copies")
    options = {"target": "y", "likelihood": "student_t", "weights": "copies", "offset": "z"}
    fit = ansatz.fit(table, **options, seed=3, options={"epochs": 2}, out=folder / "model")
    return of_fit(fit, table.head(20), interval=0.9)


@case
def binomial_trials(folder: Path) -> Record:
    """Successes of trials, by command."""
    path = data.write_csv(folder, used(data.numbers(200), "hits", "trials"))
    fit = [path, "--target", "hits", "--trials", "trials", "--likelihood", "binomial"]
    predict = [path, "--interval", "0.8"]
    return of_command(folder, *fit, "--set", "epochs=2", predict=predict)


@case
def two_targets(folder: Path) -> Record:
    """Two numbers at once, each with its own likelihood."""
    table = used(data.numbers(200), "y", "z")
    fit = ansatz.fit(
        table, target=["y", "z"], likelihood="normal", options={"epochs": 2}, out=folder / "model"
    )
    return of_fit(fit, table.head(20), interval=0.9)


@case
def dirichlet_shares(folder: Path) -> Record:
    """Parts of a whole, by command."""
    path = data.write_csv(folder, used(data.numbers(200), "sand", "silt", "clay"))
    fit = [path, "--target", "sand,silt,clay", "--likelihood", "dirichlet", "--set", "epochs=2"]
    return of_command(folder, *fit, predict=[path])


@case
def multivariate_normal(folder: Path) -> Record:
    """A vector with its covariance, by the estimator."""
    table = data.numbers(200)
    X, y = table[FEATURES], table[["y", "z"]].to_numpy()
    model = Regressor("multivariate_normal", epochs=2).fit(X[:150], y[:150])
    return of_model(model, folder, X[150:], y[150:])


@case
def options_of_every_kind(folder: Path) -> Record:
    """Of the likelihood, of the network, and heavy tails mapped to normal scores."""
    table = used(data.numbers(220), "y")
    options = {"delta": 0.7, "quantile": True, "widths": [16], "activation": "tanh", "epochs": 2}
    fit = ansatz.fit(table, target="y", likelihood="huber", options=options, out=folder / "model")
    return of_fit(fit, table.head(20))


@case
def quantiles(folder: Path) -> Record:
    """A loss that is not a likelihood."""
    table = data.numbers(200)
    X, y = table[FEATURES], table["y"]
    model = Regressor("quantiles", epochs=2).fit(X[:150], y[:150])
    return of_model(model, folder, X[150:], y[150:])


@case
def conformal(folder: Path) -> Record:
    """Intervals calibrated on rows that nothing else has seen."""
    table = data.numbers(240)
    X, y = table[FEATURES], table["y"]
    model = Regressor("normal", calibration=0.25, epochs=2).fit(X[:180], y[:180])
    return of_model(model, folder, X[180:], y[180:], interval=0.9, method="conformal")


@case
def linear_gamma(folder: Path) -> Record:
    """A generalised linear model with its summary."""
    table = used(data.numbers(200), "positive")
    fit = ansatz.fit(
        table, target="positive", likelihood="gamma", network="linear", out=folder / "model"
    )
    found = of_fit(fit, table.head(20), interval=0.9)
    found["numbers"] |= nested("summary", fit.summary().to_dict())
    return found


@case
def linear_diabetes(folder: Path) -> Record:
    """A linear model of a bundled set, by command."""
    fit = ["diabetes", "--target", "progression", "--network", "linear", "--likelihood", "normal"]
    found = of_command(folder, *fit, predict=["diabetes", "--interval", "0.9"])
    return with_evaluation(found, folder, "diabetes")


@case
def bins_from_ten_thousand_rows(folder: Path) -> Record:
    """Numbers by the bins of their range; one pass of large batches."""
    table = used(data.numbers(10_000), "y")
    options = {"epochs": 1, "batch_size": 1000, "widths": [16]}
    fit = ansatz.fit(
        table, target="y", likelihood="normal", test=0.0, options=options, out=folder / "model"
    )
    return of_fit(fit, table.head(20))


@case
def warm_start(folder: Path) -> Record:
    """A second fit that begins at the weights of the first."""
    table = data.numbers(200)
    X, y = table[FEATURES], table["y"]
    model = Regressor("normal", epochs=2, warm_start=True)
    model.fit(X[:150], y[:150]).fit(X[:150], y[:150])
    return of_model(model, folder, X[150:], y[150:])


@case
def weighted_groups(folder: Path) -> Record:
    """Weights and groups of an estimator's rows."""
    table = data.numbers(200)
    X, y = table[FEATURES], table["y"]
    model = Regressor("laplace", epochs=2, random_state=5)
    model.fit(X[:150], y[:150], table["copies"][:150], groups=table["group"][:150])
    return of_model(model, folder, X[150:], y[150:], interval=0.9)


@case
def partial_fit(folder: Path) -> Record:
    """Two passes, each over rows of its own, of numbers."""
    table = data.numbers(240)
    X, y = table[FEATURES], table["y"]
    model = Regressor("normal").partial_fit(X[:100], y[:100]).partial_fit(X[100:200], y[100:200])
    return of_model(model, folder, X[200:], y[200:])


# Classes.


@case
def bernoulli_breast_cancer(folder: Path) -> Record:
    """A bundled set of two classes, by command."""
    fit = ["breast-cancer", "--target", "diagnosis", "--set", "epochs=2"]
    return of_command(folder, *fit, predict=["breast-cancer"])


@case
def categorical_balanced(folder: Path) -> Record:
    """Class weights that move the decision, not the probabilities."""
    table = data.numbers(240)
    X, y = table[FEATURES], table["size"]
    model = Classifier(class_weight="balanced", epochs=2).fit(X[:180], y[:180])
    return of_model(model, folder, X[180:], y[180:])


@case
def ordinal(folder: Path) -> Record:
    """Ordered classes, by command."""
    path = data.write_csv(folder, used(data.numbers(220), "size"))
    order = 'classes=["low", "mid", "high"]'
    fit = [path, "--target", "size", "--likelihood", "ordinal", "--set", order]
    return of_command(folder, *fit, "--set", "epochs=2", predict=[path])


@case
def focal_with_temperature(folder: Path) -> Record:
    """A loss of classes, whose probabilities are recalibrated out of fold."""
    table = data.numbers(220)
    X, y = table[FEATURES], table["yes"]
    model = Classifier("focal", epochs=2).fit(X[:160], y[:160])
    return of_model(model, folder, X[160:], y[160:])


@case
def partial_fit_of_classes(folder: Path) -> Record:
    """Two passes, the first without one of the classes."""
    table = data.numbers(200)
    X, y = table[FEATURES], table["size"]
    model = Classifier()
    first = (y != "high").to_numpy().nonzero()[0][:60]
    model.partial_fit(X.iloc[first], y.iloc[first], classes=["high", "low", "mid"])
    model.partial_fit(X[100:160], y[100:160])
    return of_model(model, folder, X[160:], y[160:])


# Ensembles of tables.


@case
def ensemble_of_numbers(folder: Path) -> Record:
    """Below 500 rows: networks and the linear model, mixed and recalibrated."""
    table = used(data.numbers(180), "y")
    options = {"epochs": 4, "members": 3}
    fit = ansatz.fit(
        table,
        **{"target": "y", "likelihood": "normal", "inference": "ensemble"},
        options=options,
        out=folder / "model",
    )
    found = of_fit(fit, table.head(20), interval=0.9)
    found["numbers"]["recalibration"] = float(fit.model.recalibration_.value)
    conformal = fit.model.interval(table[FEATURES].head(20), 0.9, method="conformal")
    found["numbers"] |= of_array("conformal", conformal)
    return found


@case
def ensemble_of_classes(folder: Path) -> Record:
    """The mean of probabilities with a temperature, by command."""
    path = data.write_csv(folder, used(data.numbers(180), "size"))
    fit = [path, "--target", "size", "--inference", "ensemble", "--set", "members=3"]
    return of_command(folder, *fit, "--set", "epochs=2", predict=[path])


@case
def ensemble_of_a_module(folder: Path) -> Record:
    """A network of the user's: members are trained in turn."""
    table = data.numbers(160)
    X, y = table[["a", "b", "c"]].to_numpy(), table["y"].to_numpy()
    module = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    model = Regressor("normal", network=module, inference="ensemble", members=2, epochs=2)
    model.set_params(likelihood_options={"dispersion": "constant"}).fit(X[:120], y[:120])
    return of_model(model, folder, X[120:], y[120:], network=module, interval=0.9)


# Times.


@case
def cox(folder: Path) -> Record:
    """Hazards in proportion, by command."""
    path = data.write_csv(folder, data.patients(160)[["age", "arm", "weeks", "died"]])
    fit = [path, "--target", "weeks", "--event", "died", "--likelihood", "cox"]
    predict = [path, "--times", "12,24"]
    return of_command(folder, *fit, "--set", "epochs=5", predict=predict)


@case
def cox_ensemble(folder: Path) -> Record:
    """Log-risks averaged over members; rows that entered late."""
    table = data.patients(150)
    X, times = table[["age", "arm"]], table[["weeks", "died", "start"]].to_numpy()
    model = SurvivalRegressor("cox", inference="ensemble", members=2, epochs=4)
    model.fit(X[:110], times[:110])
    return of_model(model, folder, X[110:], times[110:], times=[12, 24])


@case
def weibull_censored(folder: Path) -> Record:
    """A likelihood of times of which some are known from below only."""
    table = data.patients(200)
    X, times = table[["age", "arm"]], table[["weeks", "died"]].to_numpy()
    model = SurvivalRegressor("weibull", epochs=2).fit(X[:150], times[:150])
    return of_model(model, folder, X[150:], times[150:], times=[12, 24], interval=0.9)


@case
def linear_weibull(folder: Path) -> Record:
    """The accelerated failure time model, its likelihood chosen among those of positive times."""
    table = data.patients(90)[["age", "arm", "weeks", "died"]]
    fit = ansatz.fit(table, target="weeks", event="died", network="linear", out=folder / "model")
    return of_fit(fit, table.head(20), interval=0.9)


@case
def discrete_hazard_of_two_causes(folder: Path) -> Record:
    """Incidences in the presence of each other."""
    table = data.patients(220)
    X, weeks, cause = table[["age", "arm"]], table["weeks"], table["cause"]
    model = SurvivalRegressor(
        "discrete_hazard", likelihood_options={"intervals": 5}, widths=[16], epochs=2
    )
    model.fit(X[:170], weeks[:170], event=cause[:170])
    outcomes = np.stack([weeks, cause], 1)
    return of_model(model, folder, X[170:], outcomes[170:], times=[24])


@case
def interval_censored(folder: Path) -> Record:
    """Times between two visits, by command."""
    path = data.write_csv(folder, data.patients(180)[["age", "arm", "from", "to"]])
    fit = [path, "--lower", "from", "--upper", "to", "--likelihood", "log_normal"]
    return of_command(folder, *fit, "--set", "epochs=2", predict=[path, "--interval", "0.9"])


# Rankings.


@case
def ranking_network(folder: Path) -> Record:
    """Orders of three items by a feature."""
    X, orders = data.drinks(160)
    model = Ranker(epochs=5).fit(X[:120], orders[:120])
    found = of_model(model, folder, X[120:], orders[120:])
    found["numbers"] |= of_array("ranks", model.predict_ranks(X[120:]))
    return found


@case
def ranking_without_features(folder: Path) -> Record:
    """One likelihood for all rows, by command."""
    _, orders = data.drinks(60)
    path = folder / "orders.csv"
    path.write_text("\n".join(["order", *orders]) + "\n")
    found = of_command(folder, path, "--target", "order", "--likelihood", "plackett_luce")
    found["numbers"] |= of_array("worth", ansatz.load(folder / "model").predict_proba(None))
    return found


# Splits.


@case
def folds_in_groups(folder: Path) -> Record:
    """Cross-validation in which groups stay together."""
    table = used(data.numbers(180), "y", "group")
    options = {"target": "y", "likelihood": "normal", "folds": 3, "group": "group"}
    fit = ansatz.fit(table, **options, options={"epochs": 2}, out=folder / "model")
    return of_fit(fit, table.head(20))


@case
def forward_in_time(folder: Path) -> Record:
    """The latest rows stop and test the fit, by command."""
    path = data.write_csv(folder, used(data.numbers(220), "y", "day"))
    fit = [path, "--target", "y", "--likelihood", "normal", "--time", "day", "--set", "epochs=2"]
    return of_command(folder, *fit, predict=[path])


# Streams.


@case
def stream_of_row_groups(folder: Path) -> Record:
    """Numbers from a Parquet file of several blocks."""
    table = used(data.numbers(1_200), "y", "copies")
    table.to_parquet(folder / "table.parquet", row_group_size=200)
    options = {"target": "y", "likelihood": "normal", "weights": "copies", "stream": True}
    fit = ansatz.fit(
        folder / "table.parquet",
        **options,
        options={"epochs": 1, "batch_size": 64, "widths": [16]},
        out=folder / "model",
    )
    return of_fit(fit, table.head(20), interval=0.9)


@case
def stream_of_classes(folder: Path) -> Record:
    """Classes from a CSV file, by command; prediction streams too."""
    path = data.write_csv(folder, used(data.numbers(900), "size"))
    fit = [path, "--target", "size", "--stream", "--set", "epochs=1", "--set", "widths=[16]"]
    found = of_command(folder, *fit, predict=[path, "--stream"])
    return with_evaluation(found, folder, path, "--stream")


@case
def stream_of_times(folder: Path) -> Record:
    """Censored times from a CSV file."""
    path = data.write_csv(folder, data.patients(400)[["age", "arm", "weeks", "died"]])
    options = {"target": "weeks", "event": "died", "likelihood": "weibull", "stream": True}
    fit = ansatz.fit(path, **options, options={"epochs": 1}, out=folder / "model")
    return of_fit(fit, data.patients(20)[["age", "arm"]])


@case
def stream_chooses_the_likelihood(folder: Path) -> Record:
    """Counts from a CSV file: the likelihood is chosen on a sample of the rows."""
    path = data.write_csv(folder, used(data.numbers(150), "count", "years"))
    options = {"target": "count", "exposure": "years", "stream": True}
    fit = ansatz.fit(path, **options, options={"epochs": 1}, out=folder / "model")
    return of_fit(fit, data.numbers(20))


# What is built on fits.


@case
def tuned(folder: Path) -> Record:
    """A search of one configuration beside the default, on two folds."""
    table = used(data.numbers(110), "y")
    given = {"target": "y", "likelihood": "normal", "folds": 2, "options": {"epochs": 2}}
    known = inspect.signature(ansatz.tune).parameters
    given |= {"searches" if "searches" in known else "trials": 1}  # as it was called before
    found = ansatz.tune(table, **given, out=folder / "model")
    pinned = of_fit(found.fit, table.head(20))
    return with_comparison(pinned, found.comparison)


@case
def compared(folder: Path) -> Record:
    """Two linear models on the test rows of both."""
    table = used(data.numbers(200), "positive", "group")
    given = {"target": "positive", "network": "linear", "group": "group"}
    fits = [
        ansatz.fit(table, **given, likelihood=likelihood, out=folder / likelihood)
        for likelihood in ("gamma", "normal")
    ]
    return with_comparison(of_fit(fits[0]), ansatz.compare(*fits))


def with_comparison(found: Record, comparison: Any) -> Record:
    """The record with the scores of a comparison."""
    for score in comparison.to_dict()["scores"]:
        found["numbers"] |= plain(score["score"], score)
    return found


CASES |= golden_grids.CASES
