"""What is fuzzed: bytes go in, and nothing but an error of psd may come out.

Each target has seeds, made here, so that no corpus has to be kept. `run.py` gives them to atheris;
an everyday test changes them by hypothesis.
"""

import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

# Lazily imported elsewhere; here, so that atheris can watch all of them.
import duckdb  # noqa: F401
import geopandas  # noqa: F401
import numpy as np
import pandas  # noqa: F401
import pyarrow as pa
import pyarrow.parquet as pq
import shapely  # noqa: F401

import psd
import psd._util.wall_clock
import psd.export.csv
import psd.query.boxes
import psd.query.polygons
import psd.release.file
import psd.release.series_file
import psd.space.polygon_areas
import psd.space.regions
from psd.errors import PsdError
from psd.ingest.sources import Columns, csv
from psd.regions.files import read_boxes, read_polygons
from psd.release.record import ReleaseRecord
from psd.release.schema import record_header
from psd.space.time_slices import TimeSlices

WORLD = psd.Domain(bounds=(-180, -90, 180, 90))
_TREE = psd.decompositions.grid_tree(WORLD, 4)
GOLDEN = Path(__file__).parents[2] / "golden"
RELEASE = psd.Release.from_counts(_TREE, np.arange(16), 1.0, domain=WORLD)


@dataclass(frozen=True, kw_only=True)
class Target:
    """A parser, bytes from which changes begin, and words that mean something to it."""

    run: Callable[[bytes], object]
    seeds: Callable[[], list[bytes]]
    words: tuple[str, ...]


@contextmanager
def in_memory(content: bytes) -> Iterator[Path]:
    """A regular file that has a path and no disk."""
    handle = os.memfd_create("fuzz")
    try:
        os.write(handle, content)
        yield Path(f"/dev/fd/{handle}")
    finally:
        os.close(handle)


# Rows of CSV


def rows(content: bytes) -> None:
    """Read a table, by the columns that it seems to have."""
    head = content[:200]
    columns = Columns(
        x="lon", y="lat", user="user" if b"user" in head else None,
        time="time" if b"time" in head else None,
    )  # fmt: skip
    with in_memory(content) as path, suppress(PsdError, MemoryError):
        for batch in csv.batches([path], columns, WORLD):
            assert len(batch.x) == len(batch.y)
            assert not np.isinf(batch.x).any()


def tables() -> list[bytes]:
    """CSV of all kinds that are read."""
    plain = "lon,lat\n126.98,37.57\n-0.12,51.5\n1e2,-.5\n,\nNA,null\n"
    users = "user,time,lon,lat\na,2024-01-31T12:00:00Z,1,2\n김,2024-01-31 12:00,3,4\n"
    quoted = 'lon,lat,note\n"1.5","2.5","a ""b""\nc"\n'
    texts = [plain, users, quoted, plain.replace("\n", "\r\n"), plain.replace("\n", "\r")]
    texts += ["\ufeff" + plain, "lon;lat\n1;2\n", "lon,lat\n", "lat,lon,lon\n1,2,3\n"]
    return [text.encode() for text in texts] + ["lon,lat\n1,2\n".encode("utf-16")]


# Releases and series


def releases(content: bytes) -> None:
    """Load a file; or, after a first byte of 1, a header around nodes that are sound."""
    if content[:1] == b"\x01":
        content = _wrapped(content[1:])
    file, series_file = psd.release.file, psd.release.series_file
    for decode, encode in (
        (file.decode_release, file.encode_release),
        (series_file.decode_series, series_file.encode_series),
    ):
        try:
            record, _ = decode(content)
        except PsdError:
            continue
        # What is taken is whole: it can be written again, and asked.
        encode(record)
        if isinstance(record, ReleaseRecord):
            psd.Release(record).query([record.domain.bounds])


def _wrapped(header: bytes) -> bytes:
    """A file of the nodes of a release, with a header of any bytes."""
    sink = io.BytesIO()
    table = pq.read_table(io.BytesIO(psd.release.file.encode_release(RELEASE.record)))
    plain = table.replace_schema_metadata({psd.release.file.KEY: header})
    pq.write_table(plain, sink, write_page_checksum=True)
    return sink.getvalue()


def files() -> list[bytes]:
    """A release, a series, their headers, and other Parquet."""
    series = psd.build(
        pa.table({"lon": [1.0], "lat": [2.0], "time": ["2024-01-31"]}), domain=WORLD, epsilon=1,
        method="grid", time="time",
        slices=TimeSlices(by="day", names=("2024-01-31",), time_zone="UTC"),
    )  # fmt: skip
    whole = psd.release.file.encode_release(RELEASE.record)
    header = pq.read_schema(io.BytesIO(whole)).metadata[psd.release.file.KEY]
    other = io.BytesIO()
    pq.write_table(pa.table({"lon": [1.5]}), other)
    older = header.replace(b'"psd_release": 1', b'"format": 11')
    noise = {"law": "discrete-gaussian", "squared_sensitivity": 12, "factor": "1",
             "rho": "0.024355970359", "delta": "1e-6"}  # fmt: skip
    in_rho = b"\x01" + json.dumps({**record_header(RELEASE.record), "noise": noise}).encode()
    deep = b"\x01" + b"[" * 1000
    made = [
        whole,
        psd.release.series_file.encode_series(series.record),
        b"\x01" + older,
        in_rho,
        (GOLDEN / "gaussian.psd.parquet").read_bytes(),
        other.getvalue(),
        deep,
    ]
    return [*made, b"\x01" + json.dumps({"psd_release": 1}).encode()]


# Regions


def regions(content: bytes) -> None:
    """Ask for regions: boxes or WKT in a file, or text; the first byte says which."""
    kind, rest = content[:1], content[1:]
    try:
        if kind == b"b":
            with in_memory(rest) as path:
                RELEASE.query(read_boxes(path))
        elif kind == b"f":
            with in_memory(rest) as path:
                RELEASE.query(read_polygons(path, crs="EPSG:4326"))
        else:
            RELEASE.query(rest.decode("utf-8", "replace"), crs="EPSG:4326")
    except PsdError:
        pass


def places() -> list[bytes]:
    """Boxes, WKT, EWKT and GeoJSON."""
    ring = "0 0, 40 0, 40 40, 0 40, 0 0"
    hole = f"({ring}), (10 10, 10 20, 20 20, 20 10, 10 10)"
    square = [[0, 0], [40, 0], [40, 40], [0, 40], [0, 0]]
    polygon = {"type": "Polygon", "coordinates": [square]}
    feature = {"type": "Feature", "properties": {"a": 1}, "geometry": polygon}
    several = {"type": "MultiPolygon", "coordinates": [[square], [square]]}
    named = {"type": "name", "properties": {"name": "EPSG:3857"}}
    texts = [
        f"POLYGON (({ring}))", f"POLYGON ({hole})", f"MULTIPOLYGON (({hole}))", "POLYGON EMPTY",
        f"SRID=4326;POLYGON (({ring}))", "POLYGON Z ((0 0 1, 1 0 1, 1 1 1, 0 0 1))",
        f"GEOMETRYCOLLECTION (POLYGON (({ring})))", "POINT (1 2)",
        "POLYGON ((0 0, 1 1, 0 1, 1 0, 0 0))",
        json.dumps(polygon), json.dumps(several), json.dumps(feature),
        json.dumps({"type": "FeatureCollection", "features": [feature], "crs": named}),
    ]  # fmt: skip
    boxes = ["west,south,east,north\n0,0,1,1\n-10,-10,10,1e1\n"]
    boxes += ["id,west,south,east,north\na,0,0,1,1\n"]
    return [
        *(f"t{text}".encode() for text in texts),
        *(f"f{text}".encode() for text in texts[-4:]),
        *(f"b{text}".encode() for text in boxes),
    ]


JSON = (
    '"type"',
    '"crs"',
    '"psd_release"',
    "null",
    "true",
    "1e400",
    "-1",
    "[[",
    "]]",
    "{",
    "}",
    '":',
)
WKT = ("POLYGON", "MULTI", "EMPTY", " Z ", " M ", "((", "))", "SRID=", "nan", "inf", "0 0", ";")
CSV = ("lon", "lat", "user", "time", "1e400", "nan", "inf", "_", '"', ",,", "\r\n", "2024-01-31")

TARGETS = {
    "rows": Target(run=rows, seeds=tables, words=CSV),
    "releases": Target(run=releases, seeds=files, words=JSON),
    "regions": Target(run=regions, seeds=places, words=(*WKT, *JSON, "west", "Feature")),
}
