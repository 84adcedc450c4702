"""GeoTIFF, Cloud Optimized for reading over a network: counts, densities, errors of a raster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psd._util.colours import class_breaks, class_colours
from psd.export._formats import counted_unit

if TYPE_CHECKING:
    from psd._util.arrays import Floats
    from psd.statistics.raster import Raster


SUFFIX = ".tif"

NEEDS = ("raster", "rasterio", "an array (.npy)")

BANDS = ("count", "density", "error", "classes")
"""Bands that a file may have alone; ``classes`` are those of the density, with a colour table."""


_MARKS = ("reliable", "quality")

_QUALITY = "1 good, 2 use with care, 3 poor"


def write_raster(
    raster: Raster, path: Path, tags: dict[str, str], *, band: str | None = None
) -> None:
    """Write all bands of the raster, or one by its name; ``classes`` have their colours."""
    import rasterio
    from rasterio.io import MemoryFile

    rows, columns = raster.count.shape
    west, south, east, north = raster.bounds
    bands = _bands(raster, tags)
    breaks = class_breaks(raster.density)
    if band == "classes":
        # The number of the class of each density, from 1; 0 where there is none.
        has_density, limits = np.isfinite(raster.density), ", ".join(f"{x:g}" for x in breaks)
        numbers = np.where(has_density, 1 + np.digitize(raster.density, breaks), 0)
        meaning = f"classes of {bands['density'][1]}, divided at {limits}"
        bands = {"classes": (numbers.astype(np.uint8), meaning)}
    # QGIS shows a single band as a ramp of grey, and three bands as red, green and blue.
    elif band is not None:
        bands = {name: bands[name] for name in bands if name in (band, *_MARKS)}
    classed = band == "classes"
    # Of classes a mean has no meaning, so overviews take the nearest.
    profile = dict(  # noqa: C408
        driver="COG",
        width=columns,
        height=rows,
        count=len(bands),
        dtype="uint8" if classed else "float64",
        crs=raster.crs,
        transform=rasterio.Affine(
            (east - west) / columns, 0.0, west, 0.0, (south - north) / rows, north
        ),
        nodata=0 if classed else float("nan"),
        compress="deflate",
        overview_resampling="nearest" if classed else "average",
    )
    # In memory first: GDAL itself does not report a full disk.
    with MemoryFile() as memory:
        with memory.open(**profile) as image:
            _fill(image, bands, tags)
            if classed:
                table = {0: (0, 0, 0, 0)}  # transparent
                for number, colour in enumerate(class_colours(len(breaks) + 1), start=1):
                    table[number] = (*bytes.fromhex(colour[1:]), 255)
                image.write_colormap(1, table)
        path.write_bytes(memory.getbuffer())


def _bands(raster: Raster, tags: dict[str, str]) -> dict[str, tuple[Any, str]]:
    """Values and unit of each band, by name."""
    unit = counted_unit(tags.get("counts", ""))
    bands: dict[str, tuple[Any, str]] = {
        "count": (raster.count, unit),
        "density": (raster.density, f"{unit} per {raster.unit}"),
        "error": (raster.error, unit),
    }
    for name, values in raster.values.items():
        if not name.endswith(("_perturbation_error", "_nonuniformity_error")):
            bands[name] = (values, _QUALITY if name.endswith("_quality") else "")
    if raster.reliable is not None:
        bands["reliable"] = (raster.reliable.astype(np.float64), "1 reliable, 0 not")
    if raster.quality is not None:
        bands["quality"] = (raster.quality.astype(np.float64), _QUALITY)
    return bands


def _fill(image: Any, bands: dict[str, tuple[Floats, str]], tags: dict[str, str]) -> None:
    """Write bands with their names, units and statistics, and the tags."""
    from rasterio.enums import ColorInterp

    for number, (name, (band, unit)) in enumerate(bands.items(), start=1):
        image.write(band, number)
        image.set_band_description(number, name)
        image.set_band_unit(number, unit)
        image.update_tags(number, **_statistics(band))
    if "classes" not in bands:
        image.colorinterp = [ColorInterp.gray] + [ColorInterp.undefined] * (len(bands) - 1)
    image.update_tags(**tags)


def _statistics(band: Floats) -> dict[str, str]:
    """Statistics of a band under the names of GDAL, so that programs need not read it first."""
    values = band[np.isfinite(band)].astype(np.float64)
    if not len(values):
        return {}
    figures = {
        "MINIMUM": values.min(),
        "MAXIMUM": values.max(),
        "MEAN": values.mean(),
        "STDDEV": values.std(),
        "VALID_PERCENT": 100 * len(values) / band.size,
    }
    return {f"STATISTICS_{name}": f"{value:.15g}" for name, value in figures.items()}
