"""Releases with a category, with slices and alone: builds, files, answers and refusals."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import psd
from psd.decompositions import Cube
from psd.errors import InputDataError, ParameterError, ReleaseFormatError
from psd.privacy.loss import NANO
from psd.query.cubes import Windows
from psd.release.cube_file import decode_cube, encode_cube
from psd.release.file import CUBE_KEY
from support.cubes import DOMAIN, SLICES, town
from support.forged_releases import file_of, stamped, table_of
from support.seeded_system import seeded_system

LABELS = {"work": "", "shift": "work", "office": "work", "home": ""}
TIME = {"time": "time", "slices": SLICES}
KINDS = {"alone": {}, "slices": TIME}
BOX = [(0, 0, 8, 8)]
GAUSSIAN = {"delta": "1e-6", "noise": "gaussian"}


def labelled(records=4_000):
    """Records of the town, whose label depends on their place, some unlisted or missing."""
    table = town(records)
    rng = np.random.default_rng(4)
    west = rng.choice(
        ["shift", "office", "home", "shop", None], records, p=[0.5, 0.1, 0.2, 0.1, 0.1]
    )
    east = rng.choice(
        ["shift", "office", "home", "shop", None], records, p=[0.1, 0.3, 0.5, 0.1, 0.0]
    )
    return table.assign(purpose=np.where(table["lon"] < 8, west, east))


def build(data=None, seed=1, **options):
    """A release of the records with draws of a seed, which a file may be made of."""
    how = {"domain": DOMAIN, "epsilon": 4, "category": "purpose", "labels": LABELS, **options}
    how = how if "user" in how else {"per": "record", **how}
    with seeded_system(seed):
        return psd.build(labelled() if data is None else data, **how)


@pytest.fixture(scope="module", params=KINDS)
def release(request):
    return build(**KINDS[request.param])


def near(answers, true):
    """Whether answers are within five errors of the truth."""
    return (np.abs(answers["estimate"] - true) < 5 * answers["error"] + 5).all()


def test_answers_are_those_of_the_labels(release):
    table = labelled()
    inside = table[(table["lon"] < 8) & (table["lat"] < 8)]
    counts = inside["purpose"].fillna("shop").replace("shop", "other").value_counts()
    each = release.query(BOX, each="category").table
    assert each["category"].tolist() == ["shift", "office", "home", "other"]
    assert near(each, counts[each["category"]].to_numpy())
    work = release.query(BOX, category=["work", "purpose=home"]).table
    assert work["category"].tolist() == ["work", "home"]
    assert near(work, [counts["shift"] + counts["office"], counts["home"]])
    below = release.query(BOX, category="purpose=work", each="category").table
    assert below["category"].tolist() == ["shift", "office"]
    assert below["estimate"].tolist() == each["estimate"][:2].tolist()
    assert near(release.query(BOX).table, [len(inside)])
    assert "category" not in release.query(BOX, category="work").table


def test_signed_answers_of_categories_sum_to_those_of_several(release):
    from psd.query.areas import read_areas
    from psd.query.cubes import cube_totals

    record = release.record
    cells = int(np.prod(record.sizes))
    apart = [np.arange(cells)[np.arange(cells) % 4 == n] for n in range(3)]
    areas = read_areas(BOX, release.domain, release._first.tree, level=None, column=None, crs=None,
                       outside="refuse")  # fmt: skip
    windows = Windows.of_cells([*apart, np.sort(np.concatenate(apart))], record.sizes)
    found = cube_totals(release._cube.fit, areas, windows)
    *parts, whole = (each.signed[0] for each in found)
    assert sum(parts) == pytest.approx(whole, rel=1e-9)


def test_records_of_all_categories_in_all_time_are_those_of_the_plane(release):
    boxes = [(0, 0, 7.3, 8.9), (8, 8, 16, 16)]
    plane = psd.Release(release.record.plane).query(boxes).table
    table = release.query(boxes).table
    for name in ("estimate", "perturbation_error", "nonuniformity_error", "lower", "upper"):
        assert table[name].tolist() == pytest.approx(plane[name].tolist(), rel=1e-9)


@pytest.mark.parametrize("case", [{}, {"delta": "1e-6", "user": "user", "max_contributions": 4}])
def test_joint_answers_of_categories_are_the_single_ones(case):
    """Of a layer for each category, in all time, an hour, and several hours of some of them."""
    made = build(labelled(20_000), **TIME, **case)
    assert made.record.labels is not None
    boxes = [(0, 0, 8, 8), (1.3, 2.1, 6.7, 9.9), (5, 5, 9, 16)]
    when = [None, "2024-01-01T08", "weekdays 07-09"]
    for asked in ({}, {"when": when[1]}, {"when": when[1:], "category": ["work", "home", "other"]}):
        answers = made.query(boxes, **asked)
        joint, table = answers.joint(), answers.table
        for matrix, name in (
            (joint.perturbation_covariance, "perturbation_error"),
            (joint.nonuniformity_covariance, "nonuniformity_error"),
        ):
            diagonal = np.diagonal(matrix)
            assert diagonal == pytest.approx(table[name].to_numpy() ** 2, rel=1e-9, abs=1e-9)
            assert np.linalg.eigvalsh(matrix).min() > -1e-9 * matrix.max()
        for each, explained in zip(table.itertuples(), answers.explain(), strict=True):
            assert explained.remedies["error"][0] == pytest.approx(each.error, rel=1e-6)


def test_each_category_of_three_layers_is_a_cube_of_its_records():
    made = build(labelled(20_000), **TIME)
    record = made.record
    layers = (record.plane, record.labels, record.joint)
    assert sum(layer.tree.max_path_loss for layer in layers) == 4 * NANO
    assert decode_cube(encode_cube(record))[1] == made.digest
    for part, name in zip(record.parts, record.category.names, strict=True):
        assert part.cells is record.cells
        alone = made.query([(0, 0, 16, 16)], category=name).table
        whole = alone["estimate"][0]
        assert whole == pytest.approx(made[:, name].total)
    # A layer whose categories are not divided first is refused, and so is one of another cube.
    for changes in ({"labels": record.joint}, {"labels": record.plane}):
        with pytest.raises(ParameterError, match="layer"):
            replace(record, **changes)
    dear = replace(
        record.labels, tree=replace(record.labels.tree, loss=record.labels.tree.loss * 2)
    )
    with pytest.raises(ParameterError, match="at most epsilon"):
        replace(record, labels=dear)
    table = table_of(encode_cube(record))
    footer = table.schema.metadata
    header = json.loads(footer[CUBE_KEY])
    assert header.pop("layers") == 3
    edited = stamped(table, {**footer, CUBE_KEY: json.dumps(header)})
    with pytest.raises(ReleaseFormatError):
        decode_cube(file_of(table, edited))
    few = build(labelled(60), epsilon=1, **TIME)
    assert few.record.labels is None
    assert build(labelled(20_000)).record.labels is None  # without slices


@pytest.mark.parametrize("first", ["rare", "often"])
def test_the_limit_of_cells_is_of_all_categories_together(first):
    """Whichever is listed first, and however few records it has."""
    rng = np.random.default_rng(0)
    data = town(30_000)
    data[["lon", "lat"]] = rng.random((30_000, 2)) * 15.99
    labels = [first, *({"rare", "often"} - {first})]
    data["kind"] = rng.choice(["rare", "often"], len(data), p=[0.02, 0.98])
    cube = psd.build(
        data, domain=DOMAIN, epsilon=10, method=Cube(cells=500), slices=SLICES, time="time",
        category="kind", labels=labels, other_labels="drop",
    )  # fmt: skip
    assert cube.record.labels is not None
    assert cube.record.joint.tree.is_leaf.sum() < 2 * 500


def test_windows_of_time_and_categories():
    release = build(**TIME)
    found = release.query(BOX, when="2024-01-01", category="work", each=["slice", "category"]).table
    assert found["slice"].tolist() == np.repeat(SLICES.names[:24], 2).tolist()
    assert found["category"].tolist() == ["shift", "office"] * 24
    both = release.query(BOX, when=["2024-01-01", "2024-01-02"], category=["work", "home"]).table
    assert both[["when", "category"]].to_numpy().tolist() == [
        ["2024-01-01", "work"], ["2024-01-01", "home"],
        ["2024-01-02", "work"], ["2024-01-02", "home"],
    ]  # fmt: skip
    joint = release.query(BOX, category=["work", "home"]).joint()
    apart = release.query(BOX, category=["work", "home"]).table
    assert joint.answers["estimate"].tolist() == pytest.approx(apart["estimate"].tolist())
    assert np.sqrt(np.diag(joint.covariance)) == pytest.approx(apart["error"].to_numpy(), rel=1e-6)


def test_a_view_and_pictures_have_all_categories(release):
    whole = release.query([(0, 0, 16, 16)])["estimate"].sum()
    assert release.total == pytest.approx(whole, rel=0.05)
    assert len(release.to_geopandas()) > 1
    if release.slices is not None:
        day = release["2024-01-01"]
        wanted = release.query(BOX, when="2024-01-01")["estimate"]
        assert day.query(BOX)["estimate"].tolist() == pytest.approx(wanted.tolist())
        with pytest.raises(ParameterError, match="category must be left out"):
            day.query(BOX, category="work")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", ["one label", "no record"])
def test_the_categories_are_those_that_are_stated(kind, data):
    """Labels without a record have their cells, and labels of the data alone have none."""
    table = labelled(200).assign(purpose="home" if data == "one label" else "brand new")
    made = build(table if data == "one label" else table[:0], **KINDS[kind])
    assert made.record.category.names == ("shift", "office", "home", "other")
    assert made.query(BOX, each="category").table["category"].tolist() == [
        "shift", "office", "home", "other",
    ]  # fmt: skip
    assert b"brand new" not in encode_cube(made.record)


def test_other_labels_may_be_left_out():
    kept = build(other_labels="drop")
    assert kept.record.category.names == ("shift", "office", "home")
    true = labelled()["purpose"].isin(kept.record.category.names).sum()
    assert abs(kept.query([(0, 0, 16, 16)])["estimate"].sum() - true) < 60


CASES = {
    "alone": {},
    "slices": TIME,
    "alone in rho": GAUSSIAN,
    "users in rho": {
        **TIME,
        **GAUSSIAN,
        "user": "user",
        "max_contributions": 4,
        "max_per_slice": 1,
    },
    "users alone in rho": {**GAUSSIAN, "user": "user", "max_contributions": 4},
    "users counted": {"user": "user", "count": "users"},
    "a bound in each slice": {**TIME, "user": "user", "max_contributions": 1, "per": "slice"},
    "no other": {"other_labels": "drop"},
}


@pytest.mark.parametrize("case", CASES)
def test_the_file_gives_the_same_release(case, tmp_path):
    made = build(labelled(800), **CASES[case])
    made.save(tmp_path / "c.psd.parquet")
    again = psd.load(tmp_path / "c.psd.parquet")
    assert (again.digest, again.record.category) == (made.digest, made.record.category)
    assert encode_cube(again.record) == (tmp_path / "c.psd.parquet").read_bytes()
    assert again.query(BOX, each="category")["estimate"].tolist() == pytest.approx(
        made.query(BOX, each="category")["estimate"].tolist()
    )
    text = again.record.guarantee_text
    assert ("in all categories together" in text) == ("user" in CASES[case])


def test_edited_files_are_refused():
    made = build(labelled(300))
    content = encode_cube(made.record)
    table = table_of(content)
    footer = table.schema.metadata
    header = json.loads(footer[CUBE_KEY])

    def changed(**fields):
        return {**header, "category": {**header["category"], **fields}}

    broken = [
        changed(labels=["a", "b", "c"]),
        changed(parents=[-1, 0, 0, 3]),
        changed(parents=[-1, 0, 0, 0.5]),
        changed(other=1),
        changed(column="\n"),
        changed(labels="work"),
        changed(more=1),
        {name: value for name, value in header.items() if name != "category"},
        {**header, "slices": ["2024-01-01"]},
        {**header, "category": None},
        *({**header, "layers": number} for number in (2, 3, "3")),
    ]
    for number, other in enumerate(broken):
        with pytest.raises(ReleaseFormatError):
            decode_cube(
                file_of(table, stamped(table, {**footer, CUBE_KEY: json.dumps(other)})), str(number)
            )


READ = {
    "text": (["home", " home ", None, ""], 2),
    "whole numbers": ([7, 7, None, 8], 2),
    "numbers and text": ([7, "7", 7.0, 8], 3),
    "a missing number": ([7.0, float("nan"), 7.0, 8.0], 2),
}


@pytest.mark.parametrize("case", READ)
def test_labels_are_read_as_text(case):
    values, found = READ[case]
    kind = object if case != "a missing number" else float
    table = labelled(8)[:4].assign(purpose=pd.Series(values, dtype=kind))
    labels = ["home", "7"]
    counted = []
    build(table, labels=labels, observer={"private_tally": counted.append})
    assert counted[0].counts[counted[0].region < 2].sum() == found


UNREADABLE = {
    "times": pd.date_range("2024-01-01", periods=4),
    "fractions": [0.5, 1, 2, 3],
    "lists": pd.Series([[1], [2], [3], [4]]),
    "bytes": [b"home"] * 4,
    "not in UTF-8": pd.Series(
        pa.Array.from_buffers(
            pa.string(), 4, [None, pa.array([0, 1, 2, 3, 4], pa.int32()).buffers()[1],
                             pa.py_buffer(b"\xffabc")]
        ),
        dtype=pd.ArrowDtype(pa.string()),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_is_no_label_refuses_the_input_wherever_it_lies(case):
    for shift in (0, 10**6):
        table = labelled(8)[:4].assign(purpose=UNREADABLE[case])
        table["lon"] += shift
        with pytest.raises(InputDataError, match="column 'purpose' must hold labels"):
            build(table)


def test_csv_and_parquet_give_the_same_counts(tmp_path):
    table = labelled(500)
    table.to_csv(tmp_path / "v.csv", index=False)
    table.to_parquet(tmp_path / "v.parquet")
    found = []
    for data in (table, tmp_path / "v.csv", tmp_path / "v.parquet"):
        build(data, observer={"private_tally": found.append})
    for name in ("columns", "rows", "counts", "region"):
        assert all(np.array_equal(getattr(found[0], name), getattr(f, name)) for f in found)


REFUSED = {
    "no labels": ({"labels": None}, "labels must be given with category="),
    "no column": ({"category": None}, "labels must be left out without category="),
    "other without a column": (
        {"category": None, "labels": None, "other_labels": "drop"},
        "other_labels must be left out without category=",
    ),
    "a method of slices": (
        {"method": "grid", **TIME},
        "category must be left out with method grid",
    ),
    "a method without": ({"method": "quadtree"}, "category must be left out with method quadtree"),
    "values": ({"values": {"lat": (0, 16)}}, "values must be left out with a category"),
    "private bounds": (
        {"domain": None, "bounds": "private"},
        "bounds must be public with category",
    ),
    "a coordinate": ({"category": "lon"}, "category must be different columns, got lon, lat, lon"),
    "the id": (
        {"category": "user", "user": "user", "max_contributions": 1},
        "category must be different columns",
    ),
    "the time": ({"category": "time", **TIME}, "category must be different columns"),
    "a word of other": ({"other_labels": "keep"}, "other_labels must be one of count, drop"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_builds_that_cannot_be_are_refused_in_one_sentence(case):
    options, told = REFUSED[case]
    with pytest.raises(ParameterError) as caught:
        build(**options)
    assert told in str(caught.value)


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(InputDataError, match="has no column 'reason'"):
        build(category="reason")


def test_tallies_count_no_categories():
    with pytest.raises(ParameterError, match="category must be left out for a tally"):
        psd.tally(labelled(10), domain=DOMAIN, part="a", category="purpose")
    part = psd.tally(labelled(10), domain=DOMAIN, part="a")
    with pytest.raises(ParameterError, match="category must be left out for tallies"):
        psd.build(part, epsilon=1, category="purpose", labels=LABELS)


ASKED = {
    "unknown": ({"category": "wrok"}, "did you mean 'work'?"),
    "a number": ({"category": [3]}, "category must be a label, or several"),
    "an empty list": ({"category": []}, "category must be a label, or several"),
    "each word": ({"each": "label"}, "each must be 'slice', 'category', both"),
    "each twice": ({"each": ["category", "category"]}, "each must be 'slice', 'category', both"),
}


@pytest.mark.parametrize("case", ASKED)
def test_wrong_questions_are_refused(case, release):
    asked, told = ASKED[case]
    with pytest.raises(ParameterError) as caught:
        release.query(BOX, **asked)
    assert told in str(caught.value)


def test_releases_without_categories_or_time_say_so():
    alone, flat = build(labelled(100)), psd.build(labelled(100), domain=DOMAIN, epsilon=1,
                                                  per="record", method="cube")  # fmt: skip
    for asked in ({"category": "work"}, {"each": "category"}):
        with pytest.raises(ParameterError, match="the release has no categories"):
            flat.query(BOX, **asked)
    for asked in ({"when": "2024-01-01"}, {"each": "slice"}):
        with pytest.raises(ParameterError, match="the release has no time slices"):
            alone.query(BOX, **asked)
