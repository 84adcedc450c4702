"""psd build and psd query on real data, where the folder with it is at hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import psd
from support.cli_runner import as_table, passes, write_points
from support.real_sets import BOUNDS

FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "data"

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(
        not FOLDER.is_dir(), reason="the real data sets are not there: folder shared/data missing"
    ),
]

USER = ("--user", "user_id", "--max-contributions", 20)
ROWS = {
    "uk_road_accidents": ((), 140_029),
    "london_stop_search": ((), 142_493),
    "osm_andorra_2016": (USER, 189_022),
}


def workload(inside, name, per_class=25):
    """Boxes of four areas, half of them with a random place and half around random points."""
    (west, south, east, north), rng = BOUNDS[name], np.random.default_rng(11)
    scale, corner = np.array([east - west, north - south]), np.array([west, south])
    points = (inside[["lon", "lat"]].to_numpy() - corner) / scale
    boxes = []
    for centred in (False, True):
        for area in (1e-4, 1e-3, 1e-2, 1e-1):
            aspect = np.exp(rng.uniform(np.log(0.25), np.log(4), per_class))
            width = np.minimum(np.sqrt(area * aspect), 1)
            size = np.stack([width, area / width], axis=1)
            middle = rng.choice(points, per_class) if centred else rng.uniform(size=size.shape)
            low = np.clip(middle, size / 2, 1 - size / 2) - size / 2
            boxes.append(np.hstack([corner + low * scale, corner + (low + size) * scale]))
    return np.concatenate(boxes)


@pytest.mark.parametrize("method", ["grid", "quadtree"])
@pytest.mark.parametrize("name", ROWS)
def test_build_and_query(here, name, method):
    unit, rows = ROWS[name]
    west, south, east, north = bounds = BOUNDS[name]
    table = pd.read_csv(FOLDER / f"{name}.csv")
    assert len(table) == rows
    inside = table[table["lon"].between(west, east) & table["lat"].between(south, north)]
    kept = inside.groupby("user_id").size().clip(upper=20).sum() if unit else len(inside)
    build = f"build -o r --epsilon 1 --method {method}"
    passes(build, FOLDER / f"{name}.csv", "--bounds", *bounds, *unit)
    answer = as_table("query r --box", *bounds).iloc[0]
    assert answer["nonuniformity_error"] == 0
    assert abs(answer["estimate"] - kept) <= 6 * answer["perturbation_error"]
    assert psd.Release.load("r").unit.max_contributions == (20 if unit else 1)

    boxes = workload(inside, name)
    write_points(here / "boxes.csv", boxes.tolist(), "west,south,east,north")
    answers = as_table("query r --boxes boxes.csv").drop(columns=["id", "quality"])
    assert len(answers) == len(boxes) == 8 * 25
    assert not answers.astype(float).isna().any(axis=None)
    relative = [name for name in answers if name.startswith("relative")]
    assert np.isfinite(answers.drop(columns=relative).to_numpy(float)).all()
    assert (answers["error"] > 0).all()
