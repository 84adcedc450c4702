"""How a ledger is asked of SQLite, and what its errors become."""

import sqlite3

import pytest

from psd.errors import LedgerError
from psd.ledger import file as ledger_file
from psd.ledger.ledger import Ledger


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "city.ledger")


@pytest.mark.parametrize("way", ["snapshot", "dry_run", "exclusive"])
def test_a_ledger_is_opened_as_one_that_exists(way, ledger, monkeypatch):
    """Never made, waited for as long as others may hold it, and committed by no one else."""
    asked, connect = [], sqlite3.connect

    def watched(*place, **how):
        if place != (":memory:",):
            asked.append((place, how))
        return connect(*place, **how)

    monkeypatch.setattr(ledger_file.sqlite3, "connect", watched)
    with getattr(ledger_file, way)(ledger.path) as opened:
        assert opened.execute("PRAGMA busy_timeout").fetchone() == (20_000,)
        assert opened.execute("PRAGMA trusted_schema").fetchone() == (0,)
        assert opened.execute("PRAGMA synchronous").fetchone() == (3,)
        assert opened.in_transaction
    how = {"uri": True, "timeout": 20.0, "isolation_level": None}
    assert asked == [((f"{ledger.path.resolve().as_uri()}?mode=rw",), how)]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        *((name, words) for name, words in ledger_file._SENTENCES.items()),
        ("SQLITE_IOERR_WRITE", ledger_file._SENTENCES["SQLITE_IOERR"]),
        ("SQLITE_BUSY_SNAPSHOT", ledger_file._SENTENCES["SQLITE_BUSY"]),
        ("SQLITE_MISUSE", "cannot be used; it may be damaged"),
        (None, "cannot be used; it may be damaged"),
    ],
)
def test_errors_of_the_engine_are_sentences(name, words, ledger):
    error = sqlite3.OperationalError("INSERT INTO entry")
    if name is not None:
        error.sqlite_errorname = name
    with pytest.raises(LedgerError) as raised, ledger_file.snapshot(ledger.path):
        raise error
    assert str(raised.value) == f"ledger {ledger.path} {words}"


def test_another_database_is_named(tmp_path):
    with sqlite3.connect(tmp_path / "notes.sqlite") as other:
        other.execute("CREATE TABLE notes (text)")
    other.close()
    with pytest.raises(LedgerError) as raised:
        Ledger(tmp_path / "notes.sqlite").state()
    words = "is not a ledger of psd, but another database"
    assert str(raised.value) == f"ledger {tmp_path / 'notes.sqlite'} {words}"


def test_what_a_ledger_has_is_looked_up_without_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = ledger_file._known_objects("CREATE TABLE a (b);")
    assert found == {("table", "a", "CREATE TABLE a (b)")}
    assert list(tmp_path.iterdir()) == []
