"""Small tables of every kind of outcome, fitted once."""

import numpy as np
import pandas as pd
import pytest

import ansatz
from ansatz.fitting.replay import replay
from ansatz.report import build, replayed

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{7*7}}{% raw %}",
    "</style><script>alert(2)</script>",
    "\u202egnp.exe",
    "tab\tnew\nline\x00\x1b[31m",
    "$\\frac{1}{0}$ _x_ \N{GRINNING FACE}",
    "n" * 10_240,
]


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
    few = {"options": {"epochs": 5, "intervals": 4}}
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
            {"target": "t", "event": "d", "likelihood": "discrete_hazard", **few},
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


@pytest.fixture
def blank(monkeypatch):
    """Figures are made and not drawn: drawing is half of a report's time."""
    from matplotlib.figure import Figure

    empty = '<svg xmlns="http://www.w3.org/2000/svg" width="9pt" height="9pt" viewBox="0 0 9 9"/>'
    monkeypatch.setattr(Figure, "savefig", lambda self, file, **_: file.write(empty))


def hostile_table(rows=90):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.normal(size=rows) for name in HOSTILE[:3]})
    frame[HOSTILE[4]] = rng.choice(HOSTILE, rows)
    frame[HOSTILE[7]] = np.nan  # a name of 10 KB, all missing
    frame[HOSTILE[5]] = rng.choice(["a", "b"], rows)
    labels = np.where(frame[HOSTILE[0]] + rng.normal(size=rows) > 0, HOSTILE[0], HOSTILE[1])
    return frame.assign(**{HOSTILE[3]: labels})


def make_hostile_page():
    fit = ansatz.fit(hostile_table(), target=HOSTILE[3], network="linear", likelihood="bernoulli")
    evidence = replayed(
        replay(fit),
        name=HOSTILE[1],
        origin=HOSTILE[0],
        fit={"notes": [*fit.notes, *HOSTILE]},
        settings={"refits": 0, "costs": {"miss": 5.0, "alarm": 1.0}},
    )
    return build(evidence).page


@pytest.fixture(scope="session")
def hostile_page():
    """The report of a table in which everything is called so as to break a page."""
    return make_hostile_page()
