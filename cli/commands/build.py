"""psd build: from locations to a release file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from psd.decompositions import methods
from psd.release.post_processing import DENSITIES, ESTIMATES

from ..options.command import Command
from ..options.common import overwrite
from ..options.covariate import covariate_options, read_covariate
from ..options.domain import Place, domain_options, place_of
from ..options.engine import INPUTS, engine_options, inputs_and_engine
from ..options.inputs import places, times
from ..options.ledger import account_of, ledger_options
from ..options.tallies import built_of, keep, tallies_of
from ..options.time_slices import slice_options, slices_of
from ..options.unit import choice_of, promise, unit_options
from ..options.values import parse_settings
from ..output.terminal import show_stage

if TYPE_CHECKING:
    from psd.decompositions import Decomposition
    from psd.ingest.engines import Engine
    from psd.ingest.tally import Tally
    from psd.release.record import Release
    from psd.release.series import Series
    from psd.space.domain import Domain
    from psd.space.time_slices import TimeSlices

__all__ = ["command"]


@click.command("build", cls=Command)
@INPUTS
@click.option("-o", "--output", required=True, type=click.Path(), help="Release file to write.")
@click.option("--epsilon", required=True, help="Privacy-loss budget, a decimal such as 0.5.")
@domain_options
@click.option(
    "--method",
    type=click.Choice(methods()),
    default="auto",
    show_default="auto; with --workload: grid for tiny boxes, else quadtree",
    help="How space is cut; `psd methods` explains.",
)
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Parameter of the method."
)
@click.option(
    "--workload",
    metavar="CLASS|FILE",
    help="Boxes to share epsilon for: tiny, small, medium, large, huge, or a CSV with "
    "west,south,east,north. Public: never chosen after a look at the data.",
)
@places
@times
@unit_options
@slice_options
@click.option(
    "--estimate",
    type=click.Choice(ESTIMATES),
    help="What is made of the counts; by default what the method wants.",
)
@click.option(
    "--density",
    type=click.Choice(DENSITIES),
    help="How points are taken to lie inside cells; by default what the method wants.",
)
@covariate_options
@engine_options
@click.option("--memory", help="Cap on the memory that reading takes, such as 2GB.")
@click.option("--report-private", is_flag=True, help="Print PRIVATE counts of rows on stderr.")
@click.option(
    "--keep-tally",
    type=click.Path(),
    help="Write the PRIVATE exact tally, for `psd evaluate`; readable by its owner alone.",
)
@ledger_options
@overwrite
@click.pass_context
def command(
    ctx: click.Context,
    /,
    inputs: tuple[str, ...],
    output: str,
    bounds: tuple[float, float, float, float] | None,
    area_of_use: bool,
    private_bounds: str | None,
    bounds_beyond: int | None,
    boundary: str | None,
    crs: str,
    method: str,
    settings: tuple[str, ...],
    workload: str | None,
    report_private: bool,
    keep_tally: str | None,
    overwrite: bool,
    max_contributions: int | str | None,
    auto_share: str | None,
    auto_over: int | None,
    auto_most: int | None,
    covariate: str | None,
    covariate_column: str | None,
    covariate_size: int | None,
    table: str | None,
    query: str | None,
    by: str | None,
    slices: str | None,
    per: str | None,
    engine: str,
    spark_url: str | None,
    ledger: str | None,
    dataset: str | None,
    analyst: str | None,
    **columns: Any,
) -> None:
    """Build an epsilon-differentially private release from locations.

    Inputs are CSV, Parquet, GeoPackage, Shapefile, FlatGeobuf and GeoJSON files, folders of them
    and patterns of names, and addresses postgresql://... of PostGIS with --table or --query.
    Rows outside the bounds are left out. With --user, at most --max-contributions rows of each
    user are kept, and epsilon protects all rows of a user, or with --per day those of one day;
    without it, each row is protected by itself. Nothing that is printed depends on the data.

    With --by and --slices, the hours, days or months that are named are counted apart, and the
    release is a series of them. Inputs may be tallies of `psd tally` too, which say all about
    the rows themselves; those of parts give the release of the whole.

    With --ledger and --dataset, epsilon is charged to the dataset's budget before anything is
    drawn, or the build is refused; what was charged stays charged.

    \b
    Examples:
      psd build visits.csv -o seoul.psd.parquet --epsilon 1 \\
          --bounds 126.4 37 127.6 38 --user user_id --max-contributions 4
      psd build accidents.csv -o uk.psd.parquet --epsilon 0.1 \\
          --bounds -7.6 49.8 1.9 60.9 --method grid
      psd build taxi.csv -o taxi.psd.parquet --epsilon 0.5 --crs EPSG:5179 --x x --y y \\
          --bounds 900000 1900000 1000000 2000000 --method quadtree --set height=9
      psd build accidents.csv -o uk.psd.parquet --epsilon 0.1 \\
          --bounds -7.6 49.8 1.9 60.9 --method cascade --covariate land.gpkg
      psd build visits.csv -o seoul.psd.parquet --epsilon 0.1 \\
          --bounds 126.4 37 127.6 38 --workload districts.csv
      psd build visits.csv -o seoul.psd.parquet --epsilon 1 --boundary seoul.gpkg \\
          --user user_id --count users
      psd build visits.csv -o seoul.psd.parquet --epsilon 1 --private-bounds 0.1 --crs EPSG:5179 \\
          --x x --y y --user user_id --max-contributions auto
      psd build postgresql://ann@db.example.org/city --table public.visits \\
          -o seoul.psd.parquet --epsilon 0.1 --bounds 126.4 37 127.6 38
      psd build visits.csv -o year.psd.parquet --epsilon 1 --bounds 126.4 37 127.6 38 \\
          --user user_id --max-contributions 4 --time time --time-zone Asia/Seoul \\
          --by month --slices 2024-01..2024-12
      psd build january.tally february.tally -o seoul.psd.parquet --epsilon 1
      psd build visits.csv -o seoul.psd.parquet --epsilon 0.5 --bounds 126.4 37 127.6 38 \\
          --ledger city.ledger --dataset visits --analyst ann
      psd build hdfs:///city/visits.parquet --engine spark --spark-url spark://node1:7077 \\
          -o seoul.psd.parquet --epsilon 0.1 --bounds 126.4 37 127.6 38
    """  # noqa: D301
    from psd._util.atomic_write import check_targets
    from psd.decompositions import method as method_by_name

    how: dict[str, Any] = {}
    data, here, where = inputs_and_engine(inputs, table, query, engine, spark_url)
    read: list[str | Path] = [*here, *filter(None, [covariate, workload, boundary, ledger])]
    check_targets(filter(None, (output, keep_tally)), overwrite=overwrite, inputs=read)
    account = account_of(ledger, dataset, analyst, output)
    tallies = tallies_of(ctx, inputs, account)
    wanted = slices_of(by, slices, per, columns["time"], columns["time_zone"])
    place = (
        Place(domain=tallies.terms.domain)
        if tallies
        else place_of(
            bounds=bounds,
            area_of_use=area_of_use,
            private_bounds=private_bounds,
            bounds_beyond=bounds_beyond,
            boundary=boundary,
            crs=crs,
        )
    )
    if workload is None:
        made = method_by_name(method, parse_settings(settings))
    else:
        source = ctx.get_parameter_source("method")
        chosen = None if source is click.core.ParameterSource.DEFAULT else method
        made = _for_workload(workload, chosen, parse_settings(settings), place.public)
    most = choice_of(max_contributions, share=auto_share, over=auto_over, most=auto_most)
    known = read_covariate(
        covariate,
        None if covariate is None else place.public,
        column=covariate_column,
        size=covariate_size,
    )
    kept: list[Tally] = []
    with show_stage() as stage:
        release: Release | Series
        how |= {"method": made, "covariate": known, "progress": stage, **columns}
        how["account"] = account
        if tallies is not None:
            release = built_of(tallies, how)
        else:
            how |= {"boundary": place.boundary, "max_contributions": most, "per": per}
            how["private_report"] = _show_private if report_private else lambda report: None
            how["private_tally"] = kept.append if keep_tally else None
            release = _built(data, place.domain, wanted, where, how)
        stage("writing")
        release.save(output, overwrite=overwrite)
        if account is not None:
            account.finish(output)
        if keep_tally:
            zone = columns["time_zone"] if columns["time"] else None
            # Paths of a cluster are none of this machine, and have no digest here.
            rows = data if where is None else []
            keep(keep_tally, tallies or kept[0], release, output, rows, zone, overwrite=overwrite)
    click.echo(f"wrote {output}: {_made(release)}, {promise(release)}")
    if keep_tally:
        click.echo(f"wrote {keep_tally} (PRIVATE)")


def _built(
    data: Any, domain: Any, slices: TimeSlices | None, engine: Engine | None, how: dict[str, Any]
) -> Release | Series:
    """Release of rows, or series of their slices."""
    from psd.publish.build import build
    from psd.publish.series import build_series

    if slices is None:
        return build(data, domain=domain, engine=engine, **how)
    if engine is not None:
        raise click.UsageError("--by does not go with --engine spark; build in this process")
    del how["time_zone"]  # that of the slices
    return build_series(data, domain=domain, slices=slices, **how)


def _for_workload(
    workload: str, name: str | None, settings: dict[str, str], domain: Domain
) -> Decomposition:
    """The method asked for, or else the one that suits the declared boxes, with its settings."""
    from psd._util.fields import from_settings
    from psd.decompositions import method
    from psd.decompositions._workload_shares import CLASSES, weights_for_boxes
    from psd.decompositions.quadtree import Quadtree

    from ..options.regions import read_boxes

    if name not in (None, "grid", "quadtree"):
        raise click.UsageError(
            f"--workload goes with quadtree and, for tiny boxes, grid: not {name}"
        )
    if name == "grid" and workload != "tiny":
        raise click.UsageError("--workload with grid is tiny; quadtree takes the other boxes")
    if "workload" in settings:
        raise click.UsageError("the workload is given twice, by --workload and by --set")
    if name == "grid" or (name is None and workload == "tiny"):
        return method("grid", {**settings, "workload": workload})
    declared = workload
    if workload not in CLASSES:
        boxes = read_boxes(Path(workload))[["west", "south", "east", "north"]].to_numpy()
        height = {name: text for name, text in settings.items() if name == "height"}
        levels = from_settings(Quadtree, height).height
        declared = " ".join(map(str, weights_for_boxes(boxes, domain, levels)))
    return method("quadtree", {"budget": "workload", **settings, "workload": declared})


def _show_private(report: dict[str, int]) -> None:
    """Counts for the one who holds the file, marked so that nobody takes them for public."""
    parts = ", ".join(f"{name} {number:,}" for name, number in report.items())
    click.echo(f"PRIVATE, do not publish: rows {parts}", err=True)


def _made(release: Any) -> str:
    """Method, and the number of slices where there are any."""
    if not hasattr(release, "slices"):
        return str(release.method)
    number = "1 slice" if len(release) == 1 else f"{len(release)} slices"
    return f"{release.method}, {number}"
