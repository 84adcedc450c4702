"""The release file: what is written is read back, and nothing else is read."""

import hashlib
import json
import os
import pickle
import struct
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import psd
from psd._util.declared_parameters import parameters_from_file
from psd.errors import ReleaseFormatError, WriteError
from psd.privacy.unit import PrivacyUnit
from psd.release.file import SCHEMA, canonical_json, content_digest, series_digest, slice_digest
from psd.release.post_processing import ESTIMATES, PostProcessing
from psd.release.schema import record_header
from support.forged_releases import file_of, stamped, table_of, with_value
from support.releases import changed, decode, encode, release_from
from support.trees import random_tree, release_of

DEGREES = {"bounds": [126.4, 37.0, 127.6, 38.0], "crs": "EPSG:4326"}
PARAMETERS = {"height": 2, "budget": "uniform", "total_share": "0.02", "size": None}


def small_release():
    """A measured root, an unmeasured child, and five leaves."""
    domain = psd.Domain(**DEGREES, lattice=(8, 8))
    tree = psd.decompositions.grid_tree(domain, (4, 2))
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
        parameters=parameters_from_file(PARAMETERS),
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
ARRAYS = ["boxes", "parent", "level", "count", "loss"]


def same(a, b):
    return all(getattr(a.record, name) == getattr(b.record, name) for name in FIELDS) and all(
        np.array_equal(getattr(a.tree, name), getattr(b.tree, name)) for name in ARRAYS
    )


def test_a_saved_release_is_loaded_as_it_was_and_not_overwritten_unless_asked(tmp_path):
    release, path = small_release(), tmp_path / "release.psd.parquet"
    release.save(path)
    (tmp_path / "link").symlink_to(path)
    for name in (path, tmp_path / "link"):
        loaded = psd.load(name)
        assert same(release, loaded)
        assert np.array_equal(loaded.index.fit.estimates.count, release.index.fit.estimates.count)
    path.write_bytes(b"mine")
    with pytest.raises(WriteError, match="exists"):
        release.save(path)
    assert path.read_bytes() == b"mine"
    release.save(str(path), overwrite=True)
    assert same(psd.load(str(path)), release)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", path.name]


def test_random_and_deep_releases_come_back(subtests):
    for seed in range(10):
        tree = random_tree(np.random.default_rng(seed), height=4, unknown_leaf=0.5, top=2**40)
        release = release_of(tree, contributions=1 + seed)
        with subtests.test(seed=seed):
            assert same(decode(encode(release)), release)
    crs = "+proj=aea +lat_1=29 +lat_2=45 +lat_0=30 +lon_0=127 +datum=WGS84 +units=m"
    release = release_of(random_tree(np.random.default_rng(1)), crs=crs)
    assert decode(encode(release)).domain == release.domain
    steps = np.arange(256)
    nano, boxes = np.where(steps == 255, 10**9, 0), np.tile([0, 0, 8, 8], (256, 1))
    tree = psd.decompositions.Tree(
        boxes=boxes, parent=steps - 1, level=steps, count=nano * 0, loss=nano
    )
    deep = release_of(tree)
    assert deep.index.fit.dispersion.overdispersion.shape == (len(deep.tree),)
    assert same(decode(encode(deep)), deep)


@pytest.mark.deep
def test_every_view_comes_back_and_answers_the_same(subtests):
    boxes = [(126.5, 37.1, 126.9, 37.7), (126.4, 37.0, 127.6, 38.0)]
    for estimate, density, prune in product(ESTIMATES, ["uniform", "smooth"], [0, 1, 2**53 - 1]):
        view = PostProcessing(estimate=estimate, density=density, prune=prune)
        release = changed(small_release(), post_processing=view)
        again = decode(encode(release))
        with subtests.test(view=view):
            assert again.record.post_processing == view
            assert again.query(boxes).table.equals(release.query(boxes).table)


def test_the_file_is_plain_parquet_and_always_the_same(content):
    release = small_release()
    shuffled = parameters_from_file(dict(reversed(list(release.record.parameters.items()))))
    for same_one in (release, decode(content), changed(release, parameters=shuffled)):
        assert encode(same_one) == content
    table = table_of(content)
    assert table.schema.remove_metadata().equals(SCHEMA)
    assert table["level"].to_pylist() == sorted(table["level"].to_pylist())
    unmeasured = [nano == 0 for nano in table["loss"].to_pylist()]
    assert [count is None for count in table["count"].to_pylist()] == unmeasured
    assert any(unmeasured)


def test_the_header_holds_public_values_and_nothing_else(content):
    assert content.count(b'"max_contributions"') == 1
    assert written_header() == {
        "psd_release": 1,
        "library": psd.__version__,
        "inference": 3,
        "method": "quadtree",
        "parameters": PARAMETERS,
        "domain": {**DEGREES, "lattice": [8, 8]},
        "unit": "user",
        "max_contributions": 4,
        "weight": 0,
        "time_zone": None,
        "epsilon": "1",
        "view": {"estimate": "posterior", "density": "smooth", "prune": 3},
        "covariate": None,
        "boundary": False,
        "source": "curator",
        **dict.fromkeys(["coordinate_resolution", "min_cell", "regions", "local", "about"]),
        **dict.fromkeys(["max_per_slice", "noise"]),
    }


def test_a_coordinate_resolution_comes_back():
    domain = psd.Domain(**DEGREES, coordinate_resolution="0.010")
    tree = psd.decompositions.grid_tree(domain, 4)
    release = psd.Release.from_counts(tree, range(16), 1, domain=domain)
    header = record_header(release.record)
    assert header["coordinate_resolution"] == "0.01"
    assert header["domain"]["lattice"] == [121, 101]
    again = decode(encode(release))
    assert again.domain == domain
    assert encode(again) == encode(release)
    box = [(126.5, 37.2, 126.71, 37.4)]
    assert again.query(box).table.equals(release.query(box).table)
    plain = psd.Domain(bounds=domain.bounds, lattice=domain.lattice)
    without = psd.Release.from_counts(tree, range(16), 1, domain=plain)
    assert record_header(without.record)["coordinate_resolution"] is None
    assert without.digest != release.digest


# --- saving -------------------------------------------------------------------------------


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


def test_a_truncated_file_is_refused(content):
    for share in (0, 0.1, 0.5, 0.9, 0.999):
        refused(content[: int(share * len(content))], "damaged, truncated")
    for left_out in range(1, 200):
        refused(content[:-left_out])
    for length in (0, 1, 2**31 - 1, 2**32 - 1):
        forged = content[:-8] + struct.pack("<I", length) + b"PAR1"
        refused(forged, "cannot be read as a release")


@pytest.mark.deep
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


@pytest.mark.deep
def test_many_damaged_bytes_never_end_in_another_error(content):
    rng = np.random.default_rng(1)
    for _ in range(3000):
        damaged = np.frombuffer(content, np.uint8).copy()
        damaged[rng.integers(0, len(content), rng.integers(1, 7))] = rng.integers(0, 256)
        with suppress(ReleaseFormatError):
            decode(damaged.tobytes())
    for _ in range(2000):
        start, length = rng.integers(0, len(content)), rng.integers(1, 40)
        part = content[start : start + length]
        kept = content[:start] + part * int(rng.integers(0, 3)) + content[start + length :]
        with suppress(ReleaseFormatError):
            decode(kept)


def test_bytes_of_other_files_are_refused_and_never_executed(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    np.save(tmp_path / "r.npy", np.array([Trap()], object), allow_pickle=True)
    others = [b"", b"PAR1", b"lon,lat\n126.9,37.5\n" * 100, pickle.dumps({"tree": [1, 2, 3]})]
    others += [np.random.default_rng(1).bytes(5000), pickle.dumps(Trap())]
    for other in (*others, (tmp_path / "r.npy").read_bytes()):
        refused(other, "cannot be read as a release")
    assert not (tmp_path / "sprung").exists()


def test_what_is_no_file_is_refused(tmp_path, subtests):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")  # not waited for
    for path, says in (
        ("missing.psd.parquet", "does not exist"),
        ("", "does not exist or is not a file"),
        ("loop", "does not exist"),
        ("pipe", "is not a file"),
    ):
        with subtests.test(path), pytest.raises(ReleaseFormatError, match=says):
            psd.load(tmp_path / path)


# --- other tables -------------------------------------------------------------------------


@cache
def written():
    """Table of the small release."""
    return table_of(encode(small_release()))


def written_header():
    return json.loads(written().schema.metadata[b"psd"])


def parquet(header=None, change=lambda table: table, **options):
    """A release file with another header or other columns."""
    table = change(written())
    header = json.dumps(written_header()) if header is None else header
    header = header.encode() if isinstance(header, str) else header
    return file_of(table, {} if header == b"" else stamped(table, {b"psd": header}), **options)


def as_type(name, kind):
    def change(table):
        place = table.schema.get_field_index(name)
        column = table[name].cast(kind)
        return table.set_column(place, pa.field(name, kind, SCHEMA.field(name).nullable), column)

    return change


def with_values(name, row, value):
    return partial(with_value, name=name, row=row, value=value)


def nullable(table):
    return table.cast(pa.schema([field.with_nullable(True) for field in table.schema]))


COLUMNS = [
    ("wider integers", as_type("x0", pa.int64()), "columns"),
    ("counts as floats", as_type("count", pa.float64()), "columns"),
    ("epsilon as text", as_type("loss", pa.string()), "columns"),
    ("extra column", lambda t: t.append_column("note", t["level"]), "columns"),
    ("missing column", lambda t: t.drop_columns("level"), "columns"),
    ("columns in another order", lambda t: t.select(t.column_names[::-1]), "columns"),
    ("another name", lambda t: t.rename_columns(["X0", *t.column_names[1:]]), "columns"),
    ("columns that may be null", nullable, "columns"),
    ("no rows", lambda t: t.slice(0, 0), "1 to"),
    ("rows left out", lambda t: t.slice(0, 4), "tile"),
    ("rows in another order", lambda t: t.take([0, 2, 1]), "not a tree"),
    ("epsilon without count", with_values("count", 0, None), "same nodes"),
    ("count without epsilon", with_values("count", 1, 0), "same nodes"),
    ("epsilon left out", with_values("loss", 0, 0), "same nodes"),
    ("negative epsilon", with_values("loss", 3, -5), "epsilon"),
    ("dear path", with_values("loss", 0, 10**9), "at most epsilon"),
    ("path that overflows", with_values("loss", 3, 2**63 - 1), "epsilon"),
    ("level far below", with_values("level", 3, -(2**15)), "level"),
    ("root beyond the lattice", with_values("x1", 0, 9), "whole lattice"),
    ("box far outside", with_values("x0", 3, -(2**31)), "tile"),
    ("parent far away", with_values("parent", 3, 2**31 - 1), "parent"),
    ("its own parent", with_values("parent", 3, 3), "parent"),
]


def test_other_columns_and_values_are_refused(subtests):
    for name, change, says in COLUMNS:
        with subtests.test(name):
            refused(parquet(change=change), says)
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


FIELDS_LEFT_OUT = ["domain", "epsilon", "inference", "library", "max_contributions", "method"]

# Values of fields that errors name.
VALUES = {
    "inference": (0, True),
    "source": ("replay", "insecure", "", None, 1, ["curator"]),
    "coordinate_resolution": ("0.10", "1e-1", "0", "", 0.1, True),
    "method": ("", 3, "a\nb", "\u001b[31m", "m" * 41, "[red]kd"),
    "time_zone": ("Seoul (local)", "a\u202eb", "a/" * 60),
    "library": (None,),
    "unit": ("household", ["record"]),
    "max_contributions": (0, 1.0, 10**9 + 1),
    "parameters": (
        *([], {"a": [1]}, {"a": 0.5}, {"a": True}, {"": 1}, {"a": "x" * 101}, {"a": 2**63}),
        {f"p{i}": 1 for i in range(101)},
    ),
    "view": (None, [], {}),
    "epsilon": (1.0, "1e999", "nan"),
    "domain": (None, []),
}
VIEWS = {
    "note": (1,),
    "estimate": (..., "mean", ["posterior"], "smooth"),
    "density": (..., "rough", None),
    "prune": (..., -1, 2**53, 1.0, True, "3"),
}
HEADERS = [
    *(
        (f"psd_release {shown} is not known; this library reads 1", {"psd_release": value})
        for value, shown in ((2, "2"), (0, "0"), ("1", "'1'"), (True, "True"), (..., "None"))
    ),
    ("has the old release format 11; ", {"psd_release": ..., "format": 11}),
    *(
        ("psd_release None is not known", {"psd_release": ..., "format": value})
        for value in (0, 12, "4", True)
    ),
    ("other fields", {"format": 11}),
    ("other fields", {"note": "hello"}, {"records": 1234}),
    ("other fields", *({name: ...} for name in (*FIELDS_LEFT_OUT, "parameters", "unit", "view"))),
    ("must not be curator", {"method": "given"}),
    ("lattice must be left out", {"coordinate_resolution": "0.1"}),
    (
        "lattice does not follow from coordinate_resolution",
        {"coordinate_resolution": "0.1", "domain": {**DEGREES, "lattice": [2**20] * 2}},
    ),
    ("an integer from 1 to 3, got 4", {"inference": 4}),
    ("epsilon must be above 0", {"epsilon": "0"}),
    ("at most epsilon", {"epsilon": "0.999999999"}),
    *((name, *({name: value} for value in values)) for name, values in VALUES.items()),
    *(("view", *(view_with(**{name: v}) for v in values)) for name, values in VIEWS.items()),
    ("domain", domain_with(note=1), domain_with(crs=4326), domain_with(crs="\ud800")),
    ("domain", *(domain_with(bounds=b) for b in (["0", "0", "1", "1"], [False, 0, 1, 1]))),
    ("domain", *(domain_with(lattice=size) for size in ([8.0, 8.0], [2**31, 8]))),
    ("domain", domain_with(bounds={"west": 0})),
    ("bounds", domain_with(bounds=[0, 0, 1]), domain_with(bounds=[0, 0, 10**400, 1])),
    ("west", domain_with(bounds=[5, 0, 1, 1])),
    ("lattice", domain_with(lattice=[8])),
    ("whole lattice", domain_with(lattice=[16, 8])),
    ("crs", domain_with(crs="EPSG:0"), domain_with(crs="")),
]
NO_CRS = [
    "+proj=longlat " * 3000,
    "EPSG:4326\u001b[31m",
    '{"type": "BoundCRS", "source_crs": ' * 900 + "1" + "}" * 900,
]


def test_other_headers_are_refused(subtests):
    assert same(decode(parquet(edited())), small_release())
    for says, *edits in HEADERS:
        for changes in edits:
            with subtests.test(changes=changes):
                refused(parquet(edited(**changes)), says)


def test_a_crs_that_is_none_is_refused(subtests):
    for crs in NO_CRS:
        with subtests.test(crs=crs):
            refused(parquet(edited(**domain_with(crs=crs))), "domain|crs|no readable")


def test_headers_that_are_no_strict_json_are_refused(subtests):
    header, height = edited(), '"height": 2'
    for name, forged, says in (
        ("none: some other Parquet file", b"", "no psd header"),
        ("half an object", "{", "not strict JSON"),
        ("list", "[1, 2]", "not a JSON object"),
        ("text", '"psd"', "not a JSON object"),
        ("null", "null", "not a JSON object"),
        ("no text", b"\xff\xfe\x00", "not strict JSON"),
        ("duplicate key", header[:-1] + ', "unit": "user"}', "not strict JSON"),
        ("key twice inside", header.replace(height, f'{height}, "height": 3'), "not strict JSON"),
        ("NaN", header.replace("126.4", "NaN"), "not strict JSON"),
        ("Infinity", header.replace("126.4", "-Infinity"), "not strict JSON"),
        ("overflow to infinity", header.replace("126.4", "-1e400"), "finite"),
        ("5,000 digits", header.replace(height, f"{height}{'9' * 4999}"), "not strict JSON"),
        ("deep nesting, open", "[" * 100_000, "not strict JSON"),
        (
            "deep nesting, closed",
            header.replace(height, f'"height": {"[" * 50_000}{"]" * 50_000}'),
            "not strict JSON|parameters",
        ),
        ("text after the end", header + "x", "not strict JSON"),
        ("a header of a megabyte", header + " " * 2**20, "too long"),
    ):
        with subtests.test(name):
            refused(parquet(forged), says)


# --- what the bytes do not account for, and what somebody edits -----------------------------


def test_a_changed_number_is_refused_by_the_digest():
    table = table_of(parquet())
    for name, value in (("count", 7), ("loss", 749_999_999)):
        forged = with_value(table, name, -1, value)
        refused(file_of(forged, table.schema.metadata), "does not match its digest")


def test_an_edited_header_is_refused_by_the_digest(subtests):
    table = table_of(parquet())
    for change in (
        {"epsilon": "1.5"},
        {"unit": "record", "max_contributions": 1},
        {"max_contributions": 5},
        {"method": "grid"},
        {"library": "9"},
        {"parameters": {}},
    ):
        footer = table.schema.metadata | {b"psd": edited(**change).encode()}
        with subtests.test(change=change):
            refused(file_of(table, footer), "does not match its digest")
    refused(file_of(table, {b"psd": edited().encode()}), "has no digest")
    for name in (b"note", b"pandas", b"psd-series", b"psd-digesT"):
        footer = table.schema.metadata | {name: b"x"}
        refused(file_of(table, footer), "keys that a release does not have")


def test_the_digest_is_of_the_content_and_not_of_the_bytes(content):
    first = decode(content)
    spaced = json.dumps(written_header(), indent=3)
    groups = parquet(row_group_size=3, compression="snappy")
    for other in (parquet(compression="gzip"), groups, parquet(spaced)):
        assert other != content
        assert same(decode(other), first)
        assert decode(other).digest == first.digest
    assert small_release().digest == first.digest
    assert changed(small_release(), post_processing=PostProcessing()).digest != first.digest
    release = decode(content)
    kinds = zip(ARRAYS, ("<i4", "<i4", "<i2", "<i8", "<i8"), strict=True)
    arrays = [np.array(getattr(release.tree, name), kind).tobytes() for name, kind in kinds]
    parts = [b"psd", json.dumps(written_header(), sort_keys=True).encode(), *arrays]
    whole = b"".join(struct.pack("<Q", len(part)) + part for part in parts)
    assert release.digest == hashlib.sha256(b"psd public content 1\n" + whole).hexdigest()


# --- the digest of other content ------------------------------------------------------------


def test_other_content_has_another_digest_and_another_layout_in_memory_has_not():
    header, tree = written_header(), small_release().tree
    others = [replace(tree, **{name: getattr(tree, name) + 1}) for name in ARRAYS]
    contents = [
        (b"psd series", header, tree),
        *((b"psd", header | more, tree) for more in ({"epsilon": "2"}, {"more": None})),
        (b"psd", header | {"psd_release": "1"}, tree),  # a text for a number
        *((b"psd", header, other) for other in others),
    ]
    digest = content_digest(b"psd", header, tree)
    slices = [slice_digest("a", tree), slice_digest("b", tree), slice_digest("a", others[0])]
    series = [slices[:1], slices[:2], slices[1::-1], slices, slices * 2]  # the order counts
    found = {
        digest,
        *slices,
        *(content_digest(*content) for content in contents),
        *(series_digest(b"psd", more, each) for more in (header, {}) for each in series),
    }
    assert len(found) == 1 + len(slices) + len(contents) + 2 * len(series)
    turned = replace(tree, boxes=np.asfortranarray(tree.boxes))
    assert content_digest(b"psd", header, turned) == digest
    assert canonical_json({"b": 1, "a": "ü"}) == b'{"a": "\\u00fc", "b": 1}'
    with pytest.raises(ValueError, match="Out of range"):
        canonical_json({"epsilon": float("nan")})
