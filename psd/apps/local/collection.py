"""Collect reports: lines become columns, and columns parts in which each nonce stands once.

A line is taken only in the spelling of `psd.apps.local.device.report_line`; a refused one is
counted, never quoted. A part holds no time, address or id; its name is a digest of its content, so
one that is written again, after a crash, takes its own place.

Words may also come from clients of RAPPOR, in CSV files with the columns client, cohort, bloom, prr
and irr (google/rappor, ``doc/data-flow.md``): bits of `RapporDraw` as 0 and 1, the highest first.
"""

from __future__ import annotations

import csv
import hashlib
import io
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, TextIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from psd._util.atomic_write import write_file
from psd._util.json_toml import strict_json
from psd.apps.local.campaigns import load_campaign
from psd.apps.local.device import Campaign, canonical_json, keyed_words
from psd.apps.local.protocols import ReportProtocol, report_protocol_of
from psd.errors import InputDataError, ParameterError, PsdError, WriteError

KINDS: Final = ("malformed", "campaign", "group", "answer", "ticket", "repeated")
"""Why lines are refused: another spelling; another campaign; a group that is not asked; an answer
that its protocol does not have; a ticket that is not listed; a nonce that was seen before."""

_BLOCK = 2**25
_LONGEST = 4096

_LINE = (
    r'^\{"psd-report":1,"campaign":"(?P<campaign>[A-Za-z0-9_-]{22})",'
    r'"group":(?P<group>0|[1-9][0-9]?),"nonce":"(?P<nonce>[0-9a-f]{32})","answer":'
    r"(?:\[(?P<first>0|[1-9][0-9]{0,8})(?P<second>|,0|,[1-9][0-9]{0,8})\]"
    r'|"(?P<mask>[0-9a-f]+)")\}\n$'
)

_HEX = np.zeros(256, np.uint8)
_HEX[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    """Reports of one group as columns."""

    group: int
    nonce: NDArray[np.uint64]  # (n, 2) uint64; upper and lower half
    # Code of each report, (n,) int64, or its set, (n, bytes) uint8.
    codes: NDArray[np.int64] | NDArray[np.uint8]


def read_lines(
    campaign: Campaign,
    paths: Sequence[str],
    refused: dict[str, int],
    tickets: frozenset[bytes] | None = None,
) -> Iterator[Reports]:
    """Reports of open groups in files of lines (``-`` is standard input); counts the refused."""
    groups = {
        number: report_protocol_of(group)
        for number, group in enumerate(campaign.groups)
        if group.draw is not None
    }
    for path in paths:
        try:
            standard = path == "-"
            with open(sys.stdin.fileno() if standard else path, "rb", closefd=not standard) as file:
                for block in _blocks(file, refused):
                    # With tickets, as their SHA-256, a nonce must be one of them.
                    yield from _parse(campaign.digest, groups, block, refused, tickets)
        except OSError as error:
            raise InputDataError(f"lines cannot be read: {error.strerror}") from None


def read_tickets(path: str) -> frozenset[bytes]:
    """Hashes of tickets: a file of lines of 64 hex digits, SHA-256 of each ticket's text."""
    try:
        with open(path, "rb") as file:
            lines = file.read().split()
    except OSError as error:
        raise ParameterError(f"tickets cannot be read: {error.strerror}") from None
    try:
        hashes = frozenset(bytes.fromhex(line.decode("ascii")) for line in lines)
    except ValueError:
        hashes = frozenset({b""})
    if any(len(entry) != 32 for entry in hashes):
        raise ParameterError("tickets must be lines of 64 hex digits, SHA-256 of each ticket")
    return hashes


def _blocks(file: BinaryIO, refused: dict[str, int]) -> Iterator[bytes]:
    """Blocks of full lines; a line that is longer than a block is refused and skipped."""
    rest, skipping = b"", False
    while content := file.read(_BLOCK):
        # Of a line that is too long, all up to its end is skipped.
        start = content.find(b"\n") + 1 if skipping else 0
        skipping = skipping and not start
        end = content.rfind(b"\n") + 1
        if skipping:
            continue
        if end > start:
            yield rest + content[start:end]
            rest = b""
        rest += content[end:]
        if len(rest) > _BLOCK:
            refused["malformed"] += 1
            rest, skipping = b"", True
    if rest:
        yield rest + b"\n"


def _parse(
    digest: str,
    groups: Mapping[int, ReportProtocol],
    block: bytes,
    refused: dict[str, int],
    tickets: frozenset[bytes] | None,
) -> Iterator[Reports]:
    """Reports of a block of lines, group by group."""
    # An array of lines with their ends over the bytes of the block, without a copy.
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + 1
    offsets = np.concatenate([[0], ends]).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(block)]
    lines = pa.Array.from_buffers(pa.large_binary(), len(ends), buffers)
    # A line is refused by its length before the expression, then by form, campaign, group, answer.
    short = lines.filter(pc.less(pc.binary_length(lines), _LONGEST))
    fields = pc.extract_regex(short, _LINE).drop_null()
    refused["malformed"] += len(lines) - len(fields)
    named = fields.field("campaign")
    is_ours = pc.equal(named, pa.scalar(digest.encode(), named.type))
    refused["campaign"] += len(fields) - pc.sum(is_ours).as_py() if len(fields) else 0
    fields = fields.filter(is_ours)
    number = _integers(fields.field("group"))
    refused["group"] += int(np.isin(number, list(groups), invert=True).sum())
    for group, protocol in groups.items():
        chosen = fields.filter(pa.array(number == group))
        if not len(chosen):
            continue
        codes, valid = _read_answers(protocol, chosen)
        refused["answer"] += int((~valid).sum())
        nonce = _unhex(chosen.field("nonce").filter(pa.array(valid)), 32)
        if tickets is not None:
            # A ticket's hash is that of its 32 hex digits.
            texts = (row.tobytes().hex().encode() for row in nonce)
            listed = np.array([hashlib.sha256(text).digest() in tickets for text in texts], bool)
            refused["ticket"] += int((~listed).sum())
            nonce, codes = nonce[listed], codes[listed]
        # 128 bits as two words, which sort as the text does.
        halves = nonce.view(">u8").astype(np.uint64)
        yield Reports(group=group, nonce=halves, codes=codes)


def _integers(texts: pa.Array) -> NDArray[np.int64]:
    """Integers of decimal texts; -1 where the text is empty."""
    filled = pc.if_else(pc.equal(pc.binary_length(texts), 0), b"-1", texts)
    values: NDArray[np.int64] = (
        filled.cast(pa.large_string()).cast(pa.int64()).to_numpy(zero_copy_only=False)
    )
    return values


def _read_answers(
    protocol: ReportProtocol, fields: pa.Array
) -> tuple[NDArray[np.int64] | NDArray[np.uint8], NDArray[np.bool_]]:
    """Codes or sets of the valid answers, and which answers are valid."""
    if protocol.report == "mask":
        text = fields.field("mask")
        digits = 2 * protocol.width
        valid = pc.equal(pc.binary_length(text), digits).to_numpy(zero_copy_only=False)
        masks = _unhex(text.filter(pa.array(valid)), digits)
        good = protocol.read_masks(masks)
        valid[valid] = good
        return masks[good], valid
    first = _integers(fields.field("first"))
    # The second integer stands behind a comma.
    second = _integers(pc.binary_replace_slice(fields.field("second"), 0, 1, b""))
    has_form = (first >= 0) & ((second >= 0) == (protocol.report == "pair"))
    codes, valid = protocol.read(first, np.maximum(second, 0))
    valid = valid & has_form
    return codes[valid], valid


def _unhex(texts: pa.Array, digits: int) -> NDArray[np.uint8]:
    """Bytes of texts of hex digits of one length."""
    joined = pc.cast(texts, pa.binary(digits))
    buffer = joined.buffers()[1]
    start = joined.offset * digits
    # A view of the buffer; no text becomes a Python object.
    raw = np.frombuffer(buffer, np.uint8, len(joined) * digits, start) if len(joined) else _HEX[:0]
    values = _HEX[raw.reshape(-1, digits)]
    return np.ascontiguousarray(values[:, ::2] << 4 | values[:, 1::2])


KEY: Final = b"psd-local"

SCHEMA: Final = pa.schema(
    [
        pa.field("nonce_high", pa.uint64(), nullable=False),
        pa.field("nonce_low", pa.uint64(), nullable=False),
        pa.field("group", pa.int16(), nullable=False),
        pa.field("code", pa.int32(), nullable=False),
        pa.field("mask", pa.binary()),
    ]
)
"""Columns of a part. Nonces are random, so they are written as they are; code is 0 where the
report is a set, and mask is null where it is not."""

_ROWS = 2**20
_BYTES = 2**27
_ROW_GROUP = 2**17
_LAYOUT: dict[str, Any] = {
    "compression": {name: "none" if "nonce" in name else "zstd" for name in SCHEMA.names},
    "use_dictionary": ["group"],
    "store_schema": False,
    "write_page_checksum": True,
}


@dataclass
class PartWriter:
    """Writes reports into a folder, a part for each million.

    P1. A part is complete under its name or not there: after a crash, reading the lines again gives
    the same parts, and a nonce counts once.
    """

    campaign: Campaign  # of the reports
    folder: Path  # where parts are written

    def write(self, reports: Iterable[Reports]) -> tuple[int, int]:
        """Write all reports; gives the number that was written and that of repeated nonces."""
        pending: list[Reports] = []
        written = repeated = 0
        for batch in reports:
            pending.append(batch)
            if sum(len(b.codes) for b in pending) >= _ROWS or (
                sum(b.codes.nbytes for b in pending) >= _BYTES
            ):
                rows, dropped = self._flush(pending)
                written, repeated, pending = written + rows, repeated + dropped, []
        rows, dropped = self._flush(pending)
        return written + rows, repeated + dropped

    def _flush(self, batches: Sequence[Reports]) -> tuple[int, int]:
        if not any(len(batch.codes) for batch in batches):
            return 0, 0
        table = pa.concat_tables([_table(batch) for batch in batches])
        table, repeated = drop_repeated(table)
        footer = canonical_json({"campaign": self.campaign.digest, "version": 1})
        sink = io.BytesIO()
        with pq.ParquetWriter(sink, SCHEMA, **_LAYOUT) as out:
            out.write_table(table, row_group_size=_ROW_GROUP)
            out.add_key_value_metadata({KEY: footer.encode()})
        content = sink.getvalue()
        name = f"part-{hashlib.sha256(content).hexdigest()[:32]}.parquet"
        write_file(self.folder / name, content, overwrite=True)
        return len(table), repeated


def _table(reports: Reports) -> pa.Table:
    """Columns of reports of one group."""
    rows = len(reports.codes)
    is_mask = reports.codes.ndim == 2
    code = np.zeros(rows, np.int32) if is_mask else reports.codes.astype(np.int32)
    mask = pa.nulls(rows, pa.binary())
    if is_mask:
        width = reports.codes.shape[1]
        # Sets of one width from one buffer, without a loop over rows.
        fixed = pa.Array.from_buffers(
            pa.binary(width), rows, [None, pa.py_buffer(np.ascontiguousarray(reports.codes))]
        )
        mask = fixed.cast(pa.binary())
    group = np.full(rows, reports.group, np.int16)
    columns = [*(pa.array(half) for half in reports.nonce.T), pa.array(group), pa.array(code), mask]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def drop_repeated(table: pa.Table) -> tuple[pa.Table, int]:
    """Sort by nonce; of reports with one nonce keep the least, in any order of arrival."""
    high, low, group, code = (column.to_numpy() for column in table.columns[:4])
    # By nonce, then by group and code; by set too where nonces repeat.
    order = np.lexsort((code, group, low, high))
    # Whether each report but the first has the nonce of the one before it, (n - 1,).
    repeats = (high[order][1:] == high[order][:-1]) & (low[order][1:] == low[order][:-1])
    if not repeats.any():
        return table.take(order), 0
    # Runs of one nonce are sorted by their sets too.
    masks = table.column("mask")
    starts = np.flatnonzero(repeats & ~np.concatenate([[False], repeats[:-1]]))
    for start in starts:
        end = start + 1
        while end < len(order) and repeats[end - 1]:
            end += 1
        run = order[start:end]
        rank = [(group[i], code[i], masks[int(i)].as_py() or b"") for i in run]
        order[start:end] = run[sorted(range(len(run)), key=rank.__getitem__)]
    is_first = np.concatenate([[True], ~repeats])
    return table.take(order[is_first]), int(repeats.sum())


def open_parts(campaign: Campaign, folder: Path) -> list[pq.ParquetFile]:
    """Parts of a campaign in a folder, by their names."""
    paths = sorted(folder.glob("part-*.parquet"))
    if not paths:
        raise InputDataError("folder must have parts of reports, got none; collect writes them")
    files = []
    for path in paths:
        try:
            file = pq.ParquetFile(path, page_checksum_verification=True, memory_map=True)
            footer = strict_json((file.metadata.metadata or {}).get(KEY, b""))
            if not file.schema_arrow.remove_metadata().equals(SCHEMA):
                raise ValueError
        except (pa.ArrowException, OSError, ValueError, PsdError):
            raise InputDataError("a part of the folder is damaged or of another kind") from None
        if footer != {"campaign": campaign.digest, "version": 1}:
            raise InputDataError(
                "folder must have parts of this campaign alone, got one of another campaign; "
                "collect each campaign into a folder of its own"
            )
        files.append(file)
    return files


_CSV_ROWS: Final = 2**18


def read_rappor_csv(
    campaign: Campaign, paths: Sequence[str], refused: dict[str, int]
) -> Iterator[Reports]:
    """Reports of a campaign of words in CSV files with the columns cohort, and irr or bits.

    A row whose bits or cohort are not those of the campaign is counted in `refused`.
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
                while batch := list(islice(answers, _CSV_ROWS)):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """How many reports were written, and how many lines were refused, by the kinds of `KINDS`."""

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

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from psd.apps import local
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name)
    >>> campaign = local.design((126.4, 37, 127.6, 38), 4, 2000, rounds=1)
    >>> local.write_campaign(campaign, path / "c.json")
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"lon": [127.0] * 2000, "lat": 37.5})
    >>> rows.to_csv(path / "rows.csv", index=False)
    >>> local.randomize(f"{path}/c.json", f"{path}/rows.csv", f"{path}/lines")
    2000
    >>> collected = local.collect(f"{path}/c.json", [f"{path}/lines"], f"{path}/parts")
    >>> collected.reports
    2000
    >>> folder.cleanup()
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
