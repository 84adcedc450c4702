"""Warnings about public parameters: a large epsilon, and a release named like another file."""

import io
from contextlib import redirect_stderr

import pytest

from psd_cli.main import run
from support.cli_runner import BOUNDS, cli, passes, write_points

ENDINGS = [("r.psd.parquet", False), ("r", False), ("r.csv", True), ("R.GPKG", True)]


@pytest.fixture
def points(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_points(tmp_path / "points.csv", [(1, 1), (2, 2)])


def stderr_of(*args):
    """All of stderr, with the warnings that `cli` leaves out."""
    err = io.StringIO()
    with redirect_stderr(err):
        assert run([str(arg) for arg in args]) == 0
    return err.getvalue()


@pytest.mark.parametrize("dry_run", [[], ["--dry-run"]])
@pytest.mark.parametrize(("epsilon", "is_large"), [("10", False), ("10.5", True), ("1e2", True)])
def test_a_large_epsilon_is_a_weak_promise(points, epsilon, is_large, dry_run):
    build = ("build", points, "-o", "r", *BOUNDS, "--method", "grid", "--set", "size=2")
    told = stderr_of(*build, "--epsilon", epsilon, *dry_run)
    shown = f"{float(epsilon):g}"
    assert told.startswith(f"psd: warning: epsilon {shown} is a weak promise") == is_large
    assert (f"by a factor of e^{shown};" in told) == is_large
    assert told.count("\n") == is_large


def test_an_answer_of_a_large_epsilon_is_a_weak_promise(points):
    passes("ledger", "create", "l")
    passes("ledger", "register", "l", "visits", "--budget", 100)
    ask = ("ask", points, "--box", 0, 0, 2, 2, "--ledger", "l", "--dataset", "visits")
    assert "epsilon 11 is a weak promise" in stderr_of(*ask, "--epsilon", 11)
    assert stderr_of(*ask, "--epsilon", 1) == ""


@pytest.mark.parametrize(("name", "is_other"), ENDINGS)
def test_a_release_with_the_name_of_a_table_is_told(points, name, is_other):
    outcome = cli("build", points, "-o", name, *BOUNDS, "--epsilon", 1, "--method", "grid")
    assert outcome.code == 0
    warning = f"psd: warning: {name} will be a release file, which is Parquet whatever its name; "
    assert outcome.err.startswith(warning) == is_other
    assert outcome.err.count("\n") == is_other
