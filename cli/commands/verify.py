"""psd verify: check the digest and the signature of a release."""

from __future__ import annotations

import click

from ..options.command import Command
from ..options.common import RELEASE, chosen_max_nodes

__all__ = ["command"]


@click.command("verify", cls=Command)
@RELEASE
@click.option(
    "--key",
    type=click.Path(),
    help="Public key of the publisher, a PEM file; checks the signature.",
)
@click.option(
    "--signature", type=click.Path(), help="File of the signature; RELEASE.sig by default."
)
def command(release: str, key: str | None, signature: str | None) -> None:
    """Check that a release was not changed and, with --key, who signed it.

    Without --key, only the digest is checked. It detects damage, but not forgery: a forged
    release can have a correct digest.

    \b
    Examples:
      psd verify seoul.psd.parquet
      psd verify seoul.psd.parquet --key office.pub.pem
    """  # noqa: D301
    from psd.release.signing import verify

    if key is None and signature is not None:
        raise click.UsageError(
            "--signature must be given with --key, the public key to check it with"
        )
    digest = verify(release, key, signature=signature, max_nodes=chosen_max_nodes())
    click.echo(f"digest {digest}")
    if key is None:
        click.echo("the content matches the digest; no signature was checked (see --key)")
    else:
        click.echo(f"the content matches the signature of the key in {key}")
