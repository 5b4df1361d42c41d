"""Small tables of every kind of outcome, fitted once."""

import numpy as np
import pandas as pd
import pytest

import ansatz


def table(rows=120, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    z = x + 0.3 * rng.normal(size=rows)
    kind = rng.choice(["a", "b", "c"], rows)
    return rng, pd.DataFrame({"x": x, "z": z, "kind": kind})


def number(rows=120):
    rng, frame = table(rows)
    signal = np.sin(2 * frame.x) + (frame.kind == "a")
    return frame.assign(y=signal + 0.3 * rng.normal(size=rows)), {"target": "y"}


def kinds():
    """Name -> (table, options of the fit)."""
    rng, frame = table()
    rate = np.exp(0.5 * frame.x + 0.5)
    n = len(frame)
    time = rng.exponential(1 / rate) + 0.01
    event = (time < 1.5).astype(int)
    cause = event * rng.integers(1, 3, n)
    order = np.argsort(rng.gumbel(size=(n, 3)) + frame.x.to_numpy()[:, None] * [1, 0, -1], axis=1)
    ranks = {f"rank{k + 1}": np.array(["p", "q", "r"])[order[:, k]] for k in range(3)}
    share = rng.dirichlet([2, 3, 4], n)
    base = number()[0]
    quick = {"options": {"epochs": 5}}
    linear = {"network": "linear"}
    survived = frame.assign(t=np.minimum(time, 1.5), d=event)
    return {
        "regression": (base, {"target": "y", "likelihood": "normal", **quick}),
        "counts": (
            frame.assign(y=rng.poisson(rate), w=rng.integers(1, 3, n), e=rng.uniform(1, 2, n)),
            {"target": "y", "likelihood": "poisson", "weights": "w", "exposure": "e", **linear},
        ),
        "two classes": (
            frame.assign(y=np.where(frame.x + rng.normal(size=n) > 0, "yes", "no")),
            {"target": "y", **quick},
        ),
        "many classes": (
            frame.assign(y=rng.choice(list("uvw"), n)),
            {"target": "y", **linear},
        ),
        "several targets": (
            base.assign(y2=rng.normal(size=n)),
            {"target": ["y", "y2"], "likelihood": "normal", **linear},
        ),
        "survival": (survived, {"target": "t", "event": "d", "likelihood": "weibull", **linear}),
        "cox": (survived, {"target": "t", "event": "d", "likelihood": "cox", **linear}),
        "competing risks": (
            frame.assign(t=np.minimum(time, 1.5), d=cause),
            {"target": "t", "event": "d", "likelihood": "discrete_hazard", **quick},
        ),
        "rankings": (
            frame.assign(**ranks),
            {"target": list(ranks), "likelihood": "plackett_luce", **linear},
        ),
        "directions": (
            frame.assign(y=(frame.x + rng.normal(size=n)) % (2 * np.pi)),
            {"target": "y", "likelihood": "von_mises", **quick},
        ),
        "compositions": (
            frame.assign(a=share[:, 0], b=share[:, 1], c=share[:, 2]),
            {"target": ["a", "b", "c"], "likelihood": "dirichlet", **linear},
        ),
        "a loss": (base, {"target": "y", "likelihood": "huber", **quick}),
        "quantiles": (base, {"target": "y", "likelihood": "quantiles", **quick}),
        "groups": (
            base.assign(g=np.arange(n) // 4),
            {"target": "y", "likelihood": "normal", "group": "g", **linear},
        ),
        "time": (
            base.assign(day=np.arange(n)),
            {"target": "y", "likelihood": "normal", "time": "day", **linear},
        ),
        "no features": (
            base[["y"]],
            {"target": "y", "likelihood": "normal", "test": 0.2},
        ),
    }


KINDS = list(kinds())


@pytest.fixture(scope="session")
def fitted():
    """A fit of each kind, made when first asked for."""
    made = {}

    def get(kind):
        if kind not in made:
            frame, options = kinds()[kind]
            made[kind] = ansatz.fit(frame, **options)
        return made[kind]

    return get
