"""Interpolated Kneser-Ney against a transcription with dictionaries."""

import itertools
from collections import Counter, defaultdict

import pytest
import torch
from torch.testing import assert_close

from ansatz import networks
from ansatz.errors import UsageError
from ansatz.networks import NGram, generate
from ansatz.spec import InputSpec

V, ORDER = 5, 3
TOKENS = InputSpec.sequence(vocabulary=V, length=8)


def counted(order=ORDER, vocabulary=V, seed=0, documents=2):
    torch.manual_seed(seed)
    codes = torch.randint(2, V, (60 * documents,))
    codes[::60] = 0
    begin = torch.arange(documents).repeat_interleave(60) * 60
    places = torch.cat([torch.arange(60 * d + 1, 60 * d + 60) for d in range(documents)])
    tokens = InputSpec.sequence(vocabulary=vocabulary, length=8)
    net = NGram(tokens, vocabulary, order=order)
    net.count(codes, begin, places)
    return net, codes.tolist(), documents


def naive(codes, documents, order):
    """p(w | h) by the formula, counts in dictionaries."""
    grams = []
    for d in range(documents):
        text = [0] * (order - 1) + codes[60 * d : 60 * (d + 1)]
        grams += [tuple(text[k - order + 1 : k + 1]) for k in range(order, len(text))]
    count = {order: Counter(grams)}
    for n in reversed(range(1, order)):
        count[n] = Counter(gram[1:] for gram in count[n + 1])
    discount = {}
    for n in count:
        n1, n2, n3, n4 = (sum(c == k for c in count[n].values()) for k in (1, 2, 3, 4))
        y = n1 / (n1 + 2 * n2) if n1 else 0.5
        raw = (
            1 - 2 * y * n2 / n1 if n1 else 1,
            2 - 3 * y * n3 / n2 if n2 else 2,
            3 - 4 * y * n4 / n3 if n3 else 3,
        )
        discount[n] = [min(max(d, 0.05), k - 0.05) for k, d in zip((1, 2, 3), raw, strict=True)]
    follow = defaultdict(dict)
    for n in count:
        for gram, c in count[n].items():
            follow[gram[:-1]][gram[-1]] = (c, discount[n][min(c, 3) - 1])

    def p(w, h):
        lower = p(w, h[1:]) if h else 1 / V
        if h not in follow:
            return lower
        total = sum(c for c, _ in follow[h].values())
        c, d = follow[h].get(w, (0, 0.0))
        return (c - d) / total + sum(d for _, d in follow[h].values()) / total * lower

    return p


@pytest.mark.parametrize("order", [1, 2, 3])
def test_it_is_the_formula_and_sums_to_one(order):
    net, codes, documents = counted(order)
    p = naive(codes, documents, order)
    for h in itertools.product(range(V), repeat=order - 1):
        found = net.probabilities(torch.tensor([h[::-1]]).long().reshape(1, -1))[0]
        assert_close(found, torch.tensor([p(w, h) for w in range(V)]), rtol=0, atol=1e-12)
        assert_close(found.sum(), torch.tensor(1.0))


def test_keys_of_a_large_vocabulary_are_as_good_as_exact_ones():
    net, large = counted(7)[0], counted(7, vocabulary=60_000)[0]
    x = torch.randint(2, V, (2, 8))
    gap = large(x).exp()[:, :V] - net(x).exp()
    assert gap.abs().max() < 1e-2  # of the last term, 1 / V
    assert net._base != large._base


def test_later_tokens_change_nothing_and_its_state_is_its_forward():
    net, x = counted()[0], torch.randint(2, V, (2, 8))
    y = net(x)
    assert_close(net(x[:, :4]), y[:, :, :4])
    first, state = net.advance(x[:, :3])
    assert_close(first, y[:, :, 2])
    assert_close(net.advance(x[:, 3:5], state=state)[0], y[:, :, 4])
    assert torch.equal(generate(net, x, 6), generate(net, x, 6, cache=False))


def test_it_is_rebuilt_from_its_options_and_tensors():
    net, x = counted()[0], torch.randint(2, V, (2, 8))
    again = networks.create("ngram", TOKENS, V, **net.options)
    again.load_state_dict(net.state_dict())
    assert torch.equal(again(x), net(x))


def test_other_outputs_are_refused():
    with pytest.raises(UsageError, match="as many outputs as codes"):
        NGram(TOKENS, 3)
