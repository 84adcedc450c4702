"""Queries of an evaluation."""

import numpy as np

from psd.evaluation.workload import AREAS, draw_workload
from support.evaluations import DOMAIN, points


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
