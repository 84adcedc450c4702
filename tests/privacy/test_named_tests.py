"""The test that a planted bug names fails with the bug in the package, and passes without it."""

import subprocess
import sys
from pathlib import Path

import pytest

from privacy.planted_bugs.registry import MUTANTS

NAMED = Path(__file__).resolve().parent / "planted_bugs" / "named.py"

# Its test starts processes of its own; test_check_then_act_is_caught plants the bug in them.
BEYOND_REACH = {"check-then-act"}

# A broken method in the place of a sound one is no bug of the package; its test knows sound ones.
IN_THE_PACKAGE = [
    mutant.id for mutant in MUTANTS if mutant.instead is None and mutant.id not in BEYOND_REACH
]
QUICK = ("noise-cut-off", "epsilon-by-float", "second-layer-beside", "selection-underflow")
QUICK += ("ids-as-they-are", "delta-without-k")


def ended(*arguments):
    """What pytest ends with, bug by bug: 0 for tests that passed, 1 for a test that failed."""
    command = [sys.executable, str(NAMED), *arguments]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")
    return [int(line.split()[0]) for line in lines if line]


@pytest.mark.slow
def test_named_tests_fail_with_their_bugs():
    assert ended(*QUICK) == [1] * len(QUICK)
    assert ended("--sound", QUICK[1]) == [0]


@pytest.mark.nightly
@pytest.mark.parametrize("bug", IN_THE_PACKAGE)
def test_every_named_test_fails_with_its_bug(bug):
    assert ended(bug) == [1]
