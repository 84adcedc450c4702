"""Public covariates: exact masses, and rasters from polygons, from other rasters and from files."""

import sys
from fractions import Fraction

import geopandas as gpd
import numpy as np
import pytest
import shapely
from pyproj import CRS

import psd
from psd.errors import DomainError, InputDataError, MissingExtraError, ParameterError
from psd.publish.public_inputs import read_raster
from psd.space.covariate import MAX_SIDE, Covariate
from support.tables import refused, refused_calls
from support.trees import domain_of

DOMAIN = domain_of((12, 8))


def covariate(raster, domain=DOMAIN):
    return Covariate(domain=domain, raster=np.array(raster, np.uint16))


def naive_mass(known, box):
    """Mass of a box in lattice units, cell by cell, in fractions."""
    wide = Fraction(known.domain.lattice[0], known.columns)
    high = Fraction(known.domain.lattice[1], known.rows)
    x0, y0, x1, y1 = map(Fraction, box)
    total = Fraction(0)
    for row, column in np.ndindex(known.raster.shape):
        w = min(x1, (column + 1) * wide) - max(x0, column * wide)
        h = min(y1, (row + 1) * high) - max(y0, row * high)
        if w > 0 and h > 0:
            total += int(known.raster[row, column]) * w / wide * h / high
    return total


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (4, 4), (5, 7), (8, 12)])
def test_masses_are_those_of_the_definition(shape):
    rng = np.random.default_rng(shape)
    known = covariate(rng.integers(0, 3, shape) * rng.integers(1, 60_000, shape) + 1)
    corners = np.sort(rng.random((60, 2, 2)) * [12, 8], axis=1).reshape(-1, 4)
    boxes = np.vstack([corners, np.rint(corners), [[0, 0, 12, 8], [3, 2, 3.25, 2.5]]])
    for box, mass in zip(boxes, known.mass(boxes), strict=True):
        assert mass == pytest.approx(float(naive_mass(known, box)), rel=1e-12, abs=0)


def test_masses_of_tiny_boxes_of_nothing_and_of_the_whole_are_exact():
    plane = psd.Domain(bounds=(0, 0, 3, 7), crs="EPSG:3857")
    known = covariate(np.full((1024, 1024), 65_535), plane)
    box = np.array([[2**20 - 1, 2**20 - 1, 2**20, 2**20]])
    assert known.mass(box) == pytest.approx(65_535 / 2**20, rel=1e-12)
    known = covariate([[7, 0, 0], [0, 0, 65_535]])
    assert known.mass(np.array([[4, 0, 12, 4], [0, 4, 8, 8]])).tolist() == [0, 0]
    assert (known.mass(np.array([[3.999, 0, 12, 4], [0, 4, 8.001, 8]])) > 0).all()
    raster = np.random.default_rng(1).integers(0, 2**16, (1024, 1024), np.uint16)
    known = covariate(raster, plane)
    assert known.mass(np.array([[0, 0, 2**20, 2**20]])) == [int(raster.sum(dtype=np.int64))]
    assert known.surface[-1, -1] == raster.sum(dtype=np.int64)
    given = np.array([[1, 0]], np.uint16)
    known = covariate(given)
    given[0, 0] = 9
    assert known.raster.tolist() == [[1, 0]]
    with pytest.raises(ValueError, match="read-only"):
        known.raster[0, 0] = 5
    assert repr(known) == "<Covariate: 2 x 1 cells, 50.0% not empty>"
    known = Covariate.from_density(DOMAIN, np.array([[1.0, 1e-30, 0.0, 0.5 + 1e-13]]))
    assert known.raster.tolist() == [[65_535, 1, 0, 32_768]]


DEGREES = psd.Domain(bounds=(10, 40, 12, 41))


def frame(*shapes, crs="EPSG:3857", **columns):
    return gpd.GeoDataFrame(columns, geometry=list(shapes), crs=crs)


LEFT, TRIANGLE = shapely.box(0, 0, 3, 8), shapely.Polygon([(0, 0), (12, 0), (0, 8)])


def test_cells_have_their_covered_share_their_weights_or_the_values_of_a_raster():
    known = Covariate.from_polygons(frame(LEFT, shapely.box(1, 0, 6, 4)), DOMAIN, size=4)
    assert known.raster.tolist() == [
        [65_535, 65_535, 0, 0],
        [65_535, 65_535, 0, 0],
        [65_535, 0, 0, 0],
        [65_535, 0, 0, 0],
    ]
    polygons = frame(shapely.box(0, 0, 6, 8), shapely.box(3, 0, 9, 8), LEFT, w=[1, 2, 0])
    known = Covariate.from_polygons(polygons, DOMAIN, column="w", size=4)
    assert known.raster[0].tolist() == [21_845, 65_535, 43_690, 0]
    values = np.array([[0, 3], [1, 2]])
    known = Covariate.from_raster(values, DOMAIN, size=2)
    assert known.raster.tolist() == [[21_845, 43_690], [0, 65_535]]


def overlaid(size, shapes, weights):
    """Raster of weighted shapes, by overlays with its cells."""
    mean = np.zeros((size, size))
    for row, column in np.ndindex(size, size):
        cell = shapely.box(*np.array([column, row, column + 1, row + 1]) * [12, 8, 12, 8] / size)
        mean[row, column] = shapely.area(shapely.intersection(shapes, cell)) @ weights / cell.area
    return np.ceil(np.round(mean / mean.max() * 65_535, 6))


@pytest.mark.parametrize("size", [1, 3, 8, 17])
def test_boundary_cells_have_their_exact_area(size):
    hole = shapely.Polygon(TRIANGLE.exterior, [[(1, 1), (4, 1), (1, 3)]])
    known = Covariate.from_polygons(frame(hole, shapely.box(11, 7, 50, 50)), DOMAIN, size=size)
    both = [hole, shapely.box(11, 7, 50, 50)]
    assert np.array_equal(known.raster, overlaid(size, both, [1, 1]))


def test_polygons_are_brought_to_the_crs_of_the_domain_and_many_go_through_in_parts(monkeypatch):
    shape = shapely.box(10.5, 40.25, 11, 40.75)
    direct = Covariate.from_polygons(frame(shape, crs="EPSG:4326"), DEGREES, size=16)
    far = shapely.box(-170, -80, 170, -70)
    metres = frame(shape, far, crs="EPSG:4326").to_crs("EPSG:3857")
    there = Covariate.from_polygons(metres, DEGREES, size=16)
    assert np.abs(there.raster.astype(int) - direct.raster).max() <= 1
    assert direct.raster.sum() > 0
    rng = np.random.default_rng(3)
    corners = rng.random((50, 2)) * [10, 6]
    polygons = frame(*(shapely.box(x, y, x + 1, y + 1.5) for x, y in corners), w=rng.random(50))
    whole = Covariate.from_polygons(polygons, DOMAIN, column="w", size=32)
    monkeypatch.setattr("psd.space.raster_density._POLYGONS_PER_BATCH", 7)
    parts = Covariate.from_polygons(polygons, DOMAIN, column="w", size=32)
    assert np.array_equal(whole.raster, parts.raster)


BOW = shapely.Polygon([(0, 0), (4, 4), (4, 0), (0, 4)])


def test_polygons_and_rasters_that_are_no_covariate_are_refused(subtests):
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
    wide = np.ones((1, MAX_SIDE + 1), np.uint16)
    table = [
        ("16-bit", np.ones((2, 2)), np.ones(4, np.uint16)),
        ("1 to 1,024 columns", np.ones((0, 4), np.uint16), wide),
        ("0 everywhere", np.zeros((2, 2), np.uint16)),
    ]
    refused(subtests, ParameterError, table, lambda raster: Covariate(domain=DOMAIN, raster=raster))


@pytest.mark.parametrize("size", [1, 2, 5, 12])
def test_cells_have_the_mean_of_the_raster_under_them(size):
    rng = np.random.default_rng(size)
    values, bounds = rng.integers(0, 9, (6, 5)).astype(float), (-2.0, 1.0, 8.0, 13.0)
    known = Covariate.from_raster(values, DOMAIN, bounds=bounds, size=size)
    places = np.ndindex(values.shape)
    sources = [shapely.box(2 * c - 2, 11 - 2 * r, 2 * c, 13 - 2 * r) for r, c in places]
    assert np.array_equal(known.raster, overlaid(size, sources, values.ravel()))


FIELD = psd.Domain(bounds=(0, 0, 4, 2), crs="EPSG:3857", lattice=(4, 2))
VALUES = np.array([[1.0, 2, 3, 4], [5, 6, 7, 8]])
HEAD = "NCOLS 4\nNROWS 2\nXLLCORNER 0\nYLLCORNER -1.5\nCELLSIZE 0.5\nNODATA_value -9999\n"
ESRI_WGS84 = CRS("EPSG:4326").to_wkt("WKT1_ESRI")


def grid(folder, text, crs="EPSG:3857"):
    path = folder / "land.asc"
    path.write_text(text)
    if crs:
        path.with_suffix(".prj").write_text(crs)
    return path


def test_grids_have_bounds_and_a_crs_and_arrays_lie_over_the_bounds(tmp_path):
    values, bounds = read_raster(grid(tmp_path, HEAD + "1 2 3 4\n5 6\n7 -9999\n"), FIELD)
    assert values.tolist() == [[1, 2, 3, 4], [5, 6, 7, 0]]
    assert bounds == (0, -1.5, 2, -0.5)
    np.save(tmp_path / "land.npy", VALUES)
    values, bounds = read_raster(tmp_path / "land.npy", FIELD)
    assert bounds is None
    assert np.array_equal(values, VALUES)
    raster = Covariate.from_raster(values, FIELD, bounds=bounds, size=2).raster
    assert (raster[1] < raster[0]).all()  # the first row of the file is the northern one
    domain = psd.Domain(bounds=(0, 0, 4, 2))
    assert read_raster(grid(tmp_path, HEAD + "1 " * 8, ESRI_WGS84), domain)[0].shape == (2, 4)
    with pytest.raises(DomainError, match="warp it first"):
        read_raster(grid(tmp_path, HEAD + "1 " * 8, ESRI_WGS84), FIELD)


def test_other_files_are_refused(tmp_path, subtests, monkeypatch):
    land = HEAD + "1 " * 8
    table = [
        ("no CRS", land, None),
        ("must be a coordinate reference", land, "land"),
        ("warp it", land, "EPSG:4326"),
    ]

    def use(text, crs="EPSG:3857"):
        return read_raster(grid(tmp_path, text, crs), FIELD)

    refused_calls(subtests, DomainError, table, use)
    no_size = HEAD.replace("0.5", "-1") + "1 " * 8
    table = [
        ("as a raster", HEAD + "1 " * 7, HEAD + "x " * 8, no_size, "\u00e9" * 40),
        ("has no ncols", "1 2 3", ""),
    ]
    refused(subtests, InputDataError, table, use)
    np.save(tmp_path / "land.npy", np.array([{}]), allow_pickle=True)
    for name, words in (("land.npy", "as a raster"), ("no.npy", "does not exist")):
        with subtests.test(name), pytest.raises(InputDataError, match=words):
            read_raster(tmp_path / name, FIELD)
    monkeypatch.setitem(sys.modules, "rasterio", None)
    (tmp_path / "land.tif").write_bytes(b"II*\0")
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[raster\]'"):
        read_raster(tmp_path / "land.tif", FIELD)


@pytest.fixture
def geotiff(tmp_path):
    import rasterio
    from rasterio.transform import Affine, from_bounds

    def write(crs="EPSG:3857", turned=False, nodata=None):
        rows, columns = VALUES.shape
        place = Affine(1, 0.2, 0, 0, -1, 2) if turned else from_bounds(0, 0, 4, 2, columns, rows)
        shape = {"width": columns, "height": rows, "count": 1, "dtype": VALUES.dtype}
        shape |= {"driver": "GTiff", "crs": crs, "transform": place, "nodata": nodata}
        with rasterio.open(tmp_path / "land.tif", "w", **shape) as image:
            image.write(VALUES, 1)
        return tmp_path / "land.tif"

    return write


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_geotiff_is_read_with_its_bounds_and_others_are_refused(geotiff, tmp_path):
    values, bounds = read_raster(geotiff(nodata=8), FIELD)
    assert values.tolist() == [[1, 2, 3, 4], [5, 6, 7, 0]]
    assert bounds == (0, 0, 4, 2)
    with pytest.raises(DomainError, match="warp it first"):
        read_raster(geotiff(crs="EPSG:4326"), FIELD)
    with pytest.raises(DomainError, match="no CRS"):
        read_raster(geotiff(crs=None), FIELD)
    with pytest.raises(InputDataError, match="rotated"):
        read_raster(geotiff(turned=True), FIELD)
    (tmp_path / "other.tif").write_bytes(b"II*\0")
    with pytest.raises(InputDataError, match="as a raster"):
        read_raster(tmp_path / "other.tif", FIELD)


def test_weights_of_a_column_are_per_area_on_the_ground():
    # As many people per km2 at the equator and at 60 degrees north, where Web Mercator is 4 times
    # as large as the ground; a mask is of the plane.
    domain = psd.Domain(bounds=(0, -1e5, 2e5, 8.5e6), crs="EPSG:3857")
    boxes = [shapely.box(0, -1e5, 2e5, 1e5), shapely.box(0, 8.3e6, 2e5, 8.5e6)]
    people = gpd.GeoDataFrame({"per_km2": [3.0, 3.0]}, geometry=boxes, crs=domain.crs)
    corners = domain.to_lattice(shapely.bounds(boxes))
    weighted = Covariate.from_polygons(people, domain, column="per_km2", size=86).mass(corners)
    assert weighted[1] / weighted[0] == pytest.approx(0.2525, rel=1e-2)
    mask = Covariate.from_polygons(people, domain, size=86).mass(corners)
    assert mask[1] == pytest.approx(mask[0])
