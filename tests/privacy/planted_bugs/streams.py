"""Planted bugs of streams: what is forgotten between two slices, or after a kill."""

from privacy.planted_bugs.bug import around, instead, like, planted, replaced, together
from psd.apps.streams import plan as counters
from psd.apps.streams.addition import Addition
from psd.apps.streams.plan import stream_charge
from psd.errors import LedgerError
from psd.mechanisms.random_words import system_bytes
from psd.privacy.unit import PrivacyUnit

REPLAY = "tests/apps/streams/test_stream_replay.py::"
KILLED = "tests/apps/streams/test_addition.py::test_a_killed_addition_draws_the_same_again"


@planted(
    test=REPLAY + "test_a_user_of_many_slices_of_a_stream_costs_no_more_than_epsilon[everywhere-1]"
)
@like("time slices taken for disjoint users")
@around("psd.apps.streams.drawing.first_records")
def k_anew_in_each_slice(first, builder, unit, day, key, contributions):
    """A stream keeps k records of a user again in each slice that is added."""
    return first(builder, unit, day, key, lambda names: [0] * len(names))


@planted(test=KILLED + "[before the answer is kept-grid]")
@like("answers that are drawn anew until one suits")
def second_draw_after_a_crash():
    """A slice that a killed process has drawn is drawn anew."""
    return replaced(
        "psd.apps.streams.state.RandomTape.__call__", lambda self, size: system_bytes(size)
    )


COMMAND = "tests/apps/streams/test_stream_command.py::"
STREAM = "tests/apps/streams/test_stream.py::"
COUNTED = "tests/apps/streams/test_counter_loss.py::"
STEPS = COUNTED + "test_a_record_of_any_step_costs_no_more_than_the_totals_were_given"


@planted(test=STEPS + "[tree-grid]", like="noise of a stream added to its output")
@around("psd.apps.streams.plan._advance_tree")
def counter_noise_on_totals(advance, step, tally, blocks, draw):
    """The counter draws noise on each running total, and not on blocks of steps."""
    sums = [counters.tally_of(blocks[at], 1) for at in counters.blocks_of(step)]
    parts = [*sums, tally]
    everything = counters.add_blocks(parts, [1] * len(parts), 1)
    return advance(step, tally, blocks, lambda _: draw(everything))


@planted(test=STEPS + "[toeplitz-grid]", like="a sensitivity with one term too few")
@around("psd.apps.streams.drawing.toeplitz_squared_sensitivity")
def toeplitz_one_column_too_few(squared, steps):
    """The sensitivity of the counter is that of a matrix with one step less."""
    return squared(steps - 1)


@planted(test=COUNTED + "test_a_user_of_several_slices_costs_no_more_than_the_totals_state")
@like("rhos of slices that one sum reads together, taken for those of disjoint slices")
def t_rho_for_totals_of_several_slices():
    """Totals by weighted sums state that a user of T slices has T rho."""
    return replaced("psd.privacy.unit.PrivacyUnit.summed_text", PrivacyUnit.concentrated_text)


USERS = REPLAY + "test_a_user_costs_exactly_the_rho_of_gaussian_slices"


@planted(test=USERS + "[most-three rows in three slices]")
@like("a charge of one measure for noise of another")
@around("psd.apps.streams.drawing.Budget")
def gaussian_charge_for_pure_slices(sound, loss, **more):
    """Slices of a stream are charged as Gaussian noise, and drawn with pure epsilon."""
    return sound(loss.epsilon, **more)


@planted(test=USERS + "[most-two rows anywhere]")
@like("the bound of one slice forgotten")
@instead("psd.apps.streams.drawing.squared_of")
def k_for_k_cap_in_a_stream(budget, unit, scope, slices):
    """The squared sensitivity of Gaussian slices is k, though a slice may have k records."""
    return unit.contributions


@planted(test=USERS + "[most-two rows in two slices]")
@like("time slices taken for disjoint users")
def k_anew_in_each_gaussian_slice():
    """A stream with Gaussian noise keeps k records of a user again in each slice that is added."""
    return k_anew_in_each_slice()


@planted(test=STREAM + "test_each_addition_that_lacks_memory_costs_a_twentieth_of_the_budget")
@like("a fault of memory that was bought for 1e-9 as often as wanted")
def faults_of_additions_paid_by_the_stream():
    """A stream that cost a twentieth of the budget has any number of faults for nothing."""
    return replaced("psd.apps.streams.addition.fault_charge", stream_charge)


@planted(
    test="tests/apps/streams/test_stream.py::test_twenty_additions_that_lack_memory_end_a_stream_whose_budget_is_used_up"
)
@like("a fault of memory that was bought for 1e-9 as often as wanted")
def faults_of_additions_without_end():
    """Additions to a stream whose budget is used up may end by a fault any number of times."""
    return replaced("psd.apps.streams.addition.Addition._check_faults", lambda self, account: None)


@planted(
    test="tests/apps/streams/test_stream.py::test_additions_that_cost_nothing_are_counted_over_all_streams_and_copies"
)
@like("a count of faults in a file that a copy resets")
@around("psd.ledger.ledger._append")
def faults_of_additions_forgotten(append, ledger, state, kind, body):
    """The ledger notes no fault for which nothing is left."""
    if kind != "fault":
        append(ledger, state, kind, body)


@planted(
    test="tests/apps/streams/test_stream.py::test_a_record_is_not_counted_in_two_slices_when_clock_changes_differ[None]"
)
@like("one record at two local times, by two versions of the time zone database")
def clock_changes_within_a_stream():
    """A stream goes on after the clock changes of its time zone have changed."""
    return replaced("psd.apps.streams.addition.Addition._check_clock", lambda self: None)


@planted(test=COMMAND + "test_no_message_about_a_public_file_quotes_a_record")
@like("a refusal that quoted two equal ids of a file of records")
def public_files_of_a_stream_are_read_before_they_are_refused():
    """Records that are named as the boundary of a stream are read, and a message quotes an id."""
    return replaced("psd.ledger.account.Account.refuse_records", lambda self, paths: None)


RESTORED = "tests/apps/streams/test_restored.py::"
TWICE = "a slice that two copies of a state drew, whose noise averages out"


def unless_drawn(step, *given):
    """Do a step, and go on where it is refused because a slice was drawn."""
    try:
        step(*given)
    except LedgerError as error:
        if "was drawn" not in str(error):
            raise


@planted(test=RESTORED + "test_a_restored_state_draws_no_slice_again", like=TWICE)
@around("psd.apps.streams.addition.Addition.open_account")
def restored_stream_draws_again(open_account, self, warn):
    """A state from a backup draws a slice that the ledger has as drawn."""
    unless_drawn(open_account, self, warn)


@planted(test=RESTORED + "test_of_two_copies_at_once_one_publishes_whatever_they_drew", like=TWICE)
@around("psd.ledger.ledger.Ledger.draw_slice")
def two_copies_record_one_slice(draw_slice, self, *about):
    """A ledger takes the draw of a slice whose other draw it has."""
    unless_drawn(draw_slice, self, *about)


@planted(test=RESTORED + "test_a_slice_in_the_state_is_finished_and_not_drawn_again", like=TWICE)
def slice_published_before_it_is_recorded():
    """A slice is published, and recorded in the ledger afterwards: a kill leaves no record."""
    record = Addition.record

    @around("psd.apps.streams.addition.Addition.publish")
    def publish(publish, self):
        series = publish(self)
        record(self)
        return series

    return together(
        replaced("psd.apps.streams.addition.Addition.record", lambda self: None), publish()
    )


@planted(test=RESTORED + "test_two_contents_of_a_slice_are_found", like=TWICE)
@instead("psd.ledger.receipts._other_slice")
def verify_reads_no_slices(path, charge):
    """The releases of a stream are compared with its charge, and not with what was drawn."""


@planted(test=RESTORED + "test_what_a_state_may_spend_is_that_of_the_charge")
@like("a charge of one measure for noise of another")
def state_of_a_stream_is_believed():
    """A state that was edited spends what it says, whatever was paid for."""
    return replaced("psd.apps.streams.addition.check_paid", lambda *_: None)
