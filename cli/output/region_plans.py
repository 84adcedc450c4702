"""psd plan --regions: expected errors of named regions, printed or written."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from psd._util.csv_text import csv_text

from ..options.values import parse_number, parse_settings, split_commas
from ..output.columns import Column, print_columns, print_left_out
from ..output.terminal import printable, show_stage
from ..output.text_files import write_text

if TYPE_CHECKING:
    from psd.planning.region_plan import RegionPlan
    from psd.space.domain import Domain

__all__ = ["run_region_plan"]

_DISPENSABLE = ("mean_population", "median_error", "90th_percentile")


def run_region_plan(
    domain: Domain,
    form: str,
    output: str | None,
    plot: str | None,
    *,
    overwrite: bool,
    regions: dict[str, Any],
    settings: tuple[str, ...],
    for_relative_error: str | None,
    level: str | None,
    **options: Any,
) -> None:
    """Plan the regions of the options, and print or write the plan.

    Raises
    ------
    UsageError
        If neither epsilons nor a relative error are present, or there are several methods.
    """
    from psd.planning.figure import check_plan_plot
    from psd.planning.region_plan import plan_regions
    from psd.publish.request_toml import boundary_from_text, covariate_from_text

    methods, stated = split_commas(options["methods"]), options["epsilons"]
    epsilons = [] if stated is None else split_commas(stated)
    if not _is_default("methods") and len(methods) > 1:
        raise click.UsageError("--methods must be one of auto, cascade and none with --regions")
    if for_relative_error is None and options["epsilons"] is None:
        raise click.UsageError("--epsilon or --for-relative-error must be given")
    if for_relative_error is None and level is not None:
        raise click.UsageError("--level must be given with --for-relative-error")
    if for_relative_error is not None and len(epsilons) > 1:
        raise click.UsageError("--epsilon must be one with --for-relative-error, the largest")
    target: dict[str, Any] = {"epsilons": epsilons, "level": level}
    if for_relative_error is not None:
        target["for_relative_error"] = _share(for_relative_error)
    if plot:
        check_plan_plot(Path(plot))
    with show_stage() as stage:
        stage("planning regions")
        result = plan_regions(
            **_inputs(regions),
            domain=domain,
            method=_method(methods[0], settings),
            count=options["count"],
            max_contributions=options["max_contributions"],
            covariate=covariate_from_text(options["covariate"]),
            boundary=boundary_from_text(options["boundary"]),
            seed=options["seed"],
            **target,
        )
    if form == "table":
        _print_plan(result)
    elif form == "csv":
        text = csv_text(result.table)
        write_text(text, output, overwrite=overwrite)
    else:
        write_text(_plan_json(result), output, overwrite=overwrite)
    if plot:
        _plot_plan(result, plot, overwrite=overwrite)


def _is_default(name: str) -> bool:
    """Whether an option was left out."""
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.DEFAULT


def _inputs(table: dict[str, Any]) -> dict[str, Any]:
    """Regions and the column of populations."""
    from psd.publish.region_text import regions_from_table

    keys = dict(table)
    column = keys.pop("population", None)
    return {"regions": regions_from_table(keys), "populations": column}


def _method(inside: str, settings: tuple[str, ...]) -> Any:
    """Method of the regions."""
    from psd.decompositions._regions import region_method

    return region_method(inside, parse_settings(settings))


def _share(text: str) -> float:
    """Share of a text with %, or of a number."""
    if text.endswith("%"):
        return parse_number(text[:-1].strip()) / 100
    return parse_number(text)


def _plan_json(result: RegionPlan) -> str:
    """The plan as one JSON object; infinite errors are null."""
    content = {
        "count": result.count,
        "max_contributions": result.max_contributions,
        "inside": result.inside,
        "solved_epsilon": None if result.solved is None else str(result.solved),
        "expected": json.loads(result.table.to_json(orient="records", double_precision=15)),
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _print_plan(result: RegionPlan) -> None:
    """The plan as a table for people."""
    from psd.planning.text import REGIONS_NOTE, region_columns, region_setting

    columns = [
        Column(heading=name, values=[*map(printable, values)], left=name == "level")
        for name, values in region_columns(result).items()
    ]
    click.echo(f"Expected errors of regions: {region_setting(result)}.")
    left_out = print_columns(columns, dispensable=_DISPENSABLE)
    click.echo(textwrap.fill(REGIONS_NOTE, 90))
    if result.solved is not None:
        click.echo(f"- epsilon {result.solved} gives this relative error.")
    print_left_out(left_out)


def _plot_plan(result: RegionPlan, path: str, *, overwrite: bool) -> None:
    """Errors by level as a picture or a page."""
    from psd._util.atomic_write import temporary_target
    from psd.planning.region_figure import plot_region_plan

    with temporary_target(path, overwrite=overwrite) as target:
        plot_region_plan(result, target)
    click.echo(f"wrote {path}")
