"""psd query: range counts from a release, with both errors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..options.command import Command
from ..options.common import RELEASE, overwrite
from ..options.time_slices import SLICE, release_or_series_at
from ..options.values import number
from ..output.terminal import console, make_room, show_stage

if TYPE_CHECKING:
    import pandas

    from psd.api.release import Release
    from psd.api.series import SeriesRelease

__all__ = ["command", "emit", "given_regions", "warn_beyond"]

FORMATS = ("table", "csv", "json", "geojson")


@click.command("query", cls=Command)
@RELEASE
@SLICE
@click.option(
    "--box", multiple=True, nargs=4, type=number, metavar="W S E N", help="A box; may be repeated."
)
@click.option("--boxes", type=click.Path(), help="CSV with west,south,east,north and maybe id.")
@click.option(
    "--polygons",
    type=click.Path(),
    help="Polygons: GeoPackage, GeoJSON, GeoParquet, WKT, CSV with a column wkt, ...",
)
@click.option("--polygons-crs", metavar="CRS", help="Of polygons whose file says none.")
@click.option("--confidence", type=number, default=0.95, show_default=True, help="Of the interval.")
@click.option(
    "--threshold", type=number, default=0.3, show_default=True, help="Relative error of `reliable`."
)
@click.option("--joint", is_flag=True, help="Answer together: intervals for all, and covariances.")
@click.option(
    "--nested", is_flag=True, help="Each region lies in the next, or in that of column parent."
)
@click.option("--explain", is_flag=True, help="Say what each error is made of, and what helps.")
@click.option(
    "--format", "form", type=click.Choice(FORMATS), help="Output; else by -o, else table."
)
@click.option("-o", "--output", type=click.Path(), help="File to write instead of the screen.")
@overwrite
def command(
    release: str,
    slice_name: str | None,
    joint: bool,
    nested: bool,
    explain: bool,
    form: str | None,
    output: str | None,
    overwrite: bool,
    **options: Any,
) -> None:
    """Answer range queries from the release file alone, and say how far each may be off and why.

    Perturbation error comes from the noise, non-uniformity error from cells that a query covers
    in part; both are predicted standard deviations. Boxes are west south east north in the CRS
    of the release; what lies outside its bounds is not answered for.

    Of a series of time slices, every slice is answered for, or the one of --slice.

    With --joint, the intervals joint_lower to joint_upper hold all at once with the confidence
    asked for; the covariances of the answers follow, and the total of regions that do not
    overlap. With --nested, counts add up, and ring is what lies in a region but in none inside.
    With --explain, each answer is followed by what its error is made of, the cells that matter
    most, and what more epsilon or finer cells would change.

    \b
    Examples:
      psd query seoul.psd.parquet --box 126.9 37.5 127.0 37.6 --box 126.4 37 127.6 38
      psd query seoul.psd.parquet --boxes boxes.csv -o answers.csv
      psd query seoul.psd.parquet --polygons districts.gpkg --format geojson -o answers.geojson
      psd query seoul.psd.parquet --polygons district.wkt --polygons-crs EPSG:5179
      psd query seoul.psd.parquet --polygons districts.gpkg --joint
      psd query year.psd.parquet --box 126.9 37.5 127.0 37.6 --slice 2024-06
      psd query seoul.psd.parquet --box 126.9 37.5 127.0 37.6 --explain
      psd query seoul.psd.parquet --box 126.9 37.5 127 37.6 --box 126.8 37.4 127.1 37.7 --nested
    """  # noqa: D301
    from psd._util.atomic_write import check_free
    from psd.api.series import SeriesRelease

    from ..output import explanation as explaining
    from ..output import joint as together

    form = _format(form, output)
    if joint + nested + explain > 1:
        raise click.UsageError("give --joint, --nested or --explain, one of them at a time")
    if explain and form not in ("table", "json"):
        raise click.UsageError(f"--explain is for people or --format json, not {form}")
    if output:
        named = filter(None, (options["boxes"], options["polygons"]))
        check_free(output, overwrite=overwrite, inputs=(release, *named))
    certainty = {name: options.pop(name) for name in ("confidence", "threshold")}
    regions = given_regions(**options)
    with show_stage() as stage:
        stage("reading")
        loaded = release_or_series_at(release, slice_name)
        if isinstance(loaded, SeriesRelease) and (joint or nested or explain):
            raise click.UsageError(
                "--joint, --nested and --explain are about a single release; name one --slice"
            )
        stage("answering")
        answers = found = _ask(loaded, regions, certainty, joint=joint, nested=nested)
        if joint:
            answers = found.answers
        reasons = (
            [] if isinstance(loaded, SeriesRelease) or not explain else loaded.explain(regions)
        )
        if form == "geojson":
            answers = _with_geometry(answers, regions, loaded.domain.crs)
    warn_beyond(loaded, regions)
    if form == "table" and not output:
        _print(answers, extra=together.EXTRA[joint, nested])
        if joint:
            together.show(found)
        for (_, answer), reason in zip(answers.iterrows(), reasons, strict=bool(reasons)):
            explaining.show(answer, reason)
        if loaded.unit.kind != "record":
            each = isinstance(loaded, SeriesRelease) and loaded.scope == "slice"
            told = loaded.unit.counted_text + " in each slice" * each
            click.echo(f"(counts are {told})", err=True)
        return
    text = together.text(found, form) if joint and form in ("csv", "json") else ""
    if explain:
        text = explaining.text(_text(answers, "json"), reasons)
    emit(text or _text(answers, form), output, overwrite=overwrite)


def _ask(
    loaded: Any, regions: Any, certainty: dict[str, float], *, joint: bool, nested: bool
) -> Any:
    """Answers of the selected kind."""
    if joint:
        return loaded.joint(regions, **certainty)
    if nested:
        return loaded.nested(regions, **certainty)
    return loaded.query(regions, **certainty)


def _format(form: str | None, output: str | None) -> str:
    """Format asked for, or that of the output's ending."""
    ending = Path(output or "").suffix[1:].lower()
    chosen = form or (ending if ending in FORMATS else "table")
    if output and chosen == "table":
        raise click.UsageError(f"-o {output}: name the format with --format csv, json or geojson")
    return chosen


def given_regions(
    box: tuple[Any, ...], boxes: str | None, polygons: str | None, polygons_crs: str | None
) -> Any:
    """Boxes or polygons, from exactly one of the three options."""
    from psd.space import region_files

    if sum(map(bool, (box, boxes, polygons))) != 1:
        raise click.UsageError("give --box, --boxes or --polygons, one kind at a time")
    if polygons_crs is not None and not polygons:
        raise click.UsageError(
            "--polygons-crs goes with --polygons; boxes are in the release's CRS"
        )
    if box:
        return list(box)
    if boxes:
        return region_files.read_boxes(Path(boxes))
    return region_files.read_polygons(Path(polygons or ""), crs=polygons_crs)


def _with_geometry(answers: pandas.DataFrame, regions: Any, crs: str) -> Any:
    """Answers with the box or polygon as geometry, in longitude and latitude."""
    import geopandas as gpd
    import numpy as np
    import shapely

    from psd.query.boxes import as_boxes
    from psd.space.crs import explain_proj_errors

    with explain_proj_errors("the answers", "EPSG:4326"):
        if isinstance(answers, gpd.GeoDataFrame):
            return answers.to_crs("EPSG:4326")
        shapes = shapely.box(*as_boxes(regions)[0].T)
        shapes = np.resize(shapes, len(answers))  # again for every slice of a series
        return gpd.GeoDataFrame(answers, geometry=shapes, crs=crs).to_crs("EPSG:4326")


def _text(answers: Any, form: str) -> str:
    """Answers as CSV, JSON or GeoJSON text."""
    if form == "geojson":
        text: str = answers.to_json(drop_id=True, default=str)
        return text + "\n"
    plain = answers[[name for name, kind in answers.dtypes.items() if str(kind) != "geometry"]]
    if form == "csv":
        return str(plain.to_csv(index=False, lineterminator="\n"))
    return str(plain.to_json(orient="records", indent=1, date_format="iso")) + "\n"


def emit(text: str, output: str | None, *, overwrite: bool) -> None:
    """Write a text to the screen or a file."""
    from psd._util.atomic_write import temporary_target

    if output is None:
        click.echo(text, nl=False)
        return
    with temporary_target(output, overwrite=overwrite) as target:
        target.write_text(text, encoding="utf-8")
    click.echo(f"wrote {output}")


# What a narrow terminal does without, in this order, rather than cut a number short.
_DISPENSABLE = (
    "relative_perturbation_error",
    "relative_nonuniformity_error",
    "perturbation_error",
    "nonuniformity_error",
    "error",
)


def _print(answers: pandas.DataFrame, extra: tuple[str, ...]) -> None:
    """Answers as a table for people: counts rounded, relative errors in percent."""
    from rich.table import Table

    from psd.query.answer_table import COLUMNS

    shown = (*COLUMNS, *extra)
    out = console()
    names = [name for name in ("id", "name", "NAME") if name in answers.columns][:1]
    names = [*(name for name in ("slice",) if name in answers.columns), *names]
    columns = {name: [_cell(name, v) for v in answers[name]] for name in (*names, *shown)}
    left_out = [name for name in _DISPENSABLE if name in columns]
    left_out = [name for name in left_out if make_room(columns, name, out.width)]
    table = Table(box=None, pad_edge=False)
    for name in columns:
        justify: Any = "left" if name in names else "right"
        table.add_column(name.replace("_", "\n"), justify=justify, no_wrap=name not in names)
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    out.print(table)
    if left_out:
        click.echo(f"(too narrow for {', '.join(left_out)}; see --format csv)", err=True)


def warn_beyond(loaded: Release | SeriesRelease, regions: Any) -> None:
    """Say on stderr that an answer leaves out what was never counted."""
    beyond = _beyond(loaded, regions)
    if beyond:
        click.echo(
            f"psd: warning: {beyond} of the regions reach beyond the bounds of the release; the "
            "part outside was never counted and is not in the answer",
            err=True,
        )


def _beyond(loaded: Release | SeriesRelease, regions: Any) -> int:
    """Number of regions that are not wholly inside the bounds."""
    import numpy as np

    from psd.query.boxes import as_boxes

    if hasattr(regions, "geometry"):
        sides = regions.to_crs(loaded.domain.crs).geometry.bounds.to_numpy()
    else:
        sides = as_boxes(regions)[0]
    low, high = np.array(loaded.domain.bounds[:2]), np.array(loaded.domain.bounds[2:])
    slack = 1e-9 * (high - low)
    outside = (sides[:, :2] < low - slack).any(axis=1) | (sides[:, 2:] > high + slack).any(axis=1)
    return int(outside.sum())


def _cell(name: str, value: Any) -> str:
    """One value as people read it."""
    if name == "reliable":
        return "yes" if value else "no"
    if name.startswith("relative"):
        return f"{100 * value:.1f}%"
    return str(value) if isinstance(value, str | int) or name == "id" else f"{value:,.1f}"
