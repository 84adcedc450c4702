"""Campaigns as the collector reads and writes them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from psd._util.atomic_write import write_file
from psd.apps.local.device import Campaign, DeviceError, campaign_digest, canonical_json
from psd.errors import (
    BudgetError,
    LedgerError,
    ParameterError,
    PsdError,
    RandomnessError,
    WriteError,
)

_KINDS: dict[int, type[PsdError]] = {
    2: ParameterError,
    4: BudgetError,
    6: WriteError,
    9: LedgerError,
    70: RandomnessError,
}


@contextmanager
def explain_device() -> Iterator[None]:
    """Raise what the device refuses as an error of the library with the same sentence."""
    try:
        yield
    except DeviceError as error:
        raise _KINDS[error.code](str(error)) from None


def load_campaign(path: str) -> Campaign:
    """Read a campaign, with the checks of the device."""
    with explain_device():
        return Campaign.load(path)


def campaign_of(content: dict[str, Any]) -> Campaign:
    """Campaign of its content, after its digest was added."""
    content = {**content, "digest": campaign_digest(content)}
    with explain_device():
        return Campaign.parse(canonical_json(content).encode())


def encode_campaign(campaign: Campaign) -> bytes:
    """Bytes of the file of a campaign."""
    return canonical_json(campaign.content).encode() + b"\n"


def write_campaign(
    campaign: Campaign, path: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """Write the file of a campaign, whole or not at all.

    Parameters
    ----------
    campaign : Campaign
        As `psd.apps.local.design` and its kin return it. Public.
    path : path-like
        File to write.
    overwrite : bool
        Whether an existing file is replaced.

    Raises
    ------
    WriteError
        If the file exists or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from psd.apps import local
    >>> campaign = local.design((126.4, 37, 127.6, 38), 2, 20_000, rounds=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     local.write_campaign(campaign, folder + "/c.json")
    ...     local.describe(folder + "/c.json").epsilon
    '2'
    """
    write_file(path, encode_campaign(campaign), overwrite=overwrite)
