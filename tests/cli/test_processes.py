"""The installed command: what differs from a run inside this process, or could."""

import os
import subprocess
import sys

import numpy as np
import pytest

import psd
from support.cli_runner import (
    BOUNDS,
    CERTAIN,
    REQUEST_WARNINGS,
    files,
    passes,
    process,
    without_request_warnings,
    write_points,
)

pytestmark = pytest.mark.deep

SMALL = "--epsilon 1 --method quadtree --set height=1"


def python(*words):
    return subprocess.run(
        [sys.executable, *map(str, words)], capture_output=True, text=True, check=False
    )


def test_commands_print_what_they_print_in_this_process(release, subtests):
    box = "--box -4 -1 5 5 --format csv"
    for line in ("methods", "info r.psd.parquet", f"query r.psd.parquet {box}", "--version"):
        with subtests.test(line):
            ended = process(line)
            assert (ended.returncode, ended.stderr, ended.stdout) == (0, "", passes(line))
    assert files(release.parent) == [release.name]
    ended = process("query r.psd.parquet --top 2")
    assert (ended.returncode, ended.stderr) == (0, "")
    ended = process("export r.psd.parquet 칸.gpkg")
    assert (ended.returncode, ended.stderr, ended.stdout) == (0, "", "wrote 칸.gpkg\n")
    ended = process("nope")
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    for line in ("sign new k.pem", "sign file r.psd.parquet --key k.pem"):
        assert process(line).returncode == 0
    done = process("sign check r.psd.parquet --key k.pub.pem")
    assert (done.returncode, done.stderr) == (0, "")


def test_names_of_files_are_no_patterns(here):
    name = "서울 [방문]*?.csv"
    write_points(here / name, [(1, -1), (-1, 1)])
    write_points(here / "서울 방문xx.csv", [(1, 1)])  # what the name would match as a pattern
    args = (name, "-o", "공개.psd.parquet", *CERTAIN, "--set", "height=1", *BOUNDS)
    ended = process("build", *args)
    assert (ended.returncode, without_request_warnings(ended.stderr)) == (0, "")
    assert ended.stdout == "wrote 공개.psd.parquet: quadtree, epsilon 1000 per record\n"
    tree = psd.load("공개.psd.parquet").tree
    assert tree.count[tree.is_leaf].tolist() == [0, 1, 1, 0]


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
        build = f"build points.csv -o r.psd.parquet --epsilon 1 --method {method}"
        ended = process(build, *BOUNDS, cwd=folder)
        assert ended.returncode == 0
        told.add((ended.stdout, ended.stderr))
    [(out, err)] = told
    assert out == f"wrote r.psd.parquet: {method}, epsilon 1 per record\n"
    assert REQUEST_WARNINGS.sub("", err).strip() == ""  # who sees what was left out


@pytest.mark.parametrize(
    ("package", "options"),
    [
        ("duckdb", ()),
        ("pyarrow.parquet", ()),
        ("pyproj", ("--crs", "EPSG:3857", "--min-cell", "0")),  # degrees do without it
    ],
)
def test_an_interrupt_while_a_package_is_loaded_is_not_lost(here, package, options):
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
    write_points(here / "points.csv", [(1, 1)])
    build = f"build points.csv -o r {SMALL}"
    ended = python("-c", code, *build.split(), *BOUNDS, *options)
    assert (ended.returncode, ended.stdout) == (130, "")
    assert ended.stderr.count("\n") == 1
    assert files(here) == ["points.csv"]


@pytest.mark.parametrize(
    "line",
    [
        "query r.psd.parquet --boxes boxes.csv --format csv",
        "query r.psd.parquet --boxes boxes.csv",
        "info r.psd.parquet",
        "--help",
    ],
)
def test_quiet_when_the_reader_has_gone(release, line):
    boxes = [(-3, -3, east / 1000, 3) for east in range(1, 2000)]
    write_points(release.parent / "boxes.csv", boxes, "west,south,east,north")
    reader, writer = os.pipe()
    os.close(reader)
    command = [os.path.join(os.path.dirname(sys.executable), "psd"), *line.split()]
    ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_python_runs_the_package_and_its_list_of_commands_imports_none():
    ended = python("-m", "psd", "--version")
    assert (ended.returncode, ended.stdout) == (0, passes("--version"))
    script = "import sys; from psd_cli.main import run; run(['--help']); print(*sys.modules)"
    loaded = python("-c", script).stdout.splitlines()[-1].split()
    assert "psd_cli.main" in loaded
    assert not {"numpy", "psd.curator", "psd_cli.apps.planning"} & set(loaded)
