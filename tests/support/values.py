"""Releases of a value of invented rides: cheap ones in the west, dear ones in the east."""

import numpy as np
import pandas as pd

import psd
from psd.testing import SeededSampler

BOUNDS = (126, 37, 127, 38)


def rides(n=20_000, seed=3):
    """Rides, most of them around one place, with a fare, and a balance of any sign."""
    rng = np.random.default_rng(seed)
    x, y = 126.4 + 0.1 * rng.normal(size=n), 37.5 + 0.1 * rng.normal(size=n)
    fare = 10 + 60 * np.clip(x - 126.3, 0, 0.5) + rng.normal(0, 2, n)
    frame = pd.DataFrame({"lon": x, "lat": y, "fare": fare, "balance": 5 - fare})
    return frame[frame.lon.between(126, 127) & frame.lat.between(37, 38)].reset_index(drop=True)


def of_values(data=None, **how):
    """Release of fares from 0 to 60, as an unseeded build makes it."""
    given = {"values": {"fare": (0, 60)}, "epsilon": 1, "method": "grid", "set": {"size": 8}, **how}
    if "domain" not in given:
        given["bounds"] = BOUNDS
    release = psd.build(rides() if data is None else data, sampler=SeededSampler(7), **given)
    return type(release)(_drawn(release.record))


def _drawn(record):
    """A record as if its noise were that of the system; a seeded one is not exported."""
    from dataclasses import replace

    if hasattr(record, "releases"):
        return replace(record, releases=tuple(map(_drawn, record.releases)))
    return replace(record, source="curator")
