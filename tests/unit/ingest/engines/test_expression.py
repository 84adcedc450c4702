"""The expression that engines count with, run by DuckDB, against the local path."""

import unicodedata

import duckdb
import ibis
import numpy as np
import pyarrow as pa
import pytest
import shapely

import psd
from psd._util.wall_clock import wall_clock
from psd.errors import DomainError, InputDataError, ParameterError
from psd.ingest.engines import _expression
from psd.ingest.engines._counts import tally_table
from psd.ingest.engines._expression import parse_rows, to_sql
from psd.ingest.engines._parse import COMPOSED, literal_double
from psd.ingest.sources import Columns
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import tally_batches
from psd.privacy.unit import PrivacyUnit
from support import engines

TYPES = {"string": "string", "double": "float64", "int64": "int64", "timestamp[us]": "timestamp"}
ROWS = engines.rows()
PLANE, OPTIONS = engines.PLANE, engines.OPTIONS


def by_expression(table, domain, columns, **options):
    """Tally of a table by the expression, on DuckDB."""
    x, y = (columns.x, columns.y) if columns.wkt is None else (columns.wkt, columns.wkt)
    roles = {"x": x, "y": y, "user": columns.user, "time": columns.time}
    roles = {role: name for role, name in roles.items() if name}
    table = pa.table({role: table[name] for role, name in roles.items()})
    schema = {field.name: TYPES[str(field.type)] for field in table.schema}
    with duckdb.connect() as connection:
        connection.register("points", table)

        def share(name, table):
            connection.register(name, table)
            return ibis.table(ibis.Schema.from_pyarrow(table.schema), name=name)

        return tally_table(
            ibis.table(schema, name="points"),
            lambda query: connection.sql(to_sql(query, "duckdb")).to_arrow_table(),
            columns,
            domain,
            share=share,
            **options,
        )


def locally(data, domain, columns, **options):
    return engines.Local().tally(data, columns, domain, **options)


@pytest.mark.parametrize(("unit", "step"), engines.CASES.values(), ids=engines.CASES)
def test_cell_by_cell(unit, step, tmp_path):
    options = {"unit": unit, "key": engines.KEY, "step": step}
    local = locally(ROWS, engines.DOMAIN, engines.COLUMNS, **options)
    engines.assert_equal(local, by_expression(ROWS, engines.DOMAIN, engines.COLUMNS, **options))
    text = engines.as_text(ROWS)
    path = engines.write_csv(text, tmp_path / "points.csv")
    engines.assert_equal(local, by_expression(text, engines.DOMAIN, engines.COLUMNS, **options))
    engines.assert_equal(local, locally(path, engines.DOMAIN, engines.COLUMNS, **options))


@pytest.mark.parametrize("name", engines.hierarchies())
@pytest.mark.parametrize("case", ["record", "user, coarse", "user-day", "users counted"])
def test_region_by_region(name, case):
    unit, step = engines.CASES[case]
    regions = engines.hierarchies()[name]
    options = {"unit": unit, "key": engines.KEY, "step": step, "regions": regions}
    local = locally(ROWS, engines.DOMAIN, engines.COLUMNS, **options)
    engines.assert_equal(local, by_expression(ROWS, engines.DOMAIN, engines.COLUMNS, **options))


def test_points_on_outlines_have_the_region_of_the_local_path():
    regions = engines.hierarchies()["polygons"]
    corners = shapely.get_coordinates(regions.shapes())
    middles = (corners[1:] + corners[:-1]) / 2
    x, y = np.concatenate([corners, middles]).clip((126.4, 37.0), (127.6, 38.0)).T
    table = pa.table({"lon": x, "lat": y})
    options = {"unit": PrivacyUnit(), "regions": regions}
    local = locally(table, engines.DOMAIN, Columns(), **options)
    engines.assert_equal(local, by_expression(table, engines.DOMAIN, Columns(), **options))


@pytest.mark.parametrize("domain", ["rounded", "plane"])
def test_regions_of_rounded_coordinates_and_of_cells(domain):
    bounds = engines.DOMAIN.bounds
    if domain == "rounded":
        space = psd.Domain(bounds=bounds, coordinate_resolution="0.01")
        regions = engines.hierarchies(space)["polygons"]
    else:
        space = psd.Domain(bounds=bounds, crs="EPSG:3857")
        regions = psd.CellRegions(kind="grid-cells", cells="0.1").read(space)
    options = {
        "unit": PrivacyUnit(kind="user", max_contributions=3),
        "key": engines.KEY,
        "regions": regions,
    }
    local = locally(ROWS, space, engines.COLUMNS, **options)
    engines.assert_equal(local, by_expression(ROWS, space, engines.COLUMNS, **options))


def test_only_coordinates_near_outlines_are_brought_here(monkeypatch):
    regions, seen = engines.hierarchies()["polygons"], []
    assign = type(regions.geometry).assign

    def count(self, x, y):
        seen.append(len(x))
        return assign(self, x, y)

    monkeypatch.setattr(type(regions.geometry), "assign", count)
    options = {"unit": PrivacyUnit(), "regions": regions}
    by_expression(ROWS, engines.DOMAIN, engines.COLUMNS, **options)
    assert sum(seen) < 0.25 * len(ROWS)


PLANTED = {
    "an edge belongs to both sides": (
        "_edge",
        lambda lines, domain, axis: literal_double(0) * lines,
    ),
    "another digit of the hash": ("_SALT_DIGITS", 6),
    "another prime": ("PRIME", 2**31 - 3),
    "years before 1970 fold over": ("TIME_OFFSET", 0),
}


@pytest.mark.parametrize(("name", "value"), PLANTED.values(), ids=PLANTED)
def test_planted_differences_are_noticed(monkeypatch, name, value):
    unit, step = engines.CASES["user"]
    options = {"unit": unit, "key": engines.KEY, "step": step}
    local = locally(ROWS, engines.DOMAIN, engines.COLUMNS, **options)
    monkeypatch.setattr(_expression, name, value)
    found = by_expression(ROWS, engines.DOMAIN, engines.COLUMNS, **options)
    with pytest.raises(AssertionError):
        engines.assert_equal(local, found)


@pytest.mark.parametrize("domain", [
    psd.Domain(bounds=(-180, -90, 180, 90)),
    psd.Domain(bounds=(0.1, 0.1, 0.7, 0.3), crs="EPSG:3857", lattice=(7, 2**30)),
    psd.Domain(bounds=(1e-300, -1e300, 2e-300, 1e300), crs='LOCAL_CS["here"]', lattice=(3, 5)),
    psd.Domain(bounds=(-180, -90, 180, 90), coordinate_resolution="0.0001"),
    psd.Domain(bounds=(0.12, -0.1, 0.71, 0.3), crs="EPSG:3857", coordinate_resolution="0.1"),
    psd.Domain(bounds=(-7, 1, 7, 9e6), crs="EPSG:3857", coordinate_resolution="0.3"),
])  # fmt: skip
def test_points_at_lattice_lines(domain):
    rng = np.random.default_rng(3)
    x, y = (domain.edges(axis, rng.integers(0, domain.lattice[axis] + 1, 600)) for axis in (0, 1))
    side = rng.choice([-np.inf, np.inf], 600)
    x, y = np.where(rng.random(600) < 0.5, x, np.nextafter(x, side)), np.nextafter(y, -side)
    table = pa.table({"lon": x, "lat": [repr(value) for value in y.tolist()]})
    columns, rows, _ = domain.quantise(x, y)
    found = by_expression(table, domain, Columns(), unit=PrivacyUnit())
    codes = rows.astype(np.int64) * domain.lattice[0] + columns
    code, count = np.unique(codes, return_counts=True)
    np.testing.assert_array_equal(
        found.rows.astype(np.int64) * domain.lattice[0] + found.columns, code
    )
    np.testing.assert_array_equal(found.counts, count)


@pytest.mark.parametrize("k", [1, 5])
def test_equal_rows_and_users_below_and_above_the_bound(k):
    rng = np.random.default_rng(k)
    x, y, day = (
        rng.integers(0, 4, 900) + 0.5,
        rng.integers(0, 2, 900) + 0.5,
        rng.integers(0, 3, 900),
    )
    time = np.datetime64("2024-02-28", "us") + day.astype("m8[D]")
    users = pa.array([str(user) for user in rng.geometric(0.01, 900)])
    unit = PrivacyUnit(kind="user", max_contributions=k)
    local = tally_batches([Batch(x=x, y=y, user=users, time=time)], PLANE, unit=unit, key=b"key")
    table = pa.table({"lon": x, "lat": y, "user": users, "time": time})
    found = by_expression(table, PLANE, engines.COLUMNS, unit=unit, key=b"key")
    assert found.report == local.report
    for name in ("columns", "rows", "counts"):
        np.testing.assert_array_equal(getattr(found, name), getattr(local, name))


def is_taken(path):
    """Whether the local path takes a file."""
    try:
        return bool(locally(path, PLANE, engines.COLUMNS, **OPTIONS).report)
    except (InputDataError, DomainError):
        return False


@pytest.mark.parametrize(
    ("values", "options"),
    [(engines.POINTS, {"wkt": "lon"}), (engines.COMMAS, {"decimal": ","})],
    ids=["wkt", "decimal-comma"],
)
def test_odd_points_and_commas_are_read_or_refused_alike(values, options, tmp_path):
    columns, alike = Columns(y="lat", **options), []
    for value in values:
        table = pa.table({"lon": pa.array([value], pa.string()), "lat": pa.array(["1,5"])})
        path = engines.write_csv(table, tmp_path / "points.csv")
        both = []
        for count in (
            lambda: locally(path, PLANE, columns, unit=PrivacyUnit()),  # noqa: B023
            lambda: by_expression(table, PLANE, columns, unit=PrivacyUnit()),  # noqa: B023
        ):
            try:
                both.append(count().report)
            except InputDataError as error:
                both.append(str(error).replace(f" of {path}", ""))
        assert both[0] == both[1], value
        alike.append(isinstance(both[0], str))
    assert 3 < sum(alike) < len(values) - 3


@pytest.mark.parametrize("name", engines.ODD)
def test_odd_fields_are_taken_or_refused_alike(name, tmp_path):
    values = engines.ODD[name]
    table = engines.beside_sound_ones(name, values)
    path = tmp_path / "odd.csv"
    taken = [is_taken(engines.write_quoted(path, table.slice(n, 1))) for n in range(len(values))]
    refused = dict(zip(values, engines.duckdb_verdicts(table), strict=True))
    assert refused == {value: not good for value, good in zip(values, taken, strict=True)}
    table = table.filter(pa.array(taken))
    assert 3 < table.num_rows < len(values)
    local = locally(engines.write_quoted(path, table), PLANE, engines.COLUMNS, **OPTIONS)
    found = by_expression(table, PLANE, engines.COLUMNS, **OPTIONS)
    assert (found.report, found.columns.tolist()) == (local.report, local.columns.tolist())


def test_moments_to_the_microsecond(tmp_path):
    values = [value for value in engines.ODD["time"] if value and value[:4].isdigit()]
    tables = [engines.beside_sound_ones("time", [value]) for value in values]
    kept = [table for table in tables if is_taken(engines.write_quoted(tmp_path / "t.csv", table))]
    table = pa.concat_tables(kept)
    found = engines.duckdb_verdicts(
        table, lambda points: parse_rows(points, engines.PLANE).select("moment")
    )
    expected = wall_clock(table["time"], "UTC").astype(np.int64)
    np.testing.assert_array_equal(found, expected)
    assert len(kept) > 10


@pytest.mark.parametrize("user", ["e\u0301", "é\u0301", "a\0b", "ά", "\U0001f600", "a\ufffd"])
def test_ids_that_engines_do_not_compose(user):
    unit = PrivacyUnit(kind="user", max_contributions=1)
    for second in (0.5, 9):  # inside and outside
        table = pa.table({"lon": [0.5, second], "lat": [0.5, second], "user": ["u", user]})
        with pytest.raises(InputDataError, match="characters") as raised:
            by_expression(table, PLANE, Columns(user="user"), unit=unit)
        assert user not in str(raised.value)


@pytest.mark.parametrize("x", [0.5, 9, None], ids=["in", "out", "nowhere"])
@pytest.mark.parametrize("name", ["user", "time"])
def test_a_row_without_id_or_time_is_refused_wherever_it_lies(name, x):
    rows = {"lon": [0.5, x], "lat": [0.5, 0.5], "user": ["u", "v"], "time": ["2024-01-31"] * 2}
    rows[name][1] = None
    unit = PrivacyUnit(kind="user", max_contributions=1)
    with pytest.raises(InputDataError, match="have no"):
        by_expression(pa.table(rows), PLANE, Columns(user="user", time="time"), unit=unit)


def test_ids_that_engines_take_are_composed_however_they_are_joined():
    letters = [chr(point) for low, high in COMPOSED for point in range(low, high + 1)]
    assert all(unicodedata.is_normalized("NFC", letter) for letter in letters)
    # A text of NFC letters can change only where one combines with what stands before it.
    assert not any(unicodedata.combining(letter) for letter in letters)
    second = {pair[1] for pair in _compositions() if len(pair) == 2}
    assert not second & set(letters)


def _compositions():
    """Canonical decompositions of all letters, those of Hangul aside, whose parts are jamo."""
    for point in range(0x110000):
        parts = unicodedata.decomposition(chr(point))
        if parts and not parts.startswith("<"):
            yield [chr(int(part, 16)) for part in parts.split()]


@pytest.mark.parametrize("point", [(0, 90.5), (-180.5, 0)])
def test_values_that_are_no_degrees_are_outside(point):
    table = pa.table({"lon": [1.0, point[0]], "lat": [1.0, point[1]]})
    domain = psd.Domain(bounds=(-10, -10, 10, 10))
    counted = by_expression(table, domain, Columns(), unit=PrivacyUnit())
    assert counted.report == {"read": 2, "without coordinates": 0, "outside": 1, "kept": 1}


def test_rows_but_none_inside_are_an_empty_tally():
    table = pa.table({"lon": [7.5], "lat": [7.5]})
    counted = by_expression(table, PLANE, Columns(), unit=PrivacyUnit())
    assert len(counted.counts) == 0
    assert counted.report == {"read": 1, "without coordinates": 0, "outside": 1, "kept": 0}


def test_no_rows():
    table = pa.table({"lon": pa.array([], pa.float64()), "lat": pa.array([], pa.float64())})
    found = by_expression(table, PLANE, Columns(), unit=PrivacyUnit())
    assert len(found.counts) == 0
    assert found.report == {"read": 0, "without coordinates": 0, "outside": 0, "kept": 0}


def test_times_with_an_offset_are_refused():
    table = pa.table({"lon": [0.5], "lat": [0.5], "time": ["2024-01-31 10:00:00+09:00"]})
    with pytest.raises(InputDataError, match="offset"):
        by_expression(table, PLANE, Columns(time="time"), unit=PrivacyUnit())


@pytest.mark.parametrize(
    "unit",
    [
        PrivacyUnit(kind="user-slice"),
        PrivacyUnit(kind="user", max_contributions=2, max_per_slice=1),
    ],
)
def test_units_of_slices_are_refused(unit):
    table = pa.table({"lon": [0.5], "lat": [0.5], "user": ["a"], "time": ["2024-01-31"]})
    with pytest.raises(ParameterError, match="time slices"):
        by_expression(table, PLANE, engines.COLUMNS, unit=unit)
