"""Everyone trains the same GPT on the same texts by the same steps; never a test of times."""

import pytest
import torch
from torch.testing import assert_close

from ansatz.bench import gpt_task, sequences
from ansatz.bench.finding import BenchOptions
from ansatz.bench.gpt_task import TRAINERS, GPTTask, PlainGPT, our_network
from ansatz.networks import generate

SMALL = GPTTask(steps=3, vocabulary=7, width=8, depth=1, heads=2, block=6, batch=4)


@pytest.fixture(autouse=True)
def single_precision():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(before)


def weights_as_ours(network):
    """The names of the plain GPT's weights, and ours, which are transposed."""
    ours = {"tokens.weight": "wte.weight", "places.weight": "wpe.weight"}
    ours |= {f"norm.{kind}": f"ln_f.{kind}" for kind in ("weight", "bias")}
    parts = {"ln_1": "ln_1", "ln_2": "ln_2", "qkv": "attn.c_attn", "proj": "attn.c_proj",
             "mlp.0": "mlp.c_fc", "mlp.2": "mlp.c_proj"}  # fmt: skip
    for k in range(len(network.blocks)):
        for theirs, name in parts.items():
            for kind in ("weight", "bias"):
                ours[f"blocks.{k}.{theirs}.{kind}"] = f"h.{k}.{name}.{kind}"
    return ours


def test_the_plain_gpt_is_ours():
    ours, plain = our_network(SMALL), PlainGPT(SMALL)
    state = ours.state_dict()
    for theirs, name in weights_as_ours(plain).items():
        weight = state[f"transformer.{name}"]
        is_map = "attn" in name or "mlp" in name
        plain.get_parameter(theirs).data.copy_(
            weight.t() if is_map and weight.ndim == 2 else weight
        )
    codes = SMALL.codes[:3, :-1]
    assert_close(ours(codes).transpose(1, 2), plain(codes))


@pytest.mark.parametrize("name", ["ours", "plain torch"])
def test_trainers_learn_the_cycle(name):
    task = GPTTask(steps=60, vocabulary=7, width=16, depth=1, heads=2, block=6, batch=8, rate=1e-2)
    logits = TRAINERS[name](task)(task.codes[:5, :-1])
    assert (logits.argmax(-1) == task.codes[:5, 1:]).double().mean() > 0.95


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_trainer_of_transformers_learns_the_cycle():
    task = GPTTask(steps=150, vocabulary=7, width=16, depth=1, heads=2, block=6, batch=8, rate=1e-2)
    logits = TRAINERS["Hugging Face Trainer"](task)(task.codes[:5, :-1])
    assert (logits.argmax(-1) == task.codes[:5, 1:]).double().mean() > 0.95


def test_a_step_reports_its_peers_and_what_is_missing(monkeypatch):
    monkeypatch.setattr(gpt_task, "GPTTask", lambda: SMALL)
    monkeypatch.setattr(sequences, "find_spec", lambda package: None)
    (found,) = sequences.speed_sequences(BenchOptions(rounds=1, only=("gpt-step",)))
    assert set(found.peers) == {"plain torch"} and found.missing == ["Hugging Face Trainer"]


def test_weights_may_be_trained_after_a_text_was_generated():
    network = our_network(SMALL)
    made = generate(network, torch.ones(1, 2, dtype=torch.long), 3)
    network(made).sum().backward()  # neither the tokens nor the weights belong to inference mode
    assert network.training and all(p.grad is not None for p in network.parameters())
