"""Reports of texts: coloured tokens, lengths and attention maps."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch.testing import assert_close

from ansatz import Classifier, Regressor, networks
from ansatz.attribution import attention_maps
from ansatz.figures.page import render
from ansatz.report import gather
from ansatz.spec import InputSpec
from ansatz.structures.sequence.report import attention, coloured_texts, lengths
from ansatz.structures.sequence.report.attributions import token_attributions
from ansatz.structures.sequence.report.text_drawing import COLUMNS, Coloured, draw_texts

SPEC = InputSpec.sequence(vocabulary=30, length=12)
TEXTS = [
    " ".join(["the", "film", "was", *["so"] * (k % 6), ["bad", "fine"][k % 2]]) for k in range(80)
]
LABELS = ["neg", "pos"] * 40
QUICK = {"steps": 40, "random_state": 0}
first = lambda y: y[:, 0]  # noqa: E731


@pytest.mark.parametrize("name", ["bag", "bert", "gpt", "distilbert", "transformer", "text_cnn"])
def test_shares_of_tokens_add_up_to_the_difference_of_the_scores(name):
    options = {} if name in ("bag", "text_cnn") else {"width": 8, "depth": 1, "heads": 2}
    network = networks.create(name, SPEC, 2, torch.Generator().manual_seed(0), **options)
    torch.nn.init.normal_(next(network.double().eval().parameters()), 0, 0.1)
    codes = torch.randint(2, 30, (7,))
    found = token_attributions(network, codes, first)
    tables = [m for m in network.modules() if isinstance(m, torch.nn.Embedding)]
    with torch.no_grad():
        before = network(codes[None], torch.ones(1, 7, dtype=torch.bool))[0, 0]
        for table in tables:
            if table.num_embeddings >= 30:  # of words, not of positions
                table.weight.zero_()
        after = network(codes[None], torch.ones(1, 7, dtype=torch.bool))[0, 0]
    gap = float((found.value.sum() - before + after).abs())
    assert found.gap == pytest.approx(gap, abs=1e-9)
    assert gap < (0.2 if name in NORMED else 1e-9) * max(1e-3, abs(float(before - after)))


NORMED = ("bert", "distilbert", "gpt", "transformer")  # a norm bends where embeddings vanish


def test_the_shares_of_a_linear_bag_are_its_weights():
    network = networks.create("bag", SPEC, 1, pairs=0).double().eval()
    codes = torch.tensor([3, 4, 4, 9])
    found = token_attributions(network, codes, first)
    each = network.output.weight @ network.embedding(codes).T / 4
    each = each + network.scale * network.ratios(codes).T / 2
    assert_close(found.value, each[0].detach(), atol=1e-12, rtol=0)
    assert found.gap < 1e-12


def test_without_embeddings_a_token_is_left_out():
    class Count(torch.nn.Module):
        def forward(self, values, mask):
            return (values * mask).sum(1, keepdim=True).double()

    found = token_attributions(Count(), torch.tensor([3, 5, 0]), first)
    assert found.gap is None and found.value.tolist() == [3, 5, 0]


def test_attention_maps_are_the_weights_of_the_formula():
    network = networks.create("bert", SPEC, 2, width=8, depth=2, heads=2).double().eval()
    codes, mask = torch.randint(2, 30, (2, 5)), torch.arange(5) < torch.tensor([[5], [3]])
    found = attention_maps(network, codes, mask)
    assert [tuple(each.shape) for each in found] == [(2, 2, 5, 5)] * 2
    parts, block = network.bert["embeddings"], network.bert["encoder"]["layer"][0]
    x = parts["word_embeddings"](codes) + parts["token_type_embeddings"](0 * codes)
    x = parts["LayerNorm"](x + parts["position_embeddings"](torch.arange(5)))
    q, k = (block.attention["self"][name](x).reshape(2, 5, 2, 4) for name in ("query", "key"))
    scores = torch.einsum("bthd,bshd->bhts", q, k) / 2
    want = scores.masked_fill(~mask[:, None, None], -torch.inf).softmax(-1)
    assert_close(found[0], want.detach(), atol=1e-12, rtol=0)


@pytest.fixture(scope="module")
def evidence():
    options = {"width": 8, "depth": 1, "heads": 2}
    model = Classifier(network="transformer", network_options=options, **QUICK)
    return gather(model.fit(TEXTS, LABELS), TEXTS, np.array(LABELS))


def test_a_page_has_the_three_chapters_and_escapes_texts(evidence):
    hostile = ["<script>alert(1)</script> & film\x00\u202e fine", "", "漢字 film"]
    few = gather(evidence.model, [*hostile, *TEXTS], np.array([*LABELS[:3], *LABELS]))
    sections = [each.section(few) for each in (coloured_texts, lengths, attention)]
    assert [each.title for each in sections] == ["Coloured texts", "Lengths", "Attention"]
    page = render(sections, title="t")
    assert "<script>alert" not in page and "\u202e" not in page and "\x00" not in page


def test_lengths_are_bins_of_all_texts(evidence):
    table = lengths.section(evidence).parts[0]
    assert sum(row[1] for row in table.rows) == len(TEXTS)
    mean = sum(row[1] * row[2] for row in table.rows) / len(TEXTS)
    assert_allclose(mean, evidence.row_losses().mean(), rtol=1e-9)


def test_numbers_are_explained_too_and_signals_have_lengths_alone():
    y = np.array([len(text) for text in TEXTS]) + 0.5
    model = Regressor("gamma", **QUICK).fit(TEXTS, y)
    assert "the prediction" in coloured_texts.section(gather(model, TEXTS, y)).parts[0].caption
    signals = [np.ones((3 + k % 5, 2)) * (k % 2) for k in range(80)]
    evidence = gather(Regressor(**QUICK).fit(signals, y), signals, y)
    assert coloured_texts.section(evidence) is None and attention.section(evidence) is None
    assert "steps" in lengths.section(evidence).parts[0].head


def test_a_long_text_is_wrapped_and_shortened():
    text = "word " * 400 + "x" * 300
    svg = draw_texts([Coloured("a < b", text, np.ones(len(text)), 50)])
    assert "a &lt; b" in svg and "…" in svg and svg.count("<text") < 60
    assert 'opacity="0.45"' in svg and COLUMNS > 50
