"""What psd does with wrong options, slices, states and files of streams: `bad_streams`."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from robustness.bad_streams import CASES, STATE, prepare
from support.cli_runner import cli


def contents(folder):
    """Content and rights of each file; of a database what it says, as a lock writes its header."""
    paths = [path for path in Path(folder).rglob("*") if path.is_file()]
    return {path.name: (content_of(path), path.stat().st_mode) for path in paths}


def content_of(path):
    """Statements that make a database, or the bytes of another file, or of a damaged one."""
    content = path.read_bytes()
    if not content.startswith(b"SQLite format 3"):
        return content
    try:
        with closing(sqlite3.connect(path)) as database:
            return list(database.iterdump())
    except sqlite3.DatabaseError:
        return content


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_case(tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    prepare(case)
    before = contents(tmp_path)
    outcome = cli("stream", *case.args.split())
    assert outcome.code == case.code, outcome
    assert case.told in outcome.err
    after = contents(tmp_path)
    if case.code:
        assert (outcome.out, outcome.err.count("\n")) == ("", 1)
        assert outcome.err.startswith("psd: error: ")
        assert after == before
    else:
        assert after.keys() == before.keys() | {*case.makes}
        assert {name for name in after if after[name] != before.get(name)} >= {*case.makes}
        assert outcome.out.startswith("wrote ")


def test_ids_are_those_of_one_table_and_stand_in_order():
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    ids = [name.split("-")[0] for name in names]
    assert ids == sorted(ids)
    assert STATE
