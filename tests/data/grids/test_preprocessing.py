import numpy as np
import pytest
import torch
from torch.testing import assert_close

from ansatz.data.grids import GridPreprocessor, Grids
from ansatz.errors import DataError


@pytest.mark.parametrize("size", [(30,), (6, 7), (3, 4, 5)])
def test_every_channel_gets_mean_zero_and_standard_deviation_one(size):
    x = torch.randn(50, 3, *size) * torch.tensor([1.0, 2.0, 9.0]).view(3, *(1,) * len(size)) + 4
    grids = Grids.of(x, channels="first")
    (z,) = GridPreprocessor.fit(grids).transform(grids)
    flat = z.double().transpose(0, 1).reshape(3, -1)
    assert z.dtype == torch.float32
    assert_close(flat.mean(1), torch.zeros(3), rtol=0, atol=1e-5)
    assert_close(flat.std(1, correction=0), torch.ones(3), rtol=1e-5, atol=0)


def test_is_the_formula():
    grids = Grids.of(torch.randint(0, 256, (9, 3, 5, 5), dtype=torch.uint8))
    x = grids.load().double() / 255
    mean, spread = x.mean((0, 2, 3)), x.std((0, 2, 3), correction=0)
    expected = (x - mean.view(3, 1, 1)) / spread.view(3, 1, 1)
    assert_close(GridPreprocessor.fit(grids).transform(grids)[0].double(), expected, rtol=1e-5,
                 atol=1e-5)  # fmt: skip


def test_a_weight_of_two_is_an_example_twice():
    x = torch.randn(6, 1, 4, 4)
    weight = np.array([1.0, 2, 1, 3, 1, 1])
    twice = x.repeat_interleave(torch.tensor([1, 2, 1, 3, 1, 1]), 0)
    by_weight = GridPreprocessor.fit(Grids.of(x, channels="first"), weight)
    by_duplicates = GridPreprocessor.fit(Grids.of(twice, channels="first"))
    assert by_weight.mean == pytest.approx(by_duplicates.mean)
    assert by_weight.scale == pytest.approx(by_duplicates.scale)


def test_a_channel_without_variation_is_only_shifted():
    grids = Grids.of(torch.full((3, 1, 4, 4), 7.0), channels="first")
    (z,) = GridPreprocessor.fit(grids).transform(grids)
    assert_close(z, torch.zeros(3, 1, 4, 4, dtype=torch.float32))


def test_what_is_not_loaded_is_what_the_sample_leaves_out(monkeypatch):
    """Of more examples than the sample those evenly spaced from first to last are looked at."""
    monkeypatch.setattr("ansatz.data.grids.preprocessing.SAMPLE", 3)
    x = torch.randn(5, 1, 2, 2)
    found = GridPreprocessor.fit(Grids.of(x, channels="first"))
    assert found.mean[0] == pytest.approx(float(x[[0, 2, 4]].float().double().mean()))


def test_the_state_is_plain_and_comes_back():
    made = GridPreprocessor((3, 4, 5), [0.1, 0.2, 0.3], [1.0, 2.0, 3.0], 255.0)
    again = GridPreprocessor.from_state(made.state())
    assert again.state() == made.state() and again.spec == made.spec


@pytest.mark.parametrize(
    "change",
    [
        {"mean": [0.0]},
        {"scale": [1.0, 0.0, 1.0]},
        {"mean": [0.0, float("nan"), 0.0]},
        {"shape": []},
        {"unit": "many"},
    ],
)
def test_a_damaged_state_is_refused(change):
    state = GridPreprocessor((3, 4, 5), [0.0] * 3, [1.0] * 3, 1.0).state()
    with pytest.raises(DataError, match=r"preprocessing of grids"):
        GridPreprocessor.from_state({**state, **change})
    state.pop("scale")
    with pytest.raises(DataError, match=r"scale"):
        GridPreprocessor.from_state(state)


def test_examples_of_another_shape_or_kind_are_refused():
    made = GridPreprocessor((1, 4, 4), [0.0], [1.0], 1.0)
    with pytest.raises(DataError, match=r"1 channel of 4 x 4, got 1 channel of 4 x 5"):
        made.check(Grids(torch.zeros(2, 1, 4, 5, dtype=torch.float32)))
    made.check(Grids(torch.zeros(2, 1, 4, 5, dtype=torch.float32)), any_size=True)
    with pytest.raises(DataError, match=r"got 3 channels of 4 x 4"):
        made.check(Grids(torch.zeros(2, 3, 4, 4, dtype=torch.float32)), any_size=True)
    with pytest.raises(DataError, match=r"fitted to other numbers, got bytes"):
        made.check(Grids(torch.zeros(2, 1, 4, 4, dtype=torch.uint8)))


@pytest.mark.parametrize("count, value", [(30, 77), (60, 77), (500, 3), (7, 255)])
def test_rounding_is_not_variation(count, value):
    x = torch.full((count, 2, 20, 20), value, dtype=torch.uint8)
    x[:, 0] = torch.randint(256, (count, 20, 20), dtype=torch.uint8)
    found = GridPreprocessor.fit(Grids.of(x, "first"))
    assert found.scale[1] == 1 and 0.2 < found.scale[0] < 0.4


def test_large_values_of_little_variation_keep_it():
    x = 1000 + torch.randn(50, 1, 6, 6)
    found = GridPreprocessor.fit(Grids.of(x, "first"))
    assert found.scale[0] == pytest.approx(x.std(correction=0).item(), rel=1e-4)


def test_the_state_of_format_2_is_still_read():
    old = {"structure": "grid", "shape": [1, 2, 2], "mean": [0.5], "spread": [2.0], "unit": 1.0}
    assert GridPreprocessor.from_state(old).scale == [2.0]
