"""Sign releases, and verify their signatures.

A signature is Ed25519 (RFC 8032) of the digest of the content, in a file beside the release, which
it does not change; a release may be compressed again, and have signatures of several keys.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psd._util.atomic_write import check_free, check_targets, open_plain, write_file
from psd._util.extras import install_text
from psd._util.json_toml import strict_json
from psd.errors import MissingExtraError, ParameterError, ReleaseFormatError, WriteError
from psd.release.cube_file import read_published
from psd.release.node_reader import MAX_NODES

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

__all__ = ["new_key", "public_name", "read_signature", "sign", "signature_name", "verify"]

VERSION = 1

_DOMAIN = b"psd signature of a release 1\n"
_FIELDS = {"signature": 128, "digest": 64, "key": 64}
_LARGEST = 2**12

Name = str | os.PathLike[str]


def signature_name(release: Name) -> Path:
    """File of the signature of a release: its name followed by ``.sig``.

    Examples
    --------
    >>> signature_name("seoul.psd.parquet").name
    'seoul.psd.parquet.sig'
    """
    return Path(f"{os.fspath(release)}.sig")


def public_name(key: Name) -> Path:
    """File of the public part of a key: ``office.pub.pem`` for ``office.pem``.

    Examples
    --------
    >>> public_name("keys/office.pem").name
    'office.pub.pem'
    """
    path = Path(key)
    return path.with_name(f"{path.name.removesuffix('.pem')}.pub.pem")


def new_key(path: Name) -> Path:
    """Make a private key that only its owner may read, and write its public key beside it.

    Parameters
    ----------
    path : path-like
        File of the private key, such as ``office.pem``; never overwritten.

    Returns
    -------
    Path
        File of the public key, which may be given to anyone; see `public_name`.

    Raises
    ------
    WriteError
        If one of the two files exists or cannot be written.
    MissingExtraError
        If cryptography is not installed.

    Examples
    --------
    >>> import tempfile, psd
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     psd.signing.new_key(folder + "/office.pem").name
    'office.pub.pem'
    """
    ed25519, pem = _import_ed25519(), _import_serialization()
    check_free(path, overwrite=True)  # a folder such as . has no name for the public part
    for target in (path, public_name(path)):
        if os.path.isfile(target):
            raise WriteError(f"{target} exists; choose another name, a key is never overwritten")
    check_targets([path, public_name(path)], overwrite=False)
    key = ed25519.Ed25519PrivateKey.generate()
    plain = pem.NoEncryption()
    private = key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, plain)
    public = key.public_key().public_bytes(pem.Encoding.PEM, pem.PublicFormat.SubjectPublicKeyInfo)
    write_file(path, private, mode=0o600)
    write_file(public_name(path), public)
    return public_name(path)


def sign(release: Name, key: Name, *, overwrite: bool = False, max_nodes: int = MAX_NODES) -> Path:
    """Read and check a release or a series, and sign its content.

    Parameters
    ----------
    release : path-like
        File of the release.
    key : path-like
        File of the private key: PEM, Ed25519, without a password, not readable by others.
    overwrite : bool
        Whether a signature that exists is replaced.
    max_nodes : int
        Largest number of nodes in the file, as in `psd.load`.

    Returns
    -------
    Path
        File of the signature, see `signature_name`.

    Raises
    ------
    ReleaseFormatError
        If the release cannot be read, or was changed.
    ParameterError
        If the key cannot be read.
    WriteError
        If the signature exists or cannot be written.
    MissingExtraError
        If cryptography is not installed.

    Examples
    --------
    >>> import tempfile, psd
    >>> folder = tempfile.TemporaryDirectory()
    >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    >>> tree = psd.decompositions.grid_tree(domain, 2)
    >>> path = folder.name + "/r.psd.parquet"
    >>> psd.Release.from_counts(tree, [5, 1, 0, 2], 1.0, domain=domain).save(path)
    >>> public = new_key(folder.name + "/office.pem")
    >>> signature = sign(path, folder.name + "/office.pem")
    >>> verify(path, public) == psd.load(path).digest
    True
    >>> folder.cleanup()
    """
    private = _private_key(key)
    digest = _release_digest(release, max_nodes)
    body = {
        "version": VERSION,
        "digest": digest,
        "key": _key_fingerprint(private.public_key()),
        "signature": private.sign(_DOMAIN + digest.encode()).hex(),
    }
    target = signature_name(release)
    write_file(target, f"{json.dumps(body, indent=1)}\n".encode(), overwrite=overwrite)
    return target


def verify(
    release: Name,
    key: Name | None = None,
    *,
    signature: Name | None = None,
    max_nodes: int = MAX_NODES,
) -> str:
    """Check that a release is unchanged and, with a key, who signed it.

    Parameters
    ----------
    release : path-like
        File of the release, or of a series.
    key : path-like, optional
        File of a trusted public key: PEM, Ed25519. Without it only the digest is checked, which
        detects damage and not forgery.
    signature : path-like, optional
        File of the signature; `signature_name` by default.
    max_nodes : int
        Largest number of nodes in the file, as in `psd.load`.

    Returns
    -------
    str
        Digest of the content.

    Raises
    ------
    ReleaseFormatError
        If the release cannot be read or was changed, or has no valid signature of this key.
    ParameterError
        If the key cannot be read.
    MissingExtraError
        If a key is given and cryptography is not installed.

    Examples
    --------
    >>> import tempfile, psd
    >>> release = psd.testing.release_from_counts([[5, 1], [0, 2]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path, key = folder + "/r.psd.parquet", folder + "/office.pem"
    ...     release.save(path)
    ...     public = psd.signing.new_key(key)
    ...     _ = psd.signing.sign(path, key)
    ...     psd.signing.verify(path, public) == psd.signing.verify(path)
    True
    """
    public = None if key is None else _public_key(key)
    digest = _release_digest(release, max_nodes)
    if public is not None:
        from cryptography.exceptions import InvalidSignature

        path = signature or signature_name(release)
        _, body = _read_fields(Path(path), digest)
        if body["key"] != _key_fingerprint(public):
            raise ReleaseFormatError(
                f"signature must be of the stated key, got {path}, made with another key; use "
                "the public key of the publisher",
                path=path,
            )
        try:
            public.verify(bytes.fromhex(body["signature"]), _DOMAIN + digest.encode())
        except InvalidSignature:
            raise ReleaseFormatError(
                f"signature must be valid for the release and the key, got {path}, which is not "
                "valid; it is forged or damaged",
                path=path,
            ) from None
    return digest


def check_key(key: Name) -> None:
    """Refuse a private key that could not sign, before there is a release."""
    _private_key(key)


def read_signature(path: Name, digest: str) -> bytes:
    """Read the file of a signature of a digest, as bytes, and not through a link.

    Whether the signature is that of a key is checked by `verify`.

    Parameters
    ----------
    path : path-like
        File of a signature.
    digest : str
        Digest of the release that it must be of.

    Returns
    -------
    bytes
        Content of the file.

    Raises
    ------
    ReleaseFormatError
        If the file is a link, is missing, is no signature, or is that of another digest.

    Examples
    --------
    >>> import tempfile, psd
    >>> release = psd.testing.release_from_counts([[5, 1], [0, 2]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     key, path = folder + "/office.pem", folder + "/r.psd.parquet"
    ...     release.save(path)
    ...     public = new_key(key)
    ...     len(read_signature(sign(path, key), release.digest)) > 100
    True
    """
    path = Path(path)
    if path.is_symlink():  # also where files cannot be opened without following links
        raise ReleaseFormatError(
            f"signature must be a file, got {path}, which is a link; put the file in its place",
            path=path,
        )
    return _read_fields(path, digest, open_plain)[0]


def _release_digest(release: Name, max_nodes: int) -> str:
    """Digest of a file that was read and checked completely."""
    return read_published(release, max_nodes=max_nodes)[1]


def _read_fields(
    path: Path, digest: str, opener: Callable[[str, int], int] | None = None
) -> tuple[bytes, dict[str, str]]:
    """Bytes and fields of a file of a signature, which must be of a digest."""
    if not os.path.isfile(path):
        raise ReleaseFormatError(
            f"signature must be a file, got {path}, which does not exist or is not a file; is the "
            "release signed, or its signature elsewhere?",
            path=path,
        )
    try:
        with open(path, "rb", opener=opener) as file:
            raw = file.read(_LARGEST + 1)
        body = strict_json(raw, _LARGEST)
    except (OSError, ReleaseFormatError):
        body = None
    is_signature = isinstance(body, dict) and body.keys() == _FIELDS.keys() | {"version"}
    if not is_signature or type(body["version"]) is not int or body["version"] != VERSION:
        raise ReleaseFormatError(
            f"signature must be a file that psd sign file wrote, got {path}; it is of another kind "
            "or of another version",
            path=path,
        )
    texts = {name: body[name] if isinstance(body[name], str) else "" for name in _FIELDS}
    is_hex = all(set(text) <= set("0123456789abcdef") for text in texts.values())
    if not is_hex or {name: len(text) for name, text in texts.items()} != _FIELDS:
        raise ReleaseFormatError(
            f"signature must be a file that psd sign file wrote, got {path}; it is damaged",
            path=path,
        )
    fields: dict[str, str] = body
    if fields["digest"] != digest:
        raise ReleaseFormatError(
            f"signature must be of digest {digest}, got {path} of {fields['digest']}; it belongs "
            "to another release",
            path=path,
        )
    return raw, fields


def _private_key(path: Name) -> Ed25519PrivateKey:
    """Private key of a file that only its owner may read."""
    ed25519 = _import_ed25519()
    key = _load_key(
        path, lambda pem: _import_serialization().load_pem_private_key(pem, password=None)
    )
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise ParameterError(f"key {path} must be a private Ed25519 key; psd sign new makes one")
    if os.name == "posix" and stat.S_IMODE(Path(path).stat().st_mode) & 0o077:
        raise ParameterError(f"key {path} may be read by others; make it private: chmod 600")
    private: Ed25519PrivateKey = key
    return private


def _public_key(path: Name) -> Ed25519PublicKey:
    """Public key of a file."""
    ed25519 = _import_ed25519()
    key = _load_key(path, lambda pem: _import_serialization().load_pem_public_key(pem))
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise ParameterError(
            f"key {path} must be a public Ed25519 key; psd sign new writes it to a file whose name "
            "ends in .pub.pem"
        )
    public: Ed25519PublicKey = key
    return public


def _load_key(path: Name, load: Any) -> Any:
    """Key of a file; None if it holds something else, or is protected by a password."""
    from cryptography.exceptions import UnsupportedAlgorithm

    if not os.path.isfile(path):
        raise ParameterError(f"key {path} does not exist or is not a file")
    try:
        with Path(path).open("rb") as file:
            return load(file.read(_LARGEST))
    except OSError as error:
        raise ParameterError(f"key {path} cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None


def _key_fingerprint(key: Ed25519PublicKey) -> str:
    """SHA-256 of a public key, which identifies it."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()


def _import_ed25519() -> Any:
    """Module of the keys."""
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise MissingExtraError(
            f"signatures need cryptography; {install_text('sign')}",
            extra="sign",
        ) from None
    return ed25519


def _import_serialization() -> Any:
    """Module that reads and writes keys."""
    from cryptography.hazmat.primitives import serialization

    return serialization
