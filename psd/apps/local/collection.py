"""Collect lines of reports into parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from psd.apps.local.campaigns import load_campaign
from psd.apps.local.lines import KINDS, read_lines, read_tickets
from psd.apps.local.parts import PartWriter
from psd.apps.local.rappor_csv import read_rappor_csv
from psd.errors import ParameterError, WriteError

__all__ = ["Collected", "collect"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What became of the lines.

    Parameters
    ----------
    reports : int
        Reports that were written.
    refused : dict
        Number of refused lines by kind, see `psd.apps.local.lines.KINDS`.
    """

    reports: int
    refused: dict[str, int]


def collect(
    campaign: str,
    lines: Sequence[str],
    into: str,
    *,
    tickets: str | None = None,
    rappor_csv: bool = False,
) -> Collected:
    """Read lines of reports, and write those of the campaign into a folder.

    Guarantees
    ----------
    - A report is written once, in one spelling, without its time or sender. Lines are never
      quoted; refused ones are counted by kind.
    - Repeating it, after a crash or by mistake, changes no count: a nonce counts once.

    Parameters
    ----------
    campaign : str
        File of the campaign.
    lines : sequence of str
        Files of lines; ``-`` is standard input.
    into : str
        Folder of the parts; it is created.
    tickets : str, optional
        File of SHA-256 hashes of tickets; a report counts only if its nonce is one of them.
    rappor_csv : bool
        Whether the files are CSV of clients of google/rappor, with the columns cohort, and irr or
        bits: texts of 0 and 1, the highest bit first. The campaign asks for words and has the
        settings of the clients. A row has no nonce, so each file counts once by its content.

    Raises
    ------
    ParameterError
        If the campaign or the tickets are not valid, or CSV has tickets.
    InputDataError
        If lines cannot be read.
    WriteError
        If the folder cannot be written.
    """
    loaded = load_campaign(campaign)
    if rappor_csv and tickets is not None:
        raise ParameterError("tickets must be without rappor_csv, got both; its rows have none")
    hashes = None if tickets is None else read_tickets(tickets)
    folder = Path(into)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(f"cannot write {into}: {error.strerror}", path=into) from None
    refused = dict.fromkeys(KINDS, 0)
    writer = PartWriter(loaded, folder)
    if rappor_csv:
        reports = read_rappor_csv(loaded, lines, refused)
    else:
        reports = read_lines(loaded, lines, refused, hashes)
    written, repeated = writer.write(reports)
    refused["repeated"] = repeated
    return Collected(reports=written, refused=refused)
