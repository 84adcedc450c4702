"""Planted bugs of streams: what is forgotten between two slices, or after a kill."""

from __future__ import annotations

from privacy.planted_bugs.bug import planted, replaced
from psd.ledger.account import Account
from psd.mechanisms.random_words import system_bytes
from psd.privacy.unit import PrivacyUnit
from psd.streams import addition, counting, drawing, totals
from psd.streams.addition import Addition
from psd.streams.plan import stream_charge
from psd.streams.state import State
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


COUNTED = "tests/privacy/test_counter_loss.py::"
STEPS = COUNTED + "test_a_record_of_any_step_costs_no_more_than_the_totals_were_given"


@planted(test=STEPS + "[tree-grid]", like="noise of a stream added to its output")
def counter_noise_on_totals():
    """The counter draws noise on each running total, and not on blocks of steps."""
    advance = totals._advance_tree

    def on_totals(step, tally, blocks, draw):
        sums = [totals.tally_of(blocks[at], 1) for at in totals.blocks_of(step)]
        parts = [*sums, tally]
        everything = totals.add_blocks(parts, [1] * len(parts), 1)
        return advance(step, tally, blocks, lambda _: draw(everything))

    return replaced(totals, "_advance_tree", on_totals)


@planted(test=STEPS + "[toeplitz-grid]", like="a sensitivity with one term too few")
def toeplitz_one_column_too_few():
    """The sensitivity of the counter is that of a matrix with one step less."""
    squared = drawing.toeplitz_squared_sensitivity
    return replaced(drawing, "toeplitz_squared_sensitivity", lambda steps: squared(steps - 1))


@planted(
    test=COUNTED + "test_a_user_of_several_slices_costs_no_more_than_the_totals_state",
    like="rhos of slices that one sum reads together, taken for those of disjoint slices",
)
def t_rho_for_totals_of_several_slices():
    """Totals by weighted sums state that a user of T slices has T rho."""
    return replaced(PrivacyUnit, "summed_text", PrivacyUnit.concentrated_text)


USERS = REPLAY + "test_a_user_costs_exactly_the_rho_of_gaussian_slices"


@planted(
    test=USERS + "[three rows in three slices]",
    like="a charge of one currency for noise of another",
)
def gaussian_charge_for_pure_slices():
    """Slices of a stream are charged as Gaussian noise, and drawn with pure epsilon."""
    sound = drawing.Budget
    return replaced(drawing, "Budget", lambda loss, **more: sound(loss.epsilon, **more))


@planted(
    test=USERS + "[two rows anywhere]",
    like="the bound of one slice forgotten",
)
def k_for_k_cap_in_a_stream():
    """The squared sensitivity of Gaussian slices is k, though a slice may have k records."""
    return replaced(drawing, "squared_of", lambda budget, unit, scope, slices: unit.contributions)


@planted(
    test=USERS + "[two rows in two slices]",
    like="time slices taken for disjoint users",
)
def k_anew_in_each_gaussian_slice():
    """A stream with Gaussian noise keeps k records of a user again in each slice that is added."""
    return k_anew_in_each_slice()


@planted(
    test="tests/unit/streams/test_stream.py::"
    "test_each_addition_that_lacks_memory_costs_a_twentieth_of_the_budget",
    like="a fault of memory that was bought for 1e-9 as often as wanted",
)
def faults_of_additions_paid_by_the_stream():
    """A stream that cost a twentieth of the budget has any number of faults for nothing."""
    return replaced(addition, "fault_charge", stream_charge)


@planted(
    test="tests/unit/streams/test_stream.py::"
    "test_twenty_additions_that_lack_memory_end_a_stream_whose_budget_is_used_up",
    like="a fault of memory that was bought for 1e-9 as often as wanted",
)
def faults_of_additions_without_end():
    """Additions to a stream whose budget is used up may end by a fault any number of times."""
    return replaced(State, "faults", lambda self: 0)


@planted(
    test="tests/unit/streams/test_stream.py::"
    "test_a_record_is_not_counted_in_two_slices_when_clock_changes_differ[unit0]",
    like="one record at two local times, by two versions of the time zone database",
)
def clock_changes_within_a_stream():
    """A stream goes on after the clock changes of its time zone have changed."""
    return replaced(Addition, "_check_clock", lambda self: None)


@planted(
    test="tests/cli/test_stream_command.py::test_no_message_about_a_public_file_quotes_a_record",
    like="a refusal that quoted two equal ids of a file of records",
)
def public_files_of_a_stream_are_read_before_they_are_refused():
    """Records that are named as the boundary of a stream are read, and a message quotes an id."""
    return replaced(Account, "refuse_records", lambda self, paths: None)
