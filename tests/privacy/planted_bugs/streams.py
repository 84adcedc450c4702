"""Planted bugs of streams: what is forgotten between two slices, or after a kill."""

from __future__ import annotations

from privacy.planted_bugs.bug import planted, replaced
from psd.mechanisms.random_words import system_bytes
from psd.streams import counting
from psd.streams.words import WordTape

REPLAY = "tests/privacy/test_stream_replay.py::"
KILLED = "tests/unit/streams/test_addition.py::test_a_killed_addition_draws_the_same_again"


@planted(
    test=REPLAY + "test_a_user_who_is_in_every_slice_costs_no_more_than_epsilon[1]",
    like="time slices taken for disjoint users",
)
def k_anew_in_each_slice():
    """A stream keeps k records of a user again in each slice that is added."""
    first = counting.first_records

    def forgetful(builder, unit, day, key, contributions):
        return first(builder, unit, day, key, lambda names: [0] * len(names))

    return replaced(counting, "first_records", forgetful)


@planted(
    test=KILLED + "[before the answer is kept-grid]",
    like="answers that are drawn anew until one suits",
)
def second_draw_after_a_crash():
    """A slice that a killed process has drawn is drawn anew."""
    return replaced(WordTape, "__call__", lambda self, size: system_bytes(size))
