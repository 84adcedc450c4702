"""Named regions and unions of them: sums of whole nodes, what they share, and their clipped cells.

A polygon that differs from regions by up to a tolerance along outlines is their union. Of a cell
that the outline of its region cuts, only the part inside its region counts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, ranges, sum_by
from psd._util.instances import check_choice
from psd.errors import ParameterError
from psd.query.traversal import Fraction, Traversal, traverse
from psd.space.region_tree import RegionTree

if TYPE_CHECKING:
    from scipy import sparse

    from psd.space.domain import Domain
    from psd.space.region_tree import NamedLevel

__all__ = ["TOLERANCE", "is_clipped"]


# Ids that are compared with one that does not exist, for its message.
_MAX_SUGGESTIONS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedQueries:
    """Regions of a level, or unions of them."""

    tier: int  # level of the hierarchy
    rows: tuple[tuple[int, ...], ...]  # different regions of the level, for each query
    labels: tuple[str, ...]  # id of each query


def find_named_regions(
    tree: RegionTree, level: int | str | None, ids: Sequence[Any] | None
) -> NamedQueries:
    """Find regions of a level by their ids; all of them without ids."""
    tier = _tier(tree, level)
    named = tree.regions.levels[tier]
    rows = list(named.ids) if ids is None else list(ids)
    index = {name: number for number, name in enumerate(named.ids)}
    parts = [_parts(row) for row in rows]
    for name in itertools.chain.from_iterable(parts):
        if name not in index:
            _refuse_id(name, tree.regions.levels, tier)
    return NamedQueries(
        tier=tier,
        rows=tuple(tuple(index[name] for name in row) for row in parts),
        labels=tuple(row if isinstance(row, str) else " + ".join(row) for row in rows),
    )


def union_traversal(tree: RegionTree, queries: NamedQueries) -> Traversal:
    """Traverse unions of regions of a level.

    P1. No cell is cut: a union's estimate is the sum of its regions', its variance by the tree.
    """
    frame = tree.frame
    size = np.array([len(row) for row in queries.rows], np.int64)
    regions = np.concatenate([np.empty(0, np.int64), *map(np.array, queries.rows)])
    nodes = frame.named(queries.tier)[regions.astype(np.int64)]
    # A node of a level stands for the lowest regions below it.
    number = frame.stop[nodes] - frame.first[nodes]
    query = np.repeat(np.repeat(np.arange(len(size)), size), number)
    fraction = member_fraction(tree, query, ranges(frame.first[nodes], number))
    return traverse(tree, len(size), fraction)


def member_fraction(tree: RegionTree, query: Integers, region: Integers) -> Fraction:
    """Share of the lowest regions of each node in each query; query, region: (n,) int64, pairs."""
    frame, lowest = tree.frame, tree.regions.size
    # One key for each pair, ascending: the query first, then the lowest region.
    members = np.unique(query * lowest + region)

    def fraction(query: Integers, node: Integers) -> tuple[Floats, Floats]:
        first, stop = frame.first[node], frame.stop[node]
        # The regions below a node have numbers in a row, and so have their keys.
        ends = np.searchsorted(members, [query * lowest + first, query * lowest + stop])
        share = (ends[1] - ends[0]) / (stop - first)
        return share, share

    return fraction


def _tier(tree: RegionTree, level: int | str | None) -> int:
    """Index of a level by its name; the lowest one if none is given."""
    names = [named.name for named in tree.regions.levels]
    if level is None:
        return len(names) - 1
    check_choice("level", level, names, hint="region_parent of a build makes levels above")
    return names.index(str(level))


def _parts(row: Any) -> list[str]:
    """Ids of the regions of a query: one id, or several of a union."""
    parts = list(row) if isinstance(row, Iterable) and not isinstance(row, str) else [row]
    if not parts or len(set(parts)) < len(parts):
        raise ParameterError("ids must be an id, or a list of different ids, for each answer")
    return parts


def _refuse_id(name: Any, levels: Sequence[NamedLevel], tier: int) -> NoReturn:
    """Refuse an id that a level does not have; the message says what was probably meant."""
    level, text = levels[tier], str(name)[:80]
    others = [other.name for other in levels if other is not level and name in other.ids]
    first_ids = list(itertools.islice(level.ids, _MAX_SUGGESTIONS))
    closest = get_close_matches(text, first_ids, n=1)
    if name in [each.name for each in levels]:
        hint = f"query(level={text!r}) answers all regions of that level"
    elif others:
        hint = f"it is one of level {others[0]}"
    elif closest:
        hint = f"did you mean {closest[0][:80]!r}?"
    else:
        hint = f"the level has {len(level.ids):,} ids, the first is {first_ids[0][:80]!r}"
    raise ParameterError(
        f"ids must be those of level {level.name}, got {text!r}; {hint}", name="ids"
    )


TOLERANCE = 0.001
"""Share of the area of a polygon, and of that of each region, up to which they may differ."""

# Regions across the outline of a polygon that are cut first; one of them refutes most polygons.
_FIRST_PAIRS = 4


def with_unions(tree: RegionTree, shapes: NDArray[np.object_], cells: Fraction) -> Fraction:
    """Covered shares of polygons, (m,); unions cut no cell, `cells` measures the others."""
    # A union is answered by the counts of whole regions, without an error of cells that are cut.
    is_union, query, region = find_unions(tree, shapes)
    if not is_union.any():
        return cells
    regions = member_fraction(tree, query, region)

    def fraction(query: Integers, node: Integers) -> tuple[Floats, Floats]:
        share, area = np.empty(len(query)), np.empty(len(query))
        for chosen, measure in ((is_union[query], regions), (~is_union[query], cells)):
            pairs = np.flatnonzero(chosen)
            if len(pairs):
                share[pairs], area[pairs] = measure(query[pairs], node[pairs])
        return share, area

    return fraction


def find_unions(
    tree: RegionTree, shapes: NDArray[np.object_]
) -> tuple[NDArray[np.bool_], Integers, Integers]:
    """Find which polygons are unions of lowest regions, (m,) bool, and the pairs, (n,) int64 twice.

    P1. The area in which a union differs from its polygon is at most `TOLERANCE` of the polygon,
    and in each region at most `TOLERANCE` of the region. Areas in no region have no records and are
    not compared.
    """
    import shapely

    shapely.prepare(shapes)
    # Pairs of a polygon and a region that meet; covered regions need no measuring.
    query, region = tree.region_index.query(shapes, predicate="intersects")
    inside = shapely.covers(shapes[query], tree.region_shapes[region])
    differs, is_union = np.zeros(len(shapes)), np.ones(len(shapes), bool)
    limit = TOLERANCE * shapely.area(shapes)
    # A few regions across each outline first: they rule out most polygons.
    for pairs in _rounds(query, np.flatnonzero(~inside)):
        pairs = pairs[is_union[query[pairs]]]
        area = shapely.area(tree.region_shapes[region[pairs]])
        common = shapely.intersection(tree.region_shapes[region[pairs]], shapes[query[pairs]])
        covered = shapely.area(common)
        # A region belongs to the polygon that has more than half of it. What is wrong with that is
        # the smaller part, of which little may be lost in each region and in all of them.
        inside[pairs] = covered > area / 2
        wrong = np.minimum(covered, np.maximum(area - covered, 0.0))
        is_union[query[pairs[wrong > TOLERANCE * area]]] = False
        differs += sum_by(query[pairs], wrong, len(shapes))
        is_union &= differs <= limit
    member = np.flatnonzero(inside & is_union[query])
    return is_union, query[member], region[member]


def _rounds(query: Integers, pairs: Integers) -> tuple[Integers, Integers]:
    """A few pairs of each query, and the other ones."""
    pairs = pairs[np.argsort(query[pairs], kind="stable")]
    ordered = query[pairs]
    # Number of each pair among those of its query.
    number = np.arange(len(pairs)) - np.searchsorted(ordered, ordered)
    return pairs[number < _FIRST_PAIRS], pairs[number >= _FIRST_PAIRS]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NamedUnions:
    """Unions of regions of a level; see `psd.query.region_overlaps.Regions`."""

    tree: RegionTree
    queries: NamedQueries

    def __len__(self) -> int:
        return len(self.queries.rows)

    def traversals(self) -> Iterator[tuple[int, Traversal]]:
        """One traversal: unions stop at their regions, above all cells."""
        yield 0, union_traversal(self.tree, self.queries)

    def common_parts(self, node: Integers, first: Integers, second: Integers) -> Floats:
        """Nothing, since no leaf is cut."""
        return np.zeros((2, len(node)))

    def lines(self, region: Integers, node: Integers) -> None:
        """Nothing, since no leaf is cut."""

    def overlapping_pairs(self) -> Integers:
        """Unions with a region in common, the smaller number first."""
        from scipy import sparse

        member = self._members()
        # Numbers of regions that two unions have in common, above the diagonal.
        common = sparse.triu(member @ member.T, k=1).tocoo()
        return np.stack([common.row, common.col], axis=1).astype(np.int64)

    def lie_within(self, inner: Integers, outer: Integers) -> NDArray[np.bool_]:
        """Whether all regions of unions are regions of others."""
        member = self._members()
        size = member.sum(axis=1)[inner]
        inside: NDArray[np.bool_] = member[inner].multiply(member[outer]).sum(axis=1) == size
        return inside

    def _members(self) -> sparse.csr_array:
        """Regions of each union, shape (unions, regions)."""
        from scipy import sparse

        size = [len(row) for row in self.queries.rows]
        row = np.repeat(np.arange(len(size)), size)
        column = np.concatenate([np.empty(0, np.int64), *map(np.array, self.queries.rows)])
        shape = (len(size), len(self.tree.regions.levels[self.queries.tier].ids))
        return sparse.csr_array((np.ones(len(row), np.int64), (row, column)), shape=shape)


# Shares of a piece below which, and above one less which, it is taken as missed or covered:
# outlines that a query has in common with a region differ by rounding.
_ROUNDING = 1e-9

_TINY = 1e-300


def region_box_fraction(tree: RegionTree, boxes: Floats) -> Fraction:
    """Covered shares of nodes by boxes, (m, 4) in lattice units; even inside a region."""

    def fraction(query: Integers, node: Integers) -> tuple[Floats, Floats]:
        cell, box = tree.boxes[node].astype(np.float64), boxes[query]
        # The part of each cell in its box; its share by area holds unless the region ends there.
        part = np.concatenate(
            [np.maximum(cell[:, :2], box[:, :2]), np.minimum(cell[:, 2:], box[:, 2:])], axis=1
        )
        sides = np.maximum(part[:, 2:] - part[:, :2], 0.0)
        area: Floats = (sides / (cell[:, 2:] - cell[:, :2])).prod(axis=1)
        cut = (area > 0) & (area < 1)
        opened = cut & ~tree.is_leaf[node]
        area[opened] = 0.5  # any share between 0 and 1 opens a cell
        clipped = np.flatnonzero(cut & ~opened)
        area[clipped] = clipped_share(tree, node[clipped], part[clipped], area[clipped])
        return area, area

    return fraction


def clipped_share(tree: RegionTree, node: Integers, part: Floats, share: Floats) -> Floats:
    """Share of the area of leaves inside their regions that lies in parts, (n, 4), of their boxes.

    share: (n,) float64, of each box in its part: the answer for a leaf that is not clipped.
    """
    clipped = np.flatnonzero(is_clipped(tree, node))
    leaf, result = node[clipped], share.copy()
    inside = tree.regions.clipped_area(tree.region[leaf], part[clipped])
    total = tree.clipped_area[leaf]
    # A leaf without an area in its region has no share to measure, and keeps that of its box.
    measured = inside / np.maximum(total, _TINY)
    result[clipped] = _settle(np.where(total > 0, measured, share[clipped]))
    return result


def is_clipped(tree: RegionTree, node: Integers) -> NDArray[np.bool_]:
    """Which cells are not altogether inside their region."""
    return tree.clipped_area[node] < tree.area[node] * (1 - _ROUNDING)


class RegionPieces:
    """Polygons of the cells that are clipped, each made once."""

    def __init__(self, tree: RegionTree, domain: Domain) -> None:
        self._tree, self._domain = tree, domain
        self._regions = tree.region_shapes
        self._pieces: dict[int, Any] = {}

    def shares(self, shapes: NDArray[np.object_], query: Integers, node: Integers) -> Floats:
        """Share of clipped leaves inside their regions that polygons cover, (n,) float64."""
        import shapely

        # The pieces of cells that were not measured before are cut now, and kept.
        new = [leaf for leaf in np.unique(node).tolist() if leaf not in self._pieces]
        fresh = np.array(new, np.int64)
        boxes = shapely.box(*self._domain.from_lattice(self._tree.boxes[fresh]).T)
        cut = shapely.intersection(self._regions[self._tree.region[fresh]], boxes)
        self._pieces.update(zip(fresh.tolist(), cut.tolist(), strict=True))
        pieces = np.array([self._pieces[leaf] for leaf in node.tolist()], dtype=object)
        area = shapely.area(pieces)
        inside = shapely.area(shapely.intersection(pieces, shapes[query]))
        return _settle(inside / np.maximum(area, _TINY))


def _settle(share: Floats) -> Floats:
    """Shares in [0, 1], those near an end moved to it."""
    return np.where(share < _ROUNDING, 0.0, np.where(share > 1 - _ROUNDING, 1.0, share))
