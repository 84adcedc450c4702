"""Arrays of NumPy: what comes back."""

import numpy as np

from psd.statistics.raster import density_raster
from support.trees import SOUTH_UP, grid_release


def test_arrays_come_back(tmp_path):
    release = grid_release(SOUTH_UP)
    release.export(tmp_path / "r.npy", size=(3, 4))
    expected = density_raster(release.index.fit, 3, 4)
    found = np.load(tmp_path / "r.npy")
    assert np.array_equal(found, [expected.count, expected.density, expected.error])
    release.export(tmp_path / "default.npy")
    assert np.load(tmp_path / "default.npy").shape == (3, 256, 256)
