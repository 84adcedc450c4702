"""The store of a table whose rows answer in rounds: which group each row is in, and who answered.

It takes the place of the stores of devices in tests and trials: a row keeps its group over rounds
of equal shares, and a row whose group was asked sends nothing in a later round.
"""

from __future__ import annotations

import base64
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from psd._util.atomic_write import write_file
from psd._util.strict_json import strict_json
from psd.apps.local.bulk import ManyWords, draw_groups
from psd.apps.local.campaigns import explain_device
from psd.apps.local.device import Campaign, campaign_digest, canonical_json, lock_store
from psd.errors import LedgerError, PsdError
from psd.version import old_format

__all__ = ["RowStore"]

_LIMIT = 2**31


class RowStore:
    """Groups of rows, and the rounds that they have answered.

    P1. Groups are drawn once. `take` is on the disk before it returns, and refuses a second answer.

    P2. A second name of the file, by a link, is refused or followed, and a second process waits or
    is refused, so that no row answers twice.
    """

    def __init__(self, path: str) -> None:
        self._path = os.path.realpath(path)

    def take(self, campaign: Campaign, rows: int) -> NDArray[np.int64]:
        """Group of each row, (rows,), for its one answer; -1 if it answered an earlier round."""
        if Path(self._path).exists():
            with explain_device(), open(lock_store(self._path), "rb"):
                return self._answer(campaign, *self._read(campaign, rows), is_new=False)
        if campaign.earlier:
            raise LedgerError("store is missing; the groups of the rows of earlier rounds are lost")
        return self._answer(campaign, *self._draw(campaign, rows), is_new=True)

    def _answer(
        self,
        campaign: Campaign,
        groups: NDArray[np.int64],
        answered: dict[str, list[int]],
        *,
        is_new: bool,
    ) -> NDArray[np.int64]:
        """Write down that the rows answer; a store that exists is locked meanwhile."""
        if campaign.digest in answered:
            raise LedgerError(
                "store must be of rows that have not answered, got one of rows that have answered "
                "this campaign; a second answer costs epsilon again"
            )
        asked = [n for n, group in enumerate(campaign.groups) if group.draw is not None]
        earlier = [n for name in campaign.earlier for n in answered.get(name, ())]
        value = {
            "psd-rows": 1,
            "shares": campaign.shares,
            "answered": {**answered, campaign.digest: asked},
            "groups": base64.b64encode(groups.astype(np.uint8).tobytes()).decode(),
        }
        content = canonical_json({**value, "digest": campaign_digest(value)}).encode()
        write_file(self._path, content, overwrite=not is_new, mode=0o600)
        return np.where(np.isin(groups, earlier), -1, groups)

    def _draw(
        self, campaign: Campaign, rows: int
    ) -> tuple[NDArray[np.int64], dict[str, list[int]]]:
        """Draw the group of each row."""
        return draw_groups(campaign, ManyWords(rows)), {}

    def _read(
        self, campaign: Campaign, rows: int
    ) -> tuple[NDArray[np.int64], dict[str, list[int]]]:
        """Groups, and the groups that were asked in each answered campaign, of the file."""
        try:
            if os.stat(self._path).st_nlink > 1:
                raise LedgerError(
                    "store must have one name, and it has a hard link, by which rows could answer "
                    "twice; remove one of the two names"
                )
            size = os.path.getsize(self._path)
            if size > _LIMIT:
                raise ValueError
            value = strict_json(Path(self._path).read_bytes(), _LIMIT)
            if value.get("psd-row-store") in (1, 2):  # the key of older formats, and their numbers
                raise LedgerError(
                    f"store {old_format('row store', value['psd-row-store'])}; what was spent "
                    "stays spent, and a new store of the same rows is no fresh budget"
                )
            if value["digest"] != campaign_digest(value) or value["psd-rows"] != 1:
                raise ValueError
            groups = np.frombuffer(base64.b64decode(value["groups"]), np.uint8).astype(np.int64)
        except LedgerError:
            raise
        except (OSError, PsdError, ValueError, TypeError, KeyError, AttributeError):
            raise LedgerError("store is damaged or of another kind") from None
        answered = dict(value["answered"])
        continues = campaign.digest in answered or not answered.keys().isdisjoint(campaign.earlier)
        if not continues or value["shares"] != campaign.shares or len(groups) != rows:
            raise LedgerError(
                "store must be of these rows, and of an earlier round of this campaign with equal "
                "shares; take another file for another campaign"
            )
        return groups, answered
