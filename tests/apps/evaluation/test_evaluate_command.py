"""psd check evaluate: PRIVATE on screen and in files, parts, tally, refusals."""

import os

import geopandas as gpd
import pandas as pd
import pytest
import shapely

from support.cli_runner import BOUNDS, CERTAIN, check_refusals, cli, fails, passes, write_points

BUILD = "build v.csv --epsilon 1 --method grid --set size=4 --bounds 0 0 10 10 --overwrite -o"
USER = "--user user_id --max-contributions 50 --keep-tally"


@pytest.fixture(autouse=True)
def visits(here):
    rows = "".join(f"u{i % 7},{i % 97 / 10},{i % 89 / 9}\n" for i in range(2_000))
    (here / "v.csv").write_text("user_id,lon,lat\n" + rows)


@pytest.mark.deep
def test_eight_classes_with_files(here):
    passes(BUILD, "r")
    line = "check evaluate r v.csv -o e.csv --plot e.png"
    told = passes(line)
    assert "PRIVATE" in told
    assert "reveals something about the data that epsilon does not cover" in told
    assert told.count("uniform") == 5  # four classes and the heading of a part
    assert (here / "e.csv").read_text().startswith("# PRIVATE")
    assert len(pd.read_csv("e.csv", comment="#")) == 4_000
    assert {(here / name).stat().st_mode & 0o777 for name in ("e.csv", "e.png")} == {0o600}
    assert "exists" in fails(6, line)
    (here / "boxes.csv").write_text("id,west,south,east,north\na,0,0,10,10\n")
    assert "given" in passes("check evaluate r v.csv --boxes boxes.csv")
    passes(BUILD, "r", *USER.split(), "t.private")
    assert (here / "t.private").stat().st_mode & 0o777 == 0o600
    told = fails(2, "check evaluate r v.csv")
    assert "needs --tally, the private tally of its build" in told
    assert "bounding" in passes("check evaluate r v.csv --tally t.private --boxes boxes.csv")


REFUSED = [
    (5, "absent absent", "absent"),
    (8, "r absent.csv", "absent.csv"),
    (8, "r v.csv --x east", "east"),
    (8, "r v.csv --tally v.csv", "v.csv"),
    (8, "r v.csv --boxes absent", "absent"),
    (2, "r v.csv --plot p.pdf", "p.pdf"),
    (6, "r v.csv -o v.csv", "v.csv"),
]


def test_refusals(here, subtests):
    passes(BUILD, "r")
    check_refusals(subtests, REFUSED, "check evaluate")
    assert cli(BUILD, "both", "--keep-tally", here / "." / "both").code == 6
    assert not (here / "both").exists()
    passes(BUILD, "r", *USER.split(), "t.private")
    table = [
        (6, "-o t.private", "t.private"),
        (6, "-o x.png --plot x.png", "two outputs have the same path"),
    ]
    check_refusals(subtests, table, "check evaluate r v.csv --tally t.private --overwrite")


# A user of three rows on one day and one on another, and a user of one row.
ROWS = [
    ("a", "2024-02-29 10:00", -1, -1),
    ("a", "2024-02-29 11:00", -1, -2),
    ("a", "2024-02-29 23:30", 1, -1),
    ("a", "2024-03-01 00:30", 1, 1),
    ("b", "2024-03-01 12:00", 3, 3),
]
SURE = "build points.csv -o r --overwrite --set height=1 --keep-tally p.tally"
DAY = "--per day --time at --time-zone Asia/Seoul"
UNITS = ("--count users", f"--max-contributions 2 {DAY}", "--max-contributions auto")


@pytest.mark.deep
def test_releases_of_every_unit_are_evaluated(here, subtests):
    write_points(here / "points.csv", ROWS, "id,at,lon,lat")
    line = "check evaluate r points.csv --tally p.tally -o e.csv --overwrite"
    for unit in UNITS:
        with subtests.test(unit):
            passes(f"{SURE} --user id {unit}", *CERTAIN, *BOUNDS)
            passes(line)
            table = pd.read_csv("e.csv", skiprows=1)
            parts = ("perturbation", "nonuniformity", "bounding")
            whole = sum(table[f"true_{part}_error"] for part in parts)
            assert (whole - table["true_error"]).abs().max() < 1e-6
            assert table["true_count"].max() <= (2 if unit == UNITS[0] else 5)
    plot = gpd.GeoDataFrame({"id": ["land"]}, geometry=[shapely.box(-2, -2, 2, 2)], crs="EPSG:4326")
    plot.to_file("plot.gpkg")
    passes(f"{SURE} --boundary plot.gpkg", *CERTAIN, *BOUNDS)
    assert "rebuild with --keep-tally" in fails(2, "check evaluate r points.csv -o f.csv")
    passes(line)
    assert pd.read_csv("e.csv", skiprows=1)["true_bounding_error"].min() == -1


def test_a_release_of_several_tallies_is_judged_by_the_one_that_it_kept(here):
    (here / "boxes.csv").write_text("id,west,south,east,north\na,0,0,10,10\n")
    bounds = "--bounds 0 0 10 10 --user user_id --max-contributions 4"
    for name in ("w", "v"):
        (here / f"{name}.csv").write_text(f"user_id,lon,lat\n{name},1,1\n{name},2,2\n")
        passes(f"tally {name}.csv -o {name}.tally {bounds}")
    passes("build v.tally w.tally -o both --epsilon 1 --keep-tally kept")
    assert "bounding" in passes("check evaluate both v.csv w.csv --boxes boxes.csv --tally kept")
    passes(f"build v.csv -o one --epsilon 1 {bounds} --keep-tally own")
    assert "is of another release" in fails(8, "check evaluate both v.csv --tally own")


@pytest.mark.deep
def test_private_files_have_no_name_until_they_are_whole(here, monkeypatch):
    passes(BUILD, "r")
    seen, sync = [], os.fsync

    def synced(handle):
        if os.fstat(handle).st_nlink == 0:
            seen.append(sorted(os.listdir(here)))
        sync(handle)

    monkeypatch.setattr("psd._util.atomic_write.os.fsync", synced)
    private = [here / name for name in ("p.csv", "p.html")]
    for path in private:
        path.touch(mode=0o644)
    before = sorted(os.listdir(here))
    passes("check evaluate r v.csv -o p.csv --report p.html --overwrite")
    assert seen == [before] * 2
    assert {path.stat().st_mode & 0o777 for path in private} == {0o600}
