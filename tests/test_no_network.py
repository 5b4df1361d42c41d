"""The suite runs without a network (S7): what reaches beyond this machine fails its test."""

import socket
import urllib.error
import urllib.request

import pytest


def connect(address):
    with socket.socket() as s:
        s.connect(address)


def connect_ex(address):
    with socket.socket() as s:
        s.connect_ex(address)


def send(address):
    with socket.socket(type=socket.SOCK_DGRAM) as s:
        s.sendto(b"x", address)


# 192.0.2.0/24 is reserved for documentation: nobody is there, should the refusal ever fail.
@pytest.mark.parametrize("call", [connect, connect_ex, send, socket.create_connection])
def test_other_machines_are_refused(network_attempts, call):
    with pytest.raises(ConnectionRefusedError, match=r"without a network"):
        call(("192.0.2.1", 9))
    assert len(network_attempts) >= 1
    network_attempts.clear()


def test_names_of_other_machines_are_not_looked_up(network_attempts):
    with pytest.raises(ConnectionRefusedError, match=r"without a network"):
        socket.getaddrinfo("example.invalid", 80)
    network_attempts.clear()


def test_an_attempt_that_its_caller_hides_is_remembered(network_attempts):
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen("http://192.0.2.1/telemetry")
    assert any("192.0.2.1" in attempt for attempt in network_attempts)
    network_attempts.clear()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_this_machine_can_talk_to_itself(host):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        with socket.create_connection((host, server.getsockname()[1])) as client:
            client.sendall(b"hello")
            with server.accept()[0] as peer:
                assert peer.recv(5) == b"hello"
