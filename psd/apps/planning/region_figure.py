"""Plots and the HTML page of a plan of regions: expected errors by level. Public, like the plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from psd._util.html import figure_block, page, paragraph, section, table_block
from psd.apps.evaluation.reporting.axes import LINES, MARKERS, finish_axes
from psd.apps.planning.figure import check_plan_plot
from psd.apps.planning.region_plan import RegionPlan
from psd.apps.planning.text import (
    NOISE_NAMES,
    REGIONS_NOTE,
    percent_text,
    region_columns,
    region_sentences,
    region_setting,
)
from psd.query.reliability import reliability_limits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_region_plan"]

_QUALITY = reliability_limits(0.3)
_LIMITS = (_QUALITY.good, _QUALITY.reliable)

_LIMIT: dict[str, Any] = {"color": "#555", "linestyle": ":", "linewidth": 1}


def plot_region_plan(expected: RegionPlan, path: Path) -> None:
    """Write a plot of relative errors by level, from the median to the 90th percentile.

    Parameters
    ----------
    expected : RegionPlan
        Plan to plot.
    path : Path
        File whose name ends in ``.png``, ``.svg``, or ``.html`` for a page with the table.
    """
    check_plan_plot(path)
    if path.suffix.lower() == ".html":
        path.write_text(_plan_page(expected), encoding="utf-8")
    else:
        _draw_figure(expected).savefig(path, dpi=120, metadata=None)


def _draw_figure(expected: RegionPlan) -> Figure:
    """One panel: levels from left to right, a mark for each epsilon and law of noise."""
    from matplotlib.figure import Figure

    table = expected.table
    levels = list(dict.fromkeys(table["level"]))
    keys = [name for name in ("epsilon", "noise") if name in table]
    builds = [rows for _, rows in table.groupby(keys, sort=False)]
    figure = Figure(figsize=(max(4.5, 1.3 * len(levels) + 2), 3.9), layout="constrained")
    axes = figure.subplots()
    for number, rows in enumerate(builds):
        shift = (number - (len(builds) - 1) / 2) * 0.6 / len(builds)
        _draw_errors(axes, rows, number, shift)
    for limit in _LIMITS:
        axes.axhline(100 * limit, **_LIMIT)
    # Names of levels are from a file; a dollar sign would begin a formula.
    axes.set_xticks(range(len(levels)), [name[:20].replace("$", r"\$") for name in levels])
    axes.set_xlim(-0.5, len(levels) - 0.5)
    finish_axes(axes, "level", "relative error (%)")
    figure.legend(
        *axes.get_legend_handles_labels(),
        ncols=min(len(builds), 4 if len(keys) == 1 else 2),
        loc="outside lower center",
        frameon=False,
        fontsize=9,
    )
    return figure


def _draw_errors(axes: Axes, rows: Any, number: int, shift: float) -> None:
    """Mean error of each level, and a line from the median to the 90th percentile."""
    x = [position + shift for position in range(len(rows))]
    colour, marker = LINES[number % len(LINES)], MARKERS[number % len(MARKERS)]
    low, high = 100 * rows["median_error"], 100 * rows["error_90"]
    noise = f", {NOISE_NAMES[rows['noise'].iloc[0]]} noise" if "noise" in rows else ""
    axes.vlines(x, low, high, color=colour, alpha=0.4, linewidth=4)
    axes.plot(
        x,
        100 * rows["mean_error"],
        color=colour,
        marker=marker,
        linestyle="",
        label=f"epsilon {rows['epsilon'].iloc[0]}{noise}",
    )


def _plan_page(expected: RegionPlan) -> str:
    """The plan as an HTML page."""
    limits = " and ".join(percent_text(limit) for limit in _LIMITS)
    figure = (
        _draw_figure(expected),
        "Relative error of the regions of each level, one mark per epsilon and law of noise; the "
        "table below has the numbers.",
        f"Marks: mean. Lines: median to 90th percentile. Dotted: {limits}, the limits of good and "
        "of use with care.",
    )
    columns = region_columns(expected)
    table = table_block(
        f"Expected errors. {REGIONS_NOTE}",
        [name.replace("_", " ") for name in columns],
        zip(*columns.values(), strict=True),
    )
    body = [
        section("Expected relative error by level", figure_block([figure], private=False)),
        section("Numbers", table),
    ]
    sentences = region_sentences(expected)
    if sentences:
        summary = "".join(paragraph(f"{each[0].upper()}{each[1:]}.") for each in sentences)
        body.insert(0, section("Summary", summary))
    return page("Expected errors of regions", body, lead=f"{region_setting(expected)}.")
