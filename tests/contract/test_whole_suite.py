"""The suite itself: nothing of it is lost, and none of it leaves this machine."""

import socket
from collections import Counter
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]

# Fewer tests of every run than there are, folder by folder.
LEAST = {
    "audit": 70, "cli": 1200, "contract": 1200, "golden": 10, "oracle": 600, "privacy": 1100,
    "property": 320, "statistical": 130, "unit": 4200,
}  # fmt: skip


def test_no_folder_of_the_suite_is_lost(request):
    asked = {
        (request.config.invocation_params.dir / path).resolve() for path in request.config.args
    }
    left_out = request.config.option.keyword or request.config.option.ignore
    if asked != {TESTS} or left_out:
        pytest.skip("a part of the suite was asked for")
    found = Counter(item.path.relative_to(TESTS).parts[0] for item in request.session.items)
    assert sum(found.values()) > 9_000
    assert {name: found[name] for name, least in LEAST.items() if found[name] < least} == {}


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
