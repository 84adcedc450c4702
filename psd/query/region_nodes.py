"""Named regions and unions of them: answers are sums of whole nodes, without partial cells."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from psd._util.arrays import Floats, Integers, ranges
from psd.errors import ParameterError
from psd.query.traversal import Fraction, Traversal, traverse
from psd.space.region_tree import RegionTree

if TYPE_CHECKING:
    from psd.space.region_frame import NamedLevel

__all__ = [
    "NamedQueries",
    "find_named_regions",
    "member_fraction",
    "union_traversal",
]

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
        labels=tuple(map(_label, rows)),
    )


def union_traversal(tree: RegionTree, queries: NamedQueries) -> Traversal:
    """Traverse unions of regions of a level.

    P1. No cell is cut: the estimate of a union is the sum of those of its regions, and its variance
    has the covariance of the tree.
    """
    frame = tree.frame
    size = np.array([len(row) for row in queries.rows], np.int64)
    regions = np.concatenate([np.empty(0, np.int64), *map(np.array, queries.rows)])
    nodes = frame.named(queries.tier)[regions.astype(np.int64)]
    number = frame.stop[nodes] - frame.first[nodes]
    query = np.repeat(np.repeat(np.arange(len(size)), size), number)
    fraction = member_fraction(tree, query, ranges(frame.first[nodes], number))
    return traverse(tree, len(size), fraction)


def member_fraction(tree: RegionTree, query: Integers, region: Integers) -> Fraction:
    """Share of the lowest regions of each node that are in each query.

    query, region: (n,) int64, query and lowest region of each pair.
    """
    frame, lowest = tree.frame, tree.regions.size
    members = np.unique(query * lowest + region)

    def fraction(query: Integers, node: Integers) -> tuple[Floats, Floats]:
        first, stop = frame.first[node], frame.stop[node]
        ends = np.searchsorted(members, [query * lowest + first, query * lowest + stop])
        share = (ends[1] - ends[0]) / (stop - first)
        return share, share

    return fraction


def _tier(tree: RegionTree, level: int | str | None) -> int:
    """Index of a level by its name; the lowest one if none is given."""
    names = [named.name for named in tree.regions.levels]
    if level is None:
        return len(names) - 1
    if not isinstance(level, str) or level not in names:
        raise ParameterError(
            f"level must be one of {', '.join(names)}, got {str(level)[:80]!r}", name="level"
        )
    return names.index(level)


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


def _label(row: Any) -> str:
    """Id of an answer: that of its region, or those of a union with plus signs between them."""
    return row if isinstance(row, str) else " + ".join(row)
