"""Bytes that are changed here and there end in an answer or an error of psd, never in another."""

from functools import cache

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from robustness.fuzz.targets import TARGETS

COUNTS = {"rows": 25, "releases": 150, "regions": 150}

edits = st.lists(
    st.one_of(
        st.tuples(st.just("flip"), st.floats(0, 1), st.integers(0, 7)),
        st.tuples(st.just("drop"), st.floats(0, 1), st.integers(1, 30)),
        st.tuples(st.just("repeat"), st.floats(0, 1), st.integers(1, 30)),
        st.tuples(st.just("insert"), st.floats(0, 1), st.binary(max_size=4)),
        st.tuples(st.just("word"), st.floats(0, 1), st.integers(0, 99)),
    ),
    max_size=5,
)


@cache
def seeds(name):
    return TARGETS[name].seeds()


def changed(content, changes, words):
    """Bytes after some edits."""
    made = bytearray(content)
    for kind, share, how in changes:
        place = int(share * len(made))
        if kind == "flip" and place < len(made):
            made[place] ^= 1 << how
        elif kind == "drop":
            del made[place : place + how]
        elif kind == "repeat":
            made[place:place] = made[place : place + how]
        elif kind == "insert":
            made[place:place] = how
        elif kind == "word":
            made[place:place] = words[how % len(words)].encode()
    return bytes(made)


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_taken_or_refused(name):
    for seed in seeds(name):
        TARGETS[name].run(seed)


@pytest.mark.deep
@pytest.mark.parametrize("name", TARGETS)
def test_changed_bytes_end_in_no_other_error(name):
    @settings(max_examples=COUNTS[name], deadline=None)
    @given(which=st.integers(0, 99), changes=edits)
    @example(which=0, changes=[])
    def check(which, changes):
        given_seeds = seeds(name)
        seed = given_seeds[which % len(given_seeds)]
        TARGETS[name].run(changed(seed, changes, TARGETS[name].words))

    check()


def test_a_parser_that_lets_errors_through_is_caught(monkeypatch):
    """Planted: the header is read by a parser that is not guarded."""
    import json

    monkeypatch.setattr("psd.release.file.strict_json", lambda raw, *_: json.loads(raw))
    with pytest.raises((ValueError, RecursionError)):
        TARGETS["releases"].run(b"\x01{")
