import numpy as np
import pandas as pd
import torch
from torch.testing import assert_close

import ansatz
from ansatz.outcomes.label import find_temperature


def test_it_finds_the_factor_that_logits_were_multiplied_by():
    generator = torch.Generator().manual_seed(0)
    honest = torch.randn(20_000, 3, generator=generator)
    y = torch.multinomial(honest.softmax(-1), 1, generator=generator).squeeze(1)
    found = find_temperature(2.5 * honest, y, torch.ones(len(y)))
    # d2 NLL / d(log T)2 is the variance of the logits: some 1 / sqrt(20,000) of error
    assert abs(found / 2.5 - 1) < 0.05


def test_a_weight_of_two_is_the_row_twice():
    logits, y = torch.randn(40, 3), torch.randint(3, (40,))
    weight = torch.ones(40)
    weight[:10] = 2
    twice = torch.cat([torch.arange(40), torch.arange(10)])
    a = find_temperature(logits, y, weight)
    b = find_temperature(logits[twice], y[twice], torch.ones(50))
    assert_close(torch.tensor(a), torch.tensor(b), rtol=1e-4, atol=0)


def test_impossible_classes_leave_it_finite():
    logits = torch.tensor([[0.0, -torch.inf], [0.0, -1.0]])
    assert 0 < find_temperature(logits, torch.tensor([1, 0]), torch.ones(2)) < 100


def test_more_coefficients_than_a_class_allows_are_noted():
    draw = np.random.default_rng(0)
    x = draw.normal(size=(100, 8))
    frame = pd.DataFrame(x).add_prefix("x").assign(y=(draw.uniform(size=100) < 0.5).astype(int))
    how = {"target": "y", "network": "linear", "likelihood": "bernoulli"}
    assert any("8 coefficients and" in note for note in ansatz.fit(frame, **how).notes)
    fewer = ansatz.fit(frame[["x0", "x1", "y"]], **how).notes
    assert not any("coefficients and" in note for note in fewer)
