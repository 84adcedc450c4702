"""The expression that engines count with, run by DuckDB, against the local path."""

import unicodedata
from collections import Counter
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import duckdb
import ibis
import numpy as np
import pyarrow as pa
import pytest
import shapely

import psd
from psd._util.wall_clock import wall_clock
from psd.apps.spark import expression
from psd.apps.spark.engine import tally_table
from psd.apps.spark.expression import parse_rows, to_sql
from psd.apps.spark.parse import COMPOSED, literal_double, role_of
from psd.errors import DomainError, InputDataError, InternalError, ParameterError, ResourceError
from psd.ingest.sources import Columns
from psd.privacy.unit import PrivacyUnit
from support import engines

pytestmark = pytest.mark.deep

TYPES = {"string": "string", "double": "float64", "int64": "int64", "timestamp[us]": "timestamp"}
TYPES |= {"bool": "boolean"}
RECORD, PLAIN = PrivacyUnit(), Columns()
ONE = PrivacyUnit(kind="user", max_contributions=1)
ROWS = engines.rows()
PLANE, OPTIONS = engines.PLANE, engines.OPTIONS


def by_expression(table, columns, domain, **options):
    x, y = (columns.x, columns.y) if columns.wkt is None else (columns.wkt, columns.wkt)
    roles = {"x": x, "y": y, "user": columns.user, "time": columns.time}
    roles |= {role_of(number): name for number, name in enumerate(columns.filtered)}
    table = pa.table({role: table[name] for role, name in roles.items() if name})
    schema = {field.name: TYPES[str(field.type)] for field in table.schema}
    with duckdb.connect() as connection:
        connection.register("points", table)

        def share(name, table):
            connection.register(name, table)
            return ibis.table(ibis.Schema.from_pyarrow(table.schema), name=name)

        return tally_table(
            ibis.table(schema, name="points"),
            lambda query: connection.sql(to_sql(query, "duckdb")).to_arrow_table(),
            share,
            columns,
            domain,
            **options,
        )


EXPRESSION = SimpleNamespace(tally=by_expression)


def assert_same(table=ROWS, *args, **options):
    engines.assert_same(EXPRESSION, table, *args, **options)


locally = engines.Local().tally


@pytest.mark.parametrize(("unit", "step"), engines.CASES.values(), ids=engines.CASES)
def test_cell_by_cell(unit, step, tmp_path):
    options = {"unit": unit, "key": engines.KEY, "step": step}
    assert_same(**options)
    local = locally(ROWS, engines.COLUMNS, engines.DOMAIN, **options)
    text = engines.as_text(ROWS)
    path = engines.write_csv(text, tmp_path / "points.csv")
    engines.assert_equal(local, by_expression(text, engines.COLUMNS, engines.DOMAIN, **options))
    engines.assert_equal(local, locally(path, engines.COLUMNS, engines.DOMAIN, **options))


@pytest.mark.parametrize("where", engines.FILTERS)
def test_a_filter_selects_the_same_records(where):
    columns = replace(engines.COLUMNS, where=where)
    assert_same(
        engines.rows_to_filter(), columns, unit=PrivacyUnit(kind="user", max_contributions=3)
    )


def test_a_filter_compares_times_on_the_wall_of_the_zone():
    table = engines.rows_to_filter().select(["lon", "lat", "time"])
    where = "time < TIMESTAMP '1970-01-01 10:00'"
    for zone in ("UTC", "Asia/Seoul"):
        assert_same(table, Columns(where=where, time_zone=zone), unit=RECORD)


@pytest.mark.parametrize("name", engines.REGIONS)
@pytest.mark.parametrize("case", ["record", "user, coarse", "user-day", "users counted"])
def test_region_by_region(name, case):
    unit, step = engines.CASES[case]
    assert_same(unit=unit, step=step, strata=engines.hierarchies()[name])


def test_regions_of_rounded_coordinates_and_of_cells():
    bounds = engines.DOMAIN.bounds
    rounded = psd.Domain(bounds=bounds, coordinate_resolution="0.01")
    plane = psd.Domain(bounds=bounds, crs="EPSG:3857")
    cells = psd.regions.CellRegions(kind="grid-cells", cells="0.1")
    unit = PrivacyUnit(kind="user", max_contributions=3)
    for space, regions in (
        (rounded, engines.hierarchies(rounded)["polygons"]),
        (plane, cells.read(plane)),
    ):
        assert_same(ROWS, engines.COLUMNS, space, unit=unit, strata=regions)
    regions = engines.hierarchies()["polygons"]
    corners = shapely.get_coordinates(regions.shapes())
    middles = (corners[1:] + corners[:-1]) / 2
    x, y = np.concatenate([corners, middles]).clip((126.4, 37.0), (127.6, 38.0)).T
    assert_same(pa.table({"lon": x, "lat": y}), PLAIN, strata=regions)


def test_only_coordinates_near_outlines_are_brought_here(monkeypatch):
    regions, seen = engines.hierarchies()["polygons"], []
    assign = type(regions.geometry).assign

    def count(self, x, y):
        seen.append(len(x))
        return assign(self, x, y)

    monkeypatch.setattr(type(regions.geometry), "assign", count)
    by_expression(ROWS, engines.COLUMNS, engines.DOMAIN, unit=RECORD, strata=regions)
    assert sum(seen) < 0.25 * len(ROWS)


@pytest.mark.parametrize("by", engines.SLICES)
@pytest.mark.parametrize("case", engines.SLICED)
def test_slice_by_slice(by, case):
    options = {"unit": engines.SLICED[case], "slices": engines.SLICES[by]}
    assert_same(engines.turns(), **options)


def test_slices_of_regions_and_of_blocks():
    options = {"slices": engines.SLICES["day"], "step": engines.COARSE}
    unit = engines.SLICED["user, some in each slice"]
    for strata in (None, engines.hierarchies()["a gap"]):
        assert_same(engines.turns(), unit=unit, strata=strata, **options)


@pytest.mark.parametrize("by", engines.SLICES)
def test_slices_of_odd_times_in_text(by, tmp_path):
    """Leap seconds stay in their slice, and 24:00 is in the next one."""
    texts = [
        "2024-12-31 23:59:60",
        "2024-12-31T24:00",
        "2024-02-29 24:00:00",
        "1969-12-31 23:59:60",
    ]
    texts += ["2024-10-26 24:00", "2024-10-27T02:59:59.5", "2024-12-29t24:00", "0001-01-01"]
    x, y = np.random.default_rng(2).uniform((126.5, 37), (127.5, 38), (800, 2)).T
    columns = {"lon": map(repr, x.tolist()), "lat": map(repr, y.tolist()), "time": texts * 100}
    table = pa.table({name: list(values) for name, values in columns.items()})
    path = engines.write_quoted(tmp_path / "points.csv", table)
    options = {"unit": RECORD, "slices": engines.SLICES[by]}
    found, local = (
        count(data, Columns(time="time"), engines.DOMAIN, **options)
        for count, data in ((by_expression, table), (locally, path))
    )
    engines.assert_equal(found, local)


@pytest.mark.parametrize("case", ["record", "user, coarse", "users counted"])
def test_records_in_an_area(case):
    unit, step = engines.CASES[case]
    assert_same(unit=unit, step=step, area=engines.area())
    regions = engines.hierarchies()["polygons"]
    assert_same(unit=unit, step=step, area=engines.area(), strata=regions)


def test_points_on_the_outline_of_an_area():
    bounds = engines.DOMAIN.bounds
    for domain in (
        engines.DOMAIN,
        psd.Domain(bounds=bounds, coordinate_resolution="0.01"),
        psd.Domain(bounds=bounds, lattice=(1500, 1025)),
        psd.Domain(bounds=bounds, lattice=(90, 1024)),
        psd.Domain(bounds=(0.1, 0.1, 0.7, 0.3), crs="EPSG:3857"),
    ):
        area = engines.area(domain)
        assert_same(engines.on_outline(area.shape, domain), PLAIN, domain, area=area)


def test_only_coordinates_near_the_outline_of_an_area_are_brought_here():
    area, seen = engines.area(), []

    class Seen:
        certain_cells = staticmethod(area.certain_cells)

        def contains(self, x, y):
            seen.append(len(x))
            return area.contains(x, y)

    by_expression(ROWS, engines.COLUMNS, engines.DOMAIN, unit=RECORD, area=Seen())
    assert 0 < sum(seen) < 0.1 * len(ROWS)


@pytest.mark.parametrize("case", ["record", "user, coarse", "users counted"])
def test_coordinates_in_another_crs(case):
    unit, step = engines.CASES[case]
    metres = Columns(user="user", time="time", input_crs=engines.METRES)
    options = {"unit": unit, "step": step}
    assert_same(engines.in_metres(ROWS), metres, **options)
    assert_same(ROWS, Columns(user="user", input_crs="EPSG:4326"), engines.PROJECTED, **options)


def test_all_that_places_a_record():
    more = {"area": engines.area(), "strata": engines.hierarchies()["a gap"]}
    metres = Columns(user="user", time="time", input_crs=engines.METRES)
    unit, slices = engines.SLICED["user, some in each slice"], engines.SLICES["day"]
    table = engines.in_metres(engines.turns())
    assert_same(table, metres, unit=unit, slices=slices, **more)


def test_points_on_both_sides_of_0_in_another_crs():
    """PROJ takes the angle of a point, which leaps by 360 degrees at the sign of 0."""
    rng = np.random.default_rng(7)
    x, y = rng.uniform(-2e6, 2e6, (2, 900))
    x[::2] = rng.choice([0.0, -0.0], 450)
    north = psd.Domain(bounds=(-180, 50, 180, 90))
    assert_same(pa.table({"lon": x, "lat": y}), Columns(input_crs="EPSG:3995"), north)


def test_coordinates_stay_where_crs_are_the_same(monkeypatch):
    monkeypatch.setattr(
        "psd.apps.spark.expression._transform", lambda *_: pytest.fail("transformed")
    )
    same = Columns(user="user", time="time", input_crs="EPSG:4326")
    assert_same(ROWS, same, engines.DOMAIN)
    rounded = psd.Domain(bounds=engines.DOMAIN.bounds, coordinate_resolution="0.001")
    with pytest.raises(DomainError, match="coordinate_resolution must be left out"):
        by_expression(ROWS, Columns(input_crs=engines.METRES), rounded, unit=RECORD)


def test_an_input_that_changes_while_it_is_placed(monkeypatch):
    """What is joined to no coordinates was not there when these were brought here."""
    brought = expression._brought
    monkeypatch.setattr(
        expression, "_brought", lambda *given: [values[1:] for values in brought(*given)]
    )
    metres = Columns(user="user", time="time", input_crs=engines.METRES)
    for columns, more in ((metres, {}), (engines.COLUMNS, {"area": engines.area()})):
        with pytest.raises(ResourceError, match="changed while it was read"):
            by_expression(ROWS, columns, engines.DOMAIN, unit=RECORD, **more)


PLANTED = {
    "an edge belongs to both sides": ("_edge", lambda lines, *_: literal_double(0) * lines),
    "another digit of the hash": ("_SALT_DIGITS", 6),
    "another prime": ("PRIME", 2**31 - 3),
    "years before 1970 fold over": ("TIME_OFFSET", 0),
}


@pytest.mark.parametrize(("name", "value"), PLANTED.values(), ids=PLANTED)
def test_planted_differences_are_noticed(monkeypatch, name, value):
    unit, step = engines.CASES["user"]
    assert_same(unit=unit, step=step)
    monkeypatch.setattr(expression, name, value)
    with pytest.raises(AssertionError):
        assert_same(unit=unit, step=step)


DOMAINS = [
    psd.Domain(bounds=(-180, -90, 180, 90)),
    psd.Domain(bounds=(0.1, 0.1, 0.7, 0.3), crs="EPSG:3857", lattice=(7, 2**30)),
    psd.Domain(bounds=(1e-300, -1e300, 2e-300, 1e300), crs='LOCAL_CS["here"]', lattice=(3, 5)),
    psd.Domain(bounds=(-180, -90, 180, 90), coordinate_resolution="0.0001"),
    psd.Domain(bounds=(0.12, -0.1, 0.71, 0.3), crs="EPSG:3857", coordinate_resolution="0.1"),
    psd.Domain(bounds=(-7, 1, 7, 9e6), crs="EPSG:3857", coordinate_resolution="0.3"),
]


@pytest.mark.parametrize("domain", DOMAINS)
def test_points_at_lattice_lines(domain):
    rng = np.random.default_rng(3)
    x, y = (domain.edges(axis, rng.integers(0, domain.lattice[axis] + 1, 600)) for axis in (0, 1))
    side = rng.choice([-np.inf, np.inf], 600)
    x, y = np.where(rng.random(600) < 0.5, x, np.nextafter(x, side)), np.nextafter(y, -side)
    table = pa.table({"lon": x, "lat": [repr(value) for value in y.tolist()]})
    columns, rows, _ = domain.quantise(x, y)
    expected = Counter(zip(rows.tolist(), columns.tolist(), strict=True))
    found = by_expression(table, PLAIN, domain, unit=RECORD)
    cells = zip(found.rows.tolist(), found.columns.tolist(), strict=True)
    assert list(zip(cells, found.counts.tolist(), strict=True)) == sorted(expected.items())


@pytest.mark.parametrize("k", [1, 5])
def test_equal_rows_and_users_below_and_above_the_bound(k):
    rng = np.random.default_rng(k)
    x, y, day = (rng.integers(0, size, 900) for size in (4, 2, 3))
    time = np.datetime64("2024-02-28", "us") + day.astype("m8[D]")
    users = pa.array([str(user) for user in rng.geometric(0.01, 900)])
    table = pa.table({"lon": x + 0.5, "lat": y + 0.5, "user": users, "time": time})
    unit = PrivacyUnit(kind="user", max_contributions=k)
    options = {"unit": unit, "key": b"key"}
    found, local = (
        count(table, engines.COLUMNS, PLANE, **options) for count in (by_expression, locally)
    )
    assert found.report == local.report
    for name in ("columns", "rows", "counts"):
        np.testing.assert_array_equal(getattr(found, name), getattr(local, name))


def is_taken(path):
    try:
        return bool(locally(path, engines.COLUMNS, PLANE, **OPTIONS).report)
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
        for engine, data in ((engines.Local(), path), (EXPRESSION, table)):
            try:
                both.append(engine.tally(data, columns, PLANE, unit=RECORD).report)
            except InputDataError as error:
                both.append(str(error).replace(f" of {path}", ""))
        assert both[0] == both[1], value
        alike.append(isinstance(both[0], str))
    assert 3 < sum(alike) < len(values) - 3


def test_an_infinite_number_has_the_sentence_of_this_process(subtests):
    for name in ("lon", "lat"):
        table = pa.table({"lon": [0.5, 0.5], "lat": [0.5, 0.5]} | {name: [0.5, np.inf]})
        told = []
        for count in (by_expression, locally):
            with pytest.raises(InputDataError) as raised:
                count(table, PLAIN, PLANE, unit=RECORD)
            told.append(str(raised.value))
        with subtests.test(name):
            assert told == [f"column {name!r} must be finite; remove or repair infinite values"] * 2


def test_joins_that_would_double_records_are_refused(monkeypatch):
    """A user's limit would hide the second copy of a record."""
    options = {"unit": ONE, "area": engines.area()}
    assert_same(**options)
    run = ibis.Table.distinct
    monkeypatch.setattr(ibis.Table, "distinct", lambda table: run(table).union(run(table)))
    with pytest.raises(InternalError, match="a pair of coordinates twice"):
        by_expression(ROWS, engines.COLUMNS, engines.DOMAIN, **options)
    monkeypatch.undo()
    whole = expression.place
    doubled = lambda rows, *given, **more: whole(rows, *given, **more).pipe(  # noqa: E731
        lambda placed: placed.union(placed)
    )
    monkeypatch.setattr("psd.apps.spark.engine.place", doubled)
    with pytest.raises(ResourceError, match="the input changed"):
        by_expression(ROWS, engines.COLUMNS, engines.DOMAIN, **options)


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
    local = locally(engines.write_quoted(path, table), engines.COLUMNS, PLANE, **OPTIONS)
    found = by_expression(table, engines.COLUMNS, PLANE, **OPTIONS)
    assert (found.report, found.columns.tolist()) == (local.report, local.columns.tolist())
    if name == "time":  # to the microsecond
        dated = [bool(value) and value[:4].isdigit() for value in table["time"].to_pylist()]
        table = table.filter(pa.array(dated))
        moments = engines.duckdb_verdicts(
            table, lambda rows: parse_rows(rows, PLANE).select("moment")
        )
        np.testing.assert_array_equal(moments, wall_clock(table["time"], "UTC").astype(np.int64))
        assert table.num_rows > 10


def test_leap_seconds_are_those_of_the_offsets_of_a_zone(subtests):
    """Of all minutes of a day the engine takes the same as this process."""
    texts = [f"2016-12-31 {minute // 60:02}:{minute % 60:02}:60" for minute in range(1440)]
    table = engines.beside_sound_ones("time", texts)
    for zone, expected in (("UTC", 1), ("Asia/Seoul", 2), ("Asia/Kathmandu", 2)):
        columns = Columns(user="user", time="time", time_zone=zone)
        refused = engines.duckdb_verdicts(
            table, lambda rows, c=columns: parse_rows(rows, PLANE, c).select("bad_time")
        )
        taken = [text for text, bad in zip(texts, refused, strict=True) if not bad]
        assert len(taken) == expected, zone
        assert wall_clock(taken, zone).astype(str).tolist() == [
            f"{text[:10]}T{text[11:16]}:59.999999" for text in taken
        ]
        for text in set(texts[::90]) - set(taken):
            with subtests.test(zone, text=text), pytest.raises(InputDataError):
                wall_clock([text], zone)


def test_rows_that_are_refused_wherever_they_lie():
    for user in ("e\u0301", "é\u0301", "a\0b", "ά", "\U0001f600", "a\ufffd"):
        for second in (0.5, 9):  # inside and outside
            table = pa.table({"lon": [0.5, second], "lat": [0.5, second], "user": ["u", user]})
            with pytest.raises(InputDataError, match="characters") as raised:
                by_expression(table, Columns(user="user"), PLANE, unit=ONE)
            assert user not in str(raised.value)
    for name, x in product(("user", "time"), (0.5, 9, None)):  # inside, outside, nowhere
        rows = {"lon": [0.5, x], "lat": [0.5, 0.5], "user": ["u", "v"], "time": ["2024-01-31"] * 2}
        rows[name][1] = None
        with pytest.raises(InputDataError, match="have no"):
            by_expression(pa.table(rows), Columns(user="user", time="time"), PLANE, unit=ONE)
    late = pa.table({"lon": [0.5], "lat": [0.5], "time": ["2024-01-31 10:00:00+09:00"]})
    with pytest.raises(InputDataError, match="offset"):
        by_expression(late, Columns(time="time"), PLANE, unit=RECORD)
    untimed, slices = pa.table({"lon": [0.5], "lat": [0.5]}), engines.SLICES["day"]
    per_slice = PrivacyUnit(kind="user", max_contributions=2, max_per_slice=1)
    for count, data in ((by_expression, untimed), (locally, untimed.to_pandas())):
        with pytest.raises(InputDataError, match="name its column with time=NAME"):
            count(data, PLAIN, PLANE, unit=RECORD, slices=slices)
        with pytest.raises(ParameterError, match="max_per_slice must be given with slices="):
            count(data, PLAIN, PLANE, unit=per_slice)


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


def test_rows_but_none_inside_are_an_empty_tally():
    earth = psd.Domain(bounds=(-10, -10, 10, 10))
    for points, domain, kept in [
        ([(1, 1), (0, 90.5)], earth, 1),
        ([(1, 1), (-180.5, 0)], earth, 1),
        ([(7.5, 7.5)], PLANE, 0),
        ([], PLANE, 0),
    ]:
        x, y = (pa.array([float(point[axis]) for point in points], pa.float64()) for axis in (0, 1))
        counted = by_expression(pa.table({"lon": x, "lat": y}), PLAIN, domain, unit=RECORD)
        assert len(counted.counts) == kept
        left = {"without coordinates": 0, "outside": len(points) - kept}
        assert counted.report == {"read": len(points), **left, "kept": kept}
