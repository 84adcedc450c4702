"""Cubes of small data with categories: a record has a slice, a label and a lattice cell.

A point is a slice and a pair of a label and a lattice cell, cell + side^2 * label.
"""

from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np
import pyarrow as pa

from psd.curator.curator import Curator
from psd.decompositions.cube import Cube
from psd.ingest.tally_builder import tally_batches
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO
from psd.privacy.unit import counted_unit
from psd.publish.drawing import cube_terms
from psd.space.categories import CategoryAxis
from psd.testing import Run, small_domain
from support.privacy.cube_replay import Space, cube_tally, days
from support.privacy.slices_replay import DAYS, batch


@cache
def labels(number):
    """A category of some labels, of which each record has one."""
    return CategoryAxis("kind", tuple("abcdefgh"[:number]), (-1,) * number, has_other=False)


@dataclass(frozen=True)
class EveryAxis:
    """Every level of both layers, for a sixth of the loss each; further axes are cut together."""

    def build(self, curator):
        share = curator.loss // 6
        plane = curator.root()
        curator.count(plane, share)
        curator.count(curator.cut(plane, x=plane.middle(0), y=plane.middle(1)), share)
        names = [axis.name for axis in curator.axes]
        joint = curator.root(names)
        curator.count(joint, share)
        parts = curator.cut(joint, middles(curator, joint, names))
        curator.count(parts, share)
        # The last axis and space in one cut.
        lines = middles(curator, parts, names[-1:])
        parts = curator.cut(parts, lines, x=parts.middle(0))
        curator.count(parts, share)
        parts = curator.cut(parts, middles(curator, parts, names))
        curator.count(parts, curator.loss - 5 * share)
        return curator.tree(1)


def middles(curator, cells, names):
    """Lines that divide some axes of cells."""
    spans = {axis.name: cells.spans[:, 2 * a : 2 * a + 2].T for a, axis in enumerate(curator.axes)}
    return {axis.name: axis.lines(*spans[axis.name]) for axis in curator.axes if axis.name in names}


EVERY_AXIS, CUBE = EveryAxis(), Cube(signal=1)


@dataclass(frozen=True)
class Categories(Space):
    """A small lattice with slices, or none, and categories."""

    labels: int = 2

    @property
    def stated(self):
        """The slices; None for a category alone."""
        return days(self.slices) if self.slices else None

    @property
    def terms(self):
        """Unit in all, and arguments of the curator."""
        measure = Budget(self.loss).measure
        return cube_terms(self.unit, self.scope, self.stated, measure, labels(self.labels))

    @property
    def whole(self):
        """Unit in all slices and categories together."""
        return self.terms[0]

    def tally(self, points):
        """Records at points."""
        found = cube_tally(points, self.side, self.whole.contributions)
        place = found.columns + self.side * found.rows
        label, cell = np.divmod(place, self.side**2)
        return replace(
            found,
            columns=(cell % self.side).astype(np.int32),
            rows=(cell // self.side).astype(np.int32),
            region=label.astype(np.int32),
            slice=found.slice if self.slices else None,
        )

    def curator(self, points, noise, **changes):
        """Curator of records at points."""
        options = {"budget": Budget(self.loss), "sampler": noise, **self.terms[1], **changes}
        noise.curator = curator = Curator(self.tally(points), small_domain(self.side), **options)
        return curator

    @property
    def points(self):
        """All points."""
        return list(product(range(max(self.slices, 1)), range(self.labels * self.side**2)))

    def are_inside(self, boxes, spans, points):
        """Which points lie in which cells, (cells, points), by comparing each with each."""
        when, place = np.array(points, np.int64).reshape(-1, 2).T
        label, cell = np.divmod(place, self.side**2)
        low = np.concatenate([boxes[:, :2], spans[:, 0::2]], axis=1)[:, :, None]
        high = np.concatenate([boxes[:, 2:], spans[:, 1::2]], axis=1)[:, :, None]
        axes = [cell % self.side, cell // self.side, *([when] if self.slices else []), label]
        at = np.array(axes)
        return ((at >= low) & (at < high)).all(axis=1)

    def cells_of(self, questions):
        """Boxes, spans and losses of all cells that were asked for; all of axes they have not."""
        whole = [edge for axis in self.terms[1]["axes"] for edge in (0, axis.size)]
        spans = [np.tile(whole, (len(q.boxes), 1)) for q in questions]
        for every, q in zip(spans, questions, strict=True):
            if q.spans is not None:  # of the category, which is the last axis, or of all
                every[:, len(whole) - q.spans.shape[1] :] = q.spans
        boxes, loss = ([getattr(q, name) for q in questions] for name in ("boxes", "loss"))
        return np.concatenate(boxes), np.concatenate(spans), np.concatenate(loss)


def cube_of_labels(rows, unit, bound, noises, *, loss=NANO, method=EVERY_AXIS, category=None):
    """One curator over all days and labels of rows (user, day, column) that are bounded first.

    The label of a row is a, b or one that is not listed, by turns of its day and its column.
    """
    category = labels(2) if category is None else category
    days_and_labels = pa.array(["abz"[(day + column) % 3] for _, day, column in rows], pa.string())
    read = replace(batch(rows), label=days_and_labels.cast(pa.large_string()))
    counts = tally_batches(
        [read], small_domain(2), unit=counted_unit(unit, bound), key=b"fixed", slices=DAYS,
        strata=category,
    )  # fmt: skip
    whole, terms = cube_terms(unit, bound, DAYS, Budget(loss).measure, category)
    counts = replace(counts, contributions=whole.contributions)
    [noise] = noises(1)
    noise.curator = curator = Curator(
        counts, small_domain(2), budget=Budget(loss), sampler=noise, **terms
    )
    joint = method.build(curator)
    return [Run(curator, joint)]
