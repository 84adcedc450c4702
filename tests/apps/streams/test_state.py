"""The state of a stream: what is refused, and what a transaction writes."""

import sqlite3
from functools import partial

import pytest

from psd._util.atomic_write import write_file
from psd.apps.streams.state import (
    FORMAT,
    SLICES,
    Block,
    RandomTape,
    StoredAnswer,
    create_state,
    opened_state,
)
from psd.errors import InputDataError, WriteError
from psd.mechanisms.random_words import bytes_from, random_bits, random_words
from support.ledger_edits import run_sql

NOTHING = StoredAnswer(b"", "", "", "")


@pytest.fixture
def path(tmp_path):
    create_state(tmp_path / "city.stream", {"method": "grid"})
    return tmp_path / "city.stream"


def add(state, number, **contributions):
    answer = StoredAnswer(b"release", f"digest {number}", f"file {number}", "")
    state.add_slice(number, [answer], contributions=contributions)


def test_rows_are_read_back(path):
    with opened_state(path) as state:
        add(state, 0, ann=2, bob=1)
        add(state, 3, ann=1)
        with pytest.raises(sqlite3.IntegrityError):  # a slice is stored once
            state.add_slice(0, [NOTHING], contributions={"ann": 1})
    with opened_state(path) as state:
        assert state.plan() == {"method": "grid"}
        assert state.digests() == {0: "digest 0", 3: "digest 3"}
        assert list(state.releases()) == [b"release"] * 2
        assert state.latest_releases(SLICES, 1) == [b"release"]
        assert state.file_digest(SLICES, 3) == "file 3"
        assert state.contributions("", ["bob", "eve", "ann"]) == [1, 0, 3]


def test_blocks_take_the_place_of_earlier_ones_or_join_them_and_other_periods_are_forgotten(path):
    first, second, ann = Block(b"tally", b"1"), Block(b"other", b"2"), {"contributions": {"ann": 2}}
    with opened_state(path) as state:
        state.add_slice(0, [NOTHING], blocks={(0, 0): first}, period="Monday", **ann)
        state.add_slice(1, [NOTHING], blocks={(1, 1): second}, period="Tuesday", **ann)
        assert state.blocks() == {(1, 1): second}
        assert state.contributions("Monday", ["ann"]) == [0]
        assert state.contributions("Tuesday", ["ann"]) == [2]
        state.add_slice(2, [NOTHING], blocks={(0, 2): first}, keeps_blocks=True)
        assert state.blocks() == {(1, 1): second, (0, 2): first}


def test_words_are_erased_with_the_answer(path):
    secret = b"these bytes made the noise"
    with opened_state(path) as state:
        state.append_random_words(0, secret)
        state.append_random_words(0, secret)
        assert state.random_words(0) == 2 * secret
    assert secret in path.read_bytes()
    with opened_state(path) as state:
        add(state, 0)
        assert state.random_words(0) == b""
    assert secret not in path.read_bytes()


def test_a_state_is_locked_while_it_is_open(path, monkeypatch):
    monkeypatch.setattr("psd.apps.streams.state._TIMEOUT", 0)
    message = "in use by another process"
    with opened_state(path), pytest.raises(InputDataError, match=message), opened_state(path):
        pass


OTHER = partial(run_sql, script="PRAGMA application_id = 1")
NEWER = partial(run_sql, script=f"PRAGMA user_version = {FORMAT + 1}")
OLDER = partial(run_sql, script="PRAGMA application_id = 0x70736453; PRAGMA user_version = 6")
VIEW = partial(run_sql, script="CREATE VIEW more AS SELECT * FROM answer")

FAULTS = {
    "another version": (NEWER, f"has format {FORMAT + 1}"),
    "an older format": (OLDER, "has the old stream format 6; .* no fresh budget$"),
    "another database": (OTHER, "not the state of a stream, but another database"),
    "a view": (VIEW, "tables, views or triggers that no stream has"),
    "cut short": (lambda path: path.write_bytes(path.read_bytes()[:5000]), "damaged or cut short"),
    "text": (lambda path: path.write_text("lon,lat\n" * 100), "not the state of a stream"),
    "empty": (lambda path: path.write_bytes(b""), "is empty"),
    "readable by others": (lambda path: path.chmod(0o640), "must be readable by its owner only"),
    "two names": (lambda path: path.with_name("b").hardlink_to(path), "has a second name"),
    "gone": (lambda path: path.unlink(), "does not exist"),
    "a folder": (lambda path: (path.unlink(), path.mkdir(0o700)), "is not a file"),
}


def test_what_is_not_the_state_of_a_stream_is_refused(tmp_path, subtests):
    for fault, (change, message) in FAULTS.items():
        path = tmp_path / fault / "city.stream"
        path.parent.mkdir()
        create_state(path, {})
        change(path)
        refusal = pytest.raises(InputDataError, match=message)
        with subtests.test(fault), refusal, opened_state(path):
            pass


def test_a_state_is_never_overwritten(path):
    with pytest.raises(WriteError, match="exists"):
        create_state(path, {})
    path.unlink()
    path.with_name("city.stream-journal").write_bytes(b"")
    with pytest.raises(WriteError, match="would read it as a part of the stream"):
        create_state(path, {})


# Random bytes of a slice: stored before they are used, and the same after a kill

LARGE = 2**18


def test_a_second_process_reads_the_bytes_of_the_first(path):
    sizes = [1, 8, 0, LARGE, 100, 3 * LARGE]
    with opened_state(path) as state:
        tape = RandomTape(state, 4)
        first = [tape(size) for size in sizes]
    assert list(map(len, first)) == sizes
    with opened_state(path) as state:
        tape = RandomTape(state, 4)
        assert [tape(size) for size in sizes] == first
        assert RandomTape(state, 5)(LARGE) != first[3]


def test_bytes_are_in_the_state_before_they_are_given(path):
    with opened_state(path) as state:
        tape, given = RandomTape(state, 0), b""
        for size in (1, 1000, LARGE):
            given += tape(size)
            assert state.random_words(0).startswith(given)


def test_draws_take_their_bytes_from_the_tape(path):
    with opened_state(path) as state:
        draws = []
        for _ in range(2):
            with bytes_from(RandomTape(state, 0)):
                draws.append((random_words(5).tolist(), random_bits(20).tolist()))
        assert draws[0] == draws[1]
        assert random_words(5).tolist() != draws[0][0]


def test_a_state_is_never_replaced(path):
    before = path.read_bytes()
    with pytest.raises(WriteError, match="is never overwritten"):
        write_file(path, b"new", overwrite=True)
    assert path.read_bytes() == before
