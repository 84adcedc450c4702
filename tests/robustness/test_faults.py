"""What psd does when something fails around it: the tables of `faults` and `badreleases`."""

import re
import tempfile
from pathlib import Path

import pytest

import psd
from psd.ledger.ledger import Ledger
from psd.privacy.loss import NANO
from robustness.bad_campaigns import CASES as LOCAL_CASES
from robustness.bad_input import CASES, SECRET, page
from robustness.bad_releases import LEFT_OUT, MAPS, NAMES, RELEASES
from robustness.faults import LEDGER, LEDGERS, OUTPUT, POINTS, PROCESSES, Elsewhere, Fault, room
from support.cli_runner import cli

TOP = Path(__file__).parents[2]
TABLE = (*PROCESSES, *LEDGERS, *RELEASES, *NAMES, *MAPS)
FAULTS = [
    pytest.param(fault, id=fault.name, marks=fault.marks)
    for fault in TABLE
    if isinstance(fault, Fault)
]

# Section 6 of the checklist: letters, and how many ids each has.
CHECKLIST = {"C": 28, "V": 23, "P": 11, "F": 16, "L": 14, "R": 14, "Q": 13, "M": 7, "D": 12}


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    """A release as it stands there before."""
    folder = tmp_path_factory.mktemp("older")
    (folder / "points.csv").write_text(POINTS)
    line = f"build {folder}/points.csv -o {folder}/r --epsilon 1 --bounds 0 0 4 4"
    assert cli(*line.split(), "--method", "quadtree", "--set", "height=1").code == 0
    return (folder / "r").read_bytes()


def contents(folder):
    """What is in a folder, and in every file of it."""
    return {
        path.name: path.read_bytes() if path.is_file() and not path.is_char_device() else None
        for path in folder.iterdir()
    }


@pytest.mark.parametrize("fault", FAULTS)
def test_fault(tmp_path, monkeypatch, release, fault):
    (tmp_path / "older").write_bytes(release)
    folder, temporary = tmp_path / "room", tmp_path / "temporary"
    folder.mkdir()
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.chdir(folder)
    with room(folder, release):
        with monkeypatch.context() as patch:
            fault.setup(patch)
            before = contents(Path("out"))
            outcome = fault.run(fault.args.split(" "))
        check_said(fault, outcome)
        check_files(fault, before)
        fault.after(outcome)
        check_charges(fault)
    assert [*temporary.iterdir()] == []


def check_said(fault, outcome):
    """The exit code, and one line with the words."""
    assert outcome.code == fault.code, outcome
    assert SECRET not in outcome.out + outcome.err
    assert "Traceback" not in outcome.err
    if fault.code:
        assert re.fullmatch("psd: error: [^\n]+\n", outcome.err), outcome.err
        assert fault.told in outcome.err


def check_files(fault, before):
    """All as before but for a release that was written whole."""
    after = contents(Path("out"))
    name = Path(OUTPUT).name
    if fault.args.startswith("build") and (fault.code == 0 or fault.written):
        assert {*after} == {*before, name}
        assert psd.load(OUTPUT).record.epsilon in (NANO, 11 * NANO)
        assert after[name] != before.get(name)
    elif fault.setup.__name__ == "appearing":
        assert {*after} == {name}
    elif fault.name != "R02-bit":
        assert after == before


def check_charges(fault):
    """A sound ledger with as many charges as there should be."""
    if fault.charged is not None:
        assert len(Ledger(LEDGER).verify().charges) == fault.charged


def test_tests_of_faults_elsewhere_are_there(subtests):
    for fault in TABLE:
        if isinstance(fault, Elsewhere):
            with subtests.test(fault.name):
                path, name = fault.test.split("::")
                function, _, case = name.rstrip("]").partition("[")
                assert f"def {function}(" in (TOP / path).read_text(encoding="utf-8")
                assert not case or case in map(id_of, CASES)


def test_every_row_of_the_page_names_a_test_that_is_there(subtests):
    named = re.findall(r"`([\w/]+\.py)::(\w+)", page())
    assert len(named) > 15
    for path, name in named:
        with subtests.test(name):
            assert f"def {name}(" in (TOP / "tests" / path).read_text(encoding="utf-8")
    assert "not exist yet" not in page()


def id_of(case):
    return case.name.split("-")[0]


def test_every_id_of_the_checklist_is_tested_or_left_out_with_a_reason():
    ids = {f"{letter}{i:02}" for letter, n in CHECKLIST.items() for i in range(1, n + 1)}
    tested = {*map(id_of, (*CASES, *TABLE, *LOCAL_CASES))}
    assert len(ids) == 138
    assert not tested & {*LEFT_OUT}
    assert ids <= tested | {*LEFT_OUT}
    assert all(LEFT_OUT.values())


def test_no_name_stands_twice_and_all_stand_in_order():
    names = [case.name for case in (*CASES, *TABLE)]
    assert len(names) == len({*names})
    for table in (CASES, TABLE):
        for letter in {case.name[0] for case in table}:
            ids = [id_of(case) for case in table if case.name.startswith(letter)]
            assert ids == sorted(ids)
