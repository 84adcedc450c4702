"""psd choose: choices among public candidates, charged to a ledger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from psd._util.column_kinds import csv_text

from ..options.command import (
    INTEGER,
    NUMBER,
    Command,
    Group,
    chain_options,
    options_of,
    parse_integer,
)
from ..options.common import INPUTS, local_files
from ..options.fields import LEDGER, POINTS, TIMES, UNIT, account_of, field_options
from ..output.publishing import make_observer
from ..output.tables import write_table, write_text
from ..output.terminal import print_success, show_stage

if TYPE_CHECKING:
    from psd.apps.choosing import Choice
    from psd.apps.choosing.objectives import Objective
    from psd.space.domain import Domain


MAX_ZONE_DEPTH = 8
"""Most halvings of each axis of a map of zones."""

_MAX_ZONES = 100


def choice_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Inputs, epsilon, CRS, unit of privacy, format and ledger."""
    return chain_options(
        INPUTS,
        click.option(
            "--epsilon", required=True, help="Epsilon of the choice, a decimal such as 0.1."
        ),
        options_of("Area")(
            "--crs",
            default="EPSG:4326",
            show_default=True,
            help="CRS of the bounds and of coordinate columns.",
        ),
        field_options("coordinate_resolution"),
        field_options(*UNIT, *POINTS, *TIMES, "table", "query", "memory", into="read"),
        click.option(
            "--format",
            "form",
            type=click.Choice(["table", "csv", "json"]),
            default="table",
            show_default=True,
            help="Format of the output.",
        ),
        field_options(*LEDGER, "report_private"),
    )(command)


def choice_domain(
    bounds: tuple[float, float, float, float] | None,
    crs: str,
    coordinate_resolution: str | None,
    *,
    instead: str = "",
) -> Domain:
    """Domain of a choice, of one cell; without bounds, the message names what `instead` says."""
    from psd.space.domain import Domain

    if bounds is None:
        raise click.UsageError(f"--bounds{instead} must be given; bids outside do not count")
    if coordinate_resolution is None:
        return Domain(bounds=bounds, crs=crs, lattice=(1, 1))
    return Domain(
        bounds=bounds, crs=crs, coordinate_resolution=coordinate_resolution, min_cell=None
    )


def check_unrounded(coordinate_resolution: str | None) -> None:
    """Refuse a coordinate resolution where regions decide what a record counts for."""
    if coordinate_resolution is not None:
        raise click.UsageError("--coordinate-resolution must be left out with --regions")


def zone_numbers(text: str) -> tuple[int, ...]:
    """Numbers of zones of ``--zones``: one, or a range ``1..3``."""
    first, dots, last = text.partition("..")
    try:
        low = parse_integer(first)
        high = parse_integer(last) if dots else low
    except click.BadParameter:
        low = high = 0
    if not 1 <= low <= high <= _MAX_ZONES:
        raise click.BadParameter(
            f"it must be a number from 1 to {_MAX_ZONES}, or a range such as 1..4, got "
            f"{text[:80]!r}",
            param_hint="'--zones'",
        )
    return tuple(range(low, high + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """How the objective of a choice is made."""

    # Makes the objective of the files, after these and epsilon were checked.
    make: Callable[[], Objective]
    unit: str  # what scores are numbers of
    # Files of the objective. Those that hold records are refused before they are read, since
    # messages about candidates quote their ids.
    files: tuple[str, ...] = ()


def make_choice(
    candidates: Candidates,
    *,
    inputs: tuple[str, ...],
    read: dict[str, Any],
    form: str,
    ledger: str | None,
    dataset: str | None,
    analyst: str | None,
    report_private: bool,
    output: str | None = None,
    overwrite: bool = False,
    crs: str = "",
    **options: Any,
) -> None:
    """Choose, print, and record the charge as done; `crs` is of the outlines in `output`."""
    import pandas as pd

    from psd._util.atomic_write import check_free
    from psd.apps.choosing import choose
    from psd.privacy.loss import epsilon_decimal, parse_epsilon
    from psd.publish.counting import inputs_of
    from psd.publish.request_warnings import warn_of_large_epsilon
    from psd.regions.files import refuse_record_files

    warn_of_large_epsilon(epsilon_decimal(parse_epsilon(options["epsilon"])))
    reads: list[str | Path] = [*candidates.files, *local_files(inputs), ledger or ""]
    if output is not None:
        if Path(output).suffix.lower() not in (".geojson", ".csv"):
            raise click.UsageError(f"--output must end in .geojson or .csv, got {output[:80]}")
        check_free(output, overwrite=overwrite, inputs=reads)
    account = account_of(ledger, dataset, analyst)
    if account is None:
        raise click.UsageError("--ledger and --dataset must be given; psd choose charges a ledger")
    account.refuse_records(candidates.files)
    refuse_record_files(candidates.files, local_files(inputs))
    with show_stage() as stage:
        stage("reading candidates")
        objective = candidates.make()
        data = inputs_of(inputs, read.pop("table", None), read.pop("query", None))
        stated = {name: value for name, value in options.items() if value is not None}
        observer = make_observer(stage, report_private=report_private)
        choice = choose(data, objective, account=account, observer=observer, **read, **stated)
    picks = pd.DataFrame(choice.picks)
    without_outlines = picks.drop(columns="geometry", errors="ignore")
    write_table(without_outlines, form, None, overwrite=False)
    account.finish()
    if form == "table":
        for line in show_notes(choice, candidates.unit):
            click.echo(line)
        print_success(f"ledger head {account.head}")
    if output is None:
        return
    if output.lower().endswith(".csv"):
        text = csv_text(without_outlines)
    else:  # GeoJSON is in degrees
        import geopandas as gpd

        from psd.space.shape_transforms import transform_table

        layer = gpd.GeoDataFrame(picks, geometry="geometry", crs=crs)
        text = transform_table(layer, "EPSG:4326", "the picks").to_json(drop_id=True) + "\n"
    write_text(str(text), output, overwrite=overwrite)


def show_notes(choice: Choice, unit: str) -> list[str]:
    """Sentences on the price of a choice, its error and what a lie gains, of public numbers."""
    each = "" if choice.draws == 1 else f"{choice.draw_epsilon:f} for each draw, "
    number, gain = f"{choice.candidates:,}", choice.liar_gain()
    if choice.candidates >= 10**12:
        number = f"about 10^{len(str(choice.candidates)) - 1}"
    share = f"{gain:.3g} times" if gain > 1 else f"{100 * gain:.3g} % of"
    return [
        f"{choice.guarantee}; {each}{number} candidates",
        f"shortfall: at most {choice.mean_shortfall:,.4g} {unit} below the best candidate on "
        f"average, and at most {choice.likely_shortfall:,.4g} with probability 0.95",
        f"resolution: candidates within {choice.score_resolution:,.4g} {unit} of each other are "
        "hardly told apart",
        f"a liar gains at most {share} their largest utility, t liars together "
        f"e^({choice.epsilon:f} t) - 1 of it, in n such choices e^({choice.epsilon:f} n) - 1",
    ]


_area = options_of("Area")
_candidates = options_of("Candidates")

_bounds = _area(
    "--bounds",
    nargs=4,
    type=NUMBER,
    metavar="W S E N",
    help="Count only bids inside. With --regions, by default the box around them.",
)
_regions = _area(
    "--regions",
    type=click.Path(readable=False),
    metavar="FILE",
    help="Public polygons with a column id; bids in none of them do not count.",
)
_bid = _candidates(
    "--bid",
    required=True,
    metavar="COLUMN",
    help="Column of bids. A record without a number there is left out; bids above the largest "
    "price count as the largest.",
)
_prices = _candidates(
    "--prices",
    required=True,
    metavar="LIST",
    help="Public prices: FIRST..LAST/STEP such as 0.5..100/0.5, or numbers with commas.",
)


@click.group("choose", cls=Group)
def run_choose() -> None:
    """Choose among public candidates by private records, and charge epsilon to a ledger.

    A choice names a candidate that records score high, for one charge, without a release. It prints
    no score, no revenue and no count: `psd ask` answers these, for epsilon of their own. One
    release of `psd build` answers any number of questions for one epsilon; use `psd choose` for one
    decision among overlapping or many candidates.

    \b
    Examples:
      psd choose site visits.csv --candidates sites.csv --radius 2000 --epsilon 0.1 \\
          --ledger city.ledger --dataset visits
      psd choose price bids.csv --bid bid --prices 0.5..20/0.5 --bounds 126.8 37.4 127.2 37.7 \\
          --epsilon 0.5 --ledger city.ledger --dataset bids
    """  # noqa: D301


@run_choose.command("site", cls=Command, short_help="Choose sites by the records near them.")
@_candidates(
    "--candidates",
    required=True,
    type=click.Path(readable=False),
    help="Public file of candidates with a column id: points (CSV with lon and lat, or a vector "
    "file) with --radius, or polygons. Never made from the data.",
)
@_candidates("--radius", type=NUMBER, metavar="METRES", help="Radius of the catchments of points.")
@_candidates(
    "--best",
    type=INTEGER,
    default=1,
    show_default=True,
    metavar="J",
    help="Choose J sites, one after another, each with epsilon / J.",
)
@_candidates(
    "--cover", is_flag=True, help="With --best: count only records that no chosen site covers."
)
@_candidates(
    "--target",
    type=INTEGER,
    metavar="N",
    help="Choose the site whose number of records is closest to N, instead of the largest one. It "
    "may be off by twice as much.",
)
@_area(
    "--bounds",
    nargs=4,
    type=NUMBER,
    metavar="W S E N",
    help="Count only records inside. By default the box around all catchments.",
)
@choice_options
def choose_site(
    candidates: str,
    radius: float | None,
    best: int,
    cover: bool,
    target: int | None,
    bounds: tuple[float, float, float, float] | None,
    crs: str,
    coordinate_resolution: str | None,
    **options: Any,
) -> None:
    """Choose the site whose catchment has most records.

    A record counts in each catchment that it lies in. Epsilon is charged at all points of the area,
    also where no catchment is.

    \b
    Examples:
      psd choose site visits.csv --candidates sites.csv --radius 2000 --epsilon 0.1 \\
          --ledger city.ledger --dataset visits
      psd choose site visits.csv --candidates wards.gpkg --best 3 --cover --epsilon 0.3 \\
          --ledger city.ledger --dataset people --user user_id --max-contributions 4
    """  # noqa: D301
    from psd.apps.choosing import Sites
    from psd.apps.choosing.files import read_catchments

    def sites() -> Sites:
        return Sites(
            catchments=read_catchments(Path(candidates), radius=radius, crs=crs),
            best=best,
            cover=cover,
            target=target,
            bounds=bounds,
            coordinate_resolution=coordinate_resolution,
            files=(candidates,),
        )

    make_choice(Candidates(make=sites, unit="records", files=(candidates,)), **options)


@run_choose.command("price", cls=Command, short_help="Choose one price by the bids that reach it.")
@_bid
@_prices
@_bounds
@choice_options
def choose_price(
    bid: str,
    prices: str,
    bounds: tuple[float, float, float, float] | None,
    crs: str,
    coordinate_resolution: str | None,
    **options: Any,
) -> None:
    """Choose the price that earns most: the price times the bids at or above it.

    A bid is one record; with --user, state --max-contributions 1 so that each user has one. The
    price is the same for all, so that no bid decides what it pays itself.

    \b
    Examples:
      psd choose price bids.csv --bid bid --prices 0.5..20/0.5 --bounds 126.8 37.4 127.2 37.7 \\
          --epsilon 0.5 --ledger city.ledger --dataset bids
    """  # noqa: D301
    from psd.apps.choosing import Price, PriceList

    def price() -> Price:
        domain = choice_domain(bounds, crs, coordinate_resolution)
        return Price(bid=bid, prices=PriceList.parse(prices), domain=domain)

    make_choice(Candidates(make=price, unit="of revenue"), **options)


@run_choose.command("tariff", cls=Command, short_help="Choose one of a list of tariffs.")
@_bid
@_candidates(
    "--tariffs",
    required=True,
    type=click.Path(readable=False),
    metavar="FILE",
    help="Public CSV with a column tariff, and a price for each region in a column of its id; "
    "without --regions, one column price.",
)
@_regions
@_bounds
@choice_options
def choose_tariff(
    bid: str,
    tariffs: str,
    regions: str | None,
    bounds: tuple[float, float, float, float] | None,
    crs: str,
    coordinate_resolution: str | None,
    **options: Any,
) -> None:
    """Choose the tariff of a public list that earns most.

    Whatever can be listed may be a tariff: prices that differ little between neighbours,
    concessions, and those of today. A bid pays the price of its region if it reaches it.

    \b
    Examples:
      psd choose tariff bids.csv --bid bid --tariffs tariffs.csv --regions zones.geojson \\
          --epsilon 0.5 --ledger city.ledger --dataset bids
    """  # noqa: D301
    from psd.apps.choosing import Tariffs
    from psd.apps.choosing.files import read_public_regions, read_tariffs

    files = tuple(path for path in (tariffs, regions) if path is not None)

    def listed() -> Tariffs:
        if regions is None:
            hierarchy = None
            domain = choice_domain(bounds, crs, coordinate_resolution, instead=" or --regions")
        else:
            check_unrounded(coordinate_resolution)
            hierarchy = read_public_regions(regions, crs=crs, bounds=bounds)
            domain = hierarchy.domain
        names, prices = read_tariffs(
            Path(tariffs), None if hierarchy is None else [*hierarchy.levels[-1].ids]
        )
        return Tariffs(
            bid=bid,
            ids=names,
            prices=prices,
            domain=domain,
            regions=hierarchy,
            files=files,
        )

    make_choice(Candidates(make=listed, unit="of revenue", files=files), **options)


@run_choose.command("prices", cls=Command, short_help="Choose zones with one price each.")
@_bid
@_prices
@_candidates(
    "--zones",
    required=True,
    metavar="K",
    help="Number of zones, or 1..K for any number up to K; each number has the same weight.",
)
@_candidates(
    "--zone-depth",
    type=INTEGER,
    metavar="D",
    help="Zones are rectangles of a map: the leaves of a tree that halves the bounds, in x and y "
    "in turn, down to at most 2^D x 2^D cells.",
)
@_regions
@_candidates(
    "--order",
    metavar="COLUMN",
    help="With --regions: zones are runs of the regions in the order of this column of numbers, "
    "such as the distance from the centre.",
)
@_bounds
@options_of("Output")(
    "-o", "--output", type=click.Path(), help="File of the zones, .geojson or .csv."
)
@options_of("Output")("--overwrite", is_flag=True, help="Replace an existing file.")
@choice_options
def choose_prices(
    bid: str,
    prices: str,
    zones: str,
    zone_depth: int | None,
    regions: str | None,
    order: str | None,
    bounds: tuple[float, float, float, float] | None,
    crs: str,
    coordinate_resolution: str | None,
    **options: Any,
) -> None:
    """Choose zones with one price each: of all maps of zones and prices, one that earns most.

    A bid pays the price of its zone if it reaches it. More zones earn more of the same bids, and
    make the choice less certain; with a small epsilon few zones are better.

    \b
    Examples:
      psd choose prices bids.csv --bid bid --prices 0.5..20/0.5 --zones 1..4 --zone-depth 3 \\
          --bounds 126.8 37.4 127.2 37.7 --epsilon 1 --ledger city.ledger --dataset bids \\
          -o zones.geojson
      psd choose prices bids.csv --bid bid --prices 0.5..20/0.5 --zones 3 --regions rings.gpkg \\
          --order distance --epsilon 1 --ledger city.ledger --dataset bids
    """  # noqa: D301
    from psd.apps.choosing import PriceList, PriceMap

    check_unrounded(coordinate_resolution)

    def maps() -> PriceMap:
        listed, numbers = PriceList.parse(prices), zone_numbers(zones)
        if regions is not None:
            # Zones are runs of regions.
            from psd.apps.choosing.files import read_order, read_public_regions

            if order is None or zone_depth is not None:
                raise click.UsageError("--order must be given with --regions, and no --zone-depth")
            public = read_public_regions(regions, crs=crs, bounds=bounds)
            return PriceMap(
                bid=bid,
                prices=listed,
                zones=numbers,
                domain=public.domain,
                regions=public,
                order=read_order(regions, order, public),
                files=(regions,),
            )
        if order is not None or zone_depth is None:
            raise click.UsageError("--zone-depth must be given, or --regions with --order")
        # Zones are leaves of a halving tree.
        from psd.space.domain import Domain

        if bounds is None:
            raise click.UsageError("--bounds must be given with --zone-depth")
        if not 0 <= zone_depth <= MAX_ZONE_DEPTH:
            raise click.BadParameter(
                f"it must be 0 to {MAX_ZONE_DEPTH}, got {zone_depth}", param_hint="'--zone-depth'"
            )
        domain = Domain(bounds=bounds, crs=crs, lattice=(2**zone_depth, 2**zone_depth))
        return PriceMap(bid=bid, prices=listed, zones=numbers, domain=domain, depth=zone_depth)

    files = () if regions is None else (regions,)
    make_choice(Candidates(make=maps, unit="of revenue", files=files), crs=crs, **options)


COMMANDS = {"choose": run_choose}
