"""Queries of an evaluation."""

import numpy as np
import pandas as pd

import psd
from psd.evaluation.workload import AREAS, draw_workload

DOMAIN = psd.Domain(bounds=(0, 0, 10, 10), crs="EPSG:3857")


def points(size=3_000, users=40):
    random = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "lon": random.beta(2, 5, size) * 10,
            "lat": random.beta(5, 2, size) * 10,
            "user_id": random.zipf(1.6, size) % users,
        }
    )


def test_workload_has_eight_classes_inside_the_bounds():
    table = points()
    made = draw_workload(table["lon"].to_numpy(), table["lat"].to_numpy(), DOMAIN.bounds)
    names, sizes = np.unique(made.classes, return_counts=True)
    assert len(names) == 2 * len(AREAS)
    assert set(sizes) == {500}
    west, south, east, north = made.boxes.T
    assert west.min() >= -1e-9
    assert north.max() <= 10 + 1e-9
    area = (east - west) * (north - south) / 100
    assert np.allclose(area.reshape(2, 4, 500), np.array(AREAS)[:, None])
