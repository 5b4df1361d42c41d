"""Answers to questions about texts: the network beside the best window."""

import json

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import ansatz
from ansatz import SpanFinder
from ansatz.cli.main import run
from ansatz.data.sequences.questions import Questions, words_of
from ansatz.errors import DataError
from ansatz.likelihoods import Span
from ansatz.outcomes.answer.scores import answer_scores, word_f1
from ansatz.outcomes.answer.window import BestWindow

PEOPLE = "Ada Max Eva Udo Ida Kai".split()
TOWNS = ["Jena", "Bonn", "New York", "Bad Orb", "San Marino"]
WORK = ["nurse", "baker", "tax clerk", "cook", "night guard"]


def facts(count, seed):
    """Three people with a town and a profession each; a question about one of them."""
    draw, rows = np.random.default_rng(seed), []
    for _ in range(count):
        who = draw.permutation(PEOPLE)[:3]
        known = {name: (str(draw.choice(TOWNS)), str(draw.choice(WORK))) for name in who}
        sentences = [
            f"{name} lives in {town} and works as a {work}."
            if draw.random() < 0.5
            else f"In {town} lives {name}, a {work}."
            for name, (town, work) in known.items()
        ]
        asked, which = int(draw.integers(3)), int(draw.integers(2))
        answer = known[who[asked]][which]
        before = sum(len(each) + 1 for each in sentences[:asked])
        start = before + sentences[asked].index(answer)
        question = ("Where does {} live?", "What is {} by profession?")[which].format(who[asked])
        rows.append((" ".join(sentences), question, (start, start + len(answer))))
    return tuple(zip(*rows, strict=True))


def squad(rows):
    asked = [
        {"context": c, "qas": [{"id": f"q{k}", "question": q,
         "answers": [{"text": c[a:b], "answer_start": a}]}]}
        for k, (c, q, (a, b)) in enumerate(zip(*rows, strict=True))
    ]  # fmt: skip
    return {"data": [{"title": "facts", "paragraphs": asked}]}


@pytest.fixture(scope="module")
def model():
    made = SpanFinder(steps=160, holdout=0, batch_size=16, network_options={"width": 16})
    return made.fit(*facts(400, 0))


def test_the_network_beats_the_best_window(model, tmp_path):
    test, learn = facts(100, 1), facts(400, 0)
    found = model.evaluate(*test)
    rows = Questions.of(*test)
    window = BestWindow(Span(), Questions.of(*learn)).spans(rows)
    texts = [rows.text(row, *map(int, span)) for row, span in enumerate(window)]
    beside = answer_scores(texts, rows.answers)
    assert 0.1 < beside["f1"] < 0.8 < found["f1"]
    loaded = ansatz.load(model.save(tmp_path / "model"))
    assert loaded.predict(*test[:2]).tolist() == model.predict(*test[:2]).tolist()


def test_a_question_alone_is_answered_as_among_others(model):
    contexts, questions, _ = facts(8, 2)
    long = [contexts[0] + " " + contexts[1], *contexts[1:]]
    together = model.predict_frame((long, questions))
    alone = model.predict_frame(([contexts[3]], [questions[3]]))
    assert together["prediction"][3] == alone["prediction"][0]
    assert together["log_prob"][3] == pytest.approx(alone["log_prob"][0], abs=1e-5)


def test_a_span_is_the_most_probable_pair_of_ends():
    likelihood, raw = Span(longest=3), torch.randn(5, 7, 2)
    p = raw.softmax(1)
    for row, found in enumerate(likelihood.point(raw).tolist()):
        pairs = {
            (a, b): p[row, a, 0] * p[row, b, 1] for a in range(7) for b in range(a, min(7, a + 3))
        }
        assert tuple(found) == max(pairs, key=pairs.__getitem__)
    y = torch.tensor([[1, 2]]).expand(5, 2)
    assert_close(likelihood.loss(raw, y), -(p[:, 1, 0] * p[:, 2, 1]).log())


def test_f1_counts_words_without_articles_and_signs():
    assert word_f1("The Saale, a river", "river Saale") == 1
    assert word_f1("Jena on the Saale", "Saale") == pytest.approx(0.5)
    assert word_f1("Bonn", "Jena") == 0
    assert answer_scores(["Jena"], [["Bonn", "jena."]]) == {"exact": 1.0, "f1": 1.0}


def test_places_of_answers_are_words():
    rows = Questions.of(["Ada, 36, lives in Jena."], ["Where?"], [(18, 22)])
    assert words_of(rows.contexts[0]).words[rows.spans[0, 0]] == "jena"
    assert rows.text(0, *rows.spans[0]) == "Jena" and rows.answers[0] == ["Jena"]


@pytest.mark.parametrize("answer", ["Bonn", (0, 99), (5, 5), [("Jena", 0)]])
def test_an_answer_that_is_not_in_its_context_is_refused(answer):
    with pytest.raises(DataError, match="question 0"):
        Questions.of(["Ada lives in Jena."], ["Where?"], [answer])


def test_a_file_is_fitted_evaluated_and_answered(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "squad.json").write_text(json.dumps(squad(facts(120, 3))))
    words = ["--set", "steps=10", "--set", "width=8", "--out", "m", "--json"]
    assert run(["fit", "squad.json", "--task", "answer", *words]) == 0
    fit = json.loads(capsys.readouterr().out)
    assert fit["constant"]["nll"] > 3 and set(fit["baselines"]["window"]) == {"exact", "f1"}
    assert run(["evaluate", "m", "squad.json", "--json"]) == 0
    assert 0 <= json.loads(capsys.readouterr().out)["f1"] <= 1
    assert run(["predict", "m", "squad.json"]) == 0
    assert capsys.readouterr().out.startswith("row,prediction,first_word,last_word,log_prob")


def test_files_of_another_form_are_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    bad = squad(facts(3, 4))
    bad["data"][0]["paragraphs"][1]["qas"][0]["answers"][0]["answer_start"] += 1
    (tmp_path / "bad.json").write_text(json.dumps(bad))
    (tmp_path / "odd.json").write_text('{"rows": []}')
    for name, message in (("bad.json", "question q1: its answer"), ("odd.json", "SQuAD's JSON")):
        assert run(["fit", name]) == 3
        assert message in capsys.readouterr().err
