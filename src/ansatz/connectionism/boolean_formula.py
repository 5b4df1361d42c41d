"""From a Boolean formula to a network of McCulloch-Pitts units."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from ansatz.connectionism.mcculloch_pitts import (
    McCullochPitts,
    McCullochPittsNetwork,
    Wire,
    every_input,
)

_SPELLINGS = {
    "not": ("not", "~", "!", "¬"),
    "and": ("and", "&", "&&", "∧"),
    "xor": ("xor", "^", "⊕"),
    "or": ("or", "|", "||", "∨"),
    "implies": ("implies", "->", "=>", "→", "⇒"),
    "iff": ("iff", "<->", "<=>", "==", "↔", "⇔"),
    "(": ("(",),
    ")": (")",),
    "0": ("0", "false", "False"),
    "1": ("1", "true", "True"),
}
_MEANING = {spelling: token for token, all_of in _SPELLINGS.items() for spelling in all_of}
_BINDING = {"not": 6, "and": 5, "xor": 4, "or": 3, "implies": 2, "iff": 1}  # the tighter first
_WORD = re.compile(
    r"\s*(?:(?P<word>[^\W\d]\w*)|(?P<sign><->|<=>|->|=>|==|&&|\|\||[~!¬&∧^⊕|∨→⇒↔⇔()]|[01](?!\w)))"
)


class Token(NamedTuple):
    """A word of a formula: an operator, a parenthesis, a constant or a name."""

    kind: str
    text: str
    at: int


class _Term(NamedTuple):
    """A conjunction or disjunction that no unit computes yet, of (source, sign) pairs."""

    kind: Literal["and", "or"]
    literals: list[tuple[int, int]]


def compile_formula(formula: str, names: Sequence[str] | None = None) -> McCullochPittsNetwork:
    r"""Builds the network of McCulloch-Pitts units that computes a Boolean formula.

    A conjunction or disjunction of any length is one unit, and negation only turns signs: with
    :math:`P` plain and :math:`Q` negated inputs,

    .. math:: \bigwedge = 1\{\sigma^\top x \ge P\}, \qquad \bigvee = 1\{\sigma^\top x \ge 1 - Q\}.

    Exclusive or takes three units: one of the two, and not both. So every Boolean function is a
    network of these neurons.

    Args:
        formula: names, ``0``, ``1`` and parentheses joined by, from the tightest to the loosest,
            ``not`` (``~``, ``!``, ``¬``), ``and`` (``&``, ``∧``), ``xor`` (``^``, ``⊕``), ``or``
            (``|``, ``∨``), ``implies`` (``->``, ``→``; to the right) and ``iff`` (``<->``, ``↔``).
            It is parsed, never run.
        names: the inputs in the order of the columns; default: as they first occur.

    Example:
        >>> import torch
        >>> from ansatz.connectionism import compile_formula
        >>> network = compile_formula("(a & ~b) | c")
        >>> network.names, len(network.units)
        (('a', 'b', 'c'), 2)
        >>> network(torch.tensor([[1, 0, 0], [1, 1, 0]])).tolist()
        [True, False]

    References:
        McCulloch and Pitts (1943), theorem I. https://doi.org/10.1007/BF02478259
    """
    postfix = list(_to_postfix(formula))
    used = dict.fromkeys(token.text for token in postfix if token.kind == "name")
    inputs = tuple(used) if names is None else tuple(names)
    for name in used:
        if name not in inputs:
            raise ValueError(f"'{name}' in the formula is not among names={list(inputs)}.")
    if len(set(inputs)) < len(inputs):
        raise ValueError(f"names of compile_formula must differ, got {list(inputs)}.")
    return _Builder(inputs).build(postfix)


def compile_truth_table(
    outputs: Tensor | Sequence[bool | int], names: Sequence[str] | None = None
) -> McCullochPittsNetwork:
    """Builds the network of McCulloch-Pitts units with a given truth table.

    One unit for each row whose output is 1 fires at that row alone; the last unit is their
    disjunction (the disjunctive normal form).

    Args:
        outputs: ``(2^D,)`` zeros and ones, the last input changing fastest.
        names: of the D inputs; default: ``x1``, ``x2``, ...

    Example:
        >>> from ansatz.connectionism import compile_truth_table
        >>> majority = compile_truth_table([0, 0, 0, 1, 0, 1, 1, 1])
        >>> majority.truth_table()[:, -1].int().tolist()
        [0, 0, 0, 1, 0, 1, 1, 1]
    """
    answers = torch.as_tensor(outputs)
    count = max(answers.numel(), 1).bit_length() - 1
    if answers.ndim != 1 or answers.numel() != 2**count:
        raise ValueError(
            "outputs of compile_truth_table hold 2^D values in one row, "
            f"got shape {tuple(answers.shape)}."
        )
    if not ((answers == 0) | (answers == 1)).all():
        raise ValueError("outputs of compile_truth_table are zeros and ones.")
    inputs = tuple(names) if names is not None else tuple(f"x{k + 1}" for k in range(count))
    if len(inputs) != count:
        raise ValueError(f"{2**count} outputs need {count} names, got {len(inputs)}.")
    builder = _Builder(inputs)
    rows = every_input(count)[answers == 1].long() * 2 - 1  # signs
    ones = [builder.unit(_Term("and", list(enumerate(row)))) for row in rows.tolist()]
    builder.unit(_Term("or", [(source, 1) for source in ones]))
    return McCullochPittsNetwork(inputs, builder.wires)


def _tokens(formula: str) -> Iterator[Token]:
    position = 0
    while position < len(formula.rstrip()):
        found = _WORD.match(formula, position)
        if found is None:
            rest = formula[position:].lstrip()
            raise ValueError(
                f"the formula has no meaning at character {formula.index(rest[0], position) + 1}: "
                f"{rest[:20]!r}. Use names, 0, 1, and, or, not, xor, implies, iff, parentheses."
            )
        text = found["word"] or found["sign"]
        yield Token(_MEANING.get(text, "name"), text, found.end() - len(text) + 1)
        position = found.end()


def _to_postfix(formula: str) -> Iterator[Token]:
    """Dijkstra's shunting yard: operators wait until a looser one or a parenthesis comes."""
    waiting: list[Token] = []
    wants_value = True
    for token in _tokens(formula):
        opens = token.kind in ("name", "0", "1", "(", "not")
        if opens != wants_value:
            _complain(token, wants_value)
        if token.kind in ("name", "0", "1"):
            yield token
            wants_value = False
        elif token.kind in ("(", "not"):
            waiting.append(token)
        elif token.kind == ")":
            while waiting and waiting[-1].kind != "(":
                yield waiting.pop()
            if not waiting:
                raise ValueError(f"the formula closes ')' at character {token.at} unopened.")
            waiting.pop()
        else:
            while waiting and _goes_first(waiting[-1], token):
                yield waiting.pop()
            waiting.append(token)
            wants_value = True
    if wants_value:
        raise ValueError("the formula ends where a name, 0, 1 or '(' is expected.")
    for token in reversed(waiting):
        if token.kind == "(":
            raise ValueError(f"the formula never closes '(' of character {token.at}.")
        yield token


def _goes_first(waiting: Token, new: Token) -> bool:
    if waiting.kind == "(":
        return False
    left, right = _BINDING[waiting.kind], _BINDING[new.kind]
    return left > right or (left == right and new.kind != "implies")


def _complain(token: Token, wants_value: bool) -> None:
    wanted = "a name, 0, 1, not or '('" if wants_value else "an operator or ')'"
    raise ValueError(
        f"the formula has '{token.text}' at character {token.at} where {wanted} is expected."
    )


class _Builder:
    """Collects units while the terms of a formula are joined."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.wires: list[Wire] = []

    def build(self, postfix: list[Token]) -> McCullochPittsNetwork:
        stack: list[_Term] = []
        for token in postfix:
            if token.kind == "name":
                stack.append(_Term("and", [(self.names.index(token.text), 1)]))
            elif token.kind in ("0", "1"):
                stack.append(_Term("or" if token.kind == "0" else "and", []))
            elif token.kind == "not":
                stack.append(_negated(stack.pop()))
            else:
                right, left = stack.pop(), stack.pop()
                stack.append(self.joined(token.kind, left, right))
        self.unit(stack.pop())
        return McCullochPittsNetwork(self.names, self.wires)

    def joined(self, operator: str, left: _Term, right: _Term) -> _Term:
        if operator == "implies":
            return self.merged("or", _negated(left), right)
        if operator in ("and", "or"):
            return self.merged("and" if operator == "and" else "or", left, right)
        a, b = self.literal(left), self.literal(right)
        either, both = self.unit(_Term("or", [a, b])), self.unit(_Term("and", [a, b]))
        one = _Term("and", [(either, 1), (both, -1)])
        return one if operator == "xor" else _negated(one)

    def merged(self, kind: Literal["and", "or"], left: _Term, right: _Term) -> _Term:
        mine = self.open(kind, left)
        mine.extend(self.open(kind, right))
        return _Term(kind, mine)

    def open(self, kind: str, term: _Term) -> list[tuple[int, int]]:
        """Its literals, where it is of this kind or has only one; else a unit's answer."""
        if term.kind == kind or len(term.literals) == 1:
            return term.literals
        return [self.literal(term)]

    def literal(self, term: _Term) -> tuple[int, int]:
        return term.literals[0] if len(term.literals) == 1 else (self.unit(term), 1)

    def unit(self, term: _Term) -> int:
        """Adds the unit of a term; returns the number under which others read it."""
        signs = [sign for _, sign in term.literals]
        threshold = signs.count(1) if term.kind == "and" else 1 - signs.count(-1)
        sources = tuple(source for source, _ in term.literals)
        self.wires.append(Wire(McCullochPitts(signs, threshold), sources))
        return len(self.names) + len(self.wires) - 1


def _negated(term: _Term) -> _Term:
    """De Morgan: the other kind, of the opposite signs."""
    other: Literal["and", "or"] = "or" if term.kind == "and" else "and"
    return _Term(other, [(source, -sign) for source, sign in term.literals])
