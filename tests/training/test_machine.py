"""Devices that are checked, and signals that end a run after a whole step."""

import signal
import threading

import pytest
import torch
from torch import nn

from ansatz.data import Batch
from ansatz.errors import UsageError
from ansatz.likelihoods import Normal
from ansatz.training import Interrupted, Supervised, choose_device
from ansatz.training.machine import (
    Signals,
    gradients,
    refuse_half_precision,
    seed_step,
    trusted_device,
)

MPS, CPU = torch.device("mps"), torch.device("cpu")


def example():
    batch = Batch.of(torch.randn(6, 2), torch.randn(6))
    return nn.Linear(2, 1), Supervised(Normal(dispersion=1.0)), batch


@pytest.mark.parametrize(
    "cuda, mps, expected", [(1, 1, "cuda"), (0, 1, "mps"), (0, 0, "cpu"), (1, 0, "cuda")]
)
def test_auto_takes_the_fastest_that_is_there(cuda, mps, expected, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(cuda))
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: bool(mps))
    assert choose_device("auto").type == expected


@pytest.mark.parametrize("name", ["cuda", "mps", "cuda:1"])
def test_a_device_that_is_not_there_is_refused_with_advice(name, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UsageError, match=f"device '{name}' is not available.*'cpu' or 'auto'"):
        choose_device(name)


@pytest.mark.parametrize("name", ["gpu", "", "cuda:x", "meta"])
def test_an_unknown_device_is_refused_with_the_known_ones(name):
    with pytest.raises(UsageError, match="auto, cpu, cuda, mps"):
        choose_device(name)


def test_a_device_that_agrees_with_the_cpu_is_used():
    def honest(network, objective, batch, device):
        return [g * (1 + 1e-6) for g in gradients(network, objective, batch, CPU)]

    assert trusted_device(*example(), MPS, compute=honest) == MPS


def test_a_device_whose_gradient_is_wrong_is_replaced_by_the_cpu():
    def wrong(network, objective, batch, device):
        loss, *rest = gradients(network, objective, batch, CPU)
        return [loss, *(g if device == CPU else g * 1.1 for g in rest)]

    with pytest.warns(
        UserWarning, match=r"on the CPU, since mps fails a check: gradient 1 differs"
    ):
        assert trusted_device(*example(), MPS, compute=wrong) == CPU


def test_a_device_that_gives_nan_is_replaced_by_the_cpu():
    def wrong(network, objective, batch, device):
        found = gradients(network, objective, batch, CPU)
        return found if device == CPU else [g * torch.nan for g in found]

    with pytest.warns(UserWarning, match="the loss differs"):
        assert trusted_device(*example(), MPS, compute=wrong) == CPU


def test_a_device_that_fails_is_replaced_by_the_cpu_and_says_why():
    def failing(network, objective, batch, device):
        if device == MPS:
            raise TypeError("Cannot convert a MPS Tensor to float64 dtype")
        return gradients(network, objective, batch, CPU)

    with pytest.warns(UserWarning, match="Cannot convert a MPS Tensor to float64"):
        assert trusted_device(*example(), MPS, compute=failing) == CPU


def test_the_check_itself_is_the_mean_loss_and_its_gradient_and_leaves_no_trace():
    network, objective, batch = example()
    found = gradients(network, objective, batch, CPU)
    loss = objective(network, batch)
    (loss.total / loss.count).backward()
    torch.testing.assert_close(found[1:], [p.grad for p in network.parameters()])


def test_half_precision_is_fine_where_the_cpu_has_it(monkeypatch):
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_fp16_supported", lambda: True)
    refuse_half_precision(nn.Linear(1, 1).half(), CPU)
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_fp16_supported", lambda: False)
    with pytest.raises(UsageError, match="float16"):
        refuse_half_precision(nn.Linear(1, 1).half(), CPU)
    refuse_half_precision(nn.Linear(1, 1).half(), torch.device("cuda"))


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_is_noted_and_the_second_stops(number, status):
    with Signals() as signals:
        signals.step = 12
        signal.raise_signal(number)
        assert signals.received == number
        with pytest.raises(Interrupted, match="after step 12") as caught:
            signal.raise_signal(number)
    assert caught.value.exit_status == status


def test_the_handlers_before_are_back_after():
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    with Signals():
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == before


def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Signals() as signals:
            signal.raise_signal(signal.SIGINT)
        assert signals.received is None
    finally:
        signal.signal(signal.SIGINT, before)


def test_in_another_thread_no_handler_is_touched():
    before, seen = signal.getsignal(signal.SIGINT), []

    def work():
        with Signals() as signals:
            seen.append((signal.getsignal(signal.SIGINT), signals.received))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(before, None)]


def test_it_is_a_keyboard_interrupt_that_no_except_exception_swallows():
    assert issubclass(Interrupted, KeyboardInterrupt)
    assert not issubclass(Interrupted, Exception)
    assert "saved in run; " in str(Interrupted(2, 3, "run")).replace(", resume", "; resume")


def test_random_numbers_of_a_step_depend_on_seed_rank_and_number_alone():
    cpu, drawn = torch.device("cpu"), []
    for rank, number in ((1, 7), (1, 7), (0, 7), (1, 8)):
        with torch.random.fork_rng(devices=[]):
            seed_step(0, rank, number, cpu, {})
            drawn.append(float(torch.rand(())))
    assert drawn[0] == drawn[1] and len(set(drawn)) == 3
