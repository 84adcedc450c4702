"""psd build, run, tally and query with regions: files, cells, recipes and refusals."""

import geopandas as gpd
import pytest

import psd
from support.cli_runner import as_table, check_refusals, fails, passes, write_points

BOUNDS = "--bounds -4 -4 4 4"
BUILD = f"build points.csv -o r --epsilon 1000 {BOUNDS}"
ROWS = [(-3, -3), (-1, 1), (-1, -1), (1, 1), (3, -3), (3, 3)]
WARD = "--regions wards.gpkg --region-id ward"
WARDS = f"{WARD} --region-parent borough"
COUNTS = {"a": 1, "b": 2, "c": 1, "d": 2}


@pytest.fixture(autouse=True)
def points(wards):
    write_points(wards / "points.csv", ROWS)


def counts(level=None):
    """Rounded counts of the regions of a level by their ids."""
    answers = psd.load("r").query(level=level).table
    return dict(zip(answers["id"], answers["estimate"].round().astype(int), strict=True))


def test_a_build_counts_the_regions_of_a_file_or_cells():
    assert "wrote r: regions" in passes(f"{BUILD} {WARDS}")
    assert counts() == COUNTS
    assert counts("borough") == {"west": 3, "east": 3}
    tiles = "--crs EPSG:4326 --regions grid-cells=4,8 --method none --estimate integer"
    passes(f"{BUILD} --overwrite {tiles}")
    release = psd.load("r")
    assert sorted(release.query()["estimate"]) == [1, 1, 2, 2]
    assert release.record.post_processing.estimate == "integer"


def test_recipes_and_tallies_have_the_regions(here):
    passes(f"{BUILD} {WARDS} --method none --set weights=1,4 --save-recipe r.toml")
    text = (here / "r.toml").read_text()
    assert 'regions = "wards.gpkg"\nregion_id = "ward"\nregion_parent = "borough"' in text
    passes("build r.toml --overwrite")
    assert counts() == COUNTS
    assert 'regions = "wards.gpkg"' in passes("build r.toml --dry-run")
    passes(f"tally points.csv -o t.tally {BOUNDS} {WARDS}")
    build = "build t.tally --epsilon 1000"
    passes(f"{build} -o r --overwrite {WARDS}")
    assert counts() == COUNTS
    told = fails(2, f"{build} -o s --regions grid-cells=4")
    assert "--regions must be those by which the tallies were counted, got others" in told
    assert "got none" in fails(2, f"{build} -o s")


def test_differences_of_regions_by_name(here):
    passes(f"{BUILD} {WARDS} --method none")
    write_points(here / "points.csv", [*ROWS, (-3, -3), (-3, -3)])
    passes(f"{BUILD.replace('-o r', '-o s')} {WARDS} --method none")
    write_points(here / "seats.csv", [("c", 3), ("a", 2)], header="ward,seats")
    asked = {
        "--all-regions": {"a": 2, "b": 0, "c": 0, "d": 0},
        "--all-regions --level borough": {"west": 2, "east": 0},
        "--region b --region a": {"b": 0, "a": 2},
    }
    for options, expected in asked.items():
        found = as_table(f"query s --difference r {options}")
        assert dict(zip(found["id"], found["difference"].round(), strict=True)) == expected
    found = as_table("query s --difference r --table seats.csv --table-id ward")
    assert found["seats"].tolist() == [3, 2]
    assert found["difference"].round().tolist() == [0, 2]
    told = fails(6, "query s --difference r --table seats.csv --table-id ward -o seats.csv")
    assert "seats.csv" in told


REFUSED = [
    (2, "--regions wards.gpkg --region-id name", "--region-id must be a column of the regions"),
    (2, f"{WARD} --region-parent x", "--region-parent must be another column"),
    (2, f"{WARD} --gaps fill", "'fill' is not one of 'refuse', 'elsewhere', 'outside'"),
    (2, f"{WARD} --gaps outside --gaps outside", "--gaps must be given once"),
    (2, "--region-id ward", "--region-id must be given with --regions"),
    (2, "--regions wards.gpkg --regions id=ward", "--regions id=ward is now --region-id"),
    (8, f"--regions {'n' * 3_000} --region-id ward", "n does not exist or is not a file"),
    (2, "--regions grid-cells=x", "grid-cells must be lengths"),
    (2, "--regions points.csv --region-id ward", "must not be an input of records"),
]


def test_regions_that_are_refused(subtests):
    check_refusals(subtests, REFUSED, BUILD)
    check_refusals(subtests, REFUSED, f"tally points.csv -o r {BOUNDS}")
    table = [
        (2, f"{WARDS} --method quadtree", "--method must be one of cascade, auto, none"),
        (2, "--method none", "none"),
        (2, f"{WARDS} --method none --set height=3", "regions has no parameter"),
    ]
    check_refusals(subtests, table, BUILD)
    gpd.read_file("wards.gpkg")[:3].to_file("three.gpkg")
    build = f"{BUILD} --regions three.gpkg --region-id ward"
    assert "pass --gaps elsewhere to count" in fails(2, build)
    passes(f"{build} --gaps elsewhere")
    assert counts() == {"a": 1, "b": 2, "c": 1, "elsewhere": 2}


@pytest.fixture
def release(points):
    """A release of the wards."""
    passes(f"{BUILD} {WARDS}")


def answered(line, columns=("id", "estimate")):
    """Some columns of the rows of a query, numbers rounded."""
    return [tuple(row) for row in as_table(f"query {line}")[[*columns]].round().to_numpy()]


def test_regions_are_answered_by_level_and_by_their_ids(release):
    table = as_table("query r --all-regions")
    assert list(table.columns)[:3] == ["id", "estimate", "perturbation_error"]
    assert table["id"].tolist() == list("abcd")
    assert answered("r --all-regions --level borough") == [("west", 3), ("east", 3)]
    assert "west" in passes("query r --region west --level borough")
    assert answered("r --region d --region a") == [("d", 2), ("a", 1)]
    told = fails(2, "query r --region west")
    assert "--region must be those of level ward, got 'west'; it is one of level borough" in told


def test_a_table_of_the_caller_is_joined_by_id(release, here, subtests):
    (here / "seats.csv").write_text("ward,seats\nd,4\na,3\nd,1\n")
    line = "query r --table seats.csv --table-id ward"
    assert list(as_table(line).columns)[:3] == ["ward", "seats", "estimate"]
    rows = answered(line.removeprefix("query "), ("ward", "seats", "estimate"))
    assert rows == [("d", 4, 2), ("a", 3, 1), ("d", 1, 2)]
    passes(f"{line} -o answers.gpkg")
    shapes = gpd.read_file("answers.gpkg", layer="answers")
    assert shapes.geometry[0].bounds == (2, -4, 4, 4)
    passes("query r --table wards.gpkg --table-id ward -o answers.geojson")
    assert gpd.read_file("answers.geojson")["seats"].tolist() == [3, 2, 1, 4]
    table = [
        (2, "seats.csv", "--table-id must be one of the columns of areas (ward, seats), got 'id'"),
        (6, "wards.gpkg --table-id ward -o wards.gpkg", "wards.gpkg"),
    ]
    check_refusals(subtests, table, "query r --table")


def test_answers_of_named_regions_and_levels_are_files(release, here, subtests):
    for ending in ("gpkg", "geojson", "csv", "xlsx", "html", "parquet"):
        with subtests.test(ending):
            passes(f"query r --all-regions -o a.{ending} --unreliable mark")
            assert (here / f"a.{ending}").stat().st_size
    passes("export r boroughs.csv --level borough")
    assert "west" in (here / "boroughs.csv").read_text()
    passes("export r wards.fgb")
    assert gpd.read_file("wards.fgb")["id"].tolist() == list("abcd")


def test_slices_are_answered_by_region(here):
    rows = [(*row, f"2024-0{1 + number % 2}-05") for number, row in enumerate(ROWS)]
    write_points(here / "points.csv", rows, header="lon,lat,time")
    passes(f"{BUILD} {WARDS} --time time --slices 2024-01..2024-02")
    table = as_table("query r --all-regions --level borough --each slice")
    assert table["slice"].tolist() == ["2024-01"] * 2 + ["2024-02"] * 2
    assert table["id"].tolist() == ["west", "east"] * 2
    assert table["estimate"].sum() == pytest.approx(6, abs=0.5)
    (here / "t.csv").write_text("borough\neast\n")
    line = "r --table t.csv --table-id borough --level borough --each slice"
    assert answered(line, ("slice", "borough")) == [("2024-01", "east"), ("2024-02", "east")]
    passes(f"query {line} -o a.gpkg")


WRONG_NAMES = [
    (2, "--level ward", "--level must be given with --all-regions"),
    (2, "--all-regions --region a", "at most one of --all-regions, --region and --table"),
    (2, "--all-regions --box 0 0 1 1", "without --box"),
    (2, "--all-regions --nested", "--nested must be left out with --all-regions"),
    (2, "--all-regions --level x", "--level must be one of borough, ward, got 'x'"),
    (2, "", "exactly one of"),
]


def test_questions_about_names_that_are_refused(release, subtests):
    check_refusals(subtests, WRONG_NAMES, "query r")
    passes(f"{BUILD} --method quadtree --overwrite")
    told = fails(2, "query r --all-regions")
    assert "the release counts no regions by name" in told
