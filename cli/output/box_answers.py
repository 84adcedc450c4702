"""Answers to boxes without pandas, whose import takes as long as the answer."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from ..output.answers import print_answer_columns

if TYPE_CHECKING:
    from psd.api.release import Release
    from psd.api.series import SeriesRelease
    from psd.query.reliability import Threshold

__all__ = ["box_answers", "box_answers_text", "print_box_answers"]


def box_answers(
    loaded: Release | SeriesRelease, regions: Any, confidence: float, threshold: Threshold
) -> dict[str, Any] | None:
    """Columns of the answers to boxes of options, those of `Release.query`; None for others."""
    from psd.api.release import Release
    from psd.query.answer_table import check_levels
    from psd.query.boxes import box_columns, parse_boxes

    if type(loaded) is not Release or not isinstance(regions, list):
        return None
    check_levels(confidence, threshold)
    index = loaded.with_near_fit().index
    columns = box_columns(index, *parse_boxes(regions), confidence=confidence, threshold=threshold)
    if loaded.source != "curator":
        columns["release_source"] = [loaded.source] * len(regions)
    return columns


def print_box_answers(columns: dict[str, Any]) -> None:
    """Print answers to boxes as a table."""
    print_answer_columns(columns, ["id"])


def box_answers_text(columns: dict[str, Any]) -> str:
    """Answers to boxes as CSV text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    lists = [values if isinstance(values, list) else values.tolist() for values in columns.values()]
    writer.writerows(zip(*lists, strict=True))
    return text.getvalue()
