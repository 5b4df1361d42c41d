"""Threshold units compute every Boolean formula."""

import itertools

import torch

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.connectionism import McCullochPitts, McCullochPittsNetwork, Wire, compile_formula

NAMES = "abcd"
OPERATORS = {
    "&": lambda p, q: p & q,
    "|": lambda p, q: p | q,
    "^": lambda p, q: p ^ q,
    "->": lambda p, q: ~p | q,
    "<->": lambda p, q: ~(p ^ q),
}
UNITS = {  # signs, threshold, truth table in the order of counting
    "and": ((1, 1), 2, (0, 0, 0, 1)),
    "or": ((1, 1), 1, (0, 1, 1, 1)),
    "not": ((-1,), 0, (1, 0)),
}


def measure(generator: torch.Generator, *, formulas: int = 40, depth: int = 4) -> Finding:
    """Answers that differ from Boolean algebra, over all inputs of random formulas."""
    wrong = strict = rows = units = 0
    for _ in range(formulas):
        text, truth = formula(generator, depth)
        network = compile_formula(text, names=NAMES)
        wrong += int((network.truth_table()[:, -1] != truth).sum())
        strict += int((with_strict_thresholds(network).truth_table()[:, -1] != truth).sum())
        rows, units = rows + len(truth), units + len(network.units)
    textbook = sum(
        McCullochPitts(signs, threshold)(corners(len(signs))).int().tolist() != list(table)
        for signs, threshold, table in UNITS.values()
    )
    checks = [
        Check(
            "wrong answers of compiled formulas",
            wrong,
            0,
            0,
            "whole numbers",
            wrong=Wrong("a unit fires only above its threshold, > in place of ≥", measured=strict),
        ),
        Check("wrong truth tables of and, or, not", textbook, 0, 0, "whole numbers"),
    ]
    return Finding(checks, Table(["formulas", "units", "rows"], [[formulas, units, rows]]))


def corners(count: int) -> torch.Tensor:
    """All inputs, in the order of counting."""
    return torch.tensor(list(itertools.product([False, True], repeat=count)))


def formula(generator: torch.Generator, depth: int) -> tuple[str, torch.Tensor]:
    """A random formula, and its truth table by Boolean algebra."""
    pick = int(torch.randint(len(OPERATORS) + 1, (), generator=generator))
    if depth == 0:
        k = pick % len(NAMES)
        return NAMES[k], corners(len(NAMES))[:, k]
    left, p = formula(generator, depth - 1)
    if pick == len(OPERATORS):
        return f"~({left})", ~p
    right, q = formula(generator, depth - 1)
    sign = list(OPERATORS)[pick]
    return f"({left}) {sign} ({right})", OPERATORS[sign](p, q)


def with_strict_thresholds(network: McCullochPittsNetwork) -> McCullochPittsNetwork:
    """The same network of units 1{σᵀx > θ}: for counts, 1{σᵀx ≥ θ + 1}."""
    wires = []
    for unit, sources in zip(network.units, network.sources, strict=True):
        assert isinstance(unit, McCullochPitts)
        wires.append(Wire(McCullochPitts(unit.signs.tolist(), unit.threshold + 1), sources))
    return McCullochPittsNetwork(network.names, wires)


claim = Claim(
    id="mcculloch-pitts",
    title="Threshold units compute every Boolean formula",
    statement=(
        "A unit fires when the signed count of its inputs reaches a threshold. It computes and "
        "(threshold 2), or (threshold 1) and not (sign -1, threshold 0), and networks of such "
        "units compute any Boolean formula. The comparison is ≥; a common slip prints > with the "
        "same thresholds."
    ),
    formula=(
        r"f(x) = 1\{\sigma^\top x \ge \theta\}, \quad \sigma \in \{-1, 1\}^n,\; x \in \{0, 1\}^n"
    ),
    sources=("M001",),
    measure=measure,
    reference=(
        "McCulloch and Pitts (1943), A logical calculus of the ideas immanent in nervous activity. "
        "https://doi.org/10.1007/BF02478259"
    ),
    full={"formulas": 400, "depth": 6},
)
