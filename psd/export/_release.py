"""Write a release in one of the formats."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from psd._util.atomic_write import temporary_target
from psd._util.declared_parameters import choice
from psd.errors import ParameterError, WriteError
from psd.estimation.fit import Fit, fit
from psd.export._cells import (
    cell_tables,
    cells_table,
    check_treatment,
    judge_raster,
    select_cells,
    treat_unreliable,
)
from psd.export._formats import (
    density_unit,
    find_format,
    is_database,
    is_raster,
    release_metadata,
)
from psd.query.answer_table import Threshold, reliability_limits
from psd.query.cube_views import window_index
from psd.query.index import CubeIndex
from psd.release.cube import WindowRecord
from psd.release.record import ReleaseRecord
from psd.release.schema import check_shown
from psd.space.crs import parse_crs
from psd.space.shape_transforms import transform_table

if TYPE_CHECKING:
    import geopandas

    from psd.statistics.raster import Raster


_SIZE = (256, 256)

# Records whose cells are written one after the other, each with columns of its names.
_Shown = Sequence[tuple[Mapping[str, str], ReleaseRecord]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choices:
    """What a caller chooses about the content of an export."""

    cells: str
    level: int | str | None
    size: tuple[int, int] | None
    band: str | None
    crs: Any
    unreliable: str
    threshold: Threshold


def export_release(
    record: ReleaseRecord,
    path: str | os.PathLike[str],
    *,
    cells: Literal["leaves", "all"] = "leaves",
    level: int | str | None = None,
    size: tuple[int, int] | None = None,
    band: str | None = None,
    crs: Any = None,
    unreliable: Literal["keep", "mark", "drop"] = "keep",
    threshold: Threshold = 0.3,
    table: str | None = None,
    digest: str = "",
    parts: Sequence[tuple[Mapping[str, str], WindowRecord]] = (),
    overwrite: bool = False,
) -> int:
    """Write the cells of a release; number of those left out; see `Release.export`.

    `digest` is the SHA-256 of the content of the release file, for the metadata of the export.
    `parts` are written in place of a view of a cube, if there are any: other views of it, each with
    columns of its names.
    """
    if type(record) not in (ReleaseRecord, WindowRecord):
        raise ParameterError(f"record must be ReleaseRecord, got {type(record).__name__}")
    check_shown(record)
    cube = record.cube if isinstance(record, WindowRecord) else None
    if any(part.cube is not cube for _, part in parts):
        raise ParameterError("parts must be views of the cube of the record")
    shown: _Shown = parts or [({}, record)]
    limits = check_treatment(unreliable, threshold)
    writer = find_format(path)
    choices = _Choices(
        cells=cells,
        level=level,
        size=size,
        band=band,
        crs=crs,
        unreliable=unreliable,
        threshold=threshold,
    )
    _check_choices(writer, record, choices)
    if parts:
        check_parts(writer, len(parts) * len(select_cells(record.tree, cells, level)))
    tags = {
        **release_metadata(record, digest),
        **limits.texts,
        "unreliable": unreliable,
    }
    if is_database(writer):
        rows, dropped = _cells_of(shown, choices, tags)
        writer.write_database(rows, path, table=table, tags=tags, overwrite=overwrite)
        return dropped
    if table is not None:
        raise ParameterError(
            f"table must be left out unless output is postgresql://..., got {table!r}; output is "
            "a file"
        )
    with temporary_target(path, overwrite=overwrite) as target:
        try:
            if is_raster(writer):
                only = {} if band is None else {"band": band}
                [(_, made)] = _fits_of(shown)
                raster = _raster_of(made, choices)
                dropped = int(np.isnan(raster.count).sum())
                writer.write_raster(raster, target, tags, **only)
            elif hasattr(writer, "write_parts") and crs is None:
                # In another CRS, sides that cells share are divided alike in the whole table alone.
                rows = _Parts(shown, choices, tags)
                writer.write_parts(rows, target)
                dropped = rows.dropped
            else:
                table_of_cells, dropped = _cells_of(shown, choices, tags)
                writer.write(table_of_cells, target)
        except RuntimeError as error:  # what GDAL's writers raise
            raise WriteError(f"cannot write {path}: {error}") from None
    return dropped


MOST_ROWS = 1_000_000
"""Rows of an export of several views: 200 MB of CSV, 280 of GeoPackage, 530 of GeoJSON."""


def _fits_of(shown: _Shown) -> Iterator[tuple[Mapping[str, str], Fit]]:
    """Fits of records, made anew, so that nobody's numbers are exported in their stead."""
    cube: CubeIndex | None = None
    for label, record in shown:
        if not isinstance(record, WindowRecord):
            yield label, fit(record)
            continue
        cube = CubeIndex(record=record.cube) if cube is None else cube
        yield label, window_index(cube, record).fit


def check_parts(writer: ModuleType, rows: int) -> None:
    """Refuse several views in one file, of so many rows together, if it has no place for them."""
    if is_raster(writer) or writer.SUFFIX == ".pmtiles":
        raise ParameterError(
            f"each must be left out if output ends in {writer.SUFFIX}, which has one number for "
            "each place; tables have a row for each, such as .csv or .gpkg",
            name="each",
        )
    if rows > MOST_ROWS:
        raise ParameterError(
            f"each must give at most {MOST_ROWS:,} rows, got {rows:,}; choose another level, or a "
            "shorter window",
            name="each",
        )


def _check_choices(writer: ModuleType, record: ReleaseRecord, choices: _Choices) -> None:
    """Refuse what the format cannot hold."""
    if choices.size is not None and not is_raster(writer):
        raise ParameterError(
            f"size must be left out unless output is a raster, got {choices.size}; the format is "
            "a table of cells"
        )
    if choices.cells != "leaves" and is_raster(writer):
        raise ParameterError(
            f"cells must be leaves if output is a raster, got {choices.cells!r}; a raster has no "
            "levels"
        )
    if choices.level is not None and is_raster(writer):
        raise ParameterError(
            f"level must be left out if output is a raster, got {choices.level!r}; --size sets its "
            "cells"
        )
    bands = getattr(writer, "BANDS", None)
    if choices.band is not None:
        if bands is None:
            raise ParameterError(
                f"band must be left out unless output is a GeoTIFF (.tif), got {choices.band!r}"
            )
        choice(*bands, *(f"mean_{value.name}" for value in record.values))("band", choices.band)
    if choices.crs is None:
        return
    if is_raster(writer):
        raise ParameterError(
            f"crs must be left out if output is a raster, got {choices.crs!r}; a raster is in the "
            "CRS of the release, since counts cannot be resampled"
        )
    fixed = getattr(writer, "FIXED_CRS", None)
    if fixed is None:
        return
    only = record.domain.crs if fixed == "release" else fixed
    if not parse_crs(choices.crs).equals(parse_crs(only), ignore_axis_order=True):
        of_release = ", that of the release" if fixed == "release" else ""
        raise ParameterError(
            f"crs must be {only}{of_release}, or left out, if output ends in {writer.SUFFIX}, got "
            f"{choices.crs!r}"
        )


def _cells_of(
    shown: _Shown, choices: _Choices, tags: dict[str, str]
) -> tuple[geopandas.GeoDataFrame, int]:
    """Table of cells, in its CRS, with its metadata; and how many are left out."""
    import pandas as pd

    parts, dropped = [], 0
    for label, made in _fits_of(shown):
        every = cells_table(made, choices.cells, level=choices.level, threshold=choices.threshold)
        cells = treat_unreliable(_labelled(every, label), choices.unreliable, choices.threshold)
        dropped += len(every) - len(cells)
        parts.append(cells if choices.crs is None else transform_table(cells, choices.crs))
    cells = parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)
    cells.attrs = _facts(shown[0][1], tags)
    return cells, dropped


def _labelled(cells: geopandas.GeoDataFrame, label: Mapping[str, str]) -> geopandas.GeoDataFrame:
    """Cells with columns after their number and their level."""
    for place, (name, text) in enumerate(label.items(), 2):
        cells.insert(place, name, text)
    return cells


class _Parts:
    """Tables of some cells each, one after the other, and how many cells are left out."""

    def __init__(self, shown: _Shown, choices: _Choices, tags: dict[str, str]) -> None:
        self._shown, self._choices, self._facts = shown, choices, _facts(shown[0][1], tags)
        self.dropped = 0

    def __iter__(self) -> Iterator[geopandas.GeoDataFrame]:
        choices, threshold = self._choices, self._choices.threshold
        for label, made in _fits_of(self._shown):
            for every in cell_tables(made, choices.cells, level=choices.level, threshold=threshold):
                cells = treat_unreliable(_labelled(every, label), choices.unreliable, threshold)
                self.dropped += len(every) - len(cells)
                cells.attrs = self._facts
                yield cells


def _facts(record: ReleaseRecord, tags: dict[str, str]) -> dict[str, str]:
    """What a table of cells states."""
    return {"content": "cells", **tags, "density_unit": density_unit(record)}


def _raster_of(fit: Fit, choices: _Choices) -> Raster:
    """Raster of counts, without what is left out."""
    from psd.statistics.raster import density_raster

    raster = density_raster(fit, *(choices.size or _SIZE), choices.threshold)
    if choices.unreliable == "keep":
        return raster
    reliability = judge_raster(raster, reliability_limits(choices.threshold))
    if choices.unreliable == "mark":
        return replace(raster, reliable=reliability.reliable, quality=reliability.rank + 1)
    count, density, error, *others = (
        np.where(reliability.reliable, band, np.nan)
        for band in (raster.count, raster.density, raster.error, *raster.values.values())
    )
    values = dict(zip(raster.values, others, strict=True))
    return replace(raster, count=count, density=density, error=error, values=values)
