"""Shapes in another CRS: sides keep their place, also at longitude 180 and at the poles."""

import subprocess

import geopandas as gpd
import numpy as np
import pytest
import shapely
from pyproj import Transformer

from psd.errors import DomainError
from psd.space.shape_transforms import metres_of, seam_longitude, transform_shapes, transform_table
from support.tables import returned

DEGREES, PACIFIC, SOUTH, NORTH, NEW_ZEALAND = (
    f"EPSG:{code}" for code in (4326, 3832, 3031, 3413, 2193)
)
FIJI = (2_226_389, -2_500_000, 4_452_779, -1_300_000)
POLE = (-3e6, -3e6, 3e6, 3e6)
# Around both poles: no ring of it passes a whole turn of longitudes.
MOST = "+proj=laea +lat_0=45 +lon_0=10 +datum=WGS84"


def grid(bounds, size):
    x, y = (np.linspace(bounds[axis], bounds[axis + 2], size + 1) for axis in (0, 1))
    west, south = (each.ravel() for each in np.meshgrid(x[:-1], y[:-1]))
    east, north = (each.ravel() for each in np.meshgrid(x[1:], y[1:]))
    return shapely.box(west, south, east, north)


def misplaced(shapes, moved, source, target=DEGREES):
    """Places, inside and around shapes, that lie in another of the moved shapes."""
    west, south, east, north = shapely.total_bounds(shapes)
    wide, high = (east - west) / 10, (north - south) / 10
    rng = np.random.default_rng(5)
    xy = rng.uniform((west - wide, south - high), (east + wide, north + high), (300, 2))
    x, y = Transformer.from_crs(source, target, always_xy=True).transform(*xy.T)
    seen = np.isfinite(x) & np.isfinite(y)
    assert seen.sum() > 150
    before = shapely.intersects_xy(shapes[:, None], *xy[seen].T)
    after = shapely.intersects_xy(moved[:, None], x[seen], y[seen])
    return int((before != after).sum())


def widest(shapes):
    sides = shapely.bounds(shapely.get_parts(shapes))
    return float((sides[:, 2] - sides[:, 0]).max())


def test_the_meridians_at_which_planes_end(subtests):
    table = [
        (180, DEGREES, "EPSG:3857", "EPSG:4807", "ESRI:54009"),
        (330, PACIFIC),
        (None, SOUTH, NORTH, NEW_ZEALAND, "EPSG:3035", "EPSG:32660"),
    ]
    returned(subtests, table, seam_longitude)


def test_places_lie_in_their_shapes(subtests):
    """All cells of grids, whose corners, sides or middles are at a pole or at longitude 180."""
    ell = shapely.Polygon([(0, 0), (1e6, 0), (1e6, 1e6), (-1e6, 1e6), (-1e6, -1e6), (0, -1e6)])
    halves = [shapely.box(-1e6, 0, 1e6, 1e6), shapely.box(-1e6, -1e6, 0, 1e6)]
    ring = shapely.box(*POLE) - shapely.box(-1e6, -1e6, 1e6, 1e6)
    cases = [(crs, grid(POLE, size)) for crs in (SOUTH, NORTH) for size in (1, 2, 5)]
    cases += [(crs, np.array([ell, *halves, ring])) for crs in (SOUTH, NORTH)]
    cases += [(PACIFIC, grid(FIJI, 8)), (NEW_ZEALAND, grid((1e6, 4.7e6, 2.6e6, 6.3e6), 5))]
    cases += [("EPSG:3035", grid((2.5e6, 1.5e6, 6.5e6, 5.5e6), 4))]
    cases += [(MOST, np.array([shapely.Point(0, 0).buffer(1.25e7)]))]
    for source, shapes in cases:
        for target in (DEGREES, "EPSG:3857") if len(shapes) == 4 else (DEGREES,):
            with subtests.test(source=source, number=len(shapes), target=target):
                moved = transform_shapes(shapes, source, target)
                assert shapely.is_valid(moved).all()
                assert misplaced(shapes, moved, source, target) == 0
                west, south, east, north = shapely.total_bounds(moved)
                if target == DEGREES:
                    assert -180 <= west < east <= 180
                    assert -90 <= south < north <= 90
    assert widest(transform_shapes(grid(FIJI, 8), PACIFIC, DEGREES)) < 3


def test_cells_meet_and_straight_sides_are_left_alone():
    cells = np.concatenate(
        [grid((2.5e6, 1.5e6, 4.5e6, 5.5e6), 1), grid((4.5e6, 1.5e6, 6.5e6, 5.5e6), 4)]
    )
    moved = transform_shapes(cells, "EPSG:3035", DEGREES)
    union = shapely.union_all(moved)
    # What is between cells, or in two of them, is thinner than twice the tolerance of 40 m.
    filled = shapely.Polygon(union.exterior).area
    assert filled - union.area < 1e-4 * filled
    assert shapely.area(moved).sum() - union.area < 1e-4 * filled
    flat = transform_shapes(grid(FIJI, 8), PACIFIC, DEGREES)
    whole = flat[shapely.bounds(flat)[:, 2] < 179]
    assert (shapely.get_num_coordinates(whole) == 5).all()
    # The quarters of an S are away from a line through its middle.
    slanted = shapely.Polygon([(2.3e6, 1.2e6), (6.3e6, 5.2e6), (2.3e6, 5.2e6)])
    assert (
        misplaced(
            *(np.array([slanted]), transform_shapes(np.array([slanted]), "EPSG:3035", DEGREES)),
            "EPSG:3035",
        )
        == 0
    )


def test_parts_are_joined_where_a_plane_has_no_end(subtests):
    cut = shapely.MultiPolygon([shapely.box(178, -20, 180, -15), shapely.box(-180, -20, -178, -15)])
    cap = shapely.box(-180, -90, 180, -60)
    turned = shapely.box(170, -20, 190, -15)
    for shape, source, target in (
        (cut, DEGREES, PACIFIC), (cut, DEGREES, NEW_ZEALAND), (cap, DEGREES, SOUTH),
        (turned, DEGREES, PACIFIC),
        (transform_shapes(np.array([cut]), DEGREES, "EPSG:3857")[0], "EPSG:3857", PACIFIC),
    ):  # fmt: skip
        with subtests.test(source=source, target=target):
            (moved,) = transform_shapes(np.array([shape]), source, target, 1.0)
            assert moved.geom_type == "Polygon"
            assert moved.is_valid
            assert not moved.interiors
    (moved,) = transform_shapes(np.array([cut]), DEGREES, PACIFIC)
    expected = Transformer.from_crs(DEGREES, PACIFIC, always_xy=True).transform(
        [178, -178], [-20, -15]
    )
    assert moved.bounds == pytest.approx(
        [*expected[0][:1], *expected[1][:1], *expected[0][1:], *expected[1][1:]]
    )
    (moved,) = transform_shapes(np.array([turned]), DEGREES, DEGREES)
    assert sorted(shapely.bounds(shapely.get_parts(moved)).tolist()) == [
        [-180, -20, -170, -15], [170, -20, 180, -15],
    ]  # fmt: skip


def test_what_has_no_place_is_refused():
    table = gpd.GeoDataFrame(geometry=[shapely.box(-18e6, 5e6, -12e6, 9e6)], crs="EPSG:3035")
    with pytest.raises(DomainError, match="the release must have coordinates in EPSG:4326 every"):
        transform_table(table, DEGREES)


@pytest.mark.deep
def test_shapes_at_180_are_those_of_gdal(tmp_path):
    """GDAL's `-wrapdateline`, with sides divided for it; it has no right answer at poles."""
    cells = gpd.GeoSeries(grid(FIJI, 8), crs=PACIFIC)
    cells.segmentize(1000).to_file(tmp_path / "plane.gpkg")
    options = "-wrapdateline", "-t_srs", DEGREES
    subprocess.run(
        ["ogr2ogr", *options, tmp_path / "out.gpkg", tmp_path / "plane.gpkg"], check=True
    )
    theirs = gpd.read_file(tmp_path / "out.gpkg").geometry.array
    ours = transform_shapes(np.asarray(cells.array), PACIFIC, DEGREES)
    apart = shapely.area(shapely.symmetric_difference(ours, np.asarray(theirs)))
    assert (apart < 1e-6 * shapely.area(ours)).all()


def test_a_degree_is_about_its_length_at_the_equator():
    assert metres_of("EPSG:4326") == 111_320.0
    assert metres_of("EPSG:3857") == 1.0


def test_longitudes_of_many_turns_are_no_places():
    """GEOS would cut a shape at each turn that it spans."""
    far = [shapely.Polygon([(0, 0), (east, 0), (40, 40)]) for east in (5e102, 3_601, 3_599, 50)]
    for target in (DEGREES, "EPSG:3857"):
        moved = transform_shapes(np.array(far), DEGREES, target)
        assert np.isfinite(shapely.bounds(moved)).all(axis=1).tolist() == [False, False, True, True]
