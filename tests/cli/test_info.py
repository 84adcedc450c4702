"""psd info: parameters and guarantee of a release."""

import subprocess
import sys

import pytest

import psd
from psd.release.post_processing import PostProcessing
from support.cli_runner import BOUNDS, as_json, fails, passes, three_by_three, write_points


def test_json_and_tables_hold_the_facts(release):
    facts = as_json("info", release)
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
        "place": "Ghana; middle 0.5 N 0.5 E",
        "lattice": [3, 3],
        "coordinate_resolution": "none",
        "min_cell": "none",
        "cells": len(psd.load(release).tree),
        "leaves": 9,
        "estimated_total": 22.0,
        "total_perturbation_error": pytest.approx(4.1, abs=0.05),  # sqrt(9 * 1.841)
        "estimate": "least-squares",
        "density": "uniform",
        "covariate": "none",
        "boundary": "none",
        "library": psd.__version__,
        "digest": psd.load(release).digest,
    }
    assert [level["level"] for level in levels] == list(range(len(levels)))
    assert sum(level["cells"] for level in levels) == facts["cells"]
    assert sum(level["measured"] for level in levels) == 9
    assert (levels[0]["epsilon"], levels[0]["noise_per_cell"]) == ("0", None)
    assert (levels[-1]["epsilon"], levels[-1]["noise_per_cell"]) == ("1", 1.36)
    text, facts = passes("info", release), as_json("info", release)
    for name, value in facts.items():
        assert name in ("levels", "about") or name in text
        if isinstance(value, str | int | float):
            assert str(value) in text
    last = text[: text.index("\nColumn epsilon")].splitlines()[-1]
    assert last.split()[0] == str(facts["levels"][-1]["level"])
    assert "On every path from the root\nto a leaf, epsilon adds up to at most 1.\n" in text


def test_rows_per_user_and_the_view_are_shown_and_no_release(here, release, subtests):
    write_points(here / "p.csv", [("a", 1, 1)], "id,lon,lat")
    build = "build p.csv -o u --user id --max-contributions 7 --method grid --set size=2"
    passes(build, "--epsilon", "0.25", *BOUNDS)
    facts = as_json("info u")
    assert (facts["unit"], facts["max_contributions"], facts["epsilon"]) == ("user", 7, "0.25")
    assert facts["parameters"] == {"size": 2, "total_share": "0.02", "workload": None}
    view = PostProcessing(estimate="posterior", density="smooth")
    three_by_three().replace(post_processing=view).save("v")
    facts = as_json("info v")
    assert (facts["estimate"], facts["density"]) == ("posterior", "smooth")
    shown = [line.split() for line in passes("info v").splitlines()]
    assert ["estimate", "posterior"] in shown
    assert ["density", "smooth"] in shown
    path = release.parent / "r"
    for content in (None, b"", b"lon,lat\n1,2\n", b"PAR1" + b"\0" * 50 + b"PAR1"):
        with subtests.test(str(content)):
            if content is not None:
                path.write_bytes(content)
            assert str(path) in fails(5, "info", path)
    passes("export", release, "cells.parquet")
    assert "no psd header" in fails(5, "info cells.parquet")


@pytest.mark.parametrize("words", [("info",), ("query", "--box", "0", "0", "1", "1")])
def test_starts_without_tables_of_shapes(release, words):
    """GeoPandas takes longer to import than the whole command needs."""
    script = """
import sys
from psd_cli.main import run
try:
    run(sys.argv[1:])
finally:
    heavy = {"geopandas", "duckdb", "matplotlib", "scipy"} & {*sys.modules}
    assert not heavy, heavy
"""
    command, *rest = words
    subprocess.run([sys.executable, "-c", script, command, release, *rest], check=True)
