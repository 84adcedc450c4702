"""psd build: a release file or nothing, and not a word that depends on the data."""

import subprocess
import sys

import geopandas as gpd
import numpy as np
import pytest

import psd
from psd import errors
from psd.release.post_processing import PostProcessing
from support.cli_runner import (
    BOUNDS,
    CERTAIN,
    SQUARE,
    Terminal,
    cli,
    fails,
    files,
    passes,
    process,
    without_request_warnings,
    write_points,
)

# One point in the south-west quarter, two in the south-east, three in the north-west.
ROWS = [(-1, -1), (1, -1), (2, -3), (-1, 1), (-2, 2), (-3, 3)]


@pytest.fixture
def points(tmp_path):
    return write_points(tmp_path / "points.csv", ROWS)


@pytest.fixture
def out(tmp_path):
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "r.psd.parquet"


def counts(path):
    """Counts of the leaves: south-west, south-east, north-west, north-east."""
    release = psd.Release.load(path)
    return release.tree.count[release.tree.is_leaf].tolist()


def test_a_coordinate_resolution_is_declared_and_stated(points, out, tmp_path):
    rounded = ("--coordinate-resolution", "0.50")
    recipe = tmp_path / "recipe.toml"
    passes("build", points, "-o", out, *BOUNDS, *CERTAIN, *rounded, "--save-recipe", recipe)
    release = psd.Release.load(out)
    assert release.domain == psd.Domain(bounds=(-4, -4, 4, 4), coordinate_resolution="0.5")
    assert release.domain.lattice == (17, 17)
    assert '"coordinate_resolution": "0.5"' in passes("info", out, "--format", "json")
    # The point at (-1, -1) is on the near edges of the first box and on the far ones of the second.
    boxes = [(-1, -1, -0.9, -0.9), (-1.5, -1.5, -1, -1), (-1.4, -1.4, -1.1, -1.1)]
    assert release.query(boxes).estimate.round().tolist() == [1, 0, 0]
    assert 'coordinate_resolution = "0.5"' in recipe.read_text()
    passes("run", recipe, "--overwrite")
    assert psd.Release.load(out).domain == release.domain


def test_a_coordinate_resolution_is_refused_where_coordinates_are_transformed(out, tmp_path):
    places = gpd.GeoSeries(gpd.points_from_xy([1.0], [1.0]), crs="EPSG:4326").to_frame("geometry")
    places.to_crs("EPSG:3857").to_file(tmp_path / "places.gpkg")
    told = fails(
        3, "build", tmp_path / "places.gpkg", "-o", out, *BOUNDS, *CERTAIN,
        "--coordinate-resolution", 0.5,
    )  # fmt: skip
    assert "--coordinate-resolution must be left out where coordinates are transformed" in told
    assert not out.exists()


def test_a_release_and_one_line(points, out):
    told = passes(
        "build",
        points,
        "-o",
        out,
        "--epsilon",
        "0.5",
        *BOUNDS,
        "--method",
        "quadtree",
        "--set",
        "height=2",
    )
    assert told == f"wrote {out}: quadtree, epsilon 0.5 per record\n"
    release = psd.Release.load(out)
    assert (release.method, release.record.epsilon, release.unit.kind) == (
        "quadtree",
        500_000_000,
        "record",
    )
    assert dict(release.parameters) == {
        "height": 2,
        "budget": "geometric",
        "workload": None,
        "prune": 0,
    }
    assert release.domain == SQUARE
    assert files(out.parent) == [out.name]


def test_counts_are_of_the_rows_inside(tmp_path, out):
    rows = [*ROWS, (5, 0), (0, -4.5), ("", 1), (1, "NA"), (4, 4), (-4, -4)]
    points = write_points(tmp_path / "p.csv", rows)
    passes("build", points, "-o", out, *CERTAIN, "--set", "height=1", *BOUNDS)
    assert counts(out) == [2, 2, 3, 1]


@pytest.mark.parametrize(
    ("options", "method", "parameters"),
    [
        (["--set", "workload=tiny"], "grid", {"workload": "tiny"}),
        (["--set", "workload=tiny", "--method", "grid"], "grid", {"workload": "tiny"}),
        (
            ["--set", "workload=tiny", "--method", "quadtree", "--set", "height=2"],
            "quadtree",
            {"height": 2, "budget": "workload", "workload": "tiny", "prune": 0},
        ),
        (
            ["--set", "workload=large", "--set", "height=3", "--set", "budget=workload"],
            "quadtree",
            {"height": 3, "budget": "workload", "workload": "large"},
        ),
    ],
)
def test_a_declared_class_of_boxes(points, out, options, method, parameters):
    passes("build", points, "-o", out, "--epsilon", 1, *BOUNDS, *options)
    release = psd.Release.load(out)
    assert release.method == method
    assert parameters.items() <= dict(release.parameters).items()


def test_declared_boxes_stand_in_the_release_as_weights(tmp_path, points, out):
    boxes = tmp_path / "plans-of-ours.csv"
    boxes.write_text("id,west,south,east,north\na,-4,-4,0,0\nb,-4,0,0,4\nc,0,0,99,99\n")
    options = ("--set", f"workload={boxes}", "--set", "height=2")
    passes("build", points, "-o", out, "--epsilon", 1, *BOUNDS, *options)
    release = psd.Release.load(out)
    # Quarters alone: next to nothing is left for what is above and below them.
    assert release.parameters["budget"] == "workload"
    root, quarters, leaves = map(int, str(release.parameters["workload"]).split())
    assert quarters > 1000 * max(root, leaves)
    assert b"plans" not in out.read_bytes()


def test_several_files_are_one_table(tmp_path, points, out):
    more = write_points(tmp_path / "more.csv", [(1, "x", 1)], "lat,note,lon")
    passes("build", points, more, "-o", out, *CERTAIN, "--set", "height=1", *BOUNDS)
    assert counts(out) == [1, 2, 3, 1]


def test_a_bound_per_user_holds_over_several_files(tmp_path, out):
    parts = [write_points(tmp_path / f"{n}.csv", [("u", 1, 1)] * n, "id,lon,lat") for n in (5, 6)]
    user = ("--user", "id", "--max-contributions", 3)
    told = passes("build", *parts, "-o", out, *CERTAIN, "--set", "height=0", *BOUNDS, *user)
    assert told.endswith("quadtree, epsilon 1000 per user, at most 3 records of each\n")
    assert counts(out) == [3]
    release = psd.Release.load(out)
    assert (release.unit.kind, release.unit.max_contributions) == ("user", 3)


def test_another_crs_and_other_columns(tmp_path, out):
    points = write_points(tmp_path / "p.csv", [(950_000, 1_950_000)], "east,north")
    where = ("--crs", "EPSG:5179", "--read", "x=east", "--read", "y=north")
    bounds = ("--bounds", 900_000, 1_900_000, 1_000_000, 2_000_000)
    passes("build", points, "-o", out, *CERTAIN, "--set", "height=1", *bounds, *where)
    assert psd.Release.load(out).domain.crs == "EPSG:5179"
    assert counts(out) == [0, 0, 0, 1]  # a point on both lines belongs to the north-east


@pytest.mark.parametrize("method", psd.methods())
@pytest.mark.parametrize("rows", [[], [(1, 1)]], ids=["no-row", "one-row"])
def test_every_method_builds_of_next_to_nothing(tmp_path, out, method, rows):
    points = write_points(tmp_path / "p.csv", rows)
    passes("build", points, "-o", out, "--epsilon", 1, *BOUNDS, "--method", method)
    assert psd.Release.load(out).method == method


@pytest.mark.parametrize("method", psd.methods())
def test_what_is_printed_depends_on_no_row(tmp_path, method):
    rng = np.random.default_rng(5)
    many = rng.uniform(-6, 6, (5_000, 2)).round(3).tolist()
    tables = {"few": [(1, 1)], "many": [*many, ("", ""), ("NA", 0)], "none": []}
    told = set()
    for name, rows in tables.items():
        folder = tmp_path / name
        folder.mkdir()
        write_points(folder / "points.csv", rows)
        args = ("points.csv", "-o", "r.psd.parquet", "--epsilon", 1, *BOUNDS, "--method", method)
        ended = process("build", *args, cwd=folder)
        assert ended.returncode == 0
        told.add((ended.stdout, ended.stderr))
    assert told == {(f"wrote r.psd.parquet: {method}, epsilon 1 per record\n", "")}


def test_private_counts_go_to_stderr_and_are_marked(tmp_path, out):
    rows = [("a", 1, 1)] * 3 + [("b", 9, 9), ("b", "", 2), ("c", 0, 0)]
    points = write_points(tmp_path / "p.csv", rows, "id,lon,lat")
    args = ("build", points, "-o", out, "--epsilon", 1, *BOUNDS)
    args = (
        *args,
        "--user",
        "id",
        "--max-contributions",
        2,
        "--method",
        "quadtree",
        "--set",
        "height=1",
    )
    silent = passes(*args)
    outcome = cli(*args, "--overwrite", "--report-private")
    assert (outcome.code, outcome.out) == (0, silent)
    assert outcome.err == (
        "PRIVATE, do not publish: records read 6, without coordinates 1, outside 1, "
        "over the limit 1, kept 3\n"
    )


def test_stages_are_named_on_a_terminal_alone(points, out):
    terminal = Terminal()
    args = (
        "build",
        points,
        "-o",
        out,
        "--epsilon",
        1,
        *BOUNDS,
        "--method",
        "quadtree",
        "--set",
        "height=1",
    )
    outcome = cli(*args, stderr=terminal)
    assert outcome.code == 0
    assert "writing" in terminal.getvalue()
    assert "wrote" in outcome.out
    passes(*args, "--overwrite")  # and nothing elsewhere


# Each: what is added to a command line that would succeed, the code, a word of the message.
REFUSED = [
    pytest.param(["--epsilon", "0"], 2, "--epsilon must be above 0", id="epsilon-0"),
    pytest.param(["--epsilon", "-1"], 2, "--epsilon must be above 0", id="epsilon-negative"),
    pytest.param(["--epsilon", "nan"], 2, "nan", id="epsilon-nan"),
    pytest.param(["--epsilon", "0,5"], 2, "0,5", id="epsilon-decimal-comma"),
    pytest.param(["--epsilon", "1/3"], 2, "1/3", id="epsilon-fraction"),
    pytest.param(["--epsilon", "1001"], 2, "1,000", id="epsilon-huge"),
    pytest.param(["--epsilon", "0.0000000001"], 2, "nine decimals", id="epsilon-too-fine"),
    pytest.param(["--method", "kd"], 2, "kd", id="unknown-method"),
    pytest.param(
        ["--method", "quadtree", "--set", "size=3"], 2, "no parameter 'size'", id="set-unknown-key"
    ),
    pytest.param(["--set", "height"], 2, "KEY=VALUE", id="set-no-sign"),
    pytest.param(["--method", "quadtree", "--set", "height="], 2, "KEY=VALUE", id="set-no-value"),
    pytest.param(["--set", "=3"], 2, "KEY=VALUE", id="set-no-key"),
    pytest.param(
        ["--method", "quadtree", "--set", "height=1", "--set", "height=2"],
        2,
        "times",
        id="set-twice",
    ),
    pytest.param(
        ["--method", "quadtree", "--set", "height=13"], 2, "height must be", id="set-out-of-range"
    ),
    pytest.param(["--method", "quadtree", "--set", "height=two"], 2, "two", id="set-no-number"),
    pytest.param(["--user", "lon"], 2, "--max-contributions", id="user-without-bound"),
    pytest.param(["--max-contributions", "3"], 2, "user", id="bound-without-user"),
    pytest.param(["--user", "lon", "--max-contributions", "0"], 2, "0", id="bound-0"),
    pytest.param(["--user", "lon", "--max-contributions", "x"], 2, "x", id="bound-text"),
    pytest.param(["--bounds", "1", "2", "3"], 2, "4 arguments", id="three-bounds"),
    pytest.param(["--bounds", "1", "2", "3", "x"], 2, "is not a number", id="bound-no-number"),
    pytest.param(["--bounds", "4", "-4", "-4", "4"], 3, "west", id="bounds-swapped"),
    pytest.param(["--bounds", "-4", "4", "4", "-4"], 3, "south", id="bounds-upside-down"),
    pytest.param(["--bounds", "nan", "-4", "4", "4"], 3, "finite", id="bounds-nan"),
    pytest.param(["--bounds", "37", "126", "38", "127"], 3, "swapped", id="bounds-lat-lon"),
    pytest.param(["--crs", "EPSG:0"], 3, "EPSG:0", id="unknown-crs"),
    pytest.param(["--read", "x=lng"], 8, "'lng'", id="column-missing"),
    pytest.param(["missing.csv"], 8, "missing.csv", id="second-input-missing"),
    pytest.param(["broken.csv"], 8, "broken.csv", id="second-input-malformed"),
    pytest.param(["points.csv"], 8, "twice", id="input-twice"),
]


@pytest.mark.parametrize("earlier", [None, b"an older release"], ids=["new", "older-release"])
@pytest.mark.parametrize(("extra", "code", "words"), REFUSED)
def test_a_failed_build_leaves_what_was_there(
    tmp_path, monkeypatch, points, out, extra, code, words, earlier
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.csv").write_text("lon,lat\n1,1\n2\n")
    if earlier:
        out.write_bytes(earlier)
    given = {"--epsilon": ["1"], "--bounds": [str(edge) for edge in BOUNDS[1:]]}
    kept = [part for name in given if name not in extra for part in (name, *given[name])]
    assert words in fails(code, "build", points, "-o", out, "--overwrite", *kept, *extra)
    assert files(out.parent) == ([out.name] if earlier else [])
    assert earlier is None or out.read_bytes() == earlier


def fail_with(error):
    def fail(*args, **kwargs):
        raise error

    return fail


DRAW, WRITE, SYNC = (
    "psd.mechanisms.sampler.SecureSampler.draw",
    "psd.release.file.encode_release",
    "psd._util.atomic_write.os.fsync",
)


@pytest.mark.parametrize(
    ("place", "error", "code"),
    [
        pytest.param(DRAW, KeyboardInterrupt(), 130, id="interrupted-drawing"),
        pytest.param(DRAW, errors.BudgetError("too much"), 4, id="budget"),
        pytest.param(DRAW, OSError("no entropy"), 70, id="no-randomness"),
        pytest.param(DRAW, MemoryError(), 70, id="out-of-memory"),
        pytest.param(WRITE, KeyboardInterrupt(), 130, id="interrupted-writing"),
        pytest.param(WRITE, errors.InternalError("two roots"), 70, id="internal"),
        pytest.param(SYNC, KeyboardInterrupt(), 130, id="interrupted-before-the-rename"),
        pytest.param(SYNC, OSError(28, "No space left on device"), 6, id="disk-full"),
    ],
)
def test_a_fault_on_the_way_leaves_what_was_there(monkeypatch, points, out, place, error, code):
    args = (
        "build",
        points,
        "-o",
        out,
        "--epsilon",
        1,
        *BOUNDS,
        "--method",
        "quadtree",
        "--set",
        "height=1",
    )
    monkeypatch.setattr(place, fail_with(error))
    fails(code, *args)
    assert files(out.parent) == []
    out.write_bytes(b"an older release")
    fails(code, *args, "--overwrite")
    assert (files(out.parent), out.read_bytes()) == ([out.name], b"an older release")


@pytest.mark.parametrize(
    ("package", "options"),
    [
        ("duckdb", ()),
        ("pyarrow.parquet", ()),
        ("pyproj", ("--crs", "EPSG:3857", "--min-cell", "0")),  # degrees do without it
    ],
)
def test_an_interrupt_while_a_package_is_loaded_is_not_lost(points, out, package, options):
    code = f"""if True:
        import sys

        class Interrupted:
            def find_spec(self, name, path=None, target=None):
                if name == "{package}":
                    raise KeyboardInterrupt

        sys.meta_path.insert(0, Interrupted())
        from psd_cli.main import main
        main()
    """
    args = [
        "build",
        points,
        "-o",
        out,
        "--epsilon",
        1,
        *BOUNDS,
        "--method",
        "quadtree",
        "--set",
        "height=1",
        *options,
    ]
    command = [sys.executable, "-c", code, *map(str, args)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (130, "")
    assert ended.stderr.count("\n") == 1
    assert files(out.parent) == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("there.parquet", "exists", id="exists"),
        pytest.param("folder", "is a folder", id="a-folder"),
        pytest.param("nowhere/r.parquet", "does not exist", id="folder-missing"),
        pytest.param("points.csv", "exists", id="an-input"),
    ],
)
def test_targets_that_are_refused(tmp_path, points, name, words):
    (tmp_path / "there.parquet").write_text("mine")
    (tmp_path / "folder").mkdir()
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    # The input is not even looked at: the target comes first.
    args = ("build", points, "missing.csv", "-o", tmp_path / name, "--epsilon", 1, *BOUNDS)
    assert words in fails(6, *args)
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_an_input_is_never_overwritten(tmp_path, points):
    content = points.read_bytes()
    (tmp_path / "alias").symlink_to(points)
    for name in ("points.csv", "alias"):
        args = ("build", points, "-o", tmp_path / name, "--epsilon", 1, *BOUNDS, "--overwrite")
        assert "input" in fails(6, *args)
    assert points.read_bytes() == content


def test_overwrite_replaces_the_older_release(points, out):
    out.write_bytes(b"an older release")
    args = ("build", points, "-o", out, *CERTAIN, "--set", "height=1", *BOUNDS)
    passes(*args, "--overwrite")
    assert counts(out) == [1, 2, 3, 0]
    assert files(out.parent) == [out.name]


def test_a_file_that_appears_meanwhile_is_kept(monkeypatch, points, out):
    monkeypatch.setattr(
        "psd._util.atomic_write.os.fsync", lambda file: out.write_bytes(b"of somebody else")
    )
    args = (
        "build",
        points,
        "-o",
        out,
        "--epsilon",
        1,
        *BOUNDS,
        "--method",
        "quadtree",
        "--set",
        "height=1",
    )
    assert "created by another process" in fails(6, *args)
    assert (files(out.parent), out.read_bytes()) == ([out.name], b"of somebody else")


@pytest.mark.parametrize("missing", ["-o", "--epsilon", "--bounds", "points"])
def test_what_has_to_be_given(points, out, missing):
    parts = {"points": [points], "-o": ["-o", out], "--epsilon": ["--epsilon", 1]}
    parts["--bounds"] = BOUNDS
    args = [part for name in parts if name != missing for part in parts[name]]
    assert (missing if missing != "points" else "INPUTS") in fails(2, "build", *args)


def test_no_message_of_a_failed_build_quotes_the_file(tmp_path, out):
    private = "private-7319"
    rows = [(1, 1), (private, 2)]
    points = write_points(tmp_path / "p.csv", rows)
    assert private not in fails(8, "build", points, "-o", out, "--epsilon", 1, *BOUNDS)
    points.write_text(f'lon,lat\n1,1\n"{private},2\n')
    assert private not in fails(8, "build", points, "-o", out, "--epsilon", 1, *BOUNDS)


def test_as_a_process(tmp_path):
    name = "서울 [방문]*?.csv"
    write_points(tmp_path / name, ROWS)
    write_points(tmp_path / "서울 방문xx.csv", ROWS)  # what the name would match as a pattern
    args = (name, "-o", "공개.psd.parquet", *CERTAIN, "--set", "height=1", *BOUNDS)
    ended = process("build", *args, cwd=tmp_path)
    assert (ended.returncode, without_request_warnings(ended.stderr)) == (0, "")
    assert ended.stdout == "wrote 공개.psd.parquet: quadtree, epsilon 1000 per record\n"
    assert counts(tmp_path / "공개.psd.parquet") == [1, 2, 3, 0]


@pytest.mark.parametrize(
    ("arguments", "view"),
    [
        ((), psd.method("auto").post_processing),
        (("--method", "cascade"), psd.method("cascade").post_processing),
        (("--method", "quadtree"), PostProcessing()),
        (
            ("--method", "quadtree", "--set", "estimate=posterior"),
            PostProcessing(estimate="posterior"),
        ),
        (("--method", "quadtree", "--set", "density=smooth"), PostProcessing(density="smooth")),
        (
            ("--method", "cascade", "--set", "estimate=least-squares", "--set", "density=uniform"),
            PostProcessing(),
        ),
    ],
)
def test_the_view_is_what_was_asked_for_or_what_the_method_wants(points, out, arguments, view):
    passes("build", points, "-o", out, "--epsilon", "1", *BOUNDS, *arguments)
    assert psd.Release.load(out).post_processing == view


@pytest.mark.parametrize(
    ("option", "value", "others"),
    [
        ("estimate", "mean", "least-squares, posterior"),
        ("estimate", " ", "least-squares, posterior"),
        ("density", "posterior", "uniform, smooth"),
        ("density", "Smooth", "uniform, smooth"),
    ],
)
def test_an_unknown_view_is_refused(points, out, option, value, others):
    setting = ("--set", f"{option}={value}")
    told = fails(2, "build", points, "-o", out, "--epsilon", "1", *BOUNDS, *setting)
    assert option in told
    assert others in told
    assert files(out.parent) == []
