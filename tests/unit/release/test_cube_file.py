"""The file of a cube: the same cube again to the bit, and all that a reader refuses."""

import contextlib
import dataclasses
import json

import numpy as np
import pyarrow as pa
import pytest
import shapely

import psd
from psd.errors import ParameterError, ReleaseFormatError
from psd.release.cube import CubeRecord
from psd.release.cube_file import decode_cube, digest_of, encode_cube, read_cube, read_published
from psd.release.file import CUBE_KEY, read_release
from psd.release.series_file import encode_series, read_series
from psd.space.covariate import Covariate
from psd.testing import RecordingSampler, ReplayingSampler, SeededSampler
from support.cubes import DOMAIN, SLICES, cube, of_labels, town
from support.forged_releases import file_of, stamped, table_of, with_value

USERS = {"user": "user", "max_contributions": 4, "max_per_slice": 1, "delta": "1e-6"}
GAUSSIAN = {**USERS, "noise": "gaussian"}
LAND = Covariate(domain=DOMAIN, raster=np.array([[0, 1], [2, 3]], np.uint16))
CASES = {
    "records": {},
    "users": {"user": "user", "max_contributions": 3},
    "each slice": {"user": "user", "max_contributions": 1, "per": "slice", "epsilon": 20},
    "gaussian": GAUSSIAN,
    "boundary": {"boundary": shapely.box(1, 1, 12, 14)},
    "covariate": {"covariate": LAND, "density": "covariate"},
    "min_cell": {"domain": dataclasses.replace(DOMAIN, min_cell=1)},
}


@pytest.fixture(scope="module")
def small():
    """A cube that is quickly read."""
    return cube(data=town(600))


@pytest.fixture(scope="module")
def gaussian():
    return cube(data=town(600), **GAUSSIAN)


@pytest.mark.parametrize("case", CASES)
def test_the_file_gives_the_same_cube(case, tmp_path):
    made = cube(**CASES[case])
    path = tmp_path / "c.psd.parquet"
    made.save(path)
    content = path.read_bytes()
    assert isinstance(read_published(path)[0], CubeRecord)
    assert content == encode_cube(made.record)
    again = psd.load(path)
    assert again.slices == made.slices == SLICES
    assert again.digest == made.digest == digest_of(again.record)
    assert encode_cube(again.record) == content
    for layer in ("plane", "joint"):
        one, other = getattr(made.record, layer), getattr(again.record, layer)
        for name in ("boxes", "parent", "level", "count", "loss"):
            assert np.array_equal(getattr(one.tree, name), getattr(other.tree, name))
        assert (one.unit, one.parameters, one.epsilon) == (
            other.unit,
            other.parameters,
            other.epsilon,
        )
    assert np.array_equal(made.record.joint.tree.spans, again.record.joint.tree.spans)
    assert made.record.joint.tree.cap == again.record.joint.tree.cap
    box = [(1, 2, 7.3, 9)]
    when = ["2024-01-01", "07-09"]
    assert again.query(box, when=when).table.equals(made.query(box, when=when).table)


def test_noise_of_a_cell_follows_from_its_slices(gaussian):
    read, _ = decode_cube(encode_cube(gaussian.record))
    for tree in (gaussian.record.joint.tree, read.joint.tree):
        slices = tree.lengths[:, 0]
        assert set(slices) >= {1, len(SLICES)}
        rho = np.where(tree.loss > 0, tree.loss, np.inf) / 1e12
        variance = 4 * np.minimum(4, slices) / (2 * rho)
        measured = tree.loss > 0
        assert tree.noise_variance()[measured] == pytest.approx(variance[measured], rel=1e-3)


def test_other_kinds_of_files_are_told_apart(small, tmp_path):
    small.save(tmp_path / "c")
    for read in (read_release, read_series):
        with pytest.raises(ReleaseFormatError, match=r"cube|time slices"):
            read(tmp_path / "c")
    data = town(600)
    psd.build(data, domain=DOMAIN, epsilon=1, method="grid").save(tmp_path / "r")
    days = psd.TimeSlices.parse("day", "2024-01-01..2024-01-02")
    how = {"domain": DOMAIN, "epsilon": 1, "method": "grid"}
    psd.build(data, slices=days, time="time", **how).save(tmp_path / "s")
    for name in ("r", "s"):
        assert not isinstance(read_published(tmp_path / name)[0], CubeRecord)
        with pytest.raises(ReleaseFormatError):
            read_cube(tmp_path / name)
    with pytest.raises(ReleaseFormatError, match="nodes"):
        psd.load(tmp_path / "c", max_nodes=10)


def test_draws_that_are_known_are_not_saved(tmp_path):
    data, recorded = town(100), RecordingSampler()
    cube(data=data, sampler=recorded)
    for sampler in (ReplayingSampler(recorded.draws), SeededSampler(7)):
        made = cube(data=data, sampler=sampler)
        with pytest.raises(ParameterError, match="from a seed, has no noise and is not saved"):
            made.save(tmp_path / "c")
    assert not list(tmp_path.iterdir())


def test_one_layer_is_no_release(small, tmp_path):
    """Cells of the joint layer overlap in space, so a file of them alone could not be read."""
    joint = psd.Release(small.record.joint)
    for name in ("j.psd.parquet", "j.csv"):
        write = joint.save if name.endswith("parquet") else joint.export
        with pytest.raises(ParameterError, match="tree must be Tree or RegionTree, got CubeTree"):
            write(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_the_part_of_one_category_is_no_cube(tmp_path):
    part = psd.Release(of_labels(epsilon=4).record.parts[1])
    for name in ("p.psd.parquet", "p.csv"):
        with pytest.raises(ParameterError, match="a cube must be shown whole"):
            part.save(tmp_path / name) if "parquet" in name else part.export(tmp_path / name)
    assert not list(tmp_path.iterdir())


def rewritten(made, change=lambda header: header, table=lambda table: table, digest=True):
    """Bytes of a cube whose header or table was tampered with, with the digest of what it holds."""
    read = table(table_of(encode_cube(made.record)))
    header = json.loads(read.schema.metadata[CUBE_KEY])
    text = change(header)
    footer = {**read.schema.metadata, CUBE_KEY: text if isinstance(text, str) else json.dumps(text)}
    return file_of(read, stamped(read, footer) if digest else footer)


def edit(**changes):
    return lambda header: {**header, **changes}


def of_release(**changes):
    return lambda header: {**header, "release": {**header["release"], **changes}}


def refuses(content, told):
    with pytest.raises(ReleaseFormatError, match=told) as refused:
        decode_cube(content, "c")
    assert "\n" not in str(refused.value)


def test_headers_are_read_strictly(small, subtests):
    decode_cube(rewritten(small), "c")
    names = list(SLICES.names)
    for told, *changes in (
        ("not strict JSON", lambda h: "{", lambda h: json.dumps(h)[:-1] + ', "by": "day"}'),
        ("not a JSON object", lambda h: "[]"),
        ("other fields", edit(more=1), edit(slices="2024-01"), of_release(more=1)),
        ("is not known", edit(psd_cube=2), edit(psd_cube=True)),
        ("one of hour", edit(by="year"), edit(by=["hour"])),
        ("is repeated", edit(slices=[names[0], *names[:-1]])),
        ("slices must be 1 to", edit(slices=[])),
        ("time_zone", edit(time_zone=3)),
        ("epsilon", of_release(epsilon="0")),
        ("must spend at most epsilon .* together", of_release(epsilon="0.999")),
        ("field unit", of_release(unit="nobody")),
        ("header is not a JSON object", edit(release=[])),
        ("plane is not of all slices", edit(slices=names[:-1])),
    ):
        for number, change in enumerate(changes, start=1):
            with subtests.test(told, number=number):
                refuses(rewritten(small, change), told)


def test_layers_spend_at_most_epsilon_together(small, gaussian):
    """Each layer alone spends less than epsilon; only all together are too much."""
    for made, largest in ((small, 10**9), (gaussian, None)):
        record = made.record
        each = [layer.tree.max_path_loss for layer in record.layers]
        largest = largest or record.plane.loss.rho
        assert max(each) < sum(each) <= largest
        assert sum(each) > largest * 0.999
    loss = table_of(encode_cube(small.record))["loss"].to_pylist()
    more = with_loss(small, loss[0] + 1)
    refuses(more, "the layers of a cube must spend at most epsilon 1 together, got 1.000000001")


def with_loss(made, value):
    return rewritten(made, table=lambda table: with_value(table, "loss", 0, value))


def column(name, values):
    """Change of a whole column."""

    def change(table):
        place = table.schema.get_field_index(name)
        field = table.schema.field(name)
        return table.set_column(
            place, field, pa.array(values(table[name].to_numpy().copy()), field.type)
        )

    return change


def test_tables_are_read_strictly(small, subtests):
    table = table_of(encode_cube(small.record))
    planes = int((table["layer"].to_numpy() == 0).sum())
    span = (table["t0"].to_numpy(), table["t1"].to_numpy())
    # The first family that divides time, and a leaf.
    halved = planes + 1 + int(np.argmax(span[1][planes + 1 :] < len(SLICES)))
    last, columns = len(table) - 1, "columns are not those of a cube"

    def put(name, row, value):
        return lambda t: with_value(t, name, row, value)

    def reversed_span(t):
        first, stop = (t[name][halved].as_py() for name in ("t0", "t1"))
        return with_value(with_value(t, "t0", halved, stop), "t1", halved, first)

    for name, told, change in (
        ("no layer", columns, lambda t: t.drop_columns("layer")),
        ("no span", columns, lambda t: t.drop_columns("t1")),
        ("another order", columns, lambda t: t.select(t.column_names[::-1])),
        ("reversed span", "span is empty", reversed_span),
        ("empty span", "span is empty", lambda t: put("t1", last, t["t0"][last].as_py())(t)),
        ("beyond the slices", "do not tile", put("t1", last, len(SLICES) + 5)),
        ("before the slices", "do not tile", put("t0", last, -1)),
        ("a gap in time", "do not tile|span is empty", put("t1", halved, span[0][halved] + 1)),
        ("root of some slices", "not all of each axis", put("t1", planes, len(SLICES) - 1)),
        ("plane of some", "plane is not of all slices", put("t1", 0, len(SLICES) - 1)),
        ("exchanged", "sorted by layer", column("layer", lambda v: 2 - v)),
        ("one layer", "a layer has none", lambda t: t.slice(0, planes)),
        ("one more layer", "sorted by layer", put("layer", last, 3)),
        ("a row less", "tile", lambda t: t.slice(0, last)),
        ("negative loss", "loss|epsilon", put("loss", last, -1)),
    ):
        with subtests.test(name):
            refuses(rewritten(small, table=change), told)


def test_boxes_are_cut_where_the_plane_is_cut(small):
    """The joint layer alone has all its edges at the middle of the lattice moved by a line."""
    joint = table_of(encode_cube(small.record))["layer"].to_numpy() == 2

    def moved(table):
        for name in ("x0", "x1"):
            edges = table[name].to_numpy()
            assert not (edges[joint] == 129).any()
            table = column(name, lambda v: np.where(joint & (v == 128), 129, v))(table)
        return table

    refuses(rewritten(small, table=moved), "must be cut where its plane is cut")


def test_the_digest_is_checked(small):
    plain = rewritten(small, digest=False, table=lambda t: with_value(t, "count", 0, 5))
    refuses(plain, "digest")
    assert small.digest != cube(data=town(600), seed=2).digest


def test_noise_must_be_that_of_unit_and_slices(gaussian):
    assert gaussian.record.plane.tree.noise.squared_sensitivity == 16

    def other(header):
        noise = {**header["release"]["noise"], "squared_sensitivity": 4}
        return of_release(noise=noise)(header)

    refuses(rewritten(gaussian, other), "noise is not that of its unit and slices")
    refuses(rewritten(gaussian, of_release(max_contributions=5)), "noise is not that of its unit")


def test_noise_has_factor_1(gaussian):
    def change(header):
        noise = {**header["release"]["noise"], "factor": "1/1000000"}
        return of_release(noise=noise)(header)

    refuses(rewritten(gaussian, change), "factor 1")


def test_a_cube_states_its_axes(gaussian):
    def change(header):
        parameters = {**header["release"]["parameters"]}
        del parameters["axes"]
        return of_release(parameters=parameters)(header)

    refuses(rewritten(gaussian, change), "must state its axes")


def test_cut_files_are_refused(small):
    content = encode_cube(small.record)
    for cut in (0, 3, len(content) // 2, len(content) - 1):
        refuses(content[:cut], "^c cannot be read")


@pytest.mark.deep
def test_changed_bytes_end_in_no_other_error(small, gaussian):
    rng = np.random.default_rng(5)
    refused = 0
    for made in (small, gaussian):
        content = encode_cube(made.record)
        for at in rng.integers(0, len(content), 200).tolist():
            flipped = bytes([content[at] ^ int(rng.integers(1, 256))])
            with contextlib.suppress(ReleaseFormatError):
                read, _ = decode_cube(content[:at] + flipped + content[at + 1 :], "c")
                assert digest_of(read) == made.digest
                refused -= 1
            refused += 1
    assert refused > 200


@pytest.mark.deep
def test_a_cube_of_a_week_is_no_larger_than_its_series():
    hours = psd.TimeSlices.parse("hour", "2024-01-01T00..2024-01-07T23")
    data = town(20_000, hours)
    sizes = {
        "cube": len(encode_cube(cube(data=data, slices=hours).record)),
        "auto": len(encode_series(cube(data=data, slices=hours, method="auto").record)),
    }
    assert sizes["cube"] <= sizes["auto"]
