"""A method, a source and a format of another package: the files of the page, and nothing else."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import psd
import psd.testing
from psd._util import plugins
from psd.privacy.noise_laws import noise_law

PAGE = Path(__file__).resolve().parents[2] / "docs" / "contributing" / "method.md"
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
PYTHON = [text for language, text in BLOCKS if language == "python"]
STRIPES, STRIPES_TEST, BARS, LINES, OTHER_TESTS = PYTHON
(TOML,) = [text for language, text in BLOCKS if language == "toml"]
GROUPS = {
    "psd.decompositions": ("stripes", "psd_stripes", STRIPES),
    "psd.sources": ("bars", "psd_bars", BARS),
    "psd.exports": ("lines", "psd_lines", LINES),
}
BOUNDS = ("--bounds", 126.4, 37.0, 127.6, 38.0)


def register(folder, group, name, module, text):
    """Write a package as pip lays it down: a module, and a folder of metadata."""
    (folder / f"{module}.py").write_text(text, encoding="utf-8")
    metadata = folder / f"{module}-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 0.1\n")
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}\n")


def install(folder):
    """Write the packages of the page."""
    for group, (name, module, text) in GROUPS.items():
        register(folder, group, name, module, text)


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """A folder with the packages of the page, installed for this test."""
    folder = tmp_path / "installed"
    folder.mkdir()
    install(folder)
    with monkeypatch.context() as patch:
        patch.syspath_prepend(folder)
        forget()
        yield folder
    forget()


@pytest.fixture
def command(outside):
    """Runs psd where the packages are installed; output and errors as one line each."""
    paths = os.pathsep.join(filter(None, (str(outside), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": paths, "COLUMNS": "200"}

    def run(*args, code=0):
        line = [sys.executable, "-m", "psd", *map(str, args)]
        done = subprocess.run(line, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == code, done.stderr
        return " ".join((done.stdout + done.stderr).split())

    return run


def forget():
    """Let the packages be found and imported anew, as by a new process."""
    for module in ("psd_stripes", "psd_bars", "psd_lines", "psd_other", "psd_here", "psd_twin"):
        sys.modules.pop(module, None)
    importlib.invalidate_caches()
    plugins.refresh()


@pytest.fixture
def points(tmp_path):
    """A file of points."""
    table = pd.DataFrame({"lon": [126.98, 127.03, 127.5], "lat": [37.57, 37.5, 37.9]})
    table.to_csv(tmp_path / "visits.csv", index=False)
    return tmp_path / "visits.csv"


def run_tests(text):
    """Run the functions of a test file that begin with test_."""
    names = {}
    exec(compile(text, "the page", "exec"), names)
    tests = [value for name, value in names.items() if name.startswith("test_")]
    assert tests
    for test in tests:
        test()


def test_the_page_registers_what_the_test_installs():
    assert '[project.entry-points."psd.decompositions"]\nstripes = "psd_stripes"\n' in TOML
    assert len(STRIPES.splitlines()) <= 36, "the method has about 30 lines"


def test_the_method_is_built_saved_loaded_and_queried(outside, points, tmp_path):
    method = psd.decompositions.method("stripes", {"doublings": "3"})
    domain = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0))
    release = psd.build(points, domain=domain, epsilon=1, method=method)
    assert release.tree.is_leaf.sum() == 8
    release.save(tmp_path / "out.psd.parquet")
    again = psd.load(tmp_path / "out.psd.parquet")
    assert (again.method, dict(again.record.parameters)) == ("stripes", {"doublings": 3})
    boxes = [(126.4, 37.0, 127.6, 38.0), (126.5, 37.1, 127.0, 37.6)]
    pd.testing.assert_frame_equal(again.query(boxes).table, release.query(boxes).table)


@pytest.mark.deep
def test_the_method_is_listed_built_and_queried_by_the_command(command, points, tmp_path):
    assert "Columns of equal width, each counted once." in command("methods")
    out = tmp_path / "out.psd.parquet"
    setting = ("--method", "stripes", "--set", "doublings=2")
    command("build", points, *BOUNDS, "--epsilon", 1, *setting, "-o", out)
    assert "stripes" in command("info", out)
    assert "estimate" in command("query", out, "--box", 126.4, 37.0, 127.0, 38.0)


def test_a_release_of_the_method_needs_no_package_to_be_read_and_saved(
    points, tmp_path, monkeypatch
):
    folder = tmp_path / "installed"
    folder.mkdir()
    install(folder)
    out, again = tmp_path / "out.psd.parquet", tmp_path / "again.psd.parquet"
    with monkeypatch.context() as patch:
        patch.syspath_prepend(folder)
        forget()
        domain = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0))
        psd.build(points, domain=domain, epsilon=1, method="stripes").save(out)
    forget()
    assert "stripes" not in psd.methods()
    psd.load(out).save(again)
    assert again.read_bytes() == out.read_bytes()


@pytest.mark.parametrize(
    "text",
    [pytest.param(STRIPES_TEST, marks=pytest.mark.deep), OTHER_TESTS],
    ids=["method", "others"],
)
def test_the_checks_of_psd_testing_are_passed(outside, text):
    run_tests(text)


@pytest.mark.deep
def test_the_source_and_the_format_are_used_by_the_commands(command, points, tmp_path):
    table = pd.read_csv(points)
    lines = [f"{x}|{y}|somebody" for x, y in table.to_numpy().tolist()]
    (tmp_path / "visits.bars").write_text("\n".join(lines) + "\n")
    release, cells = tmp_path / "out.psd.parquet", tmp_path / "cells.jsonl"
    command("build", tmp_path / "visits.bars", *BOUNDS, "--epsilon", 1, "-o", release)
    command("export", release, cells)
    assert len(pd.read_json(cells, lines=True)) == len(psd.load(release).to_geopandas())


@pytest.mark.deep
def test_a_broken_package_is_named_and_breaks_nothing(command, outside, points, tmp_path):
    (outside / "psd_stripes.py").write_text("import a_module_that_is_not_there\n")
    fault = "psd_stripes 0.1 cannot be loaded: ModuleNotFoundError"
    assert fault in command("methods")
    out = tmp_path / "out.psd.parquet"
    build = ("build", points, *BOUNDS, "--epsilon", 1, "-o", out, "--method")
    command(*build, "quadtree")
    assert fault in command(*build, "stripes", "--overwrite", code=2)


@pytest.mark.deep
def test_a_package_cannot_take_the_name_of_a_method_of_ours(outside, command):
    register(outside, "psd.decompositions", "quadtree", "psd_other", STRIPES)
    listed = command("methods")
    assert "Note: method 'quadtree' of psd_other 0.1 is left out: psd has one" in listed
    assert "Complete quadtree with noisy counts" in listed


def test_broken_sources_and_formats_are_named_where_none_of_ours_fits(outside, tmp_path):
    for module in ("psd_bars", "psd_lines"):
        (outside / f"{module}.py").write_text("raise RuntimeError('half installed')\n")
    forget()
    domain = psd.Domain(bounds=(126, 37, 128, 38))
    with pytest.raises(psd.PsdError, match=r"source 'bars' .* cannot be loaded"):
        psd.build(object(), domain=domain, epsilon=1)
    release = psd.testing.release_from_counts([[1, 2]])
    release.export(tmp_path / "cells.csv")
    with pytest.raises(psd.PsdError, match=r"format 'lines' .* cannot be loaded"):
        release.export(tmp_path / "cells.jsonl")


ENGINE = """
from psd.ingest.sources import read
from psd.ingest.tally_builder import tally_batches


class Here:
    def tally(self, data, columns, domain, **how):
        return tally_batches(read(data, columns, domain), domain, **how)


def open_engine(url):
    assert url == "host:1"
    return Here()
"""
LAW = """
from psd.privacy.noise_laws.discrete_laplace import DiscreteLaplace

law = DiscreteLaplace()
"""


@pytest.mark.deep
def test_an_engine_and_a_noise_law_of_others_are_found(outside, command, points, tmp_path):
    register(outside, "psd.engines", "here", "psd_here", ENGINE)
    register(outside, "psd.mechanisms", "twin", "psd_twin", LAW)
    out = tmp_path / "out.psd.parquet"
    command("build", points, *BOUNDS, "--epsilon", 1, "--engine", "here:host:1", "-o", out)
    assert noise_law("twin").tail_bound(1_000_000_000, 1, outside=0.05) == 3


FAULTS = {
    "an undeclared parameter": (
        'public_field(4, integer_between(1, 12), "there are',
        'int(4) or str("there are',
    ),
    "epsilon that is left": ("curator.loss)", "curator.loss // 2)"),
    "a pick that was not declared": (
        "return curator.tree()",
        "curator.declare('columns', 4)\n        return curator.tree()",
    ),
    "a step that its cells are no multiples of": (
        "    def build(",
        "    def step(self, lattice):\n        return lattice[0] // 2 or 1, 1\n\n    def build(",
    ),
    "a look at the data": ("range(self.doublings)", "range(1 + (len(curator._tally.counts) > 1))"),
}


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, marks=[pytest.mark.deep] if "a pick" in fault else [])
        for fault in FAULTS
    ],
)
def test_the_checks_find_a_method_with(fault):
    text = STRIPES.replace(*FAULTS[fault])
    assert text != STRIPES
    names = {"__name__": "faulty"}
    exec(compile(text, "faulty", "exec"), names)
    with pytest.raises((AssertionError, psd.PsdError)):
        psd.testing.check_method(names["method"]())
