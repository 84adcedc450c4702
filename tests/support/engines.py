"""Rows that try the engines: what the local path makes of them is what every engine has to make."""

from unittest.mock import patch

import duckdb
import geopandas as gpd
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pyproj
import shapely
from shapely.affinity import affine_transform

import psd
from psd.ingest.sources import Columns, read
from psd.ingest.tally_builder import tally_batches
from psd.privacy.unit import WEIGHT, PrivacyUnit
from psd.regions.polygon_hierarchy import hierarchy_from_polygons
from psd.release.cube import CubeRecord
from psd.space.boundary import Boundary
from psd.testing import SCRIPTS, RecordingSampler

KEY = bytes(range(16))
COLUMNS = Columns(user="user", time="time")
DOMAIN = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0))
COARSE = (2**12, 3)

# Units, and the cells that are counted together.
CASES = {
    "record": (PrivacyUnit(), (1, 1)),
    "record, coarse": (PrivacyUnit(), COARSE),
    "user": (PrivacyUnit(kind="user", max_contributions=3), (1, 1)),
    "user, coarse": (PrivacyUnit(kind="user", max_contributions=1), COARSE),
    "user-day": (PrivacyUnit(kind="user-day", max_contributions=2, time_zone="UTC"), (1, 1)),
    "users counted": (PrivacyUnit(kind="user", weight=WEIGHT), COARSE),
}

_LINES = np.array([0, 1, 2, 3, 2**18 - 1, 2**19, 2**20 - 2, 2**20 - 1, 2**20])


REGIONS = ("polygons", "a gap", "elsewhere", "rounded", "whole")


def hierarchies(domain=DOMAIN):
    """Regions over a domain: polygons that share sides or not quite, with gaps; and one region."""
    west, south, east, north = domain.bounds
    seeds = np.random.default_rng(1).uniform((west, south), (east, north), (40, 2))
    box = shapely.box(*domain.bounds)
    cells = shapely.voronoi_polygons(shapely.multipoints(seeds), extend_to=box)
    shapes = shapely.intersection(shapely.get_parts(cells), box)
    table = gpd.GeoDataFrame({"id": np.arange(len(shapes))}, geometry=shapes, crs=domain.crs)
    parents = table.assign(up=np.arange(len(shapes)) // 7).sort_values("up")
    rounded = shapely.set_precision(shapes, 1e-4)
    loose = table.iloc[5:].set_geometry(rounded[5:])
    make = hierarchy_from_polygons
    made = [
        make(parents, domain, ids="id", parents=["up"]),
        make(table.iloc[8:], domain, ids="id", gaps="outside"),
        make(table.iloc[8:], domain, ids="id", gaps="elsewhere"),
        make(loose, domain, ids="id", gaps="elsewhere", tolerance=3e-4),
        make(table.iloc[:1].set_geometry([box]), domain, ids="id"),
    ]
    return dict(zip(REGIONS, made, strict=True))


_STAR = [(0.1, 0.1), (0.5, 0.25), (1.2, 0.1), (0.75, 0.5), (0.9, 0.9), (0.5, 0.75), (0.1, 1)]
_AREA = [
    shapely.Polygon(_STAR, [[(0.4, 0.4), (0.4, 0.6), (0.6, 0.6), (0.6, 0.4)]]),
    shapely.box(0.9, 0.5, 1, 0.7),
]


def polygons(domain=DOMAIN):
    """A star with a hole, which leaves the bounds, and a box that ends on them."""
    west, south, east, north = domain.bounds
    to_bounds = [east - west, 0, 0, north - south, west, south]
    shapes = [affine_transform(shape, to_bounds) for shape in _AREA]
    return gpd.GeoDataFrame(geometry=shapes, crs=domain.crs)


def area(domain=DOMAIN):
    """The boundary of the polygons."""
    return Boundary.from_polygons(polygons(domain), domain)


def on_outline(shape, domain=DOMAIN, number=1500):
    """Points anywhere in the bounds and on them, on the outline of a shape and beside it."""
    (west, south, east, north), rng = domain.bounds, np.random.default_rng(6)
    corners = shapely.get_coordinates(shape)
    middles = (corners[1:] + corners[:-1]) / 2
    anywhere = rng.uniform((west, south), (east, north), (number, 2))
    bounds = anywhere[:60].copy()
    bounds[:30, 0], bounds[30:, 1] = rng.choice([west, east], 30), rng.choice([south, north], 30)
    beside = np.nextafter(corners, rng.choice([-np.inf, np.inf], corners.shape))
    x, y = (
        np.concatenate([corners, middles, beside, bounds, anywhere])
        .clip((west, south), (east, north))
        .T
    )
    return pa.table({"lon": x, "lat": y})


METRES = "EPSG:5179"
PROJECTED = psd.Domain(bounds=(902_000.0, 1_890_000.0, 1_007_000.0, 2_000_000.0), crs=METRES)


def in_metres(table):
    """The rows in another CRS; the last are where no place on the ground is."""
    lon, lat = (table[name].to_numpy() for name in ("lon", "lat"))
    x, y = pyproj.Transformer.from_crs("EPSG:4326", METRES, always_xy=True).transform(lon, lat)
    gone = np.isnan(lon) | np.isnan(lat)
    x, y = np.where(gone, lon, x), np.where(gone, lat, y)
    x[-4:], y[-4:] = 1e30, (-1e30, 0.0, -0.0, 1e9)
    return table.set_column(0, "lon", pa.array(x)).set_column(1, "lat", pa.array(y))


def edges(domain):
    """Lattice lines, and the doubles on both sides of them."""
    x, y = (domain.edges(axis, _LINES) for axis in (0, 1))
    beside = [(np.nextafter(x, side), np.nextafter(y, side)) for side in (-np.inf, np.inf)]
    return (np.concatenate(v) for v in zip((x, y), *beside, strict=True))


def rows(number=3000, seed=5):
    """Points with and without place, inside, outside and on lines; users of all sizes; days."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(127, 0.3, number), rng.normal(37.5, 0.3, number)
    line_x, line_y = edges(DOMAIN)
    x[: len(line_x)], y[: len(line_y)] = line_x, line_y
    x[100:400:3], y[100:400:3] = x[100], y[100]  # equal rows
    x[500:600:7], y[600:700:9] = np.nan, np.nan
    user = rng.choice(["007", "7", "ann", "ANN", "b c", "ünal", "김", *map(str, range(90))], number)
    user[::5] = "heavy"
    hours = rng.integers(0, 24 * 5, number) * np.timedelta64(3_600_000_001, "us")
    time = np.datetime64("1969-12-29T22:00", "us") + hours
    time[100:400:6] = time[100]
    return pa.table({"lon": x, "lat": y, "user": user, "time": time})


SLICES = {
    name: psd.TimeSlices.parse(name, text)
    for name, text in {
        "hour": "1969-12-31T23..1970-01-01T00,2024-10-27T01..2024-10-27T03,2024-12-31T23",
        "day": "1969-12-28..1970-01-01,2024-02-28,2024-03-01,2024-10-26..2024-10-27,2024-12-31",
        "week": "1969-W52,1970-W01,2024-W09,2024-W43..2024-W44,2024-W52..2025-W02",
        "month": "1969-12..1970-01,2024-02..2024-03,2024-10,2024-12..2025-01",
    }.items()
}

SLICED = {
    "record": PrivacyUnit(),
    "user": PrivacyUnit(kind="user", max_contributions=9),
    "user, some in each slice": PrivacyUnit(kind="user", max_contributions=9, max_per_slice=2),
    "user-slice": PrivacyUnit(kind="user-slice", max_contributions=2),
    "user-day": PrivacyUnit(kind="user-day", max_contributions=2, time_zone="UTC"),
    "users counted": PrivacyUnit(kind="user", weight=WEIGHT),
}
"""Units of records in slices."""

_TURNS = (
    "1969-12-29", "1970-01-01", "2024-02-29", "2024-03-01", "2024-03-31T01:00",
    "2024-10-27T00:00", "2024-10-27T01:00", "2024-10-27T02:00", "2024-10-27T03:00",
    "2024-12-30", "2024-12-31T23:00", "2025-01-01", "2025-01-06",
)  # fmt: skip


def turns(number=2000, seed=8):
    """Few users at few places, many records alike, where slices begin and a microsecond beside."""
    rng = np.random.default_rng(seed)
    place, steps = rng.integers(0, 60, number), np.array([-1, 0, 1], "timedelta64[us]")
    moments = np.add.outer(np.array(_TURNS, "datetime64[us]"), steps).ravel()
    x, y = rng.uniform((126.3, 37.0), (127.6, 38.0), (60, 2))[place].T
    user, time = rng.choice([*map(str, range(40))], number), rng.choice(moments, number)
    x[100], y[100], time[100] = 127.0, 37.5, np.datetime64("2024-10-27T02:00")
    for values in (x, y, user, time):
        values[100:400:3] = values[100]
    return pa.table({"lon": x, "lat": y, "user": user, "time": time})


def as_text(table):
    """The same as text, with the spellings that a file may have."""
    numbers = {
        name: [_spelling(place, value) for place, value in enumerate(table[name].to_pylist())]
        for name in ("lon", "lat")
    }
    users = [
        (" {} ", "{}", "\ufeff{}", "{}\u00a0")[place % 4].format(user)
        for place, user in enumerate(table["user"].to_pylist())
    ]
    times = [
        (str(time), time.isoformat())[place % 2]
        for place, time in enumerate(table["time"].to_pylist())
    ]
    notes = ['say "hi", twice\nor so', "", "a,b"] * len(users)
    return pa.table({**numbers, "user": users, "time": times, "note": notes[: len(users)]})


def _spelling(place, value):
    """Text of a number that reads as the same double."""
    if np.isnan(value):
        return ("", "NaN", " n/a", r"\N", "-")[place % 5]
    return ("{!r}", " {!r}\t", "+{!r}", "{!r}e0", "0{!r}")[place % 5].format(value)


WORDS = [
    *("asthma", " asthma ", "Asthma", "", " ", "18", " 18", "018", "17.5", "1e1", "1e999", "inf"),
    *("nan", "1,5", "x", "true", "FALSE", "0", "2024-01-31", "2024-01-31T10:00", "2023-02-30"),
    *("2024-01-31 25:00", "it's", "a_b", "a%b", "9007199254740993", "\\", "é", "김", "soon"),
]
FILTERS = [
    *("word = 'asthma'", "word <> 'asthma'", "NOT word IN ('18', 'x')", "word >= 'a'"),
    *(
        "word = 18",
        "word < 100",
        "NOT word < 100",
        "word IN (18, 0)",
        "word IS NULL",
        "word = TRUE",
    ),
    *("word LIKE 'a%'", "NOT word LIKE '_'", "word = 'it''s' OR word = 'é'"),
    *("number >= 3", "number = '3'", "number IS NULL OR number = 0", "number <> 3 AND word = 18"),
    *("real > 1.5", "NOT real = 2", "real = '2'", "real IS NULL", "real IS NOT NULL"),
    *(
        "flag = TRUE",
        "flag <> TRUE",
        "flag = 0 OR number = 1",
        "NOT flag = FALSE",
        "flag = 'true' OR real = 2",
    ),
    *(
        "time < TIMESTAMP '1970-01-01 10:00'",
        "time = 'soon' OR real = 2",
        "NOT time >= DATE '1970-01-01'",
    ),
    *(
        "word < TIMESTAMP '2024-01-31 10:00'",
        "word = DATE '2024-01-31' OR number = 0",
        "lon > 127 AND user <> 'heavy'",
        "number = DATE '2024-01-31' OR flag = TRUE",
        "NOT number = 'x'",
    ),
]
"""Filters of the rows below, in which each kind of value meets each kind of literal."""


def rows_to_filter():
    """The rows with columns of other kinds, some of whose values fit no filter."""
    table, rng = rows(), np.random.default_rng(9)
    size = table.num_rows
    gaps = rng.random((3, size)) < 0.1
    real = rng.choice([0.0, -0.0, 1.5, 2.0, np.inf, -np.inf, np.nan, 2.0**60], size)
    return (
        table.append_column("word", pa.array(rng.choice(WORDS, size)))
        .append_column("number", pa.array(rng.integers(0, 6, size), mask=gaps[0]))
        .append_column("real", pa.array(real, mask=gaps[1]))
        .append_column("flag", pa.array(rng.random(size) < 0.5, mask=gaps[2]))
    )


FORMS = {
    "semicolons": (";", {}),
    "tabs": ("\t", {}),
    "bars": ("|", {"delimiter": "|"}),
    "decimal commas": (";", {"decimal": ","}),
    "points in WKT": (",", {"wkt": "Geom"}),
}
"""Delimiters and options of files that hold the same records."""


def write_form(folder, form):
    """The rows as text in another form, and the options that state it."""
    delimiter, options = FORMS[form]
    table = as_text(rows())
    x, y = (table[name].to_pylist() for name in ("lon", "lat"))
    if "decimal" in options:
        x, y = ([text.replace(".", ",") for text in texts] for texts in (x, y))
    columns = {"LON": x, "Lat": y}
    if "wkt" in options:
        missing = [bool(np.isnan(a + b)) for a, b in _pairs()]
        points = (f"POINT ({a.strip()} {b.strip()})" for a, b in zip(x, y, strict=True))
        columns = {
            "geom": [
                ("", "POINT EMPTY", "null")[place % 3] if gone else point
                for place, (gone, point) in enumerate(zip(missing, points, strict=True))
            ]
        }
    columns |= {"user": table["user"].to_pylist(), "note": table["note"].to_pylist()}
    path = folder / "form.csv"
    pyarrow.csv.write_csv(pa.table(columns), path, pyarrow.csv.WriteOptions(delimiter=delimiter))
    return path, options


def _pairs():
    """Coordinates of the rows."""
    return zip(*(rows()[name].to_pylist() for name in ("lon", "lat")), strict=True)


class Local:
    """The path of this process, called like an engine."""

    def tally(self, data, columns, domain, **options):
        return tally_batches(read(data, columns, domain), domain, **options)


def write_inputs(folder):
    """The rows as files, by kind."""
    return {
        "csv": str(write_csv(as_text(rows()), folder / "points.csv")),
        "parquet": str(write_parquet(rows(), folder / "points.parquet")),
        "turns": str(write_parquet(turns(), folder / "turns.parquet")),
        "turns in text": str(write_csv(as_text(turns()), folder / "turns.csv")),
        "outline": str(write_parquet(on_outline(area().shape), folder / "outline.parquet")),
        "metres": str(write_parquet(in_metres(rows()), folder / "metres.parquet")),
    }


def assert_same(engine, data, columns=COLUMNS, domain=DOMAIN, **options):
    """An engine counts as this process does."""
    options = {"unit": PrivacyUnit(), "key": KEY, **options}
    assert_equal(*(each.tally(data, columns, domain, **options) for each in (Local(), engine)))


def assert_same_release(engine, path, **options):
    """The same noise makes the same release of the counts of an engine, by the same key."""
    made = []
    for each in (None, engine):
        noise = RecordingSampler(SCRIPTS[2])
        with patch("secrets.token_bytes", lambda size: KEY[:size]):
            release = psd.build(path, epsilon=1, sampler=noise, engine=each, **options)
        made.append(facts(release, noise))
    assert made[0] == made[1]


def write_csv(table, path):
    """CSV with every field in quotes or none, as its text needs."""
    pyarrow.csv.write_csv(table, path)
    return path


def write_parquet(table, path):
    pyarrow.parquet.write_table(table, path)
    return path


def assert_equal(one, other):
    """Two tallies cell by cell, with what was left out."""
    for name in ("columns", "rows", "counts", "region", "slice"):
        a, b = getattr(one, name), getattr(other, name)
        if a is None:
            assert b is None
            continue
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    assert len(one.counts) > 50
    assert one.contributions == other.contributions
    assert one.report == other.report


# Fields that are unusual, or missing.

PLANE = psd.Domain(bounds=(0, 0, 4, 2), crs="EPSG:3857", lattice=(4, 2))
ROLES = ("x", "y", "user", "time")

NUMBERS = [
    "1.5", "1", "1.", ".5", "+1", "1e0", "1E+0", "015e-1", "1e-400", "", " ", "nan", "NULL", "-",
    "n/a", r"\N", "-nan", None, "1,5", "1_0", "0x1", "1d", "1f", "inf", "1e400", "Infinity", "1 5",
    "٣", "1\u00a0", "--1", "e5", ".", "0.5°", "1.5.1", "nil",
    "1\n", "\r1", "\v1\f", "nan\n", "\n", "\x1c1", "\u20031", "\u200b1", "1\n5",
]  # fmt: skip
USERS = ["a", " a", "a\ufeff", "", " ", None, "NULL", "None", "<NA>", r"\N", "nan", "Ünal", "김"]
USERS += ["\u200b"]
TIMES = [
    "2024-01-31", "2024-01-31 10:00", "2024-01-31T10:00:00", "2024-01-31t10:00:00.5",
    "2024-01-31 10:00:00,123456", "2024-01-31 10:00:00.123456789", " 2024-01-31\t", "", "NaT", None,
    "2024-02-29", "2023-02-29", "1900-02-29", "2000-02-29", "2024-02-30", "2024-04-31",
    "2024-13-01", "2024-00-10", "2024-01-00", "0001-01-01", "0000-01-01",
    "9999-12-31 23:59:59.999999", "2024-01-31 24:00", "2024-01-31 23:60", "2024-01-31 23:59:60",
    "2024-12-31t24:00:00.000", "2024-01-31 24:00:01", "9999-12-31 24:00", "2024-01-31 24:00:60",
    "2016-12-31 23:59:60.5", "2024-01-31 12:30:60", "2024-01-31 23:29:60", "2024-01-31 10:00:61",
    "31.01.2024", "1706700000", "2024-1-31", "24-01-31", "2024-01-31 10", "now", "0099-03-01",
    "1582-10-10", "2024-01-31\u00a0", "\n2024-01-31 10:00", "\u20032024-01-31", "\u200b2024-01-31",
    "\x1c2024-01-31\x85", "2024-01-31\ufeff", "\u00a0",
]  # fmt: skip


POINTS = [
    "POINT (1 2)", "point(1 2)", " POINT Z ( .5\t1e0 7 ) ", "Point(+1. -2)", "POINT EMPTY", "",
    None, "null", "-", "pointz empty", "5", "1 2", "POINT (1)", "POINT (1 2 3 4)", "POINT (1,2)",
    "inf", "nan", "POINT (1e999 2)", "POINT (NaN 2)", "SRID=1;POINT (1 2)", "LINESTRING (1 2, 3 4)",
    "place",
    "POINT (1 2) x", "POINT M (1 2 3)", "POINT\u00a0(1 2)", "SRID=3857;POINT(1 2)",
    " srid = 0 ; point zm(1 2 3 4)", "SRID=38570;POINT(1 2)", "SRID=3857;POINT EMPTY",
    "SRID=3857;POINT (1 2 3 4 5)", "SRID=3857 POINT(1 2)", "SRID=3857;LINESTRING (1 2, 3 4)",
]  # fmt: skip
COMMAS = ["1,5", ",5", "1,", "+1,5e0", "1", "", "NULL", None, "1.5", "1.234,5", "1,2,3", ".", ",",
    "1,5.", "inf", "1,5e999", "1_0,5", "0,5\u00b0"]  # fmt: skip

ODD = {"lon": NUMBERS, "user": USERS, "time": TIMES}
OPTIONS = {"unit": PrivacyUnit(kind="user-day", max_contributions=1, time_zone="UTC"), "key": KEY}


def beside_sound_ones(name, values):
    """A table with a column of odd fields."""
    good = {"lon": "0.5", "lat": "0.5", "user": "u", "time": "2024-01-31"}
    columns = {key: [value] * len(values) for key, value in good.items()} | {name: values}
    return pa.table({key: pa.array(column, pa.string()) for key, column in columns.items()})


# Files that are refused, and words of the message.

HEADER = "lon,lat,user\n127,37.5,a\n"
REFUSED = {
    "a short row": (HEADER + "127.2468,37.5\n", "malformed row"),
    "a long row": (HEADER + "127.2468,37.5,a,b\n", "malformed row"),
    "an open quote": (HEADER + '127.2468,37.5,"a\n', "quote that is not closed"),
    "no number": (HEADER + "127.2468E,37.5,a\n", "'lon' must hold plain"),
    "no user": (HEADER + "127.2468,37.5,\n", "have no user id"),
    "no user outside": (HEADER + "2.468,37.5,\n", "have no user id"),
    "accents apart": (HEADER + "127.2468,37.5,e\u0301\n", "engine cannot normalise"),
    "another name": (HEADER.replace("lon", "x"), "exactly one column 'lon'"),
    "a name twice": ("lon,lat,user,lon\n127,37.5,a,127.2468\n", "one column .lon.|malformed"),
}  # fmt: skip


def write_quoted(path, table):
    """CSV with all fields in quotes; a field without anything is missing."""
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    quoted = [['"{}"'.format((v or "").replace('"', '""')) for v in row] for row in rows]
    path.write_text("\n".join(map(",".join, [table.column_names, *quoted])) + "\n", newline="")
    return path


def verdicts(points):
    """Query whether the expression refuses each row by itself."""
    from psd.apps.spark.expression import parse_rows

    rows = parse_rows(points, PLANE)
    refused = rows.bad_x | rows.bad_y | rows.bad_time | rows.aware_time
    lacking = rows.user.isnull() | rows.strange_user | rows.moment.isnull()
    return rows.select(refused=refused | lacking)


def text_query(select):
    """A query of rows of text, to be run on the table `points`."""
    import ibis

    return select(ibis.table(dict.fromkeys(ROLES, "string"), name="points"))


def duckdb_verdicts(table, select=verdicts):
    """What the expression says about each row of a table of text, in order."""
    from psd.apps.spark.expression import to_sql

    # Several threads may give pieces of a table in another order.
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("points", pa.table(table.columns, ROLES))
        query = to_sql(text_query(select), "duckdb")
        return connection.sql(query).to_arrow_table().column(0).to_pylist()


def spark_verdicts(url, table, folder):
    """The same on Spark."""
    from psd.apps.spark.engine import open_session
    from psd.apps.spark.expression import to_sql

    path = write_parquet(pa.table(table.columns, ROLES), folder / "odd.parquet")
    with open_session(url) as spark:
        spark.read.parquet(str(path)).createOrReplaceTempView("points")
        query = to_sql(text_query(verdicts), "pyspark")
        found = spark.sql(query).toArrow().column(0).to_pylist()
        spark.catalog.dropTempView("points")
    return found


def facts(release, noise):
    """A release of replayed noise, and what the noise was asked for."""
    record = release.record
    records = getattr(record, "releases", (record,))
    if isinstance(record, CubeRecord):
        records = (record.plane, record.joint)
    arrays = ("boxes", "parent", "count", "loss", "spans")
    cells = [
        [getattr(each.tree, name).tolist() for name in arrays if hasattr(each.tree, name)]
        for each in records
    ]
    stated = [dict(each.parameters) for each in records]
    return cells, stated, [call.true.tolist() for call in noise.draws]
