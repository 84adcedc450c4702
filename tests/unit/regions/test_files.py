"""Regions in files, or by sizes: what is read, what is repaired, and what is refused before."""

import os
from functools import partial
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from psd._util import plugins
from psd._util.atomic_write import check_free
from psd._util.file_endings import file_of
from psd.errors import DomainError, InputDataError, ParameterError, WriteError
from psd.publish.area import bounds_from_file
from psd.publish.public_inputs import BoundaryFile, CovariateFile, read_raster
from psd.regions.files import (
    CellRegions,
    RegionFiles,
    count_features,
    read_boxes,
    read_polygons,
    read_table,
    refuse_record_files,
)
from psd.regions.hierarchy import KINDS, RegionHierarchy
from psd.regions.kinds.grid_cells import GridCells, hierarchy_from_grid
from psd.space.boundary import Boundary
from psd.space.domain import Domain
from psd.space.regions import describe_polygon, repair_polygons
from psd.testing.data import release_from_counts
from support.layers import read_layers, two_layers
from support.small_regions import read_again
from support.tables import refused

PLANE = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(64, 64))
WARDS = [shapely.box(a, 0, a + 2, 8) for a in (0, 2, 4, 6)]


@pytest.fixture
def wards(tmp_path):
    """A file of four wards in two boroughs, and one of the boroughs."""
    table = gpd.GeoDataFrame(
        {"WARD": [1, 2, 3, 4], "BOROUGH": list("eeww")}, geometry=WARDS, crs="EPSG:3857"
    )
    table.to_file(tmp_path / "wards.gpkg")
    table.dissolve("BOROUGH").reset_index().to_file(tmp_path / "boroughs.geojson")
    return tmp_path


def test_files_are_read_with_parents_or_one_for_each_level(wards):
    names = str(wards / "boroughs.geojson"), str(wards / "wards.gpkg")
    columns = RegionFiles(paths=names[1:], ids=("WARD",), parents=("BOROUGH",)).read(PLANE)
    assert [level.name for level in columns.levels] == ["BOROUGH", "WARD"]
    assert columns.levels[1].ids == ("1", "2", "3", "4")
    both = RegionFiles(paths=names, ids=("BOROUGH", "WARD")).read(PLANE)
    assert [tuple(level.ids) for level in both.levels] == [("e", "w"), ("1", "2", "3", "4")]
    assert both.digest == columns.digest
    found = CellRegions(kind="grid-cells", cells="2,4").read(PLANE)
    assert found.digest == hierarchy_from_grid("2,4", PLANE).digest
    assert CellRegions(kind="tiles", cells="3").read(PLANE).size == 1
    for kind, words in (("circles", "must be one of grid-cells, h3"), ("polygons", "'hierarchy'")):
        with pytest.raises(ParameterError, match=words):
            CellRegions(kind=kind, cells="2").read(PLANE)


def test_another_package_may_have_a_kind():
    class Halves(GridCells):
        kind = "halves"

    class Module:
        kind = Halves

        @staticmethod
        def hierarchy(text, domain, *, boundary):
            rows, columns = np.divmod(np.arange(4), 2)
            sizes = tuple(map(int, text.split(",")))
            levels, geometry = Halves.from_sizes(domain, sizes, (columns, rows), restricted=False)
            return RegionHierarchy(domain=domain, levels=levels, geometry=geometry)

    plugins.register(KINDS, "kind of regions", "halves", Module)
    try:
        found = CellRegions(kind="halves", cells="4").read(PLANE)
        assert found.kind == "halves"
        assert read_again(found).digest == found.digest
    finally:
        plugins._registered[KINDS].pop("halves")


def test_invalid_polygons_are_repaired_if_that_is_chosen(tmp_path):
    bowtie = shapely.Polygon([(0, 0), (8, 8), (8, 0), (0, 8)])
    gpd.GeoDataFrame({"id": ["a"]}, geometry=[bowtie], crs="EPSG:3857").to_file(tmp_path / "a.gpkg")
    files = {"paths": (str(tmp_path / "a.gpkg"),), "ids": ("id",), "gaps": "outside"}
    told = r"region 'a' is not valid .*; repair it .* repair=True"
    with pytest.raises(ParameterError, match=told):
        RegionFiles(**files).read(PLANE)
    assert RegionFiles(**files, repair=True).read(PLANE).size == 1
    path = str(tmp_path / "plot.gpkg")
    table(BOW, shapely.box(4, 4, 5, 5)).to_file(path)
    with pytest.raises(ParameterError, match="is not valid"):
        BoundaryFile(path=path).read(SMALL)
    area = BoundaryFile(path=path, repair=True).read(SMALL)
    assert area.shape.area == 3


def test_files_that_are_refused(wards, monkeypatch):
    with pytest.raises(ParameterError, match="one column, or one for each of 1 files, got 2"):
        RegionFiles(paths=("a",), ids=("b", "c"))
    with pytest.raises(ParameterError, match="one for each of 0 files"):
        RegionFiles(paths=(), ids=("b",))
    (wards / "text.gpkg").write_text("lon,lat\n1,2\n")
    (wards / "wards.csv").write_text('WARD,wkt\na,"POLYGON((0 0,8 0,8 8,0 8,0 0))"\n')
    for name, error, words in (
        ("none.gpkg", InputDataError, "does not exist or is not a file"),
        ("text.gpkg", InputDataError, "cannot be read as a vector file"),
        ("wards.csv", DomainError, "regions have no CRS"),
    ):
        with pytest.raises(error, match=words):
            RegionFiles(paths=(str(wards / name),), ids=("WARD",)).read(PLANE)
    monkeypatch.setattr("psd.regions.files.MAX_POLYGONS", 3)
    monkeypatch.setattr("geopandas.read_file", lambda *_: pytest.fail("read before it is counted"))
    with pytest.raises(ParameterError, match="must be at most 3 polygons, got 4"):
        RegionFiles(paths=(str(wards / "wards.gpkg"),), ids=("WARD",)).read(PLANE)


def test_a_file_of_regions_must_not_be_an_input_of_records(wards):
    path = wards / "wards.gpkg"
    os.link(path, wards / "linked.gpkg")
    (wards / "named.gpkg").symlink_to(path)
    for name in ("wards.gpkg", "linked.gpkg", "named.gpkg"):
        with pytest.raises(ParameterError, match="must not be an input of records"):
            refuse_record_files([str(path)], ["-", object(), wards / name])
    refuse_record_files([str(path)], ["-", "postgresql://host/db", str(wards / "boroughs.geojson")])


SMALL = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(8, 8))
BOW = shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])
OVERLAP = shapely.MultiPolygon([shapely.box(0, 0, 3, 1), shapely.box(2, 0, 4, 1)])
FLAT = shapely.Polygon([(0, 0), (1, 1), (2, 2)])


def table(*shapes, **columns):
    return gpd.GeoDataFrame(columns, geometry=list(shapes), crs=SMALL.crs)


def test_only_invalid_polygons_are_repaired_and_others_are_named(subtests):
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
        Boundary.from_polygons(polygons, SMALL)
    rows = [
        ("polygon 1 of the boundary has no area when it is repaired", FLAT),
        ("must be a polygon", shapely.Point(1, 1)),
        ("must be a polygon, got missing", None),
        ("must not be empty", shapely.Polygon()),
    ]
    refused(subtests, ParameterError, rows, lambda shape: repair_polygons(table(shape), "boundary"))


@pytest.mark.parametrize("name", ["own.vrt", "own.gpkg"])
def test_a_virtual_data_set_is_refused(tmp_path, name):
    (tmp_path / "private.csv").write_text("id,lon,lat\nlone,1,1\n")
    (tmp_path / name).write_text(
        '<OGRVRTDataSource><OGRVRTLayer name="private">'
        f"<SrcDataSource>{tmp_path}/private.csv</SrcDataSource></OGRVRTLayer></OGRVRTDataSource>"
    )
    with pytest.raises(InputDataError, match="virtual data set"):
        read_polygons(tmp_path / name)


@pytest.mark.deep
def test_a_virtual_raster_is_refused(tmp_path):
    (tmp_path / "own.tif").write_text('<VRTDataset rasterXSize="1" rasterYSize="1"/>')
    with pytest.raises(InputDataError, match="virtual data set"):
        read_raster(tmp_path / "own.tif", Domain(bounds=(0, 0, 1, 1)))


def areas(path):
    return RegionFiles(paths=(str(path),), ids=("id",), gaps="outside").read(PLANE)


READERS = {
    "polygons": lambda path: read_polygons(path).total_bounds.tolist(),
    "a table": lambda path: read_table(path).total_bounds.tolist(),
    "regions": lambda path: areas(path).digest,
    "a boundary": lambda path: BoundaryFile(path=str(path)).read(PLANE).shape.bounds,
    "a covariate": lambda path: CovariateFile(path=str(path), size=8).read(PLANE).raster.sum(),
    "bounds": lambda path: bounds_from_file(str(path), "EPSG:3857"),
    "a number": lambda path: count_features(path, "regions"),
}


@pytest.fixture
def layers(tmp_path):
    """A file of two layers, whose first regions are named as their layers."""
    return two_layers(tmp_path / "city.gpkg")


@pytest.mark.parametrize("what", READERS)
def test_a_layer_is_chosen_wherever_a_file_is_read(layers, what):
    both = read_layers(READERS[what], layers)
    assert (both[0] == both[1]) == (what == "a number")


def test_a_file_is_the_same_file_with_a_layer(layers, tmp_path):
    """Whatever asks which files are read: files of records, and outputs, are recognised."""
    with pytest.raises(ParameterError, match="must not be an input of records"):
        refuse_record_files([f"{layers}:layer=wards"], [layers])
    with pytest.raises(WriteError, match="read as an input too"):
        check_free(layers, overwrite=True, inputs=[f"{layers}:layer=wards"])
    odd = tmp_path / "a.gpkg:layer=b"
    odd.write_bytes(Path(f"{layers}").read_bytes())
    assert file_of(odd) == odd
    (tmp_path / "w.wkt").write_text("POINT (1 2)")
    with pytest.raises(InputDataError, match="has no layers; leave out :layer=x"):
        read_polygons(tmp_path / "w.wkt:layer=x")


def test_boxes_are_read_as_records_are(tmp_path, subtests):
    expected = [[1.5, 2.0, 3.0, 4.25]]
    same = {
        "commas": "west,south,east,north\n1.5,2,3,4.25\n",
        "semicolons": "west;south;east;north\n1.5;2;3;4.25\n",
        "tabs": "west\tsouth\teast\tnorth\n1.5\t2\t3\t4.25\n",
        "capitals": "WEST,South,EAST,North\n1.5,2,3,4.25\n",
        "a mark and CR LF": "\ufeffwest,south,east,north\r\n1.5,2,3,4.25\r\n",
        "decimal commas": "West;South;East;North\n1,5;2;3;4,25\n",
        "quotes and spaces": '"west";"south";"east" ;"north"\n"1,5"; 2;3 ;4,25\n',
        "more columns": "id,note,north,east,south,west\na,b,4.25,3,2,1.5\n",
    }
    contents = {what: text.encode() for what, text in same.items()}
    contents["UTF-16"] = same["decimal commas"].encode("utf-16")
    path = tmp_path / "boxes.csv"
    for what, content in contents.items():
        path.write_bytes(content)
        with subtests.test(what):
            table = read_boxes(path)
            assert table[["west", "south", "east", "north"]].to_numpy().tolist() == expected
    path.write_text("ID;west;south;east;north\n07;1;2;3;4\n")
    assert read_boxes(path)["id"].tolist() == ["07"]
    for content, words in (
        ("west;south;east\n1;2;3\n", "has no column north"),
        ("West,WEST,south,east,north\n1,1,2,3,4\n", "has no column west"),
        ("west;south;east;north\n1,5;2.0;3;4\n", "line 2: west is not a finite number"),
        ('west,south,east,north\n"1,5",2,3,4\n', "line 2: west is not a finite number"),
        ("sep=;\nwest;south;east;north\n1;2;3;4\n", "names the separator"),
        ('west,"south,east,north\n1,2,3,4\n', "is not a UTF-8 CSV file"),
        ("west,south,east,north\n1,2,3,4,5\n", "more fields than its first line"),
    ):
        path.write_text(content)
        with subtests.test(content), pytest.raises(InputDataError, match=words):
            read_boxes(path)


def test_boxes_of_one_of_several_sheets(tmp_path):
    """The message that names the sheets gives a way to choose one."""
    path, table = tmp_path / "b.xlsx", pd.DataFrame([[1.5, 2, 3, 4]])
    table.columns = ["West", "south", "east", "north"]
    with pd.ExcelWriter(path) as book:
        table.to_excel(book, sheet_name="one", index=False)
        (table + 1).to_excel(book, sheet_name="two", index=False)
    with pytest.raises(InputDataError, match=r"several layers \(one, two\).*b.xlsx:layer=one"):
        read_boxes(path)
    assert read_boxes(tmp_path / "b.xlsx:layer=two")["west"].tolist() == [2.5]
    domain = psd.Domain(bounds=(0, 0, 8, 8), lattice=(4, 4))
    release = release_from_counts(np.ones((4, 4), int), domain=domain)
    assert release.query(f"{path}:layer=two")["west"].tolist() == [2.5]
    (tmp_path / "b.csv").write_text("west,south,east,north\n1,2,3,4\n")
    with pytest.raises(InputDataError, match="has no layers; leave out :layer=one"):
        read_boxes(tmp_path / "b.csv:layer=one")


def test_text_is_in_utf_8_or_utf_16_or_refused_with_advice(tmp_path, subtests):
    """The same for all readers of public text; letters of Windows are no reason to guess."""
    table = "id,west,south,east,north\nCafé,1,2,3,4\n"
    shapes = 'id,wkt\nCafé,"POLYGON ((1 2, 3 2, 3 4, 1 2))"\n'
    lines = "POLYGON ((1 2, 3 2, 3 4, 1 2))\n\n"
    readers = {
        "boxes.csv": (read_boxes, table),
        "table.csv": (read_table, table),
        "polygons.csv": (partial(read_polygons, crs="EPSG:4326"), shapes),
        "polygons.wkt": (partial(read_polygons, crs="EPSG:4326"), lines),
    }
    for name, (read, text) in readers.items():
        path = tmp_path / name
        for encoding in ("utf-8", "utf-8-sig", "utf-16"):
            with subtests.test(name, encoding=encoding):
                path.write_bytes(text.encode(encoding))
                found = read(path)
                assert len(found) == 1
                assert "id" not in found or found["id"].tolist() == ["Café"]
        for encoding in ("latin-1", "windows-1252"):
            with subtests.test(name, encoding=encoding):
                path.write_bytes((text + "é").encode(encoding))
                with pytest.raises(InputDataError) as raised:
                    read(path)
                assert f"{path} is not in UTF-8; save it as text in UTF-8" in str(raised.value)
                assert "iconv -f windows-1252 -t utf-8" in str(raised.value)
