"""SeriesRelease on the command line: build, query, info, export and the rest, slice by slice."""

import json
import shutil

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from psd.ledger.ledger import Ledger
from psd.privacy.epsilon import NANO
from support.cli_runner import cli, fails, files, passes

BOUNDS = ("--bounds", 0, 0, 8, 8, "--crs", "EPSG:3857")
TIMES = ("--read", "time=time", "--read", "time_zone=Asia/Seoul")
SLICES = ("--slices", "2024-01,2024-02..2024-03")
USER = ("--user", "user", "--max-contributions", 2)
SURE = ("--epsilon", 1000, "--method", "quadtree", "--set", "budget=leaf", "--set", "height=3")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Visits in three months and after them."""
    monkeypatch.chdir(tmp_path)
    return visits(tmp_path)


def visits(tmp_path):
    """A file of visits, some of them at the very end of a month in Seoul."""
    rng = np.random.default_rng(2)
    lines = [
        f"u{u},{x:.3f},{y:.3f},{np.datetime64('2024-01-31T15:00', 's') + int(t)}Z"
        for u, x, y, t in zip(
            rng.integers(0, 9, 300),
            rng.uniform(0, 8, 300),
            rng.uniform(0, 8, 300),
            rng.choice([-1, 0, 40 * 86_400, 80 * 86_400], 300),
            strict=True,
        )
    ]
    (tmp_path / "v.csv").write_text("user,lon,lat,time\n" + "\n".join(lines) + "\n")
    return tmp_path


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A series and a single release, for the refusals."""
    folder = visits(tmp_path_factory.mktemp("prepared"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        build(*SURE)
        passes("build", "v.csv", "-o", "one", *BOUNDS, *SURE)
    return folder


def build(*words, output="s.psd.parquet"):
    return passes("build", "v.csv", "-o", output, *BOUNDS, *TIMES, *SLICES, *words)


def truth():
    """Rows of each slice: midnight in Seoul is 15:00 UTC the day before."""
    rows = pd.read_csv("v.csv")
    local = pd.to_datetime(rows["time"]).dt.tz_convert("Asia/Seoul").dt.strftime("%Y-%m")
    return {name: int((local == name).sum()) for name in ("2024-01", "2024-02", "2024-03")}


def test_slices_of_the_wall_clock(folder):
    told = build(*SURE)
    assert told == "wrote s.psd.parquet: quadtree, 3 slices, epsilon 1000 per record\n"
    text = passes("query", "s.psd.parquet", "--box", 0, 0, 8, 8, "--format", "json")
    found = {answer["slice"]: round(answer["estimate"]) for answer in json.loads(text)}
    assert found == truth()
    assert min(truth().values()) > 10


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((*USER,), "epsilon 1000 per user, at most 2 records of each\n"),
        ((*USER, "--per", "day"), "records of each; a user of T days has T epsilon\n"),
        (
            (*USER, "--per", "slice"),
            "epsilon 999.999999999 per user, at most 2 records of each in each slice\n",
        ),
    ],
)
def test_users_of_all_slices_or_of_each(folder, words, told):
    assert build(*SURE, *words).endswith(told)
    series = psd.SeriesRelease.load("s.psd.parquet")
    total = round(sum(release.total for release in series.releases))
    assert total == (9 * 2 * 3 if "--per" in words else 9 * 2)  # one day in each month
    table = cli("query", "s.psd.parquet", "--box", 0, 0, 8, 8)
    assert ("in each slice" in table.err) == ("slice" in words)
    assert table.out.count("2024-0") == 3


def test_users_of_all_slices_with_a_limit_in_each(folder):
    """Two records of a user in all, and one in each slice: at most nine users in a slice."""
    limit = ("--user", "user", "--max-contributions", 3, "--max-per-slice", 1)
    words = "at most 3 records of each, at most 1 of them in each time slice"
    assert build(*SURE, *limit).endswith(f"epsilon 1000 per user, {words}\n")
    series = psd.SeriesRelease.load("s.psd.parquet")
    assert [round(release.total) for release in series.releases] == [9, 9, 9]
    assert series.unit.max_per_slice == series["2024-02"].unit.max_per_slice == 1
    facts = json.loads(passes("info", "s.psd.parquet", "--format", "json"))
    assert (facts["max_contributions"], facts["max_per_slice"]) == (3, 1)
    assert facts["guarantee"] == f"epsilon 1000 per user, {words}"
    build("--epsilon", 1, *limit, output="one")
    passes("methodology", "one", "-o", "sheet.html")
    assert words in (folder / "sheet.html").read_text()


def test_a_limit_in_each_slice_by_recipe_and_by_tally(folder):
    """The recipe, and the tallies of parts with the same key, keep what the build keeps."""
    limit = ("--user", "user", "--max-contributions", 2, "--max-per-slice", 1)
    assert "max_per_slice = 1" in build(*SURE, *limit, "--dry-run", "--save-recipe", "r.toml")
    passes("run", "r.toml")
    assert psd.SeriesRelease.load("s.psd.parquet").unit.max_per_slice == 1
    rows = (folder / "v.csv").read_text().splitlines(keepends=True)
    for name, part in (("a", rows[1::2]), ("b", rows[2::2]), ("all", rows[1:])):
        (folder / f"{name}.csv").write_text(rows[0] + "".join(part))
        passes(
            "tally", f"{name}.csv", "-o", f"{name}.tally", *BOUNDS, *TIMES, *SLICES, *limit,
            "--key", "k.key", "--carry-users",
        )  # fmt: skip
    passes("build", "a.tally", "b.tally", "-o", "parts", *SURE)
    passes("build", "all.tally", "-o", "whole", *SURE)
    parts, whole = (psd.SeriesRelease.load(name) for name in ("parts", "whole"))
    assert parts.guarantee_text == whole.guarantee_text
    assert "at most 2 records of each, at most 1 of them" in whole.guarantee_text
    cells = [(c, 0, c + 1, 8) for c in range(8)]
    answers = [series.query(cells)["estimate"].round().tolist() for series in (parts, whole)]
    assert answers[0] == answers[1]
    assert round(sum(release.total for release in whole.releases)) == 9 * 2
    other = ("--max-contributions", 2, "--max-per-slice", 2, "--user", "user")
    passes("tally", "b.csv", "-o", "c.tally", *BOUNDS, *TIMES, *SLICES, *other,
           "--key", "k.key", "--carry-users")  # fmt: skip
    told = fails(8, "build", "a.tally", "c.tally", "-o", "no", *SURE)
    assert "different numbers of records per user and slice" in told


def test_limits_of_parts_without_users_add_up_in_each_slice(folder):
    limit = ("--user", "user", "--max-contributions", 3, "--max-per-slice", 1)
    for name in "ab":
        rows = (folder / "v.csv").read_text()
        (folder / f"{name}.csv").write_text(rows + f"u{name},1,1,2024-02-01T00:00:00Z\n")
        passes("tally", f"{name}.csv", "-o", f"{name}.tally", *BOUNDS, *TIMES, *SLICES, *limit)
    told = passes("build", "a.tally", "b.tally", "-o", "parts", *SURE)
    assert "at most 6 records of each, at most 2 of them in each time slice" in told


def test_a_ledger_charges_a_limit_in_each_slice_like_none(folder):
    """The limit changes which rows are kept, and no epsilon: the dataset states k."""
    passes("ledger", "create", "city.ledger")
    passes("ledger", "register", "city.ledger", "people", "--budget", 3, "--unit", "user",
           "--max-contributions", 3, "--read", "user=user", "--read", "time=time",
           "--read", "time_zone=Asia/Seoul")  # fmt: skip
    paid = ("--ledger", "city.ledger", "--dataset", "people", "--epsilon", 1)
    of_user = ("--user", "user", "--max-contributions", 3, *SURE[2:], *paid)
    build(*of_user, "--max-per-slice", 1)
    build(*of_user, output="without")
    assert Ledger("city.ledger").state().spent("people") == 2 * NANO


def test_one_slice_is_a_release_to_every_command(folder):
    build(*SURE)
    one = ("--slice", "2024-02")
    for words in (
        ("query", "s.psd.parquet", "--box", 0, 0, 4, 4, *one),
        ("query", "s.psd.parquet", "--box", 0, 0, 4, 4, "--explain", *one),
        ("query", "s.psd.parquet", "--box", 0, 0, 4, 4, "--box", 4, 4, 8, 8, "--joint", *one),
        ("info", "s.psd.parquet", *one),
        ("top", "s.psd.parquet", "-k", 2, *one),
        ("quantiles", "s.psd.parquet", "--size", 4, 4, *one),
        ("export", "s.psd.parquet", "cells.csv", *one),
        ("evaluate", "s.psd.parquet", "v.csv", "--read", "time=time", *one),
        (
            "difference", "s.psd.parquet", "s.psd.parquet", "--box", 0, 0, 8, 8, *one,
            "--other-slice", "2024-01",
        ),
    ):  # fmt: skip
        assert passes(*words)
    facts = json.loads(passes("info", "s.psd.parquet", *one, "--format", "json"))
    assert round(facts["estimated_total"]) == truth()["2024-02"]
    assert round(pd.read_csv("cells.csv")["estimate"].sum()) == truth()["2024-02"]
    psd.SeriesRelease.load("s.psd.parquet")["2024-02"].save("feb")
    own = passes("query", "feb", "--box", 0, 0, 4, 4, "--format", "csv")
    assert own == passes("query", "s.psd.parquet", "--box", 0, 0, 4, 4, "--format", "csv", *one)


def test_sums_over_slices_have_one_answer_per_region(folder):
    build(*SURE)
    boxes = ("--box", 0, 0, 8, 8, "--box", 0, 0, 4, 4)
    text = passes("query", "s.psd.parquet", *boxes, "--sum", "--format", "json")
    answers = json.loads(text)
    assert [answer["id"] for answer in answers] == [1, 2]
    assert "slice" not in answers[0]
    assert round(answers[0]["estimate"]) == sum(truth().values())
    two = ("--slices", "2024-02..2024-03", "--sum", "--format", "json")
    answers = json.loads(passes("query", "s.psd.parquet", *boxes, *two))
    assert round(answers[0]["estimate"]) == truth()["2024-02"] + truth()["2024-03"]
    one = passes("query", "s.psd.parquet", *boxes, "--slices", "2024-02", "--sum", "-o", "a.csv")
    assert "a.csv" in one
    own = passes("query", "s.psd.parquet", *boxes, "--slice", "2024-02", "--format", "csv")
    assert (folder / "a.csv").read_text() == own
    marked = passes("query", "s.psd.parquet", *boxes, "--sum", "--unreliable", "mark")
    assert "flag" in marked
    passes("query", "s.psd.parquet", *boxes, "--sum", "-o", "a.gpkg")
    shapes = gpd.GeoSeries([shapely.box(0, 0, 8, 8)], crs="EPSG:3857")
    shapes.to_file("shape.gpkg")
    words = ("--polygons", "shape.gpkg", "--sum", "--format", "json")
    answers = json.loads(passes("query", "s.psd.parquet", *words))
    assert round(answers[0]["estimate"]) == sum(truth().values())


@pytest.mark.parametrize(
    ("code", "told", "words"),
    [
        (
            2,
            "'2024-04' is not in this series",
            "query s.psd.parquet --box 0 0 1 1 --slice 2024-04",
        ),
        (
            2,
            "'2024-04' is not in this series",
            "query s.psd.parquet --box 0 0 1 1 --slices 2024-02..2024-05 --sum",
        ),
        (2, "of the form 2024-01 ", "query s.psd.parquet --box 0 0 1 1 --slices 2024-01-01 --sum"),
        (
            2,
            "must run forward",
            "query s.psd.parquet --box 0 0 1 1 --slices 2024-03..2024-01 --sum",
        ),
        (2, "must be given with --sum", "query s.psd.parquet --box 0 0 1 1 --slices 2024-01"),
        (
            2,
            "must be left out with --sum",
            "query s.psd.parquet --box 0 0 1 1 --slice 2024-01 --sum",
        ),
        (2, "must be used with a series", "query one --box 0 0 1 1 --sum"),
        (2, "at most one of", "query s.psd.parquet --box 0 0 1 1 --sum --joint"),
        (2, "single release; name a slice", "query s.psd.parquet --box 0 0 1 1 --joint"),
        (2, "single release; name a slice", "query s.psd.parquet --box 0 0 1 1 --explain"),
        (2, "single release; name a slice", "query s.psd.parquet --box 0 0 1 1 --nested"),
        (5, "series of time slices", "export s.psd.parquet x.csv"),
        (5, "series of time slices", "top s.psd.parquet"),
        (5, "series of time slices", "quantiles s.psd.parquet"),
        (5, "series of time slices", "evaluate s.psd.parquet v.csv"),
        (5, "series of time slices", "difference s.psd.parquet one --box 0 0 1 1"),
        (2, "must be given with a series", "info one --slice 2024-01"),
        (2, "must be left out", "evaluate one v.csv --read time=time"),
        (
            2,
            "--read time must name the column",
            "evaluate s.psd.parquet v.csv --slice 2024-01",
        ),
        (5, "cannot be read as a release", "info v.csv --slice 2024-01"),
        (
            2,
            "--slices must be given with --per slice",
            "build v.csv -o x {B} --epsilon 1 --per slice",
        ),
        (2, "--read time must name", "build v.csv -o x {B} --epsilon 1 --slices 2024-01"),
        (2, "months, weeks, days or hours", "build v.csv -o x {B} {T} --epsilon 1 --slices 2024-1"),
        (
            2,
            "of the form 2024-01 ",
            "build v.csv -o x {B} {T} --epsilon 1 --slices 2024-01,2024-02-01",
        ),
        (2, "--per slice", "build v.csv -o x {B} {T} --epsilon 1 --slices 2024-01 --per slice"),
        (
            2,
            "--bounds must be public with slices",
            "build v.csv -o x --bounds private:share=0.1 {T} --epsilon 1 --slices 2024-01",
        ),
        (
            2,
            "--max-contributions must be a number",
            "build v.csv -o x {B} {T} --epsilon 1 --slices 2024-01 --user user --per slice "
            "--max-contributions auto",
        ),
        (
            2,
            "epsilon must be at least",
            "build v.csv -o x {B} {T} {U} --epsilon 0.000000001 --slices 2024-01,2024-02 "
            "--per slice",
        ),
        (8, "time", "build v.csv -o x {B} --read time=user --epsilon 1 --slices 2024-01-01"),
    ],
)
def test_refusals(prepared, tmp_path, monkeypatch, code, told, words):
    folder = shutil.copytree(prepared, tmp_path / "copy")
    monkeypatch.chdir(folder)
    there = files(folder)
    texts = {"B": BOUNDS, "T": TIMES, "U": USER}
    words = words.format(**{name: " ".join(map(str, value)) for name, value in texts.items()})
    assert told in fails(code, *words.split())
    assert files(folder) == there


def test_answers_as_files(folder):
    build(*SURE)
    box = ("query", "s.psd.parquet", "--box", 0, 0, 4, 4, "--box", 1, 1, 2, 2)
    passes(*box, "-o", "a.csv")
    table = pd.read_csv("a.csv")
    assert table.columns[:2].tolist() == ["slice", "id"]
    assert table["slice"].tolist() == [n for n in truth() for _ in range(2)]
    features = json.loads(passes(*box, "--format", "geojson"))["features"]
    assert [f["properties"]["slice"] for f in features] == table["slice"].tolist()
    assert [f["geometry"] for f in features[:2]] == [f["geometry"] for f in features[2:4]]


def test_the_facts_of_a_series(folder):
    build(*SURE, *USER)
    facts = json.loads(passes("info", "s.psd.parquet", "--format", "json"))
    assert (facts["epsilon"], facts["bound_per"], facts["time_zone"]) == (
        "1000",
        "series",
        "Asia/Seoul",
    )
    assert [row["slice"] for row in facts["slices"]] == list(truth())
    assert facts["guarantee"] == "epsilon 1000 per user, at most 2 records of each"
    assert "2024-03" in passes("info", "s.psd.parquet")


def test_the_facts_of_a_series_bounded_in_each_slice(folder):
    told = build(*SURE, *USER, "--per", "slice")
    facts = json.loads(passes("info", "s.psd.parquet", "--format", "json"))
    assert facts["guarantee"].endswith(" per user, at most 2 records of each in each slice")
    assert facts["guarantee"] in told
    assert facts["counts"] == "kept records, at most 2 of each user in each slice"


def test_errors_of_a_slice_need_its_tally(folder):
    build(*SURE, *USER, "--keep-tally", "kept")
    words = ("evaluate", "s.psd.parquet", "v.csv", "--slice", "2024-03", "--read", "time=time")
    assert "needs --tally, the private tally of its build" in fails(2, *words)
    boxes = ("--boxes", "boxes.csv", "-o", "errors.csv")
    (folder / "boxes.csv").write_text("west,south,east,north\n0,0,8,8\n")
    passes(*words, "--tally", "kept", *boxes)
    found = pd.read_csv("errors.csv", comment="#")
    assert found["true_count"][0] == truth()["2024-03"]
    parts = found[[f"true_{n}_error" for n in ("perturbation", "nonuniformity", "bounding")]]
    assert parts.sum(axis=1)[0] == pytest.approx(found["true_error"][0])
    assert abs(found["true_perturbation_error"][0]) < 0.01


@pytest.mark.parametrize(
    ("words", "told", "total"),
    [
        ((*USER[:2], "--count", "users"), "per user, counts are users", 9),
        ((*USER[:2], "--max-contributions", "auto"), "per user, at most", None),
        ((*USER, "--boundary", "west.geojson"), "per user, at most 2 records", None),
        (("--boundary", "west.geojson"), "per record", None),
    ],
)
def test_slices_go_with_units_and_boundaries(folder, words, told, total):
    (folder / "west.geojson").write_text(
        '{"type": "Polygon", "crs": {"type": "name", "properties": {"name": "EPSG:3857"}}, '
        '"coordinates": [[[0, 0], [4, 0], [4, 8], [0, 8], [0, 0]]]}'
    )
    assert told in build(*SURE, *words, "--keep-tally", "kept")
    series = psd.SeriesRelease.load("s.psd.parquet")
    if total is not None:
        assert sum(r.total for r in series.releases) == pytest.approx(total, abs=0.25)  # sd 0.02
    if "--boundary" in words:
        assert all(release.boundary for release in series.releases)
        answers = series.query([(4.5, 0, 8, 8)])
        assert answers["estimate"].max() == 0
    errors = passes(
        "evaluate", "s.psd.parquet", "v.csv", "--slice", "2024-02", "--read", "time=time",
        "--tally", "kept",
    )  # fmt: skip
    assert "PRIVATE" in errors


def test_a_tally_of_other_boundaries_does_not_merge(folder):
    polygon = '"coordinates": [[[0, 0], [{east}, 0], [{east}, 8], [0, 8], [0, 0]]]}}'
    crs = '{{"type": "Polygon", "crs": {{"type": "name", "properties": {{"name": "EPSG:3857"}}}}, '
    for name, east in (("a", 4), ("b", 5)):
        (folder / f"{name}.geojson").write_text((crs + polygon).format(east=east))
        build(*SURE, "--boundary", f"{name}.geojson", "--keep-tally", f"{name}.tally", output=name)
    assert "different boundaries" in fails(8, "merge", "a.tally", "b.tally", "-o", "x")
    assert "same file" in fails(8, "merge", "a.tally", *again(), "-o", "x")


def again():
    """Another tally of the same file with the same boundary."""
    build(*SURE, "--boundary", "a.geojson", "--keep-tally", "again.tally", output="again")
    return ("again.tally",)
