"""psd build, run, tally and query with regions: files, cells, recipes and refusals."""

import geopandas as gpd
import pytest
import shapely

import psd
from support.cli_runner import fails, files, passes, write_points

BOUNDS = ("--bounds", -4, -4, 4, 4)
SURE = ("--epsilon", 1000)
ROWS = [(-3, -3), (-1, 1), (-1, -1), (1, 1), (3, -3), (3, 3)]
WARDS = ("--regions", "wards.gpkg", "--regions", "id=ward", "--regions", "parent=borough")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Six records, and four wards in two boroughs."""
    monkeypatch.chdir(tmp_path)
    write_points(tmp_path / "points.csv", ROWS)
    gpd.GeoDataFrame(
        {"ward": list("abcd"), "borough": ["west", "west", "east", "east"], "seats": [3, 2, 1, 4]},
        geometry=[shapely.box(x, -4, x + 2, 4) for x in (-4, -2, 0, 2)],
        crs="EPSG:4326",
    ).to_file("wards.gpkg")
    return tmp_path


def counts(path, level=None):
    """Rounded counts of the regions of a level by their ids."""
    answers = psd.load(path).query_regions(level)
    return dict(zip(answers["id"], answers["estimate"].round().astype(int), strict=True))


def test_a_build_counts_the_regions_of_a_file(folder):
    told = passes("build", "points.csv", "-o", "r.psd.parquet", *SURE, *BOUNDS, *WARDS)
    assert "wrote r.psd.parquet: regions" in told
    assert counts("r.psd.parquet") == {"a": 1, "b": 2, "c": 1, "d": 2}
    assert counts("r.psd.parquet", "borough") == {"west": 3, "east": 3}


def test_a_build_counts_cells_with_nothing_inside_as_integers(folder):
    tiles = ("--crs", "EPSG:4326", "--regions", "grid-cells=4,8", "--method", "none")
    integer = ("--set", "estimate=integer")
    passes("build", "points.csv", "-o", "r.psd.parquet", *SURE, *BOUNDS, *tiles, *integer)
    release = psd.load("r.psd.parquet")
    estimates = release.query_regions()["estimate"]
    assert sorted(estimates) == [1, 1, 2, 2]
    assert release.post_processing.estimate == "integer"


def test_a_recipe_has_the_keys_of_the_option(folder):
    args = (*SURE, *BOUNDS, *WARDS, "--method", "none", "--set", "weights=1,4")
    passes("build", "points.csv", "-o", "r.psd.parquet", *args, "--save-recipe", "r.toml")
    text = (folder / "r.toml").read_text()
    assert '[release.regions]\nfile = "wards.gpkg"\nid = "ward"\nparent = "borough"' in text
    passes("run", "r.toml", "--overwrite")
    assert counts("r.psd.parquet") == {"a": 1, "b": 2, "c": 1, "d": 2}
    assert 'file = "wards.gpkg"' in passes("run", "r.toml", "--dry-run")


def test_a_tally_is_counted_by_region_and_built_with_the_same(folder):
    passes("tally", "points.csv", "-o", "t.tally", *BOUNDS, *WARDS)
    passes("build", "t.tally", "-o", "r.psd.parquet", *SURE, *WARDS)
    assert counts("r.psd.parquet") == {"a": 1, "b": 2, "c": 1, "d": 2}
    told = fails(2, "build", "t.tally", "-o", "s.psd.parquet", *SURE, "--regions", "grid-cells=4")
    assert "--regions must be those by which the tallies were counted, got others" in told
    assert "got none" in fails(2, "build", "t.tally", "-o", "s.psd.parquet", *SURE)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("wards.gpkg",), "--regions id must be the column that names the regions"),
        (("wards.gpkg", "id=name"), "--regions id must be a column of the regions (ward, borough"),
        (("wards.gpkg", "id=ward", "parent=x"), "--regions parent must be another column"),
        (("wards.gpkg", "id=ward", "gaps=fill"), "--regions gaps must be one of"),
        (("wards.gpkg", "id=ward", "gaps=outside", "gaps=outside"), "gaps must be given once"),
        (("wards.gpkg", "id=ward", "tolerance=x"), "--regions tolerance must be a length"),
        (("wards.gpkg", "id=ward", "repair=x"), "--regions repair must be yes or no"),
        (("wards.gpkg", "id=ward", "grid-cells=1"), "got a file and grid-cells"),
        (("wards.gpkg", "ids=ward"), "did you mean 'id'"),
        (("id=",), "--regions must be FILE or KEY=VALUE"),
        (("none.gpkg", "id=ward"), "none.gpkg does not exist or is not a file"),
        (("n" * 3_000, "id=ward"), "n does not exist or is not a file"),
        (("grid-cells=2,3",), "sizes of grid-cells must divide"),
        (("grid-cells=x",), "--regions grid-cells must be lengths"),
        (("points.csv", "id=ward"), "must not be an input of records"),
    ],
)
def test_regions_that_are_refused(folder, options, words):
    before = files(folder)
    regions = [part for option in options for part in ("--regions", option)]
    for command in (("build", *SURE), ("tally",)):
        code = 8 if "exist" in words else 2
        told = fails(code, *command, "points.csv", "-o", "r.psd.parquet", *BOUNDS, *regions)
        assert words in told
    assert files(folder) == before


def test_methods_with_regions_are_those_of_what_is_inside(folder):
    args = ("build", "points.csv", "-o", "r.psd.parquet", *SURE, *BOUNDS)
    assert "--method must be one of cascade, auto, none" in fails(
        2, *args, *WARDS, "--method", "quadtree"
    )
    fails(2, *args, "--method", "none")
    told = fails(2, *args, *WARDS, "--method", "none", "--set", "height=3")
    assert "regions has no parameter" in told
    told = fails(2, *args[:4], *SURE, "--bounds", "private:share=0.1", *WARDS)
    assert "must be public bounds with" in told


def test_a_gap_is_refused_or_is_one_region(folder):
    table = gpd.read_file("wards.gpkg")
    table[:3].to_file("three.gpkg")
    args = ("build", "points.csv", "-o", "r.psd.parquet", *SURE, *BOUNDS)
    three = ("--regions", "three.gpkg", "--regions", "id=ward")
    assert "pass --regions gaps=elsewhere to count" in fails(2, *args, *three)
    passes(*args, *three, "--regions", "gaps=elsewhere")
    assert counts("r.psd.parquet") == {"a": 1, "b": 2, "c": 1, "elsewhere": 2}


@pytest.fixture
def release(folder):
    """A release of the wards."""
    passes("build", "points.csv", "-o", "r.psd.parquet", *SURE, *BOUNDS, *WARDS)
    return "r.psd.parquet"


def answered(*args):
    """Rows of a query as lists of texts."""
    lines = passes("query", *args, "--format", "csv").splitlines()
    return [line.split(",") for line in lines]


def test_all_regions_of_a_level_are_answered(release):
    rows = answered(release, "--all-regions")
    assert rows[0][:3] == ["id", "estimate", "perturbation_error"]
    assert [row[0] for row in rows[1:]] == list("abcd")
    rows = answered(release, "--all-regions", "--level", "borough")
    assert [(row[0], round(float(row[1]))) for row in rows[1:]] == [("west", 3), ("east", 3)]
    assert "west" in passes("query", release, "--region", "west", "--level", "borough")


def test_regions_are_answered_by_their_ids(release):
    rows = answered(release, "--region", "d", "--region", "a")
    assert [(row[0], round(float(row[1]))) for row in rows[1:]] == [("d", 2), ("a", 1)]
    told = fails(2, "query", release, "--region", "west")
    assert "--region must be those of level ward, got 'west'; it is one of level borough" in told


def test_a_table_of_the_caller_is_joined_by_id(release, folder):
    (folder / "seats.csv").write_text("ward,seats\nd,4\na,3\nd,1\n")
    rows = answered(release, "--table", "seats.csv:id=ward")
    assert rows[0][:3] == ["ward", "seats", "estimate"]
    assert [row[:2] for row in rows[1:]] == [["d", "4"], ["a", "3"], ["d", "1"]]
    assert [round(float(row[2])) for row in rows[1:]] == [2, 1, 2]
    passes("query", release, "--table", "seats.csv:id=ward", "-o", "answers.gpkg")
    shapes = gpd.read_file("answers.gpkg", layer="answers")
    assert shapes.geometry[0].bounds == (2, -4, 4, 4)
    passes("query", release, "--table", "wards.gpkg:id=ward", "-o", "answers.geojson")
    assert gpd.read_file("answers.geojson")["seats"].tolist() == [3, 2, 1, 4]
    told = fails(2, "query", release, "--table", "seats.csv")
    assert "column must be one of the table (ward, seats), got 'id'" in told
    told = fails(6, "query", release, "--table", "wards.gpkg:id=ward", "-o", "wards.gpkg")
    assert "wards.gpkg" in told


@pytest.mark.parametrize("ending", ["gpkg", "geojson", "csv", "xlsx", "html", "parquet"])
def test_answers_of_named_regions_are_files(release, folder, ending):
    passes("query", release, "--all-regions", "-o", f"a.{ending}", "--unreliable", "mark")
    assert (folder / f"a.{ending}").stat().st_size


def test_slices_are_answered_by_region(folder):
    rows = [(*row, f"2024-0{1 + number % 2}-05") for number, row in enumerate(ROWS)]
    write_points(folder / "timed.csv", rows, header="lon,lat,time")
    times = ("--read", "time=time", "--slices", "2024-01..2024-02")
    passes("build", "timed.csv", "-o", "s.psd.parquet", *SURE, *BOUNDS, *WARDS, *times)
    rows = answered("s.psd.parquet", "--all-regions", "--level", "borough")
    assert [row[:2] for row in rows[1:3]] == [["2024-01", "west"], ["2024-01", "east"]]
    assert sum(float(row[2]) for row in rows[1:]) == pytest.approx(6, abs=0.5)
    (folder / "t.csv").write_text("borough\neast\n")
    table = ("--table", "t.csv:id=borough", "--level", "borough")
    assert [row[:2] for row in answered("s.psd.parquet", *table)[1:]] == [
        ["2024-01", "east"],
        ["2024-02", "east"],
    ]
    passes("query", "s.psd.parquet", *table, "-o", "a.gpkg")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--level", "ward"), "--level must be given with --all-regions"),
        (("--all-regions", "--region", "a"), "at most one of --all-regions, --region and --table"),
        (("--all-regions", "--box", 0, 0, 1, 1), "without --box"),
        (("--all-regions", "--nested"), "--nested must be left out with --all-regions"),
        (("--all-regions", "--level", "x"), "--level must be one of borough, ward, got 'x'"),
        ((), "exactly one of"),
    ],
)
def test_questions_about_names_that_are_refused(release, options, words):
    assert words in fails(2, "query", release, *options)


def test_a_release_without_regions_has_no_names(folder):
    passes("build", "points.csv", "-o", "q.psd.parquet", *SURE, *BOUNDS, "--method", "quadtree")
    told = fails(2, "query", "q.psd.parquet", "--all-regions")
    assert "must be used with a release that counts regions by name" in told


def test_a_level_is_exported(release, folder):
    passes("export", release, "boroughs.csv", "--level", "borough")
    assert "west" in (folder / "boroughs.csv").read_text()
    passes("export", release, "wards.fgb")
    assert gpd.read_file("wards.fgb")["id"].tolist() == list("abcd")
