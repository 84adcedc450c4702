"""What several suites share for a whole session."""

import ipaddress
import os
import re
import signal
import socket

import pytest
from hypothesis import HealthCheck, settings

# Tests write nothing into the home of who runs them; those of the cache name a folder.
os.environ["PSD_CACHE"] = "off"

# A shell starts what runs in the background deaf to Ctrl-C, and so would be the processes that
# tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# So that a failure in these shows what was compared.
pytest.register_assert_rewrite("support.cli_runner")

from psd._apps import has_app  # noqa: E402
from support.needed_apps import lacks_app  # noqa: E402
from support.postgres import execute, server  # noqa: E402
from support.seeded_system import repeated, replacements  # noqa: E402

# Draws and examples repeat, so that no run fails by chance or by the load of a machine. Long runs
# may ask for new ones with `PSD_TEST_RANDOMNESS=system`.
REPEATS = os.environ.get("PSD_TEST_RANDOMNESS") != "system"
settings.register_profile(
    "psd", deadline=None, derandomize=REPEATS, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("psd")
if REPEATS:
    for owner, name, function in replacements():
        setattr(owner, name, function)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Seed the draws of a test by its name."""
    with repeated(item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    """Seed the draws of a fixture by its name, whatever test asks for it first."""
    with repeated(f"{fixturedef.baseid} {fixturedef.argname} {getattr(request, 'param_index', 0)}"):
        return (yield)


# What `pytest` selects, from pyproject.toml.
FAST = "not deep and not nightly and not spark"


def pytest_configure(config):
    """Run the tests of files that are named in both tiers; of the deep tier no long runs."""
    chosen = config.option.markexpr
    if chosen == "deep":
        config.option.markexpr = "deep and not nightly and not spark"
    if chosen == FAST and all(".py" in name for name in config.args):
        config.option.markexpr = "not nightly and not spark"


# A file that is deep as a whole.
DEEP = re.compile(r"^pytestmark = \[?pytest\.mark\.deep\b", re.MULTILINE)


def pytest_ignore_collect(collection_path, config):
    """Leave out files that need an app which is not there, and deep ones of the fast tier.

    The fast tier has not all that deep files import.
    """
    if not collection_path.match("test_*.py"):
        return None
    deep = "not deep" in config.option.markexpr and DEEP.search(collection_path.read_text("utf-8"))
    return True if deep or lacks_app(collection_path) else None


def pytest_collection_modifyitems(config, items):
    """Leave out tests whose app is removed, and begin with the slow ones.

    So the short ones share out what is left of the time.
    """
    marks = {item: item.iter_markers("app") for item in items}
    lacking = [
        item
        for item, of in marks.items()
        if not all(has_app(app) for mark in of for app in mark.args)
    ]
    if lacking:
        config.hook.pytest_deselected(items=lacking)
        items[:] = [item for item in items if item not in lacking]
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(scope="session")
def postgis():
    """Address of a throw-away database with PostGIS."""
    with server() as url:
        execute(url, "CREATE EXTENSION postgis")
        yield url


def is_local(end, address):
    """Whether an address is one of this machine: a file, or a number that loops back."""
    if end.family == socket.AF_UNIX:
        return True
    try:
        return ipaddress.ip_address(address[0]).is_loopback
    except ValueError:
        return address[0] == "localhost"


@pytest.fixture(autouse=True, scope="session")
def no_network():
    """Refuse connections to other machines: a test that needs one is none of this package."""

    def guarded(connect):
        def local(end, address):
            if not is_local(end, address):
                raise PermissionError(f"a test connects beyond this machine, to {address[0]}")
            return connect(end, address)

        return local

    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "connect_ex"):
            patch.setattr(socket.socket, name, guarded(getattr(socket.socket, name)))
        yield
