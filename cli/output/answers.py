"""Answers to queries: as a table on the screen, as text, and the warning about what they omit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..output.columns import Column, print_columns
from ..output.terminal import print_warning, printable

if TYPE_CHECKING:
    import pandas

    from psd.api.release import Release
    from psd.api.series import SeriesRelease

__all__ = [
    "add_geometry",
    "answers_text",
    "note_sanity_bound",
    "print_answers",
    "warn_of_regions_beyond",
]

# Columns that a narrow terminal leaves out, in this order, so that no number is cut.
_DISPENSABLE = (
    "relative_perturbation_error",
    "relative_nonuniformity_error",
    "perturbation_error",
    "nonuniformity_error",
    "error",
)


def print_answers(answers: pandas.DataFrame, extra: tuple[str, ...]) -> None:
    """Print answers as a table: counts rounded, relative errors in percent."""
    from psd.query.answer_table import COLUMNS

    names = [name for name in ("id", "name", "NAME") if name in answers.columns][:1]
    names = [*(name for name in ("slice",) if name in answers.columns), *names]
    columns = [
        Column(
            heading=name,
            values=[_value_text(name, value) for value in answers[name]],
            left=name in names,
            folds=name in names,
        )
        for name in (*names, *COLUMNS, *extra)
    ]
    left_out = print_columns(columns, dispensable=_DISPENSABLE)
    if left_out:
        click.echo(f"(too narrow for {', '.join(left_out)}; see --format csv)", err=True)


def _value_text(name: str, value: Any) -> str:
    """One value as people read it."""
    if name == "reliable":
        return "yes" if value else "no"
    if name.startswith("relative"):
        return f"{100 * value:.1f}%"
    is_text = isinstance(value, str | int) or name == "id"
    return printable(str(value)) if is_text else f"{value:,.1f}"


def note_sanity_bound(answers: pandas.DataFrame, loaded: Release | SeriesRelease) -> None:
    """State what relative errors are relative to, if it is not the estimate in every row."""
    from psd.api.series import SeriesRelease

    if isinstance(loaded, SeriesRelease):
        parts = [(answers[answers["slice"] == name], loaded[name]) for name in loaded]
    else:
        parts = [(answers, loaded)]
    bounds = [bound for rows, release in parts for bound in _bounds_above(rows, release)]
    if bounds:
        low, high = _count_text(min(bounds)), _count_text(max(bounds))
        counted = ("user" if loaded.unit.weight else "record") + "s" * (high != "1")
        limit = f"{low} {counted}" if low == high else f"{low} to {high} {counted}, by slice"
        click.echo(f"(relative errors are relative to at least {limit})", err=True)


def _bounds_above(rows: pandas.DataFrame, release: Release) -> list[float]:
    """The sanity bound of a release, if an estimate is below it."""
    from psd.query.answer_table import sanity_bound

    bound = sanity_bound(release.total)
    return [bound] if (rows["estimate"] < bound).any() else []


def _count_text(bound: float) -> str:
    """A sanity bound as people read it."""
    return f"{bound:,.0f}" if bound >= 10 else f"{bound:.2g}"


def answers_text(answers: Any, form: str) -> str:
    """Answers as CSV, JSON or GeoJSON text."""
    if form == "geojson":
        text: str = answers.to_json(drop_id=True, default=str)
        return text + "\n"
    plain = answers[[name for name, kind in answers.dtypes.items() if str(kind) != "geometry"]]
    if form == "csv":
        return str(plain.to_csv(index=False, lineterminator="\n"))
    return str(plain.to_json(orient="records", indent=1, date_format="iso")) + "\n"


def add_geometry(answers: pandas.DataFrame, regions: Any, crs: str) -> Any:
    """Answers with the box or polygon as geometry, in longitude and latitude."""
    import geopandas as gpd
    import numpy as np
    import shapely

    from psd.query.boxes import parse_boxes
    from psd.space.crs import explain_proj_errors

    with explain_proj_errors("the answers", "EPSG:4326"):
        if isinstance(answers, gpd.GeoDataFrame):
            return answers.to_crs("EPSG:4326")
        shapes = shapely.box(*parse_boxes(regions)[0].T)
        shapes = np.resize(shapes, len(answers))  # again for every slice of a series
        return gpd.GeoDataFrame(answers, geometry=shapes, crs=crs).to_crs("EPSG:4326")


def warn_of_regions_beyond(loaded: Release | SeriesRelease, regions: Any) -> None:
    """Warn that an answer leaves out the parts of regions beyond the bounds."""
    beyond = _count_regions_beyond(loaded, regions)
    if beyond:
        regions_text = "1 region reaches" if beyond == 1 else f"{beyond:,} regions reach"
        print_warning(
            f"{regions_text} beyond the bounds of the release; the part outside was never counted "
            "and is not in the answer"
        )


def _count_regions_beyond(loaded: Release | SeriesRelease, regions: Any) -> int:
    """Number of regions that are not entirely inside the bounds."""
    import numpy as np

    from psd.query.boxes import parse_boxes

    if hasattr(regions, "geometry"):
        sides = regions.to_crs(loaded.domain.crs).geometry.bounds.to_numpy()
    else:
        sides = parse_boxes(regions)[0]
    low, high = np.array(loaded.domain.bounds[:2]), np.array(loaded.domain.bounds[2:])
    slack = 1e-9 * (high - low)
    outside = (sides[:, :2] < low - slack).any(axis=1) | (sides[:, 2:] > high + slack).any(axis=1)
    return int(outside.sum())
