"""Cells with the most records, and class breaks of a heat map, with their errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psd._util.arrays import Floats, Integers
from psd.errors import ParameterError
from psd.query.answer_table import two_sided_quantile
from psd.query.cube_covariance import answer_once_jointly
from psd.query.cube_views import cells_index
from psd.space.ground_areas import ground_areas, ground_densities
from psd.statistics.error_draws import (
    check_draws,
    draw_cell_counts,
    draw_region_counts,
    redraw_cell_counts,
)
from psd.statistics.raster import Overlay, leaf_overlay, raster_overlay

if TYPE_CHECKING:
    import pandas

    from psd.estimation.fit import Fit
    from psd.query.areas import Areas
    from psd.query.index import CubeWindow, QueryIndex


# A cell that is this number of standard deviations below the top is not drawn.
_REACH = 6.0


def rank_top(
    asked: QueryIndex | CubeWindow,
    k: int | None,
    *,
    size: tuple[int, int] | None,
    areas: Areas | None,
    by: str,
    draws: int,
    seed: int,
) -> tuple[pandas.DataFrame, Integers | None]:
    """Rank the k largest cells or regions, see `Release.query`; and (k,) numbers of the regions.

    P1. The same release, arguments and seed give the same table.
    """
    from psd._util.declared_parameters import choice

    check_draws(draws, seed)
    choice("count", "density")("by", by)
    if areas is not None:
        if size is not None or by != "count":
            raise ParameterError(
                "by must be count for the regions of a level, and size must be left out; size= "
                "ranks the cells of a raster by density"
            )
        k = _check_k(k, len(areas), "regions")
        together = answer_once_jointly(asked, areas, confidence=0.95, threshold=0.3)
        # The k regions with the largest answers, in their columns, and their numbers.
        drawn = draw_region_counts(together, seed, draws)
        probability = top_probability(drawn, len(together), k, draws)
        answers = together.answers
        first = _rank_largest(answers["estimate"].to_numpy(), k)
        others = [name for name in answers.columns if name not in _LEFT_OUT]
        table = answers[others].iloc[first].assign(probability=probability[first])
        table.insert(0, "rank", np.arange(1, k + 1))
        return table, first
    fit = cells_index(asked).fit
    overlay = raster_overlay(fit, *size) if size else leaf_overlay(fit)
    return _top_cells(overlay, _check_k(k, overlay.cells, "cells"), by, draws, seed), None


def _check_k(k: int | None, limit: int, what: str) -> int:
    """Check k against the number of cells or regions."""
    if type(k) is not int or not 1 <= k <= limit:
        raise ParameterError(
            f"top must be an integer from 1 to {limit:,}, the number of {what}, got {k}"
        )
    return k


def _top_cells(overlay: Overlay, k: int, by: str, draws: int, seed: int) -> pandas.DataFrame:
    """Rank the cells of an overlay; only those that may be in the top are drawn."""
    import pandas as pd

    count = overlay.counts()
    area = ground_areas(overlay.fit.domain, overlay.boxes)
    # What has no ground has no density, and is ranked last.
    scale = np.nan_to_num(ground_densities(np.ones(len(area)), area))
    scale = scale if by == "density" else np.ones(len(area))
    error = np.sqrt(overlay.perturbation_variance() + overlay.nonuniformity_variance())
    may = top_candidates(count * scale, error * scale, k)
    drawn = (
        scale[may, None] * batch for batch in draw_cell_counts(overlay.select(may), seed, draws)
    )
    probability = top_probability(drawn, len(may), k, draws)
    first = _rank_largest(count[may] * scale[may], k)
    cells = may[first]
    west, south, east, north = overlay.fit.domain.from_lattice(overlay.boxes[cells]).T
    return pd.DataFrame(
        {
            "rank": np.arange(1, len(cells) + 1),
            "west": west,
            "south": south,
            "east": east,
            "north": north,
            "estimate": count[cells],
            "error": error[cells],
            "density": ground_densities(count[cells], area[cells]),
            "probability": probability[first],
        }
    )


_LEFT_OUT = (
    "perturbation_error", "nonuniformity_error", "lower", "upper", "relative_perturbation_error",
    "relative_nonuniformity_error", "relative_error", "reliable", "quality", "joint_lower",
    "joint_upper",
)  # fmt: skip


def top_candidates(value: Floats, error: Floats, k: int) -> Integers:
    """Select the cells that may be among the k largest, at least k, ascending, of estimates (n,).

    P2. A cell is left out only if its range of 6 standard deviations lies below those of k others.
    """
    sure = np.partition(value - _REACH * error, -k)[-k]
    return np.flatnonzero(value + _REACH * error >= sure)


def top_probability(drawn: Any, cells: int, k: int, draws: int) -> Floats:
    """Share of draws (cells, n) with each cell in the top k. P3. 0 to 1, and at least k in sum."""
    often = np.zeros(cells)
    for values in drawn:
        least = np.partition(values, -k, axis=0)[-k]
        often += (values >= least).sum(axis=1)
    return np.asarray(often / draws)


def _rank_largest(value: Floats, k: int) -> Integers:
    """The k largest, the largest first; equal ones in their order."""
    return np.argsort(-value, kind="stable")[:k]


def class_breaks(
    fit: Fit,
    classes: int,
    *,
    size: tuple[int, int],
    weight: str,
    confidence: float,
    draws: int,
    seed: int,
) -> pandas.DataFrame:
    """Breaks of classes of density. P4. The same release, arguments and seed give the same ones."""
    import pandas as pd

    from psd._util.declared_parameters import choice
    from psd.query.answer_table import check_levels

    check_draws(draws, seed)
    check_levels(confidence, 1.0)
    choice("area", "people")("weight", weight)
    if type(classes) is not int or not 2 <= classes <= 100:
        raise ParameterError(f"classes must be an integer from 2 to 100, got {classes}")
    overlay = raster_overlay(fit, *size)
    # Cells without ground have no density, and are left out.
    overlay = overlay.select(np.flatnonzero(ground_areas(fit.domain, overlay.boxes) > 0))
    area = ground_areas(fit.domain, overlay.boxes)
    shares = np.arange(1, classes) / classes

    def breaks(count: Floats) -> Floats:
        points = np.maximum(count, 0.0)
        return weighted_quantiles(points / area, area if weight == "area" else points, shares)

    at = breaks(overlay.counts())
    # The error of a break is how far it moves when the release is drawn anew, (draws, classes - 1).
    redrawn_breaks = np.stack(
        [breaks(count) for batch in redraw_cell_counts(overlay, seed, draws) for count in batch.T]
    )
    error = np.sqrt(((redrawn_breaks - at) ** 2).mean(axis=0))
    return pd.DataFrame(
        {
            "share": shares,
            "density": at,
            "error": error,
            "lower": np.maximum(at - two_sided_quantile(confidence) * error, 0.0),
            "upper": at + two_sided_quantile(confidence) * error,
        }
    )


def weighted_quantiles(values: Floats, weights: Floats, shares: Floats) -> Floats:
    """Smallest of values (n,) at or below which shares (m,), in (0, 1), of the weight lie: (m,)."""
    order = np.argsort(values, kind="stable")
    # If all are 0, they are taken as equal.
    weights = weights if weights.any() else np.ones(len(values))
    below = np.cumsum(weights[order])
    # By rounding, the share of a sum of floats may be less than the partial sum itself.
    index = np.searchsorted(below, shares * below[-1] * (1 - 1e-12))
    breaks: Floats = values[order][np.minimum(index, len(values) - 1)]
    return breaks
