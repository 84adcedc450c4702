"""What psd does with wrong campaigns, streams, suggestions and choices: the tables of `bad_*`."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from psd.ledger.ledger import Ledger
from robustness import bad_campaigns, bad_choices, bad_streams, bad_suggestions
from robustness.commands import grouped
from support.cli_runner import cli

TABLES = {
    "local": bad_campaigns,
    "stream": bad_streams,
    "suggest": bad_suggestions,
    "choose": bad_choices,
}


def contents():
    """Content and rights of each file; of a database what it says, as a lock writes its header."""
    paths = [path for path in Path().rglob("*") if path.is_file()]
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


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """Prepares a folder for a case, always in one place: a stream knows where it lies."""
    top = tmp_path_factory.mktemp("commands")

    def prepare(command, patch):
        here, kept = top / command, top / f"kept-{command}"
        if here.exists():
            shutil.rmtree(here)
            shutil.copytree(kept, here)
        here.mkdir(exist_ok=True)
        patch.chdir(here)
        if not kept.exists():
            TABLES[command].prepare()
            shutil.copytree(here, kept)

    return prepare


@pytest.mark.parametrize(
    ("command", "cases"),
    [group for command, table in TABLES.items() for group in grouped(table.CASES, command)],
)
def test_each_case(template, monkeypatch, subtests, command, cases):
    for case in cases:
        with subtests.test(case.name):
            template(command, monkeypatch)
            case.setup()
            before = contents()
            outcome = cli(command, *case.args.split())
            assert outcome.code == case.code, outcome
            assert case.told in outcome.err
            if case.code:
                assert (outcome.out, outcome.err.count("\n")) == ("", 1)
                assert outcome.err.startswith("psd: error: ")
                assert contents() == before
            else:
                check_taken(command, case, outcome, before)
            if command == "choose":
                assert len(Ledger(bad_choices.LEDGER).state().charges) == case.charges


def check_taken(command, case, outcome, before):
    """What is printed, and which files are there."""
    after = contents()
    if case.args.startswith("collect"):
        assert outcome.out == "collected 2 reports into parts\n"
        assert outcome.err.count("\n") == bool(case.told)
        assert len(list(Path("parts").iterdir())) == 1
        return
    assert after.keys() == before.keys() | {*case.makes}
    assert {name for name in after if after[name] != before.get(name)} >= {*case.makes}
    if command == "local":
        assert outcome.out.startswith('{"psd-report":1,')
        assert outcome.err == ""
    elif case.makes or command == "stream":
        assert outcome.out.startswith("wrote ")


def test_ids_are_those_of_one_table_and_stand_in_order():
    names = [case.name for table in TABLES.values() for case in table.CASES]
    assert len({*names}) == len(names)
    for command in ("stream", "suggest", "choose"):
        ids = [case.id for case in TABLES[command].CASES]
        assert ids == sorted(ids)
