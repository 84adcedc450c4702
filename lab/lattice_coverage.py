"""Whether intervals cover on a lattice that was chosen, wherever records are in its cells.

    python lab/lattice_coverage.py [--rows A;B] [--epsilons .1,1,3] [--runs 4]
        [--folder ../shared/data] [--jobs 2] [--list] [-o table.md]

Errors of queries take the records of a chosen lattice to be in the middle of its cells. Here they
are in the middle, at a fifth of the cell, or where they come from. Sides of boxes are anywhere. The
bars and figures are those of the coverage matrix; a row may miss its bars, and the page of coverage
says which do. Data and results are public here.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from accuracy import BOUNDS
from coverage_matrix import INTRODUCTION, add_measuring_options, write_matrix
from variants import Points, Variant, points_inside

import psd

LATTICES = ((100, 70), (256, 256), (1024, 1024))
PLACES = {"as it is": None, "in the middle": 0.5, "at a fifth": 0.2}
ROUNDING = 1e-6


def move_in_cells(path: Path, domain: psd.Domain, part: float | None) -> Points:
    """Points of a file, each at one part of its lattice cell along both axes."""
    xy = points_inside(path, domain)
    if part is None:
        return xy
    corner, cells = np.array(domain.bounds[:2]), np.array(domain.lattice)
    size = np.array(domain.bounds[2:]) - corner
    lines = np.floor((xy - corner) / size * cells) + part
    moved: Points = corner + np.minimum(lines, cells - ROUNDING) / cells * size
    return moved


def lattice_variants(folder: Path) -> Iterator[Variant]:
    """Rows of each data set and lattice."""
    for name, bounds in BOUNDS.items():
        for columns, rows in LATTICES:
            domain = psd.Domain(bounds=bounds, lattice=(columns, rows))
            for what, part in PLACES.items():
                yield Variant(
                    name=f"{name}, {columns} x {rows}, {what}",
                    points=partial(move_in_cells, folder / f"{name}.csv", domain, part),
                    domain=domain,
                )


def main() -> None:
    """Print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_measuring_options(parser)
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    parser.add_argument("--folder", type=Path, default=beside, help="where the data sets are")
    parser.set_defaults(runs=4, epsilons=["0.1", "1", "3"])
    options = parser.parse_args()
    introduction = INTRODUCTION.replace("# Coverage matrix", "# Coverage on chosen lattices")
    sys.exit(0 if write_matrix(lattice_variants, options, introduction) else 1)


if __name__ == "__main__":
    main()
