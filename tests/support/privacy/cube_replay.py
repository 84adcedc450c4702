"""Cubes of small data: records with a slice each, users anywhere in space and time, what they lose.

A point is a slice and a lattice cell, column + side * row. Curators are made by `cube_terms`, as
`draw_cube` makes them.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import chain, combinations_with_replacement, product

import numpy as np

from psd.curator.curator import Curator
from psd.decompositions.cube import Cube
from psd.ingest.quadrant_codes import QuadrantCodes, QuadrantOrder
from psd.ingest.tally import Tally
from psd.ingest.tally_builder import tally_batches
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO, Loss
from psd.privacy.unit import PrivacyUnit, counted_unit
from psd.publish.drawing import cube_terms
from psd.space.time_slices import TimeSlices
from psd.testing import LeakError, ReplayingSampler, Run, compare_runs, small_domain
from psd.testing.exact_loss import WalkingSampler
from support.privacy.exact_loss import pair_loss
from support.privacy.slices_replay import DAYS, batch, user

LOSS = Loss.gaussian(NANO, Fraction(1, 10**6))
RHO = Fraction(LOSS.rho, 10**12)

ROW_OF_A_USER = user(1)

square = cache(small_domain)


def days(number):
    """Time slices, as many as wanted."""
    first = np.datetime64("2024-01-01")
    return TimeSlices(by="day", names=tuple((first + np.arange(number)).astype(str).tolist()))


def cube_tally(points, side, k=1):
    """Count records at points, by slice, then by cell, as a tally has them."""
    pairs, counts = np.unique(np.array(points, np.int64).reshape(-1, 2), axis=0, return_counts=True)
    return Tally(
        columns=(pairs[:, 1] % side).astype(np.int32),
        rows=(pairs[:, 1] // side).astype(np.int32),
        counts=counts.astype(np.int64),
        slice=pairs[:, 0],
        contributions=k,
    )


def coded(tally, side, slices):
    """The same records as codes with their slices, one for each record."""
    order = QuadrantOrder((side, side))
    codes = order.codes(tally.columns, tally.rows) + (tally.slice << 2 * order.levels)
    codes = np.sort(np.repeat(codes, tally.counts))
    made = replace(QuadrantCodes.of_ascending(order, codes, None), slices=slices)
    return Tally.of_codes(made, contributions=tally.contributions, report={})


@dataclass(frozen=True)
class Levels:
    """Every level of both layers, for a fifth of the loss each; whether x is cut at a median."""

    has_medians: bool = False

    def build(self, curator):
        share = curator.loss // 5
        rest = curator.loss - 4 * share
        plane = curator.root()
        curator.count(plane, share)
        curator.count(curator.cut(plane, x=plane.middle(0), y=plane.middle(1)), share)
        joint = curator.root(["time"])
        halves = curator.cut(joint, {"time": joint.spans.sum(axis=1) // 2})
        lines = halves.middle(0)
        if self.has_medians:
            lines = curator.quantile(halves, axis=0, loss=2 * share)
        else:
            curator.count(joint, share)
            curator.count(halves, share)
        # Time and space in one cut.
        parts = curator.cut(halves, {"time": halves.spans.sum(axis=1) // 2}, x=lines)
        curator.count(parts, rest)
        return curator.tree(1)


LEVELS, MEDIANS, CUBE = Levels(), Levels(has_medians=True), Cube(signal=1)


@dataclass(frozen=True)
class Space:
    """A small lattice with slices, the unit, and the loss of a build."""

    side: int = 2
    slices: int = 2
    unit: PrivacyUnit = ROW_OF_A_USER
    scope: str = "series"
    loss: int | Loss = NANO
    has_codes: bool = False  # whether records are codes in quadrant order, as of a fine lattice

    @property
    def whole(self):
        """Unit in all slices together."""
        return cube_terms(self.unit, self.scope, days(self.slices), Budget(self.loss).measure)[0]

    def curator(self, points, noise, **changes):
        """Curator of records at points."""
        whole, terms = cube_terms(
            self.unit, self.scope, days(self.slices), Budget(self.loss).measure
        )
        tally = cube_tally(points, self.side, whole.contributions)
        if self.has_codes:
            tally = coded(tally, self.side, self.slices)
        options = {"budget": Budget(self.loss), "sampler": noise, **terms, **changes}
        noise.curator = curator = Curator(tally, square(self.side), **options)
        return curator

    def build(self, method, points, noise, **changes):
        """Runs of the layers."""
        curator = self.curator(points, noise, **changes)
        joint = method.build(curator)
        return Run(curator, curator.tree()), Run(curator, joint)

    @property
    def points(self):
        """All points."""
        return list(product(range(self.slices), range(self.side**2)))

    def users(self, least=1):
        """All ways in which one user can have so many records: k in all, and M in each slice."""
        most = self.whole.contributions
        limit = self.whole.max_per_slice or most
        for size in range(least, most + 1):
            for points in combinations_with_replacement(self.points, size):
                in_slice = np.bincount([when for when, _ in points])
                if in_slice.max() <= limit:
                    yield list(points)

    def data_sets(self, size):
        """All data sets of at most so many records."""
        ways = (combinations_with_replacement(self.points, number) for number in range(size + 1))
        return [list(points) for points in chain(*ways)]


def compare_layers(first, second):
    """Refuse any difference of two builds with the same answers."""
    for one, other in zip(first, second, strict=True):
        compare_runs(one, other)
    (curator, _), (other, _) = first[0], second[0]
    for one, two in zip(curator.questions, other.questions, strict=True):
        if not np.array_equal(one.spans, two.spans):
            raise LeakError("questions about other slices than on the other data set")
    if not np.array_equal(first[1].tree.spans, second[1].tree.spans):
        raise LeakError("spans of the tree depend on the data")


def worst_exact_loss(space, method, points, users, script):
    """Largest exact log-ratio over all answers of selections, between points and users more."""
    worst, pending = 0.0, [[]]
    while pending:
        choices = pending.pop()
        first = WalkingSampler(script, choices)
        space.build(method, points, first)
        for index in range(len(choices), len(first.options)):
            rest = range(1, first.options[index])
            pending += [[*first.taken[:index], choice] for choice in rest]
        for more in users:
            second = ReplayingSampler(first.draws)
            space.build(method, points + more, second)
            worst = max(worst, pair_loss(first.draws, second.draws))
    return worst


def cells_of(questions):
    """Boxes, first slice, and the one after the last, and losses of all cells that were asked for.

    (n, 4), (n, 2), (n,); cells of the plane have all slices.
    """
    boxes = np.concatenate([question.boxes for question in questions])
    spans = np.concatenate(
        [
            np.tile([0, 2**40], (len(question.boxes), 1))
            if question.spans is None
            else question.spans
            for question in questions
        ]
    )
    return boxes, spans, np.concatenate([question.loss for question in questions])


def are_inside(boxes, spans, points, side):
    """Which points lie in which cells, (cells, points), by comparing each with each."""
    when, cell = np.array(points, np.int64).reshape(-1, 2).T
    x, y = cell % side, cell // side
    x0, y0, x1, y1 = boxes.T[:, :, None]
    first, stop = spans.T[:, :, None]
    inside = (x >= x0) & (x < x1) & (y >= y0) & (y < y1)
    return inside & (when >= first) & (when < stop)


def rho_of_users(space, curator, draws, users):
    """Largest sum of n_c^2 rho_c / S_c^2 that any of the users costs, over the rho of the build.

    n_c is counted in the logged cells, and S_c^2 is what the mechanism of the cell was given.
    """
    points, squared = space.points, []
    for number, question in enumerate(curator.questions, 1):
        assert question.kind == "count"
        if not len(question.loss):
            continue
        asked = [draw for draw in draws if draw.question == number]
        given = np.concatenate([draw.sensitivity for draw in asked])
        if question.spans is not None:
            # Cells of equally many slices are drawn together, those of few slices first.
            order = np.argsort(np.diff(question.spans)[:, 0], kind="stable")
            given[order] = given.copy()
        squared.append(given)
    boxes, spans, loss = cells_of(curator.questions)
    inside = are_inside(boxes, spans, points, space.side).astype(np.int64)
    number = {point: index for index, point in enumerate(points)}
    held = np.zeros((len(users), len(points)), np.int64)
    for index, records in enumerate(users):
        np.add.at(held[index], [number[record] for record in records], 1)
    sensitivity = np.concatenate(squared)
    common = int(np.lcm.reduce(sensitivity))
    cost = (held @ inside.T) ** 2 @ (loss * (common // sensitivity))
    return Fraction(int(cost.max()), common * LOSS.rho)


def cube_of_rows(rows, unit, bound, noises, *, loss=NANO, method=LEVELS, **changes):
    """One curator over all days, as `draw_cube` has it, of rows that are bounded first."""
    counts = tally_batches(
        [batch(rows)], small_domain(2), unit=counted_unit(unit, bound), key=b"fixed", slices=DAYS
    )
    whole, terms = cube_terms(unit, bound, DAYS, Budget(loss).measure)
    counts = replace(counts, contributions=whole.contributions)
    [noise] = noises(1)
    options = {"budget": Budget(loss), "sampler": noise, **terms, **changes}
    noise.curator = curator = Curator(counts, square(2), **options)
    joint = method.build(curator)
    return [Run(curator, joint)]
