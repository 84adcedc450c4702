"""A stream by record and replay: a user leaves who is bounded in all slices, first come first kept.

The slices are counted one after another, as `psd stream add` does it; the questions are asked of
one curator per slice, as in `support.privacy.slices_replay`.
"""

from collections import Counter

from psd.ingest.tally_builder import TallyBuilder
from psd.space.time_slices import TimeSlices
from psd.streams import counting
from psd.testing import small_domain
from support.privacy.slices_replay import DAYS, batch


def counted_slices(rows, unit, slices=DAYS):
    """Counts of each slice, added one by one; the records of a user so far are carried along."""
    records, counted = Counter(), []
    for name in slices:
        day = TimeSlices(by=slices.by, names=(name,), time_zone=slices.time_zone)
        builder = TallyBuilder(small_domain(2), unit=unit, slices=day)
        builder.add_batch(batch(rows))
        counted.append(
            counting.first_records(
                builder, unit, day, b"fixed", lambda names: [records[name] for name in names]
            )
        )
        records.update(counted[-1].contributions)
    return counted


def tallies(rows, unit, slices):
    """Tally of each slice."""
    return [
        counting.slice_tally(counted.tally, 0) for counted in counted_slices(rows, unit, slices)
    ]
