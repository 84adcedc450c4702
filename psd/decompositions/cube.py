"""Cube: one cascade over space, time and categories, and small ones over space in all time.

References
----------
.. [1] Qardaji, Yang, Li. "Differentially Private Grids for Geospatial Data." ICDE 2013,
   sections IV-A and IV-B: cells sized by a noisy count, which is a measurement as well.
   https://doi.org/10.1109/ICDE.2013.6544872
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Rows
from psd._util.declared_parameters import check_parameters, integer_between, public_field
from psd.decompositions._constants import (
    CASCADE_LAST_LEVELS,
    CASCADE_SIGNAL,
    CASCADE_STEP_SHARE,
    CUBE_CELLS,
    CUBE_FIRST_BITS,
    CUBE_LABEL_SHARE,
    CUBE_LABEL_SIGNAL,
    CUBE_LABELS,
    CUBE_LAST_BITS,
    CUBE_PLANE_MEAN,
    CUBE_PLANE_SHARE,
    CUBE_PLANE_SIGNAL,
    CUBE_STEP_SHARE,
    CUBE_TIME_BITS,
    CUBE_TIME_FIRST,
    CUBE_TIME_OFFSET,
    CUBE_TIMES_SHARE,
    CUBE_TIMES_SIGNAL,
    TOTAL_SHARE,
)
from psd.decompositions._region_cube import count_levels, divide_regions
from psd.decompositions.cascade import Cascade, family_roughness
from psd.errors import ParameterError
from psd.privacy.budget import share, split_total
from psd.release.post_processing import PostProcessing
from psd.space.axes import REGION, TimeAxis
from psd.space.growing_tree import Cells

if TYPE_CHECKING:
    from psd.decompositions._base import Curator
    from psd.space.box_tree import Tree

__all__ = ["Cube", "method"]

# Halvings of one tier at most.
_MOST_BITS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Cube:
    """One adaptive tree over space, time and categories, and small ones over space in all time.

    The tree over space and time is a cascade [1]_: a node with a noisy count n and an epsilon e
    left can afford B = log2(n e / signal) halvings. If B is at most 6, its parts B halvings below
    are counted with all of e; otherwise those ceil(B / 2) below are, with a share of e, and each
    decides again. A halving of time costs one, and one of both sides of a cell two. They go to the
    axis that is longest beside the whole domain, and time is ahead by four halvings. Categories are
    ahead by as many, are divided between labels of one level, and only where n e / signal is two or
    more, as their division has two parts.

    Without categories, or in one of them, if the slices of a node have many records beside their
    noise, it is divided into slices first, and each slice as a `Cascade` divides it. Where there
    are many slices, another tier before tells the times with few records from the others.

    The tree over space alone is a `Cascade` with a small share of epsilon. As it sums over all of
    time its cells are smaller, so it says where records lie inside the cells of the other tree.

    With slices and at most 16 categories that have many records each, both trees are divided by
    category first: a third tree, over space and the category, is a `Cascade` for each with a fifth
    of epsilon, and says where the records of this category lie.

    If slices are hours and not first, a tree of all places counts each of them, of each category
    that is divided first. It corrects what cells of several hours say of one of them.

    Without time slices and categories there is the tree over space alone, with all of epsilon.

    Guarantees
    ----------
    - The schedule reads noisy counts and public numbers only. Any path of the tree over space and
      time and any paths of the other trees together spend exactly epsilon. All that is asked of
      records is how many lie in disjoint cells of each tree.

    Parameters
    ----------
    signal : int
        n e in a finished cell, 1 to 1,000,000; see `Cascade`. Public.
    step_share : decimal in [0, 1)
        Share of the epsilon left that a tier before the last one takes. Public.
    total_share : decimal in (0, 1)
        Share of epsilon for the total, which is the count of the root of the tree over space; and
        of the epsilon left for each tier that divides time alone. Public.
    cells : int
        About how many finished cells each tree has at most, 1 to 100 million. Public.

    Notes
    -----
    With s = n e / T, the expected records of one of T slices over the scale of the noise (of one of
    T pairs of a slice and a category), the tree over space has the share 0.05 (800 / s)^(1/3) of
    what the total leaves, limited to 0.02 to 0.2. With more than 16 hours and s of 10 to 100, hours
    of all places have a tenth of the rest. Categories have many records if their mean number is 300
    times the scale of the noise with which their tree counts them. A node with s = 100 in its own
    slices is divided into them first. Axes are not chosen by how uneven the counts are: space is
    rougher than time at every scale, so single slices would never be told apart.

    References
    ----------
    .. [1] Qardaji, Yang, Li, ICDE 2013, section IV-B; see `Cascade`.

    Examples
    --------
    >>> Cube().step_share
    Decimal('0.1')
    """

    signal: int = public_field(
        CASCADE_SIGNAL,
        integer_between(1, 1_000_000),
        "expected count of a finished cell over the scale of its noise",
    )
    step_share: Decimal = public_field(CUBE_STEP_SHARE, share, "share of a tier before the last")
    total_share: Decimal = public_field(TOTAL_SHARE, share, "share of epsilon for the total")
    cells: int = public_field(
        CUBE_CELLS, integer_between(1, 10**8), "about how many finished cells at most"
    )

    name: ClassVar[str] = "cube"
    axes: ClassVar[tuple[str, ...]] = ("time", "category", REGION)
    post_processing: ClassVar[PostProcessing] = PostProcessing(
        estimate="posterior", density="smooth"
    )
    picks: ClassVar[tuple[str, ...]] = ("plane_share",)
    paper: ClassVar[str] = "after Qardaji et al., ICDE 2013, over space and time"

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.total_share == 0:
            raise ParameterError("total_share must be above 0; the trees follow from the total")

    def build(self, curator: Curator) -> Tree:
        """Count the total, then the plane, the first layer, and all axes, the last one."""
        left, total, root = curator.loss, 0, curator.root()
        if left > 1:
            left, paid = split_total(left, self.total_share)
            total = int(curator.count(root, paid)[0])
        totals, noise = np.array([total]), curator.noise
        if not curator.axes:
            self._divide_plane(curator, root, totals, left)
            return curator.tree()

        # The share of the plane by the records of a slice.
        slices = int(np.prod([axis.size for axis in curator.axes if axis.name != REGION]))
        of_slice = noise.signal_to_noise(total, left) / slices
        least, most = CUBE_PLANE_SHARE
        part = CUBE_PLANE_MEAN * (CUBE_PLANE_SIGNAL / max(of_slice, 1e-9)) ** (1 / 3)
        plane = max(int(left * Fraction(round(min(max(part, least), most), 3))), 1)
        curator.declare("plane_share", f"{min(max(part, least), most):.3f}")
        if left > plane:
            lowest = self._divide_plane(curator, root, totals, plane)
            times = 0
            if lowest is None and _is_coarse(curator, of_slice):
                times = int((left - plane) * Fraction(CUBE_TIMES_SHARE))
            rest, of_labels = self._divide_by_label(curator, total, left - plane - times)
            if times > 0:
                _count_slices(curator, has_labels=of_labels is not None, loss=times)
            joint = curator.root([axis.name for axis in curator.axes])
            if of_labels is not None:
                self._divide(curator, _each_label(curator, joint), of_labels, rest)
            elif lowest is None:
                self._divide(curator, joint, totals, rest)
            else:
                divide_regions(
                    curator,
                    joint,
                    totals,
                    left - plane,
                    signal=self._signal(curator, totals, left - plane),
                    slice_share=self.total_share,
                    lowest=lowest,
                )
        else:  # a loss of a part or two
            joint = curator.root([axis.name for axis in curator.axes])
            curator.count(joint, left)
        return curator.tree(joint.layer)

    def _divide_by_label(
        self, curator: Curator, total: int, left: int
    ) -> tuple[int, NDArray[np.int64] | None]:
        """Divide space for each category if it pays; the loss left, and noisy counts or None."""
        labels = next((axis.size for axis in curator.axes if axis.name == "category"), 0)
        loss = int(left * Fraction(CUBE_LABEL_SHARE))
        # Only if the records suffice for a division of space for each label.
        is_known = curator.noise.signal_to_noise(total, loss) >= CUBE_LABEL_SIGNAL * labels
        if not (len(curator.axes) > 1 and 1 < labels <= CUBE_LABELS and is_known and loss > 1):
            return left, None
        cells = _each_label(curator, curator.root(["category"]))
        # A total of each label, then a cascade of its own from it.
        rest, paid = split_total(loss, self.total_share)
        counts = curator.count(cells, np.full(len(cells), paid))
        Cascade(signal=self._signal(curator, np.array([total]), rest)).descend(
            curator, cells, totals=counts, loss=rest
        )
        return left - loss, counts

    def _divide_plane(
        self, curator: Curator, root: Cells, totals: NDArray[np.int64], loss: int
    ) -> NDArray[np.int64] | None:
        """Divide the plane by a cascade, or into regions; counts of the lowest of these."""
        if curator.regions is not None:
            return count_levels(curator, root, loss)
        Cascade(signal=self._signal(curator, totals, loss)).descend(
            curator, root, totals=totals, loss=loss
        )
        return None

    def _signal(self, curator: Curator, totals: NDArray[np.int64], loss: int) -> int:
        """Records of a finished cell over their noise, so that cells are not too many."""
        total = int(np.maximum(totals, 0).sum())  # of all cells, whichever is first
        expected = curator.noise.signal_to_noise(total, loss)
        return min(max(self.signal, math.ceil(expected / self.cells)), 1_000_000)

    def _divide(
        self,
        curator: Curator,
        cells: Cells,
        totals: NDArray[np.int64],
        loss: int,
    ) -> None:
        """Divide space and time tier by tier, and count each tier when it is reached."""
        schedule = _Schedule(
            signal=self._signal(curator, totals, loss),
            steps=(
                Fraction(self.step_share),
                Fraction(self.total_share),
                Fraction(CASCADE_STEP_SHARE),
            ),
            has_one_label=len(curator.axes) == 1 or len(cells) > 1,
        )
        left, rough = np.full(len(cells), loss), np.ones(len(cells))
        plan = schedule.plan(curator, cells, totals, left, rough, CUBE_FIRST_BITS)
        while len(cells):
            cells, plan = _divide_tier(curator, cells, plan)
            counts = curator.count(cells, plan.now)
            onward = np.flatnonzero(plan.later > 0)
            cells, plan, counts = cells[onward], plan[onward], counts[onward]
            if not len(cells):
                return
            # Cells of one tier are compared that lie in one cell of the tier above.
            variance = curator.noise_variance(cells, plan.now)
            weight = curator.mass(cells) * _lengths(cells)
            rough = family_roughness(counts, plan.owner, variance, weight)
            plan = schedule.plan(curator, cells, counts, plan.later, rough, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Schedule:
    """How a node divides its halvings among space and the further axes."""

    signal: int
    # Share of a tier before the last, of one that divides time alone, and of one inside a slice.
    steps: tuple[Fraction, Fraction, Fraction]
    # Whether each node has one category, or there are none.
    has_one_label: bool

    def plan(
        self,
        curator: Curator,
        cells: Cells,
        counts: NDArray[np.int64],
        left: NDArray[np.int64],
        rough: NDArray[np.float64],
        least: int,
    ) -> _Plan:
        """Halvings of axes and of space to the next tier of each cell, its loss, and the rest."""
        signal, lengths = curator.signal_to_noise(cells, counts, left), _lengths(cells)
        # Halvings that the records of a cell pay for.
        bits = np.log2(np.maximum(signal / (self.signal * rough), 0.25))
        bits = np.maximum(bits, least)

        # A single slice is divided as by `Cascade`. Slices with many records come first, all of
        # them or, if there are many, about the root of their number.
        is_one = lengths == 1
        is_first = (signal >= CUBE_TIME_FIRST * lengths) & ~is_one & self.has_one_label
        is_first &= curator.axes[0].name == "time"
        halvings = np.ceil(np.log2(lengths))
        halvings = np.where(halvings > CUBE_TIME_BITS, np.ceil(halvings / 2), halvings)
        onward = np.where(is_one, 2 * np.ceil(bits / 4), np.ceil(bits / 2))
        onward = np.where(is_first, halvings, onward)

        # Loss of a tier out of what is left; computed once for each distinct value.
        values, index = np.unique(left, return_inverse=True)
        steps = np.array(
            [[int(e * step) for step in self.steps] for e in values.tolist()], np.int64
        )
        now = steps[index, np.where(is_first, 1, np.where(is_one, 2, 0))]
        last = bits <= np.where(is_one, 2 * CASCADE_LAST_LEVELS, CUBE_LAST_BITS)
        last = (last & ~is_first) | (now == 0)
        wanted = np.minimum(np.where(last, bits, onward), _MOST_BITS)
        halves, quads = self._allocate(curator, cells, wanted, is_first)
        # A cell that cannot be divided further is counted once, with all that is left.
        last |= ~halves.any(axis=1) & (quads == 0)
        return _Plan(
            halves=halves,
            quads=quads,
            now=np.where(last, left, now),
            later=np.where(last, 0, left - now),
            owner=np.arange(len(cells)),
        )

    def _allocate(
        self,
        curator: Curator,
        cells: Cells,
        bits: NDArray[np.float64],
        is_first: NDArray[np.bool_],
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Halvings of A further axes, (n, A), and both sides, (n,); time first where `is_first`."""
        assert cells.spans is not None  # of a layer over further axes
        step = np.array(curator.domain.cell_step)
        # Sides and lengths of the cells, as they become by the halvings so far.
        sides = (cells.boxes[:, 2:] - cells.boxes[:, :2]).astype(np.float64)
        lengths = (cells.spans[:, 1::2] - cells.spans[:, 0::2]).astype(np.float64)
        whole = np.array(curator.domain.lattice)
        sizes = np.array([axis.size for axis in curator.axes])
        # The last halving is made if at least half of its price is left; of categories, all of it.
        price = np.array([1] * len(sizes) + [2])
        least = np.array([0.5 if axis.name == "time" else 1.0 for axis in curator.axes] + [1.0])
        halves, quads = np.zeros(lengths.shape, np.int64), np.zeros(len(cells), np.int64)
        offset = np.where(is_first, np.inf, CUBE_TIME_OFFSET)[:, None]
        while True:
            # The axis that is longest in parts of its whole is next; time wins where it is first.
            ahead = np.where(lengths > 1, np.log2(lengths / sizes) + offset, -np.inf)
            is_wide = (sides >= 2 * step).any(axis=1)
            of_space = np.where(is_wide, np.log2((sides / whole).max(axis=1)), -np.inf)
            of_each = np.column_stack([ahead, of_space])
            chosen = of_each.argmax(axis=1)
            made = (of_each.max(axis=1) > -np.inf) & (bits >= least[chosen])
            if not made.any():
                return halves, quads
            is_cut = made[:, None] & (chosen[:, None] == np.arange(len(price)))
            halves += is_cut[:, :-1]
            quads += is_cut[:, -1]
            lengths = np.where(is_cut[:, :-1], lengths / 2, lengths)
            sides = np.where(is_cut[:, -1:], np.maximum(sides / 2, 1), sides)
            bits = np.where(made, bits - price[chosen], bits)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Plan(Rows):
    """For each open cell: halvings to its next tier, the loss of that tier, and the rest."""

    halves: NDArray[np.int64]  # (n, A), of further axes
    quads: NDArray[np.int64]  # of both sides
    now: NDArray[np.int64]
    later: NDArray[np.int64]
    owner: NDArray[np.int64]  # number of the cell of the tier above


def _divide_tier(curator: Curator, cells: Cells, plan: _Plan) -> tuple[Cells, _Plan]:
    """Divide cells to their next tier, further axes first; one without mass ends at once."""
    step = 2 * np.array(curator.domain.cell_step)
    # Cells with no step in their plan get one child in their stead.
    stays = ~plan.halves.any(axis=1) & (plan.quads == 0)
    done = [(curator.cut(cells[stays]), plan[stays])]
    cells, plan = cells[~stays], plan[~stays]
    while len(cells):
        # A round: the first axis that some cell is to be halved along, or space if there is none.
        axis = next((a for a in range(len(curator.axes)) if plan.halves[:, a].any()), None)
        which = plan.quads > 0 if axis is None else plan.halves[:, axis] > 0
        cut, above = cells[which], plan[which]
        assert cut.spans is not None  # of a layer over further axes
        low, high = cut.boxes[:, :2], cut.boxes[:, 2:]
        if axis is not None:
            first, stop = cut.spans[:, 2 * axis], cut.spans[:, 2 * axis + 1]
            line = curator.axes[axis].lines(first, stop)
            parts = np.where(line > first, 2, 1)
            made = curator.cut(cut, {curator.axes[axis].name: line})
        else:
            # An axis is divided only if both halves keep the smallest cell.
            wide = high - low >= step
            x, y = (np.where(wide[:, a], cut.middle(a), low[:, a]) for a in (0, 1))
            parts = np.where(x > low[:, 0], 2, 1) * np.where(y > low[:, 1], 2, 1)
            made = curator.cut(cut, x=x, y=y)
        # Children have the plan of their parent, less the step that was just made.
        below = above[np.repeat(np.arange(len(cut)), parts)]
        halved = np.arange(len(curator.axes)) == (-1 if axis is None else axis)
        below = replace(
            below, halves=below.halves - halved, quads=below.quads - (1 if axis is None else 0)
        )
        # A child without mass (which is public) is not divided: it is counted with all its loss.
        empty = curator.mass(made) == 0
        below = replace(
            below,
            halves=np.where(empty[:, None], 0, below.halves),
            quads=np.where(empty, 0, below.quads),
            now=np.where(empty, below.now + below.later, below.now),
            later=np.where(empty, 0, below.later),
        )
        cells, plan = Cells.join([cells[~which], made]), _Plan.join([plan[~which], below])
        is_due = ~plan.halves.any(axis=1) & (plan.quads == 0)
        done.append((cells[is_due], plan[is_due]))
        cells, plan = cells[~is_due], plan[~is_due]
    return Cells.join([each for each, _ in done]), _Plan.join([each for _, each in done])


def _each_label(curator: Curator, root: Cells) -> Cells:
    """The cells of each category of a layer over further axes, the last of which it is."""
    axis, done = next(axis for axis in curator.axes if axis.name == "category"), []
    cells = root
    # Halved until each cell is one label; then in the order of labels.
    while len(cells):
        assert cells.spans is not None  # of a layer over further axes
        first, stop = cells.spans[:, -2:].T
        several = stop - first > 1
        done.append(cells[~several])
        cells = cells[several]
        if len(cells):
            cells = curator.cut(cells, {axis.name: axis.lines(first[several], stop[several])})
    every = Cells.join(done)
    assert every.spans is not None
    return every[np.argsort(every.spans[:, -2])]


def _is_coarse(curator: Curator, of_slice: float) -> bool:
    """Whether leaves of the joint layer have several hours, of which a count of each says more."""
    time = curator.axes[0]
    if not isinstance(time, TimeAxis) or time.slices.by != "hour":
        return False
    # By as many halvings as time is ahead of space, few slices are told apart anyway.
    is_long = time.size > 2**CUBE_TIME_OFFSET
    return is_long and CUBE_TIMES_SIGNAL <= of_slice < CUBE_TIME_FIRST


def _count_slices(curator: Curator, *, has_labels: bool, loss: int) -> None:
    """Count each slice of all places, in a layer of its own: of each category, or of all."""
    root = curator.root([axis.name for axis in curator.axes])
    cells, done = _each_label(curator, root) if has_labels else root, []
    axis = curator.axes[0]
    while len(cells):
        assert cells.spans is not None  # of a layer over further axes
        first, stop = cells.spans[:, :2].T
        several = stop - first > 1
        done.append(cells[~several])
        cells = cells[several]
        if len(cells):
            cells = curator.cut(cells, {"time": axis.lines(first[several], stop[several])})
    each = Cells.join(done)
    curator.count(each, np.full(len(each), loss))


def _lengths(cells: Cells) -> NDArray[np.float64]:
    """Slices and categories, by which expected counts differ in a family of one area."""
    assert cells.spans is not None  # of a layer over further axes
    lengths = (cells.spans[:, 1::2] - cells.spans[:, 0::2]).astype(np.float64)
    product: NDArray[np.float64] = lengths.prod(axis=1)
    return product


method = Cube
