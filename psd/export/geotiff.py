"""GeoTIFF: counts, densities and errors on a raster, for GIS programs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd.errors import MissingExtraError

if TYPE_CHECKING:
    from psd.statistics.raster import Raster

__all__ = ["SUFFIX", "write_raster"]

SUFFIX = ".tif"


def write_raster(raster: Raster, path: Path, tags: dict[str, str]) -> None:
    """Write the bands count, density and error; every cell has a value.

    Raises
    ------
    MissingExtraError
        If rasterio is not installed.
    """
    try:
        import rasterio
        from rasterio.io import MemoryFile
    except ImportError:
        raise MissingExtraError(
            f"output {path.name} needs rasterio; install psd-publisher[raster], or write an array "
            "(.npy)",
            extra="raster",
        ) from None
    rows, columns = raster.count.shape
    west, south, east, north = raster.bounds
    counted_unit = "users" if tags.get("counts", "").startswith("users") else "records"
    bands = {
        "count": (raster.count, counted_unit),
        "density": (raster.density, f"{counted_unit} per {raster.unit}"),
        "error": (raster.error, counted_unit),
    }
    profile = dict(  # noqa: C408
        driver="GTiff",
        width=columns,
        height=rows,
        count=len(bands),
        dtype="float64",
        crs=raster.crs,
        transform=rasterio.Affine(
            (east - west) / columns, 0.0, west, 0.0, (south - north) / rows, north
        ),
        nodata=float("nan"),
        compress="deflate",
    )
    # In memory first: GDAL itself does not report a full disk.
    with MemoryFile() as memory:
        with memory.open(**profile) as image:
            _fill(image, bands, tags)
        path.write_bytes(memory.getbuffer())


def _fill(
    image: Any, bands: Mapping[str, tuple[NDArray[np.float64], str]], tags: dict[str, str]
) -> None:
    """Write bands with their names and units, and the tags."""
    for number, (name, (band, unit)) in enumerate(bands.items(), start=1):
        image.write(band, number)
        image.set_band_description(number, name)
        image.set_band_unit(number, unit)
    image.update_tags(**tags)
