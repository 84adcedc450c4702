"""psd plan: expected relative errors, from public parameters alone."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from psd._util.column_kinds import csv_text

from ..options.command import (
    INTEGER,
    NUMBER,
    Command,
    GroupedOption,
    parse_integer,
    parse_number,
    parse_settings,
    split_commas,
)
from ..options.common import FORMAT, overwrite
from ..options.fields import AREA, REGIONS, field_options
from ..output.tables import Column, output_format, print_columns, print_left_out, write_text
from ..output.terminal import print_success, printable, show_builds, show_stage

# Options that `--help-all` alone shows.
_RARE: dict[str, Any] = {"cls": GroupedOption, "group": "Options", "is_everyday": False}

if TYPE_CHECKING:
    from psd.apps.planning.plan import Plan
    from psd.apps.planning.region_plan import RegionPlan
    from psd.space.domain import Domain


_USERS = ("max_contributions", "slices", "max_per_slice", "delta")
_DISPENSABLE_OF_REGIONS = ("mean_population", "median_error", "90th_percentile")


def run_region_plan(
    domain: Domain,
    form: str,
    output: str | None,
    plot: str | None,
    *,
    overwrite: bool,
    given: dict[str, Any],
    population: str | None,
    settings: tuple[str, ...],
    for_relative_error: str | None,
    for_mean_error: tuple[str, str] | None,
    for_sum_error: tuple[str, str] | None,
    level: str | None,
    **options: Any,
) -> None:
    """Plan the regions of the options, and print or write the plan."""
    from psd._util.atomic_write import temporary_target
    from psd.apps.planning.figures import check_plan_plot, plot_region_plan
    from psd.apps.planning.region_plan import plan_regions
    from psd.decompositions import region_method
    from psd.publish.request_values import (
        boundary_from_values,
        covariate_from_values,
        regions_from_values,
    )

    methods, stated = split_commas(options["methods"]), options["epsilon"]
    epsilons = [] if stated is None else split_commas(stated)
    source = click.get_current_context().get_parameter_source("methods")
    if source is not ParameterSource.DEFAULT and len(methods) > 1:
        raise click.UsageError("--methods must be one of auto, cascade, none, cube with --regions")
    targets = {
        "for_relative_error": for_relative_error,
        "for_mean_error": for_mean_error,
        "for_sum_error": for_sum_error,
    }
    asked = [name for name, given_target in targets.items() if given_target is not None]
    if not asked and options["epsilon"] is None:
        raise click.UsageError("--epsilon or --for-relative-error must be given")
    if not asked and level is not None:
        raise click.UsageError("--level must be given with --for-relative-error")
    if asked and len(epsilons) > 1:
        option = "--" + asked[0].replace("_", "-")
        raise click.UsageError(f"--epsilon must be one with {option}, the largest")
    target: dict[str, Any] = {"epsilon": epsilons, "level": level}
    if for_relative_error is not None:
        target["for_relative_error"] = _share(for_relative_error)
    for name in ("for_mean_error", "for_sum_error"):
        if (pair := targets[name]) is not None:
            target[name] = (pair[0], parse_number(pair[1]))
    if options["windows"] is not None:
        target["windows"] = [_slices_of(text) for text in split_commas(options["windows"])]
    if plot:
        check_plan_plot(Path(plot))
    with show_stage() as stage:
        stage("planning regions")
        result = plan_regions(
            regions=regions_from_values(given),
            population=population,
            domain=domain,
            method=region_method(methods[0], parse_settings(settings)),
            count=options["count"],
            **{name: options[name] for name in _USERS if options[name] is not None},
            covariate=covariate_from_values(given),
            boundary=boundary_from_values(given),
            seed=options["seed"],
            values=given.get("values"),
            **target,
        )
    _write_region_plan(result, form, output, overwrite=overwrite)
    if plot:
        with temporary_target(plot, overwrite=overwrite) as path:
            plot_region_plan(result, path)
        print_success(f"wrote {plot}")


def _write_region_plan(
    result: RegionPlan, form: str, output: str | None, *, overwrite: bool
) -> None:
    """Print the plan as a table for people, or write it as CSV or as one JSON object."""
    from psd.apps.planning.text import (
        REGIONS_NOTE,
        region_columns,
        region_sentences,
        region_setting,
    )

    sentences = region_sentences(result)
    if form == "table":
        columns = [
            Column(heading=name, values=[*map(printable, values)], left=name in ("level", "noise"))
            for name, values in region_columns(result).items()
        ]
        click.echo(f"Expected errors of regions: {region_setting(result)}.")
        left_out = print_columns(columns, dispensable=_DISPENSABLE_OF_REGIONS)
        for text in (REGIONS_NOTE, *(f"- {sentence}." for sentence in sentences)):
            click.echo(textwrap.fill(text, 90))
        print_left_out(left_out)
    elif form == "csv":
        write_text(csv_text(result.table), output, overwrite=overwrite)
    else:  # infinite errors are null
        content = {
            "count": result.count,
            "max_contributions": result.max_contributions,
            "inside": result.inside,
            **_series_content(result),
            "solved_epsilon": None if result.solved is None else str(result.solved),
            "expected": json.loads(result.table.to_json(orient="records", double_precision=15)),
            "words": sentences,
        }
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        write_text(text, output, overwrite=overwrite)


def _slices_of(text: str) -> int:
    """Number of slices of a text."""
    if not text.isascii() or not text.isdigit():
        raise click.UsageError(f"--windows must be numbers of slices, got {text[:80]!r}")
    return int(text)


def _number_of_slices(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """Number of slices of an option: a number, or that of the slices of a build."""
    from psd.errors import ParameterError
    from psd.space.time_slices import slices_from_text

    if value is not None and re.match("[0-9]{4}-", value):
        try:
            return len(slices_from_text(value, "UTC"))
        except ParameterError as error:
            raise click.UsageError(f"--{error}") from None
    return None if value is None else parse_integer(value)


def _share(text: str, area: float | None = None) -> float:
    """Share of a text with %, or of a number; of an area it is a number of km2."""
    if text.endswith("%"):
        return parse_number(text[:-1].strip()) / 100
    size = parse_number(text)
    if area is None:
        return size
    if size > area:
        raise click.UsageError(f"--sizes must be at most the area, {area:,.6g} km2, got {text} km2")
    return size / area


FORMATS = ("table", "csv", "json")


@click.command("plan", cls=Command)
@click.option("--area", type=NUMBER, metavar="KM2", help="Study area in square kilometres.")
@field_options(
    *AREA,
    *REGIONS,
    "boundary",
    "covariate",
    "covariate_column",
    "covariate_size",
    "values",
    into="fields",
    values={
        "help": "Plan a release with sums and means of this column, such as fare 0 60, and show "
        "their errors. May be repeated."
    },
    bounds={"help": "Study area as west south east north, or a FILE of polygons, in place of "
                    "--area."},
)  # fmt: skip
@click.option(
    "--count",
    type=INTEGER,
    help="Expected number of records: a public figure or a guess, never counted in the data. With "
    "populations of regions by default their sum.",
)
@click.option(
    "--epsilon",
    "epsilon",
    metavar="E,F,...",
    help="Epsilons, separated by commas; with --for-relative-error the largest that is accepted, "
    "by default 10.",
)
@click.option(
    "--max-contributions",
    type=INTEGER,
    help="Largest number of records kept of each user, if users are the unit of privacy.",
)
@click.option(
    "--slices",
    metavar="T",
    callback=_number_of_slices,
    help="Number of time slices, or their names; --count, or --population, is then of one slice, "
    "and users are the unit, with --max-contributions records in all: T x M, or 1 for "
    "--per record.",
)
@click.option(
    "--max-per-slice",
    metavar="M",
    type=INTEGER,
    help="Largest number of records of a user in one slice; by default 1.",
)
@click.option(
    "--delta",
    metavar="D",
    help="Delta that a build may spend, such as 1e-6: Gaussian noise is shown beside Laplace "
    "noise. With at most this probability more may be revealed than epsilon allows.",
)
@click.option(
    "--methods",
    default="auto,quadtree",
    show_default=True,
    metavar="A,B,...",
    help="Methods, separated by commas; `psd methods` lists all. Of more than 8 --slices by "
    "default cube. With --regions what is inside the lowest regions: auto, cascade or none; by "
    "default auto. Or cube, with --slices.",
)
@click.option(
    "--sizes",
    default="0.01%,0.1%,1%,10%",
    show_default=True,
    metavar="S,T,...",
    help="Sizes of queries in km2, or in % of the area.",
)
@click.option(
    "--windows",
    metavar="W,X,...",
    help="Of a cube: numbers of slices that are answered as one, such as 1,24,168; by default 1, "
    "about the root of all, and all.",
)
@click.option(
    "--categories",
    metavar="N|P%,Q%,...",
    help="Of a cube: number of labels of a category, or public parts of the records with each. "
    "Queries are then of one label.",
    **_RARE,
)
@click.option(
    "--density",
    default="uniform,clustered,coastal,places",
    show_default=True,
    metavar="A,B,...",
    help="Assumed distributions of people; the table shows the range over all of them.",
    **_RARE,
)
@click.option(
    "--runs",
    type=INTEGER,
    **_RARE,
    help="Simulated populations of each density; by default 1 to 5.",
)
@click.option(
    "--seed",
    type=INTEGER,
    default=0,
    show_default=True,
    **_RARE,
    help="Seed of the simulated populations.",
)
@click.option(
    "--population",
    metavar="COLUMN",
    help="Public numbers of the lowest --regions, a column of their file; by default all regions "
    "have the same number. The plan is then of the regions of every level.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Parameter of the method of --regions, as of `psd build`, such as levels_share=0.3.",
    **_RARE,
)
@click.option(
    "--for-relative-error",
    metavar="P%",
    help="Solve for the epsilon that gives regions of --level this mean relative error, or with "
    "--methods cube queries of one of --sizes in one of --windows.",
)
@click.option(
    "--for-mean-error",
    nargs=2,
    metavar="COLUMN E",
    help="Solve for the epsilon that gives the means of this --value in regions of --level this "
    "error, such as fare 0.5.",
    **_RARE,
)
@click.option(
    "--for-sum-error",
    nargs=2,
    metavar="COLUMN E",
    **_RARE,
    help="Solve for the epsilon that gives the sums of this --value this error.",
)
@click.option(
    "--level",
    help="Level of the error that epsilon is solved for; by default the lowest.",
    **_RARE,
)
@FORMAT
@click.option("-o", "--output", type=click.Path(), help="CSV or JSON file instead of the screen.")
@click.option(
    "--plot", type=click.Path(), help="PNG, SVG or HTML page of the errors by size, or by level."
)
@overwrite
def run_plan(
    area: float | None,
    fields: dict[str, Any],
    form: str | None,
    output: str | None,
    plot: str | None,
    overwrite: bool,
    **options: Any,
) -> None:
    """Predict the relative errors of a release by size of query, or of regions. Reads no data.

    The command simulates populations with the assumed densities, builds releases of them with the
    real methods and noise, and measures the errors of queries. A real population lies between the
    assumed ones, so each figure is a range; docs/guide/planning.md tests the ranges on real data.
    With --covariate, a public raster or polygons, the simulated people follow the covariate, and
    a density is assumed only within its cells.

    With more than 8 --slices, or --methods cube, the plan is of a cube: of areas in windows of so
    many slices. --methods auto plans a series. --count is of one slice in both.

    With --regions the plan is of named regions: the error of each level, and the number of regions
    of each quality, for their public populations; with --slices in one slice, as in a release of
    weekly wards, or with --methods cube in --windows. Epsilon is shared out as the build does. The
    simulated people of a region follow --covariate and are inside --boundary.
    --for-relative-error, --for-mean-error and --for-sum-error solve for epsilon.

    \b
    Examples:
      psd plan --area 605 --count 100000 --epsilon 0.1,1
      psd plan --area 605 --count 2000 --slices 168 --windows 24 --sizes 1% --for-relative-error 10%
      psd plan --area 605 --count 100000 --epsilon 1 --slices 52 --delta 1e-6 --methods auto
      psd plan --bounds 126.4 37 127.6 38 --regions wards.gpkg --region-id ward \\
          --region-parent district --population people --epsilon 0.1,1
      psd plan --bounds 126.4 37 127.6 38 --regions wards.gpkg --region-id ward \\
          --population visits --value fare 0 60 --for-mean-error fare 0.5
    """  # noqa: D301
    from psd._util.atomic_write import check_targets, temporary_target
    from psd.apps.planning.figures import check_plan_plot, plot_plan
    from psd.apps.planning.plan import plan
    from psd.publish.fields import public_files
    from psd.publish.request import MOST_APART
    from psd.publish.request_values import covariate_from_values, parse_values

    form = output_format(form, output, FORMATS)
    check_targets(
        filter(None, (output, plot)),
        overwrite=overwrite,
        inputs=public_files(fields),
    )
    given = parse_values(fields)
    regional = {
        name: options.pop(name)
        for name in (
            "population",
            "settings",
            "for_relative_error",
            "for_mean_error",
            "for_sum_error",
            "level",
        )
    }
    chosen = click.get_current_context().get_parameter_source
    if "regions" in given:
        # Options of a plan by size of query must be left out.
        for name in ("area", "sizes", "density", "runs"):
            if chosen(name) == ParameterSource.COMMANDLINE:
                raise click.UsageError(
                    f"--{name} must be left out with --regions, whose plan is of named regions"
                )
        domain, _ = _plan_domain(area, given)
        run_region_plan(
            domain, form, output, plot, overwrite=overwrite, given=given, **regional, **options
        )
        return
    names_methods = chosen("methods") == ParameterSource.COMMANDLINE
    is_cube = split_commas(options["methods"]) == ["cube"]
    is_cube |= not names_methods and (options["slices"] or 1) > MOST_APART
    error = regional["for_relative_error"]
    if error is not None and is_cube:
        del regional["for_relative_error"]
        options["for_relative_error"] = _share(error)
    regional |= {name: given.get(name) for name in (*REGIONS, "boundary")}
    for name, value in regional.items():
        if value:
            option = {"settings": "set"}.get(name, name.replace("_", "-"))
            raise click.UsageError(f"--{option} must be given with --regions")
    for name in ("count", "epsilon"):  # which a plan of regions can do without
        if options[name] is None and (name == "count" or "for_relative_error" not in options):
            raise click.UsageError(f"Missing option '--{name}'.")
    if plot:
        check_plan_plot(Path(plot))
    is_local = area is not None
    domain, area = _plan_domain(area, given)
    covariate = covariate_from_values(given)
    if covariate is not None and is_local:
        raise click.UsageError("--covariate needs a location: give --bounds instead of --area")
    public = None if covariate is None else covariate.read(domain)
    lists: dict[str, Any] = {
        name: split_commas(options.pop(name)) for name in ("methods", "density")
    }
    if not names_methods:
        del lists["methods"]
    options = {name: value for name, value in options.items() if value is not None}
    epsilon, sizes = options.pop("epsilon", None), split_commas(options.pop("sizes"))
    if "windows" in options:
        options["windows"] = [*map(_slices_of, split_commas(options["windows"]))]
    if "categories" in options:
        text = options["categories"]
        options["categories"] = (
            int(text) if text.isascii() and text.isdigit() else [*map(_share, split_commas(text))]
        )
    with show_builds("simulating populations") as finished:
        result = plan(
            options.pop("count"),
            domain=domain,
            area=area,
            epsilon=None if epsilon is None else split_commas(epsilon),
            sizes=[_share(text, area) for text in sizes],
            covariate=public,
            values=given.get("values"),
            progress=finished,
            **lists,
            **options,
        )
    _write_plan(result, form, output, overwrite=overwrite)
    if plot:
        with temporary_target(plot, overwrite=overwrite) as path:
            plot_plan(result, path)
        print_success(f"wrote {plot}")


def _plan_domain(
    area: float | None,
    given: dict[str, Any],
) -> tuple[Domain, float]:
    """Domain of the plan and its area, from one of the two options."""
    from dataclasses import replace

    from psd.apps.planning.population import domain_area_km2, square_domain
    from psd.publish.request_values import public_domain_from_values

    if (area is None) == ("bounds" not in given):
        raise click.UsageError("one of --area, in km2, and --bounds must be given")
    if area is None:
        domain = public_domain_from_values(given)
        return domain, domain_area_km2(domain)
    square = square_domain(area)  # in metres, and so is the resolution
    stated = {name: given[name] for name in ("coordinate_resolution", "min_cell") if name in given}
    return replace(square, **stated), area


def _write_plan(result: Plan, form: str, output: str | None, *, overwrite: bool) -> None:
    """Print the plan as a table for people, or write it as CSV or as one JSON object."""
    from psd.apps.planning.text import (
        COLUMNS_NOTE,
        plan_sentences,
        plan_setting,
        range_columns,
    )

    sentences = plan_sentences(result)
    if form == "table":
        columns = [
            Column(heading=name, values=values, left=name in ("method", "noise"))
            for name, values in range_columns(result).items()
        ]
        click.echo(f"Expected relative errors: {plan_setting(result)}.")
        left_out = print_columns(columns, dispensable=_DISPENSABLE)
        click.echo(textwrap.fill(f"{COLUMNS_NOTE} No data was read.", 90))
        for sentence in sentences:
            click.echo(f"- {sentence}.")
        print_left_out(left_out)
    elif form == "csv":
        write_text(csv_text(result.table), output, overwrite=overwrite)
    else:
        content = {
            "area_km2": result.area_km2,
            "count": result.count,
            "max_contributions": result.max_contributions,
            "runs": result.runs,
            **_series_content(result),
            "coordinate_resolution": result.coordinate_resolution,
            "min_cell": result.min_cell,
            **({} if result.solved is None else {"solved_epsilon": str(result.solved)}),
            "expected": json.loads(result.table.to_json(orient="records", double_precision=15)),
            "words": sentences,
        }
        write_text(json.dumps(content, indent=1) + "\n", output, overwrite=overwrite)


def _series_content(result: Plan | RegionPlan) -> dict[str, Any]:
    """Slices, delta and what builds choose, if there are any."""
    from psd.privacy.loss import delta_text

    series, content = result.series, {}
    if series.slices > 1:
        content = {"slices": series.slices, "max_per_slice": series.max_per_slice}
    if series.delta is None:
        return content
    laws = [{"epsilon": e, "method": m, "noise": law} for (e, m), law in result.chosen.items()]
    return {**content, "delta": delta_text(series.delta), "chosen": laws}


# Columns that a narrow terminal leaves out, in this order.
_DISPENSABLE = (
    "error in_records",
    "mean error_at random",
    "90th_percentile",
    "median_error",
    "% of_area",
)


COMMANDS = {"plan": run_plan}
