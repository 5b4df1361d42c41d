"""Translations and captions, from Python and from the command line."""

import gzip
import itertools
import json

import numpy as np
import pytest
import sacrebleu
import torch
from numpy.testing import assert_allclose

import ansatz
from ansatz import Translator
from ansatz.cli.main import run
from ansatz.data import Batch
from ansatz.data.sequences.pairs import PairSource
from ansatz.errors import DataError
from ansatz.outcomes.translation.scores import bootstrap, corpus_scores

NUMBERS = {"one": "eins", "two": "zwei", "three": "drei", "four": "vier", "five": "fünf"}
PAIRS = [(f"{a} {b} {c}", f"{NUMBERS[c]} {NUMBERS[b]} {NUMBERS[a]}")
         for a, b, c in itertools.product(NUMBERS, repeat=3)]  # fmt: skip
SOURCES, TARGETS = ([pair[k] for pair in PAIRS] for k in (0, 1))
SMALL = {"width": 32, "depth": 1}


@pytest.fixture(scope="module")
def model():
    made = Translator(tokens="word", steps=250, holdout=0, batch_size=32, network_options=SMALL)
    return made.fit(SOURCES[:-25], TARGETS[:-25])


def test_new_sentences_are_translated(model):
    found = model.evaluate(SOURCES[-25:], TARGETS[-25:])
    assert found["exact"] > 0.6 and found["nll"] < 0.5
    assert model.score(SOURCES[-25:], TARGETS[-25:]) == found["bleu"]


def test_log_prob_is_that_of_the_search(model):
    frame = model.predict_frame(SOURCES[:5])
    texts = frame["prediction"].tolist()
    assert_allclose(model.log_prob(SOURCES[:5], texts), frame["log_prob"], rtol=1e-4, atol=1e-4)
    assert list(model.stream(SOURCES[:5])) == texts == model.predict(SOURCES[:5]).tolist()


def test_a_batch_translates_as_each_alone(model):
    together = model.predict([*SOURCES[:6], "one", ""], beams=3)
    assert [str(model.predict([s], beams=3)[0]) for s in SOURCES[:6]] == together[:6].tolist()
    assert together[-1] == ""


def test_a_saved_model_translates_alike(model, tmp_path):
    loaded = ansatz.load(model.save(tmp_path / "model"))
    assert loaded.predict(SOURCES[:4]).tolist() == model.predict(SOURCES[:4]).tolist()


def test_seq2seq_learns_and_saves(tmp_path):
    options = {"width": 32}
    made = Translator(network="seq2seq", tokens="word", steps=120, holdout=0,
                      network_options=options).fit(SOURCES, TARGETS)  # fmt: skip
    assert made.evaluate(SOURCES, TARGETS, warn=False)["nll"] < 1.2
    loaded = ansatz.load(made.save(tmp_path / "model"))
    assert_allclose(
        loaded.log_prob(SOURCES[:3], TARGETS[:3]), made.log_prob(SOURCES[:3], TARGETS[:3])
    )


def test_scores_are_those_of_sacrebleu():
    found = ["Ein Hund läuft im Schnee .", "Zwei Männer sitzen", "Ein Kind"]
    references = ["Ein Hund läuft durch den Schnee.", "Zwei Männer sitzen", "Ein Kind lacht laut"]
    scores = corpus_scores(found, references)
    assert scores["bleu"] == sacrebleu.corpus_bleu(found, [references]).score
    assert scores["chrf"] == sacrebleu.corpus_chrf(found, [references]).score
    assert scores["exact"] == 1 / 3
    intervals = bootstrap(found * 20, references * 20, draws=200)
    for name in ("bleu", "chrf"):
        assert (
            intervals[name][0]
            < corpus_scores(found * 20, references * 20)[name]
            < intervals[name][1]
        )


def test_batches_hold_all_rows_once_and_about_as_many_steps():
    lengths = torch.randint(2, 30, (1_000, 2))
    rows = Batch.of(torch.empty(1_000, 0), torch.zeros(1_000))
    source = PairSource(lambda part: (part,), lengths, rows, 20, seed=3)
    for epoch in (0, 1):
        parts = [batch.index for batch in source.batches(epoch)]
        assert len(parts) == len(source) and torch.cat(parts).sort().values.equal(
            torch.arange(1_000)
        )
        steps = torch.stack([lengths[part].sum() for part in parts]).double()
        assert steps.std() < 0.2 * steps.mean()
        later = [batch.index for batch in source.batches(epoch, start=7)]
        assert all(a.equal(b) for a, b in zip(parts[7:], later, strict=True))
    batch = next(source.batches(0))
    assert batch.weight.equal(lengths[batch.index, 1].to(batch.weight))


def test_images_are_captioned():
    """Strips of bars: the same outcome after another structure of x."""
    draw = np.random.default_rng(0)
    codes = draw.integers(0, 3, (300, 2))
    shapes = np.zeros((3, 16, 16), dtype=np.float32)
    shapes[0, 7:9], shapes[1, :, 7:9], shapes[2, 4:12, 4:12] = 1, 1, 1
    strips = np.concatenate([shapes[codes[:, 0]], shapes[codes[:, 1]]], axis=2)
    strips += 0.2 * draw.normal(size=strips.shape).astype(np.float32)
    names = ["bar", "pole", "block"]
    texts = [" ".join(names[c] for c in row) for row in codes]
    made = Translator(tokens="word", steps=160, batch_size=16, holdout=0, network_options=SMALL)
    made.fit(strips[:270], texts[:270])
    assert made.evaluate(strips[270:], texts[270:])["exact"] > 0.8


def write_pairs(folder):
    (folder / "a.en").write_text("".join(f"{text}\n" for text in SOURCES))
    (folder / "a.de").write_text("".join(f"{text}\n" for text in TARGETS))
    rows = "".join(f"{a}\t{b}\n" for a, b in PAIRS)
    (folder / "pairs.tsv").write_text("en\tde\n" + rows)


STEPS = ["--set", "steps=12", "--set", "width=16", "--tokens", "word"]


def test_files_of_lines_are_fitted_evaluated_and_translated(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_pairs(tmp_path)
    assert run(["fit", "a.en", "--translation", "a.de", "--out", "m", "--json", *STEPS]) == 0
    fit = json.loads(capsys.readouterr().out)
    assert set(fit["baselines"]) == {"nearest"} and "bleu" in fit["baselines"]["nearest"]
    assert fit["constant"]["nll"] > 0 and fit["rows"]["test"] > 10
    assert run(["evaluate", "m", "pairs.tsv", "--json"]) in (0, 3)
    capsys.readouterr()
    (tmp_path / "new.en").write_text("one two three\n\nfive four two\n")
    assert run(["translate", "m", "new.en", "--beams", "2"]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert len(lines) == 4 and lines[1] == ""
    assert run(["translate", "m", "new.en", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.split("\n")[0])["log_prob"] < 0


def test_a_table_of_two_columns_is_fitted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_pairs(tmp_path)
    with gzip.open(tmp_path / "pairs.tsv.gz", "wt") as file:
        file.write((tmp_path / "pairs.tsv").read_text())
    assert run(["fit", "pairs.tsv.gz", "--task", "translate", "--out", "m", *STEPS]) == 0
    assert run(["evaluate", "m", "pairs.tsv", "--json"]) == 0


@pytest.mark.parametrize(
    "words, message",
    [
        (["short.en", "--translation", "a.de"], "short.en has 124 lines and a.de 125"),
        (["one.tsv", "--task", "translate"], "a translation needs two"),
        (["empty.tsv", "--task", "translate"], "the target 'de' is missing"),
    ],
)
def test_what_are_no_pairs_is_refused(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_pairs(tmp_path)
    (tmp_path / "short.en").write_text("".join(f"{text}\n" for text in SOURCES[1:]))
    (tmp_path / "one.tsv").write_text("en\n" + "".join(f"{text}\n" for text in SOURCES))
    (tmp_path / "empty.tsv").write_text("en\tde\n" + "".join(f"{text}\t \n" for text in SOURCES))
    assert run(["fit", *words, *STEPS]) == 3
    assert message in capsys.readouterr().err


def test_unequal_numbers_are_refused():
    with pytest.raises(DataError, match="there are 3 sources and 2 translations"):
        Translator().fit(["a", "b", "c"], ["d", "e"])


@pytest.mark.slow
def test_strips_of_three_digits_are_named():
    """95 % exact after some minutes, of digits that no training strip holds."""
    from ansatz.data import load

    torch.set_default_dtype(torch.float32)
    mnist = load("mnist")
    pixels, labels = mnist.grids.load().numpy()[:, 0], mnist.frame["class"].to_numpy().astype(int)
    names = "zero one two three four five six seven eight nine".split()
    draw = np.random.default_rng(0)

    def strips(low, high, count):
        chosen = draw.integers(low, high, (count, 3))
        images = np.concatenate([pixels[chosen[:, k]] for k in range(3)], axis=2)
        return images, [" ".join(names[labels[k]] for k in row) for row in chosen]

    options = {"width": 64}
    made = Translator(tokens="word", steps=3_000, batch_size=32, network_options=options)
    made.fit(*strips(0, 60_000, 20_000))
    assert made.evaluate(*strips(60_000, 70_000, 1_000), warn=False)["exact"] >= 0.95


def test_killed_and_resumed_it_ends_with_the_same_bits(tmp_path, monkeypatch):
    """Interrupted in its second epoch, a fit goes on to the weights of one that was not."""
    fit = ansatz.fit
    from ansatz.training import GradientStep

    monkeypatch.chdir(tmp_path)
    write_pairs(tmp_path)
    options = {"steps": 12, "width": 16, "dropout": 0.1}
    how = {"translation": "a.de", "tokens": "word", "options": options, "progress": 0}
    whole = fit("a.en", out="whole", **how)
    step, count = GradientStep.step, itertools.count(1)

    def interrupted(self, batch):
        if next(count) == 9:
            raise KeyboardInterrupt
        return step(self, batch)

    with monkeypatch.context() as patch:
        patch.setattr(GradientStep, "step", interrupted)
        with pytest.raises((KeyboardInterrupt, ansatz.errors.Interrupted)):
            fit("a.en", out="killed", **how)
    resumed = fit("a.en", out="killed", resume=True, **how)
    ours = resumed.fitted.network.state_dict()
    for name, weights in whole.fitted.network.state_dict().items():
        assert weights.equal(ours[name]), name
