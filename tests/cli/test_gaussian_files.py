"""What readers do with files of Gaussian noise: each verb works, and files state the claim."""

import json
import math

import pandas as pd
import pytest

import psd
from psd.errors import ParameterError
from support.cli_runner import as_json, fails, passes

AREA = ("--bounds", 0, 0, 8, 8, "--crs", "EPSG:3857")
TREE = ("--method", "quadtree", "--set", "height=3", "--epsilon", 1)
GAUSSIAN = ("--delta", "1e-6", "--noise", "gaussian")
USER = ("--user", "user", "--max-contributions", 4, "--max-per-slice", 1)
DAYS = ("--time", "time", "--slices", "2024-01-01..2024-01-04")
BOX = ("--box", 1, 1, 5, 6)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two Gaussian releases, one of Laplace noise and a Gaussian series of the same records."""
    folder = tmp_path_factory.mktemp("gaussian")
    rows = "".join(
        f"u{n % 90},{n % 8 + 0.5},{n * 3 % 8 + 0.5},2024-01-{n % 4 + 1:02d}\n" for n in range(2_000)
    )
    (folder / "v.csv").write_text("user,lon,lat,time\n" + rows)
    series = (*GAUSSIAN, *USER, *DAYS)
    for name, words in zip(
        ("first", "second", "plain", "series"), (GAUSSIAN, GAUSSIAN, (), series), strict=True
    ):
        out = folder / f"{name}.psd.parquet"
        passes("build", folder / "v.csv", "-o", out, *AREA, *TREE, *words)
    return {path.name.partition(".")[0]: path for path in folder.iterdir()}


def test_signatures_and_every_format_state_the_claim(files, here, subtests):
    passes("sign new office.pem")
    for name in ("first", "series"):
        (here / name).write_bytes(files[name].read_bytes())
        passes("sign file", name, "--key", "office.pem")
        told = passes("sign check", name, "--key", "office.pub.pem")
        assert "the content matches the signature" in told
    for ending in ("csv", "geojson", "gpkg", "parquet", "npy", "xlsx"):
        with subtests.test(ending):
            exported(files, here, ending)
    for name in ("first", "day"):
        facts = json.loads((here / f"{name}.geojson").read_text())["metadata"]
        assert (facts["epsilon"], facts["delta"]) == ("1", "1e-6")
        assert facts["rho"] == "0.024355970359"


def exported(files, here, ending):
    passes("export", files["first"], f"first.{ending}")
    passes("export", files["series"], f"day.{ending}", "--slice", "2024-01-02")


@pytest.mark.deep
def test_rasters_are_written(files, here):
    exported(files, here, "tif")


@pytest.mark.parametrize("other", ["second", "plain"])
def test_differences_add_the_variances_of_both_laws(files, other):
    (row,) = as_json("query", files["first"], "--difference", files[other], *BOX)
    parts = [as_json("query", files[name], *BOX)[0] for name in ("first", other)]
    for kind in ("perturbation_error", "nonuniformity_error"):
        assert row[kind] == pytest.approx(math.hypot(*(part[kind] for part in parts)), rel=1e-6)
    assert row["lower"] < row["difference"] < row["upper"]
    (share,) = as_json("query", files["first"], "--difference", files[other], *BOX, "--ratio")
    assert share["lower"] < share["ratio"] < share["upper"]


def test_slices_have_differences_quantiles_and_top_cells(files):
    slices = ("--when", "2024-01-01", "--other-slice", "2024-01-03")
    (row,) = as_json("query", files["series"], "--difference", files["series"], *slices, *BOX)
    assert row["error"] > 0
    for name, words in (("first", ()), ("series", ("--when", "2024-01-02"))):
        assert all(
            row["error"] >= 0 for row in as_json("query", files[name], "--quantiles", *words)
        )
        best = as_json("query", files[name], "--top", 10, *words)
        assert all(row["error"] > 0 and 0 <= row["probability"] <= 1 for row in best)
    series = psd.load(files["series"])
    answers = pd.concat([series[name].query([(1, 1, 5, 6)]).table for name in series])
    assert answers["estimate"].tolist() == (
        series.query([(1, 1, 5, 6)], each="slice")["estimate"].tolist()
    )


def test_releases_with_a_delta_are_not_joined_to_a_series(files, here):
    first, plain = psd.load(files["first"]), psd.load(files["plain"])
    slices = psd.TimeSlices.parse("day", "2024-01-01..2024-01-02")
    for releases in ([first, first], [plain, first]):
        with pytest.raises(ParameterError, match="got one with a delta; build a series with"):
            psd.Release.from_slices(slices, releases)
    assert psd.Release.from_slices(slices, [plain, plain]).epsilon == 2
    told = fails(2, "tally", files["first"], files["second"], "-o", "m.tally")
    assert "--bounds must be given; only tallies and regions state their own" in told
