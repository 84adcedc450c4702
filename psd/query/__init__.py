"""Range queries on a release: estimates with their errors.

A query is a weight between 0 and 1 on every leaf, the fraction of the leaf that it covers. One
traversal finds the cells that it cuts; boxes and polygons differ only in how they measure the
fraction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psd.query.answer_table import check_levels
from psd.query.boxes import answer_boxes, parse_boxes
from psd.query.polygons import answer_polygons
from psd.query.reliability import Threshold
from psd.space.regions import check_box_crs, is_region

if TYPE_CHECKING:
    import pandas

    from psd.query.index import QueryIndex

__all__ = ["answer_regions"]


def answer_regions(
    index: QueryIndex,
    regions: Any,
    *,
    crs: Any = None,
    confidence: float,
    threshold: Threshold,
) -> pandas.DataFrame:
    """Answer boxes or polygons; see `Release.query`."""
    check_levels(confidence, threshold)
    if is_region(regions):
        model = index.model
        return answer_polygons(model, regions, crs=crs, confidence=confidence, threshold=threshold)
    check_box_crs(crs, index.model.domain)
    boxes, ids = parse_boxes(regions)
    return answer_boxes(index, boxes, ids, confidence=confidence, threshold=threshold)
