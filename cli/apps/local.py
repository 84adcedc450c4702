"""psd local: campaigns in which devices randomise their own places."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

import click

from ..options.command import INTEGER, NUMBER, Command, Group, parse_integer, split_commas
from ..options.common import TABLE_OR_JSON, TABLE_OUTPUT
from ..options.fields import REGIONS, field_options
from ..output.tables import (
    FORMATS,
    Column,
    output_format,
    print_columns,
    print_facts,
    print_rows,
    write_table,
)
from ..output.terminal import print_success, show_builds

_CAMPAIGN = click.argument("campaign", type=click.Path(readable=False))
_OVERWRITE = click.option("--overwrite", is_flag=True, help="Replace an existing file.")


@click.command("design", cls=Command, short_help="Design a campaign.")
@click.option("-o", "--output", required=True, help="File of the campaign.")
@click.option(
    "--bounds",
    nargs=4,
    type=float,
    metavar="W S E N",
    help="Ask for a place: west south east north, from public knowledge, never from the data.",
)
@field_options(
    *REGIONS,
    into="fields",
    regions={"help": "Ask for regions: polygons of the lowest ones, or a file of each level, top "
                     "first. A point in none of them is outside. By default, --bounds are their "
                     "extent."},
)  # fmt: skip
@click.option(
    "--options",
    metavar="FILE",
    help="Ask for one of the options in a file, a line each, or none of these.",
)
@click.option(
    "--range",
    "ends",
    nargs=2,
    type=float,
    metavar="LOW HIGH",
    help="Ask for a number in a range, from public knowledge, never from the data.",
)
@click.option(
    "--words", is_flag=True, help="Ask for a word of any kind; a list of words reads the reports."
)
@click.option("--epsilon", help="Epsilon of a report, unless settings state its law.")
@click.option(
    "--devices",
    type=INTEGER,
    required=True,
    help="Expected number of devices; it decides how fine the cells are.",
)
@click.option("--crs", default="EPSG:4326", show_default=True, help="CRS of the bounds.")
@click.option("--title", default="", help="What people read about the campaign.")
@click.option(
    "--rounds",
    type=click.Choice(["1", "2", "3", "4", "7"]),
    default="4",
    show_default=True,
    help="Rounds; cells with many devices are cut from round to round. 1 needs no second contact.",
)
@click.option("--protocol", help="Protocol of all groups; by default the one with least variance.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Setting of the protocol in place of the best one. In place of --epsilon stand p=0.5, "
    "q=0.75 and flips=64 of rappor, and for options truth=0.75 of k-ary.",
)
@_OVERWRITE
def design_campaign(
    output: str,
    epsilon: str | None,
    devices: int,
    title: str,
    protocol: str | None,
    settings: tuple[str, ...],
    overwrite: bool,
    fields: dict[str, Any],
    **question: Any,
) -> None:
    """Design a campaign from epsilon and the expected number of devices, and write its file.

    Give the question: --bounds for places, --regions for named regions, --options for a list of
    answers, --range for numbers, or --words for words of which no list exists before.

    Each device is in one of several groups, one for each round. The first is asked for the cell of
    a coarse grid. `psd local next` cuts the cells with many devices for the group after it. With
    --rounds 1 all groups are asked together, for grids of different sizes. Epsilon is not divided:
    a device answers once. Named regions are
    asked in one round, a group for each level.

    \b
    Examples:
      psd local design -o c.json --bounds 126.4 37 127.6 38 --epsilon 1 --devices 100000
      psd local design -o c.json --regions wards.gpkg --region-id ward --epsilon 1 --devices 9000
      psd local design -o c.json --options modes.txt --epsilon 1 --devices 5000
      psd local design -o c.json --range 0 120 --epsilon 1 --devices 5000
      psd local design -o c.json --words --epsilon 1 --devices 100000 --set bits=64
      psd local design -o c.json --words --devices 9000 --set flips=64 --set p=0.5 --set q=0.75
    """  # noqa: D301
    from psd.apps.local.answer_design import (
        design_numbers,
        design_options,
        design_words,
        parse_settings,
    )
    from psd.apps.local.campaigns import write_campaign

    subjects = [fields.get("regions") or question["bounds"], question["options"], question["ends"]]
    if [*subjects, question["words"] or None].count(None) != 3:
        raise click.UsageError(
            "one of --bounds, --regions, --options, --range and --words must be given"
        )
    if epsilon is None and not settings:
        raise click.UsageError(
            "--epsilon must be given, or with --set what it follows from: p, q and flips of "
            "rappor, or for --options truth of k-ary"
        )
    stated: dict[str, Any] = {"title": title, "protocol": protocol}
    stated["settings"] = parse_settings(settings)
    if "regions" in fields:
        from psd.apps.local.campaign_design import design_regions, read_regions
        from psd.publish.request_values import parse_values, regions_from_values

        given = parse_values(fields)
        is_files = isinstance(given["regions"], tuple)
        files = regions_from_values({"gaps": "outside", **given} if is_files else given)
        regions = read_regions(files, question["crs"], question["bounds"])
        campaign = design_regions(regions, epsilon, devices, **stated)
    elif question["bounds"] is not None:
        from psd.apps.local.campaign_design import design

        stated |= {"crs": question["crs"], "rounds": int(question["rounds"])}
        campaign = design(question["bounds"], epsilon, devices, **stated)
    elif question["words"]:
        campaign = design_words(epsilon, devices, **stated)
    elif question["options"] is not None:
        from psd.apps.local.answer_tables import read_list

        options = read_list(question["options"], "options")
        campaign = design_options(options, epsilon, devices, **stated)
    elif epsilon is None:
        raise click.UsageError("with --range, --epsilon must be given")
    else:
        low, high = question["ends"]
        campaign = design_numbers(low, high, epsilon, devices, **stated)
    write_campaign(campaign, output, overwrite=overwrite)
    print_success(f"wrote {output}; campaign {campaign.digest}")


@click.command("plan", cls=Command, short_help="Predict errors, beside the central model.")
@click.option("--bounds", nargs=4, type=NUMBER, required=True, metavar="W S E N", help="Bounds.")
@click.option("--crs", default="EPSG:4326", show_default=True, help="CRS of the bounds.")
@click.option(
    "--devices",
    required=True,
    metavar="N,M,...",
    help="Expected numbers of devices, separated by commas.",
)
@click.option(
    "--epsilon",
    "epsilons",
    required=True,
    metavar="E,F,...",
    help="Epsilons of a report, separated by commas; the central release has the same.",
)
@click.option(
    "--rounds", default="4", show_default=True, metavar="R,S,...", help="Numbers of rounds."
)
@click.option(
    "--density",
    "densities",
    default="uniform,clustered,coastal,places",
    show_default=True,
    metavar="A,B,...",
    help="Assumed distributions of people.",
)
@click.option(
    "--points",
    metavar="FILE",
    help="CSV file of PUBLIC points, columns lon and lat, in place of the assumed distributions.",
)
@click.option("--runs", type=INTEGER, default=2, show_default=True, help="Populations of each.")
@click.option("--seed", type=INTEGER, default=0, show_default=True, help="Seed of the populations.")
@TABLE_OUTPUT
def plan_campaigns(
    bounds: tuple[float, float, float, float],
    crs: str,
    devices: str,
    epsilons: str,
    rounds: str,
    densities: str,
    points: str | None,
    runs: int,
    seed: int,
    form: str | None,
    output: str | None,
    overwrite: bool,
) -> None:
    """Predict the errors of campaigns, and of a release with a curator. Reads no private data.

    The command draws populations from public assumptions, simulates campaigns of them by their
    exact laws, builds central releases of the same epsilon, and measures the errors of boxes. The
    factor is what it costs that the collector is not trusted. An error is the geometric mean of
    the mean relative errors of boxes of 0.01 to 10 % of the area.

    \b
    Examples:
      psd local plan --bounds 126.4 37 127.6 38 --devices 10000,1000000 --epsilon 1
      psd local plan --bounds 126.4 37 127.6 38 --devices 100000 --epsilon 1,2,4 --rounds 1,4 \\
          --density clustered -o plan.csv
    """  # noqa: D301
    from psd._apps import load_member
    from psd._util.atomic_write import check_targets
    from psd.apps.local.randomization import read_points
    from psd.space.domain import Domain

    plan = load_member("local.plan")  # of another app, which may be left out
    form = output_format(form, output, FORMATS)
    inputs = [points] if points else []
    check_targets(filter(None, [output]), overwrite=overwrite, inputs=inputs)
    with show_builds("simulating populations") as finished:
        result = plan(
            [parse_integer(text) for text in split_commas(devices)],
            domain=Domain(bounds=bounds, crs=crs),
            epsilon=split_commas(epsilons),
            rounds=[parse_integer(text) for text in split_commas(rounds)],
            density=split_commas(densities),
            points=read_points(points, "lon", "lat") if points else None,
            runs=runs,
            seed=seed,
            progress=finished,
        )
    if form != "table":
        write_table(result.table, form, output, overwrite=overwrite)
        return
    forms = {"devices": ",", "error": ".3f", "percent_off": ".2f", "central_error": ".4f"}
    forms["factor"] = ".1f"
    print_rows(
        [
            {name: f"{row[name]:{forms[name]}}" if name in forms else row[name] for name in row}
            for row in result.table.to_dict("records")
        ]
    )
    click.echo(
        "Percent off: mean error of boxes of 10 % of the area, in % of the devices.\n"
        "Factor: error of the campaign over that of a central release of the same epsilon."
    )


@click.group("local", cls=Group)
def command() -> None:
    """Collect places without a trusted curator: every device randomises its own answer.

    A campaign is a public file. Devices answer it with the program of `psd local client`, and send
    their reports to any server that appends lines to a file. The reports become a release, which
    `psd query` and the other commands read.

    \b
    Examples:
      psd local design -o c.json --bounds 126.4 37 127.6 38 --epsilon 1 --devices 100000
      psd local describe c.json
      psd local client -o device.py
      psd local collect c.json reports.jsonl --into parts
      psd local next c.json parts -o c2.json
      psd local aggregate c4.json parts4 -o seoul.psd.parquet
    """  # noqa: D301


command.add_command(design_campaign)
command.add_command(plan_campaigns)


@command.command("describe", cls=Command, short_help="Show what a campaign asks and costs.")
@_CAMPAIGN
@TABLE_OR_JSON
@click.option(
    "--shuffled",
    is_flag=True,
    help="State what reports are worth once a shuffler mixed those of each group.",
)
@click.option(
    "--delta",
    metavar="D",
    help="Probability with which shuffled reports may reveal more than their epsilon allows.",
)
@click.option("--tickets", is_flag=True, help="Reports have tickets, which exclude shuffling.")
def describe_campaign(
    campaign: str, form: str, shuffled: bool, delta: str | None, tickets: bool
) -> None:
    """Show epsilon, protocols and errors of a campaign, and what a false report can do.

    With --shuffled, the description adds the central epsilon of each group: what its reports are
    worth if a shuffler, which the collector cannot look into, passes them on in a random order,
    without sender and time.

    \b
    Examples:
      psd local describe c.json
      psd local describe c.json --shuffled --delta 1e-6
    """  # noqa: D301
    from psd.apps.local.description import describe

    description = describe(campaign, shuffled=shuffled, delta=delta, tickets=tickets)
    if form == "json":
        click.echo(json.dumps(asdict(description), indent=2))
        return
    often = "the limit for any number of reports of its first answer"
    if description.device_epsilon == description.epsilon:
        often = "it answers once, and asked again it sends the same report"
    print_facts(
        {
            "campaign": description.campaign,
            "title": description.title or "none",
            "epsilon of a report": description.epsilon,
            "epsilon of a device": f"{description.device_epsilon}; {often}",
            "expected devices": f"{description.devices:,}",
        }
    )
    click.echo()
    rows: list[dict[str, Any]] = [
        {
            "group": group.group,
            "share": f"{group.share:.1%}",
            "answers": group.answers,
            "protocol": f"{group.protocol} {group.settings}".strip(),
            "p": _rounded(group.p, 4),
            "q": _rounded(group.q, 4),
            "bytes": group.report_bytes,
            "error": _rounded(group.deviation, 1),
            "false_report": _rounded(group.false_report, 1),
        }
        for group in description.groups
    ]
    for row, group in zip(rows, description.groups, strict=True):
        if group.shuffled_epsilon is not None:  # rounded up
            row["shuffled_epsilon"] = f"{math.ceil(group.shuffled_epsilon * 1e4) / 1e4:.4f}"
    print_rows(rows)
    click.echo(
        "Error: standard deviation of the devices in a cell, option or word, from its group\n"
        "alone; of a number, the largest of one report.\n"
        "False report: devices by which one false report moves the estimate of a cell, option\n"
        "or word, at most; of a number, ranges by which it moves the sum."
    )
    if description.delta is not None:
        click.echo(
            f"Shuffled epsilon: of the central model at delta {description.delta:g}, if as many "
            "reports of\nthe group are shuffled as are expected, and only then."
        )


def _rounded(number: float | None, digits: int) -> float | str:
    """Rounded number, or a dash."""
    return "-" if number is None else round(number, digits)


@command.command("client", cls=Command, short_help="Write the program of the device.")
@click.option("-o", "--output", required=True, help="File to write.")
@click.option("--js", is_flag=True, help="The program for browsers, in JavaScript.")
@_OVERWRITE
def write_client(output: str, js: bool, overwrite: bool) -> None:
    """Write the program of the device: one Python file that needs the standard library alone.

    With --js it is one file of JavaScript for web pages, without dependencies. It gives the same
    reports, and has its store in the browser.

    \b
    Examples:
      psd local client -o device.py
      psd local client --js -o device.js
      python -I device.py new --store my.store --cap 2
      python -I device.py answer c.json --store my.store --at 126.97 37.56
    """  # noqa: D301
    from psd.apps.local.randomization import client

    client(output, js=js, overwrite=overwrite)
    use = "load it in a page, its first lines say what it offers"
    print_success(f"wrote {output}; {use if js else f'run it with python -I {output} --help'}")


@command.command("store", cls=Command, short_help="Create the store of a device.")
@click.argument("store", type=click.Path())
@click.option("--cap", required=True, help="Largest sum of epsilon of all campaigns.")
def create_store(store: str, cap: str) -> None:
    """Create the store of a device, which holds what it has spent and sent.

    A device without its store does not answer. Only its owner may read the file.

    \b
    Examples:
      psd local store my.store --cap 2
    """  # noqa: D301
    from psd.apps.local.randomization import create_store

    create_store(store, cap)
    print_success(f"wrote {store} (PRIVATE); without it the device does not answer")


@command.command("randomize", cls=Command, short_help="Answer a campaign, as a device does.")
@_CAMPAIGN
@click.argument("rows", required=False, type=click.Path(readable=False))
@click.option("--store", help="Store of the device that answers, or of the rows.")
@click.option("--at", nargs=2, type=float, metavar="LON LAT", help="Its point.")
@click.option("--answer", "text", help="Its number, option or word, in place of a point.")
@click.option("--nowhere", is_flag=True, help="Answer outside, or no answer.")
@click.option("--ticket", help="32 digits of hex, in place of the random nonce.")
@click.option("-o", "--output", help="File of the reports of a table.")
@click.option("--x", default="lon", show_default=True, help="Column of x.")
@click.option("--y", default="lat", show_default=True, help="Column of y.")
@click.option(
    "--value", default="value", show_default=True, help="Column of the numbers, options or words."
)
@_OVERWRITE
def randomize_answer(
    campaign: str,
    rows: str | None,
    store: str | None,
    at: tuple[float, float] | None,
    text: str | None,
    nowhere: bool,
    ticket: str | None,
    output: str | None,
    x: str,
    y: str,
    value: str,
    overwrite: bool,
) -> None:
    """Print the report of a device, or write a report for each row of a CSV file.

    A point outside the bounds, nan and inf have a report like any other. With ROWS, each row is
    a device. A campaign of several rounds needs a store of the rows, which is created in the first
    round: a row keeps its group and answers once. Without a store each run draws anew, and costs
    epsilon again.

    \b
    Examples:
      psd local randomize c.json --store my.store --at 126.97 37.56
      psd local randomize c.json visits.csv --store visits.store -o reports.jsonl
      psd local randomize numbers.json --store my.store --answer 37.5
    """  # noqa: D301
    from psd.apps.local.randomization import answer, randomize

    if rows is not None:
        if output is None or at or nowhere or ticket or text is not None:
            raise click.UsageError(
                "with ROWS, -o must be given, and not --at, --answer, --nowhere, --ticket"
            )
        columns = {"x": x, "y": y, "value": value}
        count = randomize(campaign, rows, output, **columns, store=store, overwrite=overwrite)
        print_success(f"wrote {output}: {count:,} reports")
        return
    if store is None or [at, text, nowhere or None].count(None) != 2 or output:
        raise click.UsageError("--store must be given, with one of --at, --answer and --nowhere")
    report = answer(campaign, store, *(at or (text or float("nan"), float("nan"))), ticket)
    if report is None:
        click.echo(
            "nothing to send: this device is not asked in this campaign, or answered before",
            err=True,
        )
    else:
        click.echo(report)


@command.command("collect", cls=Command, short_help="Collect lines of reports.")
@_CAMPAIGN
@click.argument("lines", nargs=-1, required=True, type=click.Path(readable=False, allow_dash=True))
@click.option("--into", required=True, metavar="FOLDER", help="Folder of the parts.")
@click.option(
    "--tickets",
    metavar="FILE",
    help="SHA-256 hashes of tickets, a line each; every ticket counts once, and other reports do "
    "not count.",
)
@click.option(
    "--rappor-csv",
    is_flag=True,
    help="Files are CSV of clients of google/rappor: columns cohort, and irr or bits.",
)
def collect_lines(
    campaign: str, lines: tuple[str, ...], into: str, tickets: str | None, rappor_csv: bool
) -> None:
    """Read lines of reports from files, or from standard input (-), into a folder of parts.

    Lines that are not a report of this campaign are counted and not kept. A report counts once,
    also if its line is collected again. With --rappor-csv, the campaign asks for words and has the
    bits, hashes, cohorts, flips, p and q of the clients; a file counts once.

    \b
    Examples:
      psd local collect c.json reports.jsonl --into parts
      psd local collect words.json case_reports.csv --into parts --rappor-csv
      tail -n +1 -f reports.jsonl | psd local collect c.json - --into parts
    """  # noqa: D301
    from psd.apps.local.collection import collect

    collected = collect(campaign, lines, into, tickets=tickets, rappor_csv=rappor_csv)
    click.echo(f"collected {collected.reports:,} reports into {into}")
    for kind, count in collected.refused.items():
        if count:
            click.echo(f"refused {count:,} lines: {_KINDS[kind]}", err=True)


_KINDS = {
    "malformed": "not a report in its one spelling",
    "campaign": "of another campaign",
    "group": "of a group that is not asked",
    "answer": "with an answer that the protocol does not have",
    "ticket": "with a ticket that is not listed",
    "repeated": "with a nonce that was there before",
}


@command.command("next", cls=Command, short_help="Make the campaign of the next round.")
@_CAMPAIGN
@click.argument("folder", type=click.Path(readable=False))
@click.option("-o", "--output", required=True, help="File of the next campaign.")
@_OVERWRITE
def make_next(campaign: str, folder: str, output: str, overwrite: bool) -> None:
    """Make the campaign of the next round from the parts of this one.

    Cells with many devices are cut; the others are asked again. The file states the counts of all
    earlier rounds, so the last one is enough for `psd local aggregate`.

    \b
    Examples:
      psd local next c.json parts -o c2.json
    """  # noqa: D301
    from psd._util.atomic_write import check_free
    from psd.apps.local.campaigns import write_campaign
    from psd.apps.local.rounds import next_round

    check_free(output, overwrite=overwrite)
    following = next_round(campaign, folder)
    write_campaign(following, output, overwrite=overwrite)
    number = len(following.earlier) + 1
    cells = max(len(g.partition.cells) for g in following.groups if g.partition is not None)
    click.echo(
        f"wrote {output}; campaign {following.digest}, round {number} of {len(following.groups)}, "
        f"{cells:,} cells"
    )


@command.command("aggregate", cls=Command, short_help="Make the release or table of a campaign.")
@_CAMPAIGN
@click.argument("folder", type=click.Path(readable=False))
@click.option("-o", "--output", required=True, help="File of the release, or CSV file of a table.")
@click.option(
    "--words",
    metavar="FILE",
    help="Words that devices may have, a line each, if it asks for words.",
)
@click.option(
    "--level",
    type=NUMBER,
    default=0.05,
    show_default=True,
    help="Probability that any word is called present that no device has.",
)
@_OVERWRITE
def aggregate_reports(
    campaign: str, folder: str, output: str, words: str | None, level: float, overwrite: bool
) -> None:
    """Make the release of a campaign from the parts in a folder.

    Of several rounds, give the campaign and the parts of the last one; the campaign states the
    counts of the others. Between two rounds it gives the release of the rounds so far. A campaign
    of options or numbers gives a table with errors and intervals of 95 %. A campaign of words
    gives a table of the words in a public list: which of them are there, and how many devices
    have them.

    \b
    Examples:
      psd local aggregate c.json parts -o seoul.psd.parquet
      psd local aggregate words.json parts -o words.csv --words candidates.txt
    """  # noqa: D301
    from psd._util.atomic_write import check_free, write_file
    from psd.apps.local.aggregation import aggregate
    from psd.apps.local.answer_tables import encode_table, read_list, tabulate, tabulate_words
    from psd.apps.local.campaigns import load_campaign
    from psd.apps.local.device import PLACES

    check_free(output, overwrite=overwrite)
    question = load_campaign(campaign).question
    if (question == "words") != (words is not None):
        raise click.UsageError("--words must be given for a campaign of words, and for no other")
    if words is not None:
        found = tabulate_words(campaign, folder, read_list(words, "words"), level=level)
        write_file(output, encode_table(found), overwrite=overwrite)
        present = f"{sum(row.present for row in found):,} present at level {level:g}"
        print_success(f"wrote {output}: {len(found):,} words, {present}")
        return
    if question not in PLACES:
        rows = tabulate(campaign, folder)
        write_file(output, encode_table(rows), overwrite=overwrite)
        print_success(f"wrote {output}: {len(rows):,} rows")
        return
    release = aggregate(campaign, folder)
    release.save(output, overwrite=overwrite)
    reports = release.index.record.local.reports if release.index.record.local else 0
    print_success(f"wrote {output}: {reports:,} reports, {release.record.guarantee_text}")


@command.command("protocols", cls=Command, short_help="List the protocols.")
def list_protocols() -> None:
    """List the protocols of `psd local design --protocol`.

    \b
    Examples:
      psd local protocols
    """  # noqa: D301
    from psd.apps.local.protocols import REFUSED, protocol_class
    from psd.apps.local.protocols import list_protocols as names_of_protocols

    names = list(names_of_protocols())
    about = [(protocol_class(name).__doc__ or "").splitlines()[0] for name in names]
    uses = [getattr(protocol_class(name), "use", "places, options") for name in names]
    print_columns(
        [
            Column(heading="protocol", values=names, left=True),
            Column(heading="for", values=uses, left=True),
            Column(heading="report", values=about, left=True, folds=True),
        ]
    )
    click.echo(
        f"{REFUSED} is refused: the coin that says yes on every head never says no for a yes, so "
        "its epsilon is infinite."
    )


COMMANDS = {"local": command}
