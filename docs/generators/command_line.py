"""The pages of all commands and options, from click."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from psd_cli.main import SECTIONS, cli

OF_ALL = ("quiet", "verbose", "help")
"""Options of every command, which stand below `psd` alone."""

HEAD = """\
# Command line

`psd COMMAND --help` prints what the page of a command says, `--help-all` where it has many options,
and so does the manual page, by `man docs/reference/psd.1`. `python -m psd` runs the
command, too. Every command has the options `--quiet`, `--verbose` and `--help` of `psd` itself.
`psd info --versions` and `psd info --completion SHELL` need no release. [Exit codes](exit-codes.md)
are listed separately; [commands that moved](moved.md#commands) are answered by their new names.

This page is generated from the commands by `python docs/generate.py`.
"""


def page() -> str:
    """Give the text of the page that leads to those of the commands."""
    parts = [HEAD]
    for section, commands in SECTIONS.items():
        parts.append(f"\n## {section}\n")
        parts += [
            f"- [`psd {name}`](commands/{name}.md): {line}" for name, line in commands.items()
        ]
    parts.append("\n## Options of psd itself\n\n" + _options(cli, context_of(cli, "psd")))
    return "\n".join(parts).rstrip() + "\n"


def command_page(name: str) -> str:
    """Give the text of the page of a command, and of the commands below it."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return "\n".join(_command(command, f"psd {name}", 1)).strip() + "\n"


COMMANDS = [name for commands in SECTIONS.values() for name in commands]


def _command(command: click.Command, name: str, depth: int) -> Iterator[str]:
    """Text of a command, and of the commands below it."""
    context = context_of(command, name)
    yield f"\n{'#' * depth} {name}\n"
    yield f"```text\n{' '.join(command.get_usage(context).split())}\n```\n"
    yield _description(command.help or "")
    yield _options(command, context)
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            below = command.get_command(context, child)
            assert below is not None
            yield from _command(below, f"{name} {child}", depth + 1)


def context_of(command: click.Command, name: str) -> click.Context:
    """Context in which a command describes itself under a name."""
    return click.Context(command, info_name=name, **command.context_settings)


def _description(text: str) -> str:
    """Paragraphs of a help text; one that click is not to wrap is a block of code."""
    parts: list[str] = []
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        if paragraph.startswith("\b\n  "):  # goes on with the block above
            parts[-1] = parts[-1].removesuffix("```\n") + f"\n{_code(paragraph)}\n```\n"
        elif paragraph.startswith("\b\n"):
            title = paragraph.splitlines()[1]
            code = _code(paragraph.replace(f"{title}\n", "", 1))
            language = "toml" if code.startswith("[") else "sh"
            parts.append(f"{title}\n\n```{language}\n{code}\n```\n")
        else:
            parts.append(_escaped(" ".join(paragraph.split())) + "\n")
    return "\n".join(parts)


def _code(paragraph: str) -> str:
    """Lines of a paragraph that click is not to wrap, without its mark and their indent."""
    return "\n".join(line.removeprefix("  ") for line in paragraph.splitlines()[1:])


def _options(command: click.Command, context: click.Context) -> str:
    """Tables of options, one for each group; those without a group come last."""
    groups: dict[str, list[str]] = {}
    for param in command.get_params(context):
        record = param.get_help_record(context)
        if record is not None and (command is cli or param.name not in OF_ALL):
            names, text = record
            row = f"| `{cell_text(names)}` | {cell_text(_escaped(text))} |"
            groups.setdefault(getattr(param, "group", "Options"), []).append(row)
    return "\n".join(
        "\n".join([f"| {title} | |", "|---|---|", *groups[title], ""])
        for title in sorted(groups, key=lambda title: title == "Options")
    )


def cell_text(text: str) -> str:
    """Text that ends no cell of a table."""
    return text.replace("|", "\\|")


def _escaped(text: str) -> str:
    """Text in which stars and angle brackets are no markup."""
    return re.sub(r"([*<>])", r"\\\1", text)
