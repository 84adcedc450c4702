"""What may be asked about: how boxes, polygons, names, tables and files are told apart."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from psd.errors import DomainError, InputDataError, ParameterError
from psd.query.areas import BoxAreas, NamedAreas, PolygonAreas
from psd.regions.polygon_hierarchy import hierarchy_from_polygons
from psd.testing.data import release_from_counts

DOMAIN = psd.Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(4, 4))
BOX = shapely.box(0, 0, 2, 4)
NAMES = ("west", "POLYGON", "land.gpkg", "Point (east)")


@pytest.fixture(scope="module")
def plain():
    return release_from_counts(np.arange(16).reshape(4, 4) * 100, domain=DOMAIN)


@pytest.fixture(scope="module")
def named():
    """A release of four columns of regions, whose names look like other things."""
    shapes = [shapely.box(x, 0, x + 1, 4) for x in range(4)]
    table = gpd.GeoDataFrame({"id": NAMES}, geometry=shapes, crs=DOMAIN.crs)
    regions = hierarchy_from_polygons(table, DOMAIN, ids="id")
    rows = pd.DataFrame({"x": np.repeat([0.5, 1.5, 2.5, 3.5], 50), "y": 1.5})
    return psd.build(rows, regions=regions, epsilon=100, x="x", y="y")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    gpd.GeoDataFrame({"name": ["a"]}, geometry=[BOX], crs=DOMAIN.crs).to_file("land.gpkg")
    (tmp_path / "b.csv").write_text("west,south,east,north,town\n0,0,2,4,A\n")
    (tmp_path / "w.csv").write_text(f'wkt,town\n"{BOX.wkt}",A\n')
    (tmp_path / "w.wkt").write_text(f"{BOX.wkt}\n")
    (tmp_path / "ids.csv").write_text("ward,seats\nwest,3\nPOLYGON,2\n")
    pd.DataFrame({"west": [0], "south": 0, "east": 2, "north": 4}).to_parquet("b.parquet")
    gpd.GeoDataFrame({"name": ["a"]}, geometry=[BOX], crs=DOMAIN.crs).to_parquet("p.parquet")
    return tmp_path


def test_files_are_polygons_or_boxes_as_they_have_columns(plain, folder, subtests):
    expected = plain.query(BOX)["estimate"].tolist()
    for name, kind, crs in (
        ("land.gpkg", PolygonAreas, None),
        ("land.gpkg:layer=land", PolygonAreas, None),
        ("p.parquet", PolygonAreas, None),
        ("w.csv", PolygonAreas, DOMAIN.crs),
        ("w.wkt", PolygonAreas, DOMAIN.crs),
        ("b.csv", BoxAreas, None),
        ("b.parquet", BoxAreas, None),
        (folder / "b.csv", BoxAreas, None),
    ):
        with subtests.test(str(name)):
            answers = plain.query(name, crs=crs)
            assert type(answers.areas) is kind
            assert answers["estimate"].tolist() == pytest.approx(expected)
    assert plain.query("b.csv")["town"].tolist() == ["A"]
    for name, error in (("w.wkt", DomainError), (folder / "no.csv", InputDataError)):
        with subtests.test(str(name)), pytest.raises(error):
            plain.query(name)


def test_a_text_is_a_geometry_then_a_name_then_a_path(named, folder, subtests):
    for text, kind, options in (
        (BOX.wkt, PolygonAreas, {"crs": 3857}),
        (f"SRID=3857;{BOX.wkt.lower()}", PolygonAreas, {}),
        ("west", NamedAreas, {}),
        ("POLYGON", NamedAreas, {}),
        ("land.gpkg", NamedAreas, {}),
        ("b.csv", BoxAreas, {}),
        ("p.parquet", PolygonAreas, {}),
        (["west", "land.gpkg"], NamedAreas, {}),
        (np.array(["west"]), NamedAreas, {}),
        (pd.Series(["west", "POLYGON"]), NamedAreas, {}),
        ([BOX.wkt], PolygonAreas, {"crs": 3857}),
        ([["west", "POLYGON"]], NamedAreas, {}),
        (None, NamedAreas, {}),
    ):
        with subtests.test(text=text):
            assert type(named.query(text, **options).areas) is kind
    # Lists and a level say that texts are names; a text of WKT alone is none.
    for areas, level in (([["Point (east)"]], None), ("Point (east)", "id")):
        assert named.query(areas, level=level)["estimate"].round().tolist() == [50]
    # A name that is also the beginning of WKT is told by its column.
    table = pd.DataFrame({"ward": ["Point (east)", "west"]}, index=[4, 2])
    answers = named.query(table, id="ward").table
    assert answers.index.tolist() == [4, 2]
    assert answers["estimate"].round().tolist() == [50, 50]
    assert named.query("ids.csv", id="ward").table["seats"].tolist() == ["3", "2"]


def test_what_cannot_be_asked_is_refused_in_a_sentence(plain, named, folder, subtests):
    boxes = pd.DataFrame({"ward": ["west"]})
    for release, words, areas, options in (
        (plain, "areas must be given", None, {}),
        (plain, "got regions by name", "west", {"level": "id"}),
        (plain, "got regions by name", boxes, {"id": "ward"}),
        (plain, "got regions by name", [["west"]], {}),
        (plain, "cannot be read as GeoJSON or WKT", "nothing", {}),
        (plain, "west is missing", boxes, {}),
        (plain, "level must be left out", [(0, 0, 1, 1)], {"level": "id"}),
        (named, "did you mean 'west'", "wast", {}),
        (named, "level must be one of id, got 'x'", None, {"level": "x"}),
        (named, "id must be one of the columns of areas .ward., got 'id'", boxes, {"id": "id"}),
        (named, "areas must be a DataFrame", ["west"], {"id": "id"}),
        (named, "must not have a column error", boxes.assign(error=1), {"id": "ward"}),
        (named, "level must be left out", BOX, {"level": "id"}),
    ):
        with subtests.test(words), pytest.raises(ParameterError, match=words):
            release.query(areas, **options)


def test_shapes_of_named_areas_are_those_of_their_regions(named):
    shapes = named.query(["west", ["POLYGON", "land.gpkg"]]).to_geopandas().geometry
    assert [shape.bounds for shape in shapes] == [(0, 0, 1, 4), (1, 0, 3, 4)]
