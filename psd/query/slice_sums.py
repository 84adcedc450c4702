"""Sums of answers over time slices, with the errors of the sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from psd._util.arrays import Floats
from psd.query.answer_table import answer_columns, check_levels
from psd.query.boxes import checked_totals, parse_boxes
from psd.query.polygons import beside_polygons, polygon_totals
from psd.query.region_nodes import find_named_regions, union_traversal
from psd.query.reliability import Threshold
from psd.query.totals import QueryTotals, query_totals
from psd.space.regions import check_box_crs, is_region

if TYPE_CHECKING:
    import pandas

    from psd.estimation.model import CountModel
    from psd.query.index import QueryIndex
    from psd.space.region_tree import RegionTree

__all__ = ["answer_named_sums", "answer_slice_sums", "sum_over_slices"]


def sum_over_slices(parts: Sequence[QueryTotals]) -> QueryTotals:
    """Totals of sums over slices, of the totals of each slice.

    Guarantees
    ----------
    - The sum over one slice is the answer of that slice.
    - The error of unevenness is at least that of the sum, whatever the slices have in common.

    Parameters
    ----------
    parts : sequence of QueryTotals
        Of the same queries in each slice.

    Returns
    -------
    QueryTotals
        Of the sums.

    Notes
    -----
    The published answer of a slice is never negative, so a sum of published answers of nearly empty
    slices would be too large by about .4 standard deviations of the noise for each. So the answers
    of least squares are added, which may be negative and are unbiased; the sum is cut at 0.

    Noise is drawn anew for each slice, so its variances add up. Unevenness is not independent: a
    town in the corner of a cell is there in every slice. What the slices have in common is not
    known. The standard deviation of a sum is at most the sum of the standard deviations
    (Minkowski), and reaches it where all slices are wrong in the same direction. This largest value
    is taken.
    """
    if len(parts) == 1:
        return parts[0]

    def added(name: str) -> Floats:
        total: Floats = np.sum([getattr(part, name) for part in parts], axis=0)
        return total

    noise, signed = added("perturbation_variance"), added("signed")
    uneven = np.sum([np.sqrt(part.nonuniformity_variance) for part in parts], axis=0)
    nothing = np.zeros(len(signed))
    return QueryTotals(
        estimate=signed,
        signed=signed,
        perturbation_variance=noise,
        published_variance=noise,
        leaf_variance=uneven**2,
        shift=nothing,
        line_variance=nothing,
        beyond=added("beyond"),
    )


def answer_slice_sums(
    slices: Sequence[QueryIndex],
    regions: Any,
    *,
    crs: Any = None,
    confidence: float,
    threshold: Threshold,
) -> pandas.DataFrame:
    """Answer boxes or polygons for all slices together; see `psd.SeriesRelease.total`."""
    import pandas as pd

    check_levels(confidence, threshold)
    model = slices[0].model
    if is_region(regions):
        parts = [polygon_totals(index.model, regions, crs=crs) for index in slices]
    else:
        check_box_crs(crs, model.domain)
        boxes, ids = parse_boxes(regions)
        parts = [checked_totals(index, boxes, ids) for index in slices]
    totals = sum_over_slices(parts)
    columns = answer_columns(totals, model, confidence=confidence, threshold=threshold)
    return (
        beside_polygons(regions, columns)
        if is_region(regions)
        else pd.DataFrame({"id": ids, **columns})
    )


def answer_named_sums(
    slices: Sequence[tuple[CountModel, RegionTree]],
    level: str | None,
    ids: Sequence[Any] | None,
    *,
    confidence: float,
    threshold: Threshold,
) -> pandas.DataFrame:
    """Answer named regions for all slices together; see `psd.SeriesRelease.total_regions`."""
    import pandas as pd

    check_levels(confidence, threshold)
    queries = [find_named_regions(tree, level, ids) for _, tree in slices]
    parts = [
        query_totals(model, union_traversal(tree, query))
        for (model, tree), query in zip(slices, queries, strict=True)
    ]
    totals = sum_over_slices(parts)
    columns = answer_columns(totals, slices[0][0], confidence=confidence, threshold=threshold)
    return pd.DataFrame({"id": list(queries[0].labels), **columns})
