"""The tests have power: each planted bug is caught by the test that it names.

The named tests run in processes of their own, which collect them with the bug in the package.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from privacy.planted_bugs import run
from privacy.planted_bugs.registry import BUGS, THEMES

# Bugs of every deep run, from all themes; their tests take seconds.
QUICK = (
    *("noise-floats", "noise-seeded", "selection-underflow", "selection-without-factor-2"),
    *("counts-forget-k", "omits-empty-cells", "second-layer-beside", "epsilon-by-float"),
    *("nan-is-inside", "ids-as-they-are", "part-merged-twice", "float-balances"),
)

# Bugs that the fast tier does not catch, and why.
NODE = "node runs the device in JavaScript"
IBIS = "Ibis writes the expression of an engine"
DEEP_BUGS = {
    "other-options-are-refused": NODE,
    "browser-threshold-rounded-up": NODE,
    "browser-compares-floats": NODE,
    "browser-words-of-math-random": NODE,
    "browser-silence-for-outside": NODE,
    "browser-hash-seed-from-the-value": NODE,
    "browser-takes-every-word": NODE,
    "browser-draws-anew-each-time": NODE,
    "browser-cap-of-each-campaign-alone": NODE,
    "browser-with-a-lost-store-starts-anew": NODE,
    "browser-report-for-whoever-names-its-campaign": NODE,
    "limit-of-a-slice-forgotten-by-an-engine": IBIS,
    "times-outside-all-slices-counted-by-an-engine": IBIS,
}


def are_caught(names):
    """Run the tests of bugs, by their names, and check that each fails as it should."""
    command = [sys.executable, run.__file__, *names]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    assert [line.split()[0] for line in lines] == [*names]
    assert [line for line in lines if " caught: " not in line] == []


@pytest.mark.deep
@pytest.mark.slow
def test_twelve_bugs_are_caught():
    are_caught(QUICK)


@pytest.mark.nightly
@pytest.mark.parametrize("theme", THEMES)
def test_each_bug_is_caught(theme):
    are_caught([bug.id for bug in THEMES[theme]])


def test_bugs_have_a_name_and_a_sentence_each():
    assert len({bug.id for bug in BUGS}) == len(BUGS)
    assert all(bug.wrong and bug.like for bug in BUGS)


def test_each_patch_fits_the_package(subtests):
    for bug in BUGS:
        with subtests.test(bug.id), bug.plant():
            pass


def collected(marker):
    """Cases of the named tests that a marker selects."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "--collect-only", "-q", "-m", marker]
    named, root = sorted({bug.test for bug in BUGS}), Path(run.TESTS).parent
    ended = subprocess.run([*command, *named], cwd=root, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout
    return [line for line in ended.stdout.splitlines() if "::" in line]


@pytest.mark.deep
def test_the_named_tests_exist_and_nearly_all_are_of_the_fast_tier():
    every, fast = collected(""), collected("not deep and not nightly")
    deep = {case.split("[")[0] for case in set(every) - set(fast)} | set(every) - set(fast)
    found = {bug.id for bug in BUGS if bug.test in deep}
    assert found == set(DEEP_BUGS) & {bug.id for bug in BUGS}
    assert len(found) <= len(BUGS) / 20
