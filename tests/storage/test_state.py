import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from ansatz.errors import ModelError, UsageError
from ansatz.storage import encode_json, encode_tensors, pack_state, read_json, read_tensors
from ansatz.storage import unpack_state as unpack


def through_files(state):
    packed, tensors = pack_state(state)
    return unpack(read_json(encode_json(packed)), read_tensors(encode_tensors(tensors)))


def same(a, b):
    """Equal values of equal types, nan included, to the bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        bits = [tensor.numpy().tobytes() for tensor in (a, b)]
        return a.dtype == b.dtype and a.shape == b.shape and bits[0] == bits[1]
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return repr(a) == repr(b)


text = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(["$tensor", "$dict"])
leaves = (
    st.none() | st.booleans() | st.integers() | st.floats() | text
    | st.lists(st.floats(width=32), max_size=3).map(lambda v: torch.tensor(v, dtype=torch.float32))
    | st.integers(-9, 9).map(torch.tensor)
)  # fmt: skip
keys = text | st.integers() | st.booleans() | st.none() | st.tuples(st.integers(), text)
states = st.recursive(
    leaves,
    lambda s: st.lists(s) | st.lists(s).map(tuple) | st.dictionaries(keys, s),
    max_leaves=15,
)


@given(states)
def test_a_state_comes_back_as_it_was(state):
    assert same(through_files(state), state)


@pytest.mark.parametrize(
    "state",
    [
        {"a.b": torch.ones(1), "a": {"b": torch.zeros(1)}},
        {1: torch.ones(1), "1": torch.zeros(1)},
        {"$tensor": "x"},
        {"$float": "nan", "more": 1},
        {"$dict": []},
        {"best": math.inf, "worst": -math.inf, "none": math.nan, "zero": -0.0},
        {"pcg64": 2**127 + 1, "big": 10**300, "one": 1.0, "uno": 1, "yes": True},
        torch.ones(2),
        torch.Generator().manual_seed(0).get_state(),
        {},
        [],
        (),
    ],
    ids=str,
)
def test_corner_states_come_back_as_they_were(state):
    assert same(through_files(state), state)


@pytest.mark.parametrize(
    "optimizer", [torch.optim.Adam, torch.optim.SGD, torch.optim.LBFGS, torch.optim.RMSprop]
)
def test_an_optimizer_continues_as_if_nothing_had_been(optimizer):
    options = {"momentum": 0.9} if optimizer is torch.optim.SGD else {}
    x, y = torch.randn(20, 3), torch.randn(20, 1)

    def advance(network, optim):
        def loss():
            optim.zero_grad()
            value = (network(x) - y).square().mean()
            value.backward()
            return value

        for _ in range(3):
            optim.step(loss)

    one, two = nn.Linear(3, 1), nn.Linear(3, 1)
    first = optimizer(one.parameters(), lr=0.01, **options)
    advance(one, first)
    two.load_state_dict(one.state_dict())
    second = optimizer(two.parameters(), lr=0.5, **options)
    second.load_state_dict(through_files(first.state_dict()))
    advance(one, first)
    advance(two, second)
    assert torch.equal(one.weight, two.weight) and torch.equal(one.bias, two.bias)


@pytest.mark.parametrize("value", [np.float64(1), np.ones(2), {1, 2}, object(), 1j, b"", print])
def test_what_is_no_plain_state_is_named_by_its_place(value):
    with pytest.raises(UsageError, match=rf"a\.1\.b: a {type(value).__name__} cannot be saved"):
        pack_state({"a": [0, {"b": value}]})


@pytest.mark.parametrize(
    "packed",
    [
        {"$tensor": "missing"},
        {"$tensor": 3},
        {"$tuple": 3},
        {"$dict": 3},
        {"$dict": [3]},
        {"$dict": [[1]]},
        {"$dict": [[1, 2], [1, 3]]},
        {"$dict": [[[], 2]]},
        {"$dict": [[{"$tuple": [[]]}, 2]]},
        {"$float": "1.0"},
        {"$float": []},
    ],
    ids=json.dumps,
)
def test_a_strangers_state_is_a_model_error(packed):
    with pytest.raises(ModelError):
        unpack({"a": packed}, {})


def test_a_tensor_that_no_one_mentions_is_refused():
    with pytest.raises(ModelError, match=r"does not mention the tensor 'extra'"):
        unpack({}, {"extra": torch.ones(1)})
