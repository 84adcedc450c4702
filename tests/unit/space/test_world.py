"""Places on earth in the plane of a projection, and releases that reach beyond them."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from pyproj import Transformer

import psd
from psd.errors import DomainError
from psd.space.bounds import are_places, beyond_the_world, world_width
from psd.space.ground_areas import ground_areas
from psd.space.shape_transforms import transform_shapes
from support.tables import returned

# Maps of the world whose plane gives longitudes beyond their edge, or none; one around a point.
OVALS = {
    "ESRI:54009": (-18_040_096, -9_020_048, 18_040_096, 9_020_048),
    "EPSG:8857": (-17_243_960, -8_392_928, 17_243_960, 8_392_928),
    "EPSG:8859": (-17_243_960, -8_392_928, 17_243_960, 8_392_928),
    "ESRI:54030": (-17_005_834, -8_625_155, 17_005_834, 8_625_155),
    "ESRI:54008": (-20_037_509, -10_001_966, 20_037_509, 10_001_966),
    "EPSG:3035": (-8_500_000, -9_600_000, 17_100_000, 16_000_000),
}
METHOD = psd.decompositions.Grid(size=24)
SPHERE = 510_065_622  # km2 of the ellipsoid


def records(crs, count):
    """Places that lie evenly on earth, along a spiral: longitudes, latitudes, table of x and y."""
    number = np.arange(count)
    longitude = number * 180 * (3 - np.sqrt(5)) % 360 - 180
    latitude = np.degrees(np.arcsin((2 * number + 1) / count - 1))
    x, y = Transformer.from_crs("EPSG:4326", crs, always_xy=True).transform(longitude, latitude)
    return longitude, latitude, pd.DataFrame({"x": x, "y": y})


def test_bounds_that_reach_beyond_the_world(subtests):
    mercator = (-20_037_509, -20_037_509, 20_037_509, 20_037_509)
    table = [
        (True, *((bounds, crs) for crs, bounds in OVALS.items())),
        (False, (mercator, "EPSG:3857"), ((-9e6, -6e6, 9e6, 6e6), "ESRI:54009"),
         ((19.9e6, 7e6, 20.2e6, 7.5e6), "EPSG:3857"), ((2e6, -3e6, 5e6, -1e6), "EPSG:3832"),
         ((-3e6, -3e6, 3e6, 3e6), "EPSG:3031"), ((-180, -90, 180, 90), "EPSG:4326"),
         ((-1e6, -1e6, 1e6, 1e6), "ESRI:54099")),  # which this PROJ may not compute
    ]  # fmt: skip
    returned(subtests, table, lambda case: beyond_the_world(*case))
    assert world_width("EPSG:3832") == pytest.approx(40_075_016.69)
    assert are_places("ESRI:54008", np.array([0.0, 1.9e7]), np.array([9e6, 9e6])).tolist() == [
        True, False,
    ]  # fmt: skip


@pytest.mark.parametrize("crs", OVALS)
def test_ground_ends_at_the_edge_of_the_world(crs):
    domain = psd.Domain(bounds=OVALS[crs], crs=crs, lattice=(32, 32))
    row, column = np.divmod(np.arange(32 * 32), 32)
    cells = np.stack([column, row, column + 1, row + 1], axis=1).astype(float)
    areas = ground_areas(domain, cells)
    assert areas[[0, 31, -32, -1]].tolist() == [0] * 4
    assert areas.sum() == pytest.approx(SPHERE, rel=1e-3)


@pytest.mark.parametrize("crs", OVALS)
def test_cells_at_the_rim_hold_their_records_on_earth(crs, subtests):
    """Without a boundary, polygons beside the edge got 2 to 44 % too few."""
    longitude, latitude, table = records(crs, 100_000)
    options = {"bounds": OVALS[crs], "crs": crs, "epsilon": 1000, "method": METHOD}
    release = psd.build(table, x="x", y="y", **options)
    assert release.record.post_processing.density == "covariate"
    for west, south, east, north in (
        (150, -60, 180, 60), (170, -30, 180, 30), (-180, -30, -170, 30), (-90, -90, 0, 0),
        (-50, -40, -30, 40), (-30, -40, -10, 40), (-180, 60, 180, 90),
    ):  # fmt: skip
        inside = (longitude >= west) & (longitude < east) & (latitude >= south) & (latitude < north)
        box = gpd.GeoSeries([shapely.box(west, south, east, north)], crs="EPSG:4326")
        with subtests.test(west=west, south=south):
            found = release.query(box)["estimate"][0]
            assert found == pytest.approx(inside.sum(), rel=0.02)
    plain = psd.build(table, x="x", y="y", density="uniform", **options)
    assert plain.record.post_processing.density == "uniform"
    assert plain.record.covariate is None


@pytest.mark.parametrize("crs", [*OVALS][:-1])
def test_cells_at_the_rim_are_shown_where_they_are_on_earth(crs, subtests):
    """In degrees they also covered places at the other end of the world, or were refused."""
    longitude, latitude, table = records(crs, 2000)
    for size in (1, 8):
        west, south, east, north = OVALS[crs]
        x, y = np.linspace(west, east, size + 1), np.linspace(south, north, size + 1)
        corners = [each.ravel() for each in np.meshgrid(x[:-1], y[:-1])]
        cells = shapely.box(*corners, *(each.ravel() for each in np.meshgrid(x[1:], y[1:])))
        with subtests.test(size=size):
            moved = transform_shapes(cells, crs, "EPSG:4326")
            assert shapely.is_valid(moved).all()
            before = shapely.intersects_xy(cells[:, None], table["x"], table["y"])
            after = shapely.intersects_xy(moved[:, None], longitude, latitude)
            assert (before != after).any(axis=0)[1:].sum() <= 1  # the first is at longitude 180
            # Cells without a place have no shape.
            row, column = np.divmod(np.arange(size**2), size)
            boxes = np.stack([column, row, column + 1, row + 1], axis=1).astype(float)
            areas = ground_areas(
                psd.Domain(bounds=OVALS[crs], crs=crs, lattice=(size, size)), boxes
            )
            assert (areas[shapely.is_empty(moved)] == 0).all()
    # The plane of a cone has a gap.
    gap = shapely.box(600_000, 13_000_000, 800_000, 14_000_000)
    assert shapely.is_empty(transform_shapes(np.array([gap]), "EPSG:2154", "EPSG:4326"))[0]


@pytest.mark.parametrize("ending", ["geojson", "gpkg", "fgb", "parquet"])
def test_maps_of_the_world_are_written_in_degrees(ending, tmp_path):
    crs = "ESRI:54009"
    release = psd.build(
        records(crs, 100)[2], x="x", y="y", bounds=OVALS[crs], crs=crs, epsilon=1,
        method=psd.decompositions.Grid(size=8),
    )  # fmt: skip
    path = tmp_path / f"world.{ending}"
    release.export(path, **({} if ending == "geojson" else {"crs": "EPSG:4326"}))
    read = gpd.read_parquet(path) if ending == "parquet" else gpd.read_file(path, layer="cells")
    seen = ~(read.geometry.is_empty | read.geometry.isna())
    assert (len(read), int(seen.sum())) == (64, 60)
    assert read.geometry[seen].total_bounds == pytest.approx([-180, -90, 180, 90], abs=1e-3)


def test_a_polygon_that_a_projection_tears_is_refused():
    """The point opposite to the middle of a map is a circle in it, not a place in a polygon."""
    crs = "EPSG:3035"
    release = psd.build(
        records(crs, 1000)[2], x="x", y="y", bounds=OVALS[crs], crs=crs, epsilon=1, method="grid"
    )
    for shape in (shapely.box(-180, -90, 180, 90), shapely.box(-180, -60, -150, 60)):
        with pytest.raises(DomainError, match="region 1 cannot be expressed in EPSG:3035; does it"):
            release.query(gpd.GeoSeries([shape], crs="EPSG:4326"))
    with pytest.raises(DomainError, match="polygon 1 of the boundary cannot be expressed in EPSG"):
        psd.build(
            records(crs, 9)[2], x="x", y="y", bounds=OVALS[crs], crs=crs, epsilon=1, method="grid",
            boundary=gpd.GeoSeries([shapely.box(-180, -90, 180, 90)], crs="EPSG:4326"),
        )  # fmt: skip
