"""Queries of a knowledge graph, and the files that triples are read from."""

import numpy as np
import pandas as pd
import pytest

from ansatz.data.relations.queries import Queries
from ansatz.data.relations.triple_files import are_triples, read_triples
from ansatz.errors import DataError

TRIPLES = [("a", "likes", "b"), ("a", "likes", "c"), ("c", "knows", "a")]


def test_every_triple_is_asked_in_both_directions():
    rows = Queries.of(TRIPLES)
    assert rows.entity.tolist() == ["a", "a", "c", "b", "c", "a"]
    assert rows.answer.tolist() == ["b", "c", "a", "a", "a", "c"]
    assert rows.backwards.tolist() == [False] * 3 + [True] * 3


def test_both_queries_of_a_triple_have_one_key():
    keys = Queries.of(TRIPLES).content_keys()
    assert (keys[:3] == keys[3:]).all() and len(np.unique(keys)) == 3


def test_other_known_answers_are_those_of_the_same_query():
    rows = Queries.of(TRIPLES)
    found = rows.known.others(rows).tolist()
    entities = rows.known.vocabulary.entities.tolist()
    named = {(rows.entity[row], entities[place]) for row, place in found}
    assert named == {("a", "b"), ("a", "c")}  # of (a, likes, ?), each beside the other
    assert len(found) == 2


def test_graphs_over_the_same_names_are_joined():
    rows, other = Queries.of(TRIPLES), Queries.of([("c", "likes", "b"), ("a", "likes", "b")])
    both = rows.known.joined(other.known)
    assert len(both.triples) == 4 and both.vocabulary is rows.known.vocabulary


def test_an_unknown_name_is_reported_with_its_row():
    known = Queries.of(TRIPLES).known
    with pytest.raises(DataError, match="row 2: the entity 'z' is unknown"):
        known.codes(Queries.ask([("a", "likes"), ("z", "likes")]))


FILES = {
    "plain.tsv": "a\tlikes\tb\na\tlikes\tb\nc\tknows\ta\n",
    "headed.tsv": "head\trelation\ttail\na\tlikes\tb\nc\tknows\ta\n",
    "numbers.txt": "1 7 2\n3 7 1\n",
}


@pytest.mark.parametrize("name", FILES)
def test_files_are_read_with_and_without_a_header(name, tmp_path):
    path = tmp_path / name
    path.write_text(FILES[name])
    assert are_triples(path, {})
    found = read_triples(path, {})
    assert found.frame.columns.tolist() == ["head", "relation", "tail"] and len(found.frame) == 2
    assert found.frame["head"].tolist() in (["a", "c"], ["1", "3"])
    assert bool(found.notes) == (name == "plain.tsv")  # a repeated triple is counted


def test_columns_are_named_by_options(tmp_path):
    path = tmp_path / "facts.csv"
    path.write_text("when,who,does,whom\n1,a,likes,b\n2,c,knows,a\n")
    assert not are_triples(path, {}) and are_triples(path, {"relation": "does"})
    options = {"source": "who", "relation": "does", "destination": "whom"}
    assert read_triples(path, options).frame.iloc[1].tolist() == ["c", "knows", "a"]
    with pytest.raises(DataError, match="no column 'verb'"):
        read_triples(path, {"relation": "verb"})


def test_a_folder_has_parts(tmp_path):
    for name in ("train", "valid", "test"):
        (tmp_path / f"{name}.txt").write_text(f"a\tlikes\t{name}\n")
    found = read_triples(tmp_path, {}).frame
    assert found["part"].tolist() == ["train", "validation", "test"]


BAD = {
    "a\n": "three columns",
    "a\tb\tc\td\n": "three columns",
    "a\tlikes\tb\nc\t\ta\n": "row 2: a triple needs",
}


@pytest.mark.parametrize("text", BAD)
def test_bad_triples_are_reported_in_a_line(text, tmp_path):
    path = tmp_path / "bad.tsv"
    path.write_text(text)
    with pytest.raises(DataError, match=BAD[text]):
        read_triples(path, {"delimiter": "\t"})


def test_a_table_of_triples_keeps_its_parts():
    frame = pd.DataFrame(TRIPLES, columns=["head", "relation", "tail"]).assign(part="train")
    assert read_triples(frame, {}).frame["part"].tolist() == ["train"] * 3
