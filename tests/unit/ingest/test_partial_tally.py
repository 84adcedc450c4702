"""Kept tallies: terms, parts, keys, the file and its refusals, building."""

import dataclasses
import json
import os
from contextlib import suppress

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import psd
from psd.errors import InputDataError, ParameterError
from psd.ingest.hash_key import key_fingerprint, load_key
from psd.ingest.partial_tally import (
    EMPTY,
    CountingRules,
    PartOrigin,
    combined_contribution_bound,
    merge,
)
from psd.ingest.sources import Columns
from psd.ingest.tally_file import KEY, is_tally, read_tally, read_unit, write_tally
from psd.ingest.user_rows import UserRows
from psd.privacy.unit import Unit
from psd.publish.from_tallies import TallyRequest, build_tally, tally_rows

DOMAIN = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(64, 64))
SECRET = bytes(range(32))
K4 = Unit(kind="user", max_contributions=4)
USERS = Columns(x="x", y="y", user="user")
SURE = 10**12


def table(count=300, seed=0, users=9):
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-1, 9, (2, count))
    time = np.datetime64("2024-01-01", "us") + rng.integers(0, 90 * 86_400, count) * 10**6
    user = [f"u{n}" for n in rng.integers(0, users, count)]
    return pd.DataFrame({"x": x, "y": y, "user": user, "time": time})


def recipe(**changes):
    plain = {"domain": DOMAIN, "unit": K4, "columns": USERS, "key": SECRET}
    return TallyRequest(**{**plain, **changes})


ROWS = recipe(unit=Unit(), columns=Columns(x="x", y="y"), key=None)


def counted(how=None, part="a", data=None, **changes):
    how = recipe(**changes) if how is None else how
    return tally_rows(table() if data is None else data, how, part=part)


def cells(kept):
    found = kept.tally
    slices = found.slice if found.slice is not None else np.zeros(len(found.counts), int)
    places = zip(slices.tolist(), found.rows.tolist(), found.columns.tolist(), strict=True)
    return dict(zip(places, found.counts.tolist(), strict=True))


# Parts and bounds.


def origin(run, k=1, key="a"):
    return PartOrigin(run=run, names=(run,), contributions=k, key=key)


@pytest.mark.parametrize(
    ("origins", "bound"),
    [
        ([origin("1", 4)], 4),
        ([origin("1", 4), origin("2", 3)], 7),
        ([origin("1", 4), origin("2", 3, key="b")], 7),
        ([origin("1", 1), origin("2", 2), origin("3", 4)], 7),
    ],
)
def test_bounds_add_up_since_one_user_may_be_in_all_parts(origins, bound):
    assert (
        combined_contribution_bound(origins) == combined_contribution_bound(origins[::-1]) == bound
    )


def test_bounds_of_parts_add_up():
    a, b = counted(part="a"), counted(part="b", unit=dataclasses.replace(K4, max_contributions=3))
    both = merge([a, b])
    assert both.unit == Unit(kind="user", max_contributions=7)
    assert both.tally.contributions == 7
    assert build_tally(both, epsilon=1, method=psd.Grid(size=2)).max_contributions == 7


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        ({}, {"domain": dataclasses.replace(DOMAIN, lattice=(32, 32))}, "different bounds, CRS"),
        ({}, {"domain": dataclasses.replace(DOMAIN, bounds=(0, 0, 8, 9))}, "different bounds, CRS"),
        ({}, {"domain": dataclasses.replace(DOMAIN, crs="EPSG:3395")}, "different bounds, CRS"),
        ({}, {"step": (2, 2)}, "steps of the lattice"),
        ({}, {"unit": Unit(), "columns": Columns(x="x", y="y"), "key": None}, "units of privacy"),
        ({}, {"unit": Unit(kind="user", weight=12)}, "units of privacy"),
        ({}, {"slices": "2024-01"}, "time slices"),
        ({"slices": "2024-01"}, {"slices": "2024-02"}, "time slices"),
        ({"slices": "2024-01"}, {"slices": "2024-01", "bound": "slice"}, "per slice or for all"),
        ({}, {"columns": dataclasses.replace(USERS, time="time")}, "time zones"),
        ({"carry": True}, {"carry": True, "key": bytes(32)}, "different keys"),
        ({"carry": True}, {}, "all with --carry-users"),
        (
            {"carry": True},
            {"carry": True, "unit": Unit(kind="user", max_contributions=3)},
            "different numbers of rows",
        ),
        (
            {"unit": Unit(kind="user", weight=12)},
            {"unit": Unit(kind="user", weight=12)},
            "tallies that count users cannot be merged",
        ),
        (
            {"unit": Unit(kind="user", max_contributions=10**9)},
            {"unit": Unit(kind="user", max_contributions=1)},
            "add up to too much",
        ),
    ],
)
def test_tallies_that_do_not_join(a, b, told):
    made = []
    for part, changes in (("a", a), ("b", b)):
        if "slices" in changes:
            months = psd.TimeSlices.parse("month", changes["slices"])
            columns = dataclasses.replace(USERS, time="time")
            changes = {**changes, "slices": months, "columns": columns}
        made.append(counted(part=part, **changes))
    with pytest.raises(InputDataError, match=told):
        merge(made)


def test_no_part_is_in_a_merged_tally_twice():
    a, b, c = (counted(ROWS, part=name) for name in "abc")
    both = merge([a, b])
    for wrong in ([a, a], [both, a], [a, merge([b, c]), b], [both, merge([b, c])]):
        with pytest.raises(InputDataError, match="given twice"):
            merge(wrong)
    with pytest.raises(InputDataError, match="part of the same name"):
        merge([a, counted(ROWS, part="a")])
    with pytest.raises(InputDataError, match="part of the same name"):
        merge([merge([a, b]), merge([c, counted(ROWS, part="b")])])
    assert len(merge([both, c]).origins) == 3


def test_the_same_file_is_seen_under_any_name(tmp_path):
    table().to_csv(tmp_path / "a.csv", index=False)
    (tmp_path / "copy.csv").write_bytes((tmp_path / "a.csv").read_bytes())
    os.symlink(tmp_path / "a.csv", tmp_path / "link.csv")
    first = tally_rows(tmp_path / "a.csv", ROWS)
    for name in ("copy.csv", "link.csv", "a.csv", "*.csv"):
        paths = [tmp_path / name] if name != "*.csv" else [tmp_path / "cop*.csv"]
        with pytest.raises(InputDataError, match="of the same file"):
            merge([first, tally_rows(paths, ROWS)])
    with pytest.raises(InputDataError, match="given twice"):
        tally_rows([tmp_path / "a.csv", tmp_path / "link.csv"], ROWS)


def test_parts_without_rows_do_no_harm(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text("x,y\n")
    empty = [tally_rows(tmp_path / name, ROWS) for name in ("a", "b")]
    assert all(EMPTY in kept.origins[0].names for kept in empty)
    both = merge([*empty, counted(ROWS)])
    assert cells(both) == cells(counted(ROWS))
    assert cells(merge(empty)) == {}


def test_what_is_no_file_needs_a_name():
    with pytest.raises(ParameterError, match="--part NAME"):
        tally_rows(table(), ROWS)
    with pytest.raises(ParameterError, match="short name"):
        tally_rows(table(), ROWS, part="a\n")
    nameless = dataclasses.replace(counted(ROWS).origins[0], names=())
    with pytest.raises(InputDataError, match="--part NAME"):
        merge([dataclasses.replace(counted(ROWS), origins=(nameless,)), counted(ROWS, part="b")])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"columns": Columns()}, "column of users"),
        ({"unit": Unit()}, "column of users"),
        ({"key": None, "carry": True}, "same --key"),
        ({"carry": True, "step": (2, 2)}, "full lattice"),
        ({"carry": True, "unit": Unit(kind="user", weight=12)}, "full lattice"),
        ({"slices": psd.TimeSlices.parse("month", "2024-01")}, "need --time"),
        ({"unit": Unit(kind="user-day", time_zone="UTC")}, "need --time"),
        (
            {
                "slices": psd.TimeSlices.parse("month", "2024-01", "Asia/Seoul"),
                "columns": dataclasses.replace(USERS, time="time"),
            },
            "another time zone",
        ),
        ({"bound": "slice", "unit": Unit(kind="user", weight=12)}, "--per slice"),
    ],
)
def test_recipes_that_make_no_sense(changes, told):
    with pytest.raises(ParameterError, match=told):
        recipe(**changes)


# Keys.


def test_a_key_is_made_once_and_is_its_owners_alone(tmp_path):
    path = tmp_path / "key"
    key = load_key(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_key(path) == key
    assert len(key) == 32
    assert load_key(tmp_path / "other") != key
    assert (
        key_fingerprint(key)
        == key_fingerprint(key)
        != key_fingerprint(load_key(tmp_path / "other"))
    )
    assert key.hex() not in key_fingerprint(key)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["key", "other"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_key_that_others_may_read_is_refused(tmp_path, mode):
    load_key(tmp_path / "key")
    (tmp_path / "key").chmod(mode)
    with pytest.raises(InputDataError, match="chmod 600"):
        load_key(tmp_path / "key")


@pytest.mark.parametrize("content", [b"", b"abc\n", b"g" * 64, b"a" * 65, bytes(32)])
def test_what_is_no_key_is_refused(tmp_path, content):
    (tmp_path / "key").write_bytes(content)
    (tmp_path / "key").chmod(0o600)
    with pytest.raises(InputDataError, match="holds no key"):
        load_key(tmp_path / "key")
    assert (tmp_path / "key").read_bytes() == content


# The file.

VARIANTS = {
    "rows": ROWS,
    "user": recipe(),
    "carried": recipe(carry=True),
    "coarse": dataclasses.replace(ROWS, step=(8, 4)),
    "shares": recipe(unit=Unit(kind="user", weight=720_720)),
    "slices": recipe(
        slices=psd.TimeSlices.parse("month", "2024-01..2024-04"),
        columns=dataclasses.replace(USERS, time="time"),
    ),
    "days": recipe(
        unit=Unit(kind="user-day", max_contributions=2, time_zone="Asia/Seoul"),
        columns=dataclasses.replace(USERS, time="time", time_zone="Asia/Seoul"),
        carry=True,
    ),
    "carried-slices": recipe(
        slices=psd.TimeSlices.parse("day", "2024-01-01..2024-02-15"),
        columns=dataclasses.replace(USERS, time="time"),
        bound="slice",
        carry=True,
    ),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_the_file_gives_the_same_tally(tmp_path, name):
    kept = counted(VARIANTS[name])
    write_tally(kept, tmp_path / "t")
    found = read_tally(tmp_path / "t")
    assert (found.terms, found.origins, found.unit) == (kept.terms, kept.origins, kept.unit)
    assert cells(found) == cells(kept)
    assert cells(kept)
    assert (tmp_path / "t").stat().st_mode & 0o777 == 0o600
    assert b"PRIVATE" in (tmp_path / "t").read_bytes()
    assert is_tally(tmp_path / "t")
    assert repr(kept) == "<PartialTally: private>"
    assert [entry.name for entry in tmp_path.iterdir()] == ["t"]


@pytest.mark.parametrize("name", VARIANTS)
def test_the_unit_is_known_before_a_count_is_read(tmp_path, name):
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        write_tally(counted(VARIANTS[name], part=path.name), path)
    several = [paths[:1], paths][: 1 if name == "shares" else 2]
    whole = [merge([read_tally(path) for path in some]).unit for some in several]
    for path in paths:
        with path.open("r+b") as file:
            file.seek(4)
            file.write(bytes(24))  # the head of the first page
        with pytest.raises(InputDataError, match="is damaged"):
            read_tally(path)
    assert [read_unit(some) for some in several] == whole


def test_the_unit_of_several_tallies_is_that_of_all_of_them(tmp_path):
    write_tally(counted(part="a"), tmp_path / "a")
    unit = dataclasses.replace(K4, max_contributions=3)
    write_tally(counted(part="b", unit=unit), tmp_path / "b")
    assert read_unit([tmp_path / "a", tmp_path / "b"]) == Unit(kind="user", max_contributions=7)


def test_a_tally_whose_header_is_damaged_has_no_unit(tmp_path):
    path = rewritten(tmp_path, counted(), edit(format=1))
    with pytest.raises(InputDataError, match="damaged, or of another version"):
        read_unit([path])
    with pytest.raises(InputDataError, match="does not exist"):
        read_unit([tmp_path / "absent"])


def test_a_tally_is_kept_from_others_and_from_overwriting(tmp_path):
    os.umask(0o000)
    try:
        write_tally(counted(), tmp_path / "t")
    finally:
        os.umask(0o022)
    assert (tmp_path / "t").stat().st_mode & 0o777 == 0o600
    with pytest.raises(psd.errors.WriteError, match="exists"):
        write_tally(counted(), tmp_path / "t")


def rewritten(tmp_path, kept, header=lambda header: header, lines=lambda table: table):
    """File of a tally whose header or table was tampered with."""
    write_tally(kept, tmp_path / "t", overwrite=True)
    read = lines(pq.read_table(tmp_path / "t"))
    text = header(json.loads(read.schema.metadata[KEY]))
    text = text if isinstance(text, str) else json.dumps(text)
    pq.write_table(read.replace_schema_metadata({KEY: text}), tmp_path / "t")
    return tmp_path / "t"


def edit(**changes):
    return lambda header: {**header, **changes}


def first_origin(**changes):
    return lambda header: {**header, "origins": [{**header["origins"][0], **changes}]}


@pytest.mark.parametrize(
    "header",
    [
        lambda h: "{",
        lambda h: "[]",
        lambda h: {k: v for k, v in h.items() if k != "unit"},
        edit(more=1),
        edit(format=1),
        edit(format=True),
        edit(bounds=[0, 0, 0, 0]),
        edit(bounds=[0, 0, 1]),
        edit(crs="nowhere"),
        edit(crs=3),
        edit(lattice=[4, 4]),
        edit(lattice=[64.0, 64]),
        edit(step=[0, 1]),
        edit(step=[1]),
        edit(unit="tribe"),
        edit(unit=["user"]),
        edit(weight=-1),
        edit(weight="1"),
        edit(by="month", slices=["2024-01"]),
        edit(slices="2024-01"),
        edit(bound="year"),
        edit(time_zone=3),
        edit(area=3),
        edit(carried=True),
        edit(carried=1),
        edit(release=3),
        edit(origins=[]),
        edit(origins={}),
        edit(origins=[3]),
        lambda h: {**h, "origins": h["origins"] * 2},
        first_origin(run="x"),
        first_origin(run=3),
        first_origin(names="part a"),
        first_origin(names=[3]),
        first_origin(contributions=0),
        first_origin(contributions=10**9 + 1),
        first_origin(key=3),
        first_origin(more=1),
    ],
)
def test_headers_are_read_strictly(tmp_path, header):
    path = rewritten(tmp_path, counted(), header)
    with pytest.raises(InputDataError, match="is damaged, or of another version"):
        read_tally(path)
    with suppress(InputDataError):  # the header alone may be sound
        read_unit([path])


def changed(name, at, value):
    def change(table):
        values = table[name].to_pylist()
        values[at] = value
        at_column = table.schema.get_field_index(name)
        kind = table.schema.field(name).type
        return table.set_column(at_column, table.schema.field(name), pa.array(values, kind))

    return change


@pytest.mark.parametrize(
    ("kept", "lines"),
    [
        ("rows", lambda t: t.drop_columns("row")),
        ("rows", lambda t: t.append_column("more", t["row"])),
        ("rows", changed("count", 0, 0)),
        ("rows", changed("count", 0, -1)),
        ("rows", changed("count", 0, None)),
        ("rows", changed("count", 0, 2**62)),
        ("rows", changed("column", 0, 64)),
        ("rows", changed("column", 0, 2**32)),
        ("rows", changed("row", 0, -1)),
        ("rows", changed("row", 0, 63)),
        ("rows", changed("slice", 0, 1)),
        ("rows", lambda t: pa.concat_tables([t, t])),
        ("rows", lambda t: pa.concat_tables([t.slice(0, 1), t])),
        ("coarse", changed("column", 0, 1)),
        ("slices", changed("slice", -1, 4)),
        ("slices", changed("slice", 0, -1)),
        ("carried", changed("user", 0, None)),
        ("carried", changed("row_hash", 0, -1)),
        ("carried", changed("row_hash", 0, 2**31 - 1)),
        ("carried", changed("count", 0, 2)),
        ("carried", changed("column", 0, 64)),
        ("carried", lambda t: pa.concat_tables([t, t.slice(0, 1)])),
        ("carried-slices", changed("time", 0, 0)),
    ],
)
def test_tables_are_read_strictly(tmp_path, kept, lines):
    path = rewritten(tmp_path, counted(VARIANTS[kept]), lines=lines)
    with pytest.raises(InputDataError, match="is damaged, or of another version"):
        read_tally(path)


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "t"
    write_tally(counted(), path)
    content = path.read_bytes()
    want = cells(counted())
    for at in range(4, len(content), 211):
        path.write_bytes(content[:at] + bytes([content[at] ^ 255]) + content[at + 1 :])
        try:
            found = cells(read_tally(path))
        except InputDataError:
            continue
        assert found == want  # what was changed says nothing
    for cut in (0, 3, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:cut])
        with pytest.raises(InputDataError, match="is no tally"):
            read_tally(path)
    with pytest.raises(InputDataError, match="does not exist"):
        read_tally(tmp_path / "absent")


def test_a_tally_is_no_release_and_no_points(tmp_path):
    write_tally(counted(), tmp_path / "t")
    with pytest.raises(psd.PsdError, match="PRIVATE, a tally"):
        psd.Release.load(tmp_path / "t")
    assert not is_tally(tmp_path)
    assert not is_tally(tmp_path / "absent")


# Building.


class Exact:
    """Noise for tests that adds none, so that the tree shows what was counted."""

    def count(self, true, epsilon, sensitivity):
        return true.copy()


@pytest.mark.parametrize("method", [psd.Grid(size=8), psd.Quadtree(height=3)])
@pytest.mark.parametrize("name", ["rows", "user", "carried", "coarse", "days"])
def test_a_tally_gives_the_release_of_its_rows(tmp_path, name, method):
    how = VARIANTS[name]
    kept = counted(how)
    write_tally(kept, tmp_path / "t")
    found = build_tally([read_tally(tmp_path / "t")], epsilon=1, method=method, noise=Exact())
    from psd.ingest.sources import read
    from psd.ingest.tally_builder import tally_batches
    from psd.publish.build import release_of

    batches = read(table(), how.columns, DOMAIN)
    counts = tally_batches(batches, DOMAIN, unit=how.unit, key=how.key)
    want = release_of(counts, DOMAIN, epsilon=10**9, method=method, unit=how.unit, noise=Exact())
    assert np.array_equal(found.tree.count, want.tree.count)
    for part in dataclasses.fields(want):
        if part.name != "tree":
            assert getattr(found, part.name) == getattr(want, part.name)


@pytest.mark.parametrize("bound", ["series", "slice"])
def test_a_tally_of_slices_gives_a_series(bound):
    months = psd.TimeSlices.parse("month", "2024-01..2024-04")
    columns = dataclasses.replace(USERS, time="time")
    kept = counted(slices=months, columns=columns, bound=bound)
    per = "slice" if bound == "slice" else None
    series = build_tally(kept, epsilon=2, method=psd.Grid(size=4), noise=Exact())
    assert isinstance(series, psd.Series)
    assert (series.bound, series.epsilon, series.slices) == (bound, 2 * 10**9, months)
    want = psd.build_series(
        table(), domain=DOMAIN, epsilon=2, slices=months, time="time", per=per, x="x", y="y",
        user="user", max_contributions=4, method=psd.Grid(size=4), noise=Exact(),
    )  # fmt: skip
    totals = [[r.tree.count[r.tree.is_leaf].sum() for r in s.releases] for s in (series, want)]
    if bound == "slice":  # which rows are kept is the key's choice, how many is not
        assert totals[0] == totals[1]
    assert sum(totals[0]) == sum(totals[1])


def test_a_method_that_divides_finer_than_its_tally_is_refused():
    coarse = counted(dataclasses.replace(ROWS, step=(8, 8)))
    assert build_tally(coarse, epsilon=1, method=psd.Quadtree(height=3)).method == "quadtree"
    assert build_tally(coarse, epsilon=1, method=psd.Quadtree(height=2)).method == "quadtree"
    for method in (psd.Quadtree(height=4), psd.Grid(size=3), psd.Grid(), "auto", "kd-standard"):
        with pytest.raises(ParameterError, match="8 x 8 lattice cells together"):
            build_tally(coarse, epsilon=1, method=method)


def test_carried_rows_hold_no_more_than_k_of_each_user():
    kept = counted(carry=True).counts
    assert isinstance(kept, UserRows)
    assert np.bincount(kept.users).max() == 4
    assert len(kept) == int(kept.counts.sum()) == 9 * 4
    assert repr(kept) == "<UserRows: private>"


def test_terms_leave_the_bound_to_the_parts():
    assert CountingRules(domain=DOMAIN, unit=K4) == CountingRules(
        domain=DOMAIN, unit=Unit(kind="user")
    )
