"""Networks on texts and signals: padding is not seen, and formulas hold."""

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer

from ansatz import networks
from ansatz.data.batch import Padded, Ragged, pad
from ansatz.spec import InputSpec

NAMES = ["bag", "text_cnn", "linear_text"]
CODES = InputSpec.sequence(vocabulary=12, length=9)
NUMBERS = InputSpec.sequence(features=3)


def ragged(spec, lengths=(4, 1, 9, 0, 6)):
    offsets = torch.tensor([0, *np.cumsum(lengths)])
    count = int(offsets[-1])
    values = torch.randint(1, 12, (count,)) if spec.vocabulary else torch.randn(count, 3)
    return Ragged(values, offsets)


def network_of(name, spec):
    made = networks.create(name, inputs=spec, outputs=2).double().eval()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter)
    return made


@pytest.mark.parametrize("spec", [CODES, NUMBERS], ids=["codes", "numbers"])
@pytest.mark.parametrize("name", NAMES)
def test_padded_among_others_is_as_alone(name, spec):
    network, rows = network_of(name, spec), ragged(spec)
    together = network(*pad(rows))
    for place in range(rows.count_rows()):
        alone = network(*pad(rows.take_rows(torch.tensor([place]))))
        torch.testing.assert_close(together[place], alone[0], rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_padding_may_hold_anything(name):
    network, (values, mask) = network_of(name, NUMBERS), pad(ragged(NUMBERS))
    spoiled = torch.where(mask.unsqueeze(-1), values, torch.nan).requires_grad_()
    answer = network(spoiled, mask)
    torch.testing.assert_close(answer, network(values, mask), rtol=0, atol=1e-12)
    answer.sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in network.parameters())


def test_rows_of_a_padded_batch_are_trimmed():
    padded = pad(ragged(NUMBERS))
    part = padded.take_rows(torch.tensor([1, 0]))
    assert isinstance(part, Padded) and part.values.shape == (2, 4, 3)
    assert part.mask.sum(1).tolist() == [1, 4]


def test_linear_text_is_scikit_learns_tf_idf():
    rows = ragged(CODES)
    texts = [
        " ".join(f"w{code}" for code in rows.take_rows(torch.tensor([k])).values.tolist())
        for k in range(5)
    ]
    network = networks.create("linear_text", inputs=CODES, outputs=1, pairs=0).double()
    network.begin(*pad(rows))
    row, number, z = network.terms(*pad(rows))
    found = np.zeros((5, network.size))
    found[row.numpy(), number.numpy()] = z.numpy()
    vocabulary = {f"w{code}": code for code in range(12)}
    expected = TfidfVectorizer(vocabulary=vocabulary).fit_transform(texts).toarray()
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_bag_begins_with_what_each_word_says():
    codes = torch.tensor([[3, 4], [3, 5], [6, 4], [6, 5]])
    slopes = torch.tensor([[-0.5], [-0.5], [0.5], [0.5]])  # of two classes, p - y
    bag = networks.create("bag", inputs=CODES, outputs=1, pairs=0).double()
    bag.begin(codes, codes > 0, slopes)
    by_hand = -slopes[:2].sum() / (0.25 * (2 + 1))
    torch.testing.assert_close(bag.ratios.weight[3, 0], by_hand)
    torch.testing.assert_close(bag.ratios.weight[6, 0], -by_hand)
    assert bag.ratios.weight[4].item() == 0
