"""Regions of a choice: public polygons by their ids, and a public order of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from psd.errors import InputDataError, ParameterError
from psd.publish.bounds_text import bounds_from_file
from psd.regions.files import read_polygons
from psd.regions.hierarchy import RegionHierarchy
from psd.regions.inputs import RegionFiles
from psd.space.domain import Domain

__all__ = ["read_order", "read_public_regions"]


def read_public_regions(
    path: str,
    *,
    crs: str = "EPSG:4326",
    bounds: tuple[float, float, float, float] | None = None,
    ids: str = "id",
) -> RegionHierarchy:
    """Read polygons of one level; records in none of them, or beyond the bounds, do not count."""
    if bounds is None:
        bounds = bounds_from_file(path, crs)
    domain = Domain(bounds=bounds, crs=crs, min_cell=None)
    return RegionFiles(paths=(path,), ids=(ids,), gaps="outside").read(domain)


def read_order(
    path: str, column: str, regions: RegionHierarchy, *, ids: str = "id"
) -> tuple[int, ...]:
    """Numbers of the regions in ascending order of a column of numbers, such as a distance."""
    table = read_polygons(Path(path), "regions")
    if column not in table.columns:
        raise InputDataError(f"regions {path} has no column {column}; name one with order=")
    number_of = {str(name): value for name, value in zip(table[ids], table[column], strict=True)}
    values = np.array([_number(number_of.get(name)) for name in regions.levels[-1].ids])
    if not np.isfinite(values).all():
        name = regions.levels[-1].ids[int((~np.isfinite(values)).argmax())]
        raise ParameterError(
            f"order must be a column with a number for each region, got none for {name[:80]!r}"
        )
    ascending = np.argsort(values, kind="stable")
    if (np.diff(values[ascending]) == 0).any():
        raise ParameterError(
            f"order must be a column without ties, got two regions with one number in {column!r}"
        )
    return tuple(ascending.tolist())


def _number(value: object) -> float:
    """Number of a field; NaN for anything else."""
    try:
        return float(str(value))
    except ValueError:
        return np.nan
