"""The manual page `psd.1`: all commands and options, from click, in the macros of man."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from psd.version import __version__
from psd_cli.main import cli

from .command_line import OF_ALL, context_of

PURPOSE = "publish how many people are where, with differential privacy"


def page() -> str:
    """Give the text of the page."""
    lines = [
        f'.TH PSD 1 "" "psd {__version__}" "User commands"',
        ".SH NAME",
        rf"psd \- {PURPOSE}",
        ".SH SYNOPSIS",
        r".B psd",
        r"[\fIOPTIONS\fR] \fICOMMAND\fR [\fIARGUMENTS\fR]",
        ".SH DESCRIPTION",
        *_description(cli.help or ""),
        ".SH OPTIONS",
        *_options(cli, context_of(cli, "psd")),
        ".SH COMMANDS",
        *_commands(cli, "psd"),
    ]
    return "\n".join(lines) + "\n"


def _commands(group: click.Group, path: str) -> Iterator[str]:
    """Each command below a group: what is written, what it does, its options."""
    for name in group.list_commands(context_of(group, path)):
        command = group.get_command(context_of(group, path), name)
        assert command is not None
        context = context_of(command, f"{path} {name}")
        usage = " ".join(command.get_usage(context).removeprefix("Usage: ").split())
        yield f'.SS "{_text(usage)}"'
        yield from _description(command.help or "")
        yield from _options(command, context)
        if isinstance(command, click.Group):
            yield from _commands(command, f"{path} {name}")


def _description(text: str) -> Iterator[str]:
    """Paragraphs of a help text; one that click is not to wrap keeps its lines."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        if paragraph.startswith("\b\n"):
            yield from (".PP", ".nf", *map(_text, paragraph.splitlines()[1:]), ".fi")
        else:
            yield from (".PP", _text(" ".join(paragraph.split())))


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    """Options with their help, those of all commands once."""
    for param in command.get_params(context):
        record = param.get_help_record(context)
        if record is not None and (command is cli or param.name not in OF_ALL):
            yield from (".TP", rf"\fB{_text(record[0])}\fR", _text(" ".join(record[1].split())))


def _text(text: str) -> str:
    """Text in which nothing is a request or an escape of roff."""
    return re.sub(r"^([.'])", r"\\&\1", text.replace("\\", r"\e").replace("-", r"\-"))
