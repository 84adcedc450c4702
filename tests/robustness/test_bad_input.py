"""What psd does with unusual and wrong input: the table of `badinput`, line by line."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import psd
from robustness.bad_input import CASES, OUTPUT, SECRET
from support.cli_runner import Outcome, cli, fails, files, without_request_warnings

ACCEPTED = [pytest.param(case, id=case.name) for case in CASES if case.kept is not None]
ANSWERED = [pytest.param(c, id=c.name) for c in CASES if c.command == "query" and not c.code]
REFUSED = [pytest.param(case, id=case.name) for case in CASES if case.code]

MEASURED = """if True:
    import re, sys
    from psd_cli.main import run
    code = run(sys.argv[1:])
    status = open("/proc/self/status").read()
    print(int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) // 1024)
    sys.exit(code)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in, with one for releases; names in it are short and relative."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    return tmp_path


def run_within(megabytes, args):
    """Run in a process of its own that may not need more memory."""
    command = [sys.executable, "-c", MEASURED, *args]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    told, peak = ended.stdout.splitlines()
    assert int(peak) < megabytes
    return Outcome(ended.returncode, told + "\n", without_request_warnings(ended.stderr))


@pytest.mark.parametrize("case", ACCEPTED)
def test_accepted(folder, case):
    case.prepare(folder)
    Path(OUTPUT).write_bytes(b"an older release")
    outcome = run_within(case.megabytes, case.args) if case.megabytes else cli(*case.args)
    assert outcome.code == 0, outcome.err
    assert outcome.out.startswith(f"wrote {OUTPUT}: ")
    assert outcome.err.startswith("PRIVATE, do not publish: ")
    counted, *hint = outcome.err.splitlines()
    assert counted.endswith(f", kept {case.kept:,}")
    assert [line.startswith("PRIVATE, do not publish: no record was counted") for line in hint] == (
        [True] if "read 0," not in counted and not case.kept else []
    )
    assert files(folder / "out") == [Path(OUTPUT).name]
    assert psd.Release.load(OUTPUT).epsilon > 0
    assert not any(field in outcome.out for field in case.fields)
    assert SECRET.encode() not in Path(OUTPUT).read_bytes()


@pytest.mark.parametrize("case", ANSWERED)
def test_answered(folder, case):
    case.prepare(folder)
    outcome = cli(*case.args)
    assert (outcome.code, outcome.out) == (0, f"wrote {case.output}\n"), outcome
    assert (" beyond the bounds of the release" in outcome.err) == ("part inside" in case.given)
    answers = pd.read_csv(case.output)
    assert len(answers) == 1
    assert 0 < answers["estimate"][0] <= sum(range(64))


@pytest.mark.parametrize("case", REFUSED)
def test_refused(folder, monkeypatch, case):
    case.prepare(folder)
    if case.patch:
        case.patch(monkeypatch)
    there = files(folder)
    for earlier in (None, b"an older release"):
        if earlier:
            Path(case.output).write_bytes(earlier)
        if earlier or case.overwrite:
            line = fails(case.code, *case.args)
            assert case.told in line
            assert not [field for field in case.fields if field in line]
        assert files(folder) == there
        assert files(folder / "out") == ([Path(case.output).name] if earlier else [])
        assert not earlier or Path(case.output).read_bytes() == earlier


@pytest.mark.parametrize("kind", "CVPUKEQLX")
def test_the_cases_stand_in_order(kind):
    ids = [case.id for case in CASES if case.id.startswith(kind)]
    assert ids == sorted(ids)
