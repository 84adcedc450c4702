"""Make a city of 504 hours whose daily profile differs by place: 418,000 records.

Homes are left in the morning and come back to in the evening, offices are full on weekdays, bars at
night on weekends, and a market once a week. Nothing is of a real place.

    python data/hours/generate.py OUTPUT.csv [RECORDS] [SEED]
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd

HOURS, FIRST = 504, "2024-01-01"  # a Monday
BOUNDS = (126.80, 37.45, 127.10, 37.69)


def city(records: int = 418_000, seed: int = 1) -> pd.DataFrame:
    """Longitude, latitude, time and kind of place of records."""
    rng = np.random.default_rng(seed)
    hour = np.arange(24)
    bump = lambda at, width: np.exp(-(((hour - at + 12) % 24 - 12) ** 2) / (2 * width**2))  # noqa: E731
    day = np.arange(HOURS) // 24 % 7
    kinds = {
        "home": (bump(8, 1.5) + bump(20, 2.5) + 0.05, np.array([1, 1, 1, 1, 1, 1.2, 1.2])),
        "office": (bump(9, 1) + bump(13, 1.5) + bump(18, 1.2) + 0.01, [1, 1, 1, 1, 1, 0.15, 0.1]),
        "bar": (bump(22, 2) + bump(1, 1.5) + 0.01, [0.4, 0.4, 0.5, 0.7, 1.5, 2.0, 0.8]),
        "market": (bump(11, 2.5) + 0.002, [0, 0, 0, 0, 0, 1, 0]),
    }
    names = list(kinds)
    # Places: sizes by a power law, widths from a house to a quarter.
    places = 600
    weight = rng.pareto(1.1, places) + 0.2
    kind = rng.choice(len(names), places, p=[0.5, 0.3, 0.15, 0.05])
    center = rng.normal([126.95, 37.57], [0.045, 0.035], (places, 2))
    width = np.exp(rng.uniform(np.log(0.0003), np.log(0.008), places))
    profile = np.stack(
        [np.tile(kinds[name][0], HOURS // 24) * np.asarray(kinds[name][1])[day] for name in names]
    )
    profile /= profile.sum(axis=1, keepdims=True)
    place = rng.choice(places, records, p=weight / weight.sum())
    spread = rng.standard_normal((records, 2)) * width[place, None]
    point = center[place] + spread
    when = np.empty(records, np.int64)
    for number in range(len(names)):
        at = np.flatnonzero(kind[place] == number)
        when[at] = rng.choice(HOURS, len(at), p=profile[number])
    seconds = when * 3600 + rng.integers(0, 3600, records)
    keep = (point > BOUNDS[:2]).all(axis=1) & (point < BOUNDS[2:]).all(axis=1)
    table = pd.DataFrame(
        {
            "lon": point[keep, 0].round(6),
            "lat": point[keep, 1].round(6),
            "time": pd.Timestamp(FIRST) + pd.to_timedelta(seconds[keep], unit="s"),
            "kind": np.array(names)[kind[place[keep]]],
        }
    )
    return table.sort_values("time", ignore_index=True)


if __name__ == "__main__":
    output, *rest = sys.argv[1:]
    city(*map(int, rest)).to_csv(output, index=False)
