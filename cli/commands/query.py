"""psd query: range counts from a release, with both errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from ..options.command import Command
from ..options.common import RELEASE, overwrite
from ..options.regions import read_regions
from ..options.time_slices import SLICE, release_or_series_at
from ..options.values import NUMBER
from ..output.tables import state_source
from ..output.terminal import show_stage
from ..output.text_files import output_format, write_text

if TYPE_CHECKING:
    from psd.api.release import Release
    from psd.api.series import SeriesRelease
    from psd.query.explain import Explanation

__all__ = ["command"]

FORMATS = ("table", "csv", "json", "geojson")


@click.command("query", cls=Command)
@RELEASE
@SLICE
@click.option(
    "--box", multiple=True, nargs=4, type=NUMBER, metavar="W S E N", help="A box; may be repeated."
)
@click.option(
    "--boxes",
    type=click.Path(),
    help="CSV of boxes with the columns west, south, east, north and optionally id.",
)
@click.option(
    "--polygons",
    type=click.Path(),
    help="Polygons: GeoPackage, GeoJSON, GeoParquet, WKT, CSV with a column wkt, ...",
)
@click.option(
    "--polygons-crs", metavar="CRS", help="CRS of --polygons, where the file states none."
)
@click.option(
    "--repair",
    is_flag=True,
    help="Repair invalid polygons of --polygons. They are refused otherwise, since a repair may "
    "change their area.",
)
@click.option(
    "--confidence", type=NUMBER, default=0.95, show_default=True, help="Confidence of the interval."
)
@click.option(
    "--threshold",
    type=NUMBER,
    default=0.3,
    show_default=True,
    help="Largest relative error of an answer that is marked reliable.",
)
@click.option(
    "--joint",
    is_flag=True,
    help="Answer all regions together: intervals that hold jointly, and covariances.",
)
@click.option(
    "--nested",
    is_flag=True,
    help="Each region lies inside the next, or inside the region that its column parent names.",
)
@click.option(
    "--explain", is_flag=True, help="Show the parts of each error, and what would reduce it."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Format of the output; by default from the ending of -o, or a table on the screen.",
)
@click.option("-o", "--output", type=click.Path(), help="File to write instead of the screen.")
@overwrite
def command(
    release: str,
    slice_name: str | None,
    form: str | None,
    output: str | None,
    overwrite: bool,
    **options: Any,
) -> None:
    """Answer range queries from the release file alone, with predicted errors.

    Perturbation error comes from the noise, non-uniformity error from cells that a query covers
    in part; both are predicted standard deviations. Boxes are west south east north in the CRS
    of the release. Records outside its bounds were not counted and are not in the answers. If the
    release has a coordinate resolution, a box counts the records whose rounded coordinates lie in
    it, those on its west and south edge included; a box between two values is answered by 0.

    Relative errors are divided by the larger of the estimate and the sanity bound, which is 0.001
    of the total of the release and at least 1. An answer is reliable if its relative error is at
    most --threshold.

    For a series of time slices, every slice is answered, or the one that --slice names.

    With --joint, all intervals joint_lower to joint_upper hold together with the stated
    confidence; the covariances of the answers follow, and the total of the regions if they do
    not overlap. With --nested, answers are consistent between levels, and `ring` is the count
    inside a region but outside the regions nested in it. With --explain, each answer is followed
    by the parts of its error, the cells that contribute most, and the effect of a larger epsilon
    or of smaller cells.

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

    from ..output.answers import warn_of_regions_beyond

    kind = _select_kind(**{name: options.pop(name) for name in ("joint", "nested", "explain")})
    form = output_format(form, output, FORMATS)
    if kind == "explain" and form not in ("table", "json"):
        raise click.UsageError(f"--format must be table or json with --explain, got {form}")
    if output:
        files = filter(None, (options["boxes"], options["polygons"]))
        check_free(output, overwrite=overwrite, inputs=(release, *files))
    certainty = {name: options.pop(name) for name in ("confidence", "threshold")}
    regions = read_regions(**options)
    with show_stage() as stage:
        stage("reading")
        loaded = release_or_series_at(release, slice_name)
        stage("answering")
        result = _answer_regions(loaded, regions, kind, certainty)
    warn_of_regions_beyond(loaded, regions)
    if form == "table":
        _print_result(result)
    else:
        write_text(_result_text(result, form), output, overwrite=overwrite)


def _select_kind(**flags: bool) -> str:
    """The flag that is set, or an empty text."""
    kinds = [name for name, is_set in flags.items() if is_set]
    if len(kinds) > 1:
        raise click.UsageError("at most one of --joint, --nested and --explain must be given")
    return kinds[0] if kinds else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    """Answers, and what a kind of answer adds to them."""

    loaded: Release | SeriesRelease
    regions: Any
    kind: str
    answers: Any
    joint: Any = None
    explanations: list[Explanation] = field(default_factory=list)


def _answer_regions(
    loaded: Release | SeriesRelease, regions: Any, kind: str, certainty: dict[str, float]
) -> _Result:
    """Answers of the selected kind."""
    from psd.api.series import SeriesRelease

    extra: dict[str, Any] = {}
    if isinstance(loaded, SeriesRelease):
        if kind:
            raise click.UsageError(
                "--joint, --nested and --explain need a single release; name a slice with --slice"
            )
        answers: Any = loaded.query(regions, **certainty)
    elif kind == "joint":
        extra["joint"] = loaded.joint(regions, **certainty)
        answers = extra["joint"].answers
    elif kind == "nested":
        answers = loaded.nested(regions, **certainty)
    else:
        answers = loaded.query(regions, **certainty)
        if kind == "explain":
            extra["explanations"] = loaded.explain(regions)
    state_source(answers, loaded.source)
    return _Result(loaded=loaded, regions=regions, kind=kind, answers=answers, **extra)


def _print_result(result: _Result) -> None:
    """Print answers for people."""
    from ..output.answers import note_sanity_bound, print_answers
    from ..output.explanation import print_explanation
    from ..output.joint import EXTRA, print_joint

    print_answers(result.answers, extra=EXTRA.get(result.kind, ()))
    note_sanity_bound(result.answers, result.loaded)
    if result.joint is not None:
        print_joint(result.joint)
    for (_, answer), explanation in zip(
        result.answers.iterrows(), result.explanations, strict=bool(result.explanations)
    ):
        print_explanation(answer, explanation)
    if result.loaded.unit.kind != "record":
        each = getattr(result.loaded.record, "bound_text", "")
        click.echo(f"(counts are {result.loaded.unit.counted_text}{each})", err=True)


def _result_text(result: _Result, form: str) -> str:
    """Answers as CSV, JSON or GeoJSON text."""
    from ..output.answers import add_geometry, answers_text
    from ..output.explanation import explanations_json
    from ..output.joint import joint_text

    if form == "geojson":
        crs = result.loaded.domain.crs
        return answers_text(add_geometry(result.answers, result.regions, crs), form)
    if result.joint is not None:
        return joint_text(result.joint, form)
    text = answers_text(result.answers, form)
    return explanations_json(text, result.explanations) if result.explanations else text
