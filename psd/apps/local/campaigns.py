"""Campaigns as the collector reads and writes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from psd.apps.local.device import Campaign, DeviceError, campaign_digest, canonical_json
from psd.errors import (
    BudgetError,
    LedgerError,
    ParameterError,
    PsdError,
    RandomnessError,
    WriteError,
)

__all__ = ["campaign_of", "encode_campaign", "explain_device", "load_campaign"]

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
