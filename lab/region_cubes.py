"""Errors of regions in windows of a cube, beside those of a release of regions for each slice.

    python lab/region_cubes.py [--sets city] [--epsilons .1,1] [--builds 2] [--wards 24]
        [--districts 5] [--records 418000] [--slices FIRST..LAST] [--data FOLDER]
        [-o docs/measured/data/region-cubes.csv]

Sets are those of ``lab/cube.py``. Wards are squares, `--wards` of them a side, in districts;
windows of each length are placed on records, and every region of both levels is asked. For each
class: the mean absolute errors of both, in records; the share of 95 % intervals of the cube that
hold the truth, in percent; and the predicted over the true root mean square of its errors. The last
row of a set has the geometric means of the errors.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import geopandas
import numpy as np
import pandas as pd
import shapely
from common import study, write_table
from cube import SEED, Timed, part, sets
from numpy.typing import NDArray

import psd

HEADER = ("data", "epsilon", "window", "level")
FIGURES = ("error of slices", "error of the cube", "covered", "predicted over true")
STARTS = 6

Counts = NDArray[np.int64]


def hierarchy(one: Timed, wards: int, districts: int) -> geopandas.GeoDataFrame:
    """Square wards in districts, row by row from the south-west."""
    west, south, east, north = one.bounds
    x, y = np.linspace(west, east, wards + 1), np.linspace(south, north, wards + 1)
    row, column = np.divmod(np.arange(wards**2), wards)
    table = {
        "ward": [f"w{r}-{c}" for r, c in zip(row, column, strict=True)],
        "district": [
            f"d{r * districts // wards}-{c * districts // wards}"
            for r, c in zip(row, column, strict=True)
        ],
    }
    shapes = shapely.box(x[column], y[row], x[column + 1], y[row + 1])
    return geopandas.GeoDataFrame(table, geometry=shapes, crs=4326)


def true_counts(one: Timed, wards: int) -> tuple[Counts, Counts]:
    """Records of each ward in each slice, and the slices of all records inside."""
    low, size = np.array(one.bounds[:2]), np.subtract(one.bounds[2:], one.bounds[:2])
    cell = ((one.table[["lon", "lat"]].to_numpy() - low) / size * wards).astype(int)
    when = one.slices.index(one.table.time.to_numpy().astype("datetime64[us]"))
    inside = (when >= 0) & (cell >= 0).all(axis=1) & (cell < wards).all(axis=1)
    counts = np.zeros((wards**2, len(one.slices)), np.int64)
    np.add.at(counts, (cell[inside, 1] * wards + cell[inside, 0], when[inside]), 1)
    return counts, when[inside]


def rows(options: argparse.Namespace, one: Timed) -> Iterator[tuple[str, ...]]:
    """Rows of a set."""
    table = hierarchy(one, options.wards, options.districts)
    counts, slices_of = true_counts(one, options.wards)
    true = {
        level: pd.DataFrame(counts).groupby(table[level].to_numpy(), sort=False).sum()
        for level in ("district", "ward")
    }
    random, windows = np.random.default_rng(SEED), {}
    for width in one.widths:
        first = random.choice(slices_of, STARTS) - random.integers(0, width, STARTS)
        windows[width] = np.unique(np.clip(first, 0, len(one.slices) - width)).tolist()
    for epsilon in options.epsilons:
        how = {
            "epsilon": epsilon, "bounds": one.bounds, "slices": one.slices, "time": "time",
            "regions": table, "region_id": "ward", "region_parent": "district",
        }  # fmt: skip
        builds = {
            method: [psd.build(one.table, method=method, **how) for _ in range(options.builds)]
            for method in ("none", "cube")
        }
        errors: dict[str, list[float]] = {"none": [], "cube": []}
        for width, starts in windows.items():
            names = [one.slices.names[start : start + width] for start in starts]
            when = [each[0] if width == 1 else ",".join(each) for each in names]
            for level, exact in true.items():
                sums = [exact.iloc[:, start : start + width].sum(axis=1) for start in starts]
                found = {}
                for method, releases in builds.items():
                    answers = pd.concat(
                        [each.query(level=level, when=when).table for each in releases]
                    )
                    answers["true"] = np.tile(
                        np.concatenate([each[answers["id"][: len(exact)]] for each in sums]),
                        options.builds,
                    )
                    found[method] = answers
                    off = (answers["estimate"] - answers["true"]).abs().mean()
                    errors[method].append(float(off))
                cubes = found["cube"]
                holds = (cubes.lower <= cubes.true) & (cubes.true <= cubes.upper)
                ratio = (cubes.error**2).mean() / ((cubes.estimate - cubes.true) ** 2).mean()
                yield (
                    one.name, epsilon, str(width), level,
                    f"{errors['none'][-1]:.2f}", f"{errors['cube'][-1]:.2f}",
                    f"{100 * holds.mean():.1f}", f"{ratio**0.5:.2f}",
                )  # fmt: skip
        means = (f"{np.exp(np.log(each).mean()):.3f}" for each in errors.values())
        yield (one.name, epsilon, "all", "all", *means, "", "")


def main() -> None:
    parser = study(__doc__, epsilons="0.1,1", builds=2)
    parser.add_argument("--sets", default="city", help="city, london, andorra, with commas")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder of london and andorra")
    parser.add_argument("--wards", type=int, default=24, help="a side of the area")
    parser.add_argument("--districts", type=int, default=5, help="a side of the area")
    parser.add_argument("--records", type=int, default=418_000, help="of the made-up city")
    parser.add_argument("--slices", help="of the sets, in place of all")
    options = parser.parse_args()
    chosen = sets(options)
    if options.slices:
        chosen = (part(one, options.slices)._replace(name=options.slices) for one in chosen)
    every = (row for one in chosen for row in rows(options, one))
    write_table(options.output, HEADER + FIGURES, every)


if __name__ == "__main__":
    main()
