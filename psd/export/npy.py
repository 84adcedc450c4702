"""NumPy array: counts, densities and errors on a raster, for scripts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from psd.statistics.raster import Raster


SUFFIX = ".npy"


def write_raster(raster: Raster, path: Path, tags: dict[str, str]) -> None:
    """Write count, density, error, then marks if any: (3 to 5, rows, columns), from the north."""
    layers = [raster.count, raster.density, raster.error]
    # Reliable 1, else 0; quality 1 good, 2 use with care, 3 poor.
    marks = (raster.reliable, raster.quality)
    layers += [mark.astype(np.float64) for mark in marks if mark is not None]
    with path.open("wb") as file:
        np.save(file, np.stack(layers), allow_pickle=False)
