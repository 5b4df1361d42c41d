"""The form of a rule: from an operation's arguments to the intervals of its result."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from torch import Tensor

from ansatz.networks.reach.intervals import Reach
from ansatz.networks.reach.union import merge

Arguments = dict[str, Any]
Find = Callable[[Any], Reach | None]  # the intervals of a tensor, None where it sees nothing
Rule = Callable[[Arguments, Find, Sequence[int]], Reach]


def rules_of(book: dict[str, Rule]) -> Callable[..., Callable[[Rule], Rule]]:
    """A decorator that writes a rule into ``book`` under the names of operations."""

    def named(*names: str) -> Callable[[Rule], Rule]:
        def keep(rule: Rule) -> Rule:
            book.update(dict.fromkeys(names, rule))
            return rule

        return keep

    return named


def tensors(values: Iterable[Any]) -> Iterable[Tensor]:
    """The tensors among arguments, also those in lists."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors(value)


def subject(arguments: Arguments, find: Find) -> Reach:
    """The intervals of the tensor that an operation is about.

    Those of its other tensors (a kernel that is computed from the input) are seen by all units.
    """
    main, *others = tensors(arguments.values())
    own, rest = find(main), [r for each in others if (r := find(each)) is not None]
    if own is not None and not rest:
        return own
    beside = [r.everything([1] * main.ndim) for r in rest]
    return merge([*([own] if own else []), *beside], tuple(main.shape))
