"""The key of the hash that chooses rows, in a file that its owner alone reads.

Privacy holds for each fixed key, also a known one, as long as it does not depend on the data; so
a key is made of random bytes, once, and serves for all parts of a data set.
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
    """Key of a file, which is made of random bytes where there is none.

    Raises
    ------
    InputDataError
        If the file holds no key, or others may read it.
    WriteError
        If it cannot be made.
    """
    path = Path(path)
    if not path.exists():
        try:
            write_file(path, f"{secrets.token_hex(_BYTES)}\n".encode(), mode=0o600)
        except WriteError:
            if not path.exists():  # else another process has made it meanwhile
                raise
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise InputDataError(f"key {path} may be read by others; make it private: chmod 600")
        text = path.read_bytes()
    except OSError as error:
        raise InputDataError(f"key {path} cannot be read: {error.strerror}") from None
    if not re.fullmatch(rb"[0-9a-f]{64}\n?", text):
        raise InputDataError(
            f"key {path} holds no key; name a file that does not exist to make one"
        )
    return bytes.fromhex(text.decode())


def key_fingerprint(key: bytes) -> str:
    """What tells keys apart without telling the key."""
    return hmac.new(key, b"psd: which key", hashlib.sha256).hexdigest()[:32]
