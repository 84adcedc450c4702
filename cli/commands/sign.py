"""psd sign: keys, signatures, and their checks."""

from __future__ import annotations

import click

from ..options.command import Command, Group
from ..options.common import RELEASE, chosen_max_nodes, overwrite
from ..output.terminal import print_success


@click.group("sign", cls=Group)
def command() -> None:
    """Sign releases, and check that they were not changed.

    \b
    Examples:
      psd sign new office.pem
      psd sign file seoul.psd.parquet --key office.pem
      psd sign check seoul.psd.parquet --key office.pub.pem
    """  # noqa: D301


@command.command("new", cls=Command, short_help="Make a key that signs releases.")
@click.argument("key", type=click.Path())
def make_key(key: str) -> None:
    """Make a private key in the file KEY, and its public key in a file that ends in .pub.pem.

    `psd sign file` signs with the private key; keep it secret. Only its owner may read the file,
    and existing files are never overwritten. `psd sign check` checks signatures with the public
    key; give it to the users of the releases, through another channel than the releases.

    \b
    Examples:
      psd sign new office.pem
    """  # noqa: D301
    from psd.signing import new_key

    public = new_key(key)
    print_success(f"wrote {key} (PRIVATE) and {public} (public)")


@command.command("file", cls=Command, short_help="Sign a release.")
@RELEASE
@click.option(
    "--key", required=True, type=click.Path(), help="Private key of `psd sign new`, a PEM file."
)
@overwrite
def sign_file(release: str, key: str, overwrite: bool) -> None:
    """Write a signature of a release or a series to a file with the added ending .sig.

    The release is checked first; its file is not changed.

    \b
    Examples:
      psd sign file seoul.psd.parquet --key office.pem
    """  # noqa: D301
    from psd.signing import sign

    signature = sign(release, key, overwrite=overwrite, max_nodes=chosen_max_nodes())
    print_success(f"wrote {signature}")


@command.command("check", cls=Command, short_help="Check the digest and the signature.")
@RELEASE
@click.option(
    "--key",
    type=click.Path(),
    help="Public key of the publisher, a PEM file; checks the signature.",
)
@click.option(
    "--signature", type=click.Path(), help="File of the signature; RELEASE.sig by default."
)
def check_file(release: str, key: str | None, signature: str | None) -> None:
    """Check that a release was not changed and, with --key, who signed it.

    Without --key, only the digest is checked. It detects damage, but not forgery: a forged
    release can have a correct digest.

    \b
    Examples:
      psd sign check seoul.psd.parquet
      psd sign check seoul.psd.parquet --key office.pub.pem
    """  # noqa: D301
    from psd.signing import verify

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
