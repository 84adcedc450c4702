"""Points in a square, most of them in one corner, and boxes over it, for tests of evaluations."""

import numpy as np
import pandas as pd
import pytest

import psd

DOMAIN = psd.Domain(bounds=(0, 0, 10, 10), crs="EPSG:3857")
FAST = ("grid", "quadtree")
METHODS = [pytest.param(n, marks=[] if n in FAST else pytest.mark.deep) for n in psd.methods()]
BOXES = np.array([(0.0, 0, 10, 10), (1, 1, 4, 7), (3.3, 2.1, 3.9, 9.5), (9, 9, 9.5, 9.5)])


def points(size=3_000, users=40, seed=5):
    """Points of users, of which some have very many."""
    random = np.random.default_rng(seed)
    lon, lat = random.beta(2, 5, size) * 10, random.beta(5, 2, size) * 10
    return pd.DataFrame({"lon": lon, "lat": lat, "user_id": random.zipf(1.6, size) % users})


def built(rows, method="grid", epsilon=1, **options):
    """A release of points over the square."""
    return psd.build(rows, domain=DOMAIN, epsilon=epsilon, method=method, **options)
