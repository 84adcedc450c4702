"""Entry point: find the command, and turn errors into one line and an exit code."""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

import click

from psd import _apps, errors
from psd.version import __version__

from .commands import find_command
from .options.command import Group, in_options
from .output.terminal import print_warning, printable

__all__ = ["cli"]

# Commands and their lines in `psd --help`, so that the help imports no command.
SECTIONS: dict[str, dict[str, str]] = {
    "Publish": {
        "plan": "Predict errors from public parameters, before data is read.",
        "build": "Build a differentially private release, or those of a recipe.",
        "tally": "Count part of the records, or merge tallies (PRIVATE).",
        "stream": "Grow a series by one time slice at a time.",
        "ask": "Answer one count, charged to a ledger.",
        "choose": "Choose among public candidates, charged to a ledger.",
    },
    "On devices": {
        "suggest": "Suggest places, from weights learnt with privacy.",
        "local": "Collect places that devices randomise themselves.",
    },
    "Use a release": {
        "query": "Count in regions, compare releases, rank cells, with errors.",
        "export": "Write the cells for a GIS program.",
        "map": "Write a page with a map that answers drawn areas.",
        "plot": "Draw a map of a release, or small maps of a series.",
        "info": "Show the parameters and the guarantee of a release.",
    },
    "Check and account": {
        "check": "Measure true errors (PRIVATE), and attack the guarantee.",
        "ledger": "Manage the privacy budgets of datasets.",
        "sign": "Sign releases, and check their signatures.",
    },
    "Look up and install": {
        "methods": "List the methods and their parameters.",
        "qgis": "Write the plugin that has these commands in QGIS.",
    },
}
COMMANDS = {name: line for section in SECTIONS.values() for name, line in section.items()}

# Commands that may charge a ledger.
CHARGING = ("build", "ask", "choose", "stream", "suggest")

EXIT_CODES: dict[type[errors.PsdError], int] = {
    errors.ParameterError: 2,
    errors.DomainError: 3,
    errors.BudgetError: 4,
    errors.ReleaseFormatError: 5,
    errors.WriteError: 6,
    errors.MissingExtraError: 7,
    errors.InputDataError: 8,
    errors.LedgerError: 9,
    errors.AuditError: 10,
    errors.RandomnessError: 70,
    errors.InternalError: 70,
}
INTERNAL = 70
INTERRUPTED = 130

# Products of matrices are small here, and threads for them take 0.1 s of processor time of a query
# (`python lab/speed.py --only next-box`). Read when NumPy is imported, which is later.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Errors of the system when a stream cannot take more.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class Interrupted(click.Abort):
    """Ctrl-C or a signal to end; its text is the message."""


class Commands(Group):
    """Commands by name, each in a module that is imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of a user's work; those of apps that were left out are not shown."""
        return [name for name in COMMANDS if _apps.has_command(name)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, by section."""
        width = max(map(len, COMMANDS))
        for title, lines in SECTIONS.items():
            there = filter(_apps.has_command, lines)
            shown = [(name.ljust(width), lines[name]) for name in there]
            if shown:
                with formatter.section(title):
                    formatter.write_dl(shown)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Command of that name, or None."""
        if cmd_name not in COMMANDS:
            return None
        return find_command(cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; report an interrupt here, because click would add an empty line."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted(_interrupt_message(ctx.invoked_subcommand)) from None


@click.command(cls=Commands)
@click.version_option(__version__, prog_name="psd")
@click.option("--debug", is_flag=True, help="Print the traceback of an internal error.")
def cli(debug: bool) -> None:
    """Publish how many people are where, with differential privacy.

    \b
    Examples:
      psd build visits.csv -o seoul.psd.parquet --epsilon 1 --bounds 126.4 37 127.6 38
      psd query seoul.psd.parquet --box 126.9 37.5 127.0 37.6
      psd COMMAND --help

    \b
    Shell completion in bash (zsh and fish too):
      eval "$(psd info --completion bash)"
    """  # noqa: D301


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    # Redirect closed standard streams to os.devnull.
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    warnings.simplefilter("ignore")  # of libraries: whether one appears may depend on a record
    signal.signal(signal.SIGTERM, _raise_interrupt)  # tidy up as after Ctrl-C
    sys.exit(run(sys.argv[1:] if args is None else list(args)))


def _raise_interrupt(*_: object) -> None:
    """End as Ctrl-C does."""
    raise KeyboardInterrupt


def _interrupt_message(name: str | None) -> str:
    """Message of an interrupted command; only some commands charge a ledger."""
    charged = "; what was charged to a ledger stays charged" if name in CHARGING else ""
    return f"interrupted; no file is half-written{charged}"


def run(args: list[str]) -> int:
    """Exit code of a command line; errors are one line on stderr."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", errors.PsdWarning)
            warnings.showwarning = lambda text, *_, **__: print_warning(in_options(str(text)))
            cli.main(args, prog_name="psd", standalone_mode=False)
    except errors.PsdError as error:
        # The code of the kind of error, or of the kind that it is derived from.
        kinds = [kind for kind in type(error).__mro__ if kind in EXIT_CODES]
        return _print_error(str(error), EXIT_CODES[kinds[0]] if kinds else INTERNAL)
    except click.UsageError as error:
        hint = f" (see {error.ctx.command_path} --help)" if error.ctx else ""
        return _print_error(error.format_message() + hint, 2)
    except click.ClickException as error:
        return _print_error(error.format_message(), 2)
    except (click.Abort, KeyboardInterrupt) as error:
        return _print_error(str(error) or _interrupt_message(None), INTERRUPTED)
    except SystemExit:
        # click and rich leave so when the reader of the output has gone, as `head` does.
        return 0
    except MemoryError:
        return _print_error("out of memory; use a smaller tree or input", INTERNAL)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            return _print_error(
                "too many open files; close some, or raise the limit (ulimit -n)", INTERNAL
            )
        if error.errno not in _FULL or error.filename is not None:
            return _report_unexpected(error, args)
        # Errors of output files are raised as WriteError, so this is standard output.
        return _print_error(f"cannot write to standard output: {error.strerror}", 6)
    except Exception as error:
        return _report_unexpected(error, args)
    return 0


def _report_unexpected(error: Exception, args: list[str]) -> int:
    """Report an unexpected error without its text, which may quote data."""
    if "--debug" in args:
        click.echo("Traceback (most recent call last):", err=True)
        traceback.print_tb(error.__traceback__)
    return _print_error(f"internal error ({type(error).__name__}); please report it", INTERNAL)


def _print_error(message: str, code: int) -> int:
    """One line on stderr."""
    click.echo(f"psd: error: {printable(' '.join(message.split()))}", err=True)
    return code
