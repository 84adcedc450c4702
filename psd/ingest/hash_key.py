"""The key of the hash that chooses rows and users, in a file that its owner alone reads.

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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psd._util.atomic_write import write_whole
from psd._util.fields import integer_between
from psd.errors import InputDataError, ParameterError, WriteError

__all__ = ["MAX_RESIDUES", "check_value", "key_of_file", "users_of_residue"]

MAX_RESIDUES = 10_000

_BYTES = 32


def key_of_file(path: str | os.PathLike[str]) -> bytes:
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
            write_whole(path, f"{secrets.token_hex(_BYTES)}\n".encode(), mode=0o600)
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


def check_value(key: bytes) -> str:
    """What tells keys apart without telling the key."""
    return hmac.new(key, b"psd: which key", hashlib.sha256).hexdigest()[:32]


def users_of_residue(key: bytes, residue: tuple[int, int]) -> Callable[[Any], NDArray[np.bool_]]:
    """Which of some ids have a keyed hash that leaves R when divided by N.

    Guarantees
    ----------
    - A function of the id and the key alone; each id is in one residue of N and in no other.

    Parameters
    ----------
    key : bytes
        Independent of the data.
    residue : tuple of int
        (R, N), R from 0 to N - 1.

    Raises
    ------
    ParameterError
        If R or N is out of range.
    """
    divisor = integer_between(1, MAX_RESIDUES)("residue N", residue[1])
    remainder = integer_between(0, divisor - 1)("residue R", residue[0])
    start = hashlib.blake2b(key=key, digest_size=8, person=b"psd residue")

    def among(ids: Any) -> NDArray[np.bool_]:
        encoded = ids.dictionary_encode()
        is_in = np.array([_number(start, name) % divisor == remainder for name in
                          encoded.dictionary.to_pylist()], bool)  # fmt: skip
        found: NDArray[np.bool_] = is_in[encoded.indices.to_numpy()]
        return found

    return among


def _number(start: Any, name: str) -> int:
    """64 bits of the keyed hash of an id."""
    one = start.copy()
    one.update(name.encode())
    return int.from_bytes(one.digest(), "big")


def residue_of(text: str) -> tuple[int, int]:
    """R and N of ``R/N``.

    Raises
    ------
    ParameterError
        If the text is none.
    """
    if not re.fullmatch(r"[0-9]{1,5}/[0-9]{1,5}", text, re.ASCII):
        raise ParameterError(f"residue {text!r} is not R/N, such as 0/4")
    remainder, divisor = map(int, text.split("/"))
    divisor = integer_between(1, MAX_RESIDUES)("residue N", divisor)
    return integer_between(0, divisor - 1)("residue R", remainder), divisor
