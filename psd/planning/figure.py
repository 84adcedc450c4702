"""Pictures of a plan: expected errors by size of query. Public, like the plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from psd._util.html import figure_block, page, paragraph, section, table_block
from psd.evaluation.reporting.plots import LINES, MARKERS, check_plot, finish
from psd.planning.plan import Plan
from psd.planning.text import GOOD, percent, range_columns, setting, size_text, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["check_plan_plot", "plot_plan"]

_KINDS = {"on data": "where people are", "anywhere": "anywhere"}


def check_plan_plot(path: Path) -> None:
    """Refuse a picture that could not be written, before any work is done.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    ParameterError
        If the ending is none of ``.png``, ``.svg`` and ``.html``.
    """
    check_plot(path, (".png", ".svg", ".html"))


def plot_plan(found: Plan, path: Path) -> None:
    """Write mean relative errors by size of query, as bands over the assumed densities.

    Parameters
    ----------
    found : Plan
        What is shown.
    path : Path
        Ends in ``.png``, ``.svg``, or ``.html`` for a page with tables.
    """
    check_plan_plot(path)
    if path.suffix.lower() == ".html":
        path.write_text(_page(found), encoding="utf-8")
    else:
        _figure(found, list(_KINDS)).savefig(path, dpi=120, metadata=None)


def _figure(found: Plan, kinds: list[str]) -> Figure:
    """One row of panels per epsilon, one column per kind of centres."""
    from matplotlib.figure import Figure

    ranges = found.ranges
    epsilons = list(dict.fromkeys(ranges["epsilon"]))
    size = (5.2 * len(kinds) + 0.3, 3.9 * len(epsilons) + (0.4 if len(kinds) > 1 else 0))
    figure = Figure(figsize=size, layout="constrained")
    if len(kinds) > 1:
        figure.suptitle(f"Expected errors: {found.count:,} records in {size_text(found.area_km2)}")
    panels = figure.subplots(len(epsilons), len(kinds), sharey="row", squeeze=False)
    for row, epsilon in zip(panels, epsilons, strict=True):
        for axes, kind in zip(row, kinds, strict=True):
            rows = ranges[(ranges["epsilon"] == epsilon) & (ranges["centres"] == kind)]
            _bands(axes, rows)
            axes.set_title(f"queries {_KINDS[kind]}, epsilon {epsilon}", fontsize=10)
        for place, axes in enumerate(row):
            _label(axes, "" if place else "mean relative error (%)")
    panels[0][0].legend(frameon=False, fontsize=9)
    return figure


def _bands(axes: Axes, rows: Any) -> None:
    """A band from least to most for each method."""
    for place, (name, own) in enumerate(rows.groupby("method", sort=False)):
        own = own.sort_values("size_km2")
        colour, marker = LINES[place % len(LINES)], MARKERS[place % len(MARKERS)]
        low, high = 100 * own["mean_error_low"], 100 * own["mean_error_high"]
        axes.fill_between(own["size_km2"], low, high, color=colour, alpha=0.18, linewidth=0)
        axes.plot(own["size_km2"], high, color=colour, marker=marker, markersize=5, label=name)
        axes.plot(own["size_km2"], low, color=colour, marker=marker, markersize=3, linewidth=0.8)


def _label(axes: Axes, label: str) -> None:
    """Scales with plain numbers, and the line of what is good."""
    from matplotlib.ticker import StrMethodFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.axhline(100 * GOOD, color="#555", linestyle=":", linewidth=1)
    finish(axes, "size of the query (km²)", label)


def _page(found: Plan) -> str:
    """The plan as a web page."""
    epsilons = list(dict.fromkeys(found.table["epsilon"]))
    lead = f"Epsilon {', '.join(epsilons)}: {setting(found)}."
    said = [paragraph(f"{text[0].upper()}{text[1:]}.") for text in words(found)]
    figures = [
        (
            _figure(found, [kind]),
            f"Mean relative error of queries {where} by their size, a band per method; the "
            "numbers are in the table below.",
            f"Queries {where}. Bands: range of the assumed densities. Dots: {percent(GOOD)}.",
        )
        for kind, where in _KINDS.items()
    ]
    body = [
        section("In words", *said),
        section("Expected relative error by size of query", figure_block(figures, private=False)),
        section("Figures", _table(found)),
        section(
            "How this was made",
            paragraph(
                "From public parameters alone: no data was read. Populations were made up from "
                f"the assumed densities ({', '.join(dict.fromkeys(found.table['density']))}; "
                f"{found.runs} of each), built with the real methods and their real noise, and "
                "asked for boxes whose counts are known. The relative error is |estimate - true| "
                "over max(true, 0.001 of all records)."
            ),
        ),
    ]
    return page("Expected errors of a release", body, lead=lead)


def _table(found: Plan) -> str:
    """Ranges, one row each."""
    columns = range_columns(found)
    return table_block(
        "Relative errors where people are, over the assumed densities; anywhere: of all places.",
        [name.replace("_", " ") for name in columns],
        zip(*columns.values(), strict=True),
    )
