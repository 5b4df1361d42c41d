"""What is shown while a network trains: a bar, lines, TensorBoard."""

import builtins
import io
import itertools
import re
import warnings

import pytest
import torch
from torch import nn

from ansatz.data import Batch, TensorSource
from ansatz.errors import MissingExtraError, UsageError
from ansatz.likelihoods import Normal
from ansatz.training import GradientStep, Supervised, Trainer
from ansatz.training.callbacks import Lines, ProgressBar, create_progress
from ansatz.training.phase import Phase


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
def test_a_log_file_of_a_short_training_gets_one_line(level, monkeypatch):
    text, _ = fit(monkeypatch, io.StringIO(), epochs=3, progress=level)
    assert text.startswith("stopped after step 12 (epochs), best valid loss")
    assert text.count("\n") == 1 and "\r" not in text


def test_a_log_file_gets_a_line_per_interval_with_the_time_that_is_left(monkeypatch):
    clock = itertools.count(0.0, 2.5)  # seconds from one look at the clock to the next
    monkeypatch.setattr("ansatz.training.callbacks.time.monotonic", lambda: next(clock))
    text, _ = fit(monkeypatch, io.StringIO(), epochs=10, progress=2)
    lines = text.splitlines()
    assert 4 <= len(lines) <= 20 and "\r" not in text
    assert re.match(r"epoch \d+/10  step \d+/40  loss .* valid .*  at most .* left", lines[1])


def test_without_an_end_in_sight_no_time_is_left(monkeypatch):
    monkeypatch.setattr(Lines.__init__, "__defaults__", (None, 0.05))
    text, _ = fit(monkeypatch, io.StringIO(), patience=200, steps=None, time_limit=0.5)
    assert len(text.splitlines()) <= 12 and "left" not in text


@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_a_phase_is_shown_while_it_lasts(kind, monkeypatch):
    clock = itertools.count(0.0, 20.0)
    monkeypatch.setattr("ansatz.training.phase.time.monotonic", lambda: next(clock))
    stream = kind()
    with Phase("fitting the folds", "auto", stream) as phase:
        for k in range(3):
            phase.show(k, 3)
    text = stream.getvalue()
    assert "fitting the folds ..." in text
    assert "fitting the folds: 2 of 3, about 30.0 s left" in text
    if stream.isatty():  # the line is gone
        assert text.endswith("\r") and "\n" not in text
    else:
        assert text.count("\n") == 4 and "\r" not in text
    for silent in (0, "off"):
        with Phase("nothing", silent, stream):
            assert stream.getvalue() == text


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
