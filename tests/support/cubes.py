"""Cubes for tests: a small town over some hours, and its build."""

import numpy as np
import pandas as pd

import psd
from support.seeded_system import seeded_system

DOMAIN = psd.Domain(bounds=(0, 0, 16, 16), crs="EPSG:3857", lattice=(256, 256), min_cell=0)
SLICES = psd.TimeSlices.parse("hour", "2024-01-01T00..2024-01-02T23")


def town(records=3_000, slices=SLICES, seed=1):
    """A place that is full in the morning and one that is full in the evening, of many users."""
    rng = np.random.default_rng(seed)
    is_late = rng.integers(0, 2, records) == 1
    center = np.where(is_late[:, None], [11.3, 10.1], [4.2, 5.9])
    point = np.clip(center + rng.normal(0, 1.2, (records, 2)), 0, 15.99)
    hours = len(slices)
    day = rng.integers(0, hours // 24, records) if hours >= 24 else np.zeros(records, int)
    hour = np.clip(rng.normal(np.where(is_late, 19, 8), 2.5), 0, min(hours, 24) - 1).astype(int)
    first = np.datetime64(slices.names[0], "h")
    when = (first + day * 24 + hour).astype("datetime64[s]") + rng.integers(0, 3600, records)
    user = [f"u{n}" for n in rng.integers(0, records // 8, records)]
    return pd.DataFrame({"lon": point[:, 0], "lat": point[:, 1], "time": when, "user": user})


TEN_DAYS = psd.TimeSlices.parse("hour", "2024-01-01T00..2024-01-10T23")


def rush(records=12_000, slices=TEN_DAYS):
    """A town of ten days whose places are all full from 7 to 9, and half as full around it."""
    data, rng = town(records, slices), np.random.default_rng(2)
    hour = rng.choice([5, 6, 7, 8, 9, 10], records, p=[0.1, 0.15, 0.3, 0.3, 0.1, 0.05])
    data["time"] = data["time"].dt.floor("D") + pd.to_timedelta(hour, "h")
    return data.assign(purpose=rng.choice(["work", "home"], records))


def of_rush(slices=TEN_DAYS, **options):
    """A cube of these hours, which its cells do not tell apart; its layer of times does."""
    return cube(data=rush(slices=slices), slices=slices, **{"epsilon": 0.3, **options})


def cube(seed=1, data=None, slices=SLICES, **options):
    """A cube of the town with draws of a seed, which a file may be made of."""
    how = {"domain": DOMAIN, "epsilon": 1, "method": "cube", **options}
    with seeded_system(seed):
        return psd.build(
            town(slices=slices) if data is None else data, slices=slices, time="time", **how
        )


def of_labels(**options):
    """A cube of hours and of a tree of categories; with an epsilon of 4, of a cube for each."""
    purposes = np.random.default_rng(4).choice(["work", "home", "shop", "gym", "zoo"], 3_000)
    labels = {"daily": "", "work": "daily", "home": "daily", "shop": ""}
    data = town().assign(purpose=purposes)
    return cube(data=data, category="purpose", labels=labels, **options)
