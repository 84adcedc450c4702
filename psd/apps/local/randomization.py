"""Devices for tests and tables: reports one by one and in arrays, and which rows have answered.

Each device uses words of its own in the order of `psd.apps.local.device`, so the same words give
the same report. A row keeps its group over rounds of equal shares, and is asked once.
"""

from __future__ import annotations

import base64
import csv
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from psd._util.atomic_write import check_free, write_file
from psd._util.json_toml import strict_json
from psd.apps.local.campaign_design import answers_of_parts, regions_of_campaign
from psd.apps.local.campaigns import explain_device, load_campaign
from psd.apps.local.collection import Reports
from psd.apps.local.device import (
    DEPTH,
    PLACES,
    SHARES,
    UNIT,
    Campaign,
    HashingDraw,
    KaryDraw,
    NumberDraw,
    RapporDraw,
    Store,
    SubsetDraw,
    UnaryDraw,
    Words,
    answer_place,
    campaign_digest,
    canonical_json,
    digits_for,
    lock_store,
    parse_nano,
    report_line,
)
from psd.errors import (
    InputDataError,
    LedgerError,
    ParameterError,
    PsdError,
    RandomnessError,
    WriteError,
)
from psd.space.lattice_axis import EvenAxis
from psd.version import old_format

__all__ = ["find_answers"]


Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_WORD = 64


def system_words(rows: int, columns: int) -> NDArray[np.uint64]:
    """Words of the operating system."""
    try:
        content = os.urandom(8 * rows * columns)
    except (OSError, NotImplementedError):
        raise RandomnessError("the operating system provides no random numbers") from None
    return np.frombuffer(content, np.uint64).reshape(rows, columns)


@dataclass
class ManyWords:
    """Words of many devices, one row each, and how many each has used."""

    devices: int
    # Gives so many rows and columns of fresh words.
    more: Callable[[int, int], NDArray[np.uint64]] = system_words

    def __post_init__(self) -> None:
        """Begin with a few words."""
        self._words = self.more(self.devices, 8)
        self._used = np.zeros(self.devices, np.int64)

    def word(self, rows: Integers) -> NDArray[np.uint64]:
        """Next word of each of these devices."""
        column = self._used[rows]
        self._used[rows] += 1
        if len(rows) and column.max() >= self._words.shape[1]:
            fresh = self.more(self.devices, self._words.shape[1])
            self._words = np.concatenate([self._words, fresh], axis=1)
        return self._words[rows, column]

    def keeps(self, threshold: int, rows: Integers) -> Flags:
        """Draw true with probability ``threshold / 2^62``, for each of these devices."""
        return self.word(rows) >> np.uint64(2) < np.uint64(threshold)

    def below(self, limit: int, rows: Integers) -> Integers:
        """Draw a uniform integer below a limit, for each of these devices."""
        drawn = np.zeros(len(rows), np.uint64)
        pending = np.arange(len(rows))
        last = (1 << _WORD) // limit * limit - 1
        while len(pending):
            # As the device does, words beyond the last multiple of the limit are drawn again.
            word = self.word(rows[pending])
            drawn[pending] = word
            pending = pending[word > np.uint64(last)]
        return (drawn % np.uint64(limit)).astype(np.int64)


def draw_groups(campaign: Campaign, words: ManyWords) -> Integers:
    """Group of each device, by the shares."""
    # Shares are integers, so one uniform integer among their sum chooses a group exactly.
    ends = np.cumsum([group.share for group in campaign.groups])
    number = words.below(SHARES, np.arange(words.devices))
    return np.searchsorted(ends, number, side="right").astype(np.int64)


def find_answers(
    campaign: Campaign, group: int, x: NDArray[Any], y: NDArray[np.float64]
) -> Integers:
    """Answer of each point, or number or option x, as `Campaign.answer_of` of the device."""
    partition = campaign.groups[group].partition
    if campaign.question not in PLACES:
        kind = object if campaign.question == "words" else np.int64
        return np.array([campaign.answer_of(group, value) for value in x.tolist()], kind)
    west, south, east, north = campaign.bounds
    inside = (x >= west) & (x <= east) & (y >= south) & (y <= north)
    # Outside the bounds is an answer of its own, the last one.
    answers = np.full(len(x), len(partition.names), np.int64)
    if campaign.question == "regions":
        lowest = regions_of_campaign(campaign).assign(x[inside], y[inside])
        answers[inside] = answers_of_parts(partition)[lowest]
        return answers
    x_axis = EvenAxis(low=west, high=east, cells=2**DEPTH)
    y_axis = EvenAxis(low=south, high=north, cells=2**DEPTH)
    # Lattice cells along the curve of the keys: the bits of column and row take turns.
    columns, rows = x_axis.find_cells(x[inside]), y_axis.find_cells(y[inside])
    along = _interleave(columns.astype(np.int64)) | _interleave(rows.astype(np.int64)) << 1
    answers[inside] = np.searchsorted(partition.starts, along, side="right") - 1
    return answers


def _interleave(number: Integers) -> Integers:
    """Put a zero bit before each of 20 bits."""
    spread = np.zeros(len(number), np.int64)
    for bit in range(20):
        spread |= (number >> bit & 1) << 2 * bit
    return spread


def randomise_group(campaign: Campaign, group: int, answers: Integers, words: ManyWords) -> Reports:
    """Reports of devices that are all in one group."""
    draw = campaign.groups[group].draw
    codes = _DRAWS[type(draw)](draw, answers, words)
    every = np.arange(len(answers))
    nonce = np.stack([words.word(every), words.word(every)], axis=1)
    return Reports(group=group, nonce=nonce, codes=codes)


def _k_ary(draw: KaryDraw, answers: Integers, words: ManyWords) -> Integers:
    codes = answers.copy()
    # Devices that do not keep their answer give another one.
    rows = np.flatnonzero(~words.keeps(draw.threshold, np.arange(len(answers))))
    # The others are numbered without the true one.
    other = words.below(draw.answers - 1, rows)
    codes[rows] = other + (other >= answers[rows])
    return codes


def _hashing(draw: HashingDraw, answers: Integers, words: ManyWords) -> Integers:
    every, g = np.arange(len(answers)), draw.modulus
    function = 1 + words.below(draw.functions - 1, every)
    code = np.asarray(draw.codes, np.int64)[answers]
    value, a = np.zeros(len(answers), np.int64), function
    # The value of a linear function: the sum of products of digits in base g.
    for _ in range(digits_for(draw.answers, g)):
        value += a % g * (code % g)
        a, code = a // g, code // g
    value %= g
    rows = np.flatnonzero(~words.keeps(draw.threshold, every))
    value[rows] = (value[rows] + 1 + words.below(g - 1, rows)) % g
    return function * g + value


def _unary(draw: UnaryDraw, answers: Integers, words: ManyWords) -> NDArray[np.uint8]:
    other, true = draw.thresholds
    every = np.arange(len(answers))
    bits = np.zeros((len(answers), draw.answers), bool)
    for i in range(draw.answers):
        word = words.word(every) >> np.uint64(2)
        bits[:, i] = word < np.where(answers == i, np.uint64(true), np.uint64(other))
    return np.packbits(bits, axis=1, bitorder="little")


def _subset(draw: SubsetDraw, answers: Integers, words: ManyWords) -> NDArray[np.uint8]:
    """Reports of `SubsetDraw`; devices that keep their answer have one step less."""
    every = np.arange(len(answers))
    bits = np.zeros((len(answers), draw.answers), bool)
    true = words.keeps(draw.threshold, every)
    bits[every[true], answers[true]] = True
    others = draw.answers - 1
    # Floyd's uniform subsets, for all devices at once: a number that is taken becomes the last one.
    for last in range(others - draw.size, others):
        rows = every if last > others - draw.size else every[~true]
        other = words.below(last + 1, rows)
        chosen = other + (other >= answers[rows])
        chosen = np.where(bits[rows, chosen], last + (last >= answers[rows]), chosen)
        bits[rows, chosen] = True
    return np.packbits(bits, axis=1, bitorder="little")


def _rappor(draw: RapporDraw, answers: NDArray[Any], words: ManyWords) -> NDArray[np.uint8]:
    """Reports of `RapporDraw`, of answers that are settled by words of their own."""
    every = np.arange(len(answers))
    cohorts = words.below(draw.cohorts, every)
    # Bits of each answer before they are randomised; a word is hashed once in each cohort.
    settled = np.zeros((len(answers), draw.answers), bool)
    bits_of: dict[tuple[Any, int], list[int]] = {}
    for row, key in enumerate(zip(answers.tolist(), cohorts.tolist(), strict=True)):
        if key not in bits_of:
            bits_of[key] = list(draw.bits(*key))
        settled[row, bits_of[key]] = True
    flip = draw.flips << 54
    # First the bits that are settled for all reports of a device, then those of this report.
    for rates in ((flip, UNIT - flip), draw.thresholds):
        # A bit is 1 with the rate of its own value: `high` if it was 1 before.
        low, high = map(np.uint64, rates)
        for i in range(draw.answers):
            word = words.word(every) >> np.uint64(2)
            settled[:, i] = word < np.where(settled[:, i], high, low)
    codes = np.packbits(settled, axis=1, bitorder="little")
    if draw.encoding == "one-hot":
        return codes
    return np.concatenate([codes, cohorts.astype("<u2")[:, None].view(np.uint8)], axis=1)


def _drawn_numbers(draw: NumberDraw, answers: Integers, words: ManyWords) -> Integers:
    """Reports of `NumberDraw`, for all devices of a step at once."""
    codes = np.zeros(len(answers), np.int64)
    for answer in np.unique(answers):
        rows = np.flatnonzero(answers == answer)
        sizes, weights = zip(*draw.runs(int(answer)), strict=True)
        # One word decides among the outputs, by running totals of their integer weights.
        ends = np.cumsum(np.repeat(np.array(weights, np.int64), sizes))
        codes[rows] = np.searchsorted(ends, words.below(int(ends[-1]), rows), side="right")
    return codes


_DRAWS: dict[type[Any], Callable[..., Any]] = {
    HashingDraw: _hashing,
    KaryDraw: _k_ary,
    NumberDraw: _drawn_numbers,
    RapporDraw: _rappor,
    SubsetDraw: _subset,
    UnaryDraw: _unary,
}


def format_reports(campaign: Campaign, reports: Reports) -> list[str]:
    """Lines of reports."""
    draw = campaign.groups[reports.group].draw
    if reports.codes.ndim == 2:
        texts = [f'"{row.tobytes().hex()}"' for row in reports.codes]
    elif isinstance(draw, HashingDraw):
        # A code of hashing is function x modulus + value.
        pairs = (column.tolist() for column in np.divmod(reports.codes, draw.modulus))
        texts = [f"[{function},{value}]" for function, value in zip(*pairs, strict=True)]
    else:
        texts = [f"[{code}]" for code in reports.codes.tolist()]
    # A nonce is two words of 64 bits, 32 digits.
    high, low = (column.tolist() for column in reports.nonce.T)
    nonces = (f"{a:016x}{b:016x}" for a, b in zip(high, low, strict=True))
    return [
        report_line(campaign.digest, reports.group, nonce, text)
        for nonce, text in zip(nonces, texts, strict=True)
    ]


_LIMIT = 2**31

# Rows whose groups are drawn together; bounds the memory, not the result.
_DRAWN = 2**16


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
        sizes = [min(_DRAWN, rows - start) for start in range(0, rows, _DRAWN)]
        parts = [draw_groups(campaign, ManyWords(size)) for size in sizes]
        groups = np.concatenate([np.empty(0, np.int64), *parts])
        return self._answer(campaign, groups, {}, is_new=True)

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
        # Rows whose group answered an earlier campaign are in no group, and answer nothing.
        return np.where(np.isin(groups, earlier), -1, groups)

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


# Rows that are answered together: each takes a word for each of hundreds of bits, 8 bytes each.
_ROWS = 2**13

# Files that the reports are laid into, to be sorted one at a time.
_SHELVES = 64

_NONCE = '"nonce":"'


def client(output: str, *, js: bool = False, overwrite: bool = False) -> None:
    """Write the program of the device: one file, standard library alone.

    Parameters
    ----------
    output : str
        File to write.
    js : bool
        Whether it is the one for browsers, in JavaScript, instead of the one in Python.
    overwrite : bool
        Whether an existing file is replaced.

    Raises
    ------
    WriteError
        If the file exists or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     client(folder + "/device.py")
    ...     print(Path(folder + "/device.py").exists())
    True
    """
    source = Path(__file__).with_name("device.js" if js else "device.py").read_bytes()
    write_file(output, source, overwrite=overwrite)


def create_store(store: str, cap: str) -> None:
    """Create the store of a device, with the largest sum of epsilon of all campaigns."""
    with explain_device():
        Store.create(store, parse_nano(cap))


def answer(
    campaign: str, store: str, x: float | str, y: float, ticket: str | None = None
) -> str | None:
    """Report of the device with a store; None if it is not asked now, or answered before."""
    # The point is private: NaN is *outside*, and a number or an option is x.
    loaded = load_campaign(campaign)
    with explain_device():
        return answer_place(store, loaded, x, y, Words(), ticket or "")


def randomize(
    campaign: str,
    rows: str,
    output: str,
    *,
    x: str = "lon",
    y: str = "lat",
    value: str = "value",
    store: str | None = None,
    overwrite: bool = False,
) -> int:
    """Write reports of the rows of a table, as if each row were a device; for tests and trials.

    Guarantees
    ----------
    - The reports are those of the device, in the order of their random nonces.
    - Every row of a group that is asked has a report, wherever its point is.
    - With a store a row answers once. Without it each call draws anew, and costs epsilon again.

    Parameters
    ----------
    campaign : str
        File of the campaign.
    rows : str
        CSV file with a header. **Private.**
    output : str
        File of lines to write.
    x, y : str
        Columns of the coordinates, if the campaign asks for places.
    value : str
        Column of the numbers or options, if it asks for these.
    store : str, optional
        File with the group of each row; a campaign of several rounds needs it. It is created in
        the first round. **Private.**
    overwrite : bool
        Whether an existing file is replaced.

    Returns
    -------
    int
        Number of reports.

    Raises
    ------
    ParameterError
        If the campaign is not valid, or of several rounds and there is no store.
    InputDataError
        If the table cannot be read.
    LedgerError
        If the store is missing in a later round, damaged, or of rows that have answered.
    WriteError
        If the file exists or cannot be written.

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
    >>> folder.cleanup()
    """
    loaded = load_campaign(campaign)
    if store is None and any(group.share and group.draw is None for group in loaded.groups):
        raise ParameterError(
            "store must be given for a campaign of several rounds, in which each row has its group"
        )
    check_free(output, overwrite=overwrite)
    names = (x, y) if loaded.question in PLACES else (value, value)
    is_text = loaded.question in ("options", "words")
    kept = None if os.path.isfile(rows) else list(_read_parts(rows, *names, is_text))  # a pipe

    def points() -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        return _read_parts(rows, *names, is_text) if kept is None else iter(kept)

    groups = None
    if store is not None:  # all rows have been read before one of them answers
        groups = RowStore(store).take(loaded, sum(len(part[0]) for part in points()))
    with ExitStack() as stack:
        shelves, count = _shelve(
            stack, Path(output).parent, _report_lines(loaded, groups, points())
        )
        write_file(output, map(_sorted_lines, shelves), overwrite=overwrite)
    return count


def _report_lines(
    campaign: Campaign,
    groups: NDArray[np.int64] | None,
    parts: Iterator[tuple[NDArray[Any], NDArray[Any]]],
) -> Iterator[list[str]]:
    """Reports of the rows whose group is asked, a part of the rows after the other."""
    start = 0
    for x, y in parts:
        stop = start + len(x)
        drawn = draw_groups(campaign, ManyWords(len(x))) if groups is None else groups[start:stop]
        if len(drawn) != len(x):
            raise InputDataError("the table must stay as it is while it is read, got more rows")
        for number, group in enumerate(campaign.groups):
            mine = np.flatnonzero(drawn == number)
            if len(mine) and group.draw is not None:
                answers = find_answers(campaign, number, x[mine], y[mine])
                reports = randomise_group(campaign, number, answers, ManyWords(len(mine)))
                yield format_reports(campaign, reports)
        start = stop


def _shelve(
    stack: ExitStack, folder: Path, lines: Iterable[list[str]]
) -> tuple[list[IO[bytes]], int]:
    """Lay lines into files without names by the first digits of their nonces; count them."""
    try:
        files = (TemporaryFile(dir=folder) for _ in range(_SHELVES))  # noqa: SIM115
        shelves: list[IO[bytes]] = [stack.enter_context(file) for file in files]
        count = 0
        for some in lines:
            # The lines of one file at a time are then in memory, in place of all.
            on_shelf: list[list[str]] = [[] for _ in shelves]
            for line in some:
                digits = line.partition(_NONCE)[2][:2]
                on_shelf[int(digits, 16) * _SHELVES // 256].append(f"{line}\n")
            for shelf, each in zip(shelves, on_shelf, strict=True):
                shelf.write("".join(each).encode())
            count += len(some)
    except PsdError:  # of the table
        raise
    except OSError as error:
        raise WriteError(f"cannot write beside {folder}: {error.strerror}", path=folder) from None
    return shelves, count


def _sorted_lines(shelf: IO[bytes]) -> bytes:
    """Lines of a file in the order of their nonces."""
    shelf.seek(0)
    lines: list[bytes] = shelf.readlines()
    nonce = _NONCE.encode()
    lines.sort(key=lambda line: line.partition(nonce)[2])
    return b"".join(lines)


def read_points(path: str, x: str, y: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Two columns of a CSV file with a header; what is not a number is NaN."""
    xs, ys = zip(*_read_parts(path, x, y, is_text=False), strict=True)
    return np.concatenate(xs), np.concatenate(ys)


def _read_parts(
    path: str, x: str, y: str, is_text: bool
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Columns of a CSV file, in parts."""
    convert = (lambda text: text or "") if is_text else _number
    kind = object if is_text else np.float64
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            names = sorted({x, y}, key=(x, y).index)
            if not set(names) <= set(reader.fieldnames or ()):
                raise InputDataError(f"the table must have the columns {' and '.join(names)}")
            pending: list[tuple[Any, Any]] = []
            for row in reader:
                pending.append((convert(row[x]), convert(row[y])))
                if len(pending) == _ROWS:
                    yield _columns(pending, kind)
                    pending = []
            yield _columns(pending, kind)
    except (UnicodeDecodeError, csv.Error):
        raise InputDataError("the table must be CSV in UTF-8") from None
    except OSError as error:
        raise InputDataError(f"the table cannot be read: {error.strerror}") from None


def _columns(points: list[tuple[Any, Any]], kind: type[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    table = np.array(points, kind).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _number(text: str | None) -> float:
    """Number of a text, or NaN."""
    try:
        return float(text) if text and "_" not in text else np.nan
    except ValueError:
        return np.nan
