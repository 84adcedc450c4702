"""The key of the hash that chooses the kept records, in a file that only its owner can read.

Privacy holds for every fixed key, even a published one, as long as it does not depend on the data.
A key is generated once from random bytes, and used for all parts of a data set.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
from pathlib import Path

from psd._util.atomic_write import write_file
from psd.errors import InputDataError, WriteError

__all__ = ["key_fingerprint", "load_key"]

_BYTES = 32


def load_key(path: str | os.PathLike[str]) -> bytes:
    """Read a key file, which only its owner may read; without one, create it with random bytes."""
    path = Path(path)
    if not path.exists():
        try:
            write_file(path, f"{secrets.token_hex(_BYTES)}\n".encode(), mode=0o600)
        except WriteError:
            if not path.exists():  # otherwise another process created it meanwhile
                raise
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise InputDataError(
                f"key {path} must be readable by its owner only; make it private: chmod 600"
            )
        text = path.read_bytes()
    except OSError as error:
        raise InputDataError(f"key {path} cannot be read: {error.strerror}") from None
    if not re.fullmatch(rb"[0-9a-f]{64}\n?", text):
        raise InputDataError(
            f"key {path} must hold 64 hexadecimal digits; a file that does not exist is created"
        )
    return bytes.fromhex(text.decode())


def key_fingerprint(key: bytes) -> str:
    """Compute a fingerprint of a key, which does not reveal the key."""
    return hmac.new(key, b"psd: which key", hashlib.sha256).hexdigest()[:32]
