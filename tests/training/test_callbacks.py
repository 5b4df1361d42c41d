"""What is shown while a network trains: a bar, lines, TensorBoard."""

import builtins
import io
import warnings

import pytest
import torch
from torch import nn

from ansatz.data import Batch, TensorSource
from ansatz.errors import MissingExtraError, UsageError
from ansatz.likelihoods import Normal
from ansatz.training import GradientStep, Supervised, Trainer
from ansatz.training.callbacks import Lines, ProgressBar, create_progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def fit(monkeypatch, stream, **options):
    monkeypatch.setattr("sys.stderr", stream)
    network = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    step = GradientStep(network, Supervised(Normal(dispersion=1.0)), optimizer)
    source = TensorSource(Batch.of(torch.randn(8, 2), torch.randn(8)), 2)
    history = Trainer(device="cpu", **options).fit(step, source, source)
    return stream.getvalue(), history


@pytest.mark.parametrize("level", ["auto", 1, 2])
@pytest.mark.parametrize("epochs", [1, 7, 20, 120])
def test_a_log_file_gets_few_lines_and_no_carriage_return(level, epochs, monkeypatch):
    text, _ = fit(monkeypatch, io.StringIO(), epochs=epochs, progress=level)
    lines = text.splitlines()
    assert "\r" not in text and text.endswith("\n")
    assert min(epochs, 10) < len(lines) <= 22
    assert "(running)" in lines[0] and "valid" in lines[0]
    assert lines[-1].startswith(f"stopped after step {4 * epochs} (epochs), best valid loss")


def test_without_an_end_in_sight_the_lines_become_rarer(monkeypatch):
    text, history = fit(monkeypatch, io.StringIO(), patience=200, steps=None, time_limit=0.5)
    assert len(text.splitlines()) < 5 + len(history.records) ** 0.5


def test_a_terminal_gets_one_line_that_moves(monkeypatch):
    monkeypatch.setattr(ProgressBar.__init__, "__defaults__", (None, 0.0))  # draw at every step
    text, _ = fit(monkeypatch, Terminal(), epochs=5, progress="auto")
    assert text.count("\n") == 1 and text.endswith("\n")
    assert text.count("\r") == 21
    drawn = text.split("\r")
    assert "epoch 2/5  step 6/20  loss" in drawn[6] and "left" in drawn[6]
    assert "stopped after step 20 (epochs)" in drawn[-1]


def test_the_bar_is_drawn_no_more_often_than_its_interval(monkeypatch):
    text, _ = fit(monkeypatch, Terminal(), epochs=5, progress=1)
    assert text.count("\r") < 21


def test_a_shorter_text_covers_a_longer_one():
    stream = Terminal()
    bar = ProgressBar(stream)
    bar._draw("a long text")
    bar._draw("short")
    assert stream.getvalue() == "\ra long text\rshort      "


def test_levels_mean_what_they_mean_in_keras():
    assert create_progress(0, Terminal()) is None
    assert isinstance(create_progress(1, Terminal()), ProgressBar)
    assert isinstance(create_progress(2, Terminal()), Lines)
    assert isinstance(create_progress("auto", Terminal()), ProgressBar)
    assert isinstance(create_progress("auto", io.StringIO()), Lines)


def test_a_notebook_gets_one_line_drawn_twice_a_second():
    notebook = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
    bar = create_progress("auto", notebook)
    assert isinstance(bar, ProgressBar) and bar.interval == 0.5


@pytest.mark.parametrize("level", [3, "loud", True])
def test_another_level_is_refused(level):
    with pytest.raises(UsageError, match="progress must be"):
        create_progress(level)


def fit_logged(**options):
    network = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    step = GradientStep(network, Supervised(Normal(dispersion=1.0)), optimizer)
    source = TensorSource(Batch.of(torch.randn(8, 2), torch.randn(8)), 2)
    return Trainer(progress=0, device="cpu", **options).fit(step, source, source)


def test_the_log_holds_every_number_of_every_record(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tensorboard's own
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        history = fit_logged(epochs=3, tensorboard=tmp_path)
        log = EventAccumulator(str(tmp_path)).Reload()
    for name in ("valid_loss", "running_loss", "rate"):
        points = log.Scalars(name)
        assert [point.step for point in points] == history.losses("step")
        assert [point.value for point in points] == pytest.approx(history.losses(name), rel=1e-6)


def test_without_the_package_the_extra_is_named(tmp_path, monkeypatch):
    load = builtins.__import__

    def refuse(name, *rest):
        if name.startswith("torch.utils.tensorboard"):
            raise ImportError(name)
        return load(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError, match=r"TensorBoard logs need.*ansatz-learn\[tb\]"):
        fit_logged(epochs=1, tensorboard=tmp_path)
