"""Commands whose options stand in titled groups, each given once; numbers, lists and settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import click

from psd._util.instances import check_names
from psd.errors import PsdError

from ..moved import refuse_moved
from ..output.terminal import TALK

__all__ = [
    "INTEGER",
    "LIMITS",
    "NUMBER",
    "Command",
    "Group",
    "GroupedOption",
    "chain_options",
    "options_of",
    "parse_integer",
    "parse_number",
    "parse_settings",
    "split_commas",
]

N = TypeVar("N", int, float)


def parse_number(value: object) -> float:
    """Number of a text."""
    return _parse_plain(value, float)


def parse_integer(value: object) -> int:
    """Whole number of a text."""
    return _parse_plain(value, int)


def _parse_plain(value: object, kind: type[N]) -> N:
    """Number written in ASCII; Python alone would also take 1_0 and digits of other scripts."""
    text = str(value)
    try:
        if "_" not in text and text.isascii():
            return kind(text)
    except ValueError:
        pass
    raise click.BadParameter(f"{text!r} is not a {'whole ' * (kind is int)}number.")


def _option_type(parse: Callable[[object], Any], name: str) -> click.ParamType[Any]:
    """Type of an option, under the name that `--help` shows."""
    kind = click.types.convert_type(parse)
    kind.name = name
    return kind


NUMBER = _option_type(parse_number, "number")
"""Type of an option that takes a number."""

INTEGER = _option_type(parse_integer, "integer")
"""Type of an option that takes a whole number."""


def _parse_limits(value: object) -> float | tuple[float, float]:
    """A share, or two with a comma between them; 30% is 0.3."""
    parts = (part.strip() for part in str(value).split(","))
    numbers = tuple(
        parse_number(part[:-1].strip()) / 100 if part.endswith("%") else parse_number(part)
        for part in parts
    )
    if len(numbers) > 2:
        raise click.BadParameter(f"{str(value)[:80]!r} is not one number or two with a comma.")
    return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])


LIMITS = _option_type(_parse_limits, "share[,share]")
"""Type of an option that takes the limits of classes."""

# Arguments of the library as its messages write them, such as overwrite=True, layer= or user="id".
_ARGUMENT = re.compile(r"(?<![\w./:-])([a-z_]+)=(True\b|[A-Z]+\b|\d+\b|\"[^\"]*\")?(?![\w=%/])")
_SHELL = re.compile(r"[;|&<>*?$\s]")
"""Characters that a shell does not pass on without quotes."""


def rename_arguments(message: str, options: Mapping[str, str]) -> str:
    """Replace arguments of the library, the first word or before ``=``, by options of the command.

    >>> options = {"overwrite": "--overwrite", "layer": "--layer", "epsilon": "--epsilon"}
    >>> rename_arguments("r.parquet exists; choose another name, or pass overwrite=True", options)
    'r.parquet exists; choose another name, or pass --overwrite'
    >>> rename_arguments("epsilon must be above 0", options)
    '--epsilon must be above 0'
    """

    def option_text(match: re.Match[str]) -> str:
        name, value = match[1], match[2] or ""
        if name not in options:
            return match[0]
        value = "" if value == "True" else value if _SHELL.search(value) else value.strip('"')
        separator = "=" if " " in options[name] else " "
        return f"{options[name]}{separator}{value}" if value else options[name]

    first, space, rest = _ARGUMENT.sub(option_text, message).partition(" ")
    if first == "region" and rest[:1] in "0123456789'\"":  # a region of a file, not an argument
        return f"{first} {rest}"
    name = first.removesuffix(":")
    return f"{options.get(name, name)}{first[len(name) :]}{space}{rest}"


def parse_settings(
    texts: tuple[str, ...],
    form: str = "KEY=VALUE",
    example: str = "height=8",
    option: str = "--set",
) -> dict[str, str]:
    """Texts of ``--set``, or of an option like it, as a mapping, each key once."""
    pairs = [text.partition("=") for text in texts]
    for text, (key, sign, value) in zip(texts, pairs, strict=True):
        if not (key and sign and value):
            raise click.UsageError(f"{option} must be {form}, such as {example}, got {text!r}")
    keys = [key for key, _, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise click.UsageError(
                f"{option} {key} must be given once, got {keys.count(key)} times"
            )
    return {key: value for key, _, value in pairs}


def split_commas(text: str) -> list[str]:
    """Parts of a text with commas."""
    return [item.strip() for item in text.split(",")]


def cell_level(level: str | None) -> int | None:
    """Number of a level of cells."""
    if level is None or level.lstrip("-").isdigit():
        return None if level is None else int(level)
    raise click.UsageError(
        f"--level must be a whole number from 0, got {level!r}; a release without regions has no "
        "names of levels"
    )


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
    """Refuse options of the command line whose parameters are not allowed."""
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


class _Talking(click.Command):
    """A command or a group with the options of all commands."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Options of the command, and those of all commands."""
        return [*super().get_params(ctx), *_TALK_OPTIONS]


class Command(_Talking):
    """A command that refuses repeated options, lists options by group and maps argument names.

    Click alone would silently take the last of several values. ``--help-all`` shows all options.
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
        present = self.parse_words(ctx, list(args))[2]
        for param in present:
            once = isinstance(param, click.Option) and not (param.multiple or param.is_flag)
            times = present.count(param)
            if once and times > 1:
                each = {"when": "slice", "category": "category"}.get(str(param.name))
                has_each = each and any(other.name == "each" for other in self.params)
                more = f"; --each {each} writes each {each} by itself" if has_each else ""
                raise click.UsageError(
                    f"{param.opts[-1]} must be given once, got {times} times{more}", ctx
                )
        return super().parse_args(ctx, args)

    def parse_words(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[dict[str, Any], list[str], list[click.Parameter]]:
        """Parse into values of options, other words, and options in their order."""
        try:
            return self.make_parser(ctx).parse_args(args)
        except click.BadOptionUsage as error:
            for param in self.get_params(ctx):
                if error.option_name in param.opts and param.nargs > 1:
                    message = f"{error.option_name} must be followed by {param.metavar}"
                    raise click.UsageError(message, ctx) from None
            raise

    def plain_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Arguments as the parser takes them; an old option is answered by the new one."""
        # Answer an option of before version 0.2.0, or of `psd build` alone, by a sentence.
        from ..moved import OPTIONS

        names = {name for param in self.params for name in param.opts}
        for at, arg in enumerate(args):
            option, sign, value = arg.partition("=")
            if option in {"-o", "--output"} and "output" in names:  # an argument
                raise click.UsageError(f"{option} must be left out; OUTPUT stands last", ctx)
            if not option.startswith("--"):
                continue
            value = value if sign else " ".join(args[at + 1 : at + 2])
            for pattern, new in OPTIONS.items():
                old, _, form = pattern.partition(" ")
                if (
                    old == option
                    and (form or option not in names)
                    and re.match(form, value)
                    and (new.split()[0] in names or new[0] != "-")
                ):
                    words = f"{old} {value[:40]}" if form else old
                    raise click.UsageError(f"{words} is now {new}", ctx)
            if option == "--engine" and option not in names and "--x" in names:
                raise click.UsageError(
                    "--engine must be left out; psd build alone counts on a cluster; write the "
                    "records to Parquet there, and name these files",
                    ctx,
                )

        # A word for four numbers is padded to four arguments.
        args = list(args)
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
        try:
            return super().invoke(ctx)
        except PsdError as error:  # names the options of the command in place of arguments
            error.args = (rename_arguments(str(error), self.options_by_argument()),)
            raise

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


class Group(_Talking, click.Group):
    """Commands under a name, or its help; answers an old or unknown word by the current one."""

    def __init__(self, *args: Any, **named: Any) -> None:
        named["context_settings"] = {"help_option_names": ["-h", "--help"]}
        named["invoke_without_command"] = True
        super().__init__(*args, **named)

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
            check_names(f"{path} command".strip(), [word], self.list_commands(ctx))
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
