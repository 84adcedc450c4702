"""psd keygen: a key to sign releases with."""

from __future__ import annotations

import click

from ..options.command import Command

__all__ = ["command"]


@click.command("keygen", cls=Command)
@click.argument("key", type=click.Path())
def command(key: str) -> None:
    """Make the private key KEY, and its public part in a file that ends in .pub.pem.

    The private key signs: it belongs to the office, its owner alone may read it, and no file is
    ever overwritten. The public key is handed out, by another way than the releases.

    \b
    Examples:
      psd keygen office.pem
    """  # noqa: D301
    from psd.release.signing import new_key

    public = new_key(key)
    click.echo(f"wrote {key} (PRIVATE) and {public}, to be handed out")
