"""Whether intervals cover for small polygons around records, on rounded and other coordinates.

    python lab/polygon_coverage.py [--rows A;B] [--epsilons 1,3] [--runs 4]
        [--number 200] [--folder ../shared/data] [-o table.md]

The rows are those of the coverage matrix (`variants.py`), chosen by regular expressions that match
a part of their names. Squares have sides along the axes, and other polygons have seven corners on
a circle; both are around records, with half a width that is a share of the longer side of the
domain. Polygons whose half width is less than `STEPS` steps of the coordinates are left out. A
polygon is asked as such, not as a box. Data and results are public here.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import shapely
from accuracy import items
from coverage_matrix import loss_of, marked
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from variants import Points, Variant, variants

import psd
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import tally_batches
from psd.privacy.budget import Budget
from psd.privacy.unit import PrivacyUnit
from psd.publish.drawing import draw_release

Shapes = NDArray[np.object_]

SEED = 7
STEPS = 4
CORNERS = 7
SHARES = (0.003, 0.01, 0.03)
DEFAULT_ROWS = "as it is;3 decimals;4 decimals$;streets"
COVERED, RATIO = 0.85, (0.6, 1.6)

INTRODUCTION = """# Coverage of small polygons

Made by `{command}` (psd {version}).

The table shows the share of polygons, in percent, whose 95 % interval covers the true count, and
the root mean square of the predicted error over that of the true one, for both kinds of error.

Half widths are shares of the longer side of the domain. Figures are means of {runs} builds and
{number} polygons; one that is below {low} %, or outside {ratio}, by more than two standard errors
is marked with (!). [Coverage](coverage.md) says what the rows are.

"""


def polygons_around(xy: Points, share: float, size: float, number: int) -> dict[str, Shapes]:
    """Squares and other polygons around records."""
    random = np.random.default_rng(SEED)
    middle = xy[random.integers(0, len(xy), number)] + random.uniform(-1, 1, (number, 2)) * 1e-7
    half = share * size
    angle = np.sort(random.uniform(0, 2 * np.pi, (number, CORNERS)), axis=1)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=2)
    return {
        "squares": shapely.box(*(middle - half).T, *(middle + half).T),
        "seven corners": shapely.polygons(middle[:, None] + half * circle),
    }


def true_counts(xy: Points, shapes: Shapes) -> Points:
    """Records inside each polygon."""
    tree = cKDTree(xy)
    west, south, east, north = shapely.bounds(shapes).T
    middle = np.stack([(west + east) / 2, (south + north) / 2], axis=1)
    reach = np.hypot(east - west, north - south) / 2
    near = tree.query_ball_point(middle, reach * (1 + 1e-9))
    counts = [
        shapely.contains_xy(shape, xy[rows, 0], xy[rows, 1]).sum()
        for shape, rows in zip(shapes, near, strict=True)
    ]
    return np.array(counts, float)


def rows(variant: Variant, options: argparse.Namespace) -> list[tuple[str, ...]]:
    """Rows of a variant, for each epsilon, kind and size of polygons."""
    xy, domain = variant.points(), variant.domain
    counts = tally_batches([Batch(x=xy[:, 0], y=xy[:, 1])], domain)
    west, south, east, north = domain.bounds
    size = max(east - west, north - south)
    kinds = {
        (kind, share): (shapes, true_counts(xy, shapes))
        for share in SHARES
        if share * size > STEPS * variant.step
        for kind, shapes in polygons_around(xy, share, size, options.number).items()
    }
    method = psd.method("auto")
    found: list[tuple[str, ...]] = []
    for epsilon in options.epsilons:
        releases = [
            draw_release(
                counts,
                domain,
                budget=Budget(loss_of(epsilon, None)),
                method=method,
                unit=PrivacyUnit(),
            )
            for _ in range(options.runs)
        ]
        for (kind, share), (shapes, true) in kinds.items():
            measures = [measure(release, shapes, true) for release in releases]
            covered = marked([m[0] for m in measures], COVERED, 1.0)[1]
            ratio = marked([m[1] for m in measures], *RATIO, scale=1)[1]
            found.append((variant.name, epsilon, kind, f"{share:g}", covered, ratio))
            print(" | ".join(found[-1]), file=sys.stderr, flush=True)
    return found


def measure(release: psd.Release, shapes: Shapes, true: Points) -> tuple[float, float]:
    """Share that is covered, and predicted over true error."""
    answers = release.query(shapes, crs=release.domain.crs)
    lower, upper, estimate, error = (
        answers[name].to_numpy() for name in ("lower", "upper", "estimate", "error")
    )
    covered = float(((lower <= true) & (true <= upper)).mean())
    return covered, float(((error**2).mean() / ((estimate - true) ** 2).mean()) ** 0.5)


def main() -> None:
    """Print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    parser.add_argument("--folder", type=Path, default=beside, help="where the data sets are")
    parser.add_argument("--rows", default=DEFAULT_ROWS, help="expressions in names, separated by ;")
    parser.add_argument("--epsilons", type=items, default=["1", "3"])
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--number", type=int, default=200, help="polygons of each kind and size")
    parser.add_argument("-o", "--output", type=Path, help="page to write instead of printing it")
    options = parser.parse_args()
    parts = options.rows.split(";")
    chosen = [
        variant
        for name, variant in variants(options.folder).items()
        if any(re.search(part, name) for part in parts)
    ]
    lines: list[tuple[str, ...]] = [
        ("data", "epsilon", "polygons", "half width", "covered", "predicted"),
        ("---",) * 6,
    ]
    lines += [row for variant in chosen for row in rows(variant, options)]
    text = INTRODUCTION.format(
        command=shlex.join(["python", "lab/polygon_coverage.py", *sys.argv[1:]]),
        version=psd.__version__,
        runs=options.runs,
        number=options.number,
        low=round(100 * COVERED),
        ratio=" to ".join(map(str, RATIO)),
    ) + "".join(f"| {' | '.join(line)} |\n" for line in lines)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
