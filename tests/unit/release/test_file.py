"""The release file: what is written is read back, and nothing else is read."""

import hashlib
import json
import os
import pickle
import struct
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import psd
from psd._util.declared_parameters import parameters_from_file
from psd.errors import ReleaseFormatError, WriteError
from psd.privacy.unit import PrivacyUnit
from psd.release.file import SCHEMA
from psd.release.post_processing import ESTIMATES, PostProcessing
from psd.release.schema import record_header
from support.forged_releases import stamped
from support.releases import changed, decode, encode, release_from
from support.trees import domain_of, random_tree, release_of


def small_release():
    """A measured root, an unmeasured child, and five leaves."""
    domain = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0), lattice=(8, 8))
    tree = psd.grid_tree(domain, (4, 2))
    count = np.where(tree.is_leaf, np.arange(len(tree)) - 3, 0)
    count[0] = 41
    epsilon = np.where(tree.is_leaf, 0.75, 0)
    epsilon[0] = 0.25
    made = psd.Release.from_counts(tree, count, epsilon, domain=domain)
    return release_from(
        tree=made.tree,
        domain=domain,
        epsilon=made.record.epsilon,
        method="quadtree",
        parameters=parameters_from_file(
            {"height": 2, "budget": "uniform", "total_share": "0.02", "size": None}
        ),
        unit=PrivacyUnit(kind="user", max_contributions=4),
        post_processing=PostProcessing(estimate="posterior", density="smooth", prune=3),
        source="curator",
    )


@pytest.fixture(scope="module")
def content():
    return encode(small_release())


# --- round trip ---------------------------------------------------------------------------

PROMISES = ["epsilon", "unit", "source"]
FIELDS = [*PROMISES, "domain", "method", "parameters", "post_processing", "library", "inference"]
ARRAYS = ["boxes", "parent", "level", "count", "epsilon"]


def same(a, b):
    return all(getattr(a, name) == getattr(b, name) for name in FIELDS) and all(
        np.array_equal(getattr(a.tree, name), getattr(b.tree, name)) for name in ARRAYS
    )


def test_a_saved_release_is_loaded_as_it_was(tmp_path):
    release = small_release()
    release.save(tmp_path / "release.psd.parquet")
    loaded = psd.Release.load(tmp_path / "release.psd.parquet")
    assert same(release, loaded)
    assert np.array_equal(loaded.estimates.count, release.estimates.count)


@pytest.mark.parametrize("seed", range(10))
def test_random_releases_come_back(seed):
    tree = random_tree(np.random.default_rng(seed), height=4, unknown_leaf=0.5, top=2**40)
    release = release_of(tree, contributions=1 + seed)
    assert same(decode(encode(release)), release)


def test_a_crs_without_a_code_comes_back():
    crs = "+proj=aea +lat_1=29 +lat_2=45 +lat_0=30 +lon_0=127 +datum=WGS84 +units=m"
    release = release_of(random_tree(np.random.default_rng(1)), crs=crs)
    assert decode(encode(release)).domain == release.domain


@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("density", ["uniform", "smooth"])
@pytest.mark.parametrize("prune", [0, 1, 2**53 - 1])
def test_every_view_comes_back_and_answers_the_same(estimate, density, prune):
    view = PostProcessing(estimate=estimate, density=density, prune=prune)
    release = changed(small_release(), post_processing=view)
    again = decode(encode(release))
    assert again.post_processing == view
    boxes = [(126.5, 37.1, 126.9, 37.7), (126.4, 37.0, 127.6, 38.0)]
    assert again.query(boxes).equals(release.query(boxes))


def test_the_same_release_gives_the_same_bytes(content):
    assert encode(small_release()) == content
    assert encode(decode(content)) == content
    release = small_release()
    shuffled = parameters_from_file(dict(reversed(list(release.parameters.items()))))
    assert encode(changed(release, parameters=shuffled)) == content


def test_the_file_is_plain_parquet_with_nulls_where_nothing_was_measured(content, tmp_path):
    (tmp_path / "release.parquet").write_bytes(content)
    table = pq.read_table(tmp_path / "release.parquet")
    assert table.schema.remove_metadata().equals(SCHEMA)
    assert table["level"].to_pylist() == sorted(table["level"].to_pylist())
    unmeasured = [nano == 0 for nano in table["nano_epsilon"].to_pylist()]
    assert [count is None for count in table["count"].to_pylist()] == unmeasured
    assert any(unmeasured)


def test_the_header_holds_public_values_and_nothing_else(content):
    header = json.loads(pq.read_schema(pa.BufferReader(content)).metadata[b"psd"])
    assert header == {
        "format": 4,
        "library": psd.__version__,
        "inference": 2,
        "method": "quadtree",
        "parameters": {"height": 2, "budget": "uniform", "total_share": "0.02", "size": None},
        "domain": {"bounds": [126.4, 37.0, 127.6, 38.0], "crs": "EPSG:4326", "lattice": [8, 8]},
        "unit": "user",
        "max_contributions": 4,
        "weight": 0,
        "time_zone": None,
        "epsilon": "1",
        "view": {"estimate": "posterior", "density": "smooth", "prune": 3},
        "covariate": None,
        "boundary": False,
    }


def test_a_coordinate_resolution_comes_back_and_needs_format_6():
    domain = psd.Domain(bounds=(126.4, 37, 127.6, 38), coordinate_resolution="0.010")
    tree = psd.grid_tree(domain, 4)
    release = psd.Release.from_counts(tree, range(16), 1, domain=domain)
    header = record_header(release.record)
    assert (header["format"], header["coordinate_resolution"]) == (6, "0.01")
    assert header["domain"]["lattice"] == [121, 101]
    again = decode(encode(release))
    assert again.domain == domain
    assert encode(again) == encode(release)
    box = [(126.5, 37.2, 126.71, 37.4)]
    assert again.query(box).equals(release.query(box))
    plain = psd.Domain(bounds=domain.bounds, lattice=domain.lattice)
    without = psd.Release.from_counts(tree, range(16), 1, domain=plain)
    assert record_header(without.record)["format"] == 4
    assert without.digest != release.digest


# --- saving -------------------------------------------------------------------------------


def test_save_does_not_overwrite_unless_asked(tmp_path):
    target = tmp_path / "release.psd.parquet"
    target.write_bytes(b"mine")
    with pytest.raises(WriteError, match="exists"):
        small_release().save(target)
    assert target.read_bytes() == b"mine"
    small_release().save(str(target), overwrite=True)
    assert same(psd.Release.load(str(target)), small_release())
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_failed_save_leaves_no_file(tmp_path, monkeypatch, overwrite):
    def fails(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("psd._util.atomic_write.os.fsync", fails)
    with pytest.raises(WriteError, match="No space left"):
        small_release().save(tmp_path / "release.psd.parquet", overwrite=overwrite)
    assert list(tmp_path.iterdir()) == []


# --- damage -------------------------------------------------------------------------------


def refused(content, says="some.file"):
    with pytest.raises(ReleaseFormatError, match=says) as refusal:
        decode(content, "some.file")
    assert "some.file" in str(refusal.value)


@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(content, share):
    refused(content[: int(share * len(content))], "damaged, truncated")


def test_every_single_truncation_near_the_end_is_refused(content):
    for left_out in range(1, 200):
        refused(content[:-left_out])


def test_one_flipped_bit_is_refused_or_changes_nothing(content):
    release, outcomes = small_release(), {"refused": 0, "read": 0}
    for place in range(len(content)):
        for bit in (place % 8, (place + 3) % 8):
            damaged = bytearray(content)
            damaged[place] ^= 1 << bit
            try:
                read = decode(bytes(damaged))
            except ReleaseFormatError:
                outcomes["refused"] += 1
            else:
                outcomes["read"] += 1  # in statistics and the like, which are not looked at
                assert same(read, release)
                assert read.digest == release.digest
    assert outcomes["refused"] > outcomes["read"] > 0


def test_many_damaged_bytes_never_end_in_another_error(content):
    rng = np.random.default_rng(1)
    for _ in range(3000):
        damaged = np.frombuffer(content, np.uint8).copy()
        damaged[rng.integers(0, len(content), rng.integers(1, 7))] = rng.integers(0, 256)
        with suppress(ReleaseFormatError):
            decode(damaged.tobytes())


def test_parts_cut_out_or_repeated_never_end_in_another_error(content):
    rng = np.random.default_rng(2)
    for _ in range(2000):
        start, length = rng.integers(0, len(content)), rng.integers(1, 40)
        part = content[start : start + length]
        kept = content[:start] + part * int(rng.integers(0, 3)) + content[start + length :]
        with suppress(ReleaseFormatError):
            decode(kept)


def test_bytes_of_other_files_are_refused():
    refused(b"", "cannot be read as a release")
    refused(b"PAR1", "cannot be read as a release")
    refused(b"lon,lat\n126.9,37.5\n" * 100, "cannot be read as a release")
    refused(pickle.dumps({"tree": [1, 2, 3]}), "cannot be read as a release")
    refused(np.random.default_rng(1).bytes(5000), "cannot be read as a release")


def test_pickles_are_never_executed(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    refused(pickle.dumps(Trap()))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("length", [0, 1, 2**31 - 1, 2**32 - 1])
def test_a_forged_footer_length_is_refused(content, length):
    refused(content[:-8] + struct.pack("<I", length) + b"PAR1", "cannot be read as a release")


@pytest.mark.parametrize(
    ("path", "says"),
    [("missing.psd.parquet", "does not exist"), ("", "does not exist or is not a file")],
)
def test_a_missing_file_and_a_folder_are_refused(tmp_path, path, says):
    with pytest.raises(ReleaseFormatError, match=says):
        psd.Release.load(tmp_path / path)


# --- other tables -------------------------------------------------------------------------


def parquet(header=None, change=lambda table: table, **options):
    """A release file with another header or other columns."""
    table = change(pq.read_table(pa.BufferReader(encode(small_release()))))
    header = json.dumps(written_header()) if header is None else header
    header = header.encode() if isinstance(header, str) else header
    metadata = {} if header == b"" else stamped(table, {b"psd": header})
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata(metadata), sink, **options)
    return sink.getvalue().to_pybytes()


def written_header():
    return json.loads(pq.read_schema(pa.BufferReader(encode(small_release()))).metadata[b"psd"])


def test_a_table_in_several_row_groups_and_another_compression_is_read():
    again = decode(parquet(row_group_size=3, compression="snappy"))
    assert same(again, small_release())


def as_type(name, kind):
    def change(table):
        place = table.schema.get_field_index(name)
        column = table[name].cast(kind)
        return table.set_column(place, pa.field(name, kind, SCHEMA.field(name).nullable), column)

    return change


def with_values(name, place, value):
    def change(table):
        values = table[name].to_pylist()
        values[place] = value
        field = SCHEMA.field(name)
        return table.set_column(
            table.schema.get_field_index(name), field, pa.array(values, field.type)
        )

    return change


def nullable(table):
    fields = [field.with_nullable(True) for field in table.schema]
    return table.cast(pa.schema(fields))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param(as_type("x0", pa.int64()), "columns", id="wider integers"),
        pytest.param(as_type("count", pa.float64()), "columns", id="counts as floats"),
        pytest.param(as_type("nano_epsilon", pa.string()), "columns", id="epsilon as text"),
        pytest.param(lambda t: t.append_column("note", t["level"]), "columns", id="extra column"),
        pytest.param(lambda t: t.drop_columns("level"), "columns", id="missing column"),
        pytest.param(
            lambda t: t.select(t.column_names[::-1]), "columns", id="columns in another order"
        ),
        pytest.param(
            lambda t: t.rename_columns(["X0", *t.column_names[1:]]), "columns", id="another name"
        ),
        pytest.param(nullable, "columns", id="columns that may be null"),
        pytest.param(lambda t: t.slice(0, 0), "1 to", id="no rows"),
        pytest.param(lambda t: t.slice(0, 4), "tile", id="rows left out"),
        pytest.param(lambda t: t.take([0, 2, 1]), "not a tree", id="rows in another order"),
        pytest.param(with_values("count", 0, None), "same nodes", id="epsilon without count"),
        pytest.param(with_values("count", 1, 0), "same nodes", id="count without epsilon"),
        pytest.param(with_values("nano_epsilon", 0, 0), "same nodes", id="epsilon left out"),
        pytest.param(with_values("nano_epsilon", 3, -5), "epsilon", id="negative epsilon"),
        pytest.param(with_values("nano_epsilon", 0, 10**9), "at most epsilon", id="dear path"),
        pytest.param(
            with_values("nano_epsilon", 3, 2**63 - 1), "epsilon", id="path that overflows"
        ),
        pytest.param(with_values("level", 3, -(2**15)), "level", id="level far below"),
        pytest.param(with_values("x1", 0, 9), "whole lattice", id="root beyond the lattice"),
        pytest.param(with_values("x0", 3, -(2**31)), "tile", id="box far outside"),
        pytest.param(with_values("parent", 3, 2**31 - 1), "parent", id="parent far away"),
    ],
)
def test_other_columns_and_values_are_refused(change, says):
    refused(parquet(change=change), says)


def test_counts_that_do_not_tell_the_leaves_apart_are_refused_when_estimated():
    # The last level left out: a sound tree whose new leaves carry no count.
    release = decode(parquet(change=lambda table: table.slice(0, 5)))
    with pytest.raises(ReleaseFormatError, match="cannot be told apart"):
        _ = release.total


# --- other headers ------------------------------------------------------------------------


def edited(**changes):
    """The header with fields set, or left out where the value is `...`."""
    header = written_header() | changes
    return json.dumps({name: value for name, value in header.items() if value is not ...})


def domain_with(**changes):
    return {"domain": written_header()["domain"] | changes}


def view_with(**changes):
    view = written_header()["view"] | changes
    return {"view": {name: value for name, value in view.items() if value is not ...}}


def test_the_unedited_header_is_read():
    assert same(decode(parquet(edited())), small_release())


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        pytest.param({"format": 12}, "format version 12 is not known", id="format of the future"),
        pytest.param({"format": 1}, "format version 1 is not known", id="format without a view"),
        pytest.param({"format": 0}, "format version 0", id="format 0"),
        pytest.param({"format": "2"}, "format version '2'", id="format as text"),
        pytest.param({"format": True}, "format version True", id="format True"),
        pytest.param({"format": ...}, "format version None", id="no format"),
        pytest.param({"format": 5}, "other fields", id="format 5 without a source"),
        pytest.param({"source": "given"}, "other fields", id="format 4 with a source"),
        *(
            pytest.param({"format": 5, "source": value}, "source", id=f"source {value}")
            for value in ("replay", "insecure", "", None, 1, ["curator"])
        ),
        pytest.param(
            {"format": 5, "source": "curator", "method": "given"},
            "must not be curator",
            id="given counts of the curator",
        ),
        pytest.param({"coordinate_resolution": None}, "other fields", id="format 4 with a step"),
        *(
            pytest.param(
                {"format": 6, "source": "curator", "coordinate_resolution": value},
                says,
                id=f"coordinate resolution {value}",
            )
            for value, says in {
                "0.1": "lattice must be left out",
                "0.10": "coordinate_resolution is not valid",
                "1e-1": "coordinate_resolution is not valid",
                "0": "coordinate_resolution is not valid",
                "": "coordinate_resolution is not valid",
                0.1: "coordinate_resolution is not valid",
                True: "coordinate_resolution is not valid",
            }.items()
        ),
        pytest.param(
            {
                "format": 6,
                "source": "curator",
                "coordinate_resolution": "0.1",
                "domain": {
                    "bounds": [126.4, 37.0, 127.6, 38.0],
                    "crs": "EPSG:4326",
                    "lattice": [2**20, 2**20],
                },
            },
            "lattice does not follow from coordinate_resolution",
            id="the default lattice with a coordinate resolution",
        ),
        pytest.param({"inference": 3}, "must be 1 or 2, got 3", id="inference of the future"),
        pytest.param({"inference": 0}, "inference", id="inference 0"),
        pytest.param({"inference": True}, "inference", id="inference True"),
        pytest.param({"note": "hello"}, "other fields", id="unknown field"),
        pytest.param({"records": 1234}, "other fields", id="a private count"),
        *(
            pytest.param({name: ...}, "other fields", id=f"no {name}")
            for name in ("domain", "epsilon", "inference", "library", "max_contributions")
        ),
        *(
            pytest.param({name: ...}, "other fields", id=f"no {name}")
            for name in ("method", "parameters", "unit", "view")
        ),
        pytest.param({"method": ""}, "method", id="empty method"),
        pytest.param({"method": 3}, "method", id="method as number"),
        pytest.param({"method": "a\nb"}, "method", id="line end in the method"),
        pytest.param({"method": "\u001b[31m"}, "method", id="terminal code in the method"),
        pytest.param({"method": "m" * 41}, "method", id="long method"),
        pytest.param({"method": "[red]kd"}, "method", id="markup in the method"),
        pytest.param({"time_zone": "Seoul (local)"}, "time_zone", id="no name of a time zone"),
        pytest.param({"time_zone": "a\u202eb"}, "time_zone", id="reversed text as time zone"),
        pytest.param({"time_zone": "a/" * 60}, "time_zone", id="long time zone"),
        pytest.param({"library": None}, "library", id="library null"),
        pytest.param({"unit": "household"}, "unit", id="unknown unit"),
        pytest.param({"unit": ["record"]}, "unit", id="list of units"),
        pytest.param({"max_contributions": 0}, "max_contributions", id="no contributions"),
        pytest.param({"max_contributions": 1.0}, "max_contributions", id="float contributions"),
        pytest.param({"max_contributions": 10**9 + 1}, "max_contributions", id="too many"),
        pytest.param({"parameters": []}, "parameters", id="parameters as list"),
        pytest.param({"parameters": {"a": [1]}}, "parameters", id="nested parameters"),
        pytest.param({"parameters": {"a": 0.5}}, "parameters", id="float parameter"),
        pytest.param({"parameters": {"a": True}}, "parameters", id="true parameter"),
        pytest.param({"parameters": {"": 1}}, "parameters", id="parameter without name"),
        pytest.param({"parameters": {"a": "x" * 101}}, "parameters", id="long parameter"),
        pytest.param({"parameters": {"a": 2**63}}, "parameters", id="huge parameter"),
        pytest.param(
            {"parameters": {f"p{i}": 1 for i in range(101)}}, "parameters", id="many parameters"
        ),
        pytest.param({"view": None}, "view", id="view null"),
        pytest.param({"view": []}, "view", id="view as list"),
        pytest.param({"view": {}}, "view", id="view without choices"),
        pytest.param(view_with(note=1), "view", id="unknown choice"),
        *(
            pytest.param(view_with(**{name: ...}), "view", id=f"view without {name}")
            for name in ("estimate", "density", "prune")
        ),
        pytest.param(view_with(estimate="mean"), "view", id="unknown estimate"),
        pytest.param(view_with(estimate=["posterior"]), "view", id="list of estimates"),
        pytest.param(view_with(estimate="smooth"), "view", id="a density as estimate"),
        pytest.param(view_with(density="rough"), "view", id="unknown density"),
        pytest.param(view_with(density=None), "view", id="density null"),
        pytest.param(view_with(prune=-1), "view", id="negative prune"),
        pytest.param(view_with(prune=2**53), "view", id="prune too large"),
        pytest.param(view_with(prune=1.0), "view", id="prune as float"),
        pytest.param(view_with(prune=True), "view", id="prune True"),
        pytest.param(view_with(prune="3"), "view", id="prune as text"),
        pytest.param({"epsilon": 1.0}, "epsilon", id="epsilon as number"),
        pytest.param({"epsilon": "0"}, "epsilon must be above 0", id="epsilon 0"),
        pytest.param({"epsilon": "1e999"}, "epsilon", id="endless epsilon"),
        pytest.param({"epsilon": "nan"}, "epsilon", id="epsilon nan"),
        pytest.param({"epsilon": "0.999999999"}, "at most epsilon", id="less than was spent"),
        pytest.param({"domain": None}, "domain", id="no domain at all"),
        pytest.param({"domain": []}, "domain", id="domain as list"),
        pytest.param(domain_with(note=1), "domain", id="unknown field in the domain"),
        pytest.param(domain_with(bounds=[0, 0, 1]), "bounds", id="three bounds"),
        pytest.param(domain_with(bounds=["0", "0", "1", "1"]), "domain", id="bounds as text"),
        pytest.param(domain_with(bounds=[False, 0, 1, 1]), "domain", id="false as bound"),
        pytest.param(domain_with(bounds=[5, 0, 1, 1]), "west", id="bounds turned round"),
        pytest.param(domain_with(bounds=[0, 0, 10**400, 1]), "bounds", id="bound of 400 digits"),
        pytest.param(domain_with(bounds={"west": 0}), "domain", id="bounds as object"),
        pytest.param(domain_with(lattice=[8]), "lattice", id="one lattice number"),
        pytest.param(domain_with(lattice=[8.0, 8.0]), "domain", id="lattice of floats"),
        pytest.param(domain_with(lattice=[2**31, 8]), "domain", id="lattice too fine"),
        pytest.param(domain_with(lattice=[16, 8]), "whole lattice", id="another lattice"),
        pytest.param(domain_with(crs=4326), "domain", id="crs as number"),
        pytest.param(domain_with(crs="EPSG:0"), "crs", id="unknown crs"),
        pytest.param(domain_with(crs="\ud800"), "domain", id="crs that is no text"),
        pytest.param(domain_with(crs=""), "crs", id="empty crs"),
    ],
)
def test_other_headers_are_refused(changes, says):
    refused(parquet(edited(**changes)), says)


@pytest.mark.parametrize(
    ("header", "says"),
    [
        pytest.param(b"", "no psd header", id="none: some other Parquet file"),
        pytest.param("{", "not strict JSON", id="half an object"),
        pytest.param("[1, 2]", "not a JSON object", id="list"),
        pytest.param('"psd"', "not a JSON object", id="text"),
        pytest.param("null", "not a JSON object", id="null"),
        pytest.param(b"\xff\xfe\x00", "not strict JSON", id="no text"),
        pytest.param(edited()[:-1] + ', "unit": "user"}', "not strict JSON", id="duplicate key"),
        pytest.param(
            edited().replace('"height": 2', '"height": 2, "height": 3'),
            "not strict JSON",
            id="duplicate key inside",
        ),
        pytest.param(edited().replace("126.4", "NaN"), "not strict JSON", id="NaN"),
        pytest.param(edited().replace("126.4", "-Infinity"), "not strict JSON", id="Infinity"),
        pytest.param(edited().replace("126.4", "-1e400"), "finite", id="overflow to infinity"),
        pytest.param(
            edited().replace('"height": 2', '"height": ' + "9" * 5000),
            "not strict JSON",
            id="number of 5,000 digits",
        ),
        pytest.param("[" * 100_000, "not strict JSON", id="deep nesting, open"),
        pytest.param(
            edited().replace('"height": 2', '"height": ' + "[" * 50_000 + "]" * 50_000),
            "not strict JSON|parameters",
            id="deep nesting, closed",
        ),
        pytest.param(edited() + "x", "not strict JSON", id="text after the end"),
        pytest.param(edited() + " " * 2**20, "too long", id="a header of a megabyte"),
    ],
)
def test_headers_that_are_no_strict_json_are_refused(header, says):
    refused(parquet(header), says)


def test_a_domain_of_metres_keeps_its_numbers():
    release = release_of(random_tree(np.random.default_rng(2)))
    assert decode(encode(release)).domain == domain_of((64, 64))


# --- what the bytes do not account for, and what somebody edits -----------------------------


def test_a_changed_number_is_refused_by_the_digest():
    honest = parquet()
    assert same(decode(honest), small_release())
    table = pq.read_table(pa.BufferReader(honest))
    for name, value in (("count", 7), ("nano_epsilon", 749_999_999)):
        sink = pa.BufferOutputStream()
        changed = with_values(name, -1, value)(table)
        pq.write_table(changed.replace_schema_metadata(table.schema.metadata), sink)
        refused(sink.getvalue().to_pybytes(), "does not match its digest")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"epsilon": "1.5"}, id="epsilon"),
        pytest.param({"unit": "record", "max_contributions": 1}, id="unit"),
        pytest.param({"max_contributions": 5}, id="bound"),
        pytest.param({"method": "grid"}, id="method"),
        pytest.param({"library": "9"}, id="library"),
        pytest.param({"parameters": {}}, id="parameters"),
    ],
)
def test_an_edited_header_is_refused_by_the_digest(change):
    table = pq.read_table(pa.BufferReader(parquet()))
    footer = table.schema.metadata | {b"psd": edited(**change).encode()}
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata(footer), sink)
    refused(sink.getvalue().to_pybytes(), "does not match its digest")
    footer[b"psd"] = edited(**change, format=3).encode()  # an older one, but with this digest
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata(footer), sink)
    refused(sink.getvalue().to_pybytes(), "does not match its digest")


def test_a_digest_that_was_left_out_is_missed():
    table = pq.read_table(pa.BufferReader(parquet()))
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata({b"psd": edited().encode()}), sink)
    refused(sink.getvalue().to_pybytes(), "has no digest")


def test_the_digest_is_of_the_content_and_not_of_the_bytes(content):
    first = decode(content).digest
    spaced = json.dumps(written_header(), indent=3)
    for other in (parquet(compression="gzip"), parquet(row_group_size=2), parquet(spaced)):
        assert other != content
        assert decode(other).digest == first
    assert small_release().digest == first
    assert changed(small_release(), post_processing=PostProcessing()).digest != first


def test_the_digest_is_what_the_page_on_it_says(content):
    release, header = decode(content), edited().encode()
    tree = release.tree
    arrays = (
        np.array(tree.boxes, "<i4"), np.array(tree.parent, "<i4"), np.array(tree.level, "<i2"),
        np.array(tree.count, "<i8"), np.array(tree.epsilon, "<i8"),
    )  # fmt: skip
    header = json.dumps(json.loads(header), sort_keys=True).encode()
    parts = [b"psd", header, *(array.tobytes() for array in arrays)]
    whole = b"".join(struct.pack("<Q", len(part)) + part for part in parts)
    assert release.digest == hashlib.sha256(b"psd public content 1\n" + whole).hexdigest()


def test_other_keys_in_the_footer_are_refused():
    table = pq.read_table(pa.BufferReader(parquet()))
    for name in (b"note", b"pandas", b"psd-series", b"psd-digesT"):
        sink = pa.BufferOutputStream()
        footer = table.schema.metadata | {name: b"x"}
        pq.write_table(table.replace_schema_metadata(footer), sink)
        refused(sink.getvalue().to_pybytes(), "keys that a release does not have")


def test_a_header_stands_once_in_a_file(content):
    assert content.count(b'"max_contributions"') == 1


def chain(levels):
    """A tree whose nodes have one child each, all of them the whole lattice."""
    boxes = np.tile(np.array([0, 0, 8, 8]), (levels, 1))
    nano = np.where(np.arange(levels) == levels - 1, 10**9, 0)
    steps = np.arange(levels)
    return psd.Tree(boxes=boxes, parent=steps - 1, level=steps, count=nano * 0, epsilon=nano)


def test_a_tree_is_as_deep_as_trees_are():
    deep = release_of(chain(256))
    assert deep.model.unevenness.spread.shape == (len(deep.tree),)
    assert same(decode(encode(deep)), deep)
    for levels in (257, 10_000, 32_767):
        with pytest.raises(ReleaseFormatError, match="more than 256 levels"):
            release_of(chain(levels))


def test_a_node_that_is_its_own_parent_is_refused():
    refused(parquet(change=with_values("parent", 3, 3)), "parent")


@pytest.mark.parametrize(
    "crs",
    [
        pytest.param("+proj=longlat " * 3000, id="long"),
        pytest.param("EPSG:4326\u001b[31m", id="terminal code"),
        pytest.param('{"type": "BoundCRS", "source_crs": ' * 900 + "1" + "}" * 900, id="deep"),
    ],
)
def test_a_crs_that_is_none_is_refused(crs):
    refused(parquet(edited(**domain_with(crs=crs))), "domain|crs|no readable")


def test_a_link_to_a_release_is_followed(tmp_path):
    small_release().save(tmp_path / "r.psd.parquet")
    (tmp_path / "link").symlink_to(tmp_path / "r.psd.parquet")
    assert same(psd.Release.load(tmp_path / "link"), small_release())
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(ReleaseFormatError, match="does not exist"):
        psd.Release.load(tmp_path / "loop")


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ReleaseFormatError, match="is not a file"):
        psd.Release.load(tmp_path / "pipe")


def test_arrays_of_objects_are_never_executed(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    np.save(tmp_path / "r.npy", np.array([Trap()], object), allow_pickle=True)
    refused((tmp_path / "r.npy").read_bytes(), "cannot be read as a release")
    assert not (tmp_path / "sprung").exists()
