"""Real tables, each with a likelihood that fits it, beside the linear and the constant model.

python benchmarks/tables.py [NAME ...]: the defaults of ``ansatz.fit`` and nothing else; the test
rows choose nothing. The UCI sets use the first of their given splits as 20 % test rows of our own.
"""

import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

import ansatz
from ansatz.bench.record import write_record

SEED = 0
TABLES = {  # data set: target, likelihood, further arguments of ansatz.fit
    "abalone": ("rings", "poisson", {}),
    "adult": ("income", None, {}),
    "diamonds": ("price", "gamma", {}),
    "bike-sharing": ("cnt", "poisson", {"drop": ("casual", "registered"), "time": "dteday"}),
    "boston": (None, "normal", {}),
    "concrete": (None, "normal", {}),
    "energy": (None, "normal", {}),
    "kin8nm": (None, "normal", {}),
    "wine": (None, "normal", {}),
    "diabetes": ("progression", "normal", {}),
    "breast-cancer": (None, None, {}),
    "digits": (None, None, {}),
}


def evaluate(name: str) -> dict[str, object]:
    target, likelihood, options = TABLES[name]
    target = target or ansatz.data.load(name).target
    fit = ansatz.fit(name, target=target, likelihood=likelihood, seed=SEED, **options)
    found = fit.to_dict()
    keep = ("likelihood", "network", "parameters", "rows", "metrics", "linear", "constant")
    short = {key: _rounded(found[key]) for key in keep}
    return {"name": name, "target": target, **short, "seconds": round(fit.seconds, 1)}


def _rounded(value: object) -> object:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return round(value, 4) if isinstance(value, float) else value


def main() -> None:
    torch.set_num_threads(1)
    results = []
    for name in sys.argv[1:] or TABLES:
        results.append(evaluate(name))
        row = results[-1]
        nll = {who: row[who]["nll"] for who in ("metrics", "linear", "constant")}
        print(f"{name:13} {row['likelihood']:12} {nll}  {row['seconds']} s", flush=True)
    if not sys.argv[1:]:
        write_record("tables", command="python benchmarks/tables.py", seed=SEED, results=results)


if __name__ == "__main__":
    main()
