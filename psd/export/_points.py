"""Synthetic points as tables, batch by batch, and their files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psd._util.arrays import Floats, Integers
from psd._util.atomic_write import temporary_target
from psd._util.declared_parameters import integer_between
from psd.errors import ParameterError, WriteError
from psd.export._formats import find_format, point_suffixes
from psd.query.cube_views import WindowCounts
from psd.query.index import fitted
from psd.regions.hierarchy import RegionHierarchy
from psd.space.crs import parse_crs
from psd.space.region_tree import RegionTree
from psd.space.shape_transforms import transform_table
from psd.statistics.points import draw_points, point_generator, share_out, whole_counts

if TYPE_CHECKING:
    import geopandas

    from psd.query.index import QueryIndex


MOST_HELD, MOST_WRITTEN = 10**7, 10**9
"""Most points of a table in memory, about 2 GB, and of a file."""

_NOTE = (
    "drawn from the estimates of the release, no people and no records; they carry the error of "
    "the release and an error of drawing; intervals come from psd query alone"
)

# Columns that are no level of regions.
_OWN = ("slice", "release_source", "x", "y", "geometry")


def point_tables(
    slices: Mapping[str, QueryIndex],
    number: int | None,
    seed: int | None,
    *,
    most: int,
    metadata: Mapping[str, str],
) -> Iterator[geopandas.GeoDataFrame]:
    """Tables of points, one after the other, at least one; see `Release.to_points`.

    `slices` are those of a series by their names; a release without time has no name.
    """
    import geopandas as gpd
    import pandas as pd
    import shapely

    first = next(iter(slices.values())).record
    regions = first.tree.regions if isinstance(first.tree, RegionTree) else None
    assert regions is None or isinstance(regions, RegionHierarchy)  # as in every release
    levels = () if regions is None else regions.levels
    for level in levels:
        if level.name in _OWN:
            raise ParameterError(
                f"levels must have other names than {', '.join(_OWN)} to be columns of points, "
                f"got {level.name!r}; rename the level before the build"
            )
    if number is not None:
        number = integer_between(1, MOST_WRITTEN)("n", number)
        _check_size(number, most, "n must be")
    if seed is not None:
        seed = integer_between(0, 2**63 - 1)("seed", seed)
    crs = parse_crs(first.domain.crs)

    ids = [pd.array(list(level.ids), dtype="str") for level in levels]
    above = [regions.ancestors(which) for which in range(len(levels))] if regions else []
    facts = {"content": "points", "points": _NOTE, **metadata}

    def table(name: str, region: Integers, x: Floats, y: Floats) -> geopandas.GeoDataFrame:
        columns: dict[str, Any] = {}
        if name:
            columns["slice"] = _same(name, len(x))
        for level, names, of_lowest in zip(levels, ids, above, strict=True):
            columns[level.name] = names.take(of_lowest[region])
        if first.source != "curator":
            columns["release_source"] = _same(first.source, len(x))
        shapes = shapely.points(np.stack([x, y], axis=1))  # in half the time of two arrays
        made = gpd.GeoDataFrame(columns, geometry=shapes, crs=crs)
        made.attrs = facts
        return made

    generator, drawn = point_generator(seed), 0
    parts: list[int | None] = [None] * len(slices)
    if number is not None:
        totals = np.array([index.total for index in slices.values()])
        if not totals.any():
            raise ParameterError(
                f"n must be left out, got {number:,}; the release has an estimate of 0 records, "
                "which are nowhere"
            )
        parts = share_out(number, totals, generator).tolist()
    # Those of a cube are made one after the other.
    is_cube = isinstance(slices, WindowCounts)
    indices = slices.values() if is_cube else fitted(list(slices.values()))
    for name, part, index in zip(slices, parts, indices, strict=True):
        tree, whole = index.record.tree, whole_counts(index.fit, part, generator)
        drawn += int(whole[0])
        _check_size(drawn, most, "n must be given, and")
        for batch in draw_points(index.fit, whole, generator):
            region = tree.region[batch.leaf] if isinstance(tree, RegionTree) else batch.leaf
            yield table(name, region.astype(np.int64), batch.x, batch.y)
    if not drawn:
        yield table(next(iter(slices)), np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


def _same(text: str, number: int) -> Any:
    """Column of one text."""
    import pandas as pd

    return pd.array([text], dtype="str").take(np.zeros(number, np.int64))


def _check_size(number: int, most: int, subject: str) -> None:
    """Refuse more points than fit."""
    if number <= most:
        return
    room, other = "a table in memory", "; export writes them to a file, batch by batch"
    if most == MOST_WRITTEN:
        room, other = "a file", ""
    raise ParameterError(f"{subject} at most {most:,} for {room}, got {number:,} points{other}")


def export_points(
    tables: Iterable[geopandas.GeoDataFrame],
    path: str | os.PathLike[str],
    *,
    crs: Any,
    overwrite: bool,
) -> int:
    """Write tables of points to a file; number of points. see `Release.export`."""
    suffixes, suffix = point_suffixes(), Path(path).suffix.lower()
    if "://" in str(path) or suffix not in suffixes:
        got = "a database" if "://" in str(path) else f"the ending {suffix!r}"
        raise ParameterError(
            f"output must end in one of {', '.join(suffixes)} to hold points, got {got}"
        )
    writer = find_format(path)
    fixed = getattr(writer, "FIXED_CRS", "release")
    if crs is not None and not (
        fixed == "release" or parse_crs(crs).equals(parse_crs(fixed), ignore_axis_order=True)
    ):
        raise ParameterError(
            f"crs must be {fixed}, or left out, if output ends in {writer.SUFFIX}, got {crs!r}"
        )
    rows = 0

    def moved() -> Iterator[geopandas.GeoDataFrame]:
        nonlocal rows
        for table in tables:
            rows += len(table)
            yield table if crs is None else transform_table(table, crs)

    with temporary_target(path, overwrite=overwrite) as target:
        try:
            writer.write_points(moved(), target)
        except RuntimeError as error:  # what GDAL's writers raise
            raise WriteError(f"cannot write {path}: {error}") from None
    return rows
