"""Whether intervals cover on point sets of a folder, which the constants were not chosen on.

    python lab/holdout.py FOLDER [--rows A;B] [--methods A,B] [--epsilons .1,1]
        [--runs 4] [--districts 600] [--jobs 2] [--changed] [--list] [-o table.md]

Each `NAME.csv` of the folder is a row, with the same queries, figures and bars as the coverage
matrix. Its columns are `x` and `y`, or `lon` and `lat`. A file `sets.toml` may have a table for
each name, all of whose keys may be left out:

    [NAME]
    bounds = [503000, 155000, 562000, 201000]
    crs = "EPSG:27700"
    step = 10                        # distance between the values of a coordinate
    coordinate_resolution = "10"     # declared in the releases

Without them, the CRS is EPSG:4326, the coordinates have no step, and the bounds are the extremes of
the points, rounded outward to a hundredth of the longer side. Data and results are public here.
`holdout_sets.py` makes such a folder of parts of the public data sets and of places of GeoNames.
With `--changed`, sets in EPSG:4326 without a step have all rows of the coverage matrix: rounded,
thinned, on streets, on a grid and so on. Exits with 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from coverage_matrix import INTRODUCTION, add_measuring_options, write_matrix
from variants import Bounds, Points, Variant, changed_rows

import psd

COLUMNS = (("x", "y"), ("lon", "lat"))


def folder_variants(folder: Path, *, changed: bool = False) -> Iterator[Variant]:
    """Rows of the point files of a folder, by name: one for each, or all changes of some."""
    settings = folder / "sets.toml"
    tables = tomllib.loads(settings.read_text(encoding="utf-8")) if settings.is_file() else {}
    for path in sorted(folder.glob("*.csv")):
        row = _variant(path, tables.get(path.stem, {}))
        is_plain = not row.step and row.domain.coordinate_resolution is None
        if changed and is_plain and row.domain.crs == "EPSG:4326":
            yield from changed_rows(path.stem, row.points, row.domain.bounds)
        else:
            yield row


def _variant(path: Path, table: dict[str, Any]) -> Variant:
    """Row of a point file."""
    read = cache(partial(_points, path))
    domain = psd.Domain(
        bounds=tuple(table["bounds"]) if "bounds" in table else _bounds_around(read()),
        crs=table.get("crs", "EPSG:4326"),
        coordinate_resolution=table.get("coordinate_resolution"),
    )
    declared = domain.coordinate_resolution is not None

    def inside() -> Points:
        xy = read()
        return xy[domain.quantise(xy[:, 0], xy[:, 1])[2]]

    return Variant(
        name=f"{path.stem}, declared" if declared else path.stem,
        points=inside,
        domain=domain,
        step=0.0 if declared else float(table.get("step", 0)),
    )


def _points(path: Path) -> Points:
    """Coordinates of a file; rows without both are left out."""
    table = pd.read_csv(path)
    names = next(pair for pair in COLUMNS if set(pair) <= set(table.columns))
    return table[list(names)].dropna().to_numpy(float)


def _bounds_around(xy: Points) -> Bounds:
    """Box around public points, rounded outward to a hundredth of its longer side."""
    low, high = xy.min(axis=0), xy.max(axis=0)
    unit = 10.0 ** np.floor(np.log10((high - low).max() / 10))
    west, south = np.floor(low / unit) * unit
    east, north = (np.floor(high / unit) + 1) * unit
    return float(west), float(south), float(east), float(north)


def main() -> None:
    """Print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the point files are")
    add_measuring_options(parser)
    parser.add_argument("--changed", action="store_true", help="all rows of the coverage matrix")
    parser.set_defaults(runs=4)
    options = parser.parse_args()
    source = partial(folder_variants, changed=options.changed)
    introduction = INTRODUCTION.replace("# Coverage matrix", "# Hold-out")
    sys.exit(0 if write_matrix(source, options, introduction) else 1)


if __name__ == "__main__":
    main()
