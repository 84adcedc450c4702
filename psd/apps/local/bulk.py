"""Many devices at once: reports from random words as the device draws them, in arrays.

Each device has words of its own, which it uses in the order of `psd.apps.local.device`: the same
words give the same report.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    SubsetDraw,
    UnaryDraw,
    digits_for,
    report_line,
)
from psd.apps.local.lines import Reports
from psd.apps.local.region_design import answers_of_parts, regions_of_campaign
from psd.errors import RandomnessError
from psd.space.lattice_axis import EvenAxis

__all__ = ["ManyWords", "draw_groups", "find_answers", "format_reports", "randomise_group"]

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
        stays: Flags = self.word(rows) >> np.uint64(2) < np.uint64(threshold)
        return stays

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
    """Reports of `KaryDraw`."""
    codes = answers.copy()
    rows = np.flatnonzero(~words.keeps(draw.threshold, np.arange(len(answers))))
    # The others are numbered without the true one.
    other = words.below(draw.answers - 1, rows)
    codes[rows] = other + (other >= answers[rows])
    return codes


def _hashing(draw: HashingDraw, answers: Integers, words: ManyWords) -> Integers:
    """Reports of `HashingDraw`."""
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
    """Reports of `UnaryDraw`."""
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
    settled = _true_bits(draw, answers, cohorts)
    flip = draw.flips << 54
    # First the bits that are settled for all reports of a device, then those of this report.
    for rates in ((flip, UNIT - flip), draw.thresholds):
        low, high = map(np.uint64, rates)
        for i in range(draw.answers):
            word = words.word(every) >> np.uint64(2)
            settled[:, i] = word < np.where(settled[:, i], high, low)
    codes = np.packbits(settled, axis=1, bitorder="little")
    if draw.encoding == "one-hot":
        return codes
    return np.concatenate([codes, cohorts.astype("<u2")[:, None].view(np.uint8)], axis=1)


def _true_bits(draw: RapporDraw, answers: NDArray[Any], cohorts: Integers) -> Flags:
    """Bits of each answer before they are randomised."""
    bits = np.zeros((len(answers), draw.answers), bool)
    bits_of: dict[tuple[Any, int], list[int]] = {}
    # Hashes of a word are computed once in each cohort.
    for row, key in enumerate(zip(answers.tolist(), cohorts.tolist(), strict=True)):
        if key not in bits_of:
            bits_of[key] = list(draw.bits(*key))
        bits[row, bits_of[key]] = True
    return bits


def _number(draw: NumberDraw, answers: Integers, words: ManyWords) -> Integers:
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
    NumberDraw: _number,
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
        pairs = (column.tolist() for column in np.divmod(reports.codes, draw.modulus))
        texts = [f"[{function},{value}]" for function, value in zip(*pairs, strict=True)]
    else:
        texts = [f"[{code}]" for code in reports.codes.tolist()]
    high, low = (column.tolist() for column in reports.nonce.T)
    nonces = (f"{a:016x}{b:016x}" for a, b in zip(high, low, strict=True))
    return [
        report_line(campaign.digest, reports.group, nonce, text)
        for nonce, text in zip(nonces, texts, strict=True)
    ]
