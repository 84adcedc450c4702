"""psd verify: whether a release is what it was, and who signed it."""

from __future__ import annotations

import click

from ..options.command import Command
from ..options.common import RELEASE

__all__ = ["command"]


@click.command("verify", cls=Command)
@RELEASE
@click.option("--key", type=click.Path(), help="Public key of the office, a PEM file.")
@click.option(
    "--signature", type=click.Path(), help="File of the signature; RELEASE.sig if not given."
)
def command(release: str, key: str | None, signature: str | None) -> None:
    """Check that a release was not changed and, with --key, that the office signed it.

    Without --key the digest is checked alone: it tells of damage, but whoever forges a release
    forges its digest too.

    \b
    Examples:
      psd verify seoul.psd.parquet
      psd verify seoul.psd.parquet --key office.pub.pem
    """  # noqa: D301
    from psd.release.signing import verify

    if key is None and signature is not None:
        raise click.UsageError("--signature goes with --key, the public key to check it with")
    digest = verify(release, key, signature=signature)
    click.echo(f"digest {digest}")
    if key is None:
        click.echo("the content is as it was written; no signature was checked (--key)")
    else:
        click.echo(f"the content is as it was signed, with the key of {key}")
