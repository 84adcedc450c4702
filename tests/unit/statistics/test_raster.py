"""Rasters: order of rows, coarser and finer cells, sums, and sizes that are refused."""

import numpy as np
import pytest

from psd.errors import ParameterError
from psd.release.post_processing import PostProcessing
from psd.statistics.raster import MAX_CELLS, density_raster
from support.releases import changed
from support.trees import EQUATOR_SCALE, SOUTH_UP, grid_release, random_tree, release_of


def test_the_first_row_of_a_raster_is_the_north():
    raster = density_raster(grid_release(SOUTH_UP).index.fit, 3, 3)
    assert raster.count == pytest.approx(SOUTH_UP[::-1])
    assert raster.density == pytest.approx(SOUTH_UP[::-1] * 1e6 / EQUATOR_SCALE)
    assert (raster.unit, raster.crs, raster.bounds) == ("km2", "EPSG:3857", (0, 0, 3, 3))
    assert raster.nonuniformity_error == pytest.approx(np.zeros((3, 3)))
    with pytest.raises(ValueError, match="read-only"):
        raster.count[0, 0] = 1


def test_a_coarser_and_a_finer_raster():
    release = grid_release(SOUTH_UP)
    assert density_raster(release.index.fit, 1, 1).count == pytest.approx(SOUTH_UP.sum())
    assert density_raster(release.index.fit, 1, 3).count[:, 0] == pytest.approx([240, 150, 60])
    finer = density_raster(release.index.fit, 6, 3)
    assert finer.count == pytest.approx(np.repeat(SOUTH_UP[::-1], 2, axis=1) / 2)
    assert (finer.nonuniformity_error > 0).all()
    assert (finer.error >= finer.perturbation_error).all()


@pytest.mark.deep
@pytest.mark.parametrize(
    "view", [PostProcessing(), PostProcessing(density="smooth"), PostProcessing(estimate="signed")]
)
@pytest.mark.parametrize("size", [(1, 1), (7, 5), (200, 3)])
def test_a_raster_sums_to_the_total(view, size):
    release = changed(
        release_of(random_tree(np.random.default_rng(2), height=4)), post_processing=view
    )
    raster = density_raster(release.index.fit, *size)
    assert raster.count.shape == size[::-1]
    assert raster.count.sum() == pytest.approx(release.index.fit.estimates.count[0], rel=1e-9)


def test_sizes_that_are_refused():
    release = grid_release(SOUTH_UP)
    numbers = [(0, 3), (3, -1), (2.5, 3), (True, 3), ("3", 3)]
    for size in (*numbers, (MAX_CELLS, 2), (MAX_CELLS + 1, 1)):
        with pytest.raises(ParameterError, match="raster"):
            density_raster(release.index.fit, *size)
