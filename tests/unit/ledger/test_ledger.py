"""The ledger's file: what it takes, what it refuses, and what it finds out."""

import json
import os
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from psd.errors import BudgetError, LedgerError, ParameterError, WriteError
from psd.ledger import entries as journal
from psd.ledger import file as ledger_file
from psd.ledger.charges import ChargeRequest, Dataset
from psd.ledger.ledger import Ledger
from psd.ledger.regions import BY_FIELDS, Region
from psd.privacy.epsilon import parse_epsilon
from psd.privacy.loss import Loss
from psd.privacy.unit import PrivacyUnit
from support.ledger_columns import columns_of, readings_of
from support.ledger_edits import cut_off

BY_COLUMNS = (BY_FIELDS, "x=lon", "y=lat")
USER = PrivacyUnit(kind="user", max_contributions=4)
ZONED = PrivacyUnit(kind="user-day", max_contributions=2, time_zone="Asia/Seoul")


def claim(epsilon, unit=None, bounds=None, **more):
    region = bounds and Region(bounds=bounds, crs="EPSG:4326", columns=BY_COLUMNS)
    return ChargeRequest(
        loss=Loss.pure(parse_epsilon(epsilon)),
        unit=unit or PrivacyUnit(),
        what="build",
        region=region,
        readings=readings_of(unit or PrivacyUnit()),
        **more,
    )


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "city.ledger")
    made.register("visits", "1")
    return made


def spent(ledger, name="visits"):
    return ledger.state().spent(name)


def edited(ledger, script):
    """Change the file by hand, past the triggers."""
    with closing(sqlite3.connect(ledger.path)) as file:
        file.executescript(f"DROP TRIGGER kept; DROP TRIGGER held; {script}")


# Making and opening


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


def test_a_link_that_leads_nowhere_is_not_followed_by_create(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WriteError):
        Ledger.create(tmp_path / "link")
    assert not (tmp_path / "elsewhere").exists()


def foreign(path):
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE entry (number)")
        file.commit()


def later(path):
    Ledger.create(path)
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA user_version = 3")


def cut(path):
    Ledger.create(path)
    path.write_bytes(path.read_bytes()[:5000])


def scrambled(path):
    Ledger.create(path)
    content = path.read_bytes()
    path.write_bytes(content[:4096] + bytes(4096) + content[8192:])


def loop(path):
    path.symlink_to(path)


UNUSABLE = {
    "missing": (lambda path: None, "does not exist"),
    "empty": (lambda path: path.touch(), "is empty"),
    "folder": (lambda path: path.mkdir(), "is not a file"),
    "pipe": (os.mkfifo, "is not a file"),
    "loop": (loop, "does not exist"),
    "text": (lambda path: path.write_text("visits,1\n" * 200), "not a ledger of psd"),
    "another database": (foreign, "another database"),
    "a later format": (later, "format 3"),
    "cut off": (cut, "damaged"),
    "scrambled": (scrambled, "damaged"),
}


@pytest.mark.parametrize("what", UNUSABLE)
def test_what_is_no_ledger_is_refused_in_a_sentence_and_left_as_it_is(what, tmp_path):
    make, words = UNUSABLE[what]
    path = tmp_path / "x.ledger"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    for use in (
        lambda: Ledger(path).state(),
        lambda: Ledger(path).register("visits", 1),
        lambda: Ledger(path).charge("visits", claim("1")),
        lambda: Ledger(path).verify(),
    ):
        with pytest.raises(LedgerError, match=words) as refused:
            use()
        assert str(path) in str(refused.value)
    assert (path.read_bytes() if path.is_file() else None) == before
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["x.ledger"] * (what != "missing")


def test_a_link_is_the_ledger_it_leads_to(ledger, tmp_path):
    (tmp_path / "link").symlink_to(ledger.path)
    Ledger(tmp_path / "link").charge("visits", claim("0.6"))
    with pytest.raises(BudgetError):
        ledger.charge("visits", claim("0.6"))


def test_a_hard_link_has_no_part_in_what_a_crash_left_so_it_is_refused(ledger, tmp_path):
    other = tmp_path / "other.ledger"
    other.hardlink_to(ledger.path)
    for use in (ledger.state, lambda: Ledger(other).charge("visits", claim("1"))):
        with pytest.raises(LedgerError, match="a hard link"):
            use()
    other.unlink()
    assert spent(ledger) == 0


def test_names_that_mean_something_in_an_address(tmp_path):
    path = tmp_path / "50% of? all #1 서울&mode=ro.ledger"
    Ledger.create(path).register("visits", 1)
    Ledger(path).charge("visits", claim("1"))
    assert spent(Ledger(path)) == 10**9


def test_a_ledger_that_cannot_be_written_is_found_before_any_row_is_read(ledger, monkeypatch):
    opened = sqlite3.connect

    def read_only(name, **options):
        return opened(name.replace("mode=rw", "mode=ro"), **options)

    monkeypatch.setattr(ledger_file.sqlite3, "connect", read_only)
    for use in (ledger.check, ledger.charge):
        with pytest.raises(LedgerError, match="cannot be written"):
            use("visits", claim("0.1"))
    assert ledger.verify().charges == {}


def test_a_ledger_in_use_is_waited_for_and_then_refused(ledger, monkeypatch):
    monkeypatch.setattr(ledger_file, "TIMEOUT", 0.05)
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="in use by another process"):
            ledger.charge("visits", claim("0.1"))
        assert spent(ledger) == 0  # reading goes on
        other.execute("ROLLBACK")
    ledger.charge("visits", claim("0.1"))


def test_no_room_for_another_entry(ledger, monkeypatch):
    opened = sqlite3.connect

    def small(name, **options):
        made = opened(name, **options)
        made.execute("PRAGMA max_page_count = 4")
        return made

    monkeypatch.setattr(ledger_file.sqlite3, "connect", small)
    granted, said = 0, ""
    while not said:
        try:
            ledger.charge("visits", claim("0.001"))
            granted += 1
        except LedgerError as error:
            said = str(error)
    assert "disk is full; nothing was charged" in said
    assert 0 < granted < 100
    assert len(ledger.verify().charges) == granted


def test_a_charge_is_on_the_disk_before_the_next_step(ledger):
    with ledger_file.exclusive(ledger.path) as file:
        assert file.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA
        assert file.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_nobody_writes_between_a_balance_and_its_charge(ledger, monkeypatch):
    monkeypatch.setattr(ledger_file, "TIMEOUT", 0.05)
    with ledger_file.exclusive(ledger.path) as file:
        ledger_file.rows(file)
        with pytest.raises(LedgerError, match="in use"), ledger_file.exclusive(ledger.path):
            pass  # nobody else even looks at the balance in order to charge
    ledger.charge("visits", claim("0.1"))


# Locks


def contents(ledger):
    """All files of its folder, byte for byte."""
    return {path.name: path.read_bytes() for path in ledger.path.parent.iterdir()}


def test_whoever_reads_sees_one_moment(ledger, monkeypatch):
    monkeypatch.setattr(ledger_file, "TIMEOUT", 0.05)
    with ledger_file.snapshot(ledger.path) as file:
        before = list(ledger_file.rows(file))
        with pytest.raises(LedgerError, match="in use by another process"):
            ledger.charge("visits", claim("0.1"))
        assert list(ledger_file.rows(file)) == before
        assert ledger_file.last_number(file) == len(before)
    ledger.charge("visits", claim("0.1"))
    assert len(ledger.verify().charges) == 1


def test_several_read_at_once(ledger, monkeypatch):
    monkeypatch.setattr(ledger_file, "TIMEOUT", 0.05)
    with ledger_file.snapshot(ledger.path) as file:
        assert list(ledger_file.rows(file))
        assert ledger.verify().head == ledger.state().head


@pytest.fixture
def ended(monkeypatch):
    """Whether a transaction was open when a connection was closed, of each."""
    seen = []

    class Watched(sqlite3.Connection):
        def close(self):
            seen.append(self.in_transaction)
            super().close()

    opened = sqlite3.connect
    monkeypatch.setattr(
        ledger_file.sqlite3, "connect", lambda *a, **named: opened(*a, **named, factory=Watched)
    )
    return seen


def append_and_fail(ledger):
    """Append an entry, and fail before the end."""
    with ledger_file.exclusive(ledger.path) as file:
        row = journal.entry(ledger.state().hashes, "raise", {"name": "visits", "budget": 9 * 10**9})
        ledger_file.append(file, row)
        raise KeyboardInterrupt


def test_what_fails_is_taken_back_and_lets_go_at_once(ledger, ended, monkeypatch):
    monkeypatch.setattr(ledger_file, "TIMEOUT", 0.05)
    before = contents(ledger)
    with pytest.raises(KeyboardInterrupt):
        append_and_fail(ledger)
    assert contents(ledger) == before
    assert ended[-1] is False
    ledger.charge("visits", claim("1"))
    assert ended[-1] is False


def append_when_ended(ledger):
    """Append what is there already, after the engine has ended the transaction."""
    with ledger_file.exclusive(ledger.path) as file:
        file.execute("ROLLBACK")
        ledger_file.append(file, (1, "", "", "", ""))


def test_an_end_by_the_engine_is_not_ended_again(ledger):
    with pytest.raises(LedgerError, match="refuses the entry"):
        append_when_ended(ledger)
    ledger.charge("visits", claim("1"))


def test_trying_leaves_a_ledger_as_it_was(ledger, ended, monkeypatch):
    monkeypatch.setattr(ledger_file, "TIMEOUT", 0.05)
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


# Registering


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("", 1), "^dataset must be a name .*, got ''$"),
        ((" visits", 1), "^dataset must be a name .*, got ' visits'$"),
        (("a\nb", 1), "must be a name"),
        (("a" * 101, 1), "must be a name"),
        (("roads", 0), "^budget must be above 0, got 0"),
        (("roads", "nan"), "budget must be a decimal number such as 0.5, got 'nan'"),
        (("roads", "1e-10"), "at most nine decimals"),
        (("roads", 1, "row"), "one of record, user, user-day, got 'row'"),
    ],
)
def test_datasets_that_are_none(arguments, words, ledger):
    name, budget, *unit = arguments
    with pytest.raises(ParameterError, match=words):
        ledger.register(name, budget, **({"unit": unit[0]} if unit else {}))
    assert list(ledger.state().datasets) == ["visits"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"time_zone": "UTC"}, "time_zone must be left out"),
        ({"max_contributions": 4}, "max_contributions must be left out"),
        ({"unit": "user", "max_contributions": 0}, "^max_contributions must be between 1"),
        ({"unit": "user", "max_contributions": 10**9 + 1}, "^max_contributions must be between"),
        ({"unit": "user-day", "time_zone": "Asia/Nowhere"}, "Nowhere"),
        ({"caps": {"ann": 0}}, "^cap must be above 0, got 0"),
        (
            {"caps": {"ann": 1, "bob": "1.1"}},
            "^the cap of bob must be at most the budget 1, got 1.1;",
        ),
        ({"caps": {"": 1}}, "^analyst must be a name .*, got ''$"),
    ],
)
def test_options_that_do_not_go_together(options, words, ledger):
    with pytest.raises(ParameterError, match=words):
        ledger.register("roads", 1, **options)


@pytest.mark.parametrize(("name", "bound"), [("a", 1), ("a" * 100, 10**9)])
def test_what_is_registered_is_kept(name, bound, ledger):
    columns = columns_of("user-day")
    options = {"max_contributions": bound, "caps": {"b": 2}, "columns": columns}
    ledger.register(name, 2, unit="user-day", **options)
    assert ledger.state().datasets[name] == Dataset(
        name=name,
        budget=2 * 10**9,
        unit="user-day",
        time_zone="UTC",
        bound=bound,
        caps={"b": 2 * 10**9},
        reading={"x": "lon", "y": "lat", "user": "user", "ids": "nfc-1", "time": "time"},
    )


@pytest.mark.parametrize("name", ["visits", "Visits", "\uff56isits"])
def test_a_dataset_has_one_budget(name, ledger):
    with pytest.raises(LedgerError, match=r"already registered in .* use `psd ledger raise`"):
        ledger.register(name, 5)


@pytest.mark.parametrize("name", ["l" * 247, "\u00e9" * 123])
def test_the_longest_name_can_be_charged(name, tmp_path):
    made = Ledger.create(tmp_path / name)
    made.register("visits", 1)
    made.charge("visits", claim("1"))
    with pytest.raises(WriteError, match="a name of more than 247 bytes"):
        Ledger.create(tmp_path / (name + "\u00e9"))
    assert [path.name for path in tmp_path.iterdir()] == [name]


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


# Charging


def test_exactly_the_budget_is_granted(ledger):
    ledger.register("thirds", "0.3")
    for _ in range(3):
        ledger.charge("thirds", claim("0.1"))
    with pytest.raises(BudgetError, match=r"has epsilon 0 left, and this costs 0\.000000001"):
        ledger.charge("thirds", claim("0.000000001"))
    assert spent(ledger, "thirds") == 300_000_000


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


def test_no_charge_is_too_small_to_be_seen(ledger):
    ledger.register("all", "1000")
    ledger.charge("all", claim("999.999999999"))
    ledger.charge("all", claim("0.000000001"))
    with pytest.raises(BudgetError):
        ledger.charge("all", claim("0.000000001"))


def test_what_is_left_is_said(ledger):
    ledger.charge("visits", claim("0.25"))
    with pytest.raises(BudgetError, match=r"'visits' has epsilon 0\.75 left, and this costs 0\.8;"):
        ledger.check("visits", claim("0.8"))


def test_a_refused_charge_leaves_no_entry(ledger):
    before = ledger.state().hashes
    for use, kind in ((claim("2"), BudgetError), (claim("0.1", USER), LedgerError)):
        with pytest.raises(kind):
            ledger.charge("visits", use)
        with pytest.raises(kind):
            ledger.check("visits", use)
    ledger.check("visits", claim("1"))
    assert ledger.state().hashes == before


def test_a_charge_is_named_by_128_random_bits(ledger):
    first, second = (ledger.charge("visits", claim("0.1")) for _ in range(2))
    assert first != second
    assert len(bytes.fromhex(first)) == len(bytes.fromhex(second)) == 16


def test_a_dataset_that_is_not_there(ledger):
    with pytest.raises(LedgerError, match="'roads' is not registered"):
        ledger.charge("roads", claim("0.1"))


@pytest.mark.parametrize(
    ("options", "unit", "allowed"),
    [
        ({}, PrivacyUnit(), True),
        ({}, USER, False),
        ({"unit": "user"}, USER, True),
        ({"unit": "user"}, PrivacyUnit(kind="user", weight=720_720), True),
        ({"unit": "user"}, PrivacyUnit(), False),
        ({"unit": "user"}, ZONED, False),
        ({"unit": "user", "max_contributions": 4}, USER, True),
        ({"unit": "user", "max_contributions": 5}, USER, False),
        ({"unit": "user-day"}, ZONED, False),
        ({"unit": "user-day", "time_zone": "Asia/Seoul"}, ZONED, True),
        ({"unit": "user-day", "time_zone": "Asia/Seoul"}, USER, False),
    ],
)
def test_one_unit_for_each_dataset(options, unit, allowed, ledger):
    ledger.register("trips", 1, columns=columns_of(options.get("unit", "record")), **options)
    if allowed:
        ledger.charge("trips", claim("1", unit))
    else:
        with pytest.raises(LedgerError, match="'trips'"):
            ledger.charge("trips", claim("1", unit))


@pytest.mark.parametrize(
    ("options", "unit", "words"),
    [
        ({}, USER, "per record, and this is per user;"),
        ({"unit": "user"}, PrivacyUnit(), "per user, and this is per record;"),
        (
            {"unit": "user-day", "time_zone": "Asia/Seoul"},
            USER,
            "per user and day in Asia/Seoul, and this is per user;",
        ),
    ],
)
def test_both_units_are_said(options, unit, words, ledger):
    ledger.register("trips", 1, columns=columns_of(options.get("unit", "record")), **options)
    with pytest.raises(LedgerError, match=f"'trips' counts epsilon {words}"):
        ledger.check("trips", claim("1", unit))


def test_a_bound_that_is_chosen_later_is_not_the_one_that_was_registered(ledger):
    ledger.register("any", 1, unit="user", columns=columns_of("user"))
    ledger.charge("any", claim("0.5", USER, chosen=True))
    assert next(iter(ledger.state().charges.values())).bound is None
    ledger.register("four", 1, unit="user", max_contributions=4, columns=columns_of("user"))
    with pytest.raises(LedgerError, match="max_contributions 4"):
        ledger.charge("four", claim("0.5", USER, chosen=True))


def test_caps_of_analysts_within_the_budget(ledger):
    ledger.register("trips", 1, caps={"ann": "0.7", "bob": "0.7"})
    ledger.charge("trips", claim("0.7"), analyst="ann")
    with pytest.raises(BudgetError, match="analyst 'ann' has epsilon 0 left"):
        ledger.charge("trips", claim("0.1"), analyst="ann")
    with pytest.raises(BudgetError, match=r"dataset 'trips' has epsilon 0\.3 left"):
        ledger.charge("trips", claim("0.4"), analyst="bob")
    for who, said in ((None, "none was given"), ("eve", "not 'eve'")):
        with pytest.raises(LedgerError, match=f"for the analysts ann, bob; {said}$"):
            ledger.charge("trips", claim("0.1"), analyst=who)
    with pytest.raises(ParameterError, match=r"^analyst must be a name .*, got ' bob'$"):
        ledger.charge("visits", claim("0.1"), analyst=" bob")
    assert ledger.check("trips", claim("0.3"), analyst="bob") == ledger.state()
    ledger.charge("trips", claim("0.3"), analyst="bob")


def test_a_cap_is_spent_region_by_region(ledger):
    ledger.register("trips", 2, caps={"ann": 1, "bob": 1})
    ledger.charge("trips", claim("1", bounds=(0, 0, 1, 1)), analyst="ann")
    ledger.charge("trips", claim("1", bounds=(2, 0, 3, 1)), analyst="ann")
    ledger.charge("trips", claim("1", bounds=(0, 0, 1, 1)), analyst="bob")
    with pytest.raises(BudgetError, match="analyst 'ann' has epsilon 0 left"):
        ledger.charge("trips", claim("1", bounds=(1, 0, 2, 1)), analyst="ann")


def test_regions_apart_for_rows_and_never_for_users(ledger):
    west, east, edge = (0, 0, 1, 1), (2, 0, 3, 1), (1, 0, 2, 1)
    ledger.charge("visits", claim("1", bounds=west))
    ledger.charge("visits", claim("1", bounds=east))
    with pytest.raises(BudgetError):
        ledger.charge("visits", claim("0.1", bounds=edge))
    with pytest.raises(BudgetError):
        ledger.charge("visits", claim("0.1"))
    users_add_up(ledger)


def users_add_up(ledger):
    ledger.register("people", 1, unit="user", columns=columns_of("user"))
    days = {"time_zone": "Asia/Seoul", "columns": columns_of("user-day")}
    ledger.register("days", 1, unit="user-day", **days)
    for name, unit in (("people", USER), ("days", ZONED)):
        ledger.charge(name, claim("1", unit, (0, 0, 1, 1)))
        with pytest.raises(BudgetError):
            ledger.charge(name, claim("0.1", unit, (2, 0, 3, 1)))


# Finishing, and the record


def test_a_charge_is_unfinished_until_it_is_noted_and_charged_ever_after(ledger):
    first = ledger.charge("visits", claim("0.5"), analyst="ann")
    ledger.charge("visits", claim("0.25"))
    ledger.finish(first, digest="ab" * 32)
    done, open_ = ledger.state().charges_of("visits")
    assert (done.id, done.done, done.digest, done.analyst) == (first, True, "ab" * 32, "ann")
    assert (open_.done, open_.digest, open_.analyst) == (False, None, None)
    assert spent(ledger) == 750_000_000
    for unknown in (first, "0" * 32):
        for digest in (None, "cd" * 32):
            with pytest.raises(LedgerError, match="is finished, or is not in"):
                ledger.finish(unknown, digest=digest)


def test_the_same_digest_is_noted_once_and_an_answer_has_none(ledger):
    first, second = (ledger.charge("visits", claim("0.1")) for _ in range(2))
    ledger.finish(first, digest="ab" * 32)
    head = ledger.state().head
    ledger.finish(first, digest="ab" * 32)
    assert ledger.state().head == head
    ledger.finish(second)
    with pytest.raises(LedgerError, match="is finished"):
        ledger.finish(second)


@pytest.mark.parametrize("what", ["", " build", "build\n", "b" * 101])
def test_what_is_charged_for_has_a_name(what, ledger):
    with pytest.raises(
        ParameterError, match=r"^what must be a name of 1 to 100 printable characters, got ' ?b?"
    ):
        ledger.charge("visits", replace(claim("0.5"), what=what))
    assert spent(ledger) == 0


def test_a_clock_that_goes_back_changes_nothing(ledger, monkeypatch):
    times = iter(["2030-01-01T00:00:00+00:00", "1999-01-01T00:00:00+00:00", "2000-01-01"])
    monkeypatch.setattr(journal, "_now", lambda: next(times))
    ids = [ledger.charge("visits", claim("0.3")) for _ in range(3)]
    assert [charge.id for charge in ledger.state().charges_of("visits")] == ids
    with pytest.raises(BudgetError):
        ledger.charge("visits", claim("0.3"))
    ledger.verify()


def test_entries_cannot_be_changed_by_a_hand_that_slips(ledger):
    with closing(sqlite3.connect(ledger.path)) as file:
        for statement in ("UPDATE entry SET body = '{}'", "DELETE FROM entry"):
            with pytest.raises(sqlite3.IntegrityError, match="entries stay"):
                file.execute(statement)


EDITS = {
    "a smaller charge": (
        "UPDATE entry SET body = replace(body, '600000000', '6') WHERE number = 3",
        3,
    ),
    "a larger budget": ("UPDATE entry SET body = replace(body, '1000000000', '9000000000')", 2),
    "another time": ("UPDATE entry SET time = '1999' WHERE number = 4", 4),
    "another kind": ("UPDATE entry SET kind = 'note' WHERE number = 3", 3),
    "another hash": ("UPDATE entry SET hash = 'x' WHERE number = 3", 3),
    "an entry less": ("DELETE FROM entry WHERE number = 3", 3),
    "none at all": ("DELETE FROM entry", 1),
    "two in turn": (
        "UPDATE entry SET number = 9 WHERE number = 3; UPDATE entry SET number = 3 WHERE "
        "number = 4; UPDATE entry SET number = 4 WHERE number = 9",
        3,
    ),
    "one put in": (
        "INSERT INTO entry (time, kind, body, hash) SELECT time, kind, body, hash FROM entry "
        "WHERE number = 3",
        5,
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_the_first_entry_that_was_changed_is_named_and_nothing_is_granted(edit, ledger):
    ledger.charge("visits", claim("0.6"))
    ledger.charge("visits", claim("0.1"))
    script, number = EDITS[edit]
    edited(ledger, script)
    for use in (ledger.verify, ledger.state, lambda: ledger.charge("visits", claim("0.1"))):
        with pytest.raises(LedgerError, match=f"entry {number} of the ledger"):
            use()


REGION = {"bounds": [0, 0, 1, 1], "crs": "EPSG:4326", "columns": ["x=lon"], "lattice": [1, 1]}
DATASET = {
    "name": "more", "budget": 1, "unit": "record", "time_zone": None, "bound": None, "caps": {}
}  # fmt: skip
CHARGE = {
    "id": "a", "dataset": "visits", "analyst": None, "what": "build", "epsilon": 1, "bound": 1,
    "region": REGION, "files": [],
}  # fmt: skip
FORGED = {
    "nothing": ("charge", []),
    "brackets that never close": ("charge", "[" * 200_000),
    "a field more": ("charge", {**CHARGE, "done": True}),
    "a field less": ("charge", {name: CHARGE[name] for name in CHARGE if name != "region"}),
    "epsilon below 0": ("charge", {**CHARGE, "epsilon": -(10**9)}),
    "epsilon as text": ("charge", {**CHARGE, "epsilon": "1"}),
    "epsilon without end": ("charge", {**CHARGE, "epsilon": 10**40}),
    "bounds without a number": ("charge", {**CHARGE, "region": {**REGION, "bounds": ["x"] * 4}}),
    "bounds that are nowhere": (
        "charge",
        {**CHARGE, "region": {**REGION, "bounds": [float("nan")] * 4}},
    ),
    "bounds of one number": ("charge", {**CHARGE, "region": {**REGION, "bounds": [1]}}),
    "a letter that moves the cursor": ("charge", {**CHARGE, "what": "\x1b[2J"}),
    "files that are no marks": ("charge", {**CHARGE, "files": [[1]]}),
    "no such dataset": ("charge", {**CHARGE, "dataset": "other"}),
    "a budget as text": ("register", {**DATASET, "budget": "1"}),
    "a dataset a second time": ("register", {**DATASET, "name": "visits", "budget": 10**10}),
    "no such unit": ("register", {**DATASET, "unit": "person"}),
    "days without a clock": ("register", {**DATASET, "unit": "user-day"}),
    "caps that are a list": ("register", {**DATASET, "caps": [1]}),
    "a digest that is a number": ("done", {"id": "0", "digest": 5}),
}


@pytest.mark.parametrize("what", FORGED)
def test_an_entry_by_hand_with_the_right_hash_is_found_by_what_it_says(what, ledger):
    kind, body = FORGED[what]
    with ledger_file.exclusive(ledger.path) as file:
        number, time, kind, text, _ = journal.entry(ledger.state().hashes, kind, body)
        text = body if isinstance(body, str) else text
        found = journal._hash(ledger.state().head, number, time, kind, text)
        ledger_file.append(file, (number, time, kind, text, found))
    for use in (ledger.verify, ledger.state, lambda: ledger.charge("visits", claim("0.1"))):
        with pytest.raises(LedgerError, match="entry 3 of the ledger"):
            use()


ADDED = {
    "a trigger that drops charges": (
        "CREATE TRIGGER lost BEFORE INSERT ON entry BEGIN SELECT RAISE(IGNORE); END"
    ),
    "a view that never ends": (
        "DROP TABLE entry; CREATE VIEW entry AS WITH RECURSIVE e(number, time, kind, body, hash) "
        "AS (VALUES (1, '', '', '', '') UNION ALL SELECT number + 1, '', '', '', '' FROM e) "
        "SELECT * FROM e"
    ),
}


@pytest.mark.parametrize("what", ADDED)
def test_a_database_with_more_than_a_ledger_has_is_refused(what, ledger):
    with closing(sqlite3.connect(ledger.path)) as file:
        file.executescript(ADDED[what])
    for use in (ledger.verify, ledger.state, lambda: ledger.charge("visits", claim("0.1"))):
        with pytest.raises(LedgerError, match="no ledger has"):
            use()


def test_an_end_that_was_cut_off_is_missed(ledger):
    ledger.charge("visits", claim("0.6"))
    edited(ledger, "DELETE FROM entry WHERE number = 3")
    for use in (ledger.verify, ledger.state, lambda: ledger.charge("visits", claim("0.1"))):
        with pytest.raises(LedgerError, match="entry 3 of the ledger was removed"):
            use()


def test_no_charge_hides_an_end_that_was_cut_off(ledger):
    """A next charge would take the number of the one that was removed."""
    ledger.charge("visits", claim("0.6"))
    cut_off(ledger, 3)
    uses = {
        "check": lambda: ledger.check("visits", claim("0.1")),
        "charge": lambda: ledger.charge("visits", claim("0.1")),
        "register": lambda: ledger.register("roads", 1),
        "raise": lambda: ledger.raise_budget("visits", 2),
        "inputs": lambda: ledger.register_inputs("visits", [ledger.path]),
        "seal": lambda: ledger.seal(ledger.path.with_name("key")),
    }
    for use in uses.values():
        with pytest.raises(LedgerError, match="entry 3 of the ledger was removed, with all later"):
            use()


def test_a_head_is_at_its_number(ledger):
    ledger.charge("visits", claim("0.6"))
    state = ledger.state()
    assert state.head_text == f"3 {state.head}"
    ledger.charge("visits", claim("0.1"))
    for head in (state.head, state.head_text):
        ledger.verify(head=head)
    for head in (f"2 {state.head}", f"4 {state.head}", f"9 {state.head}", f"-1 {state.head}",
                 f"x {state.head}", f"0 {ledger.state().head}", "", "3 "):  # fmt: skip
        with pytest.raises(LedgerError, match="older copy"):
            ledger.verify(head=head)


@pytest.mark.parametrize("granted", [0, 1])
def test_a_count_of_the_entries_that_was_taken_away_is_missed(granted, tmp_path):
    made = Ledger.create(tmp_path / "l")
    if granted:
        made.register("visits", 1)
    edited(made, "DELETE FROM sqlite_sequence")
    with pytest.raises(LedgerError, match=f"entry {granted + 2} of the ledger was removed"):
        made.verify()


def test_an_older_copy_is_found_by_a_head_noted_elsewhere(ledger):
    copy = ledger.path.read_bytes()
    ledger.charge("visits", claim("0.6"))
    head = ledger.verify().head
    assert ledger.verify(head=head).head == head
    ledger.charge("visits", claim("0.1"))
    ledger.verify(head=head)  # also when more was appended
    ledger.path.write_bytes(copy)
    ledger.verify()
    with pytest.raises(LedgerError, match="older copy"):
        ledger.verify(head=head)


def test_entries_hold_public_names_and_numbers_alone(ledger):
    ledger.charge("visits", claim("0.5", bounds=(0, 0, 1, 1)), analyst="ann")
    with closing(sqlite3.connect(ledger.path)) as file:
        kind, body = file.execute("SELECT kind, body FROM entry WHERE number = 3").fetchone()
    assert kind == "charge"
    assert {**json.loads(body), "id": ""} == {
        "id": "",
        "dataset": "visits",
        "analyst": "ann",
        "what": "build",
        "epsilon": 500_000_000,
        "bound": 1,
        "region": {
            "bounds": [0, 0, 1, 1],
            "crs": "EPSG:4326",
            "columns": ["reader=csv", "x=lon", "y=lat"],
            "lattice": [1, 1],
        },
        "slices": None,
        "files": [],
    }


# Raising a budget


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


@pytest.mark.parametrize("budget", ["1", "0.5"])
def test_a_budget_is_not_lowered(ledger, budget):
    with pytest.raises(ParameterError, match="must be above 1"):
        ledger.raise_budget("visits", budget)
    assert len(ledger.state().hashes) == 2


def test_only_a_dataset_that_is_there_is_raised(ledger):
    with pytest.raises(LedgerError, match="not registered"):
        ledger.raise_budget("roads", 2)
    with pytest.raises(ParameterError, match=r"^budget must be a decimal number"):
        ledger.raise_budget("visits", "much")
