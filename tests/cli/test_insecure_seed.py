"""psd build --insecure-seed: the same bytes again, never a release."""

import pytest

from support.cli_runner import cli, fails, files, passes, write_points

BOUNDS = ("--epsilon", 1, "--bounds", 0, 0, 4, 4)


@pytest.fixture
def points(tmp_path):
    return write_points(tmp_path / "points.csv", [(1, 1), (2, 3)])


def test_the_same_seed_gives_the_same_bytes(points, tmp_path):
    made = []
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        path = tmp_path / f"{name}.insecure"
        text = passes("build", points, "-o", path, *BOUNDS, "--insecure-seed", seed)
        assert text.startswith(f"wrote {path}: INSECURE, no release: auto")
        made.append(path.read_bytes())
    assert made[0] == made[1] != made[2]
    assert made[0].startswith(b'{\n "warning": "INSECURE')


def test_no_command_reads_it(points, tmp_path):
    path = tmp_path / "a.insecure"
    passes("build", points, "-o", path, *BOUNDS, "--insecure-seed", 5)
    for words in (
        ("info", path),
        ("query", path, "--box", 0, 0, 1, 1),
        ("export", path, tmp_path / "cells.csv"),
        ("evaluate", path, points),
    ):
        assert cli(*words).code == 5, words


def test_of_a_tally(points, tmp_path):
    tally, path = tmp_path / "p.tally", tmp_path / "a.insecure"
    passes("tally", points, "-o", tally, "--bounds", 0, 0, 4, 4)
    passes("build", tally, "-o", path, "--epsilon", 1, "--insecure-seed", 5)
    first = path.read_bytes()
    passes("build", tally, "-o", path, "--epsilon", 1, "--insecure-seed", 5, "--overwrite")
    assert path.read_bytes() == first


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--ledger", "l", "--dataset", "d"), "--ledger does not go with --insecure-seed"),
        (("--keep-tally", "t"), "--keep-tally does not go with --insecure-seed"),
        (("--by", "day", "--slices", "2024-01-01"), "--by does not go with --insecure-seed"),
    ],
)
def test_goes_with_nothing_that_lasts(points, tmp_path, words, told):
    path = tmp_path / "a.insecure"
    message = fails(2, "build", points, "-o", path, *BOUNDS, "--insecure-seed", 5, *words)
    assert told in message
    assert files(tmp_path) == ["points.csv"]


def test_needs_its_ending(points, tmp_path):
    path = tmp_path / "a.psd.parquet"
    message = fails(2, "build", points, "-o", path, *BOUNDS, "--insecure-seed", 5)
    assert "does not end in .insecure" in message
    assert files(tmp_path) == ["points.csv"]
