"""Which charge of which ledger paid a release: two random ids among its parameters. Public side.

A ledger that was put back to an older copy is sound in itself. What it has forgotten is still
said by the releases that it paid.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from psd._util.strict_json import strict_json
from psd._util.untrusted_parquet import footer_keys
from psd.errors import ReleaseFormatError
from psd.release.file import KEY, SERIES_KEY, read
from psd.release.series_file import is_series
from psd.release.series_file import read as read_series

__all__ = ["Receipt", "is_sound", "receipt_of", "receipts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Who paid a release. Public.

    Parameters
    ----------
    ledger : str
        Id of the ledger, random.
    charge : str
        Id of the charge, random.
    """

    ledger: str
    charge: str

    def parameters(self) -> dict[str, int | str]:
        """As the release has it, among its public parameters."""
        return {"ledger": self.ledger, "charge": self.charge}


def receipts(folder: str | os.PathLike[str]) -> Iterator[tuple[Path, Receipt]]:
    """Receipts of the releases in a folder, in the order of their names.

    Files that are no releases, or were damaged, are passed over: they say nothing. Only footers
    are read; see `is_sound` before one is believed.
    """
    for path in sorted(Path(folder).glob("*.parquet")):
        found = receipt_of(path)
        if found is not None:
            yield path, found


def receipt_of(path: str | os.PathLike[str]) -> Receipt | None:
    """Receipt of a release or a series; None where it has none, or is none.

    Examples
    --------
    >>> receipt_of("missing.psd.parquet") is None
    True
    """
    footer = footer_keys(path)
    try:
        header = strict_json(footer.get(SERIES_KEY) or footer.get(KEY) or b"")
        # A series has parameters of each slice, all with the same receipt.
        said = header["parameters"][0] if SERIES_KEY in footer else header["parameters"]
        return Receipt(ledger=str(said["ledger"]), charge=str(said["charge"]))
    except (ReleaseFormatError, KeyError, IndexError, TypeError):
        return None


def is_sound(path: str | os.PathLike[str]) -> bool:
    """Whether a file loads as a release or a series: the words of its footer are written easily.

    Anybody may still make a sound release that says anything.

    Examples
    --------
    >>> is_sound("missing.psd.parquet")
    False
    """
    try:
        (read_series if is_series(path) else read)(path)
    except ReleaseFormatError:
        return False
    return True
