"""Whether intervals cover for small polygons around records, on rounded and other coordinates.

    python lab/polygon_coverage.py [--rows A;B] [--epsilons 1,3] [--runs 4] [--number 200]
        [--data FOLDER] [--sets A,B] [-o table.md]

The rows are those of the coverage matrix (`variants.py`), chosen by regular expressions that match
a part of their names. Squares have sides along the axes, and other polygons have seven corners on
a circle; both are around records, with half a width that is a share of the longer side of the
domain. Polygons whose half width is less than `STEPS` steps of the coordinates are left out. A
polygon is asked as such, not as a box.
"""

import argparse
from collections.abc import Iterator

import numpy as np
import shapely
from common import chosen_by, counts_in_shapes, draw, holds, study, tally_of, write_page
from coverage_matrix import marked
from data_sets import add_sets, chosen_sets
from numpy.typing import NDArray
from variants import Points, Variant, changed_variants

import psd

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


def rows(variant: Variant, options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """Rows of a variant, for each epsilon, kind and size of polygons."""
    xy, domain = variant.points(), variant.domain
    counts = tally_of(xy, domain)
    west, south, east, north = domain.bounds
    size = max(east - west, north - south)
    kinds = {
        (kind, share): (shapes, counts_in_shapes(xy, shapes))
        for share in SHARES
        if share * size > STEPS * variant.step
        for kind, shapes in polygons_around(xy, share, size, options.number).items()
    }
    for epsilon in options.epsilons:
        releases = [draw(counts, domain, "auto", epsilon) for _ in range(options.runs)]
        for (kind, share), (shapes, true) in kinds.items():
            measures = [measure(release, shapes, true) for release in releases]
            covered = marked([m[0] for m in measures], COVERED, 1.0)[1]
            ratio = marked([m[1] for m in measures], *RATIO, scale=1)[1]
            yield (variant.name, epsilon, kind, f"{share:g}", covered, ratio)


def measure(release: psd.Release, shapes: Shapes, true: Points) -> tuple[float, float]:
    """Share that is covered, and predicted over true error."""
    answers = release.query(shapes, crs=release.domain.crs).table
    estimate, error = answers["estimate"].to_numpy(), answers["error"].to_numpy()
    ratio = float(((error**2).mean() / ((estimate - true) ** 2).mean()) ** 0.5)
    return float(holds(answers, true).mean()), ratio


def main() -> None:
    parser = study(__doc__, epsilons="1,3", runs=4)
    add_sets(parser)
    parser.add_argument("--rows", default=DEFAULT_ROWS, help="expressions in names, separated by ;")
    parser.add_argument("--number", type=int, default=200, help="polygons of each kind and size")
    options = parser.parse_args()
    known = {variant.name: variant for variant in changed_variants(chosen_sets(options))}
    chosen = [known[name] for name in chosen_by(options.rows, known)]
    every = (row for variant in chosen for row in rows(variant, options))
    header = ("data", "epsilon", "polygons", "half width", "covered", "predicted")
    values = {"runs": options.runs, "number": options.number, "low": round(100 * COVERED)}
    ratio = " to ".join(map(str, RATIO))
    write_page(options.output, INTRODUCTION, header, every, ratio=ratio, **values)


if __name__ == "__main__":
    main()
