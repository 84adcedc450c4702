"""No test leaves this machine."""

import socket

import pytest


@pytest.mark.parametrize("address", [("192.0.2.1", 80), ("2001:db8::1", 80), ("example.org", 80)])
def test_no_test_leaves_this_machine(address):
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    with socket.socket(family) as end:
        for connect in (end.connect, end.connect_ex):
            with pytest.raises(PermissionError, match="beyond this machine"):
                connect(address)


def test_a_server_of_this_machine_can_be_asked():
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname(), timeout=5).close()
