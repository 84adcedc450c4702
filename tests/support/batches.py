"""Rows as a source hands them over, and what it says when it refuses."""

import pytest

import psd
from psd.errors import InputDataError
from psd.ingest.sources import Columns, read

DOMAIN = psd.Domain(bounds=(126, 37, 128, 38))
EARTH = psd.Domain(bounds=(-180, -90, 180, 90))

# Stands in private data; no message may quote it.
SECRET = "8642.13579"


def one(data, **columns):
    """The only batch of an input."""
    (batch,) = read(data, Columns(**columns), DOMAIN)
    return batch


def refused(data, error=InputDataError, **columns):
    """The one line that an input is refused with; it quotes no value and carries no context."""
    with pytest.raises(error) as raised:
        list(read(data, Columns(**columns), DOMAIN))
    message = str(raised.value)
    assert SECRET not in message
    assert "\n" not in message
    assert raised.value.__suppress_context__ or raised.value.__context__ is None
    return message


def rows_of(data, **columns):
    """Records as (x, y) or (x, y, user), in their order."""
    rows = []
    for batch in read(data, Columns(**columns), EARTH):
        parts = [batch.x.tolist(), batch.y.tolist()]
        parts += [] if batch.user is None else [batch.user.to_pylist()]
        rows += zip(*parts, strict=True)
    return rows
