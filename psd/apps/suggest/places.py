"""Suggested places: regions ranked for one person. Public side.

Nothing here imports the private side, opens a connection or writes a file.
"""

from __future__ import annotations

import csv
import os
from typing import TYPE_CHECKING

import numpy as np

from psd._util.arrays import Floats
from psd._util.declared_parameters import integer_between
from psd.apps.suggest.models import FEATURES, RegionGrid, SharedWeights, features
from psd.errors import InputDataError, ParameterError

if TYPE_CHECKING:
    import pandas

    from psd.api.release import Release


def read_places(path: str | os.PathLike[str], x: str = "lon", y: str = "lat") -> Floats:
    """Read the coordinates of own places, (n, 2) float64, from a CSV file with a header."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            names = rows.fieldnames or ()
            points = [(float(row[x]), float(row[y])) for row in rows if {x, y} <= row.keys()]
    except (OSError, UnicodeDecodeError, csv.Error):
        raise InputDataError("own places must be a CSV file in UTF-8 that can be read") from None
    except (TypeError, ValueError):
        raise InputDataError("own places must have a number in each coordinate") from None
    if x not in names or y not in names:
        raise InputDataError(f"own places must have the columns {x} and {y}; are they others?")
    return np.array(points, float).reshape(-1, 2)


def suggest_places(
    own_places: Floats, release: Release, weights: SharedWeights, k: int = 20
) -> pandas.DataFrame:
    """Rank the regions of a release for one person.

    Guarantees
    ----------
    - It reads its arguments, returns a table, and does nothing else; no place leaves the process.

    Parameters
    ----------
    own_places : ndarray, shape (m, 2), float64
        Coordinates in the CRS of the release; those outside its area are left out. Private to the
        person.
    release : Release
        The release that the weights were learnt with. Public.
    weights : SharedWeights
        Public.
    k : int
        Number of regions, at most all of them.

    Returns
    -------
    DataFrame
        The k regions of highest score: their rank, west, south, east and north, whether they are
        an own place, and the score.

    Raises
    ------
    ParameterError
        If no own place lies in the area, k is out of range, or the release is another one.

    Examples
    --------
    >>> import psd
    >>> from psd.apps.suggest import FEATURES
    >>> domain = psd.Domain(bounds=(126.4, 37, 127.6, 38), lattice=(8, 8))
    >>> tree = psd.decompositions.grid_tree(domain, 8)
    >>> release = psd.Release.from_counts(tree, range(64), 1, domain=domain)
    >>> weights = SharedWeights(weights=dict.fromkeys(FEATURES, 0.5), release=release.digest,
    ...     cells=8, epsilon="1", delta="1e-6", max_contributions=4)
    >>> suggest_places(np.array([[127.0, 37.5]]), release, weights, k=3)["rank"].tolist()
    [1, 2, 3]
    """
    import pandas as pd

    grid = RegionGrid.of_release(release, weights.cells)
    weights.check_grid(grid)
    k = integer_between(1, len(grid.count))("k", k)
    regions = grid.locate(own_places[:, 0], own_places[:, 1])
    if not len(regions):
        raise ParameterError(
            "own places must lie in the area of the release, got none inside; are x and y swapped?"
        )
    described = features(grid, regions, np.arange(len(grid.count)))
    scores = described @ [weights.weights[name] for name in FEATURES]
    best = np.argsort(-scores, kind="stable")[:k]
    sides = dict(zip(("west", "south", "east", "north"), grid.boxes[best].T, strict=True))
    is_own = np.isin(best, regions)
    table = {"rank": np.arange(1, k + 1), **sides, "own_place": is_own, "score": scores[best]}
    return pd.DataFrame(table)
