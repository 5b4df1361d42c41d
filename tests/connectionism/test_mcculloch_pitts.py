import itertools
import random

import pytest
import torch

from ansatz.connectionism import (
    McCullochPitts,
    McCullochPittsNetwork,
    Wire,
    compile_formula,
    compile_truth_table,
)

# The same formula in our spelling and in Python's; the tests may evaluate what they wrote.
SAME = {
    "a & b": "a and b",
    "a | b & ~c": "a or (b and not c)",
    "a ^ b ^ c": "(a + b + c) % 2 == 1",
    "a -> b -> c": "(not a) or ((not b) or c)",
    "a <-> b": "a == b",
    "not a and b or c": "((not a) and b) or c",
    "~(a & ~(b | c)) ^ c": "(not (a and not (b or c))) != c",
    "a | b ^ c & d": "a or (b != (c and d))",
    "(a implies b) iff (¬b → ¬a)": "True",
    "a & ~a": "False",
    "a & a": "a",
    "~~~a": "not a",
    "a": "a",
    "1 & a | 0": "a",
    "a xor 1": "not a",
    "a ∧ (b ∨ ¬c) ⊕ d": "(a and (b or not c)) != d",
}


@pytest.mark.parametrize("formula", SAME)
def test_truth_table_is_pythons(formula):
    network = compile_formula(formula)
    for *values, answer in network.truth_table().tolist():
        assert answer == eval(SAME[formula], {}, dict(zip(network.names, values, strict=True)))


def random_formula(choose, depth):
    """(our spelling, Python's)."""
    if depth == 0:
        return (choose.choice("abcde"),) * 2
    ours, python = random_formula(choose, depth - 1)
    if choose.random() < 0.3:
        return f"~({ours})", f"(not {python})"
    right, right_python = random_formula(choose, choose.randrange(depth))
    sign, words = choose.choice(
        [("&", "({} and {})"), ("|", "({} or {})"), ("^", "({} != {})"), ("<->", "({} == {})"),
         ("->", "((not {}) or {})")]
    )  # fmt: skip
    return f"({ours}) {sign} ({right})", words.format(python, right_python)


def test_random_formulas_mean_what_python_says():
    choose = random.Random(0)
    for _ in range(60):
        ours, python = random_formula(choose, 5)
        network = compile_formula(ours)
        for *values, answer in network.truth_table().tolist():
            assert answer == bool(eval(python, {}, dict(zip(network.names, values, strict=True))))


@pytest.mark.parametrize("signs, threshold, expected", [
    ([1, 1], 2, [0, 0, 0, 1]), ([1, 1], 1, [0, 1, 1, 1]), ([-1], 0, [1, 0]),
])  # fmt: skip
def test_textbook_units(signs, threshold, expected):
    rows = torch.tensor(list(itertools.product([0, 1], repeat=len(signs))))
    assert McCullochPitts(signs, threshold)(rows).int().tolist() == expected


def test_a_conjunction_of_any_length_is_one_unit():
    network = compile_formula(" & ".join(f"~x{k}" if k % 2 else f"x{k}" for k in range(300)))
    assert len(network.units) == 1 and network.depth == 1
    x = (torch.arange(300) + 1) % 2
    assert network(x)
    for k in range(300):
        assert not network(x ^ (torch.arange(300) == k))


def test_depth_does_not_limit_the_parser():
    assert compile_formula("(" * 5000 + "a" + ")" * 5000).truth_table()[:, -1].tolist() == [0, 1]
    assert compile_formula("~" * 5001 + "a").truth_table()[:, -1].tolist() == [1, 0]


@pytest.mark.parametrize("inputs", [0, 1, 2, 3])
def test_every_truth_table_has_its_network(inputs):
    for outputs in itertools.product([0, 1], repeat=2**inputs):
        assert compile_truth_table(outputs).truth_table()[:, -1].int().tolist() == list(outputs)


def test_names_fix_the_columns():
    network = compile_formula("b & ~a", names=["a", "b", "unused"])
    assert network(torch.tensor([0, 1, 0])) and not network(torch.tensor([1, 0, 0]))


def test_batches_keep_their_shape_and_any_type():
    network = compile_formula("a | b")
    assert network(torch.zeros(3, 4, 2)).shape == (3, 4)
    assert network(torch.ones(2, dtype=torch.bool)).item() is True


def test_the_state_is_saved_and_loaded():
    source, target = compile_formula("a & b"), compile_formula("~a & ~b")
    target.load_state_dict(source.state_dict())
    assert target.units[0].signs.tolist() == [1, 1]


@pytest.mark.parametrize("formula, message", [
    ("", "ends where a name"),
    ("a &", "ends where a name"),
    ("a b", "'b' at character 3 where an operator"),
    ("a & | b", r"'\|' at character 5 where a name"),
    ("(a & b", r"never closes '\(' of character 1"),
    ("a)", "closes '\\)' at character 2"),
    ("a + b", "no meaning at character 3: '\\+ b'"),
    ("2 & a", "no meaning at character 1"),
    ("__import__('os')", r"'\(' at character 11 where an operator"),
])  # fmt: skip
def test_a_mistake_in_a_formula_is_located(formula, message):
    with pytest.raises(ValueError, match=message):
        compile_formula(formula)


def test_wrong_wiring_is_refused():
    with pytest.raises(ValueError, match="-1 or 1, got 2 at signs"):
        McCullochPitts([1, 2], 1)
    with pytest.raises(ValueError, match=r"whole number, got 0\.5"):
        McCullochPitts([1], 0.5)
    with pytest.raises(ValueError, match="2 sources below 2"):
        McCullochPittsNetwork(["a", "b"], [Wire(McCullochPitts([1, 1], 1), (0, 2))])
    with pytest.raises(ValueError, match="not among names"):
        compile_formula("a & b", names=["a"])
    with pytest.raises(ValueError, match=r"zeros and ones, got 2"):
        compile_formula("a & b")(torch.tensor([1, 2]))
    with pytest.raises(ValueError, match=r"shape \(..., 2\), got \(3,\)"):
        compile_formula("a & b")(torch.tensor([1, 1, 1]))
    with pytest.raises(ValueError, match=r"2\^D values"):
        compile_truth_table([0, 1, 1])
    with pytest.raises(ValueError, match="at most 20 inputs"):
        compile_formula(" & ".join(f"x{k}" for k in range(25))).truth_table()
