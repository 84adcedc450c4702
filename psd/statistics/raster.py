"""Density rasters: records in equal cells over the domain, with their errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd.space.ground_areas import area_unit, ground_areas, ground_densities
from psd.statistics.overlay import raster_overlay

if TYPE_CHECKING:
    from psd.estimation.model import CountModel

__all__ = ["Raster", "density_raster"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Raster:
    """Counts and errors of the cells of a raster; the first row is in the north.

    Guarantees
    ----------
    - The counts sum to the total of the release, to rounding, and equal the answers of
      `Release.query` for the cells; so do the errors.

    Parameters
    ----------
    count : ndarray, shape (rows, columns), float64
        Estimated records in each cell.
    density : ndarray, shape (rows, columns), float64
        Records per unit of area on the ground; NaN where there is none.
    perturbation_error, nonuniformity_error, error : ndarray, shape (rows, columns), float64
        Predicted standard deviations of the counts, in records.
    unit : {"km2", "square unit"}
        Unit of area; the latter for a local CRS.
    bounds : tuple of float
        West, south, east, north.
    crs : str
        Of the bounds.
    reliable : ndarray of bool, shape (rows, columns), optional
        Whether a count is reliable, in exports that mark it.
    quality : ndarray of int64, shape (rows, columns), optional
        Class of a count, in exports that mark it: 1 good, 2 use with care, 3 poor.
    """

    count: Floats
    density: Floats
    perturbation_error: Floats
    nonuniformity_error: Floats
    error: Floats
    unit: str
    bounds: tuple[float, float, float, float]
    crs: str
    reliable: NDArray[np.bool_] | None = None
    quality: Integers | None = None


def density_raster(model: CountModel, columns: int, rows: int) -> Raster:
    """Count records in equal cells; see `Release.to_xarray`.

    Guarantees
    ----------
    - The counts sum to the total of the release, up to rounding.

    Raises
    ------
    ParameterError
        If the size is out of range.
    """
    overlay = raster_overlay(model, columns, rows)
    count = overlay.counts()
    noise, spread = overlay.perturbation_variance(), overlay.nonuniformity_variance()
    density = ground_densities(count, ground_areas(model.domain, overlay.boxes))
    bands = (count, density, np.sqrt(noise), np.sqrt(spread), np.sqrt(noise + spread))
    # The overlay counts rows from the south, images from the north.
    images = [band.reshape(rows, columns)[::-1] for band in bands]
    for image in images:
        image.flags.writeable = False
    return Raster(
        count=images[0],
        density=images[1],
        perturbation_error=images[2],
        nonuniformity_error=images[3],
        error=images[4],
        unit=area_unit(model.domain),
        bounds=model.domain.bounds,
        crs=model.domain.crs,
    )
