"""Seconds and memory of reading points from each kind of source, without counting them."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import geopandas as gpd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from support.postgres import execute, has_driver, ingest, programs, server

READ = """
import re, sys, time
import duckdb, pandas, pyarrow, pyogrio, pyproj, shapely
import psd
from psd.ingest.sources import Columns, read

domain = psd.Domain(bounds=(126, 37, 128, 38))
where, table = sys.argv[1:3]
data = psd.PostGIS(where, table=table) if table else where
begun = time.perf_counter()
rows = sum(len(batch.x) for batch in read(data, Columns(user="id"), domain))
seconds = time.perf_counter() - begun
peak = re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]
print(rows, seconds, int(peak) // 1024)
"""


def measured(name: str, where: object, table: str = "") -> None:
    """Print a line of the table."""
    command = [sys.executable, "-c", READ, str(where), table]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows, seconds, megabytes = told.split()
    print(f"| {name} | {int(rows):,} | {float(seconds):.1f} | {megabytes} |", flush=True)


def points(size: int) -> pa.Table:
    """Uniform points of 200,000 users."""
    rng = np.random.default_rng(0)
    places = {"lon": rng.uniform(126, 128, size), "lat": rng.uniform(37, 38, size)}
    return pa.table({**places, "id": rng.integers(0, 200_000, size)})


def shapes(table: pa.Table, crs: str) -> gpd.GeoDataFrame:
    """The same with geometries."""
    places = gpd.points_from_xy(table["lon"], table["lat"], crs="EPSG:4326")
    return gpd.GeoDataFrame({"id": table["id"].to_numpy()}, geometry=places).to_crs(crs)


def main() -> None:
    """Make the inputs, read each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    rows = parser.parse_args().rows
    table = points(rows)
    few = shapes(table.slice(0, rows // 5), "EPSG:4326")
    print("| source | rows | seconds | peak MB |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pq.write_table(table, folder / "a.parquet")
        measured("Parquet", folder / "a.parquet")
        pq.write_table(table, folder / "one.parquet", row_group_size=rows)
        measured("Parquet, one row group", folder / "one.parquet")
        few.to_parquet(folder / "g.parquet")
        measured("GeoParquet", folder / "g.parquet")
        few.to_crs("EPSG:5179").to_parquet(folder / "k.parquet")
        measured("GeoParquet, EPSG:5179 to EPSG:4326", folder / "k.parquet")
        for label, ending in (("GeoPackage", "gpkg"), ("FlatGeobuf", "fgb"), ("Shapefile", "shp")):
            few.to_file(folder / f"a.{ending}")
            measured(label, folder / f"a.{ending}")
    if programs() and has_driver():
        database(table.slice(0, rows // 2))


def database(table: pa.Table) -> None:
    """The same from a throw-away server."""
    with server() as url:
        ingest(url, "plain", table)
        execute(
            url,
            "CREATE EXTENSION postgis",
            "CREATE TABLE shaped AS SELECT id, ST_SetSRID(ST_Point(lon, lat), 4326) AS geom "
            "FROM plain",
        )
        measured("PostGIS, two columns", url, "plain")
        measured("PostGIS, geometries", url, "shaped")


if __name__ == "__main__":
    main()
