"""Texts and signals of unequal length, from files and lists to predictions."""

import json

import numpy as np
import pandas as pd
import pytest
import torch

import ansatz
from ansatz import Classifier, Regressor
from ansatz.data.batch import Batch, Ragged
from ansatz.data.sequences.reading import decode, read_texts
from ansatz.data.sequences.source import SequenceSource
from ansatz.data.sequences.tokens import KINDS, Tokens
from ansatz.errors import DataError, UsageError
from ansatz.storage import read_tensors
from ansatz.training import Callback

RNG = np.random.default_rng(0)
TEXTS = [
    " ".join(
        [*RNG.choice(["the", "film", "play", "was"], 2 + k % 7), ["bad", "fine"][k % 2], str(k)]
    )
    for k in range(60)
]
LABELS = ["neg", "pos"] * 30
QUICK = {"steps": 60}


@pytest.fixture(scope="module")
def model():
    return Classifier(random_state=0).fit(TEXTS, LABELS)


def test_texts_are_classified_whatever_stands_beside_them(model):
    assert model.predict(["the play was fine", "a film so bad"]).tolist() == ["pos", "neg"]
    together = model.predict_proba(TEXTS)
    alone = np.concatenate([model.predict_proba([text]) for text in TEXTS[:5]])
    np.testing.assert_allclose(together[:5], alone, rtol=0, atol=1e-10)


def test_a_saved_model_predicts_the_same(model, tmp_path):
    model.save(tmp_path / "m")
    again = ansatz.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict_proba(TEXTS), model.predict_proba(TEXTS))


def test_signals_of_unequal_length_have_a_regression():
    signals = [RNG.normal(size=(3 + k % 4, 2)) + k % 3 for k in range(60)]
    model = Regressor(random_state=0).fit(signals, np.arange(60) % 3 + RNG.normal(size=60) / 9)
    assert model.score(signals, np.arange(60) % 3) > 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_come_back_from_their_state(kind):
    tokens = Tokens.learn(TEXTS, kind=kind)
    again = Tokens(json.dumps(tokens.state()))
    assert tokens.size == again.size
    assert torch.equal(tokens.encode(TEXTS).values, again.encode(TEXTS).values)
    assert (tokens.encode(TEXTS).values > 1).all()


def test_letters_without_spaces_are_characters():
    assert Tokens.learn(["ACGT" * 10, "TTGA" * 10]).split("ACX") == ["A", "C", "[UNK]"]


def test_a_batch_is_of_similar_lengths_and_holds_every_row_once():
    lengths = torch.randint(1, 100, (640,))
    offsets = torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)])
    rows = Batch((), torch.arange(640), torch.ones(640), None, torch.arange(640))
    source = SequenceSource(Ragged(torch.ones(int(offsets[-1])), offsets), rows, 8)
    batches = list(source.batches(3))
    assert sorted(torch.cat([b.index for b in batches]).tolist()) == list(range(640))
    filled = sum(int(b.inputs.mask.sum()) for b in batches)
    assert filled / sum(b.inputs.mask.numel() for b in batches) > 0.9
    assert all(torch.equal(b.inputs.mask.sum(1), lengths[b.index]) for b in batches)
    assert torch.equal(next(source.batches(3, start=5)).index, batches[5].index)


def test_a_table_a_folder_and_json_lines_hold_the_same_texts(tmp_path):
    frame = pd.DataFrame({"text": TEXTS[:4], "class": LABELS[:4]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    for place, (text, label) in enumerate(zip(TEXTS[:4], LABELS[:4], strict=True)):
        (tmp_path / "folder" / label).mkdir(parents=True, exist_ok=True)
        (tmp_path / "folder" / label / f"{place}.txt").write_text(text)
    for name in ("t.csv", "t.jsonl", "folder"):
        _, found, _ = read_texts(tmp_path / name)
        pairs = set(zip(found["text"], found["class"], strict=True))
        assert pairs == set(zip(TEXTS[:4], LABELS[:4], strict=True))


class PowerCut(Callback):
    def on_step(self, run, logs):
        if run.number == 10:
            raise OSError("power cut")


def test_an_interrupted_fit_ends_in_the_same_bits(tmp_path, monkeypatch):
    frame = pd.DataFrame({"text": TEXTS * 3, "label": LABELS * 3})
    frame["text"] += [f" {k}" for k in range(180)]
    frame.to_csv(tmp_path / "t.csv", index=False)
    options = {"target": "label", "text_column": "text", "options": QUICK, "resume": True}
    data, whole, cut = (tmp_path / name for name in ("t.csv", "whole", "cut"))
    ansatz.fit(data, **options, out=whole)
    monkeypatch.setattr("ansatz.training.loop._SECONDS_BETWEEN_CHECKPOINTS", 0)
    with pytest.raises(OSError, match="power cut"):
        ansatz.fit(data, **options, out=cut, callbacks=[PowerCut()])
    written = [int(path.name[5:]) for path in (tmp_path / "cut.training").glob("step-*")]
    assert 0 < max(written) <= 10 and not cut.exists()
    ansatz.fit(data, **options, out=cut)
    one, other = (read_tensors(each / "weights.safetensors") for each in (whole, cut))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_bad_input_is_one_line():
    with pytest.raises(DataError, match=r"byte 0xe9 at offset 3.*--encoding"):
        decode(b"caf\xe9", "a.txt")
    with pytest.raises(UsageError, match="several columns hold text: a, b"):
        ansatz.fit(pd.DataFrame({"a": TEXTS, "b": TEXTS, "y": LABELS}), target="y", x="sequence")
    with pytest.raises(DataError, match="all texts are empty"):
        Classifier().fit(["", " "] * 20, LABELS[:40])
