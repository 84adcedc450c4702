"""psd info: parameters and guarantee of a release."""

import json

import pytest

import psd
from psd.release.post_processing import PostProcessing
from support.cli_runner import BOUNDS, fails, files, passes, process, three_by_three, write_points


@pytest.fixture
def release(tmp_path):
    path = tmp_path / "r.psd.parquet"
    three_by_three().save(path)
    return path


def test_json_holds_the_facts(release):
    facts = json.loads(passes("info", release, "--format", "json"))
    levels = facts.pop("levels")
    assert facts == {
        "about": {},
        "method": "grid",
        "parameters": {},
        "epsilon": "1",
        "unit": "record",
        "guarantee": "epsilon 1 per record",
        "source": "curator",
        "counts": "records",
        "max_contributions": 1,
        "time_zone": "none",
        "bounds": [-4.0, -4.0, 5.0, 5.0],
        "crs": "EPSG:4326",
        "lattice": [3, 3],
        "coordinate_resolution": "none",
        "min_cell": "none",
        "cells": len(psd.Release.load(release).tree),
        "leaves": 9,
        "estimated_total": 22.0,
        "total_perturbation_error": pytest.approx(4.1, abs=0.05),  # sqrt(9 * 1.841)
        "estimate": "least-squares",
        "density": "uniform",
        "covariate": "none",
        "boundary": "none",
        "library": psd.__version__,
        "digest": psd.Release.load(release).digest,
    }
    assert [level["level"] for level in levels] == list(range(len(levels)))
    assert sum(level["cells"] for level in levels) == facts["cells"]
    assert sum(level["measured"] for level in levels) == 9
    assert (levels[0]["epsilon"], levels[0]["noise_per_cell"]) == ("0", None)
    assert (levels[-1]["epsilon"], levels[-1]["noise_per_cell"]) == ("1", 1.36)


def test_the_table_of_levels_says_what_epsilon_adds_up_to(release):
    shown = passes("info", release)
    assert "On every path from the root\nto a leaf, epsilon adds up to at most 1.\n" in shown


def test_a_release_per_user_says_how_many_rows(tmp_path):
    points = write_points(tmp_path / "p.csv", [("a", 1, 1)], "id,lon,lat")
    out = tmp_path / "u.psd.parquet"
    extra = ("--user", "id", "--max-contributions", 7, "--method", "grid", "--set", "size=2")
    passes("build", points, "-o", out, "--epsilon", "0.25", *BOUNDS, *extra)
    facts = json.loads(passes("info", out, "--format", "json"))
    assert (facts["unit"], facts["max_contributions"], facts["epsilon"]) == ("user", 7, "0.25")
    assert facts["parameters"] == {"size": 2, "total_share": "0.02", "workload": None}


def test_table_shows_the_same(release):
    text = passes("info", release)
    facts = json.loads(passes("info", release, "--format", "json"))
    for name, value in facts.items():
        assert name in ("levels", "about") or name in text
        if isinstance(value, str | int | float):
            assert str(value) in text
    last = text[: text.index("\nColumn epsilon")].splitlines()[-1]
    assert last.split()[0] == str(facts["levels"][-1]["level"])


def test_the_view_is_shown(tmp_path):
    path = tmp_path / "v.psd.parquet"
    three_by_three().with_post_processing(
        PostProcessing(estimate="posterior", density="smooth")
    ).save(path)
    facts = json.loads(passes("info", path, "--format", "json"))
    assert (facts["estimate"], facts["density"]) == ("posterior", "smooth")
    shown = [line.split() for line in passes("info", path).splitlines()]
    assert ["estimate", "posterior"] in shown
    assert ["density", "smooth"] in shown


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="missing"),
        pytest.param(b"", id="empty"),
        pytest.param(b"lon,lat\n1,2\n", id="csv"),
        pytest.param(b"PAR1" + b"\0" * 50 + b"PAR1", id="parquet-in-name-only"),
    ],
)
def test_no_release(tmp_path, content):
    if content is not None:
        (tmp_path / "r").write_bytes(content)
    assert str(tmp_path / "r") in fails(5, "info", tmp_path / "r")


def test_other_parquet_is_no_release(tmp_path, release):
    passes("export", release, tmp_path / "cells.parquet")
    assert "no psd header" in fails(5, "info", tmp_path / "cells.parquet")


def test_as_a_process(release):
    ended = process("info", release)
    assert (ended.returncode, ended.stderr, ended.stdout) == (0, "", passes("info", release))
    assert files(release.parent) == [release.name]
