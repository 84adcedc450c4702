"""psd sign: sign a release."""

from __future__ import annotations

import click

from ..options.command import Command
from ..options.common import RELEASE, chosen_max_nodes, overwrite

__all__ = ["command"]


@click.command("sign", cls=Command)
@RELEASE
@click.option(
    "--key", required=True, type=click.Path(), help="Private key of `psd keygen`, a PEM file."
)
@overwrite
def command(release: str, key: str, overwrite: bool) -> None:
    """Write a signature of a release or a series to a file with the added ending .sig.

    The release is checked first; its file is not changed.

    \b
    Examples:
      psd sign seoul.psd.parquet --key office.pem
    """  # noqa: D301
    from psd.release.signing import sign

    signature = sign(release, key, overwrite=overwrite, max_nodes=chosen_max_nodes())
    click.echo(f"wrote {signature}")
