"""Run the tests that planted bugs name, each with its bug in the package.

``python tests/privacy/planted_bugs/run.py noise-cut-off refund`` prints a line for each: whether
the bug was caught, and the error with which the test failed. A test that fails with any other
error than that of a check or of the package has met a broken patch.
"""

import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2]
OPTIONS = ("--exitfirst", "-n", "0", "-p", "no:cacheprovider", "-m", "not spark")
LOADED = ("psd.publish.pipeline", "psd.testing", "psd_cli.main", "geopandas", "hypothesis")
HELPERS = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # that bugs have imported


class FirstError:
    """Remembers the error of the first test that fails."""

    def __init__(self):
        self.error = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item, call):
        error = call.excinfo
        if self.error is None and error and not error.errisinstance(pytest.skip.Exception):
            self.error = error


def is_of_a_check(error):
    """Whether a test failed because something was seen, and not because a patch is broken."""
    if isinstance(error, BaseExceptionGroup):  # of Hypothesis
        return all(map(is_of_a_check, error.exceptions))
    errors = import_module("psd.errors")
    seen = (AssertionError, pytest.fail.Exception, errors.PsdError)
    return isinstance(error, seen) and not isinstance(error, errors.InternalError)


def outcome(bug):
    """How the named test ends; it is collected with the bug in place."""
    first = FirstError()
    with bug.plant():
        code = pytest.main([str(TESTS.parent / bug.test), *OPTIONS, *HELPERS], plugins=[first])
    if first.error is None:
        return f"NOT CAUGHT, pytest ended with {int(code)}"
    verdict = "caught" if is_of_a_check(first.error.value) else "BROKEN"
    return f"{verdict}: {first.error.typename}"


def report(bug):
    """Print the outcome of a bug, from a process of its own."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        line = outcome(bug)
    print(f"{bug.id} {line}", flush=True)
    os._exit(0)


def main(*names):
    sys.path[:0] = [str(TESTS)]
    for module in LOADED:  # once, and not in each of the processes
        import_module(module)
    bugs = {bug.id: bug for bug in import_module("privacy.planted_bugs.registry").BUGS}
    for name in names or bugs:
        report(bugs[name])


if __name__ == "__main__":
    main(*sys.argv[1:])
