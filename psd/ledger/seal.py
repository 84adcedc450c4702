"""The seal of a ledger: an authentication code of its head by a key of the owner. Private side.

The hash chain has no key, so a person who may write the ledger can change an entry and recompute
all later hashes. A seal is a message authentication code [1]_ of the number of entries and of the
hash of the last one, in a file beside the ledger. Without the key, the seal of another chain cannot
be computed, so a change of a sealed entry is detected as long as the key is secret and the seal
exists. Entries after the seal are not covered.

References
----------
.. [1] Krawczyk, Bellare, Canetti. "HMAC: Keyed-Hashing for Message Authentication." RFC 2104, 1997.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from psd._util.atomic_write import write_file
from psd._util.strict_json import strict_json
from psd.errors import LedgerError, ParameterError, ReleaseFormatError
from psd.ingest.hash_key import load_key
from psd.ledger.state import LedgerState

__all__ = ["check_seal", "seal_path", "write_seal"]

_DOMAIN = b"psd seal of a ledger 1\n"
_FIELDS = {"version": int, "ledger": str, "entries": int, "head": str, "mac": str}
_VERSION = 1
_LARGEST = 2**12
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)

PathLike = str | os.PathLike[str]


def seal_path(ledger: PathLike) -> Path:
    """Return the file of the seal of a ledger: its name with ``.seal`` after it."""
    return Path(f"{os.fspath(ledger)}.seal")


def write_seal(ledger: PathLike, state: LedgerState, key: PathLike) -> Path:
    """Seal the head of a ledger; an earlier seal must agree with the chain and is replaced.

    The file of the key has 64 hexadecimal digits and is readable by its owner only. It is created
    with random bytes if neither it nor a seal exists; with a seal, a missing key is an error.
    """
    target = seal_path(ledger)
    if os.path.lexists(target):
        check_seal(ledger, state, key)
    body = {"ledger": state.id, "entries": len(state.hashes), "head": state.head}
    sealed = {"version": _VERSION, **body, "mac": _mac(load_key(key), body)}
    write_file(target, f"{json.dumps(sealed, indent=1)}\n".encode(), overwrite=True, mode=0o600)
    return target


def check_seal(ledger: PathLike, state: LedgerState, key: PathLike) -> int:
    """Check key and seal against the chain; return how many entries, from the first, are sealed."""
    if not os.path.isfile(key):
        raise ParameterError(f"key must be a file that exists, got {key}")
    path = seal_path(ledger)
    seal = _read_seal(path)
    body = {name: seal[name] for name in ("ledger", "entries", "head")}
    if not hmac.compare_digest(seal["mac"], _mac(load_key(key), body)):
        raise LedgerError(f"seal {path} was changed, or was made with another key than {key}")
    number: int = seal["entries"]
    if seal["ledger"] != state.id or list(state.hashes[number - 1 : number]) != [seal["head"]]:
        raise LedgerError(
            f"ledger {ledger} does not have the sealed entry {number}: an entry up to it was "
            "changed and the chain recomputed, or this is an older copy or another ledger"
        )
    return number


def _read_seal(path: Path) -> dict[str, Any]:
    """Fields of the file of a seal."""
    if not os.path.lexists(path):
        raise LedgerError(
            f"seal {path} does not exist; restore it, or seal the ledger with `psd ledger seal`"
        )
    seal: Any = None
    with (
        suppress(OSError, ReleaseFormatError),
        open(path, "rb", opener=_open_at_once) as file,
    ):
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            seal = strict_json(file.read(_LARGEST + 1), _LARGEST)
    is_seal = isinstance(seal, dict) and {name: type(v) for name, v in seal.items()} == _FIELDS
    if not (is_seal and seal["version"] == _VERSION and seal["entries"] >= 1 and _is_mac(seal)):
        raise LedgerError(f"seal {path} is damaged, or of another version")
    fields: dict[str, Any] = seal
    return fields


def _open_at_once(path: str, flags: int) -> int:
    """Open a file; opening a pipe would wait for its writer otherwise."""
    return os.open(path, flags | _NO_WAIT)


def _is_mac(seal: dict[str, Any]) -> bool:
    """Whether the code of a seal has the form that `_mac` gives it."""
    return re.fullmatch("[0-9a-f]{64}", seal["mac"]) is not None


def _mac(key: bytes, body: dict[str, Any]) -> str:
    """Authentication code of ledger, number of entries and head."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hmac.new(key, _DOMAIN + text.encode(), hashlib.sha256).hexdigest()
