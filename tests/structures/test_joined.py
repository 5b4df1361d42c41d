"""Columns of several kinds in one model: texts, numbers, categories, images."""

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

import ansatz
from ansatz import Classifier, networks
from ansatz.errors import UsageError
from ansatz.fitting.replay import replay
from ansatz.report import build, replayed
from ansatz.spec import InputSpec

DRAW = np.random.default_rng(0)
SETTINGS = {"steps": 60, "batch_size": 16}


def reviews(count=120):
    """Whether a film was seen again: by a word of the text, a number and a category."""
    words = DRAW.choice(["fine", "dull"], count)
    frame = pd.DataFrame({
        "review": [f"the play number {k} was so {word}" for k, word in enumerate(words)],
        "length": DRAW.normal(size=count), "site": DRAW.choice(["a", "b"], count),
        "title": [f"a title of number {k} and more words" for k in range(count)],
    })  # fmt: skip
    eta = 2.0 * (words == "fine") - 2 * (frame["site"] == "a") + 2 * frame["length"]
    return frame.assign(again=np.where(DRAW.logistic(size=count) < 2 * eta, "yes", "no"))


FRAME = reviews()


def test_every_part_is_used_by_the_network_and_by_the_linear_model(tmp_path):
    frame = FRAME.drop(columns="title")
    frame.to_csv(tmp_path / "r.csv", index=False)
    fit = ansatz.fit(tmp_path / "r.csv", target="again", text_column="review", options=SETTINGS,
                     out=tmp_path / "m")  # fmt: skip
    assert (fit.structure, fit.network) == ("joined", "joined")
    assert fit.linear["nll"] < fit.constant["nll"] and fit.metrics["nll"] < fit.constant["nll"]
    model = ansatz.load(tmp_path / "m")
    before = model.predict_proba(frame[:40])
    for name, other in (("review", "the play was so dull"), ("length", 9.0), ("site", "b")):
        assert np.abs(model.predict_proba(frame[:40].assign(**{name: other})) - before).max() > 1e-3
    shuffled = frame[frame.columns[::-1]][:40]
    np.testing.assert_array_equal(model.predict_proba(shuffled), before)
    alone = model.predict_proba(frame[:1])
    np.testing.assert_allclose(alone, before[:1], rtol=0, atol=1e-10)
    assert len(build(replayed(replay(fit))).sections) > 3


def test_several_texts_are_parts_of_their_own():
    fit = ansatz.fit(FRAME, target="again", text_column="review,title", options=SETTINGS)
    parts = [name for name, _ in fit.fitted.encoder.spec.parts]
    assert parts == ["sequence", "sequence_2", "vector"]
    assert fit.metrics["nll"] < fit.constant["nll"]


def test_an_image_beside_a_text_and_numbers(tmp_path):
    frame = FRAME[["review", "length", "again"]][:60].copy()
    for k in range(60):
        pixels = DRAW.integers(0, 200, (8, 8)).astype(np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{k}.png")
    frame["photo"] = [f"{k}.png" for k in range(60)]
    frame.to_csv(tmp_path / "r.csv", index=False)
    bodies = {"grid": {"width": 4}}
    settings = {**SETTINGS, "steps": 20, "bodies": bodies}
    fit = ansatz.fit(tmp_path / "r.csv", target="again", text_column="review", image="photo",
                     options=settings, likelihood="bernoulli", out=tmp_path / "m")  # fmt: skip
    assert [name for name, _ in fit.fitted.encoder.spec.parts] == ["sequence", "grid", "vector"]
    assert fit.linear is not None
    again = ansatz.load(tmp_path / "m")  # JSON on disk is sorted: grid, sequence, vector
    assert again.model_.posterior.encoder.spec == fit.fitted.encoder.spec
    frame["photo"] = [str(tmp_path / name) for name in frame["photo"]]
    found, same = (each.predict_proba(frame) for each in (again, fit.model))
    np.testing.assert_array_equal(found, same)


def test_an_estimator_takes_a_frame_with_a_text():
    X, y = FRAME[["site", "review", "length"]], FRAME["again"]
    model = Classifier(random_state=0, steps=60).fit(X[:90], y[:90])
    assert model.score(X[90:], y[90:]) > 0.6
    assert (
        model.predict(X[["length", "review", "site"]][:5]).tolist() == model.predict(X[:5]).tolist()
    )


PARTS = InputSpec.joined(
    sequence=InputSpec.sequence(vocabulary=7), vector=InputSpec("vector", 2, (3,))
)


def test_the_linear_model_of_parts_is_one_linear_map_of_their_features():
    network = networks.create("linear_joined", PARTS, 2)
    torch.nn.init.normal_(network.output.weight)
    values, x = torch.tensor([[2, 3], [4, 0]]), torch.randn(2, 2)
    inputs = (values, values > 0, x, torch.tensor([[1], [2]]))
    network.begin(*inputs)
    row, number, z = network.design(*inputs)
    dense = torch.zeros(2, network.size).index_put((row, number), z.to(x.dtype), accumulate=True)
    text = network.sizes[0]
    torch.testing.assert_close(dense[:, text : text + 2], x)
    assert dense[0, text + 2 :].tolist() == [0, 1, 0] and dense[1, text + 2 :].tolist() == [0, 0, 1]
    torch.testing.assert_close(network(*inputs), dense @ network.output.weight.T)


def test_padding_changes_no_answer_of_joined():
    network = networks.create("joined", PARTS, 2).eval()
    values, x = torch.tensor([[2, 3, 0], [4, 5, 6]]), torch.randn(2, 2)
    inputs = (values, values > 0, x, torch.tensor([[1], [2]]))
    alone = network(values[:1, :2], values[:1, :2] > 0, x[:1], inputs[3][:1])
    torch.testing.assert_close(network(*inputs)[:1], alone)
    with pytest.raises(ValueError, match="joined takes 4 tensors, those of sequence, vector"):
        network(*inputs[:3])


def test_bad_input_is_one_line():
    with pytest.raises(UsageError, match=r"no part is called 'grid'\. Parts: sequence, vector"):
        networks.create("joined", PARTS, 2, bodies={"grid": {}})
    with pytest.raises(UsageError, match=r"no column 'revue'.*Did you mean 'review'"):
        ansatz.fit(FRAME, target="again", text_column="revue,title")
