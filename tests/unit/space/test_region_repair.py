"""Invalid polygons of public files are named, and repaired where that was chosen."""

import geopandas as gpd
import pytest
import shapely

import psd
from psd.errors import ParameterError
from psd.space.boundary import Boundary
from psd.space.public_files import BoundaryFile
from psd.space.region_repair import describe_polygon, repair_polygons
from support.tables import refused

PLANE = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(8, 8))
BOW = shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])
OVERLAP = shapely.MultiPolygon([shapely.box(0, 0, 3, 1), shapely.box(2, 0, 4, 1)])
FLAT = shapely.Polygon([(0, 0), (1, 1), (2, 2)])


def table(*shapes, **columns):
    return gpd.GeoDataFrame(columns, geometry=list(shapes), crs=PLANE.crs)


def test_a_polygon_is_named_by_its_number_and_id():
    for columns, text in (
        ({}, ""),
        ({"people": [1, 2]}, ""),
        ({"NAME": ["a", "b"]}, " (NAME 'b')"),
        ({"name": ["a", "b"], "id": [7, 8]}, " (id '8')"),
        ({"code": ["a", "b" * 200]}, f" (code '{'b' * 80}')"),
    ):
        named = describe_polygon(table(BOW, BOW, **columns), 1, "boundary")
        assert named == f"polygon 2 of the boundary{text}"
    polygons = table(shapely.box(4, 4, 5, 5), BOW, id=["north", "south"])
    words = r"polygon 2 of the boundary \(id 'south'\) is not valid \(Self-inter.*repair=True"
    with pytest.raises(ParameterError, match=words):
        Boundary.from_polygons(polygons, PLANE)


def test_only_invalid_polygons_are_repaired():
    square = shapely.box(4, 4, 5, 5)
    polygons = table(BOW, square, OVERLAP, id=[1, 2, 3])
    repaired = repair_polygons(polygons, "boundary")
    assert repaired.geometry.is_valid.all()
    assert repaired.geometry.iloc[1] is square
    assert repaired.area.tolist() == [2.0, 1.0, 4.0]
    assert repaired["id"].tolist() == [1, 2, 3]
    assert repaired.crs == polygons.crs
    assert polygons.geometry.iloc[0] is BOW
    valid = table(square)
    assert repair_polygons(valid, "boundary") is valid


def test_what_no_repair_helps_is_refused(subtests):
    rows = [
        ("polygon 1 of the boundary has no area when it is repaired", FLAT),
        ("must be a polygon", shapely.Point(1, 1)),
        ("must be a polygon, got missing", None),
        ("must not be empty", shapely.Polygon()),
    ]
    refused(subtests, ParameterError, rows, lambda shape: repair_polygons(table(shape), "boundary"))


def test_a_boundary_file_is_repaired_by_choice(tmp_path):
    path = str(tmp_path / "plot.gpkg")
    table(BOW, shapely.box(4, 4, 5, 5)).to_file(path)
    with pytest.raises(ParameterError, match="is not valid"):
        BoundaryFile(path=path).read(PLANE)
    area = BoundaryFile(path=path, repair=True).read(PLANE)
    assert area.shape.area == 3
