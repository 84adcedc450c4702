"""Commands with options in titled groups, each at most once."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from psd._util.closest_name import check_names
from psd.errors import PsdError

from ..moved import refuse_moved
from ..options.values import parse_number, rename_arguments
from ..output.terminal import TALK

__all__ = [
    "BoundsOption",
    "Command",
    "Decorator",
    "Group",
    "GroupedOption",
    "chain_options",
    "in_options",
    "options_of",
    "refuse_others",
]

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

_EDGES = 4

# Names in messages of classes that the command line makes, and the fields that they have here.
_OTHER_NAMES = {
    "ids": "region_id",
    "parents": "region_parent",
    "populations": "population",
    "insecure_seed": "seed",
}


class GroupedOption(click.Option):
    """An option under a title of `psd COMMAND --help`."""

    def __init__(
        self, *names: Any, group: str, is_everyday: bool = True, **attributes: Any
    ) -> None:
        super().__init__(*names, **attributes)
        self.group = group
        self.is_everyday = is_everyday


class BoundsOption(GroupedOption):
    """Four numbers, or one word instead of them."""

    def __init__(self, *names: Any, **attributes: Any) -> None:
        attributes |= {"nargs": _EDGES, "type": str, "metavar": "W S E N"}
        super().__init__(*names, **attributes)

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Numbers, or the word."""
        texts = super().process_value(ctx, value)
        if not isinstance(texts, tuple):
            return texts
        return texts[0] if texts[1:] == ("",) * (_EDGES - 1) else tuple(map(parse_number, texts))


def options_of(group: str) -> Callable[..., Decorator]:
    """Variant of `click.option` for options under a title of `--help`."""

    def option(*names: str, **attributes: Any) -> Decorator:
        return click.option(*names, cls=GroupedOption, group=group, **attributes)

    return option


def chain_options(*options: Decorator) -> Decorator:
    """Several options as one decorator, in their order."""

    def apply_options(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return apply_options


def refuse_others(allowed: Container[str], why: str) -> None:
    """Refuse options of the command line whose parameters are not allowed.

    Raises
    ------
    UsageError
        For the first of them; the reason ends the sentence.
    """
    ctx = click.get_current_context()
    for param in ctx.command.params:
        name = str(param.name)
        is_given = ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if isinstance(param, click.Option) and is_given and name not in allowed:
            raise click.UsageError(f"{_longest(param)} must be left out {why}", ctx)


def _longest(param: click.Parameter) -> str:
    """Spelling of an option that says most."""
    return max(param.opts, key=len)


def _set_talk(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    """Store how much the command says."""
    if value and ctx.meta.setdefault(TALK, param.name) != param.name:
        raise click.UsageError("at most one of --quiet and --verbose must be given", ctx)


_TALK_OPTIONS = [
    click.Option(names, is_flag=True, expose_value=False, callback=_set_talk, help=text)
    for names, text in (
        (["-q", "--quiet"], "Print no progress and no line of success."),
        (["-v", "--verbose"], "Print the seconds of each stage."),
    )
]
"""Options of every command, and of `psd` itself."""


class Command(click.Command):
    """A command that refuses repeated options, lists options by group and maps argument names.

    Click alone would silently take the last of several values. Errors of the library name
    arguments; `invoke` replaces them by the options of the command.

    Options that are not everyday ones are shown by ``--help-all``.
    """

    def __init__(self, *args: Any, **named: Any) -> None:
        # Click caches the names from the first context, which may have no parent program.
        options = named.get("context_settings") or {}
        named["context_settings"] = {"help_option_names": ["-h", "--help"], **options}
        super().__init__(*args, **named)
        self.shows_all = False
        if any(not getattr(param, "is_everyday", True) for param in self.params):
            self.params.append(
                click.Option(
                    ["--help-all"],
                    is_flag=True,
                    is_eager=True,
                    expose_value=False,
                    callback=self._show_all,
                    help="Show all options and exit.",
                )
            )

    def _show_all(self, ctx: click.Context, param: click.Parameter, value: bool) -> None:
        """Print the help with all options."""
        if value:
            self.shows_all = True
            click.echo(ctx.get_help())
            ctx.exit()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse a repeated option, unless it may be repeated."""
        args = self.plain_args(ctx, args)
        present = self.make_parser(ctx).parse_args(list(args))[2]
        for param in present:
            once = isinstance(param, click.Option) and not (param.multiple or param.is_flag)
            times = present.count(param)
            if once and times > 1:
                raise click.UsageError(
                    f"{param.opts[-1]} must be given once, got {times} times", ctx
                )
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Options of the command, and those of all commands."""
        return [*super().get_params(ctx), *_TALK_OPTIONS]

    def plain_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Arguments as the parser takes them; an old option is answered by the new one."""
        refuse_replaced(self, ctx, args)
        return self._with_words(list(args))

    def _with_words(self, args: list[str]) -> list[str]:
        """Arguments with a word for four numbers padded to four arguments."""
        names = {
            name for param in self.params if isinstance(param, BoundsOption) for name in param.opts
        }
        for at in range(len(args) - 1, -1, -1):
            name, sign, word = args[at].partition("=")
            if name in names and sign:
                args[at : at + 1] = [name, word, *[""] * (_EDGES - 1)]
            elif name in names and at + 1 < len(args) and not _is_number(args[at + 1]):
                args[at + 2 : at + 2] = [""] * (_EDGES - 1)
        return args

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _rename_errors(self.options_by_argument):
            return super().invoke(ctx)

    def options_by_argument(self) -> dict[str, str]:
        """Option of each argument of the library."""
        spellings = {
            str(param.name): _longest(param)
            for param in self.params
            if isinstance(param, click.Option)
        }
        # An argument has the name of the variable or of the option, such as methods of --methods.
        options = {name.lstrip("-").replace("-", "_"): name for name in spellings.values()}
        options |= spellings
        for name, field in _OTHER_NAMES.items():
            if field in options:
                options.setdefault(name, options[field])
        methods = {} if "--set" not in spellings.values() else _method_parameters()
        regions = {"ids": "--region", "id": "--table-id"} if "all_regions" in options else {}
        return {"keep_tally": "--keep-tally", **methods, **options, **regions}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, those of a group under its title."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            is_shown = self.shows_all or getattr(param, "is_everyday", True)
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            record = record if is_shown else None
            if record is not None:
                groups.setdefault(getattr(param, "group", "Options"), []).append(record)
        for title in sorted(groups, key=lambda title: title == "Options"):
            with formatter.section(title):
                formatter.write_dl(groups[title])


def refuse_replaced(command: click.Command, ctx: click.Context, args: list[str]) -> None:
    """Answer an option of before version 0.2.0, or of `psd build` alone, by a sentence.

    Raises
    ------
    UsageError
    """
    from ..moved import OPTIONS

    names = {name for param in command.params for name in param.opts}
    for at, arg in enumerate(args):
        option, sign, value = arg.partition("=")
        if not option.startswith("--"):
            continue
        value = value if sign else " ".join(args[at + 1 : at + 2])
        for pattern, new in OPTIONS.items():
            old, _, form = pattern.partition(" ")
            if (
                old == option
                and re.match(form, value)
                and (new.split()[0] in names or new[0] != "-")
            ):
                words = f"{old} {value[:40]}" if form else old
                raise click.UsageError(f"{words} is now {new}", ctx)
        if option == "--engine" and option not in names and "--x" in names:
            raise click.UsageError(
                "--engine must be left out; psd build alone counts on a cluster; write the records "
                "to Parquet there, and name these files",
                ctx,
            )


class Group(click.Group):
    """Commands under a name; without one of them, it prints its help.

    An old word is answered by the new one, and an unknown one by the closest that exists.
    """

    def __init__(self, *args: Any, **named: Any) -> None:
        named["context_settings"] = {"help_option_names": ["-h", "--help"]}
        named["invoke_without_command"] = True
        super().__init__(*args, **named)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Options of the group, and those of all commands."""
        return [*super().get_params(ctx), *_TALK_OPTIONS]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options before the command."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption:
            refuse_moved(f"{ctx.info_name} RELEASE")
            raise

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Command of the first word; see the class for words that are none."""
        word, path = args[0], str(ctx.info_name) if ctx.parent else ""
        if not word.startswith("-") and self.get_command(ctx, word) is None:
            refuse_moved(f"{path} {word}".strip())
            if any(mark in word for mark in "./\\"):  # a file
                refuse_moved(f"{path} RELEASE")
            check_names(
                "command",
                [f"{path} {word}".strip()],
                [f"{path} {name}".strip() for name in self.list_commands(ctx)],
            )
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, or print the help."""
        result = super().invoke(ctx)
        if ctx.invoked_subcommand is None:
            click.echo(ctx.get_help())
        return result


def _is_number(text: str) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _method_parameters() -> dict[str, str]:
    """``--set KEY`` of the parameters of all methods."""
    from dataclasses import fields

    from psd.decompositions import method_class, methods

    names: set[str] = set()
    for method in methods():
        with suppress(PsdError):  # a method of another package that cannot be loaded
            names |= {field.name for field in fields(method_class(method))}
    return {name: f"--set {name}" for name in names}


def in_options(text: str) -> str:
    """Text of the library with options of the command that runs in place of arguments."""
    ctx = click.get_current_context(silent=True)
    command = None if ctx is None else ctx.command
    known = command.options_by_argument() if isinstance(command, Command) else {}
    return rename_arguments(text, known)


@contextmanager
def _rename_errors(options_by_argument: Callable[[], dict[str, str]]) -> Iterator[None]:
    """Errors of the library name the options of the command in place of arguments."""
    try:
        yield
    except PsdError as error:
        error.args = (rename_arguments(str(error), options_by_argument()),)
        raise
