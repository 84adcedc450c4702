"""Errors that a release predicts for squares of several sizes, from the release alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import shapely

from psd.query.reliability import QUALITIES
from psd.space.ground_areas import area_unit, east_west_scale, ground_areas, shape_ground_areas

if TYPE_CHECKING:
    import pandas

    from psd._util.arrays import Floats
    from psd.api.release import Release

__all__ = ["SQUARES", "errors_by_size"]

SQUARES = 200
"""Squares of each size."""

# Areas in km2, or shares of the domain where the CRS is local.
_AREAS = (0.01, 0.1, 1.0, 10.0, 100.0, 1_000.0, 10_000.0)
_SHARES = (1e-4, 1e-3, 1e-2, 1e-1)

# Digits of the digest that choose the centres of the squares.
_DIGITS = 16

# Side of the small square, of the height of the domain, whose ground area sets the scale; and the
# largest width of a square in degrees over its height, for centres beside a pole.
_START, _MAX_STRETCH = 1e-3, 1e3


def errors_by_size(release: Release) -> pandas.DataFrame:
    """Predicted errors of squares, whose centres are where the release estimates records.

    Guarantees
    ----------
    - Made of the release alone, so it costs no epsilon; the same release gives the same table.

    Parameters
    ----------
    release : Release
        Of one moment; of a series, one slice.

    Returns
    -------
    DataFrame
        One row for each size that fits the domain at least four times: ``size`` in words; medians
        ``estimate``, ``error`` (predicted standard deviations) and ``relative_error``; and the
        share of squares in each class of quality, ``good``, ``use with care`` and ``poor``.

    Examples
    --------
    >>> import psd
    >>> domain = psd.Domain(bounds=(0, 0, 4000, 4000), crs="EPSG:3857")
    >>> tree = psd.decompositions.grid_tree(domain, 1)
    >>> release = psd.Release.from_counts(tree, [800], 1.0, domain=domain)
    >>> errors_by_size(release)["size"].tolist()
    ['0.01 km²', '0.1 km²', '1 km²']
    """
    import pandas as pd

    domain = release.domain
    total = float(ground_areas(domain, np.array([[0.0, 0, *domain.lattice]]))[0])
    in_km2 = area_unit(domain) == "km2"
    areas = np.array(_AREAS if in_km2 else [share * total for share in _SHARES])
    rows = []
    for area in areas[areas <= total / 4]:
        answers = release.query(_squares(release, float(area))).table
        median = answers[["estimate", "error", "relative_error"]].median()
        shares = answers["quality"].value_counts(normalize=True)
        size = f"{area:,g} km²" if in_km2 else f"{100 * area / total:g}% of the area"
        rows.append({"size": size, **median, **{name: shares.get(name, 0.0) for name in QUALITIES}})
    return pd.DataFrame(rows, columns=["size", "estimate", "error", "relative_error", *QUALITIES])


def _squares(release: Release, area: float) -> Floats:
    """Squares of an area whose centres follow the published counts, inside the bounds."""
    domain = release.domain
    random = np.random.default_rng(int(release.digest[:_DIGITS], 16))
    leaves = np.flatnonzero(release.tree.is_leaf)
    count = np.maximum(release.index.fit.estimates.count[leaves], 0.0)
    weight = count if count.sum() > 0 else np.ones(len(leaves))
    chosen = random.choice(leaves, SQUARES, p=weight / weight.sum())
    boxes = domain.from_lattice(release.tree.boxes[chosen])
    centre = boxes[:, :2] + random.random((SQUARES, 2)) * (boxes[:, 2:] - boxes[:, :2])
    # A square on the ground is wider in degrees the farther it is from the equator.
    stretch = 1 / east_west_scale(domain, centre[:, 1])
    half = np.column_stack([np.minimum(stretch, _MAX_STRETCH), np.ones(SQUARES)]) * domain.height
    half *= _START / 2
    start = shape_ground_areas(domain, shapely.box(*(centre - half).T, *(centre + half).T))
    half *= np.sqrt(area / start)[:, None]
    low, high = np.array(domain.bounds[:2]), np.array(domain.bounds[2:])
    corner = np.clip(centre - half, low, np.maximum(high - 2 * half, low))
    return np.hstack([corner, np.minimum(corner + 2 * half, high)])
