"""Planted bugs of the ledger: balances, the order of the steps, and what an entry says."""

import secrets
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from pathlib import Path

from privacy.planted_bugs.bug import around, instead, like, planted, replaced, together
from psd.accounting import selection_rho
from psd.api.release import Release
from psd.errors import BudgetError
from psd.ledger.entries import entry, replay_entries
from psd.ledger.extents import Extent, slices_of
from psd.ledger.file import append, exclusive, rows
from psd.ledger.ledger import Ledger, _body
from psd.privacy.loss import NANO
from psd.release.series import SeriesRecord
from psd.space.time_slices import TimeSlices

PROTOCOL = "tests/privacy/test_ledger_protocol.py::"
DRAWS = PROTOCOL + "test_every_draw_finds_its_charge_on_the_disk"
LEDGER = "tests/unit/ledger/"
READINGS = LEDGER + "test_readings.py::"
UNIT = LEDGER + "test_ledger.py::"
CURRENCIES = LEDGER + "test_two_currencies.py::"
BALANCES = LEDGER + "test_balances.py::"
INPUTS = LEDGER + "test_registered_inputs.py::"
STATE = LEDGER + "test_state.py::"
EXTENTS = LEDGER + "test_extents.py::"
RECEIPTS = LEDGER + "test_receipts.py::"
TIME = "tests/cli/test_ledger_time.py::"

ORDER = "the order of the ledger's steps"
EDITED = "an edited ledger whose chain was recomputed"
APART = "disjointness on somebody's word"


@planted(test=UNIT + "test_four_threads_are_granted_exactly_the_budget")
@like("342 of 100 tries granted to four processes by a file that is replaced")
def check_then_act(patience=10):
    """The balance is looked at in one transaction, and the charge written in another."""
    # Seconds for which four threads wait for each other between the two.
    all_looked = threading.Barrier(4, timeout=patience)

    @instead("psd.ledger.ledger.Ledger.charge")
    def charge(self, name, claim, *, analyst=None):
        self.check(name, claim, analyst=analyst)
        try:
            all_looked.wait()
        except threading.BrokenBarrierError:  # processes cannot meet, so each gives the others time
            time.sleep(0.5)
        body = {"id": secrets.token_hex(16), "dataset": name, "analyst": analyst, "files": []}
        with exclusive(self.path) as ledger:
            state = replay_entries(rows(ledger))
            append(ledger, entry(state.hashes, "charge", body | _body(claim)))
        return body["id"]

    return charge()


@planted(test=PROTOCOL + "test_a_build_that_fails_after_its_charge_stays_charged")
@like("automatic refunds")
def refund():
    """A build that fails gets its charge back, although a draw has been seen."""
    paid = []

    @around("psd.ledger.account.Account.charge")
    def remembering(charge, self, claim):
        paid.append(self.ledger.path)
        return charge(self, claim)

    @around("psd.publish.drawing.draw_release")
    def release_of(original, *arguments, **options):
        try:
            return original(*arguments, **options)
        except BaseException:
            with closing(sqlite3.connect(paid[-1])) as ledger:
                ledger.executescript("DROP TRIGGER held; DELETE FROM entry WHERE kind = 'charge'")
            raise

    return together(release_of(), remembering())


@planted(test=READINGS + "test_other_records_of_one_file_are_refused")
@like("ids in UTF-8 that are one id when they are read as Windows-1252")
def records_are_cut_otherwise():
    """A build may read a file by another delimiter or encoding than the dataset registers."""
    return replaced("psd.ledger.state._WHAT", ())


@planted(test=UNIT + "test_exactly_the_budget_is_granted", like="budgets in floats")
@instead("psd.ledger.state.LedgerState.check")
def float_balances(self, name, claim, analyst):
    """Balances are floating-point sums."""
    spent = sum(charge.loss.epsilon / NANO for charge in self.charges_of(name))
    if spent + claim.loss.epsilon / NANO > self.datasets[name].budget / NANO:
        raise BudgetError("too much")
    return claim


@planted(test=STATE + "test_a_fault_counts_where_its_build_does_if_too_little_is_left_everywhere")
@like("a fault of memory that was bought for 1e-9 as often as wanted")
@around("psd.ledger.state.LedgerState.fault_charge")
def faults_are_free_once_a_region_is_used_up(original, self, name, claim, analyst):
    """A fault costs no more than is left of the budget where most of it is spent."""
    return original(self, name, replace(claim, region=None, slices=None), analyst)


@planted(test=PROTOCOL + "test_ledgers_differ_in_nothing_but_the_answers[one-less]")
@like("hashes of private data, which confirm a guessed row")
def chain_over_a_fingerprint():
    """The chain of a ledger runs over a fingerprint of the rows."""
    seen = []

    @around("psd.publish.counting.count_rows")
    def count_rows(count, *arguments, **options):
        counted = count(*arguments, **options)
        seen.append(blake2b(counted.tally.counts.tobytes(), digest_size=8).hexdigest())
        return counted

    @around("psd.ledger.ledger._body")
    def with_fingerprint(body, claim):
        return {**body(claim), "what": f"{claim.what} of {seen[-1]}"}

    return together(count_rows(), with_fingerprint())


@planted(test=PROTOCOL + "test_a_release_that_cannot_be_written_is_charged_and_not_finished")
@like(ORDER)
@around("psd.ledger.account.Account.charge")
def done_before_write(original, self, claim):
    """A release is noted as given out when it is paid."""
    receipt = original(self, claim)
    self.ledger.finish(self.last)
    return receipt


@planted(test=DRAWS + "[quadtree]", like=ORDER)
def charge_after_draw():
    """The charge is written with the release, after the draws."""

    @around("psd.publish.charging.PendingCharge.charge")
    def late(charge, self):
        self._account.later = partial(charge, self)
        return {}

    @around("psd.ledger.account.Account.finish")
    def at_last(finish, self, path=None):
        self.later()
        finish(self, path)

    return together(late(), at_last())


@planted(test=DRAWS + "[auto]", like=ORDER)
@around("psd.privacy.budget.Budget.spend")
def charge_after_choice(spend, self, amount):
    """The charge is written after reading, and a bound was drawn while reading."""
    if self._parent is None:
        spend(self, amount)
    else:
        self._spent += amount


@planted(test=PROTOCOL + "test_the_balance_is_looked_at_before_the_rows", like=ORDER)
def balance_after_reading():
    """Rows are read before it is known whether they can be paid for."""
    return replaced("psd.ledger.account.Account.check", lambda self, claim: None)


@planted(test=EXTENTS + "test_only_regions_without_a_common_point_are_apart")
@like(APART)
@around("psd.ledger.extents._largest_sum")
def touching_regions_apart(original, charges, within):
    """Regions that share an edge are accounted as if no row were in both."""
    boxes = {(w, s, e - 1e-9, n - 1e-9): loss for (w, s, e, n), loss in charges.items()}
    return original(boxes, within)


@planted(test=UNIT + "test_regions_apart_for_rows_and_never_for_users", like=APART)
@instead("psd.ledger.state.extent_for_unit")
def regions_of_users_apart(extent, unit, zone):
    """Releases of two regions, each bounded by itself, are parallel for users."""
    return Extent(region=extent.region)


@planted(test=TIME + "test_k_in_each_slice_of_a_user_is_added_too", like=APART)
@instead("psd.ledger.state.extent_for_unit")
def slices_of_users_apart(extent, unit, zone):
    """Releases of two days, of k records of a user each, are parallel for users."""
    return Extent(slices=extent.slices)


@planted(test=TIME + "test_hours_of_a_day_of_a_user_are_added_and_hours_of_records_are_not")
@like(APART)
@instead("psd.ledger.extents.ChargedSlices.are_whole_days")
def hours_of_a_day_apart(slices):
    """Releases of two hours of one day are parallel for the days of users."""
    return True


@planted(test=TIME + "test_the_slices_of_a_charge_are_those_of_the_request_and_not_of_the_data")
@like("categories and groups from the data")
@around("psd.publish.counting.charge_request")
def charges_for_days_of_the_data(original, built, data, **more):
    """A charge is for the days that occur in the data, so that other days are free."""
    charged = original(built, data, **more)
    days = [line.split(",")[-1][:10] for line in Path(data[0]).read_text().splitlines()[1:]]
    names = [name for name in built.slices.names if name in days]
    occurring = TimeSlices(by="day", names=tuple(names), time_zone=built.slices.time_zone)
    return replace(charged, slices=slices_of(occurring, built.columns.time))


@planted(test=EXTENTS + "test_only_slices_without_a_common_moment_are_apart")
@like("a newer database of zones, which moves a record from one hour to the next")
@instead("psd.ledger.extents.ChargedSlices.frame")
def slices_by_any_rules(slices):
    """Slices are compared although clocks changed by other rules when records were placed."""
    return slices.column, slices.time_zone


@planted(test="tests/unit/privacy/test_loss.py::test_a_pure_loss_is_that_of_randomised_response")
@like("the rho of the exponential mechanism, taken for any pure mechanism")
def pure_charges_as_selections():
    """A pure charge counts epsilon^2 / 8 in rho, as if only candidates were drawn."""
    return replaced("psd.privacy.loss._pure_rho", selection_rho)


@planted(test=CURRENCIES + "test_linear_and_rho_charges_are_not_mixed")
@like("sums in two measures, split between them after the fact")
@instead("psd.ledger.charges.Balance.grants")
def currencies_mixed(self, loss):
    """Pure charges are added in epsilon, Gaussian ones in rho, and each sum has a whole budget."""
    if loss.is_pure:
        return self.spent.epsilon + loss.epsilon <= self.allowance.epsilon
    return self.spent.gaussian + loss.rho <= self.allowance.rho


@planted(test=BALANCES + "test_a_charge_fits_by_epsilons_or_by_rhos_and_not_by_both")
@like("sums in two measures, split between them after the fact")
@instead("psd.ledger.charges.Balance.grants")
def epsilons_beside_gaussian_noise(self, loss):
    """Pure charges go on adding up in epsilon after a Gaussian one."""
    if loss.is_pure and self.spent.epsilon + loss.epsilon <= self.allowance.epsilon:
        return True
    return loss.rho <= self.rho_left


@planted(test=CURRENCIES + "test_a_dataset_has_one_delta", like="deltas that add up unseen")
def deltas_of_any_size():
    """A Gaussian charge may have another delta than its dataset."""
    return replaced("psd.ledger.state._check_delta", lambda dataset, loss: None)


@planted(
    test="tests/unit/ledger/test_state.py::test_a_dataset_has_one_unit",
    like="mixed units in one ledger",
)
def units_mixed():
    """Epsilons per row and per user are added in one dataset."""
    return replaced("psd.ledger.state._check_unit", lambda dataset, claim: None)


@planted(test=READINGS + "test_one_person_is_not_shown_by_another_column_of_ids")
@like("500 records of one person, shown by a second build by another column of ids")
def ids_of_any_column():
    """A charge may take its users from another column than the charges before it."""
    return replaced("psd.ledger.state.check_readings", lambda name, registered, readings: None)


@planted(test=READINGS + "test_a_charge_that_places_records_otherwise_is_charged_everywhere")
@like(APART)
def places_of_any_columns():
    """A charge counts where its region is, whatever columns place its records."""
    return replaced("psd.ledger.state.is_placed_alike", lambda registered, readings: True)


@planted(test=INPUTS + "test_other_files_and_copies_are_refused_unread")
@like("copies of a file, which count each record again")
@instead("psd.ledger.state.LedgerState._check_inputs")
def inputs_of_any_place(self, dataset, request):
    """Inputs that a dataset does not register are read."""


@planted(test=INPUTS + "test_a_table_beside_a_second_hard_link_is_not_read[shp]")
@like("a hard link to a registered Shapefile, with a table of other ids beside it")
def inputs_of_any_hard_link():
    """A registered file is read with the files beside any of its hard links."""
    return replaced("psd.ingest.input_names._depends_on_path", lambda file: False)


@planted(test=UNIT + "test_what_is_no_ledger_is_refused_in_a_sentence_and_left_as_it_is")
@like("databases that are created when they are opened")
@around("psd.ledger.file._existing")
def ledger_made_where_missing(original, path):
    """A ledger that is missing is made, with nothing spent."""
    if not Path(path).exists():
        Ledger.create(path).register("rows", 1)
    return original(path)


@planted(test=RECEIPTS + "test_a_charge_that_was_lowered_is_found_by_its_release[release]")
@like(EDITED)
def charges_that_no_release_is_compared_with():
    """A release states a larger epsilon than the charge that paid for it."""
    return replaced("psd.ledger.receipts._differing_field", lambda stated, charge, dataset: None)


@planted(test=LEDGER + "test_seal.py::test_a_charge_that_was_lowered_is_found", like=EDITED)
def seals_of_any_chain():
    """A seal is checked by its code alone, and not compared with the chain."""
    return replaced("psd.ledger.ledger.check_seal", lambda ledger, state, key: 0)


@planted(test="tests/unit/api/test_series.py::test_joined_builds_of_the_same_records_state_the_sum")
@like("30 builds of the same records, joined to a series of the epsilon of one")
@instead("psd.api.publication.Publication.from_slices")
def releases_joined_as_disjoint(_, slices, releases):
    """Releases of the same records are joined as if no record were in two of them."""
    records = tuple(release.record for release in releases)
    return Release(SeriesRecord(slices=slices, releases=records))


@planted(test="tests/unit/api/test_series.py::test_a_series_states_one_charge")
@like("receipts of which only the first is read")
def series_of_several_charges():
    """A series states several charges, and the ledger compares the first."""
    return replaced("psd.release.series.receipt_of", lambda record: None)


@planted(test=LEDGER + "test_seal.py::test_seals_of_other_keys_and_ledgers", like=EDITED)
def seals_without_a_key():
    """A seal can be made without its key."""
    return replaced("psd.ledger.receipts._mac", lambda key, body: "00" * 32)


@planted(test=UNIT + "test_no_charge_hides_an_end_that_was_cut_off", like=EDITED)
def numbers_that_are_used_again():
    """A charge takes the number of an entry that was removed."""
    return replaced("psd.ledger.ledger.last_number", lambda ledger: len(list(rows(ledger))))


@planted(test=UNIT + "test_the_first_entry_that_was_changed_is_named_and_nothing_is_granted")
@like("rollback and edits of the ledger")
def entries_without_a_chain():
    """An entry that was changed by hand is believed."""
    return replaced("psd.ledger.entries._hash", lambda *fields: "00" * 32)
