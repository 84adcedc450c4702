"""Streams of tests: a week of days over a small square, and rows of some of them."""

import json

import psd
from psd.apps.streams.plan import StreamPlan

BOUNDS = (0, 0, 8, 8)
WEEK = psd.TimeSlices.parse("day", "2026-01-05..2026-01-11")
DAYS = WEEK.names
HEADER = "lon,lat,time,user"

# Noise of this epsilon is 0 but for a chance of exp(-400).
CERTAIN = {"epsilon": 1000, "method": psd.decompositions.Grid(size=2)}


def write_rows(path, rows):
    """CSV of rows (lon, lat, time, user)."""
    lines = [HEADER, *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def day_of(folder, day, number, users=1):
    """CSV with rows of a day in the south-west quarter, by users in turn."""
    rows = [(1, 1, f"{day}T12:00:00", f"u{n % users}") for n in range(number)]
    return write_rows(folder / f"{day}.csv", rows)


def create(folder, **arguments):
    """A stream in a folder, without noise unless it is said."""
    options = {"domain": BOUNDS, "slices": WEEK, "time": "time", **CERTAIN, **arguments}
    return psd.apps.streams.Stream.create(
        folder / "city.stream", folder / "city.psd.parquet", **options
    )


def rewrite(state, facts):
    """Edit facts of an open state and its digest, as somebody who reads this would."""
    rows = dict(state.execute("SELECT name, value FROM plan")) | facts
    values = {name: json.loads(text) for name, text in rows.items() if name != "digest"}
    for name, text in StreamPlan(**values).to_rows().items():
        state.execute("UPDATE plan SET value = ? WHERE name = ?", [text, name])
    state.commit()


def totals(series):
    """Noisy totals of the slices."""
    return [round(series[name].total) for name in series]
