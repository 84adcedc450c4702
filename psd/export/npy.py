"""NumPy array: counts, densities and errors on a raster, for scripts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from psd.statistics.raster import Raster

__all__ = ["SUFFIX", "write_raster"]

SUFFIX = ".npy"


def write_raster(raster: Raster, path: Path, tags: dict[str, str]) -> None:
    """Write shape (3, rows, columns): count, density, error, the first row in the north.

    The file holds no bounds, CRS or tags; they are those of the release.
    """
    with path.open("wb") as file:
        np.save(file, np.stack([raster.count, raster.density, raster.error]), allow_pickle=False)
