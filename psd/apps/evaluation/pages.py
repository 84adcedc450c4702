"""Reports of an evaluation and of a comparison as HTML, without scripts or requests. Private."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from psd._util.html import figure_block, page, paragraph, section, table_block
from psd.apps.evaluation._constants import CONFIDENCE, RASTER, TIE, WORST_QUERIES
from psd.apps.evaluation.comparison import COMPARISON_NOTICE, Comparison
from psd.apps.evaluation.figures import KINDS, number_or_dash, percent_text
from psd.apps.evaluation.true_errors import PRIVATE_NOTICE, Evaluation
from psd.privacy.loss import epsilon_text

if TYPE_CHECKING:
    import pandas

    from psd.api.release import Release

__all__ = ["RASTER"]


_PARTS = ("", "_perturbation", "_nonuniformity", "_bounding")


def evaluation_page(evaluation: Evaluation, release: Release) -> str:
    """Return the report of an evaluation as an HTML text, with maps of its raster; private."""
    answers = evaluation.answers
    maps = [] if evaluation.raster is None else [_map_section(evaluation.raster, release)]
    # The score and the errors of the classes.
    rows = [
        (row["class"], *(percent_text(row[f"true_relative{part}_error"]) for part in _PARTS))
        for row in evaluation.summary.to_dict("records")
    ]
    # Errors by size of query, and their parts.
    from psd.apps.evaluation.figures import draw_error_by_class, draw_error_parts

    figures = [
        (
            draw_error_by_class(evaluation.answers),
            "Box plot of the true relative errors of each class of queries, on a log scale; the "
            "table under Score has the means.",
            "Box: quartiles and median of the queries; whiskers: 10th and 90th percentile; "
            "diamond: mean.",
        ),
        (
            draw_error_parts(evaluation.summary),
            "Bars of the mean size of each part of the error by class; the table under Score has "
            "the numbers.",
            "Perturbation is the error from noise, non-uniformity the error from cells that a "
            "query covers in part, bounding the error from records that the limit per user left "
            "out. Parts of opposite signs cancel, so a part may be larger than the total.",
        ),
    ]
    # Public facts about the release.
    facts = {
        "method": release.method,
        "parameters": ", ".join(f"{k} = {v}" for k, v in release.index.record.parameters.items())
        or "none",
        "epsilon": epsilon_text(release.record.epsilon),
        "unit of privacy": release.unit.guarantee_text,
        "counts": release.record.counted_text,
        "source": release.record.source,
        "post-processing": (
            f"{release.record.post_processing.estimate} estimates, "
            f"{release.record.post_processing.density} density"
        ),
        "cells": f"{int(release.tree.is_leaf.sum()):,} leaves of {len(release.tree):,} nodes",
        "bounds": " ".join(f"{edge:.10g}" for edge in release.domain.bounds),
        "CRS": release.domain.crs,
        "coordinate resolution": release.domain.coordinate_resolution or "none",
        "smallest cell in metres": release.domain.min_cell or "none",
        "covariate": "none"
        if release.index.record.covariate is None
        else "yes, stored in the release",
        "software": f"psd {release.record.library}",
    }
    body = [
        section(
            "Score",
            paragraph(f"{evaluation.score:.4f}", "big"),
            paragraph(
                "The score is the geometric mean of the mean relative errors of the classes below, "
                f"over {len(evaluation.answers):,} queries. Smaller is better."
            ),
            table_block(
                "Mean true relative error, |estimate - true| / max(true, 0.001 of all records), "
                "and its parts.",
                ("class of queries", "total error", "perturbation", "non-uniformity", "bounding"),
                rows,
            ),
        ),
        section("Error by size of query", figure_block(figures, private=True)),
        _prediction_section(answers),
        _coverage_section(answers),
        *maps,
        _worst_section(answers),
        section("The release", table_block("Public facts.", ("", ""), facts.items(), "words")),
    ]
    lead = (
        f"{release.method}, epsilon {epsilon_text(release.record.epsilon)} per {release.unit.kind}"
    )
    return page("true errors of a release", body, lead=lead, notice=PRIVATE_NOTICE)


def _prediction_section(answers: pandas.DataFrame) -> str:
    """Errors that the release predicts, compared with the true ones."""
    from psd.apps.evaluation.figures import (
        draw_normalised_errors,
        draw_predicted_against_true,
    )

    compared = answers[answers["error"] >= 1]
    ratio = compared["true_error"] / compared["error"]
    root = number_or_dash(float(np.sqrt((ratio**2).mean())), "{:.2f}")
    figures = [
        (
            draw_predicted_against_true(answers),
            "Hexagons of true absolute errors over predicted standard deviations, log scales; most "
            "should be near or below the diagonal.",
            "Colour: number of queries; dark is many. Solid line: true = predicted. Dotted "
            "line: 1.96 times the predicted error.",
        ),
        (
            draw_normalised_errors(answers),
            f"Histogram of errors over their predictions; root mean square {root}.",
            "Queries with a predicted error of at least one record. If the histogram is wider than "
            f"the line, predictions are too small. Root mean square: {root}, ideally 1.",
        ),
    ]
    return section("Predicted and true error", figure_block(figures, private=True))


def _coverage_section(answers: pandas.DataFrame) -> str:
    """Share of the intervals that contain the true count, and their mean width."""
    from psd.apps.evaluation.figures import draw_coverage, wilson_interval

    groups = answers.assign(width=answers["upper"] - answers["lower"]).groupby("class", sort=False)
    low, high = wilson_interval(groups["covers"].sum(), groups["covers"].size())
    rows = [
        (
            str(name),
            f"{len(queries):,}",
            percent_text(queries["covers"].mean()),
            f"{percent_text(a)} to {percent_text(b)}",
            f"{queries['width'].mean():,.1f}",
        )
        for (name, queries), a, b in zip(groups, low, high, strict=True)
    ]
    figure = (
        draw_coverage(answers),
        f"Share of intervals that contain the true count by class, against {CONFIDENCE:.0%}; the "
        "table below has the numbers.",
        "Bars: 95 % binomial intervals (Wilson) for independent queries. Queries share cells, so "
        "the bars are too short. Dashed line: nominal confidence.",
    )
    return section(
        "Coverage of the intervals",
        figure_block([figure], private=True),
        table_block(
            f"Intervals of confidence {CONFIDENCE:.0%}.",
            ("class of queries", "queries", "covered", "95 % interval", "mean width (records)"),
            rows,
        ),
    )


def _map_section(raster: pandas.DataFrame, release: Release) -> str:
    """Maps of the true and the predicted errors."""
    from psd.apps.evaluation.figures import draw_map

    side = round(len(raster) ** 0.5)
    true, predicted = (
        raster[n].to_numpy(float).reshape(side, side) for n in ("true_error", "error")
    )
    limit = max(float(np.quantile(np.abs(true), 0.999)), float(np.quantile(predicted, 0.999)), 1.0)
    ratio = true / np.maximum(predicted, 1e-9)
    size, deviation = "|estimate - true| (records)", "standard deviation (records)"
    # Title, values, label, limit of colours, whether values have a sign, and caption of each map.
    maps = [
        ("Size of the true error", np.abs(true), size, limit, False,
         "Light: small; dark: large. The predicted error has the same colours."),
        ("Predicted error", predicted, deviation, limit, False,
         "Computed from the release alone, but its colours end at the largest true error."),
        ("True error with sign", true, "estimate - true (records)", limit, True,
         "Orange: the estimate is too high; purple: it is too low."),
        ("True error over predicted error", ratio, "standard deviations", 3.0, True,
         "Patches of one colour are errors that the release does not predict."),
    ]  # fmt: skip
    figures = [
        (
            draw_map(values, release.domain, title, label=label, limit=end, signed=signed),
            f"Map of {title.lower()}, {label}, by cells of a {side} x {side} raster.",
            caption,
        )
        for title, values, label, end, signed, caption in maps
    ]
    return section(
        "Maps of the error",
        paragraph(f"Each cell of a {side} x {side} raster is a query."),
        figure_block(figures, private=True),
    )


def _worst_section(answers: pandas.DataFrame) -> str:
    """The queries with the largest relative errors."""
    worst = answers.nlargest(WORST_QUERIES, "true_relative_error")
    rows = [
        (
            str(rank),
            " ".join(f"{row[side]:.6g}" for side in ("west", "south", "east", "north")),
            row["class"],
            f"{row['true_count']:,}",
            *(f"{row[name]:,.1f}" for name in ("estimate", "true_error", "error")),
            percent_text(row["true_relative_error"]),
            "yes" if row["covers"] else "no",
        )
        for rank, row in enumerate(worst.to_dict("records"), 1)
    ]
    headings = ("rank", "west south east north", "class", "true count", "estimate", "true error")
    return section(
        f"The {len(rows)} worst queries",
        table_block(
            "Queries by falling relative error. PRIVATE: true counts.",
            (*headings, "predicted error", "relative error", "covered"),
            rows,
        ),
    )


def comparison_page(comparison: Comparison) -> str:
    """Return the report of a comparison as an HTML text; both are private."""
    epsilons = list(dict.fromkeys(comparison.table["epsilon"]))
    names = list(dict.fromkeys(comparison.table["method"]))
    runs = int(comparison.table["runs"].max())
    lead = f"{', '.join(names)}; epsilon {', '.join(epsilons)}; {runs} builds of each"
    # Scores by epsilon, and errors by size.
    from psd.apps.evaluation.figures import (
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
    # All classes of all methods.
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
    body = [
        *(_ranking_section(comparison, epsilon) for epsilon in epsilons),
        section("Errors by epsilon and by size of query", *blocks),
        section("All errors", table_block("Mean true relative errors.", headings, rows)),
    ]
    return page("true errors of several methods", body, lead=lead, notice=COMPARISON_NOTICE)


def _ranking_section(comparison: Comparison, epsilon: str) -> str:
    """Methods by their scores at one epsilon."""
    table = comparison.table[comparison.table["epsilon"] == epsilon].sort_values("score")
    best = table.iloc[0]
    rows = []
    for rank, row in enumerate(table.to_dict("records"), 1):
        # Difference from the best in standard errors of the difference.
        deviation = float(np.hypot(row["score_error"], best["score_error"]))
        difference = "" if rank == 1 else "unknown: too few builds"
        if rank > 1 and deviation > 0:
            distance = (row["score"] - best["score"]) / deviation
            difference = f"{distance:.1f} standard errors" + (" (a tie)" if distance < TIE else "")
        rows.append(
            (
                str(rank),
                row["method"],
                f"{row['score']:.4f}",
                number_or_dash(row["score_error"], "{:.4f}"),
                f"{row['score'] / best['score']:.2f}",
                difference,
            )
        )
    return section(
        f"Ranking at epsilon {epsilon}",
        table_block(
            "The score is the geometric mean of the mean relative errors of the eight classes; "
            "smaller is better.",
            ("rank", "method", "score", "standard error", "ratio to best", "difference from best"),
            rows,
        ),
    )
