"""Models of texts as ONNX files: codes and a mask in, with the tokenizer beside the file."""

import numpy as np
import pytest

import ansatz
from ansatz import Classifier, Regressor
from ansatz.errors import UsageError
from ansatz.onnx import feed

onnxruntime = pytest.importorskip("onnxruntime")
tokenizers = pytest.importorskip("tokenizers")

TEXTS = [
    f"the {what} was {'so ' * (k % 4)}{how}"
    for k, what in enumerate(("film", "play", "plot", "song", "cast"))
    for how in ("fine", "dull", "lovely", "awful", "great", "poor", "good", "bad")
]
LABELS = ["pos", "neg"] * 20
QUICK = {"steps": 3, "batch_size": 16, "random_state": 0}
SLOW = [
    pytest.param(name, marks=pytest.mark.slow)
    for name in ("bag", "text_cnn", "bert", "gpt", "rnn", "lstm", "mingru")
]


@pytest.mark.parametrize("network", ["gru", *SLOW])
def test_the_tokenizer_and_the_graph_are_the_model(network, tmp_path):
    model = Classifier(network=network, length=8, **QUICK).fit(TEXTS, LABELS)
    ansatz.export(model, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "m.tokenizer.json"))
    for texts in (["the cast was lovely", "a long film of " + "so " * 9 + "bad"], TEXTS[:30]):
        found = tokenizer.encode_batch(texts)
        codes = np.array([each.ids for each in found])
        mask = np.array([each.attention_mask for each in found], dtype=bool)
        answers = session.run(["probabilities"], {"X": codes, "mask": mask})[0]
        np.testing.assert_allclose(answers, model.predict_proba(texts), rtol=0, atol=1e-5)
        given = feed(model, texts)
        assert np.array_equal(given["X"], codes) and np.array_equal(given["mask"], mask)


@pytest.mark.slow
def test_signals_are_standardised_inside_the_graph(tmp_path):
    rng = np.random.default_rng(0)
    signals = [5 + 3 * rng.normal(size=(3 + k % 4, 2)) for k in range(40)]
    model = Regressor(network="bag", **QUICK).fit(signals, rng.normal(size=40))
    ansatz.export(model, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    given = feed(model, signals)
    np.testing.assert_allclose(given["X"][0, :3], signals[0], rtol=1e-6)
    found = session.run(["prediction"], given)[0]
    np.testing.assert_allclose(found, model.predict(signals), rtol=1e-4, atol=1e-5)


def test_a_network_of_complex_states_is_refused_in_a_line(tmp_path):
    model = Classifier(network="lru", network_options={"width": 8}, **QUICK).fit(TEXTS, LABELS)
    with pytest.raises(UsageError, match=r"any number of sequences and steps.*gru"):
        ansatz.export(model, tmp_path / "m.onnx")
