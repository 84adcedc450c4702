"""Receipts: two random ids in a release that name the charge and the ledger that paid for it.

A ledger that was replaced by an older copy is valid in itself. The releases still state the
charges that the copy lacks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from psd._util.strict_json import strict_json
from psd._util.untrusted_parquet import MAX_ROWS, footer_keys
from psd.errors import ReleaseFormatError
from psd.release.file import KEY, SERIES_KEY, read_release
from psd.release.series_file import is_series, read_series

__all__ = ["ChargeReceipt", "is_sound", "read_receipt", "receipts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeReceipt:
    """Charge that paid for a release. Public.

    Parameters
    ----------
    ledger : str
        Random id of the ledger.
    charge : str
        Random id of the charge.
    """

    ledger: str
    charge: str

    def parameters(self) -> dict[str, int | str]:
        """Parameters under which the release states it."""
        return {"ledger": self.ledger, "charge": self.charge}


def receipts(folder: str | os.PathLike[str]) -> Iterator[tuple[Path, ChargeReceipt]]:
    """Receipts of the releases in a folder, in the order of their names.

    Other files and damaged releases are skipped. Only footers are read; check `is_sound` before
    relying on one.
    """
    for path in sorted(Path(folder).glob("*.parquet")):
        receipt = read_receipt(path)
        if receipt is not None:
            yield path, receipt


def read_receipt(path: str | os.PathLike[str]) -> ChargeReceipt | None:
    """Receipt of a release or a series; None for a file without one.

    Examples
    --------
    >>> read_receipt("missing.psd.parquet") is None
    True
    """
    footer = footer_keys(path)
    try:
        header = strict_json(footer.get(SERIES_KEY) or footer.get(KEY) or b"")
        # A series has parameters of each slice, all with the same receipt.
        parameters = header["parameters"][0] if SERIES_KEY in footer else header["parameters"]
        return ChargeReceipt(ledger=str(parameters["ledger"]), charge=str(parameters["charge"]))
    except (ReleaseFormatError, KeyError, IndexError, TypeError):
        return None


def is_sound(path: str | os.PathLike[str]) -> bool:
    """Whether a file loads as a release or a series; a footer alone is easily forged.

    A valid release can still state any charge.

    Examples
    --------
    >>> is_sound("missing.psd.parquet")
    False
    """
    try:
        # Files of the owner of the ledger: also those that a stranger's may not be as large as.
        (read_series if is_series(path) else read_release)(path, max_nodes=MAX_ROWS)
    except ReleaseFormatError:
        return False
    return True
