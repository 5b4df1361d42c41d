"""For every test and doctest: signals as an interactive user has them, and a fixed seed."""

import signal
import threading

import pytest
import torch

# A job started in the background of a shell inherits an ignored SIGINT; tests press Ctrl-C.
if threading.current_thread() is threading.main_thread():
    if signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None):
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _same_draws():
    """What an example prints must not depend on which examples the worker ran before it."""
    if torch.accelerator.is_available():
        torch.manual_seed(0)
    else:  # torch.manual_seed formats a stack trace for each kind of device that is not there
        torch.default_generator.manual_seed(0)
