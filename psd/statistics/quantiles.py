"""Class breaks of a heat map: weighted quantiles of the densities of cells, with their errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from psd._util.arrays import Floats
from psd.errors import ParameterError
from psd.query.derived import two_sided_quantile
from psd.space.ground_areas import ground_areas
from psd.statistics.error_draws import check_draws, redraw_cell_counts
from psd.statistics.overlay import raster_overlay

if TYPE_CHECKING:
    import pandas

    from psd.estimation.fit import Fit

__all__ = ["class_breaks", "weighted_quantiles"]


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
    """Compute the breaks between classes of density; see `Release.query`.

    P1. The same release, arguments and seed give the same table.
    """
    import pandas as pd

    from psd._util.declared_parameters import choice
    from psd.query.answer_table import check_levels

    check_draws(draws, seed)
    check_levels(confidence, 1.0)
    choice("area", "people")("weight", weight)
    if type(classes) is not int or not 2 <= classes <= 100:
        raise ParameterError(f"classes must be an integer from 2 to 100, got {classes}")
    overlay = raster_overlay(fit, *size)
    overlay = overlay.select(np.flatnonzero(ground_areas(fit.domain, overlay.boxes) > 0))
    area = ground_areas(fit.domain, overlay.boxes)
    shares = np.arange(1, classes) / classes

    def breaks(count: Floats) -> Floats:
        points = np.maximum(count, 0.0)
        return weighted_quantiles(points / area, area if weight == "area" else points, shares)

    at = breaks(overlay.counts())
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
    """Smallest values at or below which at least these shares of the weight lie.

    values, weights: (n,) float64; shares: (m,) float64, in (0, 1); returns (m,) float64.
    """
    order = np.argsort(values, kind="stable")
    # If all are 0, they are taken as equal.
    weights = weights if weights.any() else np.ones(len(values))
    below = np.cumsum(weights[order])
    # By rounding, the share of a sum of floats may be less than the partial sum itself.
    index = np.searchsorted(below, shares * below[-1] * (1 - 1e-12))
    breaks: Floats = values[order][np.minimum(index, len(values) - 1)]
    return breaks
