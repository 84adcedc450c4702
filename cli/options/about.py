"""``--about``: what the publisher states about a release."""

from __future__ import annotations

import click

from psd._util.suggestions import check_names

from ..options.command import options_of

__all__ = ["about_option"]

_FILE = "file"


def _parse(
    ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str] | None:
    """Table of the keys; None without the option."""
    from psd.release.about import ABOUT_KEYS

    table: dict[str, str] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign:
            key, value = _FILE, text
        key = "licence" if key == "license" else key
        check_names("key of --about", [key], (*ABOUT_KEYS, _FILE))
        if not value:
            raise click.UsageError(
                f"--about must be FILE or KEY=VALUE, such as title=Visits, got {text[:80]!r}", ctx
            )
        if key in table:
            raise click.UsageError(f"--about {key} must be given once", ctx)
        table[key] = value
    return table or None


about_option = options_of("Release")(
    "--about",
    multiple=True,
    metavar="FILE|KEY=VALUE",
    callback=_parse,
    help="What the release and its exports state about themselves; may be repeated. Keys: title, "
    "publisher, description, licence (such as CC-BY-4.0), contact, reference_date (2024, 2024-06 "
    "or 2024-01/2024-06), language (such as en), justification (why this epsilon). FILE: a TOML "
    "file with these keys. Public: never taken from the data.",
)
