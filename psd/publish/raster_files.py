"""Read rasters from files: NumPy arrays and ASCII grids directly, all others by rasterio."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd._util.extras import install_text
from psd.errors import DomainError, InputDataError, MissingExtraError, PsdError
from psd.regions.files import refuse_pointers
from psd.space.crs import parse_crs

if TYPE_CHECKING:
    from psd.space.domain import Domain

__all__ = ["RASTERS", "read_raster"]

RASTERS = (".npy", ".asc", ".tif", ".tiff")
"""Endings of raster files."""

Bounds = tuple[float, float, float, float]

_GRID = ("ncols", "nrows", "xllcorner", "yllcorner", "cellsize")


def read_raster(path: Path, domain: Domain) -> tuple[NDArray[Any], Bounds | None]:
    """Read a raster file: values, the first row in the north, and bounds if it states them.

    ``.npy`` is two-dimensional, over the bounds of the domain; ``.asc`` is an ESRI ASCII grid with
    its CRS in a ``.prj`` file beside it; other endings are formats of rasterio. The raster must be
    in the CRS of the domain. Cells without data get the density 0.
    """
    if not os.path.isfile(path):
        raise InputDataError(f"covariate {path} does not exist or is not a file")
    suffix = path.suffix.lower()
    try:
        if suffix == ".npy":
            return np.load(path, allow_pickle=False), None
        return _read_grid(path, domain) if suffix == ".asc" else _read_image(path, domain)
    except PsdError:  # a refusal, most of which are ValueErrors too
        raise
    except (ValueError, OSError, EOFError):
        raise InputDataError(f"covariate {path} cannot be read as a raster") from None


def _read_grid(path: Path, domain: Domain) -> tuple[NDArray[Any], Bounds]:
    """Read an ESRI ASCII grid."""
    sidecar = path.with_suffix(".prj")
    _check_crs(path, sidecar.read_text(encoding="utf-8") if sidecar.is_file() else None, domain)
    with path.open(encoding="ascii") as file:
        lines = file.read().splitlines()
    words = [line.split() for line in lines[:6]]
    head = {
        pair[0].lower(): float(pair[1]) for pair in words if len(pair) == 2 and pair[0][0] > "9"
    }
    if missing := [name for name in _GRID if name not in head]:
        raise InputDataError(f"covariate {path} has no {missing[0]} in its first lines")
    columns, rows, west, south, cell = (head[name] for name in _GRID)
    if not cell > 0:
        raise ValueError("cellsize")
    text = " ".join(lines[len(head) :])
    values = np.array(text.split(), float).reshape(int(rows), int(columns))
    if "nodata_value" in head:
        values = np.where(values == head["nodata_value"], 0.0, values)
    return values, (west, south, west + columns * cell, south + rows * cell)


def _read_image(path: Path, domain: Domain) -> tuple[NDArray[Any], Bounds]:
    """Read the first band of a GeoTIFF or another format of rasterio."""
    try:
        import rasterio
        from rasterio.errors import RasterioError
    except ImportError:
        raise MissingExtraError(
            f"covariate {path} needs rasterio; {install_text('raster')}, or give an "
            "array (.npy) or an ASCII grid (.asc)",
            extra="raster",
        ) from None
    refuse_pointers(Path(path), "covariate")
    try:
        with rasterio.open(path) as image:
            _check_crs(path, image.crs.to_wkt() if image.crs else None, domain)
            if image.transform.b or image.transform.d or image.transform.e >= 0:
                raise InputDataError(f"covariate {path} is rotated or upside down; warp it first")
            return image.read(1, masked=True).filled(0), tuple(image.bounds)
    except RasterioError:
        raise InputDataError(f"covariate {path} cannot be read as a raster") from None


def _check_crs(path: Path, text: str | None, domain: Domain) -> None:
    """Refuse a raster whose CRS is missing, or not that of the domain."""
    if text is None:
        raise DomainError(f"covariate {path} has no CRS; assign it, since it is never guessed")
    try:
        actual, expected = parse_crs(text), parse_crs(domain.crs)
    except DomainError as error:
        raise DomainError(f"covariate {path}: {error}") from None
    codes = actual.to_authority(min_confidence=70), expected.to_authority(min_confidence=70)
    if actual != expected and (codes[0] is None or codes[0] != codes[1]):
        raise DomainError(
            f"covariate {path} is in {actual.name}, the release in {domain.crs}; warp it first"
        )
