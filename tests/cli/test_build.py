"""psd build: a release file or nothing, and not a word that depends on the data."""

import geopandas as gpd
import pytest

import psd
from psd import errors
from psd.release.post_processing import PostProcessing
from support.cli_runner import (
    BOUNDS,
    CERTAIN,
    SQUARE,
    Terminal,
    check_refusals,
    cli,
    fails,
    files,
    passes,
    write_points,
)

# One point in the south-west quarter, two in the south-east, three in the north-west.
ROWS = [(-1, -1), (1, -1), (2, -3), (-1, 1), (-2, 2), (-3, 3)]
BUILD = "build points.csv -o out/r.psd.parquet"
SURE = (BUILD, *CERTAIN, *BOUNDS)
SMALL = (BUILD, "--epsilon", 1, *BOUNDS, "--method", "quadtree", "--set", "height=1")


@pytest.fixture(autouse=True)
def out(here):
    write_points(here / "points.csv", ROWS)
    (here / "out").mkdir()
    return here / "out" / "r.psd.parquet"


def counts(path="out/r.psd.parquet"):
    """Counts of the leaves: south-west, south-east, north-west, north-east."""
    release = psd.load(path)
    return release.tree.count[release.tree.is_leaf].tolist()


def test_a_coordinate_resolution_is_declared_and_stated(out, here):
    passes(*SURE, "--coordinate-resolution", "0.50", "--save-recipe", "recipe.toml")
    release = psd.load(out)
    assert release.domain == psd.Domain(bounds=(-4, -4, 4, 4), coordinate_resolution="0.5")
    assert release.domain.lattice == (17, 17)
    assert '"coordinate_resolution": "0.5"' in passes("info", out, "--format", "json")
    # The point at (-1, -1) is on the near edges of the first box and on the far ones of the second.
    boxes = [(-1, -1, -0.9, -0.9), (-1.5, -1.5, -1, -1), (-1.4, -1.4, -1.1, -1.1)]
    assert release.query(boxes).table.estimate.round().tolist() == [1, 0, 0]
    assert 'coordinate_resolution = "0.5"' in (here / "recipe.toml").read_text()
    passes("build recipe.toml --overwrite")
    assert psd.load(out).domain == release.domain


def test_a_coordinate_resolution_is_refused_where_coordinates_are_transformed(out):
    places = gpd.GeoSeries(gpd.points_from_xy([1.0], [1.0]), crs="EPSG:4326").to_frame("geometry")
    places.to_crs("EPSG:3857").to_file("places.gpkg")
    build = ("build places.gpkg --coordinate-resolution 0.5 -o", out, *BOUNDS, *CERTAIN)
    told = "--coordinate-resolution must be left out where coordinates are transformed"
    assert told in fails(3, *build)
    assert not out.exists()


def test_a_release_in_place_of_an_older_one_and_one_line(out):
    out.write_bytes(b"an older release")
    told = passes(BUILD, "--epsilon", "0.5", *SMALL[3:-1], "height=2", "--overwrite")
    assert told == "wrote out/r.psd.parquet: quadtree, epsilon 0.5 per record\n"
    release = psd.load(out)
    assert (release.method, release.unit.kind) == ("quadtree", "record")
    assert release.record.epsilon == 500_000_000
    assert dict(release.record.parameters) == {
        "height": 2,
        "budget": "geometric",
        "workload": None,
        "prune": 0,
    }
    assert release.domain == SQUARE
    assert files(out.parent) == [out.name]


def test_counts_are_of_the_rows_inside_in_any_crs_and_of_all_files(here, out):
    rows = [*ROWS, (5, 0), (0, -4.5), ("", 1), (1, "NA"), (4, 4), (-4, -4)]
    write_points(here / "points.csv", rows)
    passes(*SURE, "--set", "height=1")
    assert counts() == [2, 2, 3, 1]
    write_points(here / "points.csv", [(950_000, 1_950_000)], "east,north")
    where = "--crs EPSG:5179 --x east --y north --bounds 900000 1900000 1000000 2000000"
    passes(f"{BUILD} --set height=1 --overwrite {where}", *CERTAIN)
    assert psd.load("out/r.psd.parquet").domain.crs == "EPSG:5179"
    assert counts() == [0, 0, 0, 1]  # a point on both lines belongs to the north-east
    write_points(here / "points.csv", ROWS)
    write_points(here / "more.csv", [(1, "x", 1)], "lat,note,lon")
    passes("build points.csv more.csv --set height=1 --overwrite -o", out, *CERTAIN, *BOUNDS)
    assert counts() == [1, 2, 3, 1]
    for n in (5, 6):
        write_points(here / f"{n}.csv", [("u", 1, 1)] * n, "id,lon,lat")
    build = "build 5.csv 6.csv --set height=0 --user id --max-contributions 3 --overwrite -o"
    told = passes(build, out, *CERTAIN, *BOUNDS)
    assert told.endswith("quadtree, epsilon 1000 per user, at most 3 records of each\n")
    assert counts() == [3]
    unit = psd.load(out).unit
    assert (unit.kind, unit.max_contributions) == ("user", 3)


QUAD = "--method quadtree"
DECLARED = {
    "--set workload=tiny": ("grid", {"workload": "tiny"}),
    "--set workload=tiny --method grid": ("grid", {"workload": "tiny"}),
    f"--set workload=tiny {QUAD} --set height=2": (
        "quadtree",
        {"height": 2, "budget": "workload", "workload": "tiny", "prune": 0},
    ),
    "--set workload=large --set height=3 --set budget=workload": (
        "quadtree",
        {"height": 3, "budget": "workload", "workload": "large"},
    ),
}


def test_boxes_are_those_that_were_asked_for(out, subtests, here):
    for options, (method, parameters) in DECLARED.items():
        with subtests.test(options):
            passes(f"{BUILD} --epsilon 1 --overwrite {options}", *BOUNDS)
            release = psd.load(out)
            assert release.method == method
            assert parameters.items() <= dict(release.record.parameters).items()
    boxes = here / "plans-of-ours.csv"
    boxes.write_text("id,west,south,east,north\na,-4,-4,0,0\nb,-4,0,0,4\nc,0,0,99,99\n")
    passes(f"{BUILD} --epsilon 1 --overwrite --set workload={boxes} --set height=2", *BOUNDS)
    release = psd.load(out)
    # Quarters alone: next to nothing is left for what is above and below them.
    assert release.record.parameters["budget"] == "workload"
    root, quarters, leaves = map(int, str(release.record.parameters["workload"]).split())
    assert quarters > 1000 * max(root, leaves)
    assert b"plans" not in out.read_bytes()


def test_private_counts_go_to_stderr_and_are_marked(here):
    rows = [("a", 1, 1)] * 3 + [("b", 9, 9), ("b", "", 2), ("c", 0, 0)]
    write_points(here / "points.csv", rows, "id,lon,lat")
    args = (*SMALL, "--user", "id", "--max-contributions", 2)
    silent = passes(*args)
    outcome = cli(*args, "--overwrite", "--report-private")
    assert (outcome.code, outcome.out) == (0, silent)
    assert outcome.err == (
        "PRIVATE, do not publish: records read 6, without coordinates 1, outside 1, "
        "over the limit 1, kept 3\n"
    )


def test_stages_are_named_on_a_terminal_alone():
    terminal = Terminal()
    outcome = cli(*SMALL, stderr=terminal)
    assert outcome.code == 0
    assert "writing" in terminal.getvalue()
    assert "wrote" in outcome.out
    passes(*SMALL, "--overwrite")  # and nothing elsewhere


# Each: the code, what is added to a command line that would succeed, a word of the message.
REFUSED = [
    (2, f"{QUAD} --set size=3", "no parameter 'size'"),
    (2, "--set height", "KEY=VALUE"),
    (2, f"{QUAD} --set height=", "KEY=VALUE"),
    (2, "--set =3", "KEY=VALUE"),
    (2, f"{QUAD} --set height=13", "height must be"),
    (2, f"{QUAD} --set height=two", "two"),
    (2, "--estimate mean", "least-squares, posterior"),
    (2, ("--estimate", " "), "least-squares, posterior"),
    (2, "--density posterior", "uniform, smooth"),
    (2, "--density Smooth", "uniform, smooth"),
    (2, "--bounds 1 2 3", "must be followed by W S E N"),
    (3, "--bounds -4 4 4 -4", "south"),
    (3, "--bounds 37 126 38 127", "swapped"),
]


@pytest.mark.parametrize("earlier", [None, b"an older release"], ids=["new", "older-release"])
def test_a_failed_build_leaves_what_was_there(subtests, out, earlier):
    if earlier:
        out.write_bytes(earlier)
    for row in REFUSED:
        bounds = "" if "--bounds" in row[1] else "--bounds -4 -4 4 4"
        line = f"{BUILD} --overwrite --epsilon 1 {bounds}"
        check_refusals(subtests, [row], line, folder=out.parent)


DRAW, WRITE, SYNC = (
    "psd.mechanisms.sampler.SecureSampler.draw",
    "psd.release.file.encode_release",
    "psd._util.atomic_write.os.fsync",
)
FAULTS = {
    "interrupted drawing": (DRAW, KeyboardInterrupt(), 130),
    "budget": (DRAW, errors.BudgetError("too much"), 4),
    "no randomness": (DRAW, OSError("no entropy"), 70),
    "out of memory": (DRAW, MemoryError(), 70),
    "interrupted writing": (WRITE, KeyboardInterrupt(), 130),
    "internal": (WRITE, errors.InternalError("two roots"), 70),
    "interrupted before the rename": (SYNC, KeyboardInterrupt(), 130),
    "disk full": (SYNC, OSError(28, "No space left on device"), 6),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_on_the_way_leaves_what_was_there(monkeypatch, out, name):
    place, error, code = FAULTS[name]

    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr(place, fail)
    fails(code, *SMALL)
    assert files(out.parent) == []
    out.write_bytes(b"an older release")
    fails(code, *SMALL, "--overwrite")
    assert (files(out.parent), out.read_bytes()) == ([out.name], b"an older release")


def test_targets_that_are_refused(here, subtests):
    (here / "there.parquet").write_text("mine")
    (here / "alias").symlink_to("points.csv")
    table = [
        (6, "there.parquet", "exists"),
        (6, "out", "is a folder"),
        (6, "nowhere/r.parquet", "does not exist"),
        (6, "points.csv", "exists"),
        (6, "points.csv --overwrite", "input"),
        (6, "alias --overwrite", "input"),
    ]
    # The input is not even looked at: the target comes first.
    line = ("build points.csv missing.csv --epsilon 1", *BOUNDS, "-o")
    check_refusals(subtests, table[:4], *line)
    check_refusals(subtests, table[4:], "build points.csv --epsilon 1", *BOUNDS, "-o")


def test_a_file_that_appears_meanwhile_is_kept(monkeypatch, out):
    monkeypatch.setattr(SYNC, lambda file: out.write_bytes(b"of somebody else"))
    assert "created by another process" in fails(6, *SMALL)
    assert (files(out.parent), out.read_bytes()) == ([out.name], b"of somebody else")


def test_what_has_to_be_given(subtests):
    parts = {"INPUTS": "points.csv", "-o": "-o r", "--epsilon": "--epsilon 1"}
    parts["--bounds"] = "--bounds -4 -4 4 4"
    table = [(2, " ".join(parts[n] for n in parts if n != missing), missing) for missing in parts]
    check_refusals(subtests, table, "build")


VIEWS = {
    "": psd.decompositions.method("auto").post_processing,
    "--method cascade": psd.decompositions.method("cascade").post_processing,
    QUAD: PostProcessing(),
    f"{QUAD} --estimate posterior": PostProcessing(estimate="posterior"),
    f"{QUAD} --density smooth": PostProcessing(density="smooth"),
    "--method cascade --estimate least-squares --density uniform": PostProcessing(),
}


def test_views_are_those_that_were_asked_for(out, subtests):
    for options, view in VIEWS.items():
        with subtests.test(options):
            passes(f"{BUILD} --epsilon 1 --overwrite {options}", *BOUNDS)
            assert psd.load(out).record.post_processing == view


def test_values_that_cannot_be_built_are_refused_in_one_sentence_each(here, subtests):
    rows = [
        (0.5, 0.5, "a", "cheap", "3 EUR", '"3,5"', 3),
        (1.5, 2.5, "b", "dear", "4 EUR", '"4,5"', 4),
    ]
    write_points(here / "rides.csv", rows, "lon,lat,user,text,unit,comma,fare")
    line = f"build rides.csv -o r.psd.parquet --epsilon 1 {' '.join(map(str, BOUNDS))}"
    finite = "must hold finite numbers such as 12.5"
    table = [
        (2, "--value fare 60 0", "were they exchanged?"),
        (2, "--value fare nan 1", "must have finite bounds, of at most 1e+15"),
        (2, "--value fare low high", "must have two numbers as bounds, got 'low' and 'high'"),
        (2, "--value fare 0", "--value"),
        (2, "--value fare 0 1 --value fare 0 2", "must have different names"),
        (8, "--value text 0 60", finite),
        (8, "--value unit 0 60", finite),
        (8, "--value comma 0 60", "state decimal commas by --decimal"),
        (8, "--value fair 0 60", "correct it in --value"),
        (8, "--value user 0 1 --user user --max-contributions 2", "; user is named twice"),
    ]
    check_refusals(subtests, table, *line.split())
    said = passes(f"{line} --value fare 0 60")
    assert "counts have 1.41 times the Laplace noise of a release without values" in said
