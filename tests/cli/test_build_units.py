"""psd build for other units than rows, and where it reaches; and what the other commands say."""

import geopandas as gpd
import pandas as pd
import pytest
import shapely

import psd
from support.cli_runner import (
    BOUNDS,
    CERTAIN,
    as_json,
    as_table,
    check_refusals,
    cli,
    fails,
    passes,
    write_points,
)

# A user of three rows on one day and one on another, and a user of one row.
ROWS = [
    ("a", "2024-02-29 10:00", -1, -1),
    ("a", "2024-02-29 11:00", -1, -2),
    ("a", "2024-02-29 23:30", 1, -1),
    ("a", "2024-03-01 00:30", 1, 1),
    ("b", "2024-03-01 12:00", 3, 3),
]
USERS = ("--user", "id", "--count", "users")
TWO = ("--user", "id", "--max-contributions", 2)
DAY = ("--per", "day", "--time", "at", "--time-zone", "Asia/Seoul")
BUILD = ("build points.csv --set height=1 -o", "r", *CERTAIN)


@pytest.fixture(autouse=True)
def points(here):
    write_points(here / "points.csv", ROWS, "id,at,lon,lat")


def plot_of(shape):
    gpd.GeoDataFrame({"id": ["land"]}, geometry=[shape], crs="EPSG:4326").to_file("plot.gpkg")
    return ("--boundary", "plot.gpkg")


@pytest.fixture
def plot(here):
    return plot_of(shapely.box(-2, -2, 2, 2))


def built(*options, where=BOUNDS, name="r"):
    told = passes(BUILD[0], name, *CERTAIN, *where, *options, "--overwrite")
    return told, psd.load(name)


def facts():
    return as_json("info r")


UNITS = [
    ((), "per record", "records", 5),
    (TWO, "per user, at most 2 records of each", "kept records, at most 2 of each user", 3),
    (
        (*TWO, *DAY),
        "per user and day in Asia/Seoul, at most 2 records of each; a user of T days has T epsilon",
        "kept records, at most 2 of each user and day",
        4,
    ),
    (USERS, "per user, counts are users", "users; all records of a user share one count", 2),
]


def test_the_unit_stands_everywhere_with_its_price(subtests):
    for options, promise, counts, total in UNITS:
        with subtests.test(promise):
            told, release = built(*options)
            assert told == f"wrote r: quadtree, epsilon 1000 {promise}\n"
            assert release.total == pytest.approx(total, abs=0.1)
            said = facts()
            assert said["guarantee"] == f"epsilon 1000 {promise}"
            assert said["counts"] == counts
            assert said["time_zone"] == ("Asia/Seoul" if "--per" in options else "none")
            table = cli("query r --box -4 -4 4 4")
            assert table.err == ("" if counts == "records" else f"(counts are {counts})\n")
    built(*USERS)
    estimates = as_table("query r --box -4 -4 0 0 --box 0 0 4 4")["estimate"].tolist()
    assert estimates == pytest.approx([0.5, 1.25], abs=0.05)
    assert facts()["levels"][1]["noise_per_cell"] < 0.01
    passes("export r r.csv")
    assert pd.read_csv("r.csv")["estimate"].sum() == pytest.approx(2, abs=0.1)
    chosen = ["--choice-share", "0.25", "--choice-over", "1", "--choice-limit", "3"]
    told, release = built("--user", "id", "--max-contributions", "auto", *chosen)
    # One of two users has more rows than 1, 2 or 3; at this epsilon that is found for sure.
    assert release.unit.max_contributions in (1, 2, 3)
    assert f"at most {release.unit.max_contributions} records of each" in told
    stated = facts()["parameters"]
    assert (stated["bound_epsilon"], stated["bound_over"], stated["bound_most"]) == ("250", 1, 3)
    assert release.tree.max_path_loss == 750 * 10**9


def test_a_boundary_is_a_place_where_nobody_else_is(plot):
    _, release = built(*plot, where=())
    assert release.domain.bounds == (-2, -2, 2, 2)
    assert release.total == pytest.approx(4, abs=0.1)
    assert facts()["boundary"] == "100.0% of the bounds; records outside were dropped"
    _, wider = built(*plot)
    assert wider.domain.bounds == (-4, -4, 4, 4)
    assert facts()["boundary"] == "25.0% of the bounds; records outside were dropped"
    table = passes("query r --box 2.1 2.1 4 4 --format csv")
    assert table.splitlines()[1].split(",")[1:7] == ["0.0"] * 6


def test_a_boundary_is_repaired_where_that_is_chosen():
    plot = plot_of(shapely.Polygon([(-2, -2), (2, 2), (2, -2), (-2, 2)]))
    told = fails(2, *BUILD, *plot, "--overwrite")
    assert "polygon 1 of the boundary (id 'land') is not valid" in told
    assert "pass --repair" in told
    passes(*BUILD, "--boundary", "plot.gpkg", "--repair", "--overwrite")
    assert facts()["boundary"] == "50.1% of the bounds; records outside were dropped"
    told = fails(2, *BUILD, "--boundary", "plot.gpkg:repair=1", "--overwrite")
    assert "--boundary plot.gpkg:repair=1 is now --repair" in told


def test_private_bounds_and_the_area_of_use(here):
    rows = [(126.9 + number / 5000, 37.4 + number % 7 / 50) for number in range(1000)]
    write_points(here / "points.csv", rows)
    _, release = built(
        "--bounds", "private", "--bounds-share", "0.5", "--bounds-beyond", "20", where=()
    )
    west, _, east, _ = release.domain.bounds
    assert 126.9 < west < 126.93 < 127.07 < east < 127.1
    assert facts()["parameters"]["bounds_epsilon"] == "500"
    _, release = built("--bounds", "area-of-use", where=())
    assert release.domain.bounds == (-180, -90, 180, 90)
    assert release.total == pytest.approx(1000, abs=1)


BOX = "--bounds -4 -4 4 4"
MOST = "--user id --max-contributions"
REFUSED = [
    (2, f"{MOST} many", "--max-contributions must be a whole number or auto"),
    (2, f"{MOST} auto --choice-share 2", "--choice-share must be in [0, 1), got 2"),
    (2, f"{MOST} auto --choice-over -5", "--choice-over must be"),
    (2, f"{MOST} auto:over=5", "is now --max-contributions auto with --choice-share"),
    (2, f"{MOST} 5 --choice-over 5", "--choice-over must be given with --max-contributions auto"),
    (2, "--layer visits", "--layer"),
    (2, "--geometry geom", "--geometry"),
    (2, "--read lair=visits", "is now options of their own"),
    (8, "--x longitude", "no column 'longitude'"),
    (2, "--user user", "--max-contributions must be given with --user; else"),
    (2, "--max-contributions 2", "--user must name the column of user ids with --max-contrib"),
    (2, "--per day", "--user must name the column of user ids with --per"),
]
WITHOUT_BOUNDS = [
    (2, "--bounds private --bounds-share 1.5", "--bounds-share must be in [0, 1), got 1.5"),
    (2, "--bounds private --bounds-share 0.1 --bounds-beyond 1", "--bounds-beyond must be"),
    (2, "", "got none; they come from public knowledge"),
    (2, f"{BOX} --bounds area-of-use", "--bounds must be given once, got 2 times"),
    (2, f"{BOX} --value fare 0", "--value must be followed by COLUMN LOW HIGH (see psd build"),
]


def test_messages_name_the_option(subtests):
    check_refusals(subtests, REFUSED, *BUILD, *BOUNDS)
    check_refusals(subtests, WITHOUT_BOUNDS, *BUILD)
    told = fails(2, *BUILD, *plot_of(shapely.Point(1, 1)))
    assert "polygons only" in told
    assert "antimeridian" not in told
    built()
    built(*USERS, name="users")
    for more in ("", " --ratio"):
        told = fails(2, f"query r --difference users --box -4 -4 4 4{more}")
        assert "both releases must count users or both records" in told
