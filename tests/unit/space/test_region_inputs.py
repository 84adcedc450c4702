"""Regions in files, or by sizes: what is read, and what is refused before."""

import os

import geopandas as gpd
import numpy as np
import pytest
import shapely

import psd
from psd._util import plugins
from psd.errors import DomainError, InputDataError, ParameterError
from psd.space.region_hierarchy import KINDS, RegionHierarchy
from psd.space.region_inputs import CellRegions, RegionFiles, refuse_record_files
from psd.space.region_kinds.grid_cells import GridCells, hierarchy_from_grid

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


def test_cells_are_made_by_the_name_of_their_kind():
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
            levels, geometry = Halves.from_sizes(
                domain, tuple(map(int, text.split(","))), hierarchy_cells(domain), restricted=False
            )
            return RegionHierarchy(domain=domain, levels=levels, geometry=geometry)

    def hierarchy_cells(domain):
        rows, columns = np.divmod(np.arange(4), 2)
        return columns, rows

    plugins.register(KINDS, "kind of regions", "halves", Module)
    try:
        found = CellRegions(kind="halves", cells="4").read(PLANE)
        assert found.kind == "halves"
        again = RegionHierarchy.from_table(PLANE, found.parameters(), found.to_table())
        assert again.digest == found.digest
    finally:
        plugins._registered[KINDS].pop("halves")


def test_invalid_polygons_are_repaired_if_that_is_chosen(tmp_path):
    bowtie = shapely.Polygon([(0, 0), (8, 8), (8, 0), (0, 8)])
    gpd.GeoDataFrame({"id": ["a"]}, geometry=[bowtie], crs="EPSG:3857").to_file(tmp_path / "a.gpkg")
    files = {"paths": (str(tmp_path / "a.gpkg"),), "ids": ("id",), "gaps": "outside"}
    with pytest.raises(ParameterError, match=r"region 1 is not valid .*; repair it .* repair=yes"):
        RegionFiles(**files).read(PLANE)
    assert RegionFiles(**files, repair=True).read(PLANE).size == 1


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
    monkeypatch.setattr("psd.space.region_inputs.MAX_POLYGONS", 3)
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
