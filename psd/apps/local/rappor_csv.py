"""Reports of other clients of RAPPOR: CSV files as google/rappor writes them.

References
----------
google/rappor, ``doc/data-flow.md``: columns client, cohort, bloom, prr, irr; bits are texts of 0
and 1, the highest bit first. A word has the same bits as here (`psd.apps.local.device.RapporDraw`).
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, TextIO

import numpy as np

from psd.apps.local.device import Campaign, keyed_words
from psd.apps.local.lines import Reports
from psd.errors import InputDataError, ParameterError

__all__ = ["read_rappor_csv"]

_ROWS: Final = 2**18


def read_rappor_csv(
    campaign: Campaign, paths: Sequence[str], refused: dict[str, int]
) -> Iterator[Reports]:
    """Reports of a campaign of words in CSV files with the columns cohort, and irr or bits.

    Counts are added to `refused`: a row of which the bits or the cohort are not those of the
    campaign has no answer of the protocol.

    P1. Other columns are not kept: bloom and prr would tell the answer and its settled bits.

    P2. The nonce of a row follows from the content of its file and from its number among the valid
    rows, by HMAC. So a file that is read again gives the same reports, and each counts once.
    """
    if campaign.question != "words":
        raise ParameterError(
            f"campaign must ask for words, got {campaign.question}; other clients have the bits of "
            "words"
        )
    for path in paths:
        try:
            with open(path, "rb") as file:
                secret = hashlib.file_digest(file, "sha256").hexdigest()
            words = keyed_words(secret, campaign.digest)
            with open(path, encoding="utf-8-sig", newline="") as text:
                answers = _answers(campaign, text, refused)
                while batch := list(islice(answers, _ROWS)):
                    nonce = np.fromiter(islice(words, 2 * len(batch)), np.uint64)
                    codes = np.frombuffer(b"".join(batch), np.uint8).reshape(len(batch), -1)
                    yield Reports(group=0, nonce=nonce.reshape(-1, 2), codes=codes)
        except OSError as error:
            raise InputDataError(f"lines cannot be read: {error.strerror}") from None
        except (UnicodeDecodeError, csv.Error):
            raise InputDataError("lines must be CSV in UTF-8") from None


def _answers(campaign: Campaign, file: TextIO, refused: dict[str, int]) -> Iterator[bytes]:
    """Sets of the valid rows, in the bytes of a report."""
    draw = campaign.groups[0].draw
    cohorts = {str(i): i.to_bytes(2, "little") for i in range(draw.cohorts)}
    reader = csv.DictReader(file, strict=True)
    names = reader.fieldnames or ()
    column = "irr" if "irr" in names else "bits"
    if not {"cohort", column} <= {*names}:
        raise InputDataError("lines must have the columns cohort, and irr or bits")
    for row in reader:
        bits, cohort = row[column] or "", row["cohort"] or ""
        if len(bits) == draw.answers and not bits.strip("01") and cohort in cohorts:
            yield int(bits, 2).to_bytes(-(-draw.answers // 8), "little") + cohorts[cohort]
        else:
            refused["answer"] += 1
