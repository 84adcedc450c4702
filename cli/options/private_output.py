"""``--private-output``: what a build prints or writes for the holder of the data alone."""

from __future__ import annotations

from typing import Any

import click

from psd._util.suggestions import check_names

from ..options.command import options_of

__all__ = ["private_output_option"]

_REPORT, _TALLY = "report", "tally"


def _parse(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, Any]:
    """Keys of a recipe: whether numbers are printed, and the file of the tally."""
    keys: dict[str, Any] = {"report_private": False}
    for text in texts:
        key, sign, path = text.partition("=")
        check_names("key of --private-output", [key], (_REPORT, _TALLY))
        if (key == _TALLY) != bool(path) or (key == _REPORT and sign):
            raise click.UsageError(
                f"--private-output must be report or tally=FILE, got {text[:80]!r}", ctx
            )
        if key == _TALLY and "keep_tally" in keys:
            raise click.UsageError("--private-output tally must be given once, got 2 times", ctx)
        keys |= {"keep_tally": path} if key == _TALLY else {"report_private": True}
    return keys


private_output_option = options_of("Private output")(
    "--private-output",
    multiple=True,
    metavar="report|tally=FILE",
    callback=_parse,
    help="report: print PRIVATE numbers of records to stderr (--report-private is the same). "
    "tally=FILE: write the PRIVATE exact tally, for `psd check evaluate`; only its owner may read "
    "the file (--keep-tally FILE is the same).",
)
