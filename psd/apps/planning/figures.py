"""Plots and HTML pages of plans: expected errors by size of query, or by level of regions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from psd._util.extras import picture_text
from psd._util.html import figure_block, page, paragraph, section, table_block
from psd.apps.evaluation.figures import LINES, MARKERS, add_legend, check_plot, finish_axes
from psd.apps.planning._constants import GOOD_ERROR
from psd.apps.planning.plan import Plan
from psd.apps.planning.region_plan import RegionPlan
from psd.apps.planning.text import (
    COLUMNS_NOTE,
    NOISE_NAMES,
    REGIONS_NOTE,
    percent_text,
    plan_sentences,
    plan_setting,
    range_columns,
    region_columns,
    region_sentences,
    region_setting,
    size_text,
)
from psd.query.answer_table import reliability_limits

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_LIMIT_LINE: dict[str, Any] = {"color": "#555", "linestyle": ":", "linewidth": 1}

_KINDS = {"on data": "centred on people", "anywhere": "at random locations"}


def check_plan_plot(path: Path) -> None:
    """Refuse a name that does not end in ``.png``, ``.svg`` or ``.html``."""
    check_plot(path, (".png", ".svg", ".html"))


def plot_plan(expected: Plan, path: Path) -> None:
    """Write mean relative errors by size of query, bands over densities, to .png, .svg or .html."""
    check_plan_plot(path)
    if path.suffix.lower() == ".html":
        path.write_text(_plan_page(expected), encoding="utf-8")
    else:
        _draw_figure(expected, list(_KINDS)).savefig(path, dpi=120, metadata=None)


def _draw_figure(expected: Plan, kinds: list[str], mean_of: str = "") -> Figure:
    """One row of panels per epsilon, one column per kind of centres; `mean_of`: of a value."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.ticker import StrMethodFormatter

    ranges, scale = expected.ranges, 1 if mean_of else 100
    measure = f"mean_{mean_of}_off" if mean_of else "mean_error"
    title = f"mean error of {picture_text(mean_of)}" if mean_of else "mean relative error (%)"
    epsilons = list(dict.fromkeys(ranges["epsilon"]))
    size = (5.2 * len(kinds) + 0.3, 3.9 * len(epsilons) + (0.4 if len(kinds) > 1 else 0))
    figure = Figure(figsize=size, layout="constrained")
    if len(kinds) > 1:
        area = size_text(expected.area_km2).replace("m2", "m²")
        figure.suptitle(f"Expected errors: {expected.count:,} records in {area}")
    panels = figure.subplots(len(epsilons), len(kinds), sharey="row", squeeze=False)
    for row, epsilon in zip(panels, epsilons, strict=True):
        for axes, kind in zip(row, kinds, strict=True):
            rows = ranges[(ranges["epsilon"] == epsilon) & (ranges["centres"] == kind)]
            # One band per method and law of noise, from the smallest to the largest error.
            names = rows["method"]
            if "noise" in rows:
                names = names + ", " + rows["noise"]
            if "window" in rows:
                names = names + ", " + rows["window"].map("{:,} slices".format)
            if "category" in rows:
                names = names + ", " + rows["category"].map("label with {:.3g} of all".format)
            for number, (name, errors) in enumerate(rows.groupby(names, sort=False)):
                errors = errors.sort_values("size_km2")
                sizes = errors["size_km2"]
                colour, marker = LINES[number % len(LINES)], MARKERS[number % len(MARKERS)]
                low, high = (scale * errors[f"{measure}_{end}"] for end in ("low", "high"))
                axes.fill_between(sizes, low, high, color=colour, alpha=0.18, linewidth=0)
                axes.plot(sizes, high, color=colour, marker=marker, markersize=5, label=name)
                axes.plot(sizes, low, color=colour, marker=marker, markersize=3, linewidth=0.8)
            axes.set_title(f"queries {_KINDS[kind]}, epsilon {epsilon}", fontsize=10)
        for column, axes in enumerate(row):
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            if not mean_of:
                axes.axhline(100 * GOOD_ERROR, **_LIMIT_LINE)
            finish_axes(axes, "size of the query (km²)", "" if column else title)
    # Legend of the methods, of the bands and of the line, below the panels.
    band: Any = Patch(color="#555", alpha=0.18, label="range over the assumed densities")
    good = Line2D([], [], label=f"{percent_text(GOOD_ERROR)}: a good error", **_LIMIT_LINE)
    handles = [*panels[0][0].get_legend_handles_labels()[0], band, *([] if mean_of else [good])]
    add_legend(figure, handles, 2 * len(kinds))
    return figure


def _plan_page(expected: Plan) -> str:
    epsilons = list(dict.fromkeys(expected.table["epsilon"]))
    lead = f"Epsilon {', '.join(epsilons)}: {plan_setting(expected)}."
    sentences = [paragraph(f"{text[0].upper()}{text[1:]}.") for text in plan_sentences(expected)]
    figures = [
        (
            _draw_figure(expected, [kind]),
            f"Mean relative error of queries {centres} by size, one band per method; the table "
            "below has the numbers.",
            f"Queries {centres}. Bands: range over the assumed densities. Dotted line: "
            f"{percent_text(GOOD_ERROR)}.",
        )
        for kind, centres in _KINDS.items()
    ]
    shown = [("Expected relative error by size of query", figure_block(figures, private=False))]
    if expected.values:
        # Where people are, as in the table of numbers.
        kind, centres = next(iter(_KINDS.items()))
        means = [
            (
                _draw_figure(expected, [kind], each.name),
                f"Mean absolute error of the mean of {each.name} of queries {centres} by size, one "
                "band per method; the table below has the numbers.",
                f"Mean of {each.name}, in its unit. Queries {centres}.",
            )
            for each in expected.values
        ]
        shown.append(("Expected error of means by size", figure_block(means, private=False)))
    densities = ", ".join(dict.fromkeys(expected.table["density"]))
    body = [
        section("Summary", *sentences),
        *(section(title, block) for title, block in shown),
        section("Numbers", _table(f"Relative errors. {COLUMNS_NOTE}", range_columns(expected))),
        section(
            "Method",
            paragraph(
                "The plan uses public parameters only; it reads no data. It draws synthetic "
                f"populations from the assumed densities ({densities}; {expected.runs} of "
                "each), builds releases of them with the real methods and their real noise, "
                "and queries boxes whose true counts are known. The relative error is "
                "|estimate - true| / max(true, 0.001 of all records)."
            ),
        ),
    ]
    return page("Expected errors of a release", body, lead=lead)


def _table(caption: str, columns: dict[str, list[str]]) -> str:
    """Columns under their names, in which underscores separate words."""
    headings = [name.replace("_", " ") for name in columns]
    return table_block(caption, headings, zip(*columns.values(), strict=True))


_QUALITY = reliability_limits(0.3)
_LIMITS = (_QUALITY.good, _QUALITY.reliable)


def plot_region_plan(expected: RegionPlan, path: Path) -> None:
    """Write relative errors by level, from median to 90th percentile, to .png, .svg or .html."""
    check_plan_plot(path)
    if path.suffix.lower() == ".html":
        path.write_text(_region_plan_page(expected), encoding="utf-8")
    else:
        _draw_region_figure(expected).savefig(path, dpi=120, metadata=None)


def _draw_region_figure(expected: RegionPlan) -> Figure:
    """One panel: levels from left to right, a mark for each epsilon and law of noise."""
    from matplotlib.figure import Figure

    table = expected.table
    levels = list(dict.fromkeys(table["level"]))
    keys = [name for name in ("epsilon", "noise", "window") if name in table]
    builds = [rows for _, rows in table.groupby(keys, sort=False)]
    figure = Figure(figsize=(max(4.5, 1.3 * len(levels) + 2), 3.9), layout="constrained")
    axes = figure.subplots()
    for number, rows in enumerate(builds):
        shift = (number - (len(builds) - 1) / 2) * 0.6 / len(builds)
        # Mean error of each level, and a line from the median to the 90th percentile.
        x = [position + shift for position in range(len(rows))]
        colour, marker = LINES[number % len(LINES)], MARKERS[number % len(MARKERS)]
        low, high = 100 * rows["median_error"], 100 * rows["error_90"]
        noise = f", {NOISE_NAMES[rows['noise'].iloc[0]]} noise" if "noise" in rows else ""
        if "window" in rows:
            noise += f", {rows['window'].iloc[0]:,} slices"
        axes.vlines(x, low, high, color=colour, alpha=0.4, linewidth=4)
        axes.plot(
            x,
            100 * rows["mean_error"],
            color=colour,
            marker=marker,
            linestyle="",
            label=f"epsilon {rows['epsilon'].iloc[0]}{noise}",
        )
    for limit in _LIMITS:
        axes.axhline(100 * limit, **_LIMIT_LINE)
    axes.set_xticks(range(len(levels)), [picture_text(name[:20]) for name in levels])
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


def _region_plan_page(expected: RegionPlan) -> str:
    limits = " and ".join(percent_text(limit) for limit in _LIMITS)
    figure = (
        _draw_region_figure(expected),
        "Relative error of the regions of each level, one mark per epsilon and law of noise; the "
        "table below has the numbers.",
        f"Marks: mean. Lines: median to 90th percentile. Dotted: {limits}, the limits of good and "
        "of use with care.",
    )
    body = [
        section("Expected relative error by level", figure_block([figure], private=False)),
        section("Numbers", _table(f"Expected errors. {REGIONS_NOTE}", region_columns(expected))),
    ]
    sentences = region_sentences(expected)
    if sentences:
        summary = "".join(paragraph(f"{each[0].upper()}{each[1:]}.") for each in sentences)
        body.insert(0, section("Summary", summary))
    return page("Expected errors of regions", body, lead=f"{region_setting(expected)}.")
