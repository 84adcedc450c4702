"""The ledger's file: what it takes, what it refuses, and what it finds out."""

import json
import os
import re
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from psd.errors import BudgetError, LedgerError, ParameterError, WriteError
from psd.ledger import entries as journal
from psd.ledger import file as ledger_file
from psd.ledger.charges import Dataset
from psd.ledger.extents import BY_FIELDS, Region
from psd.ledger.ledger import Ledger
from psd.privacy.loss import parse_epsilon
from psd.privacy.unit import PrivacyUnit
from support.ledger_columns import columns_of, request_for
from support.ledger_edits import cut_off, run_sql
from support.ledger_entries import CHARGE, REGION

BY_COLUMNS = (BY_FIELDS, "x=lon", "y=lat")
USER = PrivacyUnit(kind="user", max_contributions=4)
ZONED = PrivacyUnit(kind="user-day", max_contributions=2, time_zone="Asia/Seoul")


def claim(epsilon, unit=None, bounds=None, **more):
    region = bounds and Region(bounds=bounds, crs="EPSG:4326", columns=BY_COLUMNS)
    return request_for(parse_epsilon(epsilon), unit, region=region, **more)


def made_ledger(path):
    made = Ledger.create(path)
    made.register("visits", "1")
    return made


@pytest.fixture
def ledger(tmp_path):
    return made_ledger(tmp_path / "city.ledger")


@pytest.fixture
def impatient(monkeypatch):
    """Nobody waits for a ledger that is in use."""
    monkeypatch.setattr(ledger_file, "TIMEOUT", 0)


def spent(ledger, name="visits"):
    return ledger.state().spent(name)


def refuses(ledger, words):
    """Whatever is done with a ledger is refused by the same words."""
    for use in (ledger.verify, ledger.state, lambda: ledger.charge("visits", claim("0.1"))):
        with pytest.raises(LedgerError, match=words):
            use()


def test_made_once_and_for_its_owner(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    old = os.umask(0)
    try:
        made = Ledger.create(tmp_path / "a.ledger")
    finally:
        os.umask(old)
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o600
    with pytest.raises(WriteError, match="exists"):
        Ledger.create(tmp_path / "a.ledger")
    assert [path.name for path in tmp_path.iterdir()] == ["a.ledger"]
    assert made.verify().datasets == {}
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WriteError):
        Ledger.create(tmp_path / "link")
    assert not (tmp_path / "elsewhere").exists()


def changed(path, change):
    Ledger.create(path)
    path.write_bytes(change(path.read_bytes()))


def later(path):
    Ledger.create(path)
    run_sql(path, "PRAGMA user_version = 2")


def older(path):
    Ledger.create(path)
    run_sql(path, "PRAGMA application_id = 0x7073644C; PRAGMA user_version = 3")


UNUSABLE = {
    "missing": (lambda path: None, "does not exist"),
    "empty": (lambda path: path.touch(), "is empty"),
    "folder": (lambda path: path.mkdir(), "is not a file"),
    "pipe": (os.mkfifo, "is not a file"),
    "loop": (lambda path: path.symlink_to(path), "does not exist"),
    "text": (lambda path: path.write_text("visits,1\n" * 200), "not a ledger of psd"),
    "another database": (
        lambda path: run_sql(path, "CREATE TABLE entry (number)"),
        "is not a ledger of psd, but another database$",
    ),
    "a later format": (later, "has format 2, .* reads format 1$"),
    "an older format": (older, "has the old ledger format 3; .* no fresh budget$"),
    "cut off": (lambda path: changed(path, lambda content: content[:5000]), "damaged"),
    "scrambled": (
        lambda path: changed(path, lambda old: old[:4096] + bytes(4096) + old[8192:]),
        "damaged",
    ),
}


def test_what_is_no_ledger_is_refused_in_a_sentence_and_left_as_it_is(tmp_path, subtests):
    for what, (make, words) in UNUSABLE.items():
        path = tmp_path / what / "x.ledger"
        path.parent.mkdir()
        make(path)
        before = path.read_bytes() if path.is_file() else None
        with subtests.test(what):
            refuses(Ledger(path), f"{re.escape(str(path))} .*{words}")
            with pytest.raises(LedgerError, match=words):
                Ledger(path).register("visits", 1)
            assert (path.read_bytes() if path.is_file() else None) == before
            names = sorted(entry.name for entry in path.parent.iterdir())
            assert names == ["x.ledger"] * (what != "missing")


def test_a_ledger_is_found_by_any_name_and_by_links_but_hard_ones(tmp_path):
    """A hard link has no part in what a crash left; names may mean something in an address."""
    ledger = made_ledger(tmp_path / "50% of? all #1 서울&mode=ro.ledger")
    (tmp_path / "link").symlink_to(ledger.path)
    Ledger(tmp_path / "link").charge("visits", claim("0.6"))
    with pytest.raises(BudgetError):
        ledger.charge("visits", claim("0.6"))
    other = tmp_path / "other.ledger"
    other.hardlink_to(ledger.path)
    for use in (ledger.state, lambda: Ledger(other).charge("visits", claim("1"))):
        with pytest.raises(LedgerError, match="a hard link"):
            use()
    other.unlink()
    assert spent(ledger) == 600_000_000


@pytest.fixture
def connecting(monkeypatch):
    """A function that changes how the file of a ledger is opened."""
    opened = sqlite3.connect
    return lambda way: monkeypatch.setattr(
        ledger_file.sqlite3, "connect", lambda name, **how: way(opened, name, **how)
    )


def test_a_ledger_that_cannot_be_written_is_found_before_any_row_is_read(ledger, connecting):
    connecting(lambda opened, name, **how: opened(name.replace("mode=rw", "mode=ro"), **how))
    for use in (ledger.check, ledger.charge):
        with pytest.raises(LedgerError, match="cannot be written"):
            use("visits", claim("0.1"))
    assert ledger.verify().charges == {}


@pytest.mark.usefixtures("impatient")
def test_a_ledger_in_use_is_refused(ledger):
    with ledger_file.exclusive(ledger.path) as file:
        ledger_file.rows(file)
        with pytest.raises(LedgerError, match="in use by another process"):
            ledger.charge("visits", claim("0.1"))
        with pytest.raises(LedgerError, match="in use"), ledger_file.exclusive(ledger.path):
            pass  # nobody else even looks at the balance in order to charge
        assert spent(ledger) == 0  # reading goes on
    ledger.charge("visits", claim("0.1"))


def test_no_room_for_another_entry(ledger, connecting):
    charges = []

    def small(opened, name, **how):
        made = opened(name, **how)
        made.execute("PRAGMA max_page_count = 4")
        return made

    def spend():
        while len(charges) < 100:
            charges.append(ledger.charge("visits", claim("0.001")))

    connecting(small)
    with pytest.raises(LedgerError, match="disk is full; nothing was charged"):
        spend()
    assert [*ledger.verify().charges] == charges != []


def contents(ledger):
    """All files of its folder, byte for byte."""
    return {path.name: path.read_bytes() for path in ledger.path.parent.iterdir()}


@pytest.mark.usefixtures("impatient")
def test_whoever_reads_sees_one_moment_and_several_read_at_once(ledger):
    with ledger_file.snapshot(ledger.path) as file:
        before = list(ledger_file.rows(file))
        with pytest.raises(LedgerError, match="in use by another process"):
            ledger.charge("visits", claim("0.1"))
        assert list(ledger_file.rows(file)) == before
        assert ledger_file.last_number(file) == len(before)
        assert ledger.verify().head == ledger.state().head
    ledger.charge("visits", claim("0.1"))
    assert len(ledger.verify().charges) == 1


@pytest.fixture
def ended(connecting):
    """Whether a transaction was open when a connection was closed, of each."""
    seen = []

    class Watched(sqlite3.Connection):
        def close(self):
            seen.append(self.in_transaction)
            super().close()

    connecting(lambda opened, name, **how: opened(name, **how, factory=Watched))
    return seen


def while_open(ledger, act):
    with ledger_file.exclusive(ledger.path) as file:
        act(file)


@pytest.mark.usefixtures("impatient")
def test_what_fails_is_taken_back_and_lets_go_at_once(ledger, ended):
    def append_and_fail(file):
        body = {"name": "visits", "budget": 9 * 10**9}
        ledger_file.append(file, journal.entry(ledger.state().hashes, "raise", body))
        raise KeyboardInterrupt

    def append_when_ended(file):
        file.execute("ROLLBACK")  # as the engine ends a transaction
        ledger_file.append(file, (1, "", "", "", ""))

    before = contents(ledger)
    with pytest.raises(KeyboardInterrupt):
        while_open(ledger, append_and_fail)
    assert contents(ledger) == before
    assert ended[-1] is False
    with pytest.raises(LedgerError, match="refuses the entry"):
        while_open(ledger, append_when_ended)
    ledger.charge("visits", claim("1"))
    assert ended[-1] is False


@pytest.mark.usefixtures("impatient")
def test_trying_leaves_a_ledger_as_it_was(ledger, ended):
    before = contents(ledger)
    with ledger_file.dry_run(ledger.path):
        with pytest.raises(LedgerError, match="in use"):
            ledger.charge("visits", claim("0.1"))
        assert ledger.state().charges == {}  # reading goes on
    assert contents(ledger) == before
    assert ended[-1] is False
    with pytest.raises(BudgetError):
        ledger.check("visits", claim("2"))
    assert contents(ledger) == before
    ledger.charge("visits", claim("1"))


def test_datasets_and_options_that_are_refused(ledger, subtests):
    for options, words in (
        ({"name": ""}, "^dataset must be a name .*, got ''$"),
        ({"name": " visits"}, "^dataset must be a name .*, got ' visits'$"),
        ({"name": "a\nb"}, "must be a name"),
        ({"name": "a" * 101}, "must be a name"),
        ({"budget": 0}, "^budget must be above 0, got 0"),
        ({"budget": "nan"}, "budget must be a decimal number such as 0.5, got 'nan'"),
        ({"budget": "1e-10"}, "at most nine decimals"),
        ({"unit": "row"}, "^unit must be one of record, user, user-day, got 'row'"),
        ({"time_zone": "UTC"}, "time_zone must be left out"),
        ({"max_contributions": 4}, "max_contributions must be left out"),
        ({"unit": "user", "max_contributions": 0}, "^max_contributions must be between 1"),
        ({"unit": "user", "max_contributions": 10**9 + 1}, "^max_contributions must be between"),
        ({"unit": "user-day", "time_zone": "Asia/Nowhere"}, "Nowhere"),
        ({"caps": {"ann": 0}}, "^cap must be above 0, got 0"),
        ({"caps": {"bob": "1.1"}}, "^the cap of bob must be at most the budget 1, got 1.1;"),
        ({"caps": {"": 1}}, "^analyst must be a name .*, got ''$"),
    ):
        with subtests.test(options=options), pytest.raises(ParameterError, match=words):
            ledger.register(**{"name": "roads", "budget": 1, **options})
    assert list(ledger.state().datasets) == ["visits"]
    # A dataset has one budget.
    for name in ("visits", "Visits", "\uff56isits"):
        with pytest.raises(LedgerError, match=r"already registered in .* use `psd ledger raise`"):
            ledger.register(name, 5)


def test_what_is_registered_is_kept(ledger):
    reading = {"x": "lon", "y": "lat", "user": "user", "ids": "nfc-1", "time": "time"}
    for name, bound in (("a", 1), ("a" * 100, 10**9)):
        columns, caps = columns_of("user-day"), {"b": 2 * 10**9}
        options = {"max_contributions": bound, "caps": {"b": 2}, "columns": columns}
        ledger.register(name, 2, unit="user-day", **options)
        kept = {"name": name, "bound": bound, "budget": 2 * 10**9, "caps": caps}
        assert ledger.state().datasets[name] == Dataset(
            **kept, unit="user-day", time_zone="UTC", reading=reading
        )
    ledger.register("any", 1, unit="user", columns=columns_of("user"))
    ledger.charge("any", claim("0.5", USER, chosen=True))
    assert next(iter(ledger.state().charges.values())).bound is None


def test_the_longest_name_can_be_charged(tmp_path):
    names = ["l" * 247, "\u00e9" * 123]
    for name in names:
        made_ledger(tmp_path / name).charge("visits", claim("1"))
        with pytest.raises(WriteError, match="a name of more than 247 bytes"):
            Ledger.create(tmp_path / (name + "\u00e9"))
    assert sorted(path.name for path in tmp_path.iterdir()) == names


@pytest.mark.parametrize("end", ["-journal", "-wal", "-shm"])
def test_no_ledger_is_made_beside_what_would_undo_it(end, tmp_path):
    beside = tmp_path / f"l{end}"
    for lies in (Path.touch, Path.mkdir, lambda path: path.symlink_to("nowhere")):
        lies(beside)
        with pytest.raises(WriteError) as refused:
            Ledger.create(tmp_path / "l")
        assert str(refused.value) == (
            f"{beside} exists, and SQLite would read it as a part of the ledger; remove it or "
            "choose another name"
        )
        assert list(tmp_path.iterdir()) == [beside]
        beside.rmdir() if beside.is_dir() else beside.unlink()
    (tmp_path / "l.ledger-journal").touch()
    Ledger.create(tmp_path / "l")
    with pytest.raises(WriteError, match="has a name that SQLite uses"):
        Ledger.create(beside)


def test_exactly_the_budget_is_granted(ledger):
    ledger.register("thirds", "0.3")
    for _ in range(3):
        ledger.charge("thirds", claim("0.1"))
    with pytest.raises(BudgetError, match=r"has epsilon 0 left, and this costs 0\.000000001"):
        ledger.charge("thirds", claim("0.000000001"))
    assert spent(ledger, "thirds") == 300_000_000
    ledger.register("all", "1000")
    ledger.charge("all", claim("999.999999999"))
    ledger.charge("all", claim("0.000000001"))
    with pytest.raises(BudgetError):
        ledger.charge("all", claim("0.000000001"))
    with pytest.raises(BudgetError, match=r"'visits' has epsilon 1 left, and this costs 1\.8;"):
        ledger.check("visits", claim("1.8"))


def test_four_threads_are_granted_exactly_the_budget(ledger):
    ledger.register("shared", "0.18")  # which four that keep step do not meet

    def granted(_):
        charges = 0
        for _ in range(10):
            with suppress(BudgetError):
                ledger.charge("shared", claim("0.01"))
                charges += 1
        return charges

    with ThreadPoolExecutor(4) as spenders:
        assert sum(spenders.map(granted, range(4))) == 18


def test_a_refused_charge_leaves_no_entry(ledger):
    before = ledger.state().hashes
    for use, kind in ((claim("2"), BudgetError), (claim("0.1", USER), LedgerError)):
        for act in (ledger.charge, ledger.check):
            with pytest.raises(kind):
                act("visits", use)
    for what in ("", " build", "build\n", "b" * 101):
        words = r"^what must be a name of 1 to 100 printable characters, got ' ?b?"
        with pytest.raises(ParameterError, match=words):
            ledger.charge("visits", replace(claim("0.5"), what=what))
    with pytest.raises(LedgerError, match="'roads' is not registered"):
        ledger.charge("roads", claim("0.1"))
    ledger.check("visits", claim("1"))
    assert ledger.state().hashes == before


def test_caps_of_analysts_within_the_budget(ledger):
    ledger.register("trips", 1, caps={"ann": "0.7", "bob": "0.7"})
    ledger.charge("trips", claim("0.7"), analyst="ann")
    with pytest.raises(BudgetError, match="analyst 'ann' has epsilon 0 left"):
        ledger.charge("trips", claim("0.1"), analyst="ann")
    with pytest.raises(ParameterError, match=r"^analyst must be a name .*, got ' bob'$"):
        ledger.charge("visits", claim("0.1"), analyst=" bob")
    assert ledger.check("trips", claim("0.3"), analyst="bob") == ledger.state()
    ledger.charge("trips", claim("0.3"), analyst="bob")


def test_releases_that_are_not_paid_together_are_refused_before_the_first(ledger):
    """Each alone could be paid by the analyst; asking costs nothing."""
    ledger.register("trips", "1.5", caps={"ann": "0.7"})
    head = ledger.state().head
    some, more = claim("0.3"), claim("0.4")
    ledger.check_all("trips", [more, some], analyst="ann")
    for requests, words in (
        ([more, more], "release 2 of 2 cannot be paid after those before it: analyst 'ann' has"),
        ([some, some, some], "release 3 of 3 cannot be paid after those before it: analyst 'ann'"),
        ([claim("0.8"), some], "analyst 'ann' has epsilon 0.7 left, and this costs 0.8"),
    ):
        with pytest.raises(BudgetError, match=f"^{words}"):
            ledger.check_all("trips", requests, analyst="ann")
    with pytest.raises(BudgetError) as refused:
        ledger.check_all("trips", [more, more], analyst="ann")
    assert (refused.value.requested, refused.value.left) == (Decimal("0.4"), Decimal("0.3"))
    with pytest.raises(LedgerError, match="not 'bob'"):
        ledger.check_all("trips", [some], analyst="bob")
    assert ledger.state().head == head
    ledger.charge("trips", some, analyst="ann")
    assert (ledger.remaining("trips"), ledger.remaining("visits")) == (Decimal("1.2"), 1)


def test_regions_apart_for_rows_and_never_for_users(ledger):
    west, east, edge = (0, 0, 1, 1), (2, 0, 3, 1), (1, 0, 2, 1)
    ledger.charge("visits", claim("1", bounds=west))
    ledger.charge("visits", claim("1", bounds=east))
    with pytest.raises(BudgetError):
        ledger.charge("visits", claim("0.1", bounds=edge))
    with pytest.raises(BudgetError):
        ledger.charge("visits", claim("0.1"))
    ledger.register("people", 1, unit="user", columns=columns_of("user"))
    days = {"time_zone": "Asia/Seoul", "columns": columns_of("user-day")}
    ledger.register("days", 1, unit="user-day", **days)
    for name, unit in (("people", USER), ("days", ZONED)):
        ledger.charge(name, claim("1", unit, west))
        with pytest.raises(BudgetError):
            ledger.charge(name, claim("0.1", unit, east))


def test_a_charge_is_unfinished_until_it_is_noted_and_charged_ever_after(ledger):
    first = ledger.charge("visits", claim("0.5"), analyst="ann")
    second = ledger.charge("visits", claim("0.25"))
    assert len({*map(bytes.fromhex, (first, second))}) == 2
    assert len(bytes.fromhex(first)) == 16
    ledger.finish(first, digest="ab" * 32)
    done, open_ = ledger.state().charges_of("visits")
    assert (done.id, done.done, done.digest, done.analyst) == (first, True, "ab" * 32, "ann")
    assert (open_.done, open_.digest, open_.analyst) == (False, None, None)
    assert spent(ledger) == 750_000_000
    head = ledger.state().head
    ledger.finish(first, digest="ab" * 32)  # the same digest is noted once
    assert ledger.state().head == head
    ledger.finish(second)
    for unknown in (first, second, "0" * 32):
        for digest in (None, "cd" * 32):
            with pytest.raises(LedgerError, match="is finished, or is not in"):
                ledger.finish(unknown, digest=digest)


def test_a_clock_that_goes_back_changes_nothing(ledger, monkeypatch):
    times = iter(["2030-01-01T00:00:00+00:00", "1999-01-01T00:00:00+00:00", "2000-01-01"])
    monkeypatch.setattr(journal, "_now", lambda: next(times))
    ids = [ledger.charge("visits", claim("0.3")) for _ in range(3)]
    assert [charge.id for charge in ledger.state().charges_of("visits")] == ids
    with pytest.raises(BudgetError):
        ledger.charge("visits", claim("0.3"))
    ledger.verify()


SET = "UPDATE entry SET"
IN_TURN = "; ".join(f"{SET} number = {to} WHERE number = {n}" for n, to in ((3, 9), (4, 3), (9, 4)))
EDITS = {
    "a smaller charge": (f"{SET} body = replace(body, '600000000', '6') WHERE number = 3", 3),
    "a larger budget": (f"{SET} body = replace(body, '1000000000', '9000000000')", 2),
    "another time": (f"{SET} time = '1999' WHERE number = 4", 4),
    "another kind": (f"{SET} kind = 'note' WHERE number = 3", 3),
    "another hash": (f"{SET} hash = 'x' WHERE number = 3", 3),
    "an entry less": ("DELETE FROM entry WHERE number = 3", 3),
    "the last entry": ("DELETE FROM entry WHERE number = 4", "4 of the ledger was removed"),
    "none at all": ("DELETE FROM entry", 1),
    "two in turn": (IN_TURN, 3),
    "one put in": (
        "INSERT INTO entry (time, kind, body, hash) SELECT time, kind, body, hash FROM entry "
        "WHERE number = 3",
        5,
    ),
    "no count of the entries": ("DELETE FROM sqlite_sequence", "5 of the ledger was removed"),
}


def test_the_first_entry_that_was_changed_is_named_and_nothing_is_granted(ledger, subtests):
    ledger.charge("visits", claim("0.6"))
    ledger.charge("visits", claim("0.1"))
    content = ledger.path.read_bytes()
    for edit, (script, found) in EDITS.items():
        ledger.path.write_bytes(content)
        run_sql(ledger.path, f"DROP TRIGGER kept; DROP TRIGGER held; {script}")
        with subtests.test(edit):
            refuses(ledger, f"entry {found}")


FORGED = {
    "nothing": ("charge", []),
    "brackets that never close": ("charge", "[" * 200_000),
    "epsilon without end": ("charge", {**CHARGE, "epsilon": 10**40}),
    "bounds that are nowhere": (
        "charge",
        {**CHARGE, "region": {**REGION, "bounds": [float("nan")] * 4}},
    ),
}


def test_an_entry_by_hand_with_the_right_hash_is_found_by_what_it_says(ledger, subtests):
    content, state = ledger.path.read_bytes(), ledger.state()
    for what, (kind, body) in FORGED.items():
        ledger.path.write_bytes(content)
        with ledger_file.exclusive(ledger.path) as file:
            number, time, kind, text, _ = journal.entry(state.hashes, kind, body)
            text = body if isinstance(body, str) else text
            found = journal._hash(state.head, number, time, kind, text)
            ledger_file.append(file, (number, time, kind, text, found))
        with subtests.test(what):
            refuses(ledger, "entry 3 of the ledger")


ROWS = "VALUES (1, '', '', '', '') UNION ALL SELECT number + 1, '', '', '', '' FROM e"
ADDED = {
    "a trigger that drops charges": "CREATE TRIGGER lost BEFORE INSERT ON entry BEGIN "
    "SELECT RAISE(IGNORE); END",
    "a view that never ends": "DROP TABLE entry; CREATE VIEW entry AS WITH RECURSIVE "
    f"e(number, time, kind, body, hash) AS ({ROWS}) SELECT * FROM e",
}


def test_a_database_with_more_than_a_ledger_has_is_refused(ledger, subtests):
    content = ledger.path.read_bytes()
    for what, script in ADDED.items():
        ledger.path.write_bytes(content)
        run_sql(ledger.path, script)
        with subtests.test(what):
            refuses(ledger, "no ledger has")


def test_no_charge_hides_an_end_that_was_cut_off(ledger):
    """A next charge would take the number of the one that was removed."""
    ledger.charge("visits", claim("0.6"))
    cut_off(ledger, 3)
    for use in (
        lambda: ledger.check("visits", claim("0.1")),
        lambda: ledger.charge("visits", claim("0.1")),
        lambda: ledger.register("roads", 1),
        lambda: ledger.raise_budget("visits", 2),
        lambda: ledger.register_inputs("visits", [ledger.path]),
        lambda: ledger.seal(ledger.path.with_name("key")),
    ):
        with pytest.raises(LedgerError, match="entry 3 of the ledger was removed, with all later"):
            use()


def test_an_older_copy_is_found_by_a_head_noted_elsewhere(ledger):
    copy = ledger.path.read_bytes()
    ledger.charge("visits", claim("0.6"))
    state = ledger.verify()
    assert state.head_text == f"3 {state.head}"
    ledger.charge("visits", claim("0.1"))
    for head in (state.head, state.head_text):
        ledger.verify(head=head)  # also when more was appended
    wrong = [f"{number} {state.head}" for number in ("2", "4", "9", "-1", "x")]
    for head in (*wrong, f"0 {ledger.state().head}", "", "3 "):
        with pytest.raises(LedgerError, match="older copy"):
            ledger.verify(head=head)
    ledger.path.write_bytes(copy)
    ledger.verify()
    with pytest.raises(LedgerError, match="older copy"):
        ledger.verify(head=state.head)


def test_entries_hold_public_names_and_numbers_alone(ledger):
    ledger.charge("visits", claim("0.5", bounds=(0, 0, 1, 1)), analyst="ann")
    with closing(sqlite3.connect(ledger.path)) as file:
        kind, body = file.execute("SELECT kind, body FROM entry WHERE number = 3").fetchone()
    columns = ["reader=csv", "x=lon", "y=lat"]
    place = {**REGION, "bounds": [0, 0, 1, 1], "columns": columns, "lattice": [1, 1]}
    public = {**CHARGE, "analyst": "ann", "epsilon": 500_000_000, "region": place}
    assert kind == "charge"
    assert {**json.loads(body), "id": "c"} == {**public, "files": []}
    # They cannot be changed by a hand that slips.
    with closing(sqlite3.connect(ledger.path)) as file:
        for statement in ("UPDATE entry SET body = '{}'", "DELETE FROM entry"):
            with pytest.raises(sqlite3.IntegrityError, match="entries stay"):
                file.execute(statement)


def test_a_budget_is_raised_and_the_entry_stays(ledger):
    ledger.charge("visits", claim("1"))
    with pytest.raises(BudgetError):
        ledger.charge("visits", claim("0.5"))
    ledger.raise_budget("visits", "1.5")
    dataset = ledger.verify().datasets["visits"]
    assert dataset.budget == 1_500_000_000
    assert [note.split(" ", 1)[1] for note in dataset.raised] == ["from 1"]
    ledger.charge("visits", claim("0.5"))
    assert spent(ledger) == 1_500_000_000
    for budget, words in (("1.5", "above 1.5"), ("0.5", "above"), ("much", "be a decimal number")):
        with pytest.raises(ParameterError, match=f"^budget must .*{words}"):
            ledger.raise_budget("visits", budget)
    with pytest.raises(LedgerError, match="not registered"):
        ledger.raise_budget("roads", 2)


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
        assert opened.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA
        assert opened.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert opened.in_transaction
    how = {"uri": True, "timeout": 20.0, "isolation_level": None}
    assert asked == [((f"{ledger.path.resolve().as_uri()}?mode=rw",), how)]


def test_errors_of_the_engine_are_sentences(ledger, subtests):
    sentences, damaged = ledger_file._SENTENCES, "cannot be used; it may be damaged"
    longer = {
        "SQLITE_IOERR_WRITE": sentences["SQLITE_IOERR"],
        "SQLITE_BUSY_SNAPSHOT": sentences["SQLITE_BUSY"],
    }
    for name, words in {**sentences, **longer, "SQLITE_MISUSE": damaged, None: damaged}.items():
        error = sqlite3.OperationalError("INSERT INTO entry")
        if name is not None:
            error.sqlite_errorname = name
        with subtests.test(name):
            with pytest.raises(LedgerError) as raised, ledger_file.snapshot(ledger.path):
                raise error
            assert str(raised.value) == f"ledger {ledger.path} {words}"


def test_what_a_ledger_has_is_looked_up_without_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = ledger_file._known_objects("CREATE TABLE a (b);")
    assert found == {("table", "a", "CREATE TABLE a (b)")}
    assert list(tmp_path.iterdir()) == []
