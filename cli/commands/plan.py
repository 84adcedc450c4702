"""psd plan: what relative error to expect, from public parameters alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..options.area import covariate_option, read_covariate
from ..options.command import Command
from ..options.common import overwrite
from ..options.values import integer, number, split_commas
from ..output.terminal import console, make_room, show_builds

if TYPE_CHECKING:
    from psd.planning.plan import Plan
    from psd.space.domain import Domain

__all__ = ["command"]

FORMATS = ("table", "csv", "json")


@click.command("plan", cls=Command)
@click.option("--area", type=number, metavar="KM2", help="Study area in square kilometres.")
@click.option(
    "--bounds", nargs=4, type=number, metavar="W S E N", help="The same as bounds, instead of it."
)
@click.option("--crs", default="EPSG:4326", show_default=True, help="CRS of the bounds.")
@click.option(
    "--count",
    required=True,
    type=integer,
    help="Records to expect: a public figure or a guess, never counted in the data.",
)
@click.option(
    "--epsilon", required=True, metavar="E,F,...", help="Budgets with commas between them."
)
@click.option(
    "--max-contributions", type=integer, help="Most records of each user, if users are protected."
)
@click.option(
    "--methods",
    default="auto,quadtree",
    show_default=True,
    metavar="A,B,...",
    help="Methods with commas between them; `psd methods` lists them.",
)
@click.option(
    "--sizes",
    default="0.01%,0.1%,1%,10%",
    show_default=True,
    metavar="S,T,...",
    help="Sizes of queries in km2, or in % of the area.",
)
@click.option(
    "--density",
    "densities",
    default="uniform,clustered,coastal,places",
    show_default=True,
    metavar="A,B,...",
    help="How people may be spread; the range over all of them is shown.",
)
@covariate_option
@click.option("--runs", type=integer, help="Made-up populations of each density; else 1 to 5.")
@click.option("--seed", type=integer, default=0, show_default=True, help="Of these populations.")
@click.option("--format", "form", type=click.Choice(FORMATS), help="Else by -o, else table.")
@click.option("-o", "--output", type=click.Path(), help="CSV or JSON file instead of the screen.")
@click.option("--plot", type=click.Path(), help="PNG, SVG or HTML page of the errors by size.")
@overwrite
def command(
    area: float | None,
    bounds: tuple[float, float, float, float] | None,
    crs: str,
    count: int,
    covariate: str | None,
    form: str | None,
    output: str | None,
    plot: str | None,
    overwrite: bool,
    **options: Any,
) -> None:
    """Predict the relative errors of a release by size of query. Reads no data.

    Public parameters only: people are made up as assumed, uniform or clustered in several ways,
    built with the real methods and their real noise, and asked about. A real population is
    somewhere in between, so each figure is a range; docs/guide/planning.md tests it.
    With --covariate, a public raster or polygons, the large scale is known and only what lies
    below its cells is assumed.

    \b
    Examples:
      psd plan --area 605 --count 100000 --epsilon 0.1,1
      psd plan --area 605 --count 100000 --epsilon 1 --max-contributions 4 --sizes 0.25,1,5%
      psd plan --bounds 126.4 37 127.6 38 --count 100000 --epsilon 1 --plot plan.png
      psd plan --bounds 126.4 37 127.6 38 --count 100000 --epsilon 1 --covariate people.tif \\
          --methods auto,cascade,adaptive-grid -o plan.csv
    """  # noqa: D301
    from psd._util.atomic_write import check_targets
    from psd.planning.figure import check_plan_plot
    from psd.planning.plan import plan

    form = _format(form, output)
    check_targets(filter(None, (output, plot)), overwrite=overwrite, inputs=_file(covariate))
    if plot:
        check_plan_plot(Path(plot))
    domain, area_km2 = _place(area, bounds, crs)
    if covariate and area is not None:
        raise click.UsageError("--covariate lies somewhere: give --bounds instead of --area")
    known = read_covariate(covariate, domain)
    lists: dict[str, Any] = {
        name: split_commas(options.pop(name)) for name in ("methods", "densities")
    }
    epsilons, sizes = (split_commas(options.pop(name)) for name in ("epsilon", "sizes"))
    with show_builds("making people up") as finished:
        found = plan(
            count,
            domain=domain,
            area_km2=area_km2,
            epsilons=epsilons,
            sizes=[_size(text, area_km2) for text in sizes],
            covariate=known,
            progress=finished,
            **lists,
            **options,
        )
    _emit(found, form, output, overwrite=overwrite)
    if plot:
        _plot(found, plot, overwrite=overwrite)


def _file(covariate: str | None) -> list[str]:
    """File of the covariate, if there is one."""
    from psd.publish.request_toml import covariate_from_text

    named = covariate_from_text(covariate)
    return [] if named is None else [named.path]


def _format(form: str | None, output: str | None) -> str:
    """Format asked for, or that of the output's ending."""
    ending = Path(output or "").suffix[1:].lower()
    chosen = form or (ending if ending in FORMATS else "table")
    if output and chosen == "table":
        raise click.UsageError(f"-o {output}: name the format with --format csv or json")
    return chosen


def _place(
    area: float | None, bounds: tuple[float, float, float, float] | None, crs: str
) -> tuple[Domain, float]:
    """Domain of the plan and its area, from one of the two options."""
    from psd.planning.plan import area_of, square
    from psd.space.domain import Domain

    if (area is None) == (bounds is None):
        raise click.UsageError("give either --area, in km2, or --bounds")
    if bounds is None:
        assert area is not None
        return square(area), area
    domain = Domain(bounds=bounds, crs=crs)
    return domain, area_of(domain)


def _size(text: str, area_km2: float) -> float:
    """Share of the area, from km2 or from a text with %."""
    if text.endswith("%"):
        return number(text[:-1].strip()) / 100
    size = number(text)
    if size > area_km2:
        raise click.UsageError(f"--sizes {text} km2 is more than the area, {area_km2:,.6g} km2")
    return size / area_km2


def _emit(found: Plan, form: str, output: str | None, *, overwrite: bool) -> None:
    """The plan on the screen or in a file."""
    from psd._util.atomic_write import temporary_target

    if form == "table":
        _print(found)
        return
    table = found.table
    text = table.to_csv(index=False, lineterminator="\n") if form == "csv" else _json(found)
    if output is None:
        click.echo(text, nl=False)
        return
    with temporary_target(output, overwrite=overwrite) as target:
        target.write_text(text, encoding="utf-8")
    click.echo(f"wrote {output}")


def _json(found: Plan) -> str:
    """All there is, as one object."""
    import json

    from psd.planning.text import words

    whole = {
        "area_km2": found.area_km2,
        "count": found.count,
        "max_contributions": found.max_contributions,
        "runs": found.runs,
        "expected": json.loads(found.table.to_json(orient="records", double_precision=15)),
        "words": words(found),
    }
    return json.dumps(whole, indent=1) + "\n"


# What a narrow terminal does without, in this order.
_DISPENSABLE = ("records_off", "anywhere:_mean", "9 in 10_under", "half_under", "% of_area")


def _print(found: Plan) -> None:
    """Ranges as a table for people, and what they mean in words."""
    from rich.table import Table

    from psd.planning.text import range_columns, setting, words

    out, columns = console(), range_columns(found)
    left_out = [name for name in _DISPENSABLE if make_room(columns, name, out.width)]
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in columns:
        justify: Any = "left" if name == "method" else "right"
        table.add_column(name.replace("_", "\n"), justify=justify, no_wrap=True)
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    click.echo(f"Expected relative errors: {setting(found)}.")
    out.print(table)
    click.echo(
        "Ranges: least and most of the assumed densities. Mean, half under and 9 in 10 under are "
        "of queries\nwhere people are, anywhere is the mean of queries anywhere. No data was read."
    )
    for sentence in words(found):
        click.echo(f"- {sentence}.")
    if left_out:
        named = ", ".join(name.replace("_", " ") for name in left_out)
        click.echo(f"(too narrow for {named}; see --format csv)", err=True)


def _plot(found: Plan, path: str, *, overwrite: bool) -> None:
    """Errors by size of query as a picture or a page."""
    from psd._util.atomic_write import temporary_target
    from psd.planning.figure import plot_plan

    with temporary_target(path, overwrite=overwrite) as target:
        plot_plan(found, target)
    click.echo(f"wrote {path}")
