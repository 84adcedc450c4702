"""Lines of reports: from bytes to columns, and how many lines were refused, by kind.

A line is taken only in its one spelling, that of `psd.apps.local.device.report_line`. A refused
line is counted and never quoted.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from psd.apps.local.device import Campaign
from psd.apps.local.protocols import ReportProtocol, report_protocol_of
from psd.errors import InputDataError, ParameterError

__all__ = ["KINDS", "Reports", "read_lines", "read_tickets"]

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
    """Reports of the open groups of a campaign in files of lines; ``-`` is standard input.

    Counts of refused lines are added to `refused`. With SHA-256 of tickets, a nonce must be one.
    """
    groups = {
        number: report_protocol_of(group)
        for number, group in enumerate(campaign.groups)
        if group.draw is not None
    }
    for path in paths:
        try:
            with _open(path) as file:
                for block in _blocks(file, refused):
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


def _open(path: str) -> BinaryIO:
    """Open a file of lines."""
    return open(sys.stdin.fileno(), "rb", closefd=False) if path == "-" else open(path, "rb")


def _blocks(file: BinaryIO, refused: dict[str, int]) -> Iterator[bytes]:
    """Blocks of full lines; a line that is longer than a block is refused and skipped."""
    rest, skipping = b"", False
    while content := file.read(_BLOCK):
        start = content.find(b"\n") + 1 if skipping else 0
        skipping = skipping and not start
        end = content.rfind(b"\n") + 1
        if skipping:
            continue
        if end > start or (end and not rest):
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
    lines = _line_array(block)
    # A line is refused by its length before the expression, then by form, campaign, group, answer.
    short = lines.filter(pc.less(pc.binary_length(lines), _LONGEST))
    fields = pc.extract_regex(short, _LINE).drop_null()
    refused["malformed"] += len(lines) - len(fields)
    columns = {name: fields.field(name) for name in ("campaign", "group", "nonce")}
    ours = pc.equal(columns["campaign"], pa.scalar(digest.encode(), columns["campaign"].type))
    refused["campaign"] += len(fields) - pc.sum(ours).as_py() if len(fields) else 0
    fields = fields.filter(ours)
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
            listed = _listed(nonce, tickets)
            refused["ticket"] += int((~listed).sum())
            nonce, codes = nonce[listed], codes[listed]
        # 128 bits as two words, which sort as the text does.
        halves = nonce.view(">u8").astype(np.uint64)
        yield Reports(group=group, nonce=halves, codes=codes)


def _line_array(block: bytes) -> pa.Array:
    """Lines of a block with their ends, without a copy."""
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + 1
    offsets = np.concatenate([[0], ends]).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(block)]
    return pa.Array.from_buffers(pa.large_binary(), len(ends), buffers)


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


def _listed(nonce: NDArray[np.uint8], tickets: frozenset[bytes]) -> NDArray[np.bool_]:
    """Which nonces are tickets whose hash is listed; the hash is that of the 32 hex digits."""
    texts = (row.tobytes().hex().encode() for row in nonce)
    return np.array([hashlib.sha256(text).digest() in tickets for text in texts], bool)
