"""psd build and psd query on real data, where the folder with it is at hand."""

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import psd
from support.cli_runner import passes, write_points

FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "data"

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the real data sets are not there: folder shared/data missing"
)

# Public boxes: west, south, east, north; further options; rows in the box, kept ones.
SETS = {
    "uk_road_accidents": ((-7.6, 49.8, 1.9, 60.9), (), 140_029),
    "london_stop_search": ((-0.55, 51.25, 0.35, 51.72), (), 142_493),
    "osm_andorra_2016": (
        (1.40, 42.42, 1.79, 42.66),
        ("--user", "user_id", "--max-contributions", 20),
        189_022,
    ),
}
AREAS = (1e-4, 1e-3, 1e-2, 1e-1)


def rows_inside(name):
    """All rows of a set, and which of them lie in its box."""
    west, south, east, north = SETS[name][0]
    table = pd.read_csv(FOLDER / f"{name}.csv")
    return table, table["lon"].between(west, east) & table["lat"].between(south, north)


def kept_count(name):
    """True number of rows that a build keeps."""
    table, inside = rows_inside(name)
    if not SETS[name][1]:
        return int(inside.sum())
    return int(table[inside].groupby("user_id").size().clip(upper=20).sum())


def workload(name, per_class=25):
    """Boxes of four areas, half of them with a random place and half around random points."""
    (west, south, east, north), rng = SETS[name][0], np.random.default_rng(11)
    table, inside = rows_inside(name)
    scale, corner = np.array([east - west, north - south]), np.array([west, south])
    points = (table.loc[inside, ["lon", "lat"]].to_numpy() - corner) / scale
    boxes = []
    for centred in (False, True):
        for area in AREAS:
            aspect = np.exp(rng.uniform(np.log(0.25), np.log(4), per_class))
            width = np.minimum(np.sqrt(area * aspect), 1)
            size = np.stack([width, area / width], axis=1)
            middle = rng.choice(points, per_class) if centred else rng.uniform(size=size.shape)
            low = np.clip(middle, size / 2, 1 - size / 2) - size / 2
            boxes.append(np.hstack([corner + low * scale, corner + (low + size) * scale]))
    return np.concatenate(boxes)


@pytest.mark.parametrize("method", ["grid", "quadtree"])
@pytest.mark.parametrize("name", SETS)
def test_build_and_query(tmp_path, name, method):
    bounds, unit, rows = SETS[name]
    assert len(rows_inside(name)[0]) == rows
    out = tmp_path / "r.psd.parquet"
    args = (FOLDER / f"{name}.csv", "-o", out, "--epsilon", 1, "--bounds", *bounds, *unit)
    passes("build", *args, "--method", method)
    whole = passes("query", out, "--box", *bounds, "--format", "csv")
    answer = pd.read_csv(io.StringIO(whole)).iloc[0]
    assert answer["nonuniformity_error"] == 0
    assert abs(answer["estimate"] - kept_count(name)) <= 6 * answer["perturbation_error"]
    assert psd.Release.load(out).unit.max_contributions == (20 if unit else 1)

    boxes = workload(name)
    path = write_points(tmp_path / "boxes.csv", boxes.tolist(), "west,south,east,north")
    answers = pd.read_csv(io.StringIO(passes("query", out, "--boxes", path, "--format", "csv")))
    assert len(answers) == len(boxes) == 8 * 25
    numbers = answers.drop(columns=["id", "quality"]).to_numpy(float)
    assert not np.isnan(numbers).any()
    relative = [name for name in answers if name.startswith("relative")]
    assert np.isfinite(answers.drop(columns=["id", "quality", *relative]).to_numpy(float)).all()
    assert (answers["error"] > 0).all()
