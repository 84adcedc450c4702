"""Commands as forms: what their options take, for programs that show fields in place of words."""

from __future__ import annotations

import inspect
import re
from typing import Any

import click

from ..commands import find_command
from ..commands._statistics import TITLES
from ..options.command import BoundsOption, GroupedOption

__all__ = ["COMMANDS", "command_form"]

COMMANDS = {
    "build": ("Build a release", False),
    "query": ("Count in polygons or regions of a release", False),
    "export": ("Export the cells of a release", True),
    "plan": ("Plan: predict errors before data is read", False),
}
"""Title of each command that has a form, and whether it asks if its file is opened as a layer."""

# PRIVATE numbers on the screen, which the log of a program would keep; --details is of the screen;
# --format follows the file; the limit of nodes is for senders that are not trusted.
_LEFT_OUT = {"report_private", "details", "form", "max_nodes", "help_all", "site"}

_RELEASES = "Releases (*.psd.parquet)"
_WRITTEN = {
    ("build", "output"): _RELEASES,
    ("build", "keep_tally"): "Tallies (*.tally)",
    ("build", "save_recipe"): "Recipes (*.toml)",
    ("export", "output"): "Cells (*.gpkg *.fgb *.geojson *.tif *.csv *.xlsx *.parquet *.pmtiles)",
    ("plan", "output"): "Tables (*.csv *.json)",
    ("plan", "plot"): "Pictures and pages (*.png *.svg *.html)",
}
_FILES = {"release", "boxes", "ledger", "boundary", "covariate"}
_CRS = {"crs", "polygons_crs"}

# Fields that are open at once; the others are under "Advanced". Those of a build are its everyday
# options.
_FIRST = {
    "query": {"polygons", "all_regions", "level"},
    "export": {"level", "crs"},
    "plan": {"area", "bounds", "count", "epsilon"},
}


def command_form(name: str) -> dict[str, Any]:
    """Form of a command of `COMMANDS`: name, title, help, and fields in the order of the help."""
    command = find_command(name)
    title, loads = COMMANDS[name]
    # Without the examples, which are command lines.
    text = inspect.cleandoc(command.help or "").partition("\b\n")[0]
    fields = [
        _field(name, each)
        for each in command.params
        # A form of `psd query` writes a layer, and statistics are tables.
        if each.name not in _LEFT_OUT and getattr(each, "group", "") not in TITLES
    ]
    return {
        "command": name,
        "title": title,
        "text": re.sub(r"(?<!\n)\n(?!\n)", " ", text).strip(),
        "loads": loads,
        "fields": sorted(fields, key=lambda field: field["advanced"]),
    }


def _field(command: str, parameter: click.Parameter) -> dict[str, Any]:
    """Field of an option or an argument."""
    name, option = str(parameter.name), isinstance(parameter, click.Option)
    if name == "releases":  # several are for folders, which no form writes
        name = "release"
    kind, default = _kind(command, name, parameter), parameter.default
    if isinstance(default, bool) or not isinstance(default, str | int | float):
        default = None
    required = parameter.required or (command, name) == ("query", "output")
    # Name of a field: the words of the option, and what one value is.
    words = (
        max(parameter.opts, key=len).lstrip("-") if isinstance(parameter, click.Option) else name
    ).replace("-", " ")  # fmt: skip
    group = parameter.group if isinstance(parameter, GroupedOption) else ""
    form = str(parameter.metavar or "") if isinstance(parameter, click.Option) else ""
    lines = ", one on each line" if parameter.multiple else ""
    note = f" ({form}{lines})" if form and not isinstance(parameter, BoundsOption) else ""
    label = f"{group}: {words}{note}" if group else f"{words[0].upper()}{words[1:]}{note}"
    # Whether the field is open at once.
    if command in _FIRST:
        is_first = parameter.name in _FIRST[command]
    else:
        is_first = isinstance(parameter, GroupedOption) and parameter.is_everyday
    return {
        "name": name,
        "option": max(parameter.opts, key=len) if option else "",
        "kind": kind,
        "label": label,
        "help": " ".join(str(getattr(parameter, "help", "") or "").split()),
        "choices": list(parameter.type.choices) if isinstance(parameter.type, click.Choice) else [],
        "default": default,
        "required": required,
        "multiple": parameter.multiple,
        "size": max(parameter.nargs, 1),
        "files": _WRITTEN.get((command, name), ""),
        "advanced": not (required or not option or is_first),
    }


def _kind(command: str, name: str, parameter: click.Parameter) -> str:
    """Kind of a field of a name."""
    if (command, name) == ("query", "output"):
        return "written-layer"
    if (command, name) in _WRITTEN:
        return "written-file"
    if name in _FILES:
        return "file"
    if isinstance(parameter, BoundsOption):
        return "bounds"
    if name in ("inputs", "polygons"):
        return "files" if name == "inputs" else name
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return "flag"
    if isinstance(parameter.type, click.Choice):
        return "choice"
    if name in _CRS:
        return "crs"
    is_single = parameter.nargs == 1 and parameter.type.name in ("integer", "number")
    return parameter.type.name if is_single else "text"
