"""psd query: counts in regions, ranks, class breaks and differences, with errors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from ..options.command import NUMBER, Command
from ..options.common import RELEASE, overwrite, unreliable_options
from ..options.regions import region_name_options
from ..options.time_slices import (
    CATEGORY,
    EACH,
    WHEN,
    is_cube,
    release_or_series_at,
    release_when,
)
from ..output.answers import (
    EXTRA,
    WINDOWS,
    answers_metadata,
    answers_page,
    answers_text,
    columns_text,
    in_degrees,
    joint_text,
    note_intervals,
    note_slow_boxes,
    print_answer_columns,
    print_answers,
    print_joint,
)
from ..output.tables import (
    Column,
    output_format,
    print_columns,
    state_source,
    state_windows,
    windows_named,
    write_text,
)
from ..output.terminal import print_success, print_warning, printable, show_stage
from ._statistics import STATISTICS, read_areas, refuse_strange, statistic_options, write_statistic

if TYPE_CHECKING:
    import pandas

    from psd.api.answers import Answers
    from psd.query.explain import Explanation


# Cut cells that are printed; JSON has all of them.
_SHOWN = 5


def print_explanations(answers: pandas.DataFrame, explanations: list[Explanation]) -> None:
    """Print the explanation of each answer for people."""
    from psd.query.answer_table import COLUMNS

    named = answers.columns.isin([*WINDOWS, "id", "name", "NAME", *COLUMNS])
    rows = answers.loc[:, named].iterrows()
    for (_, answer), explanation in zip(rows, explanations, strict=True):
        _print_explanation(answer, explanation)


def _print_explanation(answer: Any, explanation: Explanation) -> None:
    """Print one explanation for people."""
    click.echo()
    noise, uneven = answer["perturbation_error"], answer["nonuniformity_error"]
    names = [answer[name] for name in ("id", "name", "NAME") if name in answer.index]
    windows = [str(answer[name]) for name in WINDOWS if name in answer.index]
    identity = printable(" ".join([*windows, str(names[0] if names else answer.name)]))
    click.echo(
        f"{identity}: {answer['estimate']:,.1f}, error {answer['error']:,.1f} = noise {noise:,.1f} "
        f"and non-uniformity {uneven:,.1f} ({100 * explanation.noise_share:.0f} % and "
        f"{100 - 100 * explanation.noise_share:.0f} % of the variance)"
    )
    depths, cells = explanation.inside["level"], explanation.inside["cells"]
    levels = ", ".join(f"{n} of level {depth}" for depth, n in zip(depths, cells, strict=True))
    entirely = f"{int(cells.sum())} cells entirely" + (f" ({levels})" if levels else "")
    click.echo(f"the region covers {entirely} and {len(explanation.cut)} in part")
    if len(explanation.cut):
        _print_table(
            f"cells covered in part: the {min(_SHOWN, len(explanation.cut))} that contribute most",
            explanation.cut.head(_SHOWN),
        )
    of_cube = "in_window" in explanation.cut
    title = "effect of other parameters on the error"
    if of_cube:
        title = "error without one of its parts"
    _print_table(title, explanation.remedies)
    if not of_cube:
        click.echo(_advice_text(explanation))


def _print_table(title: str, rows: pandas.DataFrame) -> None:
    """A small table."""
    columns = [
        Column(
            heading=str(name),
            values=[_value_text(str(name), value) for value in rows[name]],
            left=name == "change",
            folds=name == "change",
        )
        for name in rows.columns
    ]
    print_columns(columns, title=title)


def _value_text(name: str, value: Any) -> str:
    """One value as people read it."""
    if name in ("covered", "in_window"):
        return f"{100 * value:.0f}%"
    if name in ("west", "south", "east", "north"):
        return f"{value:.10g}"
    return f"{value:,.1f}" if isinstance(value, float) else str(value)


def _advice_text(explanation: Explanation) -> str:
    """The remedy that reduces the error most, in a sentence."""
    error = dict(zip(explanation.remedies["change"], explanation.remedies["error"], strict=True))
    now = explanation.remedies["error"].iloc[0]
    finer = error.get("cells half as wide at its edge")
    if not len(explanation.cut):
        return (
            "The region covers no cell in part, so all of the error is noise; a larger epsilon "
            "reduces it."
        )
    if finer is not None and finer < 0.95 * now:
        return (
            "Smaller cells would reduce the error, and so would a region along the edges of cells "
            "(psd export)."
        )
    if explanation.noise_share > 0.5:
        return "A larger epsilon would reduce the error; smaller cells would hardly do so."
    return (
        "Smaller cells would need a larger epsilon; a region along the edges of cells (psd export) "
        "has no non-uniformity error."
    )


def explanations_json(answers: str, explanations: list[Explanation]) -> str:
    """Answers as JSON, each with its explanation."""
    rows = json.loads(answers)
    for row, explanation in zip(rows, explanations, strict=True):
        row["explanation"] = {
            "noise_share": explanation.noise_share,
            "whole": explanation.inside.to_dict("records"),
            "cut": explanation.cut.to_dict("records"),
            "remedies": explanation.remedies.to_dict("records"),
        }
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


TEXTS = ("csv", "json", "geojson", "html")
FILES = ("gpkg", "parquet", "fgb", "pmtiles", "xlsx")
FORMATS = ("table", *TEXTS, *FILES)


@click.command("query", cls=Command)
@RELEASE
@WHEN
@CATEGORY
@EACH
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
@click.option(
    "--outside",
    type=click.Choice(["refuse", "skip", "zero"]),
    default="refuse",
    show_default=True,
    help="Boxes and polygons outside the bounds, where nothing was counted: refuse them, leave "
    "them out, or answer them by 0.",
)
@region_name_options
@click.option(
    "--confidence", type=NUMBER, default=0.95, show_default=True, help="Confidence of the interval."
)
@unreliable_options
@click.option(
    "--mean",
    multiple=True,
    metavar="VALUE",
    help="Also answer the mean of a value of the release, such as fare. May be repeated.",
)
@click.option(
    "--sum",
    multiple=True,
    metavar="VALUE",
    help="Also answer the sum of a value of the release. May be repeated.",
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
@statistic_options
@click.option(
    "--details",
    is_flag=True,
    help="Show all columns on the screen: both errors, relative errors and reliability too.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Format of the output; by default from the ending of -o, or a table on the screen. gpkg, "
    "parquet, fgb, pmtiles and xlsx are for files alone; --top, --quantiles and --difference have "
    "table, csv and json.",
)
@click.option("-o", "--output", type=click.Path(), help="File to write instead of the screen.")
@overwrite
def command(
    release: str,
    when: tuple[str, ...],
    categories: tuple[str, ...],
    each: tuple[str, ...],
    form: str | None,
    output: str | None,
    overwrite: bool,
    unreliable: str,
    details: bool,
    **options: Any,
) -> None:
    """Answer range queries from the release file alone, with predicted errors.

    Perturbation error comes from the noise, non-uniformity error from cells that a query covers
    in part; both are predicted standard deviations. Boxes are west south east north in the CRS
    of the release. Records outside its bounds were not counted and are not in the answers. If the
    release has a coordinate resolution, a box counts the records whose rounded coordinates lie in
    it, those on its west and south edge included; a box between two values is answered by 0.

    The screen shows the estimate, its error, the interval and the quality; --details shows all
    columns, which files always have. A relative error is error / estimate, infinite where the
    estimate is 0 and the error is not; JSON, GeoPackage, FlatGeobuf, tiles and XLSX have no value
    there. An answer is reliable if its relative error is at most --threshold and its interval lies
    above 0. Its quality is good, use with care or, if it is not reliable, poor.

    Files keep the columns, the order and the CRS of the regions (GeoJSON is in EPSG:4326), and
    state the guarantee, as far as the format has room. csv, html and xlsx have no shapes. A column
    that a format cannot hold, such as numbers of 17 digits in xlsx, becomes text.

    The slices of a series are answered as one, all of them or those of each window --when; with
    --each slice, one by one. A period FIRST..LAST takes days, weeks, months and years whole, the
    last one too; hours are times of the clock, so T07..T09 is from 07:00 to 09:00. 'mondays',
    'weekends', '22-02' and '2024-03' may stand together; the window is what they have in common,
    and nights are of the days on which they begin. It is made of whole slices. Of a release with
    categories, --category answers a label with all labels below it, and --each category one by one.
    The noise of different slices is independent, so its variances are added. What is uneven inside
    a cell may be alike in all slices, so its standard deviations are added. The sum is that of
    unbiased estimates, cut at 0.

    With --joint, all intervals joint_lower to joint_upper hold together with the stated
    confidence; the covariances of the answers follow, and the total of the regions if they do
    not overlap. It takes one --mean or --sum, which is then answered in place of counts; means have
    no total. With --nested, answers are consistent between levels, and `ring` is the count
    inside a region but outside the regions nested in it. With --explain, each answer is followed
    by the parts of its error, the cells that contribute most, and the effect of a larger epsilon
    or of smaller cells.

    Of a release with regions, --top ranks the regions of a level in place of cells. The true counts
    are drawn many times from their joint distribution, given the release and its predicted errors;
    the probability of a cell is the share of draws in which it is among the first N. --quantiles
    gives densities in records per square kilometre of ground, or per square unit of a local CRS;
    the error is the standard deviation of a break over repeated draws of the noise. With
    --difference, both releases must have the same bounds, CRS, coordinate resolution and lattice. A
    person whose records are in both has the sum of both epsilons, and of both deltas where releases
    state them. None of the three costs epsilon.

    \b
    Examples:
      psd query seoul.psd.parquet --box 126.9 37.5 127.0 37.6 --box 126.4 37 127.6 38
      psd query seoul.psd.parquet --boxes boxes.csv --details
      psd query seoul.psd.parquet --boxes boxes.csv -o answers.csv
      psd query seoul.psd.parquet --polygons districts.gpkg -o answers.gpkg
      psd query seoul.psd.parquet --polygons districts.gpkg -o answers.xlsx --unreliable mark
      psd query seoul.psd.parquet --polygons district.wkt --polygons-crs EPSG:5179
      psd query seoul.psd.parquet --polygons districts.gpkg --joint
      psd query wards.psd.parquet --all-regions --level district
      psd query wards.psd.parquet --region "North bank" --region Airport --level district --joint
      psd query wards.psd.parquet --table population.csv --table-id ward -o answers.csv
      psd query year.psd.parquet --box 126.9 37.5 127.0 37.6 --when 2024-03..2024-05
      psd query year.psd.parquet --box 126.9 37.5 127.0 37.6 --each slice
      psd query week.psd.parquet --boxes boxes.csv --when 'weekdays 07-09' --when weekends
      psd query week.psd.parquet --box 126.9 37.5 127 37.6 --category purpose=work --each category
      psd query fares.psd.parquet --all-regions --mean fare --sum fare
      psd query seoul.psd.parquet --box 126.9 37.5 127.0 37.6 --explain
      psd query seoul.psd.parquet --box 126.9 37.5 127 37.6 --box 126.8 37.4 127.1 37.7 --nested
      psd query seoul.psd.parquet --top 10 --size 60 50
      psd query seoul.psd.parquet --top 3 --polygons districts.gpkg
      psd query seoul.psd.parquet --top 20 --by density --format csv
      psd query wards.psd.parquet --top 5 --level district
      psd query seoul.psd.parquet --quantiles
      psd query seoul.psd.parquet --quantiles --classes 7 --size 120 100 --weight people
      psd query june.psd.parquet --difference may.psd.parquet --boxes boxes.csv
      psd query june.psd.parquet --difference may.psd.parquet --polygons districts.gpkg --ratio
      psd query wards-2025.psd.parquet --difference wards-2024.psd.parquet --all-regions
      psd query year.psd.parquet --difference year.psd.parquet --when 2024-06 \\
          --other-slice 2024-05 --boxes boxes.csv
    """  # noqa: D301
    from psd._util.atomic_write import check_free
    from psd._util.column_kinds import check_columns
    from psd.query.answer_table import COLUMNS

    # What is asked in place of counts, if anything is.
    flags = {name: options.pop(name) for name in ("joint", "nested", "explain")}
    flags |= {"top": options["k"] is not None, "quantiles": options["quantiles"]}
    flags |= {"difference": options["difference"] is not None}
    kinds = [name for name, is_set in flags.items() if is_set]
    if len(kinds) > 1:
        raise click.UsageError(
            "at most one of --joint, --nested, --explain, --top, --quantiles and --difference must "
            "be given"
        )
    kind = kinds[0] if kinds else ""
    refuse_strange(kind)
    if kind in STATISTICS:
        window = when, categories
        write_statistic(kind, release, window, form, output, overwrite=overwrite, options=options)
        return
    form = output_format(form, output, FORMATS)
    if kind == "explain" and form not in ("table", "json"):
        raise click.UsageError(f"--format must be table or json with --explain, got {form}")
    if details and form != "table":
        raise click.UsageError(
            f"--details must be left out with --format {form}, which has all columns"
        )
    if form in FILES and not output:
        raise click.UsageError(f"--format {form} needs a file; name it with -o")
    if kind and unreliable != "keep":
        raise click.UsageError(
            f"--unreliable must be keep with --{kind}, got {unreliable}; its answers belong "
            "together"
        )
    if output:
        files = filter(None, (options["boxes"], options["polygons"], options["table"]))
        check_free(output, overwrite=overwrite, inputs=(release, *files))
    certainty: dict[str, Any] = {name: options.pop(name) for name in ("confidence", "threshold")}
    asked = read_areas(options)
    if kind == "nested" and "level" in asked:
        raise click.UsageError(
            "--nested must be left out with --all-regions, --region and --table: the levels of "
            "regions add up already; ask for each --level"
        )
    if kind == "nested" and options["outside"] != "refuse":
        raise click.UsageError(
            f"--outside must be refuse with --nested, got {options['outside']}; regions lie inside "
            "each other"
        )
    asked["outside"] = options["outside"]
    of_values = {name: tuple(dict.fromkeys(options[name])) for name in ("mean", "sum")}
    of_joint = [f"{how}_{name}" for how, names in of_values.items() for name in names]
    if kind and kind != "joint" and of_joint:
        raise click.UsageError(f"--mean and --sum must be left out with --{kind}")
    if kind == "joint" and len(of_joint) > 1:
        raise click.UsageError(
            f"--joint takes one --mean or --sum, got {len(of_joint)}; ask for each by itself"
        )
    asked |= of_values
    if hasattr(asked["areas"], "columns"):
        check_columns(asked["areas"], form, COLUMNS)  # before any work
    with show_stage() as stage:
        stage("reading")
        loaded: Any = (
            release_when(release, when) if kind == "nested" else release_or_series_at(release, None)
        )
        stage("answering")
        windows: Any = when[0] if len(when) == 1 else list(when) or None
        answers: Answers = loaded.query(
            **asked,
            when=None if kind == "nested" else windows,
            category=categories[0] if len(categories) == 1 else list(categories) or None,
            each=each or None,
            **certainty,
        )
        joint = answers.joint(*of_joint) if kind == "joint" else None
        explanations = answers.explain() if kind == "explain" else []
        rings = answers.nested() if kind == "nested" else None
    for note in answers.notes:  # what they leave out
        print_warning(note)
    lost = getattr(answers.areas, "outside", None)
    if lost is not None and lost.skipped:
        every = lost.skipped + len(answers.areas)
        click.echo(
            f"({lost.skipped:,} of {every:,} regions lie outside the bounds and are left out)",
            err=True,
        )
    note_slow_boxes(answers)
    named = windows_named(form, when, categories, each)
    has_values = any(of_values.values())
    is_plain = unreliable == "keep" and form in ("table", "csv") and not has_values
    if not kind and is_plain and options["box"]:
        # Show answers to boxes of options without pandas, whose import takes as long as they do.
        source = loaded.record.source
        columns = answers.arrays
        if source != "curator":
            columns["release_source"] = [source] * len(answers)
        if form == "table":
            identifying = [name for name in (*WINDOWS, "id") if name in columns]
            print_answer_columns(columns, identifying, has_details=details)
        else:
            of_all = {name: [text] * len(answers) for name, text in named.items()}
            write_text(columns_text(of_all | columns), output, overwrite=overwrite)
        _note_unit(loaded, form)
        return

    table: Any = answers.table if rings is None else rings
    table = table if joint is None else joint.answers
    state_source(table, loaded.record.source)
    state_windows(table, named)
    if unreliable != "keep" or form in (*FILES, "geojson"):
        from psd.export import treat_unreliable
        from psd.query.areas import beside_shapes

        table = beside_shapes(table, answers.areas, loaded.domain)
        shown = treat_unreliable(table, unreliable, certainty["threshold"])
        if unreliable == "drop":
            left_out = f"{len(table) - len(shown):,} of {len(table):,} answers"
            click.echo(f"({left_out} are unreliable and left out)", err=True)
        table = shown
    if form == "table":
        print_answers(table, EXTRA.get(kind, ()), of_values, has_details=details)
        if has_values:
            note_intervals(table, loaded.record.values, of_values["mean"])
        if joint is not None:
            print_joint(joint, is_cube=is_cube(loaded))
        if explanations:
            print_explanations(table, explanations)
        _note_unit(loaded, form)
        return

    metadata = answers_metadata(loaded, unreliable, **certainty)
    if form in FILES:
        from psd.export import write_answers

        write_answers(table, str(output), suffix=f".{form}", metadata=metadata, overwrite=overwrite)
        print_success(f"wrote {output}")
    elif form == "geojson":
        text = answers_text(in_degrees(table), form, metadata)
        write_text(text, output, overwrite=overwrite)
    elif form == "html":
        write_text(answers_page(table, metadata), output, overwrite=overwrite)
    elif joint is not None:
        write_text(joint_text(joint, form), output, overwrite=overwrite)
    else:
        text = answers_text(table, form)
        text = explanations_json(text, explanations) if explanations else text
        write_text(text, output, overwrite=overwrite)


def _note_unit(loaded: Any, form: str) -> None:
    """Print what was counted, where that is not records."""
    counted = loaded.record.counted_text
    if form == "table" and counted != "records":
        click.echo(f"(counts are {counted})", err=True)
