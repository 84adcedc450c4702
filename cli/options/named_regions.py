"""``--regions``: files or kinds of regions that a release counts by name."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from psd._util.suggestions import check_names

from ..options.command import Decorator, options_of

__all__ = ["regions_option"]

_option = options_of("Area")

_LISTS = ("file", "id", "parent")

_HELP = (
    "Public regions that are counted by name; records in none of them are dropped. May be "
    "repeated. FILE: polygons of the lowest regions, or a file of each level, top first; "
    "FILE:layer=NAME where it has several layers. "
    "id=COLUMN: ids of the regions; one for each file, or for all. parent=COLUMN: ids of the "
    "level above, the nearest first. gaps=refuse|elsewhere|outside: what an area in no region "
    "is, an error, one more region, or left out. tolerance=LENGTH: width of gaps and overlaps "
    "that are accepted. repair=yes: invalid polygons are repaired. Or cells instead of files: "
    "grid-cells=1km,10km, h3=5..9, tiles=8..14. {method}"
)


def regions_option(method: str, *more: str) -> Decorator:
    """``--regions FILE`` and ``--regions KEY=VALUE``; the parameter is a table of a recipe.

    Parameters
    ----------
    method : str
        What the help says last, such as of ``--method``.
    *more : str
        Keys that are of this command alone.
    """
    return _option(
        "--regions",
        multiple=True,
        metavar="FILE|KEY=VALUE",
        callback=partial(_parse, more),
        help=_HELP.format(method=method),
    )


def _parse(
    more: tuple[str, ...], ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]
) -> dict[str, Any] | None:
    """Table of the keys; None without the option."""
    from psd.publish.region_text import region_keys

    table: dict[str, Any] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign or key.endswith(":layer"):
            key, value = "file", text
        if not value:
            raise click.UsageError(
                f"--regions must be FILE or KEY=VALUE, such as id=ward, got {text!r}", ctx
            )
        check_names("key of --regions", [key], (*region_keys(), *more))
        if key in _LISTS:
            table.setdefault(key, []).append(value)
        elif key in table:
            raise click.UsageError(f"--regions {key} must be given once", ctx)
        else:
            table[key] = value
    return table or None
