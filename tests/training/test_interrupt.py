import signal
import threading

import pytest

from ansatz.training import Interrupted
from ansatz.training.interrupt import Signals


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
