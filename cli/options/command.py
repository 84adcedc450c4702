"""Commands whose options stand once each, in titled groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

__all__ = ["Command", "GroupedOption", "options_of"]

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class GroupedOption(click.Option):
    """An option under a title of `psd COMMAND --help`."""

    def __init__(self, *names: Any, group: str, **attributes: Any) -> None:
        super().__init__(*names, **attributes)
        self.group = group


def options_of(group: str) -> Callable[..., Decorator]:
    """Maker of options that stand under a title; otherwise as `click.option`."""

    def option(*names: str, **attributes: Any) -> Decorator:
        return click.option(*names, cls=GroupedOption, group=group, **attributes)

    return option


class Command(click.Command):
    """A command that refuses a repeated option, and lists its options by group.

    Click alone would take the last of several values without a word.
    """

    def __init__(self, *args: Any, **named: Any) -> None:
        # Click keeps the names of the first context that asks, which may have no program above it.
        own = named.get("context_settings") or {}
        named["context_settings"] = {"help_option_names": ["-h", "--help"], **own}
        super().__init__(*args, **named)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse a repeated option, unless it may be repeated."""
        present = self.make_parser(ctx).parse_args(list(args))[2]
        for param in present:
            once = isinstance(param, click.Option) and not (param.multiple or param.is_flag)
            if once and present.count(param) > 1:
                raise click.UsageError(
                    f"{param.opts[-1]} is given {present.count(param)} times", ctx
                )
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, those of a group under its title."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                groups.setdefault(getattr(param, "group", "Options"), []).append(record)
        for title in sorted(groups, key=lambda title: title == "Options"):
            with formatter.section(title):
                formatter.write_dl(groups[title])
