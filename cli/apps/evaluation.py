"""psd check evaluate and compare: true errors of releases and methods; PRIVATE."""

from __future__ import annotations

import math
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from psd._util.column_kinds import csv_text

from ..options.command import INTEGER, Command, parse_settings, split_commas
from ..options.common import INPUTS, RELEASE, local_files, overwrite, read_slice_tally
from ..options.fields import AREA, POINTS, field_options
from ..options.time_slices import CATEGORY, SLICE, compared_at, is_cube, slice_at
from ..output.tables import Column, print_columns, print_left_out
from ..output.terminal import print_success, show_builds, show_stage

if TYPE_CHECKING:
    from psd.apps.evaluation.comparison import Comparison
    from psd.decompositions import Decomposition


@click.command("evaluate", cls=Command, short_help="Show true errors of a release.")
@RELEASE
@SLICE
@click.option(
    "--when",
    multiple=True,
    metavar="WINDOW",
    help="Window of a cube, in which all queries are answered; may be repeated; all time by "
    "default.",
)
@CATEGORY
@INPUTS
@click.option(
    "--boxes",
    type=click.Path(),
    help="CSV, XLSX or Parquet file of boxes to query, instead of the eight classes or regions.",
)
@field_options(*POINTS, "time", into="read")
@field_options("table", "query")
@click.option(
    "--tally",
    type=click.Path(),
    help="PRIVATE tally that the build wrote with --keep-tally; needed if records were dropped.",
)
@click.option("-o", "--output", type=click.Path(), help="CSV of every query; PRIVATE.")
@click.option("--plot", type=click.Path(), help="PNG or SVG of the errors by class; PRIVATE.")
@click.option("--report", type=click.Path(), help="HTML page with plots and maps; PRIVATE.")
@overwrite
def run_evaluate(
    release: str,
    slice_name: str | None,
    when: tuple[str, ...],
    categories: tuple[str, ...],
    inputs: tuple[str, ...],
    boxes: str | None,
    tally: str | None,
    output: str | None,
    plot: str | None,
    report: str | None,
    overwrite: bool,
    read: dict[str, Any],
    table: str | None,
    query: str | None,
) -> None:
    """Show the true relative error of a release and its parts. The result is PRIVATE.

    Queries are 500 boxes in each of eight classes (0.01, 0.1, 1 and 10 % of the area, with centres
    placed uniformly or on records), or the boxes of --boxes; of a cube with regions all regions of
    each level. The error of a query is the sum of its parts: perturbation error (from the noise),
    non-uniformity error (from cells that the query covers in part) and, if --max-contributions
    dropped records, bounding error. Parts have signs; the table shows the means of their sizes,
    which may exceed that of the error. Its column `covers` is the share of queries whose 95 %
    interval contains the true count.

    \b
    Examples:
      psd check evaluate uk.psd.parquet accidents.csv
      psd check evaluate seoul.psd.parquet visits.csv --tally seoul.private-tally.parquet \\
          -o errors.private.csv --report errors.private.html
      psd check evaluate year.psd.parquet visits.csv --slice 2024-06 --time time \\
          --tally year.tally
      psd check evaluate cube.psd.parquet visits.csv --time time --when 'weekdays 07-09'
    """  # noqa: D301
    from psd._util.atomic_write import check_targets, temporary_target, write_file
    from psd.apps.evaluation.figures import check_plot, check_report, plot_evaluation
    from psd.apps.evaluation.pages import RASTER, evaluation_page
    from psd.apps.evaluation.true_errors import PRIVATE_NOTICE, evaluate
    from psd.publish.counting import inputs_of
    from psd.regions.files import read_boxes

    input_files = filter(None, (tally, boxes))
    targets = filter(None, (output, plot, report))
    check_targets(
        targets, overwrite=overwrite, inputs=(release, *local_files(inputs), *input_files)
    )
    if plot:
        check_plot(Path(plot))
    if report:
        check_report(Path(report))
    with show_stage() as stage:
        stage("reading")
        loaded = compared_at(release, slice_name, "--slice")
        if report and is_cube(loaded):
            raise click.UsageError("--report must be left out for a cube; -o has every query")
        during = None if slice_name is None else slice_at(release, slice_name)
        private_tally = read_slice_tally(tally, loaded, release, slice_name) if tally else None
        sides = ["west", "south", "east", "north"]
        queries = read_boxes(Path(boxes))[sides].to_numpy() if boxes else None
        stage("evaluating")
        raster = RASTER if report else None
        data = inputs_of(inputs, table, query)
        private: dict[str, Any] = {"tally": private_tally, "raster": raster, "during": during}
        private |= {"when": list(when) or None, "category": list(categories) or None}
        evaluation = evaluate(loaded, data, boxes=queries, **read, **private)
    columns = []
    for name in evaluation.summary.columns:
        values, words = evaluation.summary[name], name == "class"
        texts = list(values) if words else [_percent(value) for value in values]
        heading = name.replace("true_relative_", "")
        columns.append(Column(heading=heading, values=texts, left=words, folds=words))
    print_columns(columns, title="PRIVATE: mean true relative errors")
    score = f"{evaluation.score:.4f}" if math.isfinite(evaluation.score) else "none"
    click.echo(f"score (geometric mean of the classes): {score}")
    if score == "none":
        click.echo("none: without a record in the window no error is relative to anything; see -o")
    click.echo(
        "For each query the parts, with their signs, add up to the error; the means of their\n"
        "sizes may exceed it. covers: 95 % intervals that contain the true count."
    )
    click.echo(PRIVATE_NOTICE)
    if output:
        # The first line marks the file.
        rows = f"# {PRIVATE_NOTICE}\n{csv_text(evaluation.answers)}"
        write_file(output, rows.encode(), overwrite=overwrite, mode=0o600)
        print_success(f"wrote {output} (PRIVATE)")
    if plot:
        with temporary_target(plot, overwrite=overwrite) as target:
            target.touch(mode=0o600)
            plot_evaluation(evaluation, target)
        print_success(f"wrote {plot} (PRIVATE)")
    if report:
        page = evaluation_page(evaluation, loaded).encode()
        write_file(report, page, overwrite=overwrite, mode=0o600)
        print_success(f"wrote {report} (PRIVATE)")


def _percent(value: float) -> str:
    """A mean relative error; none in a window without records."""
    return f"{100 * value:.2f}%" if math.isfinite(value) else "none"


@click.command("compare", cls=Command, short_help="Show true errors of methods.")
@INPUTS
@click.option("-o", "--output", required=True, type=click.Path(), help="CSV to write; PRIVATE.")
@click.option(
    "--methods",
    "names",
    default="all",
    show_default=True,
    metavar="A,B,...",
    help="Methods, separated by commas; `psd methods` lists all.",
)
@click.option(
    "--epsilons",
    default="0.1,1",
    show_default=True,
    metavar="E,F,...",
    help="Epsilons, separated by commas.",
)
@click.option(
    "--runs",
    type=INTEGER,
    default=3,
    show_default=True,
    help="Builds of each method and epsilon; errors are averaged over them.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="METHOD.KEY=VALUE",
    help="Parameter of one of the methods; may be repeated.",
)
@field_options(*AREA, into="area", bounds={"required": True})
@field_options("user", "max_contributions", *POINTS, into="read")
@field_options("table", "query")
@click.option("--jobs", type=INTEGER, help="Parallel processes; one per processor by default.")
@click.option("--plot", type=click.Path(), help="PNG or SVG of the errors; PRIVATE.")
@click.option("--report", type=click.Path(), help="HTML page with plots and ranking; PRIVATE.")
@overwrite
def run_compare(
    inputs: tuple[str, ...],
    output: str,
    area: dict[str, Any],
    names: str,
    epsilons: str,
    settings: tuple[str, ...],
    plot: str | None,
    report: str | None,
    overwrite: bool,
    read: dict[str, Any],
    table: str | None,
    query: str | None,
    **options: Any,
) -> None:
    """Build several times with each method and epsilon, and show the true errors. PRIVATE.

    Errors are mean relative errors in the eight classes of boxes of `psd check evaluate`; the
    score is their geometric mean, with its standard error over the runs. With --max-contributions,
    records that are left out count as error. No release is written.

    \b
    Examples:
      psd check compare accidents.csv --bounds -7.6 49.8 1.9 60.9 -o errors.private.csv
      psd check compare visits.csv --bounds 126.4 37 127.6 38 --methods quadtree,grid \\
          --epsilons 0.1,0.5,1 --runs 5 --set quadtree.height=9 \\
          --user user_id --max-contributions 4 \\
          -o errors.private.csv --plot errors.private.png --report errors.private.html
    """  # noqa: D301
    from psd._util.atomic_write import check_targets
    from psd.apps.evaluation.figures import check_plot, check_report
    from psd.publish.counting import inputs_of
    from psd.publish.request_values import parse_values, public_domain_from_values

    check_targets(
        filter(None, (output, plot, report)), overwrite=overwrite, inputs=local_files(inputs)
    )
    if plot:
        check_plot(Path(plot))
    if report:
        check_report(Path(report))
    methods = _named_methods(
        names, parse_settings(settings, "METHOD.KEY=VALUE", "quadtree.height=9")
    )
    options |= parse_values({key: read.pop(key) for key in ("max_contributions",) if key in read})
    domain = public_domain_from_values(parse_values(area))
    with show_builds() as finished:
        from psd.apps.evaluation.comparison import COMPARISON_NOTICE, compare

        comparison = compare(
            inputs_of(inputs, table, query),
            domain=domain,
            methods=methods,
            epsilon=split_commas(epsilons),
            progress=finished,
            **read,
            **options,
        )
    # The best of each column and epsilon is bold and has a star.
    columns = [
        Column(heading=name, values=values, left=name == "method")
        for name, values in _text_columns(comparison).items()
    ]
    title = "PRIVATE: mean true relative errors"
    left_out = print_columns(columns, dispensable=_DISPENSABLE, title=title, bold="*")
    click.echo("score: geometric mean of the eight classes; *: smallest of its epsilon")
    print_left_out(left_out, where="the file")
    click.echo(COMPARISON_NOTICE)
    _save_files(comparison, output, plot, report, overwrite=overwrite)


def _named_methods(names: str, settings: dict[str, str]) -> list[str | Decomposition]:
    """Methods by their names; those with settings as values."""
    from psd.decompositions import method, methods

    selected = list(methods()) if names == "all" else split_commas(names)
    settings_by_method: dict[str, dict[str, str]] = {name: {} for name in selected}
    for setting, value in settings.items():
        name, dot, key = setting.partition(".")
        if not (name and dot and key):
            raise click.UsageError(
                f"--set must be METHOD.KEY=VALUE, such as quadtree.height=9, got {setting}={value}"
            )
        if name not in settings_by_method:
            raise click.UsageError(
                f"--set must name a compared method, got {name} in {setting}={value}"
            )
        settings_by_method[name][key] = value
    return [
        method(name, settings_by_method[name]) if settings_by_method[name] else name
        for name in selected
    ]


# Columns that a narrow terminal leaves out, in this order; the file has all of them.
_DISPENSABLE = (
    "runs",
    "uniform_0.1 %",
    "on data_0.1 %",
    "uniform_1 %",
    "on data_1 %",
    "standard_error",
)


def _text_columns(comparison: Comparison) -> dict[str, list[str]]:
    """Columns of the table as text, the words of a heading separated by underscores."""
    table = comparison.table
    rated = {name: name.replace(" ", "_", 1) for name in comparison.classes if "uniform" in name}
    rated |= {name: name.replace("data ", "data_") for name in comparison.classes if "data" in name}
    groups = table.groupby("epsilon", sort=False)
    several = groups["method"].transform("size") > 1
    columns = {"method": table["method"].tolist(), "epsilon": table["epsilon"].tolist()}
    for name, heading in {**rated, "score": "score"}.items():
        best = several & (table[name] == groups[name].transform("min"))
        columns[heading] = [
            f"{value:.4f}{'*' if star else ' '}"
            for value, star in zip(table[name], best, strict=True)
        ]
    errors = table["score_error"]
    columns["standard_error"] = ["-" if value != value else f"{value:.4f}" for value in errors]
    columns["runs"] = table["runs"].astype(str).tolist()
    return columns


def _save_files(
    comparison: Comparison, output: str, plot: str | None, report: str | None, *, overwrite: bool
) -> None:
    """Table as CSV under a first line that marks it, picture and page: all files or none."""
    from psd._util.atomic_write import temporary_target
    from psd.apps.evaluation.comparison import COMPARISON_NOTICE
    from psd.apps.evaluation.figures import plot_comparison
    from psd.apps.evaluation.pages import comparison_page

    def open_private(path: str) -> Path:
        target = together.enter_context(temporary_target(path, overwrite=overwrite))
        target.touch(mode=0o600)
        return target

    with ExitStack() as together:
        rows = csv_text(comparison.table)
        open_private(output).write_text(f"# {COMPARISON_NOTICE}\n{rows}", encoding="utf-8")
        if plot:
            plot_comparison(comparison, open_private(plot))
        if report:
            open_private(report).write_text(comparison_page(comparison), encoding="utf-8")
    for name in filter(None, (output, plot, report)):
        print_success(f"wrote {name} (PRIVATE)")


COMMANDS = {"check evaluate": run_evaluate, "check compare": run_compare}
