"""Planted bugs of refusals: what stops a build depends on where records lie, or is free."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from privacy.planted_bugs.bug import around, instead, like, planted, replaced, together
from psd.errors import DomainError, InputDataError
from psd.ingest.user_ids import normalise_ids
from psd.publish.charging import PendingCharge

REFUSALS = "tests/privacy/test_refusals.py::"
CALLS = REFUSALS + "test_calls_of_neighbours_show_the_same[1-record]"
FORM = REFUSALS + "test_a_fault_of_form_shows_the_same_wherever_it_lies"
SHORT = REFUSALS + "test_a_lack_of_memory_or_disk_is_charged_and_shows_no_more_than_a_fault"
PUBLIC = REFUSALS + "test_what_is_public_is_refused_with_its_reason_before_reading"

CRS = "tests/unit/ingest/sources/test_input_crs.py::"
HELD = "a lone record that 25 builds at epsilon 1e-9 found to 10 m"


@planted(test=CALLS, like=HELD)
@around("psd.publish.counting.count_rows")
def empty_domain_is_refused(original, *arguments, **options):
    """Bounds without a record inside are refused, free of charge."""
    counted = original(*arguments, **options)
    if not counted.tally.report["kept"]:
        raise DomainError("no record lies inside the bounds; is the CRS wrong?")
    return counted


@planted(test=CALLS, like="a check of values that tells one record from none")
@around("psd.ingest.tally_builder.RecordFilter.filter_batch")
def degrees_beyond_their_limits_are_refused(original, self, batch):
    """One record at longitude 200 stops the build of all others."""
    if (abs(batch.x) > 180).any():
        raise DomainError("column for x must be within 180 degrees")
    return original(self, batch)


@planted(test=REFUSALS + "test_columns_without_a_valid_transform_are_outside[bounds0]")
@like("libraries that raise an error for one point that cannot be projected")
@around("psd.ingest.points.make_projection")
def points_that_are_not_reached_are_refused(original, *arguments):
    """One record that the transformation does not reach stops the build of all others."""
    project = original(*arguments)

    def checked(points):
        image = project(points)
        if np.isinf(image).any():
            raise DomainError("a point cannot be transformed; is the CRS wrong?")
        return image

    return checked


@planted(test=CRS + "test_the_image_of_a_point_depends_on_that_point_alone[britain]")
@like("transformations that choose their grid or zone by the extent of a table")
@around("pyproj.Transformer.transform")
def transform_follows_the_extent_of_a_batch(original, self, x, y, **options):
    """All points of a batch are transformed as suits the middle of the batch."""
    image_x, image_y = original(self, x, y, **options)
    return image_x + np.nan_to_num(x).mean() * 1e-3, image_y


@planted(test=FORM + "[user-day-id-free-1]", like=HELD)
def ids_are_checked_inside_alone():
    """A record without an id is refused only if it lies inside the bounds."""

    @around("psd.ingest.user_partitions.UserPartitions.add_rows")
    def add_rows(original, self, ids, codes, time, inside, values):
        ids = ids.filter(pa.array(inside))
        if ids.null_count:
            raise InputDataError("records have no user id")
        original(self, ids, codes, time, None, values)

    return together(replaced("psd.ingest.tally_builder._ids", normalise_ids), add_rows())


@planted(test=FORM + "[user-day-time-free-1]", like=HELD)
@around("psd.ingest.tally_builder.RecordFilter.filter_batch")
def times_are_checked_inside_alone(original, self, batch):
    """A record without a time is refused only if it lies inside the bounds."""
    missing = np.isnat(batch.time)
    inside = self.domain.quantise(batch.x, batch.y)[2]
    if (missing & inside).any():
        raise InputDataError("records have no time")
    day = np.datetime64("2024-01-31", "us")
    return original(self, replace(batch, time=np.where(missing, day, batch.time)))


@planted(test=REFUSALS + "test_faults_of_all_kinds_show_the_same_with_a_ledger")
@like("messages that describe data to whoever may spend a budget")
@instead("psd.publish.pipeline.masked_error")
def reason_is_shown_with_a_ledger(fault, observer, *, charge=None):
    """A build with a ledger says which column of the input is wrong, and how."""
    return fault


@planted(test=SHORT + "[user-memory]", like="costs that are charged on success alone")
@around("psd.publish.pipeline.masked_error")
def lack_of_memory_is_free(original, fault, observer, *, charge=None):
    """A build that runs out of memory, which depends on what lies inside, is not charged."""
    return original(fault, observer)


@planted(test=SHORT + "[user-memory]")
@like("a fault of memory that was bought for 1e-9 as often as wanted")
def fault_costs_what_its_build_asks():
    """A build that runs out of memory costs its own epsilon, which the analyst chooses."""
    return replaced("psd.publish.charging.PendingCharge.charge_fault", PendingCharge.charge)


@planted(test=REFUSALS + "test_a_limit_of_memory_finds_no_record_with_a_ledger")
@like("--memory, which told whether a lone record occupies one cell more")
@around("psd.publish.pipeline.replace")
def limit_of_memory_refuses_cells_with_a_ledger(original, source, **changes):
    """The analyst sets the limit of memory, and whether it is exceeded depends on records."""
    changes.pop("limits_cells", None)
    return original(source, **changes)


@planted(test=PUBLIC + "[method]", like="checks that come with the first use")
def parameters_are_checked_after_reading():
    """Parameters of a method are first used after records were read and epsilon was charged."""
    return replaced("psd.publish.pipeline.dry_run_method", lambda *_: None)


@planted(
    test=REFUSALS
    + "test_a_reading_that_is_not_registered_is_charged_before_a_record_is_read[x=user]"
)
@like("a column of ids that was read as coordinates, to see at no cost whether all are numbers")
@around("psd.publish.pipeline.PendingCharge")
def other_columns_are_read_before_the_charge(original, account, request):
    """A build that reads other columns than the registered ones is charged after reading."""
    charge = original(account, request)
    charge.reads_as_registered = True
    return charge


@planted(test=REFUSALS + "test_a_link_is_followed_once_before_the_first_check")
@like("a link that pointed to a registered file when it was checked, and elsewhere when read")
def links_are_followed_at_each_use():
    """A file is checked by its device and number, and read later by the name of a link."""
    return replaced("psd.publish.pipeline.resolve_inputs", lambda data: data)


INPUTS = "tests/unit/ledger/test_registered_inputs.py::"
PUBLISHED = "a boundary, bounds or regions that were a file of records, whose extent is published"


@planted(test=INPUTS + "test_registered_inputs_are_no_public_files", like=PUBLISHED)
def public_file_of_a_dataset_is_not_refused():
    """A public file of a build may be an input of a dataset of the ledger, at no cost."""
    return replaced("psd.ledger.account.Account.refuse_records", lambda self, paths: None)


@planted(test=INPUTS + "test_inputs_of_records_are_no_public_files", like=PUBLISHED)
def public_file_with_the_records_is_not_refused():
    """A public file of a build may be the file that has the records."""
    return replaced("psd.publish.counting.refuse_record_files", lambda paths, inputs: None)


@planted(test=INPUTS + "test_other_columns_cost_the_price_of_a_fault")
@like("a column that was tried for 1e-9, to see whether all of its records are numbers")
@around("psd.publish.pipeline.PendingCharge")
def other_columns_cost_what_their_build_asks(original, account, request):
    """A build that reads other columns than the registered ones costs its own epsilon alone."""
    charge = original(account, request)
    if not charge.reads_as_registered:
        charge.charge_fault = charge.charge
    return charge
