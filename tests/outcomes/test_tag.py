"""Tags: a class for every word of a sentence or step of a signal."""

import json

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

import ansatz
from ansatz import Tagger
from ansatz.data.sequences.sentences import Sentences
from ansatz.data.sequences.word_codes import PARTS, UNKNOWN, WordCodes, parts_of
from ansatz.errors import DataError, UsageError
from ansatz.fitting.column_roles import ColumnRoles
from ansatz.fitting.job import Job
from ansatz.fitting.replay import replay
from ansatz.layers.code_embedding import CodeEmbedding
from ansatz.outcomes.report.tag import draw_coloured
from ansatz.outcomes.tag import macro_f1
from ansatz.outcomes.tag_baselines import WordModel
from ansatz.outcomes.tag_files import read_tags
from ansatz.report import build, replayed
from ansatz.spec import TargetSpec

DRAW = np.random.default_rng(0)
NOUNS, VERBS = [f"{stem}ment" for stem in "abcdefgh"], [f"{stem}ize" for stem in "abcdefgh"]


def sentence(k):
    """A noun, a verb, and "run", which is a noun behind "the" and a verb behind a noun."""
    noun, verb = NOUNS[k % 8], VERBS[k // 8 % 8]
    words = ["the", noun, verb, "the", "run"] if k % 2 else ["the", noun, "run", "well"]
    return words, ["D", "N", "V", "D", "N"] if k % 2 else ["D", "N", "V", "A"]


WORDS, TAGS = (list(each) for each in zip(*map(sentence, range(160)), strict=True))


@pytest.fixture(scope="module")
def model():
    options = {"network_options": {"width": 32, "depth": 1}, "steps": 150, "learning_rate": 0.01}
    return Tagger(random_state=0, **options).fit(WORDS[:128], TAGS[:128])


def test_context_and_letters_give_words_their_tags(model):
    assert model.evaluate(WORDS[128:], TAGS[128:], warn=False)["accuracy"] > 0.98
    new = [["the", "zment", "run"], ["the", "zment", "zize", "the", "run"]]  # unseen words
    assert model.predict(new) == [["D", "N", "V"], ["D", "N", "V", "D", "N"]]


def test_a_sentence_has_the_same_tags_alone_and_beside_longer_ones(model):
    together = model.predict_proba(WORDS[:9])
    for words, found in zip(WORDS[:9], together, strict=True):
        (alone,) = model.predict_proba([words])
        np.testing.assert_allclose(alone, found, rtol=0, atol=1e-10)
        np.testing.assert_allclose(found.sum(1), 1)


def test_a_table_of_words_names_their_sentences(model):
    frame = model.predict_frame(WORDS[:2])
    assert frame["token"].tolist() == WORDS[0] + WORDS[1]
    assert frame["sentence"].tolist() == [1] * len(WORDS[0]) + [2] * len(WORDS[1])
    assert frame["tag"].tolist() == [t for own in model.predict(WORDS[:2]) for t in own]


def test_metrics_are_means_over_words_and_over_tags(model):
    found = model.evaluate(WORDS[128:], TAGS[128:], warn=False)
    chance = model.predict_proba(WORDS[128:])
    codes = [[model.classes_.tolist().index(t) for t in tags] for tags in TAGS[128:]]
    losses = [-np.log(p[k]) for each, own in zip(chance, codes, strict=True)
              for p, k in zip(each, own, strict=True)]  # fmt: skip
    assert found["nll"] == pytest.approx(np.mean(losses), rel=1e-9)


def test_macro_f1_is_scikit_learns():
    truth, codes = (torch.from_numpy(DRAW.integers(0, 5, 200)) for _ in "ab")
    weight = torch.from_numpy(DRAW.uniform(size=200))
    expected = f1_score(truth, codes, average="macro", sample_weight=weight)
    assert float(macro_f1(truth, codes, weight)) == pytest.approx(expected, rel=1e-12)


def test_steps_of_signals_have_tags_too(tmp_path):
    signals = [DRAW.normal(size=(5 + k % 4, 2)) for k in range(60)]
    states = [(np.cumsum(x[:, 0]) > 0).astype(int) for x in signals]
    options = {"network_options": {"width": 16, "depth": 1}, "steps": 120, "learning_rate": 0.02}
    model = Tagger(random_state=0, **options).fit(signals[:50], states[:50])
    assert model.score(signals[50:], states[50:]) > 0.8  # the sign of one step alone: 0.7
    model.save(tmp_path / "m")
    again = ansatz.load(tmp_path / "m")
    assert again.predict(signals) == model.predict(signals)
    assert again.predict_frame(signals[:1])["step"].tolist() == [1, 2, 3, 4, 5]


def test_the_tag_of_a_word_is_counted():
    """(n_wt + p_t) / (n_w + 1), p the shares of words that occur once."""
    rows = Sentences.of([["a", "a", "b"], ["a", "c"]])
    y = torch.tensor([[0, 1, 1], [0, 2, -1]])
    job = Job(rows, y, TargetSpec(classes=3, axis="element"), torch.ones(2), None, torch.arange(2))
    found = WordModel(job).predictive(Sentences.of([["a", "x"]])).raw.exp()
    unseen = np.array([0, 0.5, 0.5])  # of b and c
    np.testing.assert_allclose(found[0, 0], (np.array([2, 1, 0]) + unseen) / 4, atol=1e-3)
    np.testing.assert_allclose(found[0, 1], unseen, atol=1e-3)


def test_codes_of_a_word_are_those_of_its_parts():
    codes = WordCodes.learn(["walking", "talking", "walking", "The"])
    found = codes.encode(["talking", "Balking", "The"])
    assert found.shape == (3, PARTS)
    kept = [codes.levels[c][int(k) - 2] if k > UNKNOWN else None for c, k in enumerate(found[0])]
    expected = [p if p in each else None for p, each in zip(parts_of("talking"), codes.levels,
                strict=True)]  # fmt: skip
    assert kept == expected and "king" in kept
    assert found[2, 0] == UNKNOWN  # seen once
    again = WordCodes(json.loads(json.dumps(codes.levels)))
    assert torch.equal(again.encode(["walking"]), codes.encode(["walking"]))


def test_embeddings_of_codes_add_up():
    layer, codes = CodeEmbedding((4, 3), 5).eval(), torch.tensor([[[1, 2], [3, 0]]])
    table = layer.embedding.weight
    torch.testing.assert_close(layer(codes)[0, 0], table[1] + table[4 + 2])
    torch.testing.assert_close(layer(codes)[0, 1], table[3] + table[4])


CONLLU = """# sent_id = 1
1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_
1\tde\tde\tADP\tIN\t_\t_\t_\t_\t_
2\tle\tle\tDET\t_\t_\t_\t_\t_\t_
2.1\tx\tx\tX\tX\t_\t_\t_\t_\t_

1\tOui\toui\tINTJ\tUH\t_\t_\t_\t_\t_
"""


def read(path, target=None):
    return read_tags(str(path), ColumnRoles(target=[target] if target else []), {})


def test_conllu_columns_and_json_lines_are_read(tmp_path):
    (tmp_path / "a.conllu").write_text(CONLLU)
    found = read(tmp_path / "a.conllu")
    assert found.rows.lists == [["de", "le"], ["Oui"]]
    assert found.frame["upos"].tolist() == [("ADP", "DET"), ("INTJ",)]
    assert read(tmp_path / "a.conllu", "xpos").frame["xpos"].tolist() == [("IN", None), ("UH",)]
    (tmp_path / "b.txt").write_text("-DOCSTART- O O\n\nEU X B-ORG\nin Y O\n\nno Z O\n")
    assert read(tmp_path / "b.txt", "3").frame["3"].tolist() == [("B-ORG", "O"), ("O",)]
    (tmp_path / "c.tsv").write_text("New York\tN\nis\tV\n")
    assert read(tmp_path / "c.tsv").rows.lists == [["New York", "is"]]
    (tmp_path / "d.jsonl").write_text('{"words": ["a", "b"], "tags": ["X", "Y"]}\n')
    assert read(tmp_path / "d.jsonl").frame["tags"].tolist() == [("X", "Y")]
    (tmp_path / "e.txt").write_text("only\nwords\n")  # to be predicted
    assert read(tmp_path / "e.txt").frame["2"].tolist() == [None]


def test_a_file_is_fitted_predicted_evaluated_and_reported(tmp_path):
    lines = ["\n".join(f"{w}\t{t}" for w, t in zip(*s, strict=True)) for s in zip(WORDS, TAGS)]  # noqa: B905
    lines = [f"{line}\nnumber{k}\tX" for k, line in enumerate(lines)]  # no duplicates
    (tmp_path / "t.tsv").write_text("\n\n".join(lines))
    settings = {"steps": 60, "learning_rate": 0.02, "network.width": 16, "network.depth": 1}
    fit = ansatz.fit(tmp_path / "t.tsv", task="tag", options=settings, out=tmp_path / "m")
    assert fit.structure == "sequence" and fit.metrics["accuracy"] > 0.9
    assert fit.metrics["nll"] < fit.baselines["the word's tag"]["nll"] < fit.constant["nll"]
    model = ansatz.load(tmp_path / "m")
    table = model.predict_frame(read(tmp_path / "t.tsv"))
    assert list(table.columns) == ["sentence", "token", "tag", "probability"]
    titles = [each.title for each in build(replayed(replay(fit))).sections]
    assert {"Scores of each tag", "Sentences coloured by their loss"} <= set(titles)


def test_words_are_drawn_as_text_whatever_they_hold():
    assert "<script>" not in draw_coloured([[("<script>", 1.0), ("$x$", 9.0)]])


def test_bad_input_is_one_line(tmp_path, model):
    with pytest.raises(DataError, match="sentence 2: 2 tokens and 3 tags"):
        Tagger().fit([["a"], ["a", "b"]], [["X"], ["X", "Y", "Z"]])
    with pytest.raises(DataError, match="sentence 1: 5 tokens and 1 tags"):
        model.evaluate(WORDS[1:3], [["D"], TAGS[2]])
    with pytest.raises(DataError, match="sentence 1 has the tag 'ODD', which no sentence"):
        model.evaluate([["the"]], [["ODD"]])
    with pytest.raises(DataError, match="sentence 2: expected a list of words, got 3"):
        Tagger().fit([["a"], ["b", 3]], [["X"], ["X", "Y"]])
    with pytest.raises(DataError, match="all words have the same tag"):
        Tagger().fit([["a"], ["b"]], [["X"], ["X"]])
    with pytest.raises(UsageError, match="lists of words"):
        Tagger().fit(["a text", "another"], [["X"], ["Y"]])
    (tmp_path / "t.txt").write_text("a X\nb\n")
    with pytest.raises(DataError, match=r"t.txt, line 2 \(sentence 1\): a token without a tag"):
        read(tmp_path / "t.txt")
    (tmp_path / "t.conllu").write_text(CONLLU)
    with pytest.raises(UsageError, match="--target odd: one of lemma, upos"):
        read(tmp_path / "t.conllu", "odd")
    with pytest.raises(UsageError, match="poisson is not a likelihood of tags"):
        Tagger("poisson").fit(WORDS, TAGS)
