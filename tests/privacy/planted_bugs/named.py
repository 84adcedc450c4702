"""The test that a planted bug names, run with the bug in the package.

``python tests/privacy/planted_bugs/named.py noise-x0.7 refund`` prints what pytest ends with, line
by line: 1 where the named test fails, as it should. With ``--sound`` nothing is planted: 0.
"""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Concerned:
    """Leaves out the methods and units of a named test that its bug is not about."""

    mutant: object

    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if self.concerns(item)] or items

    def concerns(self, item):
        asked = item.callspec.params if hasattr(item, "callspec") else {}
        unit, sound = getattr(self.mutant.check, "unit", None), self.mutant.sound
        method = asked.get("method", sound)
        return asked.get("name", unit) == unit and type(method) is type(sound)


def ended(mutant, sound=False):
    """What pytest ends with, in a process of its own, which collects with the bug in place."""
    child = os.fork()
    if child == 0:
        with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
            os._exit(_run(mutant, sound))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _run(mutant, sound):
    warnings = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # of helpers that bugs use
    options = ("-x", "-n", "0", "-p", "no:cacheprovider", "-m", "not spark", *warnings)
    test = str(TESTS.parent / mutant.test)
    with nullcontext() if sound else mutant.plant():
        return int(pytest.main([test, *options], plugins=[Concerned(mutant)]))


def main(*arguments):
    sys.path[:0] = [str(TESTS)]
    mutants = {
        mutant.id: mutant for mutant in import_module("privacy.planted_bugs.registry").MUTANTS
    }
    for name in arguments:
        if name != "--sound":
            print(ended(mutants[name], "--sound" in arguments), name, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
