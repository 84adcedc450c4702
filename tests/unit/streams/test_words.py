"""Random bytes of a slice: stored before they are used, and the same after a kill."""

import pytest

from psd.mechanisms.random_words import bytes_from, random_bits, random_words
from psd.streams.state import create_state, opened_state
from psd.streams.words import WordTape

LARGE = 2**18


@pytest.fixture
def path(tmp_path):
    create_state(tmp_path / "city.stream", {})
    return tmp_path / "city.stream"


def test_a_second_process_reads_the_bytes_of_the_first(path):
    sizes = [1, 8, 0, LARGE, 100, 3 * LARGE]
    with opened_state(path) as state:
        tape = WordTape(state, 4)
        first = [tape(size) for size in sizes]
    assert list(map(len, first)) == sizes
    with opened_state(path) as state:
        tape = WordTape(state, 4)
        assert [tape(size) for size in sizes] == first
        assert WordTape(state, 5)(LARGE) != first[3]


def test_bytes_are_in_the_state_before_they_are_given(path):
    with opened_state(path) as state:
        tape, given = WordTape(state, 0), b""
        for size in (1, 1000, LARGE):
            given += tape(size)
            assert state.words(0).startswith(given)


def test_draws_take_their_bytes_from_the_tape(path):
    with opened_state(path) as state:
        draws = []
        for _ in range(2):
            with bytes_from(WordTape(state, 0)):
                draws.append((random_words(5).tolist(), random_bits(20).tolist()))
        assert draws[0] == draws[1]
        assert random_words(5).tolist() != draws[0][0]
