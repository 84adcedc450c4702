"""psd keygen: a key that signs releases."""

from __future__ import annotations

import click

from ..options.command import Command

__all__ = ["command"]


@click.command("keygen", cls=Command)
@click.argument("key", type=click.Path())
def command(key: str) -> None:
    """Make a private key in the file KEY, and its public key in a file that ends in .pub.pem.

    `psd sign` signs with the private key; keep it secret. Only its owner may read the file, and
    existing files are never overwritten. `psd verify` checks signatures with the public key; give
    it to the users of the releases, through another channel than the releases.

    \b
    Examples:
      psd keygen office.pem
    """  # noqa: D301
    from psd.release.signing import new_key

    public = new_key(key)
    click.echo(f"wrote {key} (PRIVATE) and {public} (public)")
