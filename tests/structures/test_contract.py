"""What every structure promises the pipeline; a new one adds its examples to SAMPLES."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_array_equal

from ansatz import Regressor, networks, outcomes, structures
from ansatz.data import Clouds, Graph, Molecules, Sets
from ansatz.data.batch import all_tensors, take_rows
from ansatz.errors import UsageError
from ansatz.fitting.contracts.structure import Feed
from ansatz.fitting.job import take
from ansatz.spec import InputSpec

N = 24
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {"a": RNG.normal(size=N), "town": np.array(["Jena", "Gera"])[np.arange(N) % 2]}
)
TABLE.loc[3, "a"] = np.nan
WORDS = np.array("a good bad film play with no plot and some fine acting".split())
TEXTS = [" ".join(RNG.choice(WORDS, 9 if k in (2, 7) else 3 + k % 6)) for k in range(N)]
SIGNALS = [RNG.normal(size=(9 if k in (2, 7) else 2 + k % 5, 3)) for k in range(N)]
ATOMS = Molecules(RNG.normal(size=(N, 3, 3)) + 2 * np.eye(3), ["O", "H", "H"])
GRAPHS = [  # paths of 2 to 7 nodes
    Graph.of([[*range(n - 1)], [*range(1, n)]], x=RNG.normal(size=(n, 3)))
    for n in (2 + k % 6 for k in range(N))
]
NETWORK = Graph.of(RNG.integers(0, N, (2, 60)), x=TABLE)
SAMPLES = {  # structure, and examples as users hand them over
    "molecules": ("molecule", ATOMS),
    "numbers": ("vector", RNG.normal(size=(N, 3))),
    "table": ("vector", TABLE),
    "images": ("grid", RNG.normal(size=(N, 8, 8)).astype(np.float32)),
    "texts": ("sequence", TEXTS),
    "signals": ("sequence", SIGNALS),
    "texts and numbers": ("joined", TABLE.assign(text=TEXTS)),
    "sets": ("set", Sets.of(SIGNALS)),
    "clouds": ("points", Clouds.of(SIGNALS)),
    "graphs": ("graph", GRAPHS),
    "nodes": ("nodes", NETWORK.nodes()),
    "pairs of nodes": ("node_pairs", NETWORK.pairs([(k, (k + 1) % N) for k in range(N)])),
    "volumes": ("grid", RNG.normal(size=(N, 1, 6, 6, 6)).astype(np.float32)),
}
# Of outcomes that are found in x itself: their rows hold outcomes, see test_passages.py.
WITH_OUTCOMES = set(outcomes.on_structure.values())
every_structure = pytest.mark.parametrize("name", structures.names())
every_sample = pytest.mark.parametrize("name, X", SAMPLES.values(), ids=SAMPLES)


def job_of(name, X):
    return Regressor(x=name).read(X, np.linspace(0, 1, N))


def encoder_of(name, X):
    structure, job = structures.create(name), job_of(name, X)
    recipe = Regressor(x=name).task(X).recipe(job)
    return structure.encoder(job.rows, job.weight.numpy(), recipe, {}), recipe


def inputs_of(encoder, rows):
    return encoder.inputs(rows, notes=[])


def assert_equal(one, other):
    for a, b in zip(all_tensors(one), all_tensors(other), strict=True):
        assert torch.equal(a, b)


@every_structure
def test_it_has_a_name_words_and_networks(name):
    structure = structures.create(name)
    assert structure.name == name
    assert name in {*WITH_OUTCOMES, *(sample[0] for sample in SAMPLES.values())}
    assert all(isinstance(word, str) for word in (*structure.unit, *(structure.element or ())))
    for axis in ("row", *(["element"] if structure.element else [])):
        assert structure.network(axis) in networks.registry
        linear = structure.linear_network(axis)
        assert not linear or linear in networks.registry


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(UsageError, match="Did you mean 'vector'"):
        structures.create("vectors")


@every_sample
def test_examples_are_recognized_by_their_own_structure_alone(name, X):
    assert Regressor().task(X).structure.name == name


@every_sample
def test_rows_are_taken_by_position(name, X):
    rows = job_of(name, X).rows
    assert len(rows) == N and isinstance(rows.has_features, bool)
    assert rows.spec is None or isinstance(rows.spec, InputSpec)
    mask = np.arange(N) % 3 == 0
    keys = rows.content_keys()
    for index in (np.array([5, 0, 5]), mask, slice(2, 9)):
        part = rows[index]
        assert type(part) is type(rows) and len(part) == len(np.arange(N)[index])
        if keys is not None:
            assert_array_equal(part.content_keys(), keys[index])


@every_sample
def test_the_content_of_rows_is_their_key(name, X):
    rows = job_of(name, X).rows
    keys = rows.content_keys()
    if keys is None:
        pytest.skip("equal content is not a duplicate")
    assert keys.dtype == np.uint64 and len(set(keys)) == N
    assert not np.array_equal(keys, rows.content_keys(seed=1))


@every_sample
def test_rows_describe_their_features_as_json(name, X):
    found = job_of(name, X).rows.describe()
    assert set(found) - {"parts"} == {"names", "count", "columns"} and found["count"] >= 1
    assert json.loads(json.dumps(found)) == found


@every_sample
def test_an_encoder_comes_back_from_json(name, X):
    encoder, _ = encoder_of(name, X)
    state = json.loads(json.dumps(encoder.state()))
    again, rows = structures.create(name).load_encoder(state), job_of(name, X).rows
    assert again.spec == encoder.spec and again.dtype == encoder.dtype
    assert_equal(inputs_of(encoder, rows), inputs_of(again, rows))


@every_sample
def test_inputs_follow_the_rows_and_fit_the_network(name, X):
    structure, rows = structures.create(name), job_of(name, X).rows
    encoder, recipe = encoder_of(name, X)
    inputs, some = inputs_of(encoder, rows), np.array([7, 2])
    parts = all_tensors(take_rows(inputs, torch.from_numpy(some)))
    for whole, part in zip(parts, all_tensors(inputs_of(encoder, rows[some])), strict=True):
        torch.testing.assert_close(part, whole)
    whole = take_rows(inputs, torch.from_numpy(some))
    for one, other in zip(all_tensors(whole), all_tensors(inputs_of(encoder, rows[some])),
                          strict=True):  # fmt: skip
        torch.testing.assert_close(one, other)
    for network in (structure.network("row"), structure.linear_network("row")):
        options = structure.network_options(network, recipe, encoder.spec)
        made = networks.create(network, inputs=encoder.spec, outputs=2, **options)
        assert made.to(encoder.dtype).eval()(*inputs).shape == (N, 2)


@every_sample
def test_batches_are_a_pure_function_of_seed_epoch_and_position(name, X):
    structure, job = structures.create(name), job_of(name, X)
    encoder, recipe = encoder_of(name, X)
    recipe = recipe.model_copy(update={"batch_size": 5})

    def batches(epoch, start=0, seed=0, training=True):
        feed = Feed(recipe, seed, training)
        return list(structure.source(job, encoder, feed, {}).batches(epoch, start))

    first, again = batches(1), batches(1)
    for one, other in zip(first, again, strict=True):
        assert_equal((one.inputs, one.index), (other.inputs, other.index))
    assert sorted(torch.cat([batch.index for batch in first]).tolist()) == list(range(N))
    assert_equal(batches(1, start=2)[0].inputs, first[2].inputs)
    orders = [
        torch.cat([b.index for b in found]) for found in (first, batches(2), batches(1, seed=1))
    ]
    assert not torch.equal(orders[0], orders[1]) and not torch.equal(orders[0], orders[2])
    held_out = torch.cat([batch.index for batch in batches(0, training=False)])
    assert held_out.tolist() == list(range(N))


@every_sample
def test_the_constant_and_the_linear_model_stand_beside_a_network(name, X):
    task = Regressor(x=name).task(X)
    job = Regressor(x=name).read(X, np.linspace(0, 1, N) + np.arange(N) % 3)
    linear, notes = task.structure.baseline(task.likelihood(job.target), job, seed=0)
    part = take(job, np.arange(4))
    assert linear.predictive(part.rows, notes=[]).raw.shape[0] == 4
    assert all(isinstance(note, str) for note in notes)
