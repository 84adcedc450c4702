"""Make the sample of bids for fares: `python data/fares/generate.py`.

Everything is drawn by a generator with a fixed seed; no row describes a real person or a real
fare. The rings and the tariffs are round numbers that were written down before any bid was drawn.
"""

from __future__ import annotations

import csv
import json
import math
import random
from itertools import pairwise
from pathlib import Path

FOLDER = Path(__file__).parent
CENTRE = (127.0, 37.55)
BIDDERS = 3_000
RINGS_KM = (0, 3, 6, 10, 15)
DEGREE_KM = 110.574
CORNERS = 48


def offset(distance: float, angle: float) -> tuple[float, float]:
    """Point at a distance from the centre, in kilometres."""
    lon, lat = CENTRE
    east = distance * math.cos(angle) / (DEGREE_KM * math.cos(math.radians(lat)))
    return round(lon + east, 6), round(lat + distance * math.sin(angle) / DEGREE_KM, 6)


def bids() -> list[tuple[str, float, float, str]]:
    """Riders around the centre; those from farther away would pay more for a ride."""
    draw, rows = random.Random(24), []
    for number in range(BIDDERS):
        distance = min(abs(draw.gauss(0, 7)), 20.0)
        lon, lat = offset(distance, draw.uniform(0, 2 * math.pi))
        bid = draw.lognormvariate(math.log(1.5 + 0.25 * distance), 0.4)
        rows.append((f"r{number:04}", lon, lat, f"{bid:.2f}"))
    draw.shuffle(rows)
    return rows


def rings() -> dict[str, object]:
    """Rings around the centre as GeoJSON, with their distance from it."""
    features = []
    for inner, outer in pairwise(RINGS_KM):
        edges = [outer, inner] if inner else [outer]
        angles = [2 * math.pi * corner / CORNERS for corner in range(CORNERS)]
        lines = [[offset(edge, angle) for angle in angles] for edge in edges]
        outlines = [[*line, line[0]] for line in (lines[0], *(line[::-1] for line in lines[1:]))]
        features.append(
            {
                "type": "Feature",
                "properties": {"id": f"ring{outer}", "distance": outer},
                "geometry": {"type": "Polygon", "coordinates": outlines},
            }
        )
    return {"type": "FeatureCollection", "features": features}


TARIFFS = (
    ("tariff", "ring3", "ring6", "ring10", "ring15"),
    ("flat", "2", "2", "2", "2"),
    ("today", "1.5", "2", "2.5", "3"),
    ("steep", "1", "2", "3", "4"),
    ("near-free", "0.5", "1.5", "3", "4.5"),
)


def write_rows(name: str, rows: list[tuple[object, ...]]) -> None:
    """Write a CSV file."""
    with (FOLDER / name).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def main() -> None:
    """Write the three files."""
    write_rows("bids.csv", [("rider", "lon", "lat", "bid"), *bids()])
    write_rows("tariffs.csv", [*TARIFFS])
    (FOLDER / "rings.geojson").write_text(json.dumps(rings()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
