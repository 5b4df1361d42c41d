"""Networks that write texts: scores, caches, beams, padding; and those that point."""

import itertools

import pytest
import torch
from torch.testing import assert_close

from ansatz.layers import MultiHeadAttention
from ansatz.networks import EncoderDecoder, Pointer, Seq2Seq, beam_search
from ansatz.spec import InputSpec

WORDS = InputSpec.sequence(vocabulary=7)
SOURCES = {
    "words": WORDS,
    "other words": InputSpec.sequence(vocabulary=5),
    "numbers": InputSpec.sequence(features=3),
    "image": InputSpec.grid(1, 16, 24),
}
every_network = pytest.mark.parametrize("kind", [EncoderDecoder, Seq2Seq])


def make(kind, source=WORDS, **options):
    made = kind(InputSpec.joined(source=source, target=WORDS), 3, width=8, **options)
    torch.nn.init.normal_(made.bias)
    return made.double().eval()


def sources(spec, lengths=(5, 3)):
    if spec.structure == "grid":
        return [torch.randn(len(lengths), 1, *spec.size)]
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    shape = mask.shape
    x = torch.randint(2, 5, shape) if spec.vocabulary else torch.randn(*shape, spec.features)
    return [x, mask]


def log_p(network, source, codes):
    """log p(y | x) by the steps of the decoder, one token after another."""
    with torch.no_grad():
        state, total = network.begin(network.remember(source)), torch.zeros(1)
        before = torch.tensor([network.boundary])
        for code in [*codes, network.boundary]:
            state, logits = network.step(state, before)
            total += logits.log_softmax(-1)[0, code]
            before = torch.tensor([code])
    return total[0]


@every_network
@pytest.mark.parametrize("spec", SOURCES.values(), ids=SOURCES)
def test_a_score_is_the_sum_of_its_steps(kind, spec):
    network, source = make(kind, spec), sources(spec, (5,))
    codes = torch.tensor([[3, 2, 5]])
    found = network(*source, codes, torch.ones(1, 3).bool())
    assert_close(found[0, 0], log_p(network, source, [3, 2, 5]))
    assert found[0, 2] == 4


@every_network
def test_probabilities_of_all_texts_sum_to_one(kind):
    """Texts of up to two tokens, and the rest of the probability by those that go on."""
    network, source = make(kind), sources(WORDS, (4,))
    codes = range(1, 6)
    with torch.no_grad():
        texts = [(), *itertools.product(codes), *itertools.product(codes, codes)]
        ended = sum(log_p(network, source, text).exp() for text in texts)
        memory = network.remember(source)
        goes_on = torch.zeros(())
        for text in itertools.product(codes, codes):
            h = network.hidden(memory, torch.tensor([[network.boundary, *text]]))
            p = network.scores(h).softmax(-1)[0]
            goes_on += p[0, text[0]] * p[1, text[1]] * (1 - p[2, network.boundary])
    assert_close(ended + goes_on, torch.ones(()))


@every_network
@pytest.mark.parametrize("spec", [WORDS, SOURCES["numbers"]], ids=["words", "numbers"])
def test_padding_and_company_change_nothing(kind, spec):
    network, (x, mask) = make(kind, spec), sources(spec)
    codes, present = torch.tensor([[2, 3, 4], [5, 2, 0]]), torch.tensor([[1, 1, 1], [1, 1, 0]])
    alone = network(x[1:, :3], mask[1:, :3], codes[1:, :2], present[1:, :2].bool())
    if x.is_floating_point():
        x = torch.where(mask.unsqueeze(-1), x, torch.nan)
    together = network(x, mask, codes, present.bool())
    assert_close(together[1:], alone)
    together.sum().backward()
    assert all(p.grad.isfinite().all() for p in network.parameters() if p.grad is not None)


@every_network
def test_one_beam_is_greedy(kind):
    network, source = make(kind), sources(WORDS, (4,))
    found = beam_search(network, network.remember(source), length=6, beams=1)
    with torch.no_grad():
        state, greedy = network.begin(network.remember(source)), []
        before = torch.tensor([network.boundary])
        for _ in range(6):
            state, logits = network.step(state, before)
            before = logits.argmax(-1)
            if before == network.boundary:
                break
            greedy.append(int(before))
    assert found.codes[0][found.mask[0]].tolist() == greedy
    assert_close(found.log_prob[0], log_p(network, source, greedy))


@every_network
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_enough_beams_find_the_best_of_all_texts(kind, penalty):
    network, source = make(kind), sources(WORDS, (4,))
    texts = [t for n in range(4) for t in itertools.product(range(1, 6), repeat=n)]
    scores = [log_p(network, source, text) / (len(text) + 1) ** penalty for text in texts]
    best = max(range(len(texts)), key=scores.__getitem__)
    memory = network.remember(source)
    found = beam_search(network, memory, length=3, beams=200, penalty=penalty)
    assert tuple(found.codes[0][found.mask[0]].tolist()) == texts[best]


@every_network
def test_a_search_in_a_batch_is_that_of_each_source(kind):
    network, (x, mask) = make(kind), sources(WORDS, (5, 3, 4))
    together = beam_search(network, network.remember([x, mask]), length=8, beams=3)
    for row, length in enumerate((5, 3, 4)):
        source = [x[row : row + 1, :length], mask[row : row + 1, :length]]
        alone = beam_search(network, network.remember(source), length=8, beams=3)
        assert_close(together.log_prob[row], alone.log_prob[0])
        assert together.codes[row][together.mask[row]].equal(alone.codes[0][alone.mask[0]])


@every_network
def test_later_tokens_change_no_earlier_state(kind):
    network, source = make(kind), sources(WORDS)
    memory, codes = network.remember(source), torch.tensor([[6, 2, 3], [6, 4, 5]])
    changed = codes.clone()
    changed[:, 2] = 1
    same = network.hidden(memory, codes)[:, :2]
    assert_close(network.hidden(memory, changed)[:, :2], same)


@every_network
def test_alignments_are_weights_of_present_steps(kind):
    network, source = make(kind), sources(WORDS)
    weights = network.alignment(network.remember(source), torch.tensor([[6, 2], [6, 3]]))
    assert_close(weights.sum(-1), torch.ones(2, 2))
    assert (weights[1, :, 3:] == 0).all()


def test_cross_attention_to_itself_is_self_attention():
    layer, x = MultiHeadAttention(8, 2), torch.randn(2, 5, 8)
    assert_close(layer(x, x), layer(x))


@every_network
def test_smoothing_takes_the_mean_over_real_tokens(kind):
    network, source = make(kind), sources(WORDS, (4,))
    codes = torch.tensor([[3]])
    found = network(*source, codes, torch.ones(1, 1).bool())
    memory = network.remember(source)
    scores = network.scores(network.hidden(memory, torch.tensor([[network.boundary, 3]])))
    assert_close(found[0, 1], scores.log_softmax(-1)[0, :, 1:].mean(-1).sum(), rtol=1e-6, atol=1e-6)


def test_a_pointer_ignores_company_and_scores_contexts_alone():
    spec = InputSpec.sequence(vocabulary=9, length=12)
    for body in ("lstm", "bert"):
        options = {"width": 8, "depth": 1, "heads": 2} if body == "bert" else {}
        network = Pointer(spec, 2, width=8, body=body, options=options).double().eval()
        values = torch.randint(2, 9, (2, 7))
        mask = torch.arange(7) < torch.tensor([[7], [5]])
        context = mask & (torch.arange(7) > 2)
        together = network(values, mask, context)
        alone = network(values[1:, :5], mask[1:, :5], context[1:, :5])
        assert together.shape == (2, 4, 2)
        assert_close(together[1:, :2], alone)
        assert (together[1, 2:] == -1e4).all()
