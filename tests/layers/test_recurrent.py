"""Recurrent layers: their equations, torch's layers, padding, and steps against whole runs."""

import json
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.layers import (
    GRU,
    LRU,
    LSTM,
    Bidirectional,
    DeepTransition,
    Elman,
    MinGRU,
    MinLSTM,
    Stacked,
    scan,
)  # fmt: skip

LAYERS = {
    "elman": lambda: Elman(3, 4),
    "relu": lambda: Elman(3, 4, activation="relu"),
    "gru": lambda: GRU(3, 4),
    "gru before": lambda: GRU(3, 4, reset="before"),
    "lstm": lambda: LSTM(3, 4),
    "lstm plain": lambda: LSTM(3, 4, output="plain"),
    "lstm matrix": lambda: LSTM(3, 4, output="matrix"),
    "lstm norm": lambda: LSTM(3, 4, norm="layer"),
    "lstm peephole": lambda: LSTM(3, 4, peephole=True),
    "deep transition": lambda: DeepTransition(3, 4, depth=3),
    "mingru": lambda: MinGRU(3, 4),
    "minlstm": lambda: MinLSTM(3, 4),
    "lru": lambda: LRU(3, 4, units=5),
    "stacked": lambda: Stacked([LSTM(3, 5), MinGRU(5, 4)]),
}
every_layer = pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)
TIGHT = {"atol": 1e-10, "rtol": 0}


def leaves(state):
    return [x for each in state for x in leaves(each)] if isinstance(state, tuple) else [state]


@pytest.mark.parametrize(
    "ours, theirs",
    [(Elman, nn.RNN), (LSTM, nn.LSTM), (GRU, nn.GRU)],
    ids=["elman", "lstm", "gru"],
)
def test_is_torchs_layer_with_its_weights(ours, theirs):
    layer, torchs, x = ours(3, 4), theirs(3, 4, batch_first=True), torch.randn(2, 7, 3)
    layer.load_state_dict(torchs.state_dict())
    (y, state), (expected, final) = layer(x), torchs(x)
    assert_close(y, expected, **TIGHT)
    final = final if isinstance(final, tuple) else (final,)
    assert_close(leaves(state), [s.squeeze(0) for s in final], **TIGHT)


@every_layer
def test_all_steps_at_once_are_the_steps_in_turn(make):
    layer, x = make(), torch.randn(2, 70, 3)
    y, final = layer(x)
    state = layer.initial(x)
    for t in range(70):
        state, each = layer.step(state, x[:, t])
        assert_close(each, y[:, t], **TIGHT)
    assert_close(leaves(state), leaves(final), **TIGHT)


@every_layer
def test_a_run_continues_from_a_state(make):
    layer, x = make(), torch.randn(2, 9, 3)
    y, final = layer(x)
    first, state = layer(x[:, :4])
    second, state = layer(x[:, 4:], None, state)
    assert_close(torch.cat([first, second], 1), y, **TIGHT)
    assert_close(leaves(state), leaves(final), **TIGHT)


BOTH = {**LAYERS, "bidirectional": lambda: Bidirectional(LSTM(3, 4), LRU(3, 5))}


@pytest.mark.parametrize("make", BOTH.values(), ids=BOTH)
def test_padded_is_alone(make):
    layer, x = make(), torch.randn(3, 9, 3)
    lengths = torch.tensor([9, 4, 0])
    mask = torch.arange(9) < lengths.unsqueeze(1)
    y, state = layer(x.masked_fill(~mask.unsqueeze(-1), torch.nan), mask)
    for k, length in ((0, 9), (1, 4)):
        alone, final = layer(x[k : k + 1, :length])
        assert_close(y[k, :length], alone[0], **TIGHT)
        assert_close([s[k] for s in leaves(state)], [s[0] for s in leaves(final)], **TIGHT)
    assert not y[~mask].any()
    assert all(not s[2].any() for s in leaves(state))  # an empty sequence keeps its start
    y.square().sum().backward()
    assert all(p.grad.isfinite().all() for p in layer.parameters())


@every_layer
def test_float32_has_the_gradients_of_float64(make):
    layer, x = make(), torch.randn(2, 9, 3)
    exact = torch.autograd.grad(layer(x)[0].square().sum(), list(layer.parameters()))
    layer.float()
    rough = torch.autograd.grad(layer(x.float())[0].square().sum(), list(layer.parameters()))
    assert_close([g.double() for g in rough], list(exact), atol=1e-4, rtol=1e-3)


def test_reset_before_is_keras_layer():
    """Numbers of Keras (benchmarks/oracles/keras_gru.py), whose gates are in the order z, r, n."""
    record = Path(__file__).parents[1] / "fixtures" / "keras-gru.json"
    keras = {k: torch.tensor(v) for k, v in json.loads(record.read_text()).items() if k != "keras"}
    layer = GRU(3, 4, reset="before")
    with torch.no_grad():
        for name, kernel in (("weight_ih_l0", "kernel"), ("weight_hh_l0", "recurrent_kernel")):
            z, r, n = keras[kernel].T.chunk(3)
            getattr(layer, name).copy_(torch.cat([r, z, n]))
        z, r, n = keras["bias"].chunk(3)
        layer.bias_ih_l0.copy_(torch.cat([r, z, n]))
        layer.bias_hh_l0.zero_()
    assert_close(layer(keras["x"])[0], keras["y"], atol=1e-6, rtol=0)  # it rounds to float32


def test_reset_before_is_chos_cell():
    layer, x, h = GRU(3, 4, reset="before"), torch.randn(2, 3), torch.randn(2, 4)
    W_r, W_z, W_n = layer.weight_ih_l0.chunk(3)
    U_r, U_z, U_n = layer.weight_hh_l0.chunk(3)
    b_r, b_z, b_n = (layer.bias_ih_l0 + layer.bias_hh_l0).chunk(3)
    r = torch.sigmoid(x @ W_r.T + h @ U_r.T + b_r)
    z = torch.sigmoid(x @ W_z.T + h @ U_z.T + b_z)
    candidate = torch.tanh(x @ W_n.T + (r * h) @ U_n.T + b_n)
    assert_close(layer.step(h, x)[0], z * h + (1 - z) * candidate, **TIGHT)


@pytest.mark.parametrize("option", [{}, {"output": "plain"}, {"output": "matrix"},
                                    {"norm": "layer"}, {"peephole": True}])  # fmt: skip
def test_variants_of_the_lstm_are_their_equations(option):
    layer, x, h, c = LSTM(3, 4, **option), torch.randn(2, 3), torch.randn(2, 4), torch.randn(2, 4)
    from_x, from_h = x @ layer.weight_ih_l0.T, h @ layer.weight_hh_l0.T
    if "norm" in option:
        from_x, from_h = layer.norm_x(from_x), layer.norm_h(from_h)
    i, f, g, o = (from_x + from_h + layer.bias_ih_l0 + layer.bias_hh_l0).chunk(4, 1)
    p = layer.peephole if "peephole" in option else torch.zeros(3, 4)
    new = torch.sigmoid(f + p[1] * c) * c + torch.sigmoid(i + p[0] * c) * torch.tanh(g)
    out = layer.norm_c(new) if "norm" in option else new
    kind = option.get("output", "tanh")
    out = {"tanh": out.tanh(), "plain": out}.get(kind, out)
    if kind == "matrix":
        out = torch.tanh(new @ layer.readout.T)
    expected = torch.sigmoid(o + p[2] * new) * out
    assert_close(layer.step((h, c), x)[0], (expected, new), **TIGHT)


def test_an_open_forget_gate_and_a_shut_input_gate_keep_c():
    layer, c = LSTM(3, 4), torch.randn(2, 4)
    with torch.no_grad():
        layer.bias_ih_l0[:4], layer.bias_ih_l0[4:8] = -1000, 1000
    _, (_, kept) = layer(torch.randn(2, 50, 3), None, (torch.zeros(2, 4), c))
    assert_close(kept, c, **TIGHT)


def test_one_layer_of_deep_transition_is_elmans():
    deep, elman, x = DeepTransition(3, 4, depth=1), Elman(3, 4), torch.randn(2, 7, 3)
    with torch.no_grad():
        elman.weight_ih_l0.copy_(deep.inputs.weight)
        elman.weight_hh_l0.copy_(deep.state.weight)
        elman.bias_ih_l0.copy_(deep.inputs.bias)
        elman.bias_hh_l0.zero_()
    assert_close(deep(x)[0], elman(x)[0], **TIGHT)


def test_halves_swap_when_the_input_is_reversed():
    there, back, x = GRU(3, 4), GRU(3, 4), torch.randn(2, 7, 3)
    y = Bidirectional(there, back)(x)[0]
    swapped = Bidirectional(back, there)(x.flip(1))[0].flip(1)
    assert_close(y, torch.cat(swapped.chunk(2, -1)[::-1], -1), **TIGHT)
    with pytest.raises(UsageError, match="whole sequence"):
        Bidirectional(there, back).step(None, x[:, 0])


def test_bidirectional_is_torchs():
    torchs, x = nn.LSTM(3, 4, batch_first=True, bidirectional=True), torch.randn(2, 7, 3)
    layer, weights = Bidirectional(LSTM(3, 4), LSTM(3, 4)), torchs.state_dict()
    layer.ahead.load_state_dict({k: w for k, w in weights.items() if "reverse" not in k})
    layer.back.load_state_dict(
        {k.removesuffix("_reverse"): w for k, w in weights.items() if "reverse" in k}
    )
    assert_close(layer(x)[0], torchs(x)[0], **TIGHT)


def test_min_gates_are_their_equations():
    x, h = torch.randn(2, 3), torch.randn(2, 4)
    gru, lstm = MinGRU(3, 4), MinLSTM(3, 4)
    z, candidate = gru.linear(x).chunk(2, -1)
    z = torch.sigmoid(z)
    assert_close(gru.step(h, x)[0], (1 - z) * h + z * candidate, **TIGHT)
    f, i, candidate = lstm.linear(x).chunk(3, -1)
    f, i = torch.sigmoid(f), torch.sigmoid(i)
    assert_close(lstm.step(h, x)[0], (f * h + i * candidate) / (f + i), **TIGHT)


@pytest.mark.parametrize("nu", [-1e3, -50.0, 0.0, 3.0, 1e3])
def test_moduli_of_an_lru_stay_below_one(nu):
    layer = LRU(2, 3)
    nn.init.constant_(layer.nu, nu)
    assert (layer.eigenvalues.abs() < 1).all()
    assert (layer.float().eigenvalues.abs() < 1).all()


def test_an_lru_starts_evenly_over_its_ring_and_keeps_variance():
    layer = LRU(4, 3, units=20_000, r_min=0.4, r_max=0.8)
    r2 = layer.eigenvalues.abs().square()
    assert r2.min() >= 0.16 and r2.max() <= 0.64
    sd = (0.64 - 0.16) / 12**0.5
    assert abs(r2.mean() - 0.4) < 4 * sd / 20_000**0.5
    state = LRU(4, 3, units=500, r_min=0.4, r_max=0.8)(torch.randn(200, 40, 4))[1]
    assert abs(state.abs().square().mean() - 1) < 0.2  # E|Bx|^2 = 1; 4 sqrt(2 / 4 / 200)


def test_an_lru_is_its_equation():
    layer, x = LRU(3, 4, units=5), torch.randn(1, 6, 3)
    lam = torch.exp(torch.complex(-layer.nu.exp(), layer.phase))
    B = torch.complex(layer.input[::2], layer.input[1::2])
    C = torch.complex(layer.output.weight[:, ::2], -layer.output.weight[:, 1::2])
    zeta = torch.zeros(5, dtype=torch.complex128)
    for t in range(6):
        zeta = lam * zeta + (1 - lam.abs() ** 2).sqrt() * (B @ x[0, t].to(B.dtype))
        assert_close(layer(x)[0][0, t], (C @ zeta).real + layer.skip(x[0, t]), **TIGHT)


def test_min_gru_is_a_scan():
    layer, x = MinGRU(3, 4), torch.randn(2, 100, 3)
    assert_close(layer(x)[0], scan(*layer.gate(x)), **TIGHT)


def test_wrong_shapes_and_options_are_named():
    with pytest.raises(UsageError, match=r"GRU needs x of shape \(B, T, 3\).*got \(5, 3\)"):
        GRU(3, 4)(torch.randn(5, 3))
    with pytest.raises(UsageError, match=r"needs a mask of shape \(2, 5\), got \(2, 4\)"):
        GRU(3, 4)(torch.randn(2, 5, 3), torch.ones(2, 4, dtype=torch.bool))
    with pytest.raises(UsageError, match="puts out 4 numbers, but the next one takes 5"):
        Stacked([GRU(3, 4), GRU(5, 4)])
    with pytest.raises(UsageError, match="r_min < r_max"):
        LRU(3, 4, r_min=0.9, r_max=0.5)
