"""Regions over the area of a release: boxes, density, distances."""

import numpy as np
import pytest
from pyproj import Geod

import psd
from psd.apps.suggest.models import RegionGrid
from psd.errors import DomainError, ParameterError
from psd.statistics.raster import density_raster
from support.suggestions import DOMAIN, city_release


@pytest.fixture(scope="module")
def grid():
    return RegionGrid.of_release(city_release(), 10)


def test_points_lie_in_the_boxes_of_their_regions(grid):
    draw = np.random.default_rng(2)
    x, y = draw.uniform(126.4, 127.6, 500), draw.uniform(37, 38, 500)
    west, south, east, north = grid.boxes[grid.locate(x, y)].T
    assert ((west <= x) & (x <= east) & (south <= y) & (y <= north)).all()
    x, y = np.array([126.4, 120.0, np.nan, 127.6]), np.array([37.0, 37.5, 37.5, 38.0])
    assert grid.locate(x, y).tolist() == [0, 99]
    assert grid.count == pytest.approx(
        density_raster(city_release().index.fit, 10, 10).count[::-1].ravel()
    )
    assert (grid.count >= 0).all()
    expected = grid.count / grid.count.sum() * 64
    assert np.abs(np.bincount(grid.contrasts, minlength=100) - expected).max() < 1.01


def distance(grid, one, other):
    return grid.distances(np.array([one]), np.array([other]))[0, 0]


def test_distances_are_those_on_the_ground(grid):
    centre = (grid.boxes[:, :2] + grid.boxes[:, 2:]) / 2
    metres = Geod(ellps="WGS84").inv(*centre[0], *centre[99])[2]
    assert distance(grid, 0, 99) == pytest.approx(metres / 1000, rel=0.005)
    assert distance(grid, 3, 3) == 0
    release = release_of(range(64), bounds=(1e6, 1e6, 1.01e6, 1.01e6), crs="EPSG:5179")
    assert distance(RegionGrid.of_release(release, 5), 0, 4) == pytest.approx(8, rel=0.005)
    domain = psd.Domain(bounds=DOMAIN.bounds, coordinate_resolution="0.001")
    tree = psd.decompositions.grid_tree(domain, 1)
    grid = RegionGrid.of_release(psd.Release.from_counts(tree, [9], 1, domain=domain), 10)
    assert grid.regions_of(np.array([0, 1200]), np.array([0, 1000])).tolist() == [0, 99]


def release_of(counts, **domain):
    area = psd.Domain(**{"bounds": (0, 0, 8, 8), "lattice": (8, 8)} | domain)
    return psd.Release.from_counts(psd.decompositions.grid_tree(area, 8), counts, 1, domain=area)


def test_what_gives_no_grid_is_refused():
    for counts, cells, told in [
        ([0] * 64, 5, "release must have a density, got one without records"),
        (range(64), 4, "cells must be between 5 and 100, got 4"),
        (range(64), 9, "cells must be at most the columns and rows"),
    ]:
        with pytest.raises(ParameterError, match=told):
            RegionGrid.of_release(release_of(counts), cells)
    local = 'ENGCRS["plan",EDATUM["site"],CS[Cartesian,2],AXIS["x",east],AXIS["y",north],'
    release = release_of(range(64), crs=local + 'LENGTHUNIT["metre",1]]')
    with pytest.raises(DomainError):
        RegionGrid.of_release(release, 5)
