"""The file of a tally: what comes back, and every refusal."""

import dataclasses
import json
import os
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import psd
from psd._util.wall_clock import zone_rules
from psd.errors import InputDataError
from psd.ingest.partial_tally import merge
from psd.ingest.tally_file import KEY, is_tally, read_origins, read_tally, write_tally
from psd.privacy.values import WEIGHT
from support.tallies import K4, VARIANTS, cells, counted


@pytest.mark.parametrize("name", VARIANTS)
def test_the_file_gives_the_same_tally(tmp_path, name):
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        kept = counted(VARIANTS[name], part=path.name)
        write_tally(kept, path)
        found = read_tally(path)
        assert (found.rules, found.origins, found.unit) == (kept.rules, kept.origins, kept.unit)
        assert cells(found) == cells(kept)
        assert cells(kept)
        assert path.stat().st_mode & 0o777 == 0o600
        assert b"PRIVATE" in path.read_bytes()
        assert is_tally(path)
        assert repr(kept) == "<PartialTally: private>"
        schema = pq.read_schema(path)
        assert ("region" in schema.names) == name.startswith("regions")
        assert json.loads(schema.metadata[KEY])["psd_tally"] == 1
    assert sorted(tmp_path.iterdir()) == paths
    several = [paths[:1], paths][: 1 if name == "shares" else 2]
    whole = [merge([read_tally(path) for path in some]).unit for some in several]
    for path in paths:  # the unit is known before a count is read
        with path.open("r+b") as file:
            file.seek(4)
            file.write(bytes(24))  # the head of the first page
        with pytest.raises(InputDataError, match="is damaged"):
            read_tally(path)
    assert [read_origins(some)[0] for some in several] == whole


def test_a_tally_is_kept_from_others_and_from_overwriting(tmp_path):
    three, seven = (dataclasses.replace(K4, max_contributions=k) for k in (3, 7))
    os.umask(0o000)
    try:
        for name, unit in (("a", K4), ("b", three)):
            write_tally(counted(part=name, unit=unit), tmp_path / name)
    finally:
        os.umask(0o022)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
    with pytest.raises(psd.errors.WriteError, match="exists"):
        write_tally(counted(), tmp_path / "a")
    assert read_origins([tmp_path / "a", tmp_path / "b"])[0] == seven  # the unit of all of them
    write_tally(counted(), tmp_path / "t")
    with pytest.raises(psd.PsdError, match="PRIVATE tally"):
        psd.load(tmp_path / "t")
    assert not is_tally(tmp_path)
    assert not is_tally(tmp_path / "absent")


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


def refused(path, read=read_tally):
    with pytest.raises(InputDataError, match="is damaged, or of another version"):
        read(path)


def each(edit, fields):
    return [edit(**{name: value}) for name, values in fields.items() for value in values]


FIELDS = {
    "psd_tally": [0, True, 2, "1"],
    "format": [1, 8],  # beside the new key, a field that no tally has
    "bounds": [[0, 0, 0, 0], [0, 0, 1]],
    "crs": ["nowhere", 3],
    "lattice": [[4, 4], [64.0, 64]],
    "step": [[0, 1], [1]],
    "unit": ["tribe", ["user"]],
    "weight": [-1, "1", 1, 12],
    "has_user_rows": [True, 1],
    "origins": [[], {}, [3]],
}
FIELDS |= {name: [3] for name in ("time_zone", "boundary", "release", "more")}
FIELDS |= {"slices": ["2024-01"], "contribution_scope": ["year"]}
FIELDS |= {"coordinate_resolution": ["0.25", 0.25], "min_cell": ["0.250", 0.25]}
ORIGIN = {
    "run": ["x", 3],
    "names": ["part a", [3]],
    "contributions": [0, 10**9 + 1],
    "reading": [{"x": "lon"}, [], None],
    "key": [3],
    "more": [1],
}
HEADERS = [
    *each(edit, FIELDS),
    *each(first_origin, ORIGIN),
    edit(by="month", slices=["2024-01"]),
    lambda header: "{",
    lambda header: "[]",
    lambda header: {name: value for name, value in header.items() if name != "unit"},
    lambda header: {**header, "origins": header["origins"] * 2},
]
DIGEST = {"digest": "0" * 64}
FARE = {"name": "fare", "lower": 0.0, "upper": 60.0}
VALUES = [None, [], [FARE, FARE], *([FARE | wrong] for wrong in (
    {"name": "tip"}, {"name": ""}, {"lower": 60.0}, {"upper": float("nan")}, {"more": 1},
))]  # fmt: skip
FARES = [{}, {"values": "tip"}, {"values": "fare, tip"}]


def read_otherwise(values):
    """A header whose part was read with other columns of values than it has sums of."""
    return first_origin(reading={"x": "x", "y": "y", **values})


REGIONS = [{}, DIGEST, {"digest": "Z" * 64, "size": 4}, {"digest": 3, "size": 4}]
REGIONS += [DIGEST | {"size": size} for size in (0, 2**23, True, 3)]
REGIONS += [DIGEST | {"size": 4, "more": 1}]


def test_headers_are_read_strictly(subtests, tmp_path):
    strictly(subtests, tmp_path, counted(), HEADERS)
    refused([rewritten(tmp_path, counted(), edit(psd_tally=2))], read_origins)
    with pytest.raises(InputDataError, match="does not exist"):
        read_origins([tmp_path / "absent"])


def test_headers_of_tallies_with_more_are_read_strictly(subtests, tmp_path):
    resolutions = {"coordinate_resolution": ["0.250", "0.5", 0.25, ""]}
    clocks = {"clock": ["", "0" * 15, "0" * 17, "G" * 16, 7, ["0" * 16]]}
    for kept, headers in (
        (counted(VARIANTS["stepped"]), each(edit, resolutions)),
        (counted(VARIANTS["regions"]), each(edit, {"regions": REGIONS})),
        (counted(VARIANTS["values"]), each(edit, {"values": VALUES})),
        (counted(VARIANTS["values"]), map(read_otherwise, FARES)),
        (sliced_tally(tmp_path), each(first_origin, clocks)),
    ):
        strictly(subtests, tmp_path, kept, headers)


def strictly(subtests, folder, kept, headers):
    for number, header in enumerate(headers):
        with subtests.test(str(kept.rules.step), number=number):
            path = rewritten(folder, kept, header)
            refused(path)
            with suppress(InputDataError):  # the header alone may be sound
                read_origins([path])


def sliced_tally(folder):
    (folder / "points.csv").write_text("lon,lat,seen\n1,1,2026-01-05\n2,3,2026-01-06\n")
    days = psd.TimeSlices.parse("day", "2026-01-05..2026-01-06", "Asia/Seoul")
    common = {"domain": (0, 0, 4, 4), "slices": days, "time": "seen"}
    return psd.tally(folder / "points.csv", folder / "sliced", **common)


def test_slices_of_csv_files_state_the_clock_changes_of_their_zone(tmp_path):
    tally = sliced_tally(tmp_path)
    assert [origin.clock for origin in tally.origins] == [zone_rules("Asia/Seoul")]
    assert read_tally(tmp_path / "sliced").origins == tally.origins
    assert read_origins([tmp_path / "sliced"])[2] == tally.rules.slices


def changed(name, at, value):
    def change(table):
        values = table[name].to_pylist()
        values[at] = value
        index, field = table.schema.get_field_index(name), table.schema.field(name)
        return table.set_column(index, field, pa.array(values, field.type))

    return change


TABLES = {
    "rows": [
        *(changed("count", 0, value) for value in (0, -1, None, 2**62)),
        *(changed("column", 0, value) for value in (64, 2**32)),
        *(changed("row", 0, value) for value in (-1, 63)),
        changed("slice", 0, 1),
        lambda t: t.drop_columns("row"),
        *(lambda t, name=name: t.append_column(name, t["row"]) for name in ("more", "region")),
        lambda t: pa.concat_tables([t, t]),
        lambda t: pa.concat_tables([t.slice(0, 1), t]),
    ],
    "coarse": [changed("column", 0, 1)],
    "slices": [changed("slice", -1, 4), changed("slice", 0, -1)],
    "carried": [
        changed("user", 0, None),
        *(changed("row_hash", 0, value) for value in (-1, 2**31 - 1)),
        changed("column", 0, 64),
        lambda t: pa.concat_tables([t, t.slice(0, 1)]),
    ],
    "values": [
        # No weight is below 0 or above that of the records, or so large that sums are not exact.
        *(changed("weight0", 0, value) for value in (-1, 300 * WEIGHT + 1, 2**62, None)),
        *(changed("count", 0, value) for value in (0, -1, 2**62 // WEIGHT, 2**62)),
        lambda t: t.drop_columns("weight0"),
        *(lambda t, n=n: t.append_column(f"weight{n}", t["count"]) for n in (0, 1)),
        lambda t: t.set_column(4, "weight0", t["weight0"].cast("float64")),
    ],
    "carried-slices": [changed("time", 0, 0)],
    "regions": [
        *(changed("region", 0, value) for value in (4, -1, None)),
        changed("region", -1, 0),
        lambda t: t.drop_columns("region"),
    ],
    "regions-carried": [changed("region", 0, 4), changed("column", 0, 64)],
}


def test_tables_are_read_strictly(subtests, tmp_path):
    for variant, tables in TABLES.items():
        kept = counted(VARIANTS[variant])
        for number, lines in enumerate(tables):
            with subtests.test(variant=variant, number=number):
                refused(rewritten(tmp_path, kept, lines=lines))


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
        with pytest.raises(InputDataError, match="is not a tally"):
            read_tally(path)
    with pytest.raises(InputDataError, match="does not exist"):
        read_tally(tmp_path / "absent")
