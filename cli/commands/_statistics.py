"""psd query --top, --quantiles and --difference: their options, and the tables that they give."""

from __future__ import annotations

from typing import Any

import click

from ..options.command import INTEGER, chain_options, options_of, refuse_others
from ..options.regions import named_regions, read_regions
from ..options.time_slices import compared_at, is_cube, release_or_series_at, release_when
from ..output.tables import (
    FORMATS,
    output_format,
    state_source,
    state_windows,
    windows_named,
    write_table,
)
from ..output.terminal import print_warning, show_stage

_COMMON = {"release", "when", "categories", "form", "output", "overwrite", "max_nodes"}
SHAPES = {"box", "boxes", "polygons", "polygons_crs", "repair"}
"""Parameters of boxes and polygons."""

_NAMES = ("all_regions", "region", "table", "table_id", "level")

STATISTICS = {
    "top": {"k", "by", "size", "draws", "seed", "level", *SHAPES},
    "quantiles": {"quantiles", "classes", "weight", "size", "draws", "seed", "confidence"},
    "difference": {"difference", "ratio", "other_slice", "confidence", *SHAPES, *_NAMES},
}
"""Parameters that each takes, beside those of every query."""

_OWN = {
    "top": {"by"},
    "quantiles": {"classes", "weight"},
    "top or --quantiles": {"size", "draws", "seed"},
    "difference": {"ratio", "other_slice"},
}
"""Parameters that have no meaning without one of them."""

TITLES = ("Top cells", "Class breaks", "Top cells and class breaks", "Difference")
_top, _breaks, _draws, _difference = map(options_of, TITLES)

statistic_options = chain_options(
    _top(
        "--top",
        "k",
        type=INTEGER,
        metavar="N",
        help="Rank the cells, or the given boxes, polygons or regions of --level, and list the "
        "first N, each with the probability that it is among them.",
    ),
    _top(
        "--by", type=click.Choice(["count", "density"]), help="Quantity to rank by; by default "
        "count.",
    ),
    _breaks("--quantiles", is_flag=True, help="Give class breaks of density for a heat map."),
    _breaks("--classes", type=INTEGER, help="Number of classes; 5 by default."),
    _breaks(
        "--weight",
        type=click.Choice(["area", "people"]),
        help="Whether classes have equal areas, the default, or equal numbers of people.",
    ),
    _draws(
        "--size",
        nargs=2,
        type=INTEGER,
        metavar="C R",
        help="Columns and rows of a raster, whose cells are ranked in place of those of the "
        "release, or classified (64 64 by default).",
    ),
    _draws(
        "--draws",
        type=INTEGER,
        help="Number of Monte Carlo draws; 2000 by default with --top, 100 with --quantiles.",
    ),
    _draws("--seed", type=INTEGER, help="Seed of the draws; 0 by default."),
    _difference(
        "--difference",
        type=click.Path(dir_okay=False),
        metavar="OTHER",
        help="Subtract the counts in the release OTHER from those in RELEASE.",
    ),
    _difference("--ratio", is_flag=True, help="Divide the counts instead of subtracting them."),
    _difference(
        "--other-slice", metavar="NAME", help="Time slice of OTHER, if OTHER is a series; or a "
        "window of a cube, which is asked in the window of --when by default.",
    ),
)  # fmt: skip


def refuse_strange(kind: str) -> None:
    """Refuse options that have no meaning for a kind of query."""
    if kind in STATISTICS:
        refuse_others(STATISTICS[kind] | _COMMON, f"with --{kind}")
        return
    names = {str(param.name) for param in click.get_current_context().command.params}
    for owner, own in _OWN.items():
        refuse_others(names - own, f"without --{owner}")


def read_areas(options: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `Release.query` for what is asked about, from exactly one of the options."""
    named = named_regions(**{name: options[name] for name in _NAMES})
    shapes = {name: options[name] for name in SHAPES}
    if named is None:
        return {"areas": read_regions(**shapes)}
    if any(shapes.values()):
        raise click.UsageError(
            "--all-regions, --region and --table must be given without --box, --boxes and "
            "--polygons; named regions are answered alone"
        )
    return named


def write_statistic(
    kind: str,
    release: str,
    window: tuple[tuple[str, ...], tuple[str, ...]],
    form: str | None,
    output: str | None,
    *,
    overwrite: bool,
    options: dict[str, Any],
) -> None:
    """Show or write the table of one of `STATISTICS`; window: of ``--when`` and ``--category``."""
    from psd._util.atomic_write import check_free

    when, categories = window

    if form not in (None, *FORMATS):
        raise click.UsageError(f"--format must be table, csv or json with --{kind}, got {form}")
    form = output_format(form, output, FORMATS)
    shapes = {name: options[name] for name in SHAPES}
    if kind == "top" and sum(map(bool, (*shapes.values(), options["size"], options["level"]))) > 1:
        raise click.UsageError(
            "at most one of --size, --level, --box, --boxes and --polygons must be given with --top"
        )
    if output:
        files = (options["difference"], *(options[x] for x in ("boxes", "polygons", "table")))
        check_free(output, overwrite=overwrite, inputs=(release, *filter(None, files)))
    asked = read_areas(options) if kind == "difference" else {}
    regions = read_regions(**shapes) if kind == "top" and any(shapes.values()) else None
    # Defaults are those of the library.
    read = {*SHAPES, *(_NAMES if kind == "difference" else ())}
    stated = {name: options[name] for name in STATISTICS[kind] - read - {"ratio", kind}}
    stated = {name: value for name, value in stated.items() if value is not None}
    other_slice = stated.pop("other_slice", None)
    with show_stage() as stage:
        stage("reading")
        chosen: dict[str, Any] = {}
        if categories:  # a window of time alone is looked at as a release
            for name, given in (("--when", when), ("--category", categories)):
                if len(given) > 1:
                    raise click.UsageError(
                        f"{name} must be given once for this question, got {len(given):,} times"
                    )
            loaded = release_or_series_at(release, None)
            chosen = {"when": when[0] if when else None, "category": categories[0]}
        else:
            loaded = release_when(release, when)
        sources = [loaded.record.source]
        if kind == "difference":
            other = compared_at(options["difference"], other_slice, "--other-slice", categories)
            sources.append(other.record.source)
            stage("answering")
            if when and is_cube(other) and not categories:
                other = other[when[0]]
            stated |= {"difference": other, "ratio": options["ratio"]}
            answers = loaded.query(**asked, **chosen, **stated)
        elif kind == "quantiles":
            stage("drawing")
            answers = loaded.query(quantiles=True, **chosen, **stated)
        else:
            level = options["level"]
            if level is not None and not loaded.levels:
                raise click.UsageError(
                    "--level must be used with a release that counts regions by name, got "
                    f"{level!r} with a release without any"
                )
            stage("drawing")
            answers = loaded.query(regions, top=stated.pop("k"), **chosen, **stated)
    if kind == "difference":
        for note in answers.notes:  # what they leave out
            print_warning(note)
    table = answers.table
    state_source(table, *sources)
    named = windows_named(form, when, categories)
    if other_slice is not None and form != "table":
        named["other_slice"] = other_slice
    state_windows(table, named)
    write_table(table, form, output, overwrite=overwrite)
