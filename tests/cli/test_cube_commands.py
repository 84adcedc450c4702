"""A cube on the command line: build, query, info, and the uses that it refuses."""

import os

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from support.cli_runner import as_json, as_table, check_refusals, cli, passes
from support.cubes import SLICES, town

BOUNDS = "--bounds 0 0 16 16 --crs EPSG:3857"
TIMES = "--time time --time-zone UTC --slices 2024-01-01T00..2024-01-02T23"
BUILD = f"build v.csv {BOUNDS} --per record --input-crs EPSG:3857 --method cube"
USERS = "--user user --max-contributions 4 --max-per-slice 1"
ASK = "query c --box 0 0 8 8"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Folder of the records of a town, a cube of them and a file of regions."""
    folder = tmp_path_factory.mktemp("prepared")
    town(600).to_csv(folder / "v.csv", index=False)
    shapes = {"id": ["a"], "geometry": [shapely.box(0, 0, 8, 8)]}
    gpd.GeoDataFrame(shapes, crs="EPSG:3857").to_file(folder / "r.geojson")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        told = passes(f"{BUILD} -o c --epsilon 1 {TIMES}")
    assert told == "wrote c: cube, 48 slices, epsilon 1 per record\n"
    return folder


@pytest.fixture(autouse=True)
def folder(prepared, here):
    """Links to these, in a folder of its own."""
    for name in ("v.csv", "c", "r.geojson"):
        os.symlink(prepared / name, here / name)
    return here


def test_info_names_all_layers():
    facts = as_json("info c")
    assert facts["method"] == "cube"
    assert facts["parameters"] == dict(psd.load("c").record.plane.parameters)
    assert facts["guarantee"] == "epsilon 1 per record"
    assert facts["slices"] == "2024-01-01T00..2024-01-02T23"
    assert facts["digest"] == psd.load("c").digest
    record = psd.load("c").record
    assert [layer["layer"] for layer in facts["layers"]] == ["space", "time", "space and time"]
    sizes = [len(record.plane.tree), len(record.times.tree), len(record.joint.tree)]
    assert [layer["cells"] for layer in facts["layers"]] == sizes
    assert sum(float(layer["largest_epsilon"]) for layer in facts["layers"]) == pytest.approx(1)
    table = passes("info c")
    assert table.splitlines()[0].split() == ["method", "cube"]
    assert [line.strip().split("  ")[0] for line in table.splitlines()[-3:]] == [
        "space",
        "time",
        "space and time",
    ]


def test_answers_are_those_of_python():
    release, box = psd.load("c"), [(0, 0, 8, 8)]
    everything = as_table(ASK)
    assert everything["estimate"].tolist() == pytest.approx(release.query(box)["estimate"].tolist())
    windows = ["weekdays 07-09", "2024-01-01"]
    found = as_table(*ASK.split(), "--when", windows[0], "--when", windows[1])
    assert found["when"].tolist() == windows
    table = release.query(box, when=windows).table
    for name in ("estimate", "lower", "upper"):
        assert found[name].tolist() == pytest.approx(table[name].tolist())


def test_joint_answers():
    found = as_json(f"{ASK} --box 8 0 16 8 --when 2024-01-01 --when 2024-01-02 --joint")
    boxes = [(0, 0, 8, 8), (8, 0, 16, 8)]
    joint = psd.load("c").query(boxes, when=["2024-01-01", "2024-01-02"]).joint()
    assert np.array(found["covariance"]) == pytest.approx(joint.covariance)
    assert found["total"]["error"] == pytest.approx(joint.total().error)
    assert "joint_upper" in passes(f"{ASK} --joint --format csv")
    note = "a total of windows adds up their unevenness in full"
    assert note in cli(*f"{ASK} --when 2024-01-01 --when 2024-01-02 --joint".split()).err
    assert note not in cli(*f"{ASK} --box 8 0 16 8 --joint".split()).err


def test_a_build_says_in_which_zone_times_are():
    line = f"{BUILD} -o z --epsilon 1 {TIMES}"
    assert "48 slices, epsilon" in passes(f"{line} --overwrite")
    told = passes(f"{line.replace('--time-zone UTC', '')} --overwrite")
    assert told == "wrote z: cube, 48 slices in UTC (no time zone is given), epsilon 1 per record\n"


def test_nested_areas_in_a_window():
    found = as_table("query c --box 1 1 4 4 --box 0 0 8 8 --nested --when mondays")
    made = psd.load("c").query([(1, 1, 4, 4), (0, 0, 8, 8)], when="mondays").nested()
    assert found["ring"].tolist() == pytest.approx(made["ring"].tolist())


def test_explanations_of_windows():
    line = "query c --box 1 1 9 9 --when 2024-01-01 --when mondays --explain"
    told = passes(line)
    assert "2024-01-01 1: " in told
    assert "mondays 1: " in told
    assert "error without one of its parts" in told
    assert "without noise of cells of space alone" in " ".join(told.split())
    found = as_json(line)
    made = psd.load("c").query([(1, 1, 9, 9)], when="mondays").explain()[0]
    explained = found[1]["explanation"]
    assert explained["noise_share"] == pytest.approx(made.noise_share)
    assert [cell["time"] for cell in explained["cut"]] == made.cut["time"].tolist()


def test_rows_of_each_slice():
    every = as_table(f"{ASK} --each slice")
    assert every["slice"].tolist() == list(SLICES.names)
    some = as_table(f"{ASK} --when 2024-01-02T07..2024-01-02T09 --each slice")
    assert some["slice"].tolist() == ["2024-01-02T07", "2024-01-02T08"]
    own = every[every["slice"].isin(some["slice"])]
    assert own["estimate"].tolist() == some["estimate"].tolist()


@pytest.mark.parametrize("more", ["", "--details", "--nested", "--joint", "--explain", "--top 2"])
def test_files_name_their_one_window(more):
    line = f"query c {'--box 0 0 8 8' if '--top' not in more else ''} --when mondays {more}"
    assert "when" not in passes(line)
    if more == "--details":  # of the screen
        return
    if more != "--explain":
        passes(f"{line} -o a.csv")
        found = pd.read_csv("a.csv")
        assert found.columns[0] == "when"
        assert set(found["when"]) == {"mondays"}
        assert not any("mondays" in name for name in found)
    found = as_json(line)
    rows = found["answers"] if "--joint" in more else found
    assert {row["when"] for row in rows} == {"mondays"}


def test_a_name_of_a_window_replaces_no_column_of_regions(folder):
    (folder / "r.csv").write_text('when,wkt\nnow,"POLYGON ((0 0, 8 0, 8 8, 0 0))"\n')
    line = "query c --polygons r.csv --polygons-crs EPSG:3857"
    assert "when" in passes(f"{line} --format csv").splitlines()[0]
    told = cli(*line.split(), "--when", "mondays", "--format", "csv")
    assert (told.code, told.err.count("\n")) == (2, 1)
    assert "regions must not have a column when, which the answers add" in told.err


def test_cubes_of_users():
    line = BUILD.replace("--per record", "")
    told = passes(f"{line} -o u --epsilon 1 --delta 1e-6 --noise gaussian {USERS} {TIMES}")
    assert "per user" in told
    assert "at most 4 records of each, at most 1 of them in each time slice" in told
    facts = as_json("info u")
    assert (facts["max_contributions"], facts["max_per_slice"]) == (4, 1)
    assert len(as_table("query u --box 0 0 8 8 --when mondays --when tuesdays")) == 2


def test_without_slices_it_is_a_release():
    passes(f"{BUILD} -o flat --epsilon 1")
    assert psd.load("flat").slices is None
    assert as_json("info flat")["method"] == "cube"


def test_wrong_builds(subtests):
    table = [
        (2, "--value lon 0 16", "--value must be left out with slices of method cube"),
        (2, "--regions r.geojson --region-id id", "--regions must cover the bounds"),
    ]
    check_refusals(subtests, table, *f"{BUILD} -o d --epsilon 1 {TIMES}".split())
    told = "--epsilon must be at least 0.000000002 with slices of method cube"
    check_refusals(subtests, [(2, "", told)], *f"{BUILD} -o d --epsilon 1e-9 {TIMES}".split())


@pytest.mark.parametrize("more", ["", "--dry-run", "--delta 1e-6 --noise gaussian --dry-run"])
def test_bounds_of_slices_that_are_too_large_together(more):
    line = BUILD.replace("--per record", "--user user --max-contributions 1000000000 --per slice")
    outcome = cli(f"{line} -o d --epsilon 1 {TIMES} {more}")
    assert outcome.code == 2
    assert outcome.err.splitlines()[-1].endswith(
        "--max-contributions must be at most 20,833,333 in each of 48 slices of method cube, got "
        "1,000,000,000; its trees count all slices together"
    )


@pytest.mark.parametrize("epsilon", ["2e-9", "3e-9", "1e-6"])
def test_the_smallest_epsilons_answer_with_wide_intervals(epsilon):
    passes(f"{BUILD} -o tiny --epsilon {epsilon} {TIMES}")
    for when in ("", "--when mondays", "--each slice"):
        answers = as_table(f"query tiny --box 0 0 8 8 {when}")
        assert (answers["upper"] > 100_000).all()


def test_wrong_questions(subtests):
    table = [
        (2, "--when 2024-01-03", "--when must be in the slices, from 2024-01-01 until before"),
        (2, "--when 2024-01-01 --when weekends", "--when"),
        (2, "--difference c", "got the same window twice; --other-slice, or release[window], is"),
        (2, "--difference c --when mondays --when tuesdays", "--when must be one window"),
        (2, "--mean fare", "mean must be one of the release"),
    ]
    check_refusals(subtests, table, *ASK.split())


WRONG_VIEWS = [
    (2, "export c e.csv --when 2024-01-03", "--when must be in the slices"),
    (2, "export c e.csv --when mondays --slice 2024-01-01T00", "--slice must be left out with"),
    (2, "query c --when mondays", "must be given; of all, give the bounds that psd info shows"),
    (2, "export flat e.csv --when mondays", "--when must be given with a cube"),
    (2, "export flat e.csv --points --when mondays", "--when must be given with a cube"),
    (2, "map flat -o m.html --when mondays", "--when must be given with a cube"),
    (
        2,
        "export c e.csv --when mondays --when tuesdays",
        "--when must be given once, got 2 times; --each slice writes each slice by itself",
    ),
    (2, "info c --slice 2024-01-01T00", "--slice must be left out for a cube"),
    (2, "check evaluate c v.csv", "--time must name the column of times"),
    (2, f"{ASK} --box 0 0 4 4 --nested --when mondays --when tuesdays", "must be one window"),
    (2, "query c --top 3 --when mondays --when tuesdays", "--when must be one window"),
]


def test_views_that_are_refused(subtests):
    passes(f"{BUILD} -o flat --epsilon 1")
    check_refusals(subtests, WRONG_VIEWS)


def test_cells_of_a_window_are_exported(folder):
    release = psd.load("c")
    for option, view in (
        ([], release),
        (["--when", "weekdays 07-09"], release["weekdays 07-09"]),
        (["--slice", "2024-01-01T08"], release["2024-01-01T08"]),
    ):
        passes("export", "c", "e.csv", "--overwrite", *option)
        table, expected = pd.read_csv("e.csv"), view.to_geopandas()
        assert table.columns[0] == ("when" if option else "cell")
        assert set(table.get("when", [])) == set(option[1:])
        for name in ("estimate", "perturbation_error", "error"):
            assert table[name].tolist() == pytest.approx(expected[name].tolist())
    passes("export", "c", "e.gpkg", "--when", "tuesdays,mondays")
    assert len(gpd.read_file("e.gpkg", layer="cells")) == len(expected)
    passes("export c p.csv --points --seed 1")
    assert "slice" in pd.read_csv("p.csv")
    passes("export", "c", "p2.csv", "--points", "--seed", "1", "--when", "mondays")
    assert set(pd.read_csv("p2.csv")["when"]) == {"mondays"}
    assert abs(len(pd.read_csv("p2.csv")) - release["mondays"].total) < 1


def test_first_cells_and_differences_of_windows():
    found = as_table("query", "c", "--top", "3", "--when", "mondays")
    expected = psd.load("c").query(top=3, when="mondays").table
    assert found["estimate"].tolist() == pytest.approx(expected["estimate"].tolist())
    assert len(as_table("query c --quantiles --size 8 8 --draws 20")) == 4
    line = [*ASK.split(), "--difference", "c", "--when", "2024-01-01", "--other-slice"]
    found = as_table(*line, "2024-01-02")
    both = psd.load("c").query([(0, 0, 8, 8)], when=["2024-01-01", "2024-01-02"]).joint()
    assert found["difference"][0] == pytest.approx(both.difference(0, 1).estimate)
    assert found["error"][0] == pytest.approx(both.difference(0, 1).error)
    names = found[["when", "other_slice"]]
    assert names.to_numpy().tolist() == [["2024-01-01", "2024-01-02"]]


@pytest.mark.deep  # it needs matplotlib
def test_pictures_of_a_cube(folder):
    passes("plot c all.png")
    passes("plot", "c", "one.png", "--when", "weekdays 07-09")
    passes("plot", "c", "two.png", "--when", "mondays", "--when", "tuesdays")
    pictures = {name: (folder / f"{name}.png").read_bytes() for name in ("all", "one", "two")}
    assert len(set(pictures.values())) == 3


@pytest.mark.parametrize("unit", ["", "--user user --max-contributions 2 --per slice"])
def test_a_ledger_knows_the_cube_that_it_paid_for(unit, folder):
    passes("ledger create l.ledger")
    columns = "--unit user --user user --time time --time-zone UTC" if unit else "--time time"
    passes(f"ledger register l.ledger visits --budget 3 {columns}")
    before = (folder / "l.ledger").read_bytes()
    build = BUILD if not unit else BUILD.replace("--per record", unit)
    passes(f"{build} -o paid.psd.parquet --epsilon 1 {TIMES} --ledger l.ledger --dataset visits")
    (folder / "pub").mkdir()
    (folder / "paid.psd.parquet").rename(folder / "pub" / "paid.psd.parquet")
    passes("ledger verify l.ledger --releases pub")
    (folder / "old.ledger").write_bytes(before)
    outcome = cli("ledger verify old.ledger --releases pub")
    assert outcome.code == 9
    assert "an older copy of the ledger was restored" in outcome.err


def test_a_cube_is_signed(folder):
    passes("sign new k.pem")
    passes("sign file c --key k.pem")
    passes("sign check c --key k.pub.pem")
