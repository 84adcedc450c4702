"""NumPy array: counts, densities and errors on a raster, for scripts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from psd.statistics.raster import Raster


SUFFIX = ".npy"


def write_raster(raster: Raster, path: Path, tags: dict[str, str]) -> None:
    """Write (3, rows, columns): count, density, error, from the north; without bounds, CRS or tags.

    Where the raster says which counts are reliable, a fourth layer does so with 1 and 0, and a
    fifth one has their classes: 1 good, 2 use with care, 3 poor.
    """
    layers = [raster.count, raster.density, raster.error]
    marks = (raster.reliable, raster.quality)
    layers += [mark.astype(np.float64) for mark in marks if mark is not None]
    with path.open("wb") as file:
        np.save(file, np.stack(layers), allow_pickle=False)
