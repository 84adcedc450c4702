"""What goes with regions, as docs/guide/regions.md says: each pair of options is tried."""

from itertools import combinations

import geopandas as gpd
import numpy as np
import pytest
import shapely

import psd
from support.cli_runner import cli, fails, passes, write_points

BOUNDS = ("--bounds", -4, -4, 4, 4)
TIME = ("--read", "time=time")
REGIONS = ("--regions", "wards.gpkg", "--regions", "id=ward", "--regions", "gaps=outside")

# Options of the rows of the table that are "yes", and how a user is counted.
GOES = {
    "users": ("--user", "user", "--max-contributions", 2),
    "counted users": ("--user", "user", "--count", "users"),
    "slices": ("--slices", "2024-01..2024-02"),
    "boundary": ("--boundary", "land.gpkg"),
    "covariate": ("--covariate", "land.gpkg"),
    "ledger": ("--ledger", "l.ledger", "--dataset", "d"),
    "integers": ("--set", "estimate=integer"),
    "nothing inside": ("--method", "none"),
    "a recipe": ("--save-recipe", "recipe.toml"),
}
APART = {("users", "counted users")}

REFUSED = {
    "private bounds": (("--bounds", "private:share=0.1"), "must be public bounds with"),
    "a quadtree": ((*BOUNDS, "--method", "quadtree"), "--method must be one of cascade, auto"),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Records of ten users in two months, four wards, and a boundary."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(8)
    places = random.uniform(-3.9, 3.9, (60, 2)).round(3)
    rows = [(x, y, f"u{n % 10}", f"2024-0{1 + n % 2}-07") for n, (x, y) in enumerate(places)]
    write_points(tmp_path / "points.csv", rows, header="lon,lat,user,time")
    shapes = [shapely.box(x, -4, x + 2, 4) for x in (-4, -2, 0, 2)]
    gpd.GeoDataFrame({"ward": list("abcd")}, geometry=shapes, crs="EPSG:4326").to_file("wards.gpkg")
    land = [shapely.box(-4, -4, 3, 4)]
    gpd.GeoDataFrame({"id": ["land"]}, geometry=land, crs="EPSG:4326").to_file("land.gpkg")
    return tmp_path


@pytest.mark.parametrize("pair", [p for p in combinations(GOES, 2) if p not in APART])
def test_each_pair_of_options_goes_with_regions(folder, pair):
    options = [part for name in pair for part in GOES[name]]
    if "ledger" in pair:
        user = ("--unit", "user", "--read", "user=user") if "--user" in options else ()
        passes("ledger", "create", "l.ledger")
        passes("ledger", "register", "l.ledger", "d", "--budget", 9, *user)
    told = passes(
        "build", "points.csv", "-o", "r.psd.parquet", "--epsilon", 8, *BOUNDS, *TIME, *REGIONS,
        *options,
    )  # fmt: skip
    assert "wrote r.psd.parquet: regions" in told
    answers = psd.load("r.psd.parquet").query_regions()
    assert answers["id"].tolist() == list("abcd") * (2 if "slices" in pair else 1)
    assert np.isfinite(answers["estimate"]).all()
    if "integers" in pair:
        assert (answers["estimate"] % 1 == 0).all()


BOX = ("--box", -3, -3, 1, 2)
ASKED = {
    "joint": ("query", *BOX, "--box", 0, 0, 3, 3, "--joint"),
    "nested": ("query", *BOX, "--box", -4, -4, 4, 4, "--nested"),
    "explain": ("query", *BOX, "--explain"),
    "a polygon": ("query", "--polygons", "land.gpkg"),
    "names jointly": ("query", "--all-regions", "--joint"),
    "top": ("top", "-k", 2, "--draws", 20),
    "top of a raster": ("top", "-k", 2, "--draws", 20, "--size", 3, 3),
    "quantiles": ("quantiles", "--size", 4, 4, "--draws", 5),
    "a table of a level": ("export", "wards.csv"),
    "a raster": ("export", "wards.npy", "--size", 4, 4),
}
BUILT = {name: options for name, options in GOES.items() if name not in ("ledger", "a recipe")}


@pytest.mark.parametrize("name", BUILT)
def test_each_question_goes_with_each_build(folder, name):
    args = ("points.csv", "-o", "r.psd.parquet", "--epsilon", 8, *BOUNDS, *TIME, *REGIONS)
    passes("build", *args, *BUILT[name])
    of_slice = ("--slice", "2024-01") if name == "slices" else ()
    for verb, *options in ASKED.values():
        outcome = cli(verb, "r.psd.parquet", *options, *of_slice)
        assert outcome.code == 0, (verb, options, outcome.err)
        assert outcome.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("query", "--all-regions", "--nested"), "the levels of regions add up already"),
        (("query", "--all-regions", "--explain"), "they cut no cell"),
        (("query", "--table", "wards.gpkg:id=ward", "--joint"), "whose rows may repeat"),
        (("export", "x.csv", "--cells", "all"), "--level names a level of regions"),
        (("export", "x.csv", "--size", 4, 4), "unless output is a raster"),
        (("export", "x.npy", "--level", "ward"), "level must be left out if output is a raster"),
        (("top", "--level", "street"), "level must be one of ward"),
        (("top", "--by", "density"), "by must be count for the regions of a level"),
    ],
)
def test_questions_without_meaning_are_refused(folder, options, words):
    args = ("points.csv", "-o", "r.psd.parquet", "--epsilon", 8, *BOUNDS, *REGIONS)
    passes("build", *args)
    verb, *rest = options
    assert words in " ".join(fails(2, verb, "r.psd.parquet", *rest).split())


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_go_with_regions_is_refused(folder, name):
    options, words = REFUSED[name]
    told = fails(
        2, "build", "points.csv", "-o", "r.psd.parquet", "--epsilon", 8, *options, *REGIONS
    )
    assert words in told
    assert not (folder / "r.psd.parquet").exists()


@pytest.mark.parametrize("name", ["users", "counted users", "slices", "nothing inside"])
def test_tallies_of_parts_go_with_regions(folder, name):
    counted = GOES[name] if name != "nothing inside" else ()
    lines = (folder / "points.csv").read_text().splitlines()
    cut = 61 if name == "counted users" else 31  # counted users have a single tally
    tallies = []
    for number, part in enumerate(filter(None, (lines[1:cut], lines[cut:]))):
        write_points(folder / f"{number}.csv", [line.split(",") for line in part], header=lines[0])
        tallies.append(f"{number}.tally")
        passes("tally", f"{number}.csv", "-o", tallies[-1], *BOUNDS, *TIME, *REGIONS, *counted)
    inside = GOES[name] if name == "nothing inside" else ()
    args = ("build", *tallies, "-o", "r.psd.parquet", "--epsilon", 8, *REGIONS, *inside)
    assert "regions" in passes(*args)
    answers = psd.load("r.psd.parquet").query_regions()
    assert answers["id"].tolist()[:4] == list("abcd")
