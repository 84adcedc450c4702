"""Wards: the five districts of `districts.geojson`, each cut into nine.

Made-up regions for `docs/guide/regions.md`; they follow no administrative border. Their residents
are made up as well: fewer, the farther a ward is from the centre.
"""

import json
import math
import os
from pathlib import Path

FOLDER = Path(__file__).parent
DISTRICTS, OUTPUT = FOLDER / "districts.geojson", FOLDER / "wards.geojson"
PARTS = 3  # along each side of a district
CENTRE, KM = (126.978, 37.5665), (88.3, 111.0)  # a degree of longitude and of latitude


def corner(ring: list[list[float]], across: int, up: int) -> list[float]:
    """Point of the grid of a district, in degrees with five decimals."""
    first, second, third, fourth = ring[:4]
    s, t = across / PARTS, up / PARTS
    weights = ((1 - s) * (1 - t), s * (1 - t), s * t, (1 - s) * t)
    points = zip(weights, (first, second, third, fourth), strict=True)
    x, y = map(sum, zip(*((w * p[0], w * p[1]) for w, p in points), strict=True))
    return [round(x, 5), round(y, 5)]


def residents(outline: list[list[float]]) -> int:
    """Residents of a ward, in hundreds: 80,000 in the centre, half as many 10 km away."""
    middle = [sum(values) / 4 for values in zip(*outline[:4], strict=True)]
    away = math.hypot(*(k * (m - c) for k, m, c in zip(KM, middle, CENTRE, strict=True)))
    return 100 * round(800 * 0.5 ** (away / 10))


def wards(district: dict) -> list[dict]:
    """Wards of a district; neighbours share their corners exactly."""
    name, ring = district["properties"]["name"], district["geometry"]["coordinates"][0]
    features = []
    for number in range(PARTS**2):
        up, across = divmod(number, PARTS)
        steps = [(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)]
        outline = [corner(ring, across + s, up + t) for s, t in steps]
        properties = {
            "ward": f"{name} {number + 1}",
            "district": name,
            "residents": residents(outline),
        }
        geometry = {"type": "Polygon", "coordinates": [outline]}
        features.append({"type": "Feature", "properties": properties, "geometry": geometry})
    return features


def main() -> None:
    """Write the file in one step."""
    content = json.loads(DISTRICTS.read_text(encoding="utf-8"))
    content["name"] = "wards"
    content["features"] = [ward for item in content["features"] for ward in wards(item)]
    draft = OUTPUT.with_suffix(".geojson.part")
    lines = ",\n".join(json.dumps(ward) for ward in content.pop("features"))
    head = json.dumps(content)[:-1]
    draft.write_text(f'{head}, "features": [\n{lines}\n]}}\n', encoding="utf-8")
    os.replace(draft, OUTPUT)


if __name__ == "__main__":
    main()
