"""Report of a comparison as an HTML page. Private.

The page is one file without scripts, like that of an evaluation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psd._util.html import figure_block, page, section, table_block
from psd.apps.evaluation._constants import TIE
from psd.apps.evaluation.comparison import COMPARISON_NOTICE, Comparison
from psd.apps.evaluation.reporting.axes import KINDS
from psd.apps.evaluation.reporting.numbers import number_or_dash, percent_text

__all__ = ["comparison_page"]


def comparison_page(comparison: Comparison) -> str:
    """Return the report of a comparison as an HTML text; both are private."""
    epsilons = list(dict.fromkeys(comparison.table["epsilon"]))
    names = list(dict.fromkeys(comparison.table["method"]))
    runs = int(comparison.table["runs"].max())
    lead = f"{', '.join(names)}; epsilon {', '.join(epsilons)}; {runs} builds of each"
    body = [
        *(_ranking_section(comparison, epsilon) for epsilon in epsilons),
        _figure_section(comparison, epsilons),
        _error_section(comparison),
    ]
    return page("true errors of several methods", body, lead=lead, notice=COMPARISON_NOTICE)


def _ranking_section(comparison: Comparison, epsilon: str) -> str:
    """Methods by their scores at one epsilon."""
    table = comparison.table[comparison.table["epsilon"] == epsilon].sort_values("score")
    best = table.iloc[0]
    rows = [
        (
            str(rank),
            row["method"],
            f"{row['score']:.4f}",
            number_or_dash(row["score_error"], "{:.4f}"),
            f"{row['score'] / best['score']:.2f}",
            "" if rank == 1 else _difference_text(row, best),
        )
        for rank, row in enumerate(table.to_dict("records"), 1)
    ]
    return section(
        f"Ranking at epsilon {epsilon}",
        table_block(
            "The score is the geometric mean of the mean relative errors of the eight classes; "
            "smaller is better.",
            ("rank", "method", "score", "standard error", "ratio to best", "difference from best"),
            rows,
        ),
    )


def _difference_text(row: Any, best: Any) -> str:
    """Difference of two scores in standard errors of the difference."""
    deviation = float(np.hypot(row["score_error"], best["score_error"]))
    if not deviation > 0:
        return "unknown: too few builds"
    distance = (row["score"] - best["score"]) / deviation
    return f"{distance:.1f} standard errors" + (" (a tie)" if distance < TIE else "")


def _figure_section(comparison: Comparison, epsilons: list[str]) -> str:
    """Scores by epsilon, and errors by size."""
    from psd.apps.evaluation.reporting.comparison_figures import (
        draw_error_by_size,
        draw_score_by_epsilon,
    )

    note = "the tables of this page have the numbers."
    scores = (
        draw_score_by_epsilon(comparison),
        f"Score of each method by epsilon; {note}",
        "Score by epsilon; bars: standard error over the builds.",
    )
    # A block of its own for each epsilon, so that figures side by side have the same one.
    pairs = [
        [
            (
                draw_error_by_size(comparison, epsilon, kind),
                f"Mean relative error of each method by size of query, {title.lower()}, epsilon "
                f"{epsilon}; {note}",
                f"{title}: error by size of query at epsilon {epsilon}.",
            )
            for kind, title in KINDS.items()
        ]
        for epsilon in epsilons
    ]
    blocks = [figure_block(figures, private=True) for figures in ([scores], *pairs)]
    return section("Errors by epsilon and by size of query", *blocks)


def _error_section(comparison: Comparison) -> str:
    """All classes of all methods."""
    rows = [
        (
            row["method"],
            row["epsilon"],
            f"{row['score']:.4f}",
            number_or_dash(row["score_error"], "{:.4f}"),
            str(row["runs"]),
            *(percent_text(row[name]) for name in comparison.classes),
        )
        for row in comparison.table.to_dict("records")
    ]
    headings = ("method", "epsilon", "score", "standard error", "builds", *comparison.classes)
    return section("All errors", table_block("Mean true relative errors.", headings, rows))
