"""Language models from text to generated text: exactness, resume, and bad input."""

import gzip
import json

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

import ansatz
from ansatz import LanguageModel, networks
from ansatz.cli.main import run
from ansatz.errors import DataError, UsageError
from ansatz.networks import generate
from ansatz.outcomes.continuation import Continuation
from ansatz.spec import InputSpec
from ansatz.storage import read_tensors
from ansatz.training import GradientStep

TEXT = "the quick brown fox jumps over the lazy dog; a dog is lazy, a fox is not.\n" * 12
RECURRENT = ("mingru", "minlstm", "lru", "gru", "lstm", "rnn")


def fitted(network, **options):
    shape = {"width": 8, "depth": 1, **({"heads": 2} if network == "gpt" else {})}
    options = {"length": 16, "steps": 6, "network_options": shape, **options}
    return LanguageModel(network=network, **options).fit(TEXT)


@pytest.fixture(scope="module")
def models():
    found = {}

    def fit(name):
        if name not in found:
            found[name] = fitted(name)
        return found[name]

    return fit


@pytest.mark.parametrize("name", ["gpt", *RECURRENT])
def test_state_is_the_forward_and_batches_are_single_prompts(name):
    tokens = InputSpec.sequence(vocabulary=9, length=24)
    options = {"width": 8, "depth": 2, **({"heads": 2} if name == "gpt" else {})}
    net = networks.create(name, tokens, 9, each=True, **options).eval()
    x = torch.randint(1, 9, (3, 7))
    assert_allclose(*(each.detach().numpy() for each in (net(x)[..., -1], net.advance(x)[0])))
    greedy = generate(net, x, 8)
    assert torch.equal(greedy, generate(net, x, 8, cache=False))
    assert torch.equal(greedy, networks.generation._search(net, x, 8, None, 1))
    mask = torch.ones(3, 7, dtype=torch.bool)
    mask[0, :3] = False
    both = generate(net, x, 5, mask=mask, beams=2)
    assert torch.equal(both[:1], generate(net, x[:1, 3:], 5, beams=2))


@pytest.mark.parametrize("name", ["mingru", "gpt", "ngram"])
def test_past_its_positions_the_state_is_still_what_reading_anew_gives(models, name):
    model = models(name) if name != "ngram" else LanguageModel(network="ngram").fit(TEXT)
    given = {"temperature": 1.0, "random_state": 3}
    cached = model.generate("the ", 40, **given)
    assert len(cached) == 40 and cached == model.generate("the ", 40, cache=False, **given)
    assert cached != model.generate("the ", 40, temperature=1.0, random_state=4)


def test_log_prob_is_the_sum_of_the_generators_law(models):
    model, text = models("gpt"), "the dog; a fox"
    network, codes = Continuation(model.model_), model.codes(text)
    total, state = 0.0, None
    for k in range(codes.shape[1] - 1):
        log_p, state = network.advance(codes[:, k : k + 1], state=state)
        total += float(log_p[0, codes[0, k + 1]])
    assert_allclose(model.log_prob([text]), [total], rtol=1e-5)


def test_later_tokens_change_nothing(models):
    model = models("mingru")
    one, two = model.surprise("the dog is lazy"), model.surprise("the dog xyz, so what")
    assert_allclose(one["surprise"][:8], two["surprise"][:8], rtol=1e-5)


def test_accumulated_parts_are_one_batch_of_unequal_lengths():
    from ansatz.data.batch import take_rows
    from ansatz.data.sequences.passage_source import PassageSource
    from ansatz.data.sequences.passages import passages
    from ansatz.data.sequences.tokens import Tokens
    from ansatz.likelihoods import Categorical
    from ansatz.training import Supervised

    tokens = Tokens.learn([TEXT], kind="char")
    rows = passages([[(TEXT[:n], 0)] for n in (9, 30, 4, 17)], tokens, 16)
    (batch,) = PassageSource(rows, 8, dtype=torch.float64).batches(0)
    net = networks.create("mingru", rows.spec, tokens.size, each=True, width=8, dropout=0.0)
    objective = Supervised(Categorical(), axis=1)

    def gradient(parts):
        net.zero_grad()
        count = sum(float(objective(net, part).count) for part in parts)
        for part in parts:
            (objective(net, part).total / count).backward()
        return torch.cat([p.grad.flatten() for p in net.parameters()])

    parts = [take_rows(batch, slice(k, k + 2)) for k in range(0, len(batch.index), 2)]
    assert_allclose(gradient(parts), gradient([batch]), rtol=1e-10, atol=1e-14)


def test_stopped_mid_epoch_and_resumed_it_ends_in_the_same_bits(tmp_path, monkeypatch):
    import ansatz.training.loop as loop

    monkeypatch.setattr(loop, "_SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    path = tmp_path / "x.txt"
    path.write_text(TEXT)

    options = {"steps": 9, "width": 8, "depth": 1, "batch_size": 4}
    whole = ansatz.fit(path, task="language", length=16, options=options, out=tmp_path / "a")
    assert whole.network == "mingru"
    original, calls = GradientStep.step, []

    def step(self, batch):
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return original(self, batch)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(GradientStep, "step", step)
        ansatz.fit(path, task="language", length=16, options=options, out=tmp_path / "b")
    assert not (tmp_path / "b").exists()
    ansatz.fit(path, task="language", length=16, options=options, out=tmp_path / "b", resume=True)
    a, b = (read_tensors(tmp_path / each / "weights.safetensors") for each in "ab")
    assert all(torch.equal(a[name], b[name]) for name in a)


def test_from_the_command_line_to_text(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.txt.gz").write_bytes(gzip.compress(TEXT.encode()))
    words = ["fit", "x.txt.gz", "--task", "language", "--network", "ngram", "--out", "m", "--json"]
    assert run(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["metrics"]["nll"] < 0.5 < found["constant"]["nll"]
    assert run(["generate", "m", "--prompt", "the quick", "--temperature", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["text"].startswith(" brown fox")
    assert run(["generate", "m", "--prompt", "ö", "--length", "3"]) == 0
    assert "does not have: 1: 'ö'" in capsys.readouterr().err
    (tmp_path / "y.txt").write_text("a lazy fox")
    assert run(["evaluate", "m", "y.txt", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)["nll"]
    assert_allclose(again, -ansatz.load("m").log_prob(["a lazy fox"])[0] / 10, rtol=1e-6)


def test_masked_models_are_fitted_and_do_not_generate(tmp_path):
    options = {"steps": 4, "width": 8, "depth": 1, "heads": 2}
    fit = ansatz.fit(
        [TEXT], task="masked", tokens="word", length=16, options=options, out=tmp_path / "m"
    )
    assert fit.network == "bert" and np.isfinite(fit.metrics["nll"])
    with pytest.raises(UsageError, match="bert does not continue texts"):
        ansatz.load(tmp_path / "m").generate("the")


def test_bad_input_is_one_line(tmp_path):
    path = tmp_path / "x.txt"
    for content, words in (
        (b"abc\xff" * 200, "byte 0xff at offset 3"),
        (b"", "is empty"),
        (b"short", "too short"),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=words):
            ansatz.fit(path, task="language")
    path.write_bytes(TEXT.encode() + b"\0")
    fit = ansatz.fit(path, task="language", network="ngram")
    assert any("NUL" in note for note in fit.notes)
    with pytest.raises(UsageError, match="--folds"):
        ansatz.fit(path, task="language", network="ngram", folds=3)
    with pytest.raises(UsageError, match="texts alone"):
        LanguageModel().fit([TEXT], [1])


def test_the_report_colours_the_text_and_escapes_it(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("<i>a & b</i> " * 90)
    words = ["fit", str(path), "--task", "language", "--network", "ngram", "--length", "16"]
    assert run([*words, "--out", str(tmp_path / "m")]) == 0
    assert run(["report", str(tmp_path / "m"), "--out", str(tmp_path / "report.html")]) == 0
    text = (tmp_path / "report.html").read_text()
    for title in ("Text coloured by loss", "Loss by position and frequency", "Generated text"):
        assert title in text
    assert "<i>a" not in text and "&lt;i" in text
