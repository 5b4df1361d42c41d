"""The permutations of three things are a group, by every product."""

from collections.abc import Callable
from itertools import permutations, product

import numpy as np
import torch

from ansatz.claims import Check, Claim, Finding, Table, Wrong
from ansatz.claims.claim import Figure

Operation = Callable[[tuple[int, ...], tuple[int, ...]], tuple[int, ...]]


def measure(generator: torch.Generator) -> Finding:
    """All pairs, triples and quadruples of permutations."""
    letters = 3
    group = list(permutations(range(letters)))
    broken = violations(group, compose)
    slots = violations(
        group, lambda g, h: tuple((a - b) % letters for a, b in zip(g, h, strict=True))
    )
    # (g∘h)∘k = f∘(h∘k), a common slip, with f any element.
    slip = sum(
        compose(compose(g, h), k) != compose(f, compose(h, k))
        for f, g, h, k in product(group, repeat=4)
    )
    odd = [g for g in group if sum(g[i] > g[j] for j in range(letters) for i in range(j)) % 2]
    matrices = {g: np.eye(letters)[:, list(g)] for g in group}
    unlike = sum(
        not np.array_equal(matrices[g] @ matrices[h], matrices[compose(g, h)])
        for g, h in product(group, repeat=2)
    )
    reversed_order = sum(
        not np.array_equal(matrices[h] @ matrices[g], matrices[compose(g, h)])
        for g, h in product(group, repeat=2)
    )
    checks = [
        Check(
            f"broken axioms among all products of the {len(group)} permutations",
            sum(broken.values()),
            0,
            0,
            "whole numbers",
            wrong=Wrong("the difference in place of composition", measured=sum(slots.values())),
        ),
        Check(
            "triples that are not associative",
            broken["associativity"],
            0,
            0,
            "whole numbers",
            wrong=Wrong("(g∘h)∘k = f∘(h∘k), as printed", measured=slip),
        ),
        Check(
            "products outside the set",
            broken["closure"],
            0,
            0,
            "whole numbers",
            wrong=Wrong("the odd permutations alone", measured=violations(odd, compose)["closure"]),
        ),
        Check(
            "products that differ from those of the permutation matrices",
            unlike,
            0,
            0,
            "whole numbers",
            wrong=Wrong("the order of the factors reversed", measured=reversed_order),
        ),
    ]
    rows = [[axiom, broken[axiom], slots[axiom]] for axiom in broken]
    table = Table(["axiom", "broken by composition", "broken by the difference"], rows)
    index = {g: i for i, g in enumerate(group)}
    cayley = [[index[compose(g, h)] for h in group] for g in group]
    return Finding(checks, table, {"cayley": cayley, "group": group})


def compose(g: tuple[int, ...], h: tuple[int, ...]) -> tuple[int, ...]:
    """First h, then g."""
    return tuple(g[i] for i in h)


def violations(group: list[tuple[int, ...]], operation: Operation) -> dict[str, int]:
    """Counts the elements, pairs or triples that break each axiom."""
    members = set(group)
    outside = sum(operation(g, h) not in members for g, h in product(group, repeat=2))
    unassociative = sum(
        operation(operation(g, h), k) != operation(g, operation(h, k))
        for g, h, k in product(group, repeat=3)
    )
    neutral = [e for e in group if all(operation(e, g) == g == operation(g, e) for g in group)]
    lonely = sum(
        not any(operation(g, h) in neutral and operation(h, g) in neutral for h in group)
        for g in group
    )
    return {
        "closure": outside,
        "associativity": unassociative,
        "identity": abs(len(neutral) - 1),
        "inverse": lonely,
    }


def draw(paper: Figure, finding: Finding) -> None:
    """The table of products: every element once in each row and column."""
    from matplotlib.colors import ListedColormap

    from ansatz.figures.style import PALETTE

    axes = paper.subplots()
    names = ["".join("abcdef"[i] for i in g) for g in finding.data["group"]]
    cayley = np.array(finding.data["cayley"])
    axes.imshow(cayley, cmap=ListedColormap(PALETTE[: len(names)]), alpha=0.45)
    for i, j in product(range(len(names)), repeat=2):
        axes.text(j, i, names[cayley[i, j]], ha="center", va="center")
    axes.set_xticks(range(len(names)), names)
    axes.set_yticks(range(len(names)), names)
    axes.set(xlabel="first h", ylabel="then g")
    axes.set_title("g∘h of three letters: each once in every row and column")


claim = Claim(
    id="group-axioms",
    title="The permutations of three things are a group",
    statement=(
        "Composition of permutations stays among them, is associative, has an identity, and every "
        "permutation has an inverse, as all products of the six permutations of three things show. "
        "A common slip prints associativity as (g∘h)∘k = f∘(h∘k), with f for g."
    ),
    formula=(
        r"(g \circ h) \circ k = g \circ (h \circ k), \qquad e \circ g = g \circ e = g, \qquad "
        r"g \circ g^{-1} = g^{-1} \circ g = e"
    ),
    sources=("M033",),
    measure=measure,
    reference="Artin (2011), Algebra, section 2.2.",
    draw=draw,
)
