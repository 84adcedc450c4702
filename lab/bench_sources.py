"""Seconds and memory of reading points from each kind of source, without counting them.

    python lab/bench_sources.py [--rows 10000000] [--copies]

Each source is read in a process of its own; seconds are CPU seconds of the reading alone. A server
of PostGIS is measured where its programs are there. With `--copies` eight files are read that are
compared with each other, or not.
"""

import tempfile
from pathlib import Path

import geopandas as gpd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import run_python, study

READ = """
import sys, time
import duckdb, pandas, pyarrow, pyogrio, pyproj, shapely
import psd
from psd.ingest.sources import Columns, read

domain = psd.Domain(bounds=(126, 37, 128, 38))
where, table, compared = sys.argv[1:4]
data = psd.sources.PostGIS(where, table=table) if table else where
begun = time.process_time()
compare = {} if compared else {"on_copy": None}
rows = sum(len(batch.x) for batch in read(data, Columns(user="id"), domain, **compare))
seconds = time.process_time() - begun
print(rows, seconds)
"""


WIDTHS = {"lon": "%012.8f", "lat": "%011.8f", "id": "%06d"}
"""Columns of CSV, and how wide they are."""


def run(where: object, table: str = "", *, compared: bool = True) -> tuple[int, float, str]:
    """Read once in a process of its own: records, seconds and MB."""
    cost = run_python(READ, where, table, "yes" if compared else "")
    rows, seconds = cost.printed.split()
    return int(rows), float(seconds), f"{cost.memory:.0f}"


def measured(name: str, where: object, table: str = "") -> None:
    """Print a line of the table."""
    rows, seconds, megabytes = run(where, table)
    print(f"| {name} | {rows:,} | {seconds:.1f} | {megabytes} |", flush=True)


def several(folder: Path, table: pa.Table) -> None:
    """Seconds of reading eight files, compared with each other or not: best of five runs each."""
    size = len(table) // 8
    for label, sizes in (
        ("different lengths", [size - 99 * number for number in range(8)]),
        ("one length", [size] * 8),
    ):
        for ending in ("csv", "csv.gz"):
            parts = folder / f"{label}.{ending}"
            parts.mkdir()
            for number, rows in enumerate(sizes):
                _write_csv(table.slice(number * size, rows), parts / f"{number}.{ending}")
            seconds = {False: 9e9, True: 9e9}
            for turn in range(10):  # both in turn, since the machine has other work
                compared = turn % 2 == 1
                seconds[compared] = min(seconds[compared], run(parts, compared=compared)[1])
            print(
                f"| 8 files {ending} of {label} | {sum(sizes):,} | {seconds[False]:.2f} | "
                f"{seconds[True]:.2f} |",
                flush=True,
            )


def _write_csv(table: pa.Table, path: Path) -> None:
    """Rows of one width, so that files of as many rows have one length."""
    import gzip

    columns = (np.char.mod(form, table[name].to_numpy()) for name, form in WIDTHS.items())
    rows = ("\n".join(map(",".join, zip(*columns, strict=True))) + "\n").encode()
    content = f"{','.join(WIDTHS)}\n".encode() + rows
    path.write_bytes(gzip.compress(content, 6) if path.suffix == ".gz" else content)


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
    parser = study(__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--copies", action="store_true", help="measure the check of copies alone")
    arguments = parser.parse_args()
    rows = arguments.rows
    table = points(rows)
    if arguments.copies:
        print("| input | records | not compared, CPU s | compared, CPU s |\n|---|---|---|---|")
        with tempfile.TemporaryDirectory() as name:
            several(Path(name), table)
        return
    few = shapes(table.slice(0, rows // 5), "EPSG:4326")
    print("| source | rows | CPU seconds | peak MB |\n|---|---|---|---|")
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
    database(table.slice(0, rows // 2))


def database(table: pa.Table) -> None:
    """The same from a throw-away server, where its programs and the extra test are there."""
    try:
        from support.postgres import execute, has_driver, ingest, programs, server
    except ImportError:
        return
    if not (programs() and has_driver()):
        return
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
