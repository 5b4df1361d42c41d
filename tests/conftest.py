import ipaddress
import os
import socket
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import hypothesis
import pytest
import torch

# The same examples in every run, and no limit of time that a busy machine would break.
hypothesis.settings.register_profile("ansatz", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("ansatz")


@pytest.fixture(autouse=True)
def _float64_on_one_thread(_same_draws):
    """Identities hold in float64 and for any seed; the conftest above fixes one."""
    threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(dtype)
    torch.set_num_threads(threads)


_attempts: list[str] = []


def _is_local(host):
    if isinstance(host, bytes):
        host = host.decode(errors="replace")
    if not isinstance(host, str) or host in ("", "localhost", socket.gethostname()):
        return True  # no name at all: a pipe's or the kernel's address
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _loopback_only(event, args):
    """Python tells an audit hook of every socket call, whoever makes it; it cannot be removed."""
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        host = args[1][0] if isinstance(args[1], tuple) else None
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = args[0]
    else:
        return
    if not _is_local(host):
        _attempts.append(f"{event} {host!r}")
        raise ConnectionRefusedError(f"the tests run without a network, got {event} {host!r}")


sys.addaudithook(_loopback_only)


@pytest.fixture(autouse=True)
def network_attempts():
    """Calls to other machines: refused at once, and the test fails even if its code hides it."""
    _attempts.clear()
    yield _attempts
    assert not _attempts, f"a test reached for the network: {_attempts}"
