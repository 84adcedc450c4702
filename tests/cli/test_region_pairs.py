"""What goes with regions, as docs/guide/regions.md says: each pair of options is tried."""

from itertools import combinations

import geopandas as gpd
import numpy as np
import pytest
import shapely

import psd
from support.cli_runner import check_refusals, cli, passes, write_points

BOUNDS = "--bounds -4 -4 4 4"
REGIONS = "--regions wards.gpkg --region-id ward --gaps outside"
BUILD = f"build points.csv -o r --epsilon 8 {REGIONS}"
BOUND = f"{BUILD} {BOUNDS}"

# Options of the rows of the table that are "yes", and how a user is counted.
GOES = {
    "users": "--user user --max-contributions 2",
    "counted users": "--user user --count users",
    "slices": "--time time --slices 2024-01..2024-02",
    "boundary": "--boundary land.gpkg",
    "covariate": "--covariate land.gpkg",
    "ledger": "--ledger l.ledger --dataset d",
    "integers": "--estimate integer",
    "nothing inside": "--method none",
    "a recipe": "--save-recipe recipe.toml",
}
APART = {("users", "counted users")}


@pytest.fixture(autouse=True)
def folder(wards):
    """Records of ten users in two months, four wards, and a boundary."""
    random = np.random.default_rng(8)
    places = random.uniform(-3.9, 3.9, (60, 2)).round(3)
    rows = [(x, y, f"u{n % 10}", f"2024-0{1 + n % 2}-07") for n, (x, y) in enumerate(places)]
    write_points(wards / "points.csv", rows, header="lon,lat,user,time")
    land = [shapely.box(-4, -4, 3, 4)]
    gpd.GeoDataFrame({"id": ["land"]}, geometry=land, crs="EPSG:4326").to_file("land.gpkg")
    return wards


def check_build(*names):
    """Regions are answered after a build with some options."""
    options = " ".join(GOES[name] for name in names)
    if "ledger" in names:
        user = "--unit user --user user" if "--user" in options else ""
        passes("ledger create l.ledger")
        passes(f"ledger register l.ledger d --budget 9 {user}")
    assert "wrote r: regions" in passes(f"{BOUND} {options}")
    answers = psd.load("r").query(each="slice" if "slices" in names else None).table
    assert answers["id"].tolist() == list("abcd") * (2 if "slices" in names else 1)
    assert np.isfinite(answers["estimate"]).all()
    if "integers" in names:
        assert (answers["estimate"] % 1 == 0).all()


@pytest.mark.parametrize("name", GOES)
def test_each_option_goes_with_regions(name):
    check_build(name)


@pytest.mark.deep
@pytest.mark.parametrize("pair", [p for p in combinations(GOES, 2) if p not in APART])
def test_each_pair_of_options_goes_with_regions(pair):
    check_build(*pair)


BOX = "--box -3 -3 1 2"
ASKED = (
    f"query r {BOX} --box 0 0 3 3 --joint",
    f"query r {BOX} --box -4 -4 4 4 --nested",
    f"query r {BOX} --explain",
    "query r --polygons land.gpkg",
    "query r --all-regions --joint",
    "query r --top 2 --draws 20",
    "query r --top 2 --draws 20 --size 3 3",
    "query r --quantiles --size 4 4 --draws 5",
    "export r wards.csv",
    "export r wards.npy --size 4 4",
)


@pytest.mark.deep
@pytest.mark.parametrize("name", [name for name in GOES if name not in ("ledger", "a recipe")])
def test_each_question_goes_with_each_build(name, subtests):
    passes(f"{BOUND} {GOES[name]}")
    for line in ASKED:
        with subtests.test(line):
            option = "--slice" if line.startswith("export") else "--when"
            outcome = cli(line + f" {option} 2024-01" * (name == "slices"))
            assert outcome.code == 0, outcome.err
            assert outcome.out


WITHOUT_MEANING = [
    (2, "query r --all-regions --nested", "the levels of regions add up already"),
    (2, "query r --all-regions --explain", "they cut no cell"),
    (2, "export r x.csv --cells all", "--level names a level of regions"),
    (2, "query r --top 10 --by density", "by must be count for the regions of a level"),
    (2, f"{BUILD} --overwrite --bounds private --bounds-share 0.1", "must be public with regions"),
]


def test_what_has_no_meaning_with_regions_is_refused(subtests):
    passes(f"{BUILD} {BOUNDS}")
    check_refusals(subtests, WITHOUT_MEANING)
