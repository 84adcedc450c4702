"""psd query: range counts from a release, with both errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from ..options.command import Command
from ..options.common import RELEASE, overwrite
from ..options.region_names import NamedRegions, named_regions, region_name_options
from ..options.regions import read_regions
from ..options.reliability import unreliable_options
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

TEXTS = ("csv", "json", "geojson", "html")
FILES = ("gpkg", "parquet", "fgb", "pmtiles", "xlsx")
FORMATS = ("table", *TEXTS, *FILES)


@click.command("query", cls=Command)
@RELEASE
@SLICE
@click.option(
    "--box", multiple=True, nargs=4, type=NUMBER, metavar="W S E N", help="A box; may be repeated."
)
@click.option(
    "--boxes",
    type=click.Path(),
    help="CSV, XLSX or Parquet file of boxes with the columns west, south, east, north and "
    "optionally id. CSV may be separated by commas, semicolons or tabs.",
)
@click.option(
    "--polygons",
    type=click.Path(),
    help="Polygons: GeoPackage, GeoJSON, GeoParquet, WKT, CSV with a column wkt, ... "
    "FILE:layer=NAME reads one of several layers.",
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
@region_name_options
@click.option(
    "--sum",
    "is_sum",
    is_flag=True,
    help="Answer the slices of a series together: one answer per region, with its errors.",
)
@click.option(
    "--slices",
    metavar="FIRST..LAST",
    help="Slices that --sum adds up, both ends included; all by default.",
)
@click.option(
    "--confidence", type=NUMBER, default=0.95, show_default=True, help="Confidence of the interval."
)
@unreliable_options
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
    help="Format of the output; by default from the ending of -o, or a table on the screen. gpkg, "
    "parquet, fgb, pmtiles and xlsx are for files alone.",
)
@click.option("-o", "--output", type=click.Path(), help="File to write instead of the screen.")
@overwrite
def command(
    release: str,
    slice_name: str | None,
    form: str | None,
    output: str | None,
    overwrite: bool,
    unreliable: str,
    **options: Any,
) -> None:
    """Answer range queries from the release file alone, with predicted errors.

    Perturbation error comes from the noise, non-uniformity error from cells that a query covers
    in part; both are predicted standard deviations. Boxes are west south east north in the CRS
    of the release. Records outside its bounds were not counted and are not in the answers. If the
    release has a coordinate resolution, a box counts the records whose rounded coordinates lie in
    it, those on its west and south edge included; a box between two values is answered by 0.

    A relative error is error / estimate, infinite where the estimate is 0 and the error is not;
    JSON, GeoPackage, FlatGeobuf, tiles and XLSX have no value there. An answer is reliable if its
    relative error is at most --threshold and its interval lies above 0. Its quality is good, use
    with care or, if it is not reliable, poor.

    Files keep the columns, the order and the CRS of the regions (GeoJSON is in EPSG:4326), and
    state the guarantee, as far as the format has room. csv, html and xlsx have no shapes. A column
    that a format cannot hold, such as numbers of 17 digits in xlsx, becomes text.

    For a series of time slices, every slice is answered, or the one that --slice names. With --sum,
    the slices are answered together, or those of --slices. The noise of different slices is
    independent, so its variances are added. What is uneven inside a cell may be alike in all
    slices, so its standard deviations are added. The sum is that of unbiased estimates, cut at 0.

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
      psd query seoul.psd.parquet --polygons districts.gpkg -o answers.gpkg
      psd query seoul.psd.parquet --polygons districts.gpkg -o answers.xlsx --unreliable mark
      psd query seoul.psd.parquet --polygons district.wkt --polygons-crs EPSG:5179
      psd query seoul.psd.parquet --polygons districts.gpkg --joint
      psd query wards.psd.parquet --all-regions --level district
      psd query wards.psd.parquet --region "North bank" --region Airport --level district --joint
      psd query wards.psd.parquet --table population.csv --table-id ward -o answers.csv
      psd query year.psd.parquet --box 126.9 37.5 127.0 37.6 --slice 2024-06
      psd query year.psd.parquet --box 126.9 37.5 127.0 37.6 --slices 2024-03..2024-05 --sum
      psd query seoul.psd.parquet --box 126.9 37.5 127.0 37.6 --explain
      psd query seoul.psd.parquet --box 126.9 37.5 127 37.6 --box 126.8 37.4 127.1 37.7 --nested
    """  # noqa: D301
    from psd._util.atomic_write import check_free
    from psd._util.column_kinds import check_columns
    from psd.query.answer_table import COLUMNS

    from ..output.answers import warn_of_regions_beyond
    from ..output.box_answers import box_answers, box_answers_text, print_box_answers

    kinds = {name: options.pop(name) for name in ("joint", "nested", "explain")}
    kind = _select_kind(**kinds, sum=options.pop("is_sum"))
    ends = _select_slices(options.pop("slices"), slice_name, kind)
    form = output_format(form, output, FORMATS)
    if kind == "explain" and form not in ("table", "json"):
        raise click.UsageError(f"--format must be table or json with --explain, got {form}")
    if form in FILES and not output:
        raise click.UsageError(f"--format {form} needs a file; name it with -o")
    if output:
        files = filter(None, (options["boxes"], options["polygons"], options["table"]))
        check_free(output, overwrite=overwrite, inputs=(release, *files))
    certainty: dict[str, Any] = {name: options.pop(name) for name in ("confidence", "threshold")}
    names = {key: options.pop(key) for key in ("all_regions", "region", "table", "table_id", "level")}
    named = named_regions(**names)
    if named is not None:
        _check_named(named, kind, any(options.values()))
    regions: Any = read_regions(**options) if named is None else named
    table = regions if named is None else named.table
    if hasattr(table, "columns"):
        check_columns(table, form, COLUMNS)  # before any work
    with show_stage() as stage:
        stage("reading")
        loaded = release_or_series_at(release, slice_name)
        stage("answering")
        is_plain = not kind and unreliable == "keep" and form in ("table", "csv")
        columns = box_answers(loaded, regions, **certainty) if is_plain else None
        if columns is None:
            result = _answer_regions(loaded, regions, kind, certainty | ends, unreliable)
    warn_of_regions_beyond(loaded, regions)
    if columns is not None and form == "table":
        print_box_answers(columns)
        _note_unit(loaded)
    elif columns is not None:
        write_text(box_answers_text(columns), output, overwrite=overwrite)
    elif form == "table":
        _print_result(result)
    elif form in FILES:
        _write_file(result, form, str(output), overwrite=overwrite)
    else:
        write_text(_result_text(result, form), output, overwrite=overwrite)


def _check_named(named: NamedRegions, kind: str, has_others: bool) -> None:
    """Refuse what has no meaning for regions that are asked for by name."""
    if has_others:
        raise click.UsageError(
            "--all-regions, --region and --table must be given without --box, --boxes and "
            "--polygons; named regions are answered alone"
        )
    reasons = {
        "nested": "the levels of regions add up already; ask for each --level",
        "explain": "they cut no cell, so all of their error is noise, which a larger epsilon, or a "
        "larger levels_share, would reduce",
    }
    if kind in reasons:
        raise click.UsageError(
            f"--{kind} must be left out with --all-regions, --region and --table: {reasons[kind]}"
        )
    if kind == "joint" and named.table is not None:
        raise click.UsageError(
            "--joint must be given without --table, whose rows may repeat; name regions with "
            "--region, or take --all-regions"
        )


def _select_kind(**flags: bool) -> str:
    """The flag that is set, or an empty text."""
    kinds = [name for name, is_set in flags.items() if is_set]
    if len(kinds) > 1:
        raise click.UsageError(
            "at most one of --joint, --nested, --explain and --sum must be given"
        )
    return kinds[0] if kinds else ""


def _select_slices(text: str | None, slice_name: str | None, kind: str) -> dict[str, str]:
    """First and last slice of a sum; empty without."""
    if text is not None and kind != "sum":
        raise click.UsageError(
            "--slices must be given with --sum, which adds slices up; --slice answers one of them"
        )
    if kind == "sum" and slice_name is not None:
        raise click.UsageError("--slice must be left out with --sum; name slices with --slices")
    if text is None:
        return {}
    first, dots, last = text.partition("..")
    return {"first": first, "last": last if dots else first}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    """Answers, and what a kind of answer adds to them."""

    loaded: Release | SeriesRelease
    regions: Any
    kind: str
    answers: Any
    metadata: dict[str, str]
    joint: Any = None
    explanations: list[Explanation] = field(default_factory=list)


def _answer_regions(
    loaded: Release | SeriesRelease,
    regions: Any,
    kind: str,
    certainty: dict[str, Any],
    unreliable: str,
) -> _Result:
    """Answers of the selected kind."""
    from psd.api.series import SeriesRelease

    from ..output.answer_files import answers_metadata, treat_answers

    extra: dict[str, Any] = {}
    ends = {name: certainty.pop(name) for name in ("first", "last") if name in certainty}
    if kind == "sum" and not isinstance(loaded, SeriesRelease):
        raise click.UsageError("--sum must be used with a series of time slices, got one release")
    if kind and kind != "sum" and isinstance(loaded, SeriesRelease):
        raise click.UsageError(
            "--joint, --nested and --explain need a single release; name a slice with --slice"
        )
    if isinstance(loaded, SeriesRelease) and kind == "sum":
        named = isinstance(regions, NamedRegions)
        answers: Any = (
            regions.answer_sums(loaded, certainty | ends)
            if named
            else loaded.total(regions, **certainty, **ends)
        )
    elif isinstance(regions, NamedRegions) and kind:
        extra["joint"] = regions.answer_jointly(loaded, certainty)
        answers = extra["joint"].answers
    elif isinstance(regions, NamedRegions):
        answers = regions.answer(loaded, certainty)
    elif isinstance(loaded, SeriesRelease):
        answers = loaded.query(regions, **certainty)
    elif kind == "joint":
        extra["joint"] = loaded.joint(regions, **certainty)
        answers = extra["joint"].answers
    elif kind == "nested":
        answers = loaded.nested(regions, **certainty)
    elif kind == "explain":
        answers = loaded.query(regions, **certainty)
        extra["explanations"] = loaded.explain(regions)
    else:
        answers = loaded.with_near_fit().query(regions, **certainty)
    state_source(answers, loaded.source)
    if unreliable != "keep":
        if kind in ("joint", "nested", "explain"):
            raise click.UsageError(
                f"--unreliable must be keep with --{kind}, got {unreliable}; its answers belong "
                "together"
            )
        if isinstance(regions, NamedRegions):
            answers = regions.add_geometry(answers, loaded)
        answers = treat_answers(answers, regions, loaded, unreliable, certainty["threshold"])
    metadata = answers_metadata(loaded, unreliable, **certainty)
    return _Result(
        loaded=loaded, regions=regions, kind=kind, answers=answers, metadata=metadata, **extra
    )


def _print_result(result: _Result) -> None:
    """Print answers for people."""
    from psd.query.answer_table import COLUMNS

    from ..output.answers import print_answers
    from ..output.explanation import print_explanation
    from ..output.joint import EXTRA, print_joint

    print_answers(result.answers, EXTRA.get(result.kind, ()))
    if result.joint is not None:
        print_joint(result.joint)
    if result.explanations:
        named = result.answers.columns.isin(["id", "name", "NAME", *COLUMNS])
        rows = result.answers.loc[:, named].iterrows()
        for (_, answer), explanation in zip(rows, result.explanations, strict=True):
            print_explanation(answer, explanation)
    _note_unit(result.loaded)


def _note_unit(loaded: Release | SeriesRelease) -> None:
    """Print what was counted, where that is not records."""
    counted = loaded.record.counted_text
    if counted != "records":
        click.echo(f"(counts are {counted})", err=True)


def _result_text(result: _Result, form: str) -> str:
    """Answers as CSV, JSON, GeoJSON or HTML text."""
    from ..output.answer_files import answers_page, answers_text, in_degrees
    from ..output.explanation import explanations_json
    from ..output.joint import joint_text

    if form == "geojson":
        return answers_text(in_degrees(_answers_with_geometry(result)), form, result.metadata)
    if form == "html":
        return answers_page(result.answers, result.metadata)
    if result.joint is not None:
        return joint_text(result.joint, form)
    text = answers_text(result.answers, form)
    return explanations_json(text, result.explanations) if result.explanations else text


def _answers_with_geometry(result: _Result) -> Any:
    """Answers with the geometry of what was asked about."""
    from ..output.answer_files import add_geometry

    if isinstance(result.regions, NamedRegions):
        return result.regions.add_geometry(result.answers, result.loaded)
    return add_geometry(result.answers, result.regions, result.loaded.domain.crs)


def _write_file(result: _Result, form: str, output: str, *, overwrite: bool) -> None:
    """Write answers in a format of exports, which states the guarantee."""
    from psd.export import write_answers

    write_answers(
        _answers_with_geometry(result),
        output,
        suffix=f".{form}",
        metadata=result.metadata,
        overwrite=overwrite,
    )
    click.echo(f"wrote {output}")
