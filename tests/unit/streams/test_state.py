"""The state of a stream: what is refused, and what a transaction writes."""

import sqlite3
from contextlib import closing

import pytest

from psd.errors import InputDataError, WriteError
from psd.streams.state import FORMAT, SLICES, Block, StoredAnswer, create_state, opened_state

NOTHING = StoredAnswer(b"", "", "")


@pytest.fixture
def path(tmp_path):
    create_state(tmp_path / "city.stream", {"method": "grid"})
    return tmp_path / "city.stream"


def add(state, number, **contributions):
    state.add_slice(
        number,
        [StoredAnswer(b"release", f"digest {number}", f"file {number}")],
        contributions=contributions,
    )


def test_rows_are_read_back(path):
    with opened_state(path) as state:
        add(state, 0, ann=2, bob=1)
        add(state, 3, ann=1)
    with opened_state(path) as state:
        assert state.plan() == {"method": "grid"}
        assert state.digests() == {0: "digest 0", 3: "digest 3"}
        assert list(state.releases()) == [b"release"] * 2
        assert state.latest_releases(SLICES, 1) == [b"release"]
        assert state.file_digest(SLICES, 3) == "file 3"
        assert state.contributions("", ["bob", "eve", "ann"]) == [1, 0, 3]


def test_blocks_take_the_place_of_earlier_ones_or_join_them(path):
    first, second = Block(b"tally", b"1"), Block(b"other", b"2")
    with opened_state(path) as state:
        state.add_slice(0, [NOTHING], blocks={(0, 0): first})
        state.add_slice(1, [NOTHING], blocks={(1, 1): second})
        assert state.blocks() == {(1, 1): second}
        state.add_slice(2, [NOTHING], blocks={(0, 2): first}, keeps_blocks=True)
        assert state.blocks() == {(1, 1): second, (0, 2): first}


def test_contributions_of_other_periods_are_forgotten(path):
    with opened_state(path) as state:
        state.add_slice(0, [NOTHING], period="Monday", contributions={"ann": 2})
        state.add_slice(1, [NOTHING], period="Tuesday", contributions={"ann": 1})
        assert state.contributions("Monday", ["ann"]) == [0]
        assert state.contributions("Tuesday", ["ann"]) == [1]


def test_words_are_erased_with_the_answer(path):
    secret = b"these bytes made the noise"
    with opened_state(path) as state:
        state.append_words(0, secret)
        state.append_words(0, secret)
        assert state.words(0) == 2 * secret
    assert secret in path.read_bytes()
    with opened_state(path) as state:
        add(state, 0)
        assert state.words(0) == b""
    assert secret not in path.read_bytes()


def test_a_slice_is_stored_once(path):
    with opened_state(path) as state:
        add(state, 0, ann=1)
        with pytest.raises(sqlite3.IntegrityError):
            state.add_slice(0, [NOTHING], contributions={"ann": 1})
        assert state.contributions("", ["ann"]) == [1]


def test_a_state_is_locked_while_it_is_open(path):
    message = "in use by another process"
    with opened_state(path), pytest.raises(InputDataError, match=message), opened_state(path):
        pass


def version(path):
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version = {FORMAT + 1}")


def other_database(path):
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA application_id = 1")


def trigger(path):
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE VIEW more AS SELECT * FROM answer")


FAULTS = {
    "another version": (version, f"has format {FORMAT + 1}"),
    "another database": (other_database, "not the state of a stream, but another database"),
    "a view": (trigger, "tables, views or triggers that no stream has"),
    "cut short": (lambda path: path.write_bytes(path.read_bytes()[:5000]), "damaged or cut short"),
    "text": (lambda path: path.write_text("lon,lat\n" * 100), "not the state of a stream"),
    "empty": (lambda path: path.write_bytes(b""), "is empty"),
    "readable by others": (lambda path: path.chmod(0o640), "must be readable by its owner only"),
    "two names": (lambda path: path.with_name("b").hardlink_to(path), "has a second name"),
    "gone": (lambda path: path.unlink(), "does not exist"),
    "a folder": (lambda path: (path.unlink(), path.mkdir(0o700)), "is not a file"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_not_the_state_of_a_stream_is_refused(path, fault):
    break_it, message = FAULTS[fault]
    break_it(path)
    with pytest.raises(InputDataError, match=message), opened_state(path):
        pass


def test_a_state_is_never_overwritten(path):
    with pytest.raises(WriteError, match="exists"):
        create_state(path, {})
    path.unlink()
    path.with_name("city.stream-journal").write_bytes(b"")
    with pytest.raises(WriteError, match="would read it as a part of the stream"):
        create_state(path, {})
