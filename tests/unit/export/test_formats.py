"""Exports: every format holds the table of cells, and nothing about the machine."""

import csv
import getpass
import io
import json
import os
import zipfile

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow.csv
import pyogrio
import pytest
import shapely
from pyproj import CRS, Geod

import psd
from psd._util.column_kinds import csv_text
from psd.errors import ParameterError, WriteError
from psd.export import raster_suffixes, suffixes
from psd.export.csv import write as write_csv
from psd.statistics.raster import density_raster
from psd.testing import check_export
from support.releases import as_drawn
from support.trees import SOUTH_UP, grid_release, random_tree, release_of

COLUMNS = [
    "cell", "level", "estimate", "perturbation_error", "density", "relative_error", "reliable",
    "quality",
]  # fmt: skip
METRES = "EPSG:5179"
LOCAL = 'LOCAL_CS["site",UNIT["metre",1],AXIS["Easting",EAST],AXIS["Northing",NORTH]]'


@pytest.fixture(scope="module")
def seoul():
    """Release in degrees."""
    domain = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0))
    tree = psd.decompositions.grid_tree(domain, 5)
    return as_drawn(psd.Release.from_counts(tree, np.arange(25) * 3 - 5, "0.5", domain=domain))


@pytest.fixture(scope="module")
def metres():
    """Release in a projected CRS."""
    domain = psd.Domain(bounds=(900_000, 1_900_000, 1_000_000, 2_000_000), crs=METRES)
    tree = psd.decompositions.grid_tree(domain, 3)
    return as_drawn(psd.Release.from_counts(tree, np.arange(9), 1, domain=domain))


def layer_of(path):
    """Cells of a GeoPackage, which has a table of styles beside them."""
    return gpd.read_file(path, layer="cells")


def reopened(path):
    return gpd.read_parquet(path) if path.suffix == ".parquet" else layer_of(path)


def with_infinity(table, suffix):
    """The table with the relative errors that have no value in formats of GDAL."""
    empty = table["relative_error"].isna()
    assert empty.any() == (suffix != ".parquet")
    return table.assign(relative_error=table["relative_error"].fillna(np.inf))


def assert_same_cells(table, expected, *, tolerance=0.0):
    assert list(table.columns) == list(expected.columns)
    for name in COLUMNS[:-1]:
        assert table[name].tolist() == pytest.approx(expected[name].tolist(), rel=1e-12)
    assert table["quality"].tolist() == expected["quality"].tolist()
    pairs = zip(table.geometry, expected.geometry, strict=True)
    assert all(a.normalize().equals_exact(b.normalize(), tolerance) for a, b in pairs)


# --- the table ----------------------------------------------------------------------------


def test_leaves_tile_the_domain_and_hold_the_estimates(seoul):
    table = seoul.to_geopandas()
    assert list(table.columns) == [*COLUMNS, "geometry"]
    assert table.crs == "EPSG:4326"
    assert len(table) == 25
    leaf = seoul.tree.is_leaf
    assert table.cell.tolist() == np.flatnonzero(leaf).tolist()
    assert table.level.tolist() == seoul.tree.level[leaf].tolist()
    assert table.estimate.tolist() == seoul.index.fit.estimates.count[leaf].tolist()
    variance = seoul.index.fit.noise_covariance.variance[leaf]
    assert list(table.perturbation_error) == pytest.approx(np.sqrt(variance))
    assert table.union_all().equals(shapely.box(*seoul.domain.bounds))
    assert shapely.area(table.geometry.array).sum() == pytest.approx(1.2)


def test_all_levels_on_request(seoul):
    table = seoul.to_geopandas("all")
    assert len(table) == len(seoul.tree)
    assert table.geometry[0].equals(shapely.box(*seoul.domain.bounds))
    assert table.estimate.tolist() == seoul.index.fit.estimates.count.tolist()


def test_densities_in_degrees_are_per_square_kilometre_of_the_ellipsoid(seoul):
    table = seoul.to_geopandas("all")
    # Another rule for areas: sums of geodesic polygons whose parallels have many corners.
    curved = table.geometry.segmentize(0.001)
    km2 = curved.map(lambda shape: abs(Geod(ellps="WGS84").geometry_area_perimeter(shape)[0]) / 1e6)
    assert km2[0] == pytest.approx(11_750, rel=0.01)
    assert list(table.density * km2) == pytest.approx(table.estimate.tolist(), rel=1e-5)


def test_densities_are_those_of_rankings_and_rasters(seoul):
    table, ranked = seoul.to_geopandas(), seoul.query(top=25).table
    by_density = table.sort_values("estimate", ascending=False, kind="stable").density
    assert ranked.density.tolist() == pytest.approx(by_density.tolist())
    assert sorted(density_raster(seoul.index.fit, 5, 5).density.ravel()) == pytest.approx(
        sorted(table.density), abs=1e-5
    )


@pytest.mark.parametrize(
    ("crs", "bounds", "sides"),
    [
        ("EPSG:3857", (0, 8.2e6, 2e5, 8.6e6), None),  # a quarter of the plane
        ("EPSG:4807", (0, 48, 4, 52), None),  # grads
        ("EPSG:2263", (9e5, 1e5, 1.1e6, 3e5), None),  # US feet
        ("EPSG:3832", (2e6, -2e6, 5e6, 2e6), None),  # over 180 degrees east
        ("EPSG:3031", (-2e6, -2e6, 2e6, 2e6), None),  # around the pole
        (LOCAL, (0, 0, 200, 200), 1e4),  # does not state where on the earth it is
    ],
)
def test_densities_are_per_area_on_the_ground(crs, bounds, sides):
    domain = psd.Domain(bounds=bounds, crs=crs, min_cell=None)
    made = psd.Release.from_counts(
        psd.decompositions.grid_tree(domain, 2), np.arange(1, 5), 1, domain=domain
    )
    table = made.to_geopandas()
    shapes = table.geometry.segmentize(domain.height / 200)
    areas = [sides] * 4
    if sides is None:
        degrees = shapes.to_crs(CRS.from_user_input(crs).geodetic_crs)
        unit = np.degrees(degrees.crs.axis_info[0].unit_conversion_factor)
        geod = degrees.crs.get_geod()
        degrees = shapely.transform(degrees.to_numpy(), lambda vertices: vertices * unit)
        areas = [abs(geod.geometry_area_perimeter(shape)[0]) / 1e6 for shape in degrees]
    expected = table.estimate / areas
    assert table.density.tolist() == pytest.approx(expected.tolist(), rel=1e-4)
    assert density_raster(made.index.fit, 2, 2).density[::-1].ravel() == pytest.approx(
        density_raster(made.index.fit, 2, 2).count[::-1].ravel() / _by_place(table, areas), rel=1e-4
    )
    ranked = made.query(top=4, by="density")["density"]
    assert ranked.tolist() == pytest.approx(sorted(expected, reverse=True), rel=1e-4)


def _by_place(table, areas):
    """Areas of cells, row by row from the south-west."""
    low = table.geometry.bounds
    return np.array(areas)[np.lexsort([low.minx, low.miny])]


def test_cells_show_where_points_are_counted():
    # The published edges are those that points were compared with.
    release = release_of(random_tree(np.random.default_rng(3)))
    table = release.to_geopandas()
    corners = release.domain.from_lattice(release.tree.boxes[release.tree.is_leaf])
    assert table.geometry.bounds.to_numpy().tolist() == corners.tolist()


def test_other_cells_are_refused(seoul):
    for cells in ("leafs", "", None, 1):
        with pytest.raises(ParameterError, match="leaves, all"):
            seoul.to_geopandas(cells)


# --- the formats --------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".gpkg", ".parquet"])
@pytest.mark.parametrize("cells", ["leaves", "all"])
@pytest.mark.parametrize("place", ["seoul", "metres"])
def test_exact_formats_are_reopened_as_the_table(request, tmp_path, suffix, cells, place):
    release = request.getfixturevalue(place)
    release.export(tmp_path / f"out{suffix}", cells=cells)
    table = reopened(tmp_path / f"out{suffix}")
    assert_same_cells(with_infinity(table, suffix), release.to_geopandas(cells))
    assert table.crs == release.domain.crs
    assert [entry.name for entry in tmp_path.iterdir()] == [f"out{suffix}"]


@pytest.mark.parametrize("place", ["seoul", "metres"])
def test_geojson_is_in_longitude_and_latitude(request, tmp_path, place):
    release = request.getfixturevalue(place)
    release.export(tmp_path / "out.geojson")
    table = reopened(tmp_path / "out.geojson")
    assert table.crs == "EPSG:4326"
    expected = release.to_geopandas()
    expected = expected.set_geometry(expected.segmentize(1000 if place == "metres" else 1))
    expected = expected.to_crs("EPSG:4326")
    # Sides are divided as far as they are not straight in degrees.
    shapes = np.asarray(table.geometry), np.asarray(expected.geometry)
    apart = shapely.area(shapely.symmetric_difference(*shapes))
    assert (apart < 1e-4 * shapely.area(shapes[1])).all()
    expected = expected.set_geometry(table.geometry)
    assert_same_cells(with_infinity(table, ".geojson"), expected)
    west, south, east, north = table.total_bounds
    assert 124 < west < east < 130
    assert 35 < south < north < 39
    # The outer rings run counter-clockwise, as RFC 7946 wants.
    assert all(shape.exterior.is_ccw for shape in table.geometry)


@pytest.mark.parametrize("place", ["seoul", "metres"])
@pytest.mark.parametrize("cells", ["leaves", "all"])
def test_csv_has_the_sides_in_the_crs_of_the_release(request, tmp_path, place, cells):
    release = request.getfixturevalue(place)
    release.export(tmp_path / "out.csv", cells=cells)
    # The reader of pandas before 3 may be off in the last bit.
    table = pyarrow.csv.read_csv(tmp_path / "out.csv").to_pandas()
    sides = ["west", "south", "east", "north"]
    assert list(table.columns) == ["cell", "level", *sides, *COLUMNS[2:]]
    expected = release.to_geopandas(cells)
    assert table.quality.tolist() == expected.quality.tolist()
    assert (
        table[COLUMNS[:-1]].astype(float).equals(pd.DataFrame(expected[COLUMNS[:-1]]).astype(float))
    )
    assert table[sides].to_numpy().tolist() == expected.geometry.bounds.to_numpy().tolist()
    assert b"\r" not in (tmp_path / "out.csv").read_bytes()
    # The table answers for its own cells when it is asked about them.
    assert list(release.query(table).table.estimate) == pytest.approx(table.estimate.tolist())


TEXTS = {
    '=HYPERLINK("x")': '\'=HYPERLINK("x")',
    "@SUM(A1)": "'@SUM(A1)",
    "+1+1": "'+1+1",
    "-A1": "'-A1",
    "\t=1": "'\t=1",
    "-": "'-",
    "-12.5": "-12.5",
    "+82": "+82",
    "-1e-5": "-1e-5",
    "Mapo=gu": "Mapo=gu",
    "": "",
}


def test_no_text_of_a_csv_file_is_a_formula(tmp_path):
    """Ids of regions come from files of others; numbers stay as they are."""
    table = pd.DataFrame({"id": [*TEXTS], "=kind": pd.Categorical([*TEXTS]), "n": -1.5})
    table["at"] = pd.Timestamp("2026-01-05", tz="Asia/Seoul")
    table["none"] = [None] * len(TEXTS)
    before = table.copy()
    for text in (csv_text(table), exported(tmp_path / "out.csv", table)):
        read = [*csv.DictReader(io.StringIO(text, newline=""))]
        assert [row["id"] for row in read] == [*TEXTS.values()]
        assert [row["'=kind"] for row in read] == [*TEXTS.values()]
        assert {(row["n"], row["none"]) for row in read} == {("-1.5", "")}
    pd.testing.assert_frame_equal(table, before)


def exported(path, table):
    """Text of an export of a table with its points."""
    shapes = gpd.points_from_xy(range(len(table)), range(len(table)))
    write_csv(gpd.GeoDataFrame(table, geometry=shapes), path)
    return path.read_bytes().decode()


def test_layers_filters_and_endings(seoul, tmp_path):
    seoul.export(tmp_path / "seoul.gpkg")
    assert pyogrio.list_layers(tmp_path / "seoul.gpkg")[0].tolist() == ["cells", "Polygon"]
    seoul.export(tmp_path / "seoul.parquet")
    table = gpd.read_parquet(tmp_path / "seoul.parquet", bbox=(126.41, 37.01, 126.42, 37.02))
    assert len(table) == 1
    seoul.export(str(tmp_path / "OUT.CSV"))
    assert (tmp_path / "OUT.CSV").read_text().startswith("cell,")


# --- what is refused ----------------------------------------------------------------------


def test_an_unknown_ending_is_refused_with_the_known_ones(seoul, tmp_path):
    for name in ("out.shp", "out", "out.gpkg.zip", "out.py", ".gpkg", "out.txt"):
        with pytest.raises(ParameterError, match=r"\.csv, \.fgb, \.geojson, \.gpkg, \.parquet"):
            seoul.export(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", suffixes())
def test_bad_cells_leave_no_file_and_an_existing_one_is_kept(seoul, tmp_path, suffix):
    target = tmp_path / f"out{suffix}"
    with pytest.raises(ParameterError, match="leaves, all"):
        seoul.export(target, cells="some")
    assert list(tmp_path.iterdir()) == []
    target.write_bytes(b"mine")
    with pytest.raises(WriteError, match="exists"):
        seoul.export(target)
    assert target.read_bytes() == b"mine"
    seoul.export(target, overwrite=True)
    assert target.read_bytes() != b"mine"
    assert list(tmp_path.iterdir()) == [target]


def unpacked(path):
    """Content without compression, in which two letters of a host's name would occur by chance."""
    if path.suffix == ".xlsx":
        with zipfile.ZipFile(path) as parts:
            return b"\n".join(name.encode() + parts.read(name) for name in parts.namelist())
    if path.suffix == ".pmtiles":
        from pmtiles.reader import MemorySource, Reader

        reader = Reader(MemorySource(path.read_bytes()))
        return json.dumps(reader.metadata()).encode()
    return path.read_bytes()


# Vector tiles are read by a package of the deep tier.
SUFFIXES = [
    pytest.param(suffix, marks=[pytest.mark.deep] * (suffix == ".pmtiles")) for suffix in suffixes()
]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_no_path_and_no_user_name_is_in_the_file(seoul, tmp_path, suffix):
    folder = tmp_path / "folder-of-somebody"
    folder.mkdir()
    seoul.export(folder / f"out{suffix}")
    content = unpacked(folder / f"out{suffix}")
    names = [str(tmp_path), folder.name, os.uname().nodename, ".psd-"]
    names += [f"/{getpass.getuser()}/", os.path.expanduser("~") + "/"]
    for name in names:
        assert name.encode() not in content


def test_rasters_and_tables_take_each_its_own_arguments(tmp_path):
    release = grid_release(SOUTH_UP)
    with pytest.raises(ParameterError, match="size must be left out"):
        release.export(tmp_path / "r.csv", size=(3, 3))
    with pytest.raises(ParameterError, match="leaves"):
        release.export(tmp_path / "r.npy", cells="all")


READERS = {
    ".csv": pd.read_csv,
    ".geojson": gpd.read_file,
    ".gpkg": layer_of,
    ".fgb": lambda path: gpd.read_file(path).sort_values("cell"),
    ".parquet": gpd.read_parquet,
    ".npy": np.load,
    ".xlsx": pd.read_excel,
}


@pytest.mark.parametrize("suffix", READERS)
def test_the_contract_of_psd_testing_holds(suffix):
    check_export(suffix, READERS[suffix])


def test_the_contract_sees_a_format_that_leaves_cells_out():
    with pytest.raises(AssertionError, match="must write cell of every cell"):
        check_export(".csv", lambda path: pd.read_csv(path).iloc[1:])


@pytest.mark.parametrize("ending", ["geojson", "gpkg", "fgb", "parquet"])
def test_cells_at_longitude_180_and_at_a_pole_are_where_the_records_are(tmp_path, ending):
    """Every format has the shapes of one function, and no part wider than 180 degrees of a cell."""
    options = {} if ending == "geojson" else {"crs": "EPSG:4326"}
    read = gpd.read_parquet if ending == "parquet" else gpd.read_file
    for crs, bounds, area in (
        ("EPSG:3832", (2_226_389, -2_500_000, 4_452_779, -1_300_000), 20 * 10.363),
        ("EPSG:3031", (-3e6, -3e6, 3e6, 3e6), None),
    ):
        domain = psd.Domain(bounds=bounds, crs=crs)
        tree = psd.decompositions.grid_tree(domain, 5)
        release = as_drawn(psd.Release.from_counts(tree, np.arange(25), 1, domain=domain))
        path = tmp_path / f"{crs[-4:]}.{ending}"
        release.export(path, **options)
        table = read(path, **({"layer": "cells"} if ending == "gpkg" else {}))
        parts = table.geometry.explode().bounds
        assert table.is_valid.all()
        assert ((parts.maxx - parts.minx < 180) | (parts.miny == -90)).all()
        whole = shapely.area(np.asarray(table.geometry)).sum()
        assert whole == pytest.approx(table.union_all().area, rel=1e-6)
        if area is None:  # the cell of the pole has all longitudes
            pole = table.geometry[table.contains(shapely.Point(0, -89))].iloc[0]
            assert pole.bounds[:3] == (-180, -90, 180)
        else:
            assert whole == pytest.approx(area, rel=1e-3)


def test_formats_are_found_by_their_endings():
    assert suffixes() == (".csv", ".fgb", ".geojson", ".gpkg", ".parquet", ".pmtiles", ".xlsx")
    assert raster_suffixes() == (".tif", ".npy")
