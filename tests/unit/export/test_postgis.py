"""A release as a table of PostGIS: whole or not at all, and what GIS programs find in it."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from psd.errors import ParameterError, WriteError
from psd.export import postgis as writer
from support.cli_runner import fails, passes, three_by_three
from support.postgres import execute, rows
from support.values import of_values, rides

pytestmark = pytest.mark.deep

COLUMNS = ["cell", "level", "estimate", "perturbation_error", "density"]


@pytest.fixture(scope="module")
def database(postgis):
    """A schema of its own."""
    execute(postgis, "CREATE SCHEMA shop")
    return postgis


@pytest.fixture(scope="module")
def release():
    domain = psd.Domain(bounds=(900_000, 1_900_000, 1_000_000, 2_000_000), crs="EPSG:5179")
    return psd.Release.from_counts(
        psd.decompositions.grid_tree(domain, 5), np.arange(25) - 5, "1", domain=domain
    )


def stored(url, table):
    """The table as GIS programs see it."""
    found = rows(url, f"SELECT {', '.join(COLUMNS)}, ST_AsBinary(geom), ST_SRID(geom) FROM {table}")
    frame = pd.DataFrame(found, columns=[*COLUMNS, "wkb", "srid"]).sort_values("cell")
    shapes = shapely.from_wkb(frame.wkb.to_numpy())
    return gpd.GeoDataFrame(frame[COLUMNS], geometry=shapes, crs=int(frame.srid.iloc[0]))


def tables(url):
    return {
        name for (name,) in rows(url, "SELECT tablename FROM pg_tables WHERE schemaname='shop'")
    }


@pytest.mark.parametrize("cells", ["leaves", "all"])
def test_every_number_comes_back(database, release, cells):
    release.export(database, table=f"shop.{cells}", cells=cells)
    expected, found = release.to_geopandas(cells), stored(database, f"shop.{cells}")
    assert found.crs == "EPSG:5179"
    for name in COLUMNS:
        np.testing.assert_array_equal(found[name], expected[name])
    assert all(a.equals_exact(b) for a, b in zip(found.geometry, expected.geometry, strict=True))


def test_what_gis_programs_look_for(database, release):
    release.export(database, table="shop.Named So")
    assert rows(database, "SELECT type, srid, coord_dimension FROM geometry_columns "
                "WHERE f_table_name = 'Named So'") == [("POLYGON", 5179, 2)]  # fmt: skip
    indexes = rows(database, "SELECT indexdef FROM pg_indexes WHERE tablename = 'Named So'")
    assert sorted("gist" in text for (text,) in indexes) == [False, True]
    ((note,),) = rows(database, "SELECT obj_description('shop.\"Named So\"'::regclass)")
    assert "epsilon 1; unit_of_privacy per record" in note


@pytest.mark.parametrize("name", ["fare won", "Fare", 'a" b', "x; DROP TABLE shop.kept; --"])
def test_any_name_of_a_value_is_a_column(database, name):
    release = of_values(rides().rename(columns={"fare": name}), values={name: (0, 60)})
    release.export(database, table="shop.fares", overwrite=True)
    quoted = f"mean_{name}".replace('"', '""')
    found = rows(database, f'SELECT cell, "{quoted}" FROM shop.fares ORDER BY cell')
    cells = release.to_geopandas().sort_values("cell")
    assert found == list(zip(cells.cell, cells[f"mean_{name}"], strict=True))


def test_an_existing_table_is_kept_unless_told(database, release):
    execute(database, "CREATE TABLE shop.kept AS SELECT 7 AS a")
    with pytest.raises(WriteError, match=r"exists.*overwrite=True"):
        release.export(database, table="shop.kept")
    assert rows(database, "SELECT a FROM shop.kept") == [(7,)]
    release.export(database, table="shop.kept", overwrite=True)
    assert rows(database, "SELECT count(*) FROM shop.kept") == [(25,)]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_failure_leaves_everything_as_it_was(database, release, overwrite, monkeypatch):
    execute(database, "DROP TABLE IF EXISTS shop.old", "CREATE TABLE shop.old AS SELECT 7 AS a")
    before, name = tables(database), "shop.old" if overwrite else "shop.fresh"

    def broken(cursor, *rest, fill=writer._fill):
        fill(cursor, *rest)
        cursor.execute("SELECT * FROM shop.nothing")

    monkeypatch.setattr(writer, "_fill", broken)
    with pytest.raises(WriteError, match="does not exist"):
        release.export(database, table=name, overwrite=overwrite)
    assert tables(database) == before
    assert rows(database, "SELECT a FROM shop.old") == [(7,)]


def test_views_and_their_tables_are_not_replaced(database, release):
    execute(
        database,
        "CREATE TABLE shop.base AS SELECT 7 AS a",
        "CREATE VIEW shop.seen AS SELECT * FROM shop.base",
    )
    refusals = {"shop.seen": "a view or another object", "shop.base": "depend on it"}
    for table, words in refusals.items():
        with pytest.raises(WriteError, match=words):
            release.export(database, table=table, overwrite=True)
    assert rows(database, "SELECT a FROM shop.seen") == [(7,)]


def test_what_is_refused(database, release, tmp_path, subtests):
    for given, error, words in (
        ({}, ParameterError, "^table must name a table"),
        ({"table": "a.b.c"}, ParameterError, "public.visits"),
        ({"table": "nowhere.cells"}, WriteError, "schema that does not exist"),
        ({"table": "shop.x", "size": (3, 3)}, ParameterError, "size must be left out"),
    ):
        with subtests.test(words), pytest.raises(error, match=words):
            release.export(database, **given)
    with pytest.raises(ParameterError, match="postgresql://"):
        release.export(tmp_path / "cells.gpkg", table="public.cells")


def test_a_crs_that_the_database_does_not_know(database):
    local = psd.Domain(bounds=(0, 0, 4, 4), crs='LOCAL_CS["here",UNIT["metre",1]]')
    release = psd.Release.from_counts(
        psd.decompositions.grid_tree(local, 2), np.arange(4), "1", domain=local
    )
    with pytest.raises(WriteError, match="spatial_ref_sys"):
        release.export(database, table="shop.local")


def test_a_database_without_postgis(database, release):
    execute_alone(database, "CREATE DATABASE bare")
    with pytest.raises(WriteError, match="CREATE EXTENSION"):
        release.export(database.replace("/postgres?", "/bare?"), table="cells")


def execute_alone(url, statement):
    """Run a statement that no transaction may hold."""
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(statement)


def test_a_user_without_permission(database, release):
    execute(database, "CREATE ROLE reader LOGIN")
    with pytest.raises(WriteError, match="permission"):
        release.export(database.replace("psd@", "reader@"), table="shop.cells")


def test_the_command_line(database, tmp_path):
    path = tmp_path / "r.psd.parquet"
    three_by_three().save(path)
    told = passes("export", path, database, "--table", "shop.line")
    assert told == "wrote table shop.line of database postgres on the local server\n"
    assert rows(database, "SELECT sum(estimate) FROM shop.line") == [(22.0,)]
    assert "exists" in fails(6, "export", path, database, "--table", "shop.line")
    passes("export", path, database, "--table", "shop.line", "--overwrite", "--cells", "all")
    assert "--table" in fails(2, "export", path, database)
    assert "postgresql://" in fails(2, "export", path, tmp_path / "a.gpkg", "--table", "b")
