"""Knowledge graphs from triples to recommendations."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

import ansatz
from ansatz import KnowledgeGraph
from ansatz.errors import UsageError

N = 24
NEXT = [(f"n{k:02d}", "next", f"n{(k + 1) % N:02d}") for k in range(N)]
TWO = [(f"n{k:02d}", "second", f"n{(k + 2) % N:02d}") for k in range(N)]
GROUP = [(f"n{k:02d}", "in", f"g{k % 3}") for k in range(N)]
OPTIONS = {"width": 16, "dropout": 0.0}


def parts():
    triples = np.array(NEXT + TWO + GROUP, dtype=object)
    test = np.arange(len(triples)) % 8 == 5
    return triples[~test], triples[test]


@pytest.fixture(scope="module")
def model():
    made = KnowledgeGraph(steps=300, holdout=0, network_options=OPTIONS)
    return made.fit(np.array(NEXT + TWO + GROUP, dtype=object))


def test_it_answers_what_it_was_trained_on(model):
    assert model.predict([("n03", "next"), ("n03", "in")]).tolist() == ["n04", "g0"]
    assert model.evaluate(NEXT, warn=False)["mrr"] > 0.95


def test_known_answers_are_not_recommended(model):
    found = model.recommend("n03", relation="next", top=5)
    assert len(found) == 5 and "n04" not in set(found["entity"])
    assert found["probability"].is_monotonic_decreasing
    assert "n02" not in set(model.recommend("n03", relation="^next", top=30)["entity"])
    with pytest.raises(UsageError, match="--relation, one of in, next, second"):
        model.recommend("n03")


def test_fit_evaluate_save_and_load(tmp_path):
    train, test = parts()
    for name, rows in (("train", train), ("test", test)):
        lines = ["\t".join(row) for row in rows]
        (tmp_path / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    options = {"steps": 150, **OPTIONS}
    fit = ansatz.fit(tmp_path, task="link", network="distmult", options=options)
    assert fit.rows["test"] == 2 * len(test)
    assert set(fit.metrics) == {"nll", "mrr", "hits@1", "hits@3", "hits@10"}
    assert set(fit.linear) == set(fit.constant) == set(fit.metrics)
    fit.model.save(tmp_path / "model")
    again = ansatz.load(tmp_path / "model")
    assert again.evaluate(tmp_path / "test.tsv") == pytest.approx(fit.metrics, abs=1e-12)
    pairs = test[:, :2]
    assert_array_equal(again.predict(pairs), fit.model.predict(pairs))


def test_both_queries_of_a_triple_stay_on_one_side():
    fit = ansatz.fit(np.array(NEXT + TWO + GROUP, dtype=object), task="link", network="linear")
    problem, job, parts = fit.split_problem
    keys = job.rows.content_keys()
    assert not set(keys[parts.learn]) & set(keys[parts.test])
    assert len(problem.frame) == 2 * 3 * N


def test_the_linear_model_is_the_frequency_of_answers():
    train, _ = parts()
    model = KnowledgeGraph(network="linear").fit(train)
    raw = model.model_.predictive(model.rows([("n03", "in")])).raw[0]
    counts = {g: sum(t == g for _, r, t in train if r == "in") for g in ("g0", "g1", "g2")}
    own = sum(counts.values())
    answers = np.concatenate([train[:, 2], train[:, 0]])
    for place, name in enumerate(model.model_.labels):
        overall = ((answers == name).sum() + 0.5) / (len(answers) + len(model.model_.labels) / 2)
        expected = (counts.get(str(name), 0) + overall) / (own + 1)
        assert torch.exp(raw[place]).item() == pytest.approx(expected)
