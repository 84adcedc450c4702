"""psd evaluate: true errors of a release; PRIVATE, for the holder of the data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from psd._util.csv_text import csv_text

from ..options.command import POINT_KEYS, Command
from ..options.common import RELEASE, overwrite
from ..options.reading import INPUTS, inputs_of, local_files, read_option
from ..options.tallies import read_slice_tally
from ..options.time_slices import SLICE, release_at, slice_at
from ..output.columns import Column, print_columns
from ..output.terminal import show_stage

if TYPE_CHECKING:
    from psd.api.release import Release
    from psd.evaluation.evaluate import Evaluation

__all__ = ["command"]


@click.command("evaluate", cls=Command)
@RELEASE
@SLICE
@INPUTS
@click.option(
    "--boxes",
    type=click.Path(),
    help="CSV, XLSX or Parquet file of boxes to query, instead of the eight classes.",
)
@read_option(*POINT_KEYS, "time")
@click.option(
    "--tally",
    type=click.Path(),
    help="PRIVATE tally that the build wrote with --keep-tally; needed if records were dropped.",
)
@click.option("-o", "--output", type=click.Path(), help="CSV of every query; PRIVATE.")
@click.option("--plot", type=click.Path(), help="PNG or SVG of the errors by class; PRIVATE.")
@click.option("--report", type=click.Path(), help="HTML page with plots and maps; PRIVATE.")
@overwrite
def command(
    release: str,
    slice_name: str | None,
    inputs: tuple[str, ...],
    boxes: str | None,
    tally: str | None,
    output: str | None,
    plot: str | None,
    report: str | None,
    overwrite: bool,
    read: dict[str, Any],
) -> None:
    """Show the true relative error of a release and its parts. The result is PRIVATE.

    Queries are 500 boxes in each of eight classes (0.01, 0.1, 1 and 10 % of the area, with centres
    placed uniformly or on records), or the boxes of --boxes. The error of a query is the sum of
    its parts: perturbation error (from the noise), non-uniformity error (from cells that the
    query covers in part) and, if --max-contributions dropped records, bounding error. Parts have
    signs; the table shows the means of their sizes, which may exceed that of the error. Its
    column `covers` is the share of queries whose 95 % interval contains the true count.

    \b
    Examples:
      psd evaluate uk.psd.parquet accidents.csv
      psd evaluate seoul.psd.parquet visits.csv --tally seoul.private-tally.parquet \\
          -o errors.private.csv --report errors.private.html
      psd evaluate year.psd.parquet visits.csv --slice 2024-06 --read time=time --tally year.tally
    """  # noqa: D301
    from psd._util.atomic_write import check_targets
    from psd.evaluation.evaluate import PRIVATE_NOTICE, evaluate
    from psd.evaluation.reporting.evaluation_page import RASTER
    from psd.evaluation.reporting.plots import check_plot, check_report
    from psd.space.region_files import read_boxes

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
        loaded = release_at(release, slice_name)
        during = None if slice_name is None else slice_at(release, slice_name)
        private_tally = read_slice_tally(tally, loaded, release, slice_name) if tally else None
        sides = ["west", "south", "east", "north"]
        queries = read_boxes(Path(boxes))[sides].to_numpy() if boxes else None
        stage("evaluating")
        raster = RASTER if report else None
        data = inputs_of(inputs, read.pop("table", None), read.pop("query", None))
        private: dict[str, Any] = {"tally": private_tally, "raster": raster, "during": during}
        evaluation = evaluate(loaded, data, boxes=queries, **read, **private)
    _print_summary(evaluation)
    click.echo(PRIVATE_NOTICE)
    if output:
        _write_answers(evaluation, output, overwrite=overwrite)
    if plot:
        _plot_errors(evaluation, plot, overwrite=overwrite)
    if report:
        _write_report(evaluation, loaded, report, overwrite=overwrite)


def _print_summary(evaluation: Evaluation) -> None:
    """Summary: relative errors in percent."""
    columns = []
    for name in evaluation.summary.columns:
        values, words = evaluation.summary[name], name == "class"
        texts = list(values) if words else [f"{100 * value:.2f}%" for value in values]
        heading = name.replace("true_relative_", "")
        columns.append(Column(heading=heading, values=texts, left=words, folds=words))
    print_columns(columns, title="PRIVATE: mean true relative errors")
    click.echo(f"score (geometric mean of the classes): {evaluation.score:.4f}")
    click.echo(
        "For each query the parts, with their signs, add up to the error; the means of their\n"
        "sizes may exceed it. covers: 95 % intervals that contain the true count."
    )


def _write_answers(evaluation: Evaluation, output: str, *, overwrite: bool) -> None:
    """Every query as CSV, under a first line that marks the file."""
    from psd._util.atomic_write import write_file
    from psd.evaluation.evaluate import PRIVATE_NOTICE

    rows = csv_text(evaluation.answers)
    content = f"# {PRIVATE_NOTICE}\n{rows}".encode()
    write_file(output, content, overwrite=overwrite, mode=0o600)
    click.echo(f"wrote {output} (PRIVATE)")


def _plot_errors(evaluation: Evaluation, output: str, *, overwrite: bool) -> None:
    """Parts of the error by class, as bars."""
    from psd._util.atomic_write import temporary_target
    from psd.evaluation.reporting.plots import plot_evaluation

    with temporary_target(output, overwrite=overwrite) as target:
        target.touch(mode=0o600)
        plot_evaluation(evaluation, target)
    click.echo(f"wrote {output} (PRIVATE)")


def _write_report(
    evaluation: Evaluation, release: Release, output: str, *, overwrite: bool
) -> None:
    """All of it as a web page."""
    from psd._util.atomic_write import write_file
    from psd.evaluation.reporting.evaluation_page import evaluation_page

    content = evaluation_page(evaluation, release).encode()
    write_file(output, content, overwrite=overwrite, mode=0o600)
    click.echo(f"wrote {output} (PRIVATE)")
