"""Reports as web pages: all there is to see of an evaluation or a comparison. Private.

A page is one file without a script. It asks no other place for anything, and says so to the
browser, which then refuses to.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psd._util.html import figure_block, page, paragraph, section, table_block
from psd.evaluation.compare import COMPARISON_NOTICE, Comparison
from psd.evaluation.evaluate import CONFIDENCE, PRIVATE_NOTICE, Evaluation
from psd.evaluation.reporting.plots import check_plot
from psd.privacy.epsilon import epsilon_text

if TYPE_CHECKING:
    import pandas

    from psd.api.release import Release

__all__ = ["RASTER", "check_report", "comparison_page", "evaluation_page"]

RASTER = 50
"""Columns and rows of the maps: a number whose lines are no lines of halved cells."""

_WORST = 10
_TIES = 2.0


def check_report(path: Path) -> None:
    """Refuse a report that could not be written, before any work is done.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    ParameterError
        If the ending is not ``.html``.
    """
    check_plot(path, (".html",))


def evaluation_page(found: Evaluation, release: Release) -> str:
    """Report of an evaluation as one HTML text.

    Parameters
    ----------
    found : Evaluation
        True errors, with a raster where maps are wanted. Private.
    release : Release
        What was judged.

    Returns
    -------
    str
        Private: for whoever holds the data.
    """
    answers = found.answers
    body = [
        _result(found, release),
        _sizes(found),
        _prediction(answers),
        _coverage(answers),
        *([] if found.raster is None else [_maps(found.raster, release)]),
        _worst(answers),
        _about(release),
    ]
    lead = (
        f"{release.method}, epsilon {epsilon_text(release.record.epsilon)} per {release.unit.kind}"
    )
    return page("true errors of a release", body, lead=lead, notice=PRIVATE_NOTICE)


def _result(found: Evaluation, release: Release) -> str:
    """The score and what it is a mean of."""
    rows = [
        (row["class"], *(_percent(row[f"true_relative{part}_error"]) for part in _COLUMNS))
        for row in found.summary.to_dict("records")
    ]
    whole = "geometric mean of the mean relative errors of the classes below"
    return section(
        "Result",
        paragraph(f"{found.score:.4f}", "big"),
        paragraph(f"Score: {whole}, over {len(found.answers):,} queries. Smaller is better."),
        table_block(
            "Mean true |estimate - true| / max(true, 0.001 of all rows), and its parts.",
            ("class of queries", "whole error", "perturbation", "non-uniformity", "bounding"),
            rows,
        ),
    )


_COLUMNS = ("", "_perturbation", "_nonuniformity", "_bounding")


def _sizes(found: Evaluation) -> str:
    """Errors by size of query, and their parts."""
    from psd.evaluation.reporting import figures as draw

    shown = [
        (
            draw.error_by_class(found.answers),
            "Box plot of the true relative errors of each class of queries, on a log scale; means "
            "are in the table under Result.",
            "Box: middle half and median of the queries; whiskers: 10 to 90 %; diamond: mean.",
        ),
        (
            draw.parts(found.summary),
            "Bars of the mean size of each part of the error by class; in the table under Result.",
            "Perturbation is what the noise did, non-uniformity what cells covered in part did, "
            "bounding what the limit per user left out. Parts of both signs may cancel.",
        ),
    ]
    return section("Error by size of query", figure_block(shown, private=True))


def _prediction(answers: pandas.DataFrame) -> str:
    """What the release says of its own errors, against what they are."""
    from psd.evaluation.reporting import figures as draw

    judged = answers[answers["error"] >= 1]
    ratio = judged["true_error"] / judged["error"]
    root = _or_dash(float(np.sqrt((ratio**2).mean())), "{:.2f}")
    shown = [
        (
            draw.predicted_against_true(answers),
            "Hexagons of true absolute errors over predicted standard deviations, log scales; most "
            "should lie around and below the diagonal.",
            "Each hexagon counts queries. Dotted: 1.96 times the predicted error.",
        ),
        (
            draw.normalised(answers),
            f"Histogram of errors over their predictions; root mean square {root}.",
            "Queries with a predicted error of a record or more. Wider than the line: predictions "
            f"too small. Root mean square {root}, ideally 1.",
        ),
    ]
    return section("Predicted against true error", figure_block(shown, private=True))


def _coverage(answers: pandas.DataFrame) -> str:
    """How often the intervals hold the truth, and what that costs in width."""
    from psd.evaluation.reporting import figures as draw

    groups = answers.assign(width=answers["upper"] - answers["lower"]).groupby("class", sort=False)
    low, high = draw.wilson(groups["covers"].sum(), groups["covers"].size())
    rows = [
        (
            str(name),
            f"{len(own):,}",
            _percent(own["covers"].mean()),
            f"{_percent(a)} to {_percent(b)}",
            f"{own['width'].mean():,.1f}",
        )
        for (name, own), a, b in zip(groups, low, high, strict=True)
    ]
    shown = [
        (
            draw.coverage(answers),
            f"Share of intervals that hold the truth by class, against {CONFIDENCE:.0%}; in the "
            "table beside.",
            "Bars: 95 % binomial intervals (Wilson), as if queries were independent; they share "
            "cells, so the bars are too short.",
        )
    ]
    return section(
        "Coverage of the intervals",
        figure_block(shown, private=True),
        table_block(
            f"Intervals of confidence {CONFIDENCE:.0%}.",
            ("class of queries", "queries", "covered", "95 % interval", "mean width (records)"),
            rows,
        ),
    )


def _maps(raster: pandas.DataFrame, release: Release) -> str:
    """Where the error sits, and where the release says it sits."""
    from psd.evaluation.reporting import figures as draw

    side = round(len(raster) ** 0.5)
    true, predicted = (
        raster[n].to_numpy(float).reshape(side, side) for n in ("true_error", "error")
    )
    limit = max(float(np.quantile(np.abs(true), 0.999)), float(np.quantile(predicted, 0.999)), 1.0)
    ratio = true / np.maximum(predicted, 1e-9)
    pictures: list[tuple[str, Any, str, float, bool]] = [
        ("True error: size", np.abs(true), "|estimate - true| (records)", limit, False),
        ("Predicted error", predicted, "standard deviation (records)", limit, False),
        ("True error: sign", true, "estimate - true (records)", limit, True),
        ("True over predicted error", ratio, "standard deviations", 3.0, True),
    ]
    captions = (
        "Dark: small. Same colours as the predicted error beside.",
        "What the release alone says.",
        "Orange: the release counts too many; purple: too few.",
        "Patches of one colour are errors that no prediction saw.",
    )
    shown = [
        (
            draw.map_of(values, release.domain, title, label=label, limit=most, signed=signed),
            f"Map of {title.lower()}, {label}, by cells of a {side} x {side} raster.",
            caption,
        )
        for (title, values, label, most, signed), caption in zip(pictures, captions, strict=True)
    ]
    return section(
        "Where the error sits",
        paragraph(f"Each cell of a {side} x {side} raster was asked about as a query of its own."),
        figure_block(shown, private=True),
    )


def _worst(answers: pandas.DataFrame) -> str:
    """The queries with the largest relative errors."""
    worst = answers.nlargest(_WORST, "true_relative_error")
    rows = [
        (
            str(place),
            " ".join(f"{row[side]:.6g}" for side in ("west", "south", "east", "north")),
            row["class"],
            f"{row['true_count']:,}",
            *(f"{row[name]:,.1f}" for name in ("estimate", "true_error", "error")),
            _percent(row["true_relative_error"]),
            "yes" if row["covers"] else "no",
        )
        for place, row in enumerate(worst.to_dict("records"), 1)
    ]
    headings = ("", "west south east north", "class", "true count", "estimate", "true error")
    return section(
        f"The {len(rows)} worst queries",
        table_block(
            "Largest relative errors first. PRIVATE: true counts.",
            (*headings, "predicted error", "relative error", "covered"),
            rows,
        ),
    )


def _about(release: Release) -> str:
    """Public facts about the release."""
    facts = {
        "method": release.method,
        "parameters": ", ".join(f"{k} = {v}" for k, v in release.parameters.items()) or "none",
        "epsilon": epsilon_text(release.record.epsilon),
        "promise": release.unit.guarantee_text,
        "counts": release.unit.counted_text,
        "post-processing": (
            f"{release.post_processing.estimate} estimates, "
            f"{release.post_processing.density} density"
        ),
        "cells": f"{int(release.tree.is_leaf.sum()):,} leaves of {len(release.tree):,} nodes",
        "bounds": " ".join(f"{edge:.10g}" for edge in release.domain.bounds),
        "CRS": release.domain.crs,
        "covariate": "none" if release.covariate is None else "yes, stored in the release",
        "made by": f"psd {release.library}",
    }
    return section("The release", table_block("Public facts.", ("", ""), facts.items(), "words"))


def comparison_page(found: Comparison) -> str:
    """Report of a comparison as one HTML text.

    Parameters
    ----------
    found : Comparison
        True errors of several methods. Private.

    Returns
    -------
    str
        Private: for whoever holds the data.
    """
    epsilons = list(dict.fromkeys(found.table["epsilon"]))
    names = list(dict.fromkeys(found.table["method"]))
    runs = int(found.table["runs"].max())
    lead = f"{', '.join(names)}; epsilon {', '.join(epsilons)}; {runs} builds of each"
    body = [
        *(_ranking(found, epsilon) for epsilon in epsilons),
        _lines(found, epsilons),
        _all_errors(found),
    ]
    return page("true errors of several methods", body, lead=lead, notice=COMPARISON_NOTICE)


def _ranking(found: Comparison, epsilon: str) -> str:
    """Methods by their scores at one epsilon."""
    table = found.table[found.table["epsilon"] == epsilon].sort_values("score")
    best = table.iloc[0]
    rows = [
        (
            str(place),
            row["method"],
            f"{row['score']:.4f}",
            _or_dash(row["score_error"], "{:.4f}"),
            f"{row['score'] / best['score']:.2f}",
            "" if place == 1 else _distance(row, best),
        )
        for place, row in enumerate(table.to_dict("records"), 1)
    ]
    return section(
        f"Ranking at epsilon {epsilon}",
        table_block(
            "Score: geometric mean of the mean errors of eight classes; smaller is better.",
            ("", "method", "score", "standard error", "times the best", "behind the best"),
            rows,
        ),
    )


def _distance(row: Any, best: Any) -> str:
    """Distance of two scores in standard errors of their difference."""
    spread = float(np.hypot(row["score_error"], best["score_error"]))
    if not spread > 0:
        return "unknown: too few builds"
    far = (row["score"] - best["score"]) / spread
    return f"{far:.1f} standard errors" + (" (not told apart)" if far < _TIES else "")


def _lines(found: Comparison, epsilons: list[str]) -> str:
    """Scores by epsilon, and errors by size."""
    from psd.evaluation.reporting import figures as draw

    table = "the numbers are in the tables of this page."
    shown = [
        (
            draw.by_epsilon(found),
            f"Score of each method by epsilon; {table}",
            "Score by epsilon; bars: standard error over the builds.",
        )
    ]
    shown += [
        (
            draw.by_size(found, epsilon, kind),
            f"Mean relative error of each method by size of query, {kind}, epsilon {epsilon}; "
            f"{table}",
            f"Error by size of query at epsilon {epsilon}, centres {kind}.",
        )
        for epsilon in epsilons
        for kind in ("uniform", "on data")
    ]
    return section("Errors by epsilon and by size of query", figure_block(shown, private=True))


def _all_errors(found: Comparison) -> str:
    """All classes of all methods."""
    rows = [
        (
            row["method"],
            row["epsilon"],
            *(_percent(row[name]) for name in found.classes),
            f"{row['score']:.4f}",
            _or_dash(row["score_error"], "{:.4f}"),
            str(row["runs"]),
        )
        for row in found.table.to_dict("records")
    ]
    headings = ("method", "epsilon", *found.classes, "score", "standard error", "builds")
    return section("All errors", table_block("Mean true relative errors.", headings, rows))


def _percent(share: float) -> str:
    """A share in percent, three digits."""
    return f"{100 * share:.3g} %"


def _or_dash(value: float, form: str) -> str:
    """A number, or a dash where there is none."""
    return "-" if value != value else form.format(value)
