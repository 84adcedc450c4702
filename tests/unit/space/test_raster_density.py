"""Rasters of covariates, from polygons and from other rasters."""

import geopandas as gpd
import numpy as np
import pytest
import shapely

import psd
from psd.errors import DomainError, ParameterError
from psd.space.covariate import Covariate
from support.tables import refused, refused_calls
from support.trees import domain_of

DOMAIN = domain_of((12, 8))
DEGREES = psd.Domain(bounds=(10, 40, 12, 41))


def frame(*shapes, crs="EPSG:3857", **columns):
    return gpd.GeoDataFrame(columns, geometry=list(shapes), crs=crs)


LEFT, TRIANGLE = shapely.box(0, 0, 3, 8), shapely.Polygon([(0, 0), (12, 0), (0, 8)])


def test_a_mask_is_the_covered_share_of_every_cell():
    known = Covariate.from_polygons(frame(LEFT, shapely.box(1, 0, 6, 4)), DOMAIN, size=4)
    assert known.raster.tolist() == [
        [65_535, 65_535, 0, 0],
        [65_535, 65_535, 0, 0],
        [65_535, 0, 0, 0],
        [65_535, 0, 0, 0],
    ]


@pytest.mark.parametrize("size", [1, 3, 8, 17])
def test_boundary_cells_have_their_exact_area(size):
    hole = shapely.Polygon(TRIANGLE.exterior, [[(1, 1), (4, 1), (1, 3)]])
    known = Covariate.from_polygons(frame(hole, shapely.box(11, 7, 50, 50)), DOMAIN, size=size)
    wide, high = 12 / size, 8 / size
    area = np.zeros((size, size))
    for row, column in np.ndindex(size, size):
        cell = shapely.box(column * wide, row * high, (column + 1) * wide, (row + 1) * high)
        for shape in (hole, shapely.box(11, 7, 50, 50)):
            area[row, column] += shape.intersection(cell).area / cell.area
    expected = np.ceil(np.round(area / area.max() * 65_535, 6))
    assert np.array_equal(known.raster, expected)


def test_weights_add_up_where_polygons_overlap():
    polygons = frame(shapely.box(0, 0, 6, 8), shapely.box(3, 0, 9, 8), LEFT, w=[1, 2, 0])
    known = Covariate.from_polygons(polygons, DOMAIN, column="w", size=4)
    assert known.raster[0].tolist() == [21_845, 65_535, 43_690, 0]


def test_polygons_are_brought_to_the_crs_of_the_domain():
    shape = shapely.box(10.5, 40.25, 11, 40.75)
    direct = Covariate.from_polygons(frame(shape, crs="EPSG:4326"), DEGREES, size=16)
    far = shapely.box(-170, -80, 170, -70)
    metres = frame(shape, far, crs="EPSG:4326").to_crs("EPSG:3857")
    there = Covariate.from_polygons(metres, DEGREES, size=16)
    assert np.abs(there.raster.astype(int) - direct.raster).max() <= 1
    assert direct.raster.sum() > 0


def test_many_polygons_go_through_in_parts(monkeypatch):
    rng = np.random.default_rng(3)
    corners = rng.random((50, 2)) * [10, 6]
    polygons = frame(*(shapely.box(x, y, x + 1, y + 1.5) for x, y in corners), w=rng.random(50))
    whole = Covariate.from_polygons(polygons, DOMAIN, column="w", size=32)
    monkeypatch.setattr("psd.space.raster_density._POLYGONS_PER_BATCH", 7)
    parts = Covariate.from_polygons(polygons, DOMAIN, column="w", size=32)
    assert np.array_equal(whole.raster, parts.raster)


BOW = shapely.Polygon([(0, 0), (4, 4), (4, 0), (0, 4)])


def test_polygons_that_are_no_covariate_are_refused(subtests):
    left = frame(LEFT)
    table = [
        ("of the covariate", left, {"column": "w"}),
        ("must hold numbers", frame(LEFT, w=["a"]), {"column": "w"}),
        ("missing or not finite", frame(LEFT, TRIANGLE, w=[1, None]), {"column": "w"}),
        ("negative", frame(LEFT, w=[-1.0]), {"column": "w"}),
        ("0 everywhere", frame(LEFT, w=[0.0]), {"column": "w"}),
        ("polygon 1 .* not valid", frame(BOW), {}),
        ("polygon 2 .* no", frame(LEFT, shapely.Point(1, 1)), {}),
        ("polygon 2 .* no", frame(LEFT, None), {}),
        ("at least one polygon", frame(), {}),
        ("must be between", left, {"size": 0}),
        ("must be between", left, {"size": 2048}),
    ]

    def use(polygons, options):
        return Covariate.from_polygons(polygons, DOMAIN, **options)

    refused_calls(subtests, ParameterError, table, use)
    table = [("no CRS", frame(LEFT, crs=None), {})]
    table += [("is its CRS wrong", frame(shapely.box(20, 20, 30, 30)), {})]
    refused_calls(subtests, DomainError, table, use)
    swapped = frame(shapely.box(40, 10, 41, 12), crs="EPSG:4326")
    with pytest.raises(DomainError, match="longitude and latitude swapped"):
        Covariate.from_polygons(swapped, DEGREES)


def test_a_raster_of_the_same_cells_keeps_its_values_and_is_turned_north_up():
    values = np.array([[0, 3], [1, 2]])
    known = Covariate.from_raster(values, DOMAIN, size=2)
    assert known.raster.tolist() == [[21_845, 43_690], [0, 65_535]]


@pytest.mark.parametrize("size", [1, 2, 5, 12])
def test_cells_have_the_mean_of_the_raster_under_them(size):
    rng = np.random.default_rng(size)
    values, bounds = rng.integers(0, 9, (6, 5)).astype(float), (-2.0, 1.0, 8.0, 13.0)
    known = Covariate.from_raster(values, DOMAIN, bounds=bounds, size=size)
    expected = np.zeros((size, size))
    for row, column in np.ndindex(size, size):
        cell = shapely.box(*np.array([column, row, column + 1, row + 1]) * [12, 8, 12, 8] / size)
        for r, c in np.ndindex(values.shape):
            source = shapely.box(-2 + 2 * c, 13 - 2 * (r + 1), -2 + 2 * (c + 1), 13 - 2 * r)
            expected[row, column] += values[r, c] * source.intersection(cell).area / cell.area
    assert np.array_equal(known.raster, np.ceil(np.round(expected / expected.max() * 65_535, 6)))


def test_rasters_that_are_no_covariate_are_refused(subtests):
    table = [
        ("missing", np.array([[1, np.nan]])),
        ("finite", np.array([[1, np.inf]])),
        ("negative", np.array([[1, -1]])),
        ("0 everywhere", np.zeros((2, 2))),
        ("two-dimensional", np.ones(3), np.array([["a"]])),
    ]
    refused(subtests, ParameterError, table, lambda values: Covariate.from_raster(values, DOMAIN))
    with pytest.raises(DomainError, match="outside"):
        Covariate.from_raster(np.ones((2, 2)), DOMAIN, bounds=(50, 50, 60, 60))
