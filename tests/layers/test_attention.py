"""Attention: the softmax formula, torch's layer, symmetries, masks and caches."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansatz.errors import UsageError
from ansatz.layers import (
    BahdanauAttention,
    KeyValueCache,
    LearnedPositions,
    LoRA,
    MultiHeadAttention,
    RotaryPositions,
    SinusoidalPositions,
    TransformerBlock,
    attention,
)

EXACT = {"atol": 1e-10, "rtol": 0}
LENGTHS = torch.tensor([5, 3, 1])
MASK = torch.arange(5) < LENGTHS[:, None]


def formula(q, k, v, allowed):
    """y_i = Σ_t softmax_t(q_i·k_t / √d) v_t over the allowed t, written out."""
    y = torch.zeros(len(q), v.shape[-1])
    for i in range(len(q)):
        weights = [
            torch.exp(q[i] @ k[t] / q.shape[-1] ** 0.5) if allowed[i, t] else torch.zeros(())
            for t in range(len(k))
        ]
        total = sum(weights)
        y[i] = sum(w * v[t] for t, w in enumerate(weights)) / total if total > 0 else 0.0
    return y


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_is_the_formula(causal, masked):
    q, k, v = torch.randn(4, 3), torch.randn(6, 3), torch.randn(6, 2)
    allowed = torch.rand(4, 6) < 0.6 if masked else torch.ones(4, 6, dtype=torch.bool)
    expected = formula(q, k, v, allowed.tril(2) if causal else allowed)
    assert_close(attention(q, k, v, allowed if masked else None, causal=causal), expected, **EXACT)


def test_a_query_with_nothing_to_attend_to_gives_zero_and_finite_gradients():
    x = torch.randn(2, 3, 4, requires_grad=True)
    mask = torch.tensor([[True, True, False], [False, False, False]])
    y = attention(x, x, x, mask[:, None])
    assert_close(y[1], torch.zeros(3, 4))
    y.square().sum().backward()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_multi_head_attention_is_torchs(heads):
    ours, theirs = MultiHeadAttention(8, heads), nn.MultiheadAttention(8, heads, batch_first=True)
    theirs.load_state_dict(ours.state_dict(), strict=True)
    x, context = torch.randn(3, 5, 8), torch.randn(3, 6, 8)
    expected, _ = theirs(x, x, x, key_padding_mask=~MASK)
    assert_close(ours(x, mask=MASK), expected, **EXACT)
    assert_close(ours(x, context), theirs(x, context, context)[0], **EXACT)
    assert_close(ours(x, x), ours(x), **EXACT)  # cross-attention to itself


def test_one_head_is_attention_between_linear_maps():
    layer, x = MultiHeadAttention(4, 1), torch.randn(2, 5, 4)
    q, k, v = ((x @ W.T) for W in layer.in_proj_weight.chunk(3))
    assert_close(layer(x), layer.out_proj(attention(q, k, v)), **EXACT)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_block_commutes_with_permutations(norm):
    block, x, order = TransformerBlock(8, 2, norm=norm), torch.randn(2, 7, 8), torch.randperm(7)
    assert_close(block(x[:, order]), block(x)[:, order], **EXACT)
    assert (block(x[:, order]) - block(x)).abs().max() > 1e-3  # equivariant, not invariant


@pytest.mark.parametrize("rotary", [False, True])
def test_the_future_changes_nothing(rotary):
    block, x = TransformerBlock(8, 2, causal=True, rotary=rotary), torch.randn(2, 7, 8)
    later = x.clone()
    later[:, 4:] += 1
    assert torch.equal(block(later)[:, :4], block(x)[:, :4])
    assert not torch.equal(block(later)[:, 4:], block(x)[:, 4:])


@pytest.mark.parametrize("rotary", [False, True])
def test_padding_changes_nothing_and_may_hold_nan(rotary):
    layer, x = MultiHeadAttention(8, 2, rotary=rotary), torch.randn(3, 5, 8)
    y = layer(x.masked_fill(~MASK[..., None], torch.nan), mask=MASK)
    for row, length in enumerate(LENGTHS):
        assert_close(y[row, :length], layer(x[row : row + 1, :length])[0], **EXACT)


@pytest.mark.parametrize("rotary", [False, True])
def test_a_cache_changes_nothing(rotary):
    block, x = TransformerBlock(8, 2, causal=True, rotary=rotary), torch.randn(2, 6, 8)
    cache = KeyValueCache()
    steps = [block(part, cache=cache) for part in x.split([3, 1, 2], 1)]
    assert_close(torch.cat(steps, 1), block(x), **EXACT)
    cache.select(torch.tensor([1]))
    assert cache.length == 6 and len(cache.keys) == 1


def test_a_decoder_block_attends_to_its_context_as_torchs_does():
    ours = TransformerBlock(8, 2, norm="post", causal=True, cross=True, activation="relu")
    theirs = nn.TransformerDecoderLayer(8, 2, 32, 0.0, batch_first=True)
    names = {
        "self_attention": "self_attn", "cross_attention": "multihead_attn", "ln_1": "norm1",
        "ln_cross": "norm2", "ln_2": "norm3", "mlp.0": "linear1", "mlp.3": "linear2",
    }  # fmt: skip
    state = {
        names[old] + key.removeprefix(old): value
        for key, value in ours.state_dict().items()
        for old in names
        if key.startswith(f"{old}.")
    }
    theirs.load_state_dict(state, strict=True)
    x, context = torch.randn(3, 4, 8), torch.randn(3, 5, 8)
    future = torch.ones(4, 4, dtype=torch.bool).triu(1)
    expected = theirs(x, context, tgt_mask=future, memory_key_padding_mask=~MASK)
    assert_close(ours(x, context=context, context_mask=MASK), expected, **EXACT)
    with pytest.raises(UsageError, match="needs a context"):
        ours(x)


def test_additive_attention_is_its_formula():
    layer, z, keys = BahdanauAttention(3, 4, 5), torch.randn(3, 2, 3), torch.randn(3, 5, 4)
    context, weights = layer(z, keys.masked_fill(~MASK[..., None], torch.nan), MASK)
    W, U, u = layer.query.weight, layer.key.weight, layer.score.weight[0]
    for b, length in enumerate(LENGTHS):
        for i in range(2):
            scores = torch.stack([u @ torch.tanh(W @ z[b, i] + U @ s) for s in keys[b, :length]])
            assert_close(context[b, i], scores.softmax(0) @ keys[b, :length], **EXACT)
    assert_close(weights.sum(-1), torch.ones(3, 2))


def test_additive_attention_to_nothing_is_zero_with_finite_gradients():
    layer, mask = BahdanauAttention(3, 4), torch.tensor([[True, False], [False, False]])
    context, _ = layer(torch.randn(2, 1, 3), torch.randn(2, 2, 4), mask)
    assert_close(context[1], torch.zeros(1, 4))
    context.sum().backward()
    assert all(p.grad.isfinite().all() for p in layer.parameters())


def test_a_shift_of_sinusoidal_positions_is_a_rotation():
    positions = SinusoidalPositions(8)(torch.zeros(1, 50, 8))[0]
    k = torch.arange(8)
    omega = 10000.0 ** (-2 * (k // 2) / 8)
    t = torch.arange(50.0)[:, None]
    expected = torch.where(k % 2 == 0, torch.sin(t * omega), torch.cos(t * omega))
    assert_close(positions, expected, **EXACT)
    R = torch.linalg.lstsq(positions[:20], positions[7:27]).solution
    assert_close(positions[20:43] @ R, positions[27:], atol=1e-8, rtol=0)
    assert_close(SinusoidalPositions(8)(torch.zeros(1, 4, 8), 10)[0], positions[10:14])


def test_rotary_products_depend_on_the_distance_only():
    rotate, q, k = RotaryPositions(6), torch.randn(6), torch.randn(6)
    Q, K = rotate(q.expand(20, 6)), rotate(k.expand(20, 6))
    products = Q @ K.T
    for distance in (0, 3, 11):
        diagonal = products.diagonal(distance)
        assert_close(diagonal, diagonal[0].expand_as(diagonal), **EXACT)
    assert_close(Q.norm(dim=-1), q.norm().expand(20))
    assert_close(rotate(q.expand(2, 6), 5), Q[5:7])


def test_learned_positions_end():
    positions = LearnedPositions(4, 2)
    assert_close(positions(torch.zeros(1, 2, 2), 2)[0], positions.weight[2:])
    with pytest.raises(UsageError, match="learned positions for 4 steps, got 5"):
        positions(torch.zeros(1, 5, 2))


def test_lora_starts_unchanged_trains_little_and_merges():
    linear, x = nn.Linear(6, 5), torch.randn(4, 6)
    before = linear(x)
    layer = LoRA(linear, 2, alpha=4)
    assert torch.equal(layer(x), before)
    assert sum(p.numel() for p in layer.parameters() if p.requires_grad) == 2 * (6 + 5)
    nn.init.normal_(layer.B)
    assert_close(layer(x), before + 2 * x @ (layer.B @ layer.A).T, **EXACT)
    assert_close(layer.merge()(x), layer(x), **EXACT)
    with pytest.raises(UsageError, match=r"rank of LoRA must be a whole number in \[1, 5\]"):
        LoRA(linear, 6)


def test_gradients():
    block, x = TransformerBlock(4, 2), torch.randn(3, 5, 4, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: block(x, MASK)[MASK], x)


def test_wrong_calls_are_named():
    with pytest.raises(UsageError, match="must divide its 8 features, got 3"):
        MultiHeadAttention(8, 3)
    with pytest.raises(UsageError, match=r"x of shape \(B, T, 8\), got \(5, 8\).*x\[None\]"):
        MultiHeadAttention(8, 2)(torch.randn(5, 8))
    with pytest.raises(UsageError, match="must be pre or post"):
        TransformerBlock(8, 2, norm="mid")
    with pytest.raises(UsageError, match="even number of features, got 5"):
        SinusoidalPositions(5)
