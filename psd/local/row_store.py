"""The store of a table whose rows answer in rounds: which group each row is in, and who answered.

It takes the place of the stores of devices in tests and trials: a row keeps its group over all
rounds, and answers once.
"""

from __future__ import annotations

import base64
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from psd._util.atomic_write import write_file
from psd._util.strict_json import strict_json
from psd.errors import LedgerError, PsdError
from psd.local.bulk import ManyWords, draw_groups
from psd.local.device import Campaign, campaign_digest, canonical_json

__all__ = ["RowStore"]

_LIMIT = 2**31


class RowStore:
    """Groups of rows, and the rounds that they have answered.

    Guarantees
    ----------
    - Groups are drawn once. `take` is on the disk before it returns, and refuses a second answer.

    Parameters
    ----------
    path : str
        The file. It is created, for its owner alone, if it is missing in the first round.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def take(self, campaign: Campaign, rows: int) -> NDArray[np.int64]:
        """Group of each row, for the one answer that each may give in a campaign.

        Raises
        ------
        LedgerError
            If the store is missing in a later round, damaged, of other rows or another campaign,
            or the rows have answered this campaign.
        WriteError
            If it cannot be written.
        """
        is_new = not Path(self._path).exists()
        if is_new and campaign.earlier:
            raise LedgerError("store is missing; the groups of the rows of earlier rounds are lost")
        groups, answered = self._draw(campaign, rows) if is_new else self._read(campaign, rows)
        if campaign.digest in answered:
            raise LedgerError(
                "store must be of rows that have not answered, got one of rows that have answered "
                "this campaign; a second answer costs epsilon again"
            )
        value = {
            "psd-row-store": 1,
            "series": campaign.series,
            "answered": [*answered, campaign.digest],
            "groups": base64.b64encode(groups.astype(np.uint8).tobytes()).decode(),
        }
        content = canonical_json({**value, "digest": campaign_digest(value)}).encode()
        write_file(self._path, content, overwrite=not is_new, mode=0o600)
        return groups

    def _draw(self, campaign: Campaign, rows: int) -> tuple[NDArray[np.int64], list[str]]:
        """Draw the group of each row."""
        return draw_groups(campaign, ManyWords(rows)), []

    def _read(self, campaign: Campaign, rows: int) -> tuple[NDArray[np.int64], list[str]]:
        """Groups and answered campaigns of the file."""
        try:
            size = os.path.getsize(self._path)
            if size > _LIMIT:
                raise ValueError
            value = strict_json(Path(self._path).read_bytes(), _LIMIT)
            if value["digest"] != campaign_digest(value) or value["psd-row-store"] != 1:
                raise ValueError
            groups = np.frombuffer(base64.b64decode(value["groups"]), np.uint8).astype(np.int64)
        except (OSError, PsdError, ValueError, TypeError, KeyError):
            raise LedgerError("store is damaged or of another kind") from None
        if value["series"] != campaign.series or len(groups) != rows:
            raise LedgerError("store must be of the rows and the first round of this campaign")
        return groups, list(value["answered"])
