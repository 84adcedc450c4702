"""Make the samples of rides and of homes: `python data/trips/generate.py`.

Everything is drawn by a generator with a fixed seed; no row describes a real person, ride or home.
Places are those of the sample of visits, moved by some hundred metres.
"""

from __future__ import annotations

import csv
import math
import random
from pathlib import Path

FOLDER = Path(__file__).parent
VISITS = FOLDER.parent / "seoul" / "visits.csv"
CENTRE = (127.0, 37.55)
DEGREE_KM = 110.574
RIDES, HOMES, RIDERS = 20_000, 6_000, 4_000

Place = tuple[float, float]


def places(draw: random.Random, number: int) -> list[Place]:
    """Places of visits, moved by about 300 metres."""
    with VISITS.open(newline="") as file:
        rows = draw.sample(list(csv.DictReader(file)), number)
    moved = [(draw.gauss(0, 0.003), draw.gauss(0, 0.003)) for _ in rows]
    return [
        (round(float(row["lon"]) + east, 6), round(float(row["lat"]) + north, 6))
        for row, (east, north) in zip(rows, moved, strict=True)
    ]


def distance(place: Place) -> float:
    """Kilometres from the centre."""
    east = (place[0] - CENTRE[0]) * DEGREE_KM * math.cos(math.radians(CENTRE[1]))
    return math.hypot(east, (place[1] - CENTRE[1]) * DEGREE_KM)


def rides() -> list[tuple[object, ...]]:
    """Rides that begin at places; from farther away they are longer, and at night dearer."""
    draw, rows = random.Random(53), []
    for place in places(draw, RIDES):
        hour = min(int(abs(draw.gauss(15, 5))), 23)
        length = draw.lognormvariate(math.log(3 + 0.25 * distance(place)), 0.6)
        minutes = length * draw.uniform(2, 4) * (1.4 if hour in (8, 9, 18, 19) else 1)
        fare = 4.8 + 0.9 * length + 0.12 * minutes * (1.2 if hour >= 22 else 1)
        # A meter that was not read left the fare out of some rows.
        text = "" if draw.random() < 0.01 else f"{fare:.2f}"
        day = draw.randrange(1, 32)
        time = f"2026-03-{day:02}T{hour:02}:{draw.randrange(60):02}"
        rows.append((f"r{draw.randrange(RIDERS):04}", time, *place, text, f"{minutes:.1f}"))
    return rows


def homes() -> list[tuple[object, ...]]:
    """Homes that were sold; those near the centre are dearer, and some are very dear."""
    draw, rows = random.Random(54), []
    for place in places(draw, HOMES):
        middle = 1_200_000 * math.exp(-distance(place) / 20)
        price = draw.lognormvariate(math.log(middle), 0.5)
        rows.append((*place, f"{round(price, -3):.0f}"))
    return rows


def write_rows(name: str, header: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
    """Write a CSV file."""
    with (FOLDER / name).open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


if __name__ == "__main__":
    write_rows("rides.csv", ("rider", "time", "lon", "lat", "fare", "minutes"), rides())
    write_rows("homes.csv", ("lon", "lat", "price"), homes())
