"""Every kind of outcome on real data: shares, directions, rankings, counts, censored times.

python benchmarks/outcomes.py: ``ansatz.fit`` with the likelihood that fits, its defaults and
nothing else; sets without features at their maximum likelihood; METABRIC, GBSG and WHAS on the
published split.
"""

import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

import ansatz
from ansatz import SurvivalRegressor
from ansatz.bench.record import write_record

SEED = 0
TIME = {"target": "time", "event": "event"}
FITS = {  # data set: arguments of ansatz.fit
    "gasoline-yield": {
        "target": "yield",
        "likelihood": "beta",
        "drop": ("gravity", "pressure", "temp10"),
        "roles": {"batch": "categorical"},
        "network": "linear",
        "test": 0,
    },
    "reading-skills": {"target": "accuracy", "likelihood": "beta", "folds": 5},
    "food-expenditure": {"target": "food", "folds": 5},
    "arctic-lake": {"target": ["sand", "silt", "clay"], "folds": 5},
    "wind-direction": {"target": "direction_radians", "likelihood": "von_mises"},
    "nascar2002": {
        "target": "rank*",
        "likelihood": "plackett_luce",
        "options": {"unranked": "absent"},
    },
    "apa-election": {"target": "place*", "likelihood": "plackett_luce"},
    "abalone": {"target": "rings"},
    "bike-sharing": {"target": "cnt", "drop": ("casual", "registered"), "time": "dteday"},
    "rossi": {"target": "week", "event": "arrest", "likelihood": "cox", "network": "linear"},
    "gbsg2": {"target": "time", "event": "cens"},
    "lung": {"target": "time", "event": "status", "likelihood": "cox"},
    "lymphoma": {"target": "Time", "event": "Censor"},
    "interval-diabetes": {"lower": "left", "upper": "right", "likelihood": "weibull"},
    "stanford-heart": {
        **{"target": "stop", "event": "event", "entry": "start", "group": "id"},
        "likelihood": "cox",
    },
}
SURVIVAL = ("metabric", "gbsg", "whas")


def fit(name: str) -> dict[str, object]:
    found = ansatz.fit(name, seed=SEED, **FITS[name])
    keep = ("likelihood", "network", "rows", "log_likelihood", "metrics", "linear", "constant")
    document = found.to_dict()
    short = {key: _rounded(document[key]) for key in keep}
    return {"name": name, **short, "seconds": round(found.seconds, 1)}


def survive(name: str, likelihood: str, network: str) -> dict[str, object]:
    data = ansatz.data.load(name)
    train, test = data.split()
    outcomes = data.frame[["time", "event"]]
    features = data.frame.drop(columns=["time", "event"])
    began = time.perf_counter()
    model = SurvivalRegressor(likelihood, network=network, random_state=SEED)
    model.fit(features.iloc[train], outcomes.iloc[train])
    metrics = model.evaluate(features.iloc[test], outcomes.iloc[test])
    return {
        "name": name,
        "likelihood": likelihood,
        "network": network,
        "metrics": _rounded(metrics),
        "seconds": round(time.perf_counter() - began, 1),
    }


def _rounded(value: object) -> object:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return round(value, 4) if isinstance(value, float) else value


def main() -> None:
    torch.set_num_threads(1)
    chosen = sys.argv[1:]
    results = []
    for name in FITS:
        if not chosen or name in chosen:
            results.append(fit(name))
            print(results[-1], flush=True)
    for name in SURVIVAL:
        for likelihood in ("cox", "weibull", "discrete_hazard"):
            for network in ("linear", "mlp"):
                if not chosen or name in chosen:
                    results.append(survive(name, likelihood, network))
                    print(results[-1], flush=True)
    if not chosen:
        write_record(
            "outcomes", command="python benchmarks/outcomes.py", seed=SEED, results=results
        )


if __name__ == "__main__":
    main()
