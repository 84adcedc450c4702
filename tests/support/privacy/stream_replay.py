"""A stream by record and replay: a user leaves who is bounded in all slices, first come first kept.

The slices are counted one after another, as `psd stream add` does it. With `drawn_slices` the
library draws each slice; with `tallies` the questions are asked of one curator per slice, as in
`support.privacy.slices_replay`.
"""

from collections import Counter
from unittest.mock import patch

from psd.apps.streams import drawing
from psd.curator.curator import Curator
from psd.ingest.sources import Columns
from psd.ingest.tally_builder import TallyBuilder
from psd.privacy.unit import counted_unit
from psd.publish import drawing as publish_drawing
from psd.publish.public_inputs import PublicInputs
from psd.publish.request import BuildRequest
from psd.release.post_processing import PostProcessing
from psd.space.time_slices import TimeSlices
from psd.testing import small_domain
from support.privacy.slices_replay import DAYS, QUADTREE, batch, tallies_at_once


def counted_slices(rows, unit, slices=DAYS):
    """Counts of each slice, added one by one; the records of a user so far are carried along."""
    records, counted = Counter(), []
    for name in slices:
        day = TimeSlices(by=slices.by, names=(name,), time_zone=slices.time_zone)
        builder = TallyBuilder(small_domain(2), unit=unit, slices=day)
        builder.add_batch(batch(rows))
        counted.append(
            drawing.first_records(
                builder, unit, day, b"fixed", lambda names: [records[name] for name in names]
            )
        )
        records.update(counted[-1].contributions)
    return counted


def tallies(rows, unit, slices):
    """Tally of each slice."""
    return [drawing.slice_tally(counted.tally, 0) for counted in counted_slices(rows, unit, slices)]


def request_of(unit, bound="series", method=QUADTREE, **noise):
    """Request of a stream of three days, at epsilon 1."""
    columns = {"user": "user"} if unit.has_user else {}
    return BuildRequest(
        domain=small_domain(2), epsilon=1, method=method, unit=unit, contribution_scope=bound,
        slices=DAYS, columns=Columns(time="time", **columns), **noise,
    )  # fmt: skip


def watched(*args, **options):
    """A curator that its sampler knows."""
    sampler = options["sampler"]
    sampler.curator = Curator(*args, **options)
    return sampler.curator


def drawn_slices(rows, unit, bound, noises, *, method=QUADTREE, **noise):
    """Curator and tree of each slice, as `psd stream add` counts and draws it."""
    draws = drawing.SliceDraws(
        request=request_of(unit, bound, method, **noise),
        inputs=PublicInputs(post_processing=PostProcessing()),
        slices=DAYS,
        counter=None,
        statement={},
    )
    count = tallies if bound == "series" else tallies_at_once
    parts, drawn = count(rows, counted_unit(unit, bound), DAYS), []
    for number, (sampler, tally) in enumerate(zip(noises(len(DAYS)), parts, strict=True)):
        with patch.multiple(
            publish_drawing, SecureSampler=lambda sampler=sampler: sampler, Curator=watched
        ):
            record = draws.draw_slice(number, tally)
        drawn.append((sampler.curator, record.tree))
    return drawn
