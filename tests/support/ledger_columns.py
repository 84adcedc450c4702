"""Columns that datasets of test ledgers register, and readings of requests that agree with them."""

from psd.ingest.columns import reading_of
from psd.ingest.sources import Columns
from psd.ledger.charges import ChargeRequest
from psd.privacy.loss import Loss
from psd.privacy.unit import PrivacyUnit

BY_LON_LAT = (reading_of(Columns()),)


def columns_of(kind, user="user", time="time"):
    """Columns of a unit: ids where it has users, times where it has days."""
    if kind == "record":
        return Columns()
    return Columns(user=user, time=time if kind == "user-day" else None)


def readings_of(unit):
    """How the records of a request are read, by the same columns."""
    columns = columns_of(unit.kind)
    return (reading_of(columns),)


def request_for(loss, unit=None, **more):
    """Request of a loss, or of nano-epsilon, whose records are read as its unit registers."""
    unit = unit or PrivacyUnit()
    loss = loss if isinstance(loss, Loss) else Loss.pure(loss)
    plain = {"loss": loss, "unit": unit, "what": "build", "readings": readings_of(unit)}
    return ChargeRequest(**{**plain, **more})
