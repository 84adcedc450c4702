"""The device of a local campaign: it randomises its own answer, and sends nothing else.

One file, standard library alone, no import of ``psd``: run ``python -I device.py --help``.

Guarantees
----------
- A report is drawn by an epsilon-differentially private law of the answer. The law follows from
  epsilon and from sizes alone, and no float decides a draw. Rappor may have two probabilities of
  the campaign; the device works out what they cost, and refuses an epsilon that is below it.
- A point outside the bounds, NaN and "no place" are an answer like any other. What the device
  refuses or says depends on the campaign and on the store, never on the answer.
- A device reports its first answer in a campaign, and again only by rappor. It sends nothing in a
  campaign that names one as earlier which it answered, so silence tells that it answered; other
  campaigns neither get nor use up a report. The store is synced before a report leaves. It adds
  up all epsilons, to its cap; a lost one is silent.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import json
import math
import os
import re
import sys
import time
from base64 import urlsafe_b64encode
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, count, islice
from typing import Any, Final, NamedTuple

__all__ = ["SHARES", "Campaign"]

UNIT, NANO, SHARES = 2**62, 10**9, 1_000_000  # of probabilities, of epsilon, of the devices
DEPTH, STEPS = 20, 1_024  # the lattice has 2^20 columns and rows; the range of a number has steps
MAX_EPSILON, MAX_ANSWERS, MAX_ROUNDS, MAX_CAMPAIGN = 1_000, 65_536, 16, 2**25
MAX_MASK, MAX_COHORTS, MAX_TABLE = 4_096, 1_024, 2**24  # bits, cohorts, and reports of hashing
NUMBER_EPSILON: Final = (NANO // 1_000, 12 * NANO)  # for which the weights fit into a word
PLACES, _MAX_STORE, _EXP_BITS, _WAIT = ("places", "regions"), 2**24, 128, 10.0
LAST_READER: Final = "3621badf"  # the commit that reads older stores, which have another key


class DeviceError(Exception):
    """The device refuses; the message is one sentence and never depends on the answer."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code


@lru_cache(maxsize=64)
def exp_lower(nano: int, unit: int = NANO) -> int:
    """Lower bound of 2^128 exp(nano / unit): terms of its series and squarings, rounded down."""
    halvings, shift = (2 * nano // unit).bit_length(), _EXP_BITS + 64
    term, total, terms = 1 << shift, 0, 0
    while term:
        total, terms = total + term, terms + 1
        term = term * nano // (unit * terms << halvings)
    for _ in range(halvings):
        total = total * total >> shift
    return total >> 64


def keep_threshold(nano: int, others: int, each: int = 1, parts: int = 1) -> int:
    """Largest T / 2^62 that keeps an answer, else one of others / each, within epsilon / parts."""
    weight = exp_lower(nano, parts * NANO) * each
    return (weight << 62) // ((others << _EXP_BITS) + weight)


def least_nano(odds: int, parts: int) -> int:
    """Least nano-epsilon that covers a ratio of odds / parts, by the bound of `exp_lower`."""
    return bisect_left(range(10**12), odds << _EXP_BITS, key=lambda n: exp_lower(n) * parts)


class Words:
    """Random words of 64 bits, of the operating system, and the only four ways they decide."""

    def __init__(self, words: Iterable[int] = ()) -> None:
        self._words = iter(words)

    def word(self) -> int:
        """Return a uniform integer below 2^64."""
        for word in self._words:
            return word
        try:
            self._words = iter(memoryview(os.urandom(512 * 8)).cast("Q"))
        except (OSError, NotImplementedError):
            raise DeviceError("the operating system provides no random numbers", 70) from None
        return next(self._words)

    def keeps(self, threshold: int) -> bool:
        """Draw true with probability ``threshold / 2^62``, exactly."""
        return self.word() >> 2 < threshold

    def below(self, limit: int) -> int:
        """Draw a uniform integer below a limit; words beyond its last multiple are drawn again."""
        last = 2**64 // limit * limit
        while (word := self.word()) >= last:
            pass
        return word % limit

    def choose(self, runs: list[tuple[int, int]]) -> int:
        """Draw an index by integer weights: runs of a number of equal ones."""
        ends = [*accumulate(weight for size, weight in runs for _ in range(size))]
        return bisect_right(ends, self.below(ends[-1]))

    def mask(self, rates: Iterable[int]) -> int:
        """Draw a set: a 1 for each answer, with its rate out of 2^62."""
        return sum(self.keeps(rate) << i for i, rate in enumerate(rates))


def keyed_words(secret: str, text: str) -> Iterator[int]:
    """Words that follow from a secret and a text, by HMAC: the same ones again."""
    for i in count():
        block = hmac.digest(bytes.fromhex(secret), f"{text} {i}".encode(), "sha256")
        yield from memoryview(block).cast("Q")


@dataclass(frozen=True)
class KaryDraw:
    """One of k answers: the true one, with probability threshold / 2^62, or another one."""

    nano: int
    answers: int
    size: int = 1  # of the set of answers in a report
    threshold = cached_property(
        lambda draw: keep_threshold(draw.nano, draw.answers - draw.size, draw.size)
    )

    def randomise(self, answer: int, words: Words) -> str:
        """Draw the answer of a report, as its canonical JSON."""
        if words.keeps(self.threshold):
            return f"[{answer}]"
        other = words.below(self.answers - 1)
        return f"[{other + (other >= answer)}]"


class SubsetDraw(KaryDraw):
    """A set of ``size`` answers, which holds the true one more often than a random set."""

    def randomise(self, answer: int, words: Words) -> str:
        """See `KaryDraw`; the others are a uniform set (Floyd), which each step makes larger."""
        chosen = {answer} if words.keeps(self.threshold) else set()
        for last in range(self.answers - 1 - self.size + len(chosen), self.answers - 1):
            other = (drawn := words.below(last + 1)) + (drawn >= answer)
            chosen.add(last + (last >= answer) if other in chosen else other)
        return mask_text(sum(1 << i for i in chosen), self.answers)


@dataclass(frozen=True)
class UnaryDraw:
    """A bit for each answer, each drawn alone."""

    nano: int
    answers: int
    form: str

    @cached_property
    def thresholds(self) -> tuple[int, int]:
        """Out of 2^62, the probability of a 1 for another answer and for the true one."""
        keep = keep_threshold(self.nano // (1 + (self.form == "symmetric")), 1)
        return UNIT - keep, keep if self.form == "symmetric" else UNIT // 2

    def randomise(self, answer: int, words: Words) -> str:
        """See `KaryDraw`."""
        mask = words.mask(self.thresholds[i == answer] for i in range(self.answers))
        return mask_text(mask, self.answers)


@dataclass(frozen=True)
class RapporDraw:
    """Bits that are settled once for all reports of an answer, and randomised in each of them."""

    nano: int
    answers: int  # bits: one for each answer, or of a word those of its hashes
    encoding: str
    flips: int  # of 128 bits, those that are settled by a coin
    hashes: int = 1
    cohorts: int = 1
    p: int = 0  # out of 10^9, of a 1 for a settled 0; with q = 0, both follow from epsilon
    q: int = 0  # and for a settled 1

    @cached_property
    def lifetime(self) -> int:
        """Least nano-epsilon that covers the settled bits, and so any number of reports."""
        return least_nano(*(n ** (2 * self.hashes) for n in (256 - self.flips, self.flips)))

    @cached_property
    def once(self) -> int:
        """Least nano-epsilon that covers a report: h bits of each kind, by their exact law."""
        (low, high), flips, one = self.thresholds, self.flips, 256 * UNIT
        true, other = ((256 - n) * low + n * high for n in (256 - flips, flips))
        odds = true * (one - other), other * (one - true)
        return least_nano(*(each**self.hashes for each in odds))

    @cached_property
    def thresholds(self) -> tuple[int, int]:
        """Out of 2^62, the probability of a 1 for a settled 0, and for a settled 1."""
        if self.q:  # rounded towards each other, so a report costs no more than by p and q
            return -(-self.p * UNIT // NANO), self.q * UNIT // NANO
        true = keep_threshold(self.nano, 1, parts=2 * self.hashes)
        keep = min((256 * true - (self.flips << 62)) // (256 - 2 * self.flips), UNIT)
        return UNIT - keep, keep

    def bits(self, answer: Any, cohort: int) -> set[int]:
        """Bits of an answer; a word has those of the hashes of RAPPOR's own client."""
        if self.encoding == "one-hot":
            return {answer}
        text = cohort.to_bytes(4, "big") + answer.encode(errors="surrogatepass")
        hashed = hashlib.md5(text, usedforsecurity=False).digest()
        return {byte % self.answers for byte in hashed[: self.hashes]}

    def settle(self, answer: Any, words: Words) -> list[int]:
        """Draw the cohort and the bits that all reports of an answer have in common."""
        cohort = words.below(self.cohorts)
        ones, flip = self.bits(answer, cohort), self.flips << 54
        return [cohort, words.mask(UNIT - flip if i in ones else flip for i in range(self.answers))]

    def randomise(self, answer: Any, words: Words) -> str:
        """Draw a report of an answer or of what it settled; a word's ends in its cohort."""
        settled = answer if isinstance(answer, list) else self.settle(answer, words)
        (cohort, bits), end = settled, -self.answers // 8 * -8
        mask = words.mask(self.thresholds[bits >> i & 1] for i in range(self.answers))
        return mask_text(mask | cohort << end, end + 16 * (self.encoding == "bloom"))


@dataclass(frozen=True)
class HashingDraw:
    """A random linear function over GF(g) of the code of the answer, kept or replaced."""

    nano: int
    answers: int
    modulus: int
    seed: str
    digits = cached_property(lambda draw: digits_for(draw.answers, draw.modulus))
    functions = cached_property(lambda draw: int(draw.modulus**draw.digits))
    threshold = cached_property(lambda draw: keep_threshold(draw.nano, draw.modulus - 1))
    codes = cached_property(lambda draw: hash_codes(draw.seed, draw.answers, draw.functions))

    def value(self, function: int, code: int) -> int:
        """Value of a function at a code: the sum of products of their digits."""
        powers = [self.modulus**i for i in range(self.digits)]
        return int(sum(function // power * (code // power) for power in powers) % self.modulus)

    def randomise(self, answer: int, words: Words) -> str:
        """Draw the answer of a report, as its canonical JSON."""
        function = 1 + words.below(self.functions - 1)
        value = self.value(function, self.codes[answer])
        if not words.keeps(self.threshold):
            value = (value + 1 + words.below(self.modulus - 1)) % self.modulus
        return f"[{function},{value}]"


@dataclass(frozen=True)
class NumberDraw:
    """An output on a lattice, by integer weights that follow from the step of a number."""

    nano: int
    answers: int
    law: str
    window: int = 0

    @cached_property
    def weights(self) -> tuple[int, int]:
        """Weight of a likely output, and of another one; the worst pair of numbers decides."""
        growth = exp_lower(self.nano)
        rest = 1 << min(40, 50 + _EXP_BITS - growth.bit_length())
        if self.law != "bounded-staircase":
            return growth * rest >> _EXP_BITS, rest
        edge, widest = self.window + 1, min(2 * self.window + 1, self.answers - 1)
        a, c = widest << _EXP_BITS, growth * rest**2 * (self.answers - edge)
        b = ((self.answers - widest << _EXP_BITS) - growth * edge) * rest
        return (math.isqrt(b * b + 4 * a * c) - b) // (2 * a), rest

    def runs(self, answer: int) -> list[tuple[int, int]]:
        """Weights of the outputs: numbers of equal ones, and the weight."""
        (likely, rest), window, last = self.weights, self.window, self.answers - 1
        low, high = max(answer - window, 0), min(answer + window, last)
        if self.law == "bounded-laplace":  # the farther away, the less likely
            step = exp_lower(self.nano - 1, NANO * last)  # one nano less, for what is rounded
            up = list(accumulate(range(last), lambda x, _: x * step >> _EXP_BITS, initial=1 << 200))
            return [(1, (up[last - abs(i - answer)] << 52) // up[-1]) for i in range(last + 1)]
        if self.law == "bounded-staircase":  # a window to both sides
            return [(low, rest), (high - low + 1, likely), (last - high, rest)]
        if self.law == "staircase":  # noise of endless stairs; the ends take what is beyond them
            tail = -(-last * likely * rest // (likely - rest))
            left, right = [tail + (window - to) * (likely if to < window else rest)
                           for to in (answer, last - answer)]  # fmt: skip
            middle = [(low, rest), (high - low - 1, likely), (last - high, rest)]
            return [(1, left), *middle, (1, right)]
        runs = [(answer, rest), (window + 1, likely), (last - answer, rest)] if window else []
        if self.law not in ("duchi", "hybrid"):
            return runs
        if window:  # beside it, the two outputs have probability exp(-epsilon / 2)
            growth, unit = exp_lower(self.nano), 1 << _EXP_BITS
            spread = (exp_lower(self.nano // 2) - unit) * (growth + unit) * last
            rest = ((window + 1) * likely + last * rest << 2 * _EXP_BITS) // spread
            likely = growth * rest >> _EXP_BITS
        upper = likely * answer + rest * (last - answer)
        return [*runs, (1, (likely + rest) * last - upper), (1, upper)]

    def randomise(self, answer: int, words: Words) -> str:
        """Draw the answer of a report, as its canonical JSON."""
        return f"[{words.choose(self.runs(answer))}]"


def mask_text(mask: int, answers: int) -> str:
    """JSON text of a set of answers: bytes in hex, the lowest answers first."""
    return f'"{mask.to_bytes((answers + 7) // 8, "little").hex()}"'


def digits_for(answers: int, modulus: int) -> int:
    """Fewest digits in base ``modulus`` that number all answers, at least one."""
    return next(digits for digits in count(1) if modulus**digits >= answers)


def hash_codes(seed: str, answers: int, functions: int) -> list[int]:
    """Codes of the answers: the first ones in the order of SHA-256 of seed and code."""
    sha, text = hashlib.sha256, seed.encode()
    order = sorted(range(functions), key=lambda code: sha(text + code.to_bytes(4, "big")).digest())
    return order[:answers]


WINDOWS: Final[dict[str, Any]] = {  # least and largest one, of the laws of numbers
    "bounded-laplace": (), "bounded-staircase": (0, STEPS - 2), "duchi": (), "hybrid": (0, STEPS),
    "piecewise": (1, STEPS), "square-wave": (1, STEPS), "staircase": (1, STEPS - 1),
}  # fmt: skip
PROTOCOLS: Final[dict[str, Any]] = {
    "hashing": HashingDraw, "k-ary": KaryDraw, "rappor": RapporDraw, "subset": SubsetDraw,
    "unary": UnaryDraw, **dict.fromkeys(WINDOWS, NumberDraw),
}  # fmt: skip
_BLOOM: Final[dict[str, Any]] = {"bits": (2, 256), "hashes": (1, 16), "cohorts": (1, MAX_COHORTS)}
_RATES: Final[dict[str, Any]] = {"p": (1, NANO - 1), "q": (1, NANO - 1)}


def _make_draw(name: str, nano: int, answers: int, settings: Any, digest: str) -> Any:
    rules: dict[str, Any] = {
        "hashing": {"modulus": (2, MAX_TABLE)}, "subset": {"size": (1, answers - 1)},
        "unary": {"form": re.compile("symmetric|optimised")},
        "rappor": {"encoding": re.compile("bloom" if answers == 1 else "one-hot"),
                   "flips": (1, 127), **(_BLOOM if answers == 1 else {}),
                   **(_RATES if _RATES.keys() & settings.keys() else {})},
        **{law: {"window": limits} for law, limits in WINDOWS.items() if limits},
    }  # fmt: skip
    terms = _check("protocol", settings, rules.get(name, {}))
    if name in WINDOWS:
        _check("nano_epsilon of a number", nano, NUMBER_EPSILON)
        answers, terms["law"] = STEPS, name
    elif name == "hashing":
        terms["seed"], modulus = digest, terms["modulus"]
        is_prime = all(modulus % divisor for divisor in range(2, math.isqrt(modulus) + 1))
        _require(is_prime, "modulus must be a prime number")
        reports = modulus ** (digits_for(answers, modulus) + 1)
        _require(reports <= MAX_TABLE, f"it must have at most {MAX_TABLE:,} different reports")
    elif name != "k-ary":
        answers = terms.pop("bits", answers)
        _check(f"answers of protocol {name}", answers, (2, MAX_MASK))
        _require(terms.get("hashes", 1) <= answers, "hashes must be at most as many as bits")
    _require(nano > (terms.get("form") == "symmetric"), "half of its epsilon must be at least 1e-9")
    _require(terms.get("p", 0) < terms.get("q", NANO), "p must be below q")
    draw = PROTOCOLS[name](nano, answers, **terms)
    _require("q" not in terms or draw.once <= nano, "its epsilon must cover a report by p and q")
    _require(nano <= getattr(draw, "lifetime", nano), "flips must be fewer, for its epsilon")
    return draw


def find_cell(low: float, high: float, value: float) -> int:
    """Lattice cell of a value inside the bounds, bit for bit that of `psd.Domain.quantise`."""
    step, last = (high - low) / 2**DEPTH, 2**DEPTH - 1
    cell = min(max(math.floor((value - low) * (2**DEPTH / (high - low))), 0), last)
    cell += bool(value >= low + (cell + 1) * step) - bool(value < low + cell * step)
    return int(min(max(cell, 0), last))


@dataclass(frozen=True)
class Partition:
    """Cells of a quadtree that cover every point of the domain once, in the order of their keys."""

    cells: tuple[str, ...]
    names, find = property(lambda kind: kind.cells), staticmethod(find_cell)

    @cached_property
    def starts(self) -> Any:
        """First lattice cell of each cell, along the curve of the keys."""
        are_keys = all(re.fullmatch(f"[0-3]{{0,{DEPTH}}}", key, re.ASCII) for key in self.cells)
        _require(are_keys, f"a cell must be at most {DEPTH} digits of 0 to 3")
        starts = [int(key.ljust(DEPTH, "0"), 4) for key in self.cells]
        ends = accumulate((4 ** (DEPTH - len(key)) for key in self.cells), initial=0)
        pairs = zip([*starts, 4**DEPTH], ends, strict=True)
        overlaps = next((start < end for start, end in pairs if start != end), None)
        _require(not overlaps, "its cells must be in their order and not overlap")
        _require(overlaps is None, "its cells must leave no gap")
        return starts

    def answer(self, column: Any, row: Any) -> int:
        """Answer of a lattice cell; the bits of its column and row take turns."""
        return bisect_right(self.starts, int(f"{column:b}", 4) | int(f"{row:b}", 4) << 1) - 1


class Options(Partition):
    """Answers in text, and *none of these*, which is the last one."""

    @cached_property
    def starts(self) -> Any:
        """The answers, checked."""
        _require(len(set(self.cells)) == len(self.cells), "each option must be stated once")
        return [_check("an option", cell or "\n", 200) for cell in self.cells]

    def answer(self, text: Any, _: Any = None) -> int:
        """Answer of a text."""
        return self.cells.index(text) if text in self.cells else len(self.cells)


class Range(Partition):
    """Even steps from a lowest to a highest number."""

    starts = cached_property(lambda draw: _check_edges("range", draw.cells, 1))

    def answer(self, number: Any, _: Any = None) -> int:
        """Nearest step of a number, at an end if it is outside; else a middle one."""
        (low, high), value = self.starts, math.nan
        with suppress(ValueError):  # a refusal would depend on the answer
            value = float(number)
        value = low / 2 + high / 2 if math.isnan(value) else min(max(value, low), high)
        return int((value - low) / (high - low) * (STEPS - 1) + 0.5)


class Regions(Partition):
    """Named regions in the parts that are polygons: an id, the name of the level, and rings."""

    starts = property(lambda kind: [_check("a region", cell, _REGION) for cell in kind.cells])
    names = cached_property(lambda kind: [*dict.fromkeys(c.split("|")[0] for c in kind.cells)])
    find = staticmethod(lambda low, high, value: min(value, math.nextafter(high, low)))

    def answer(self, x: Any, y: Any) -> int:
        """Answer of a point: of the first part that holds it, as `psd.space.even_odd` decides."""
        for name, _, *texts in (cell.split("|") for cell in self.cells):
            rings = ([*map(float, text.split())] for text in texts)
            sides = (r[i : i + 4] for r in rings for i in range(0, len(r) - 2, 2))
            near = (map(Fraction, (*s, x, y)) for s in sides if min(s[1::2]) <= y < max(s[1::2]))
            turns = (((c - a) * (n - b) - (e - a) * (d - b)) * (d - b) for a, b, c, d, e, n in near)
            if sum(turn > 0 for turn in turns) % 2:
                return int(self.names.index(name))
        return len(self.names)


QUESTIONS: Final[dict[str, tuple[type[Partition], tuple[str, ...]]]] = {  # and their protocols
    "numbers": (Range, tuple(WINDOWS)), "options": (Options, tuple(PROTOCOLS)[:5]),
    "places": (Partition, tuple(PROTOCOLS)[:5]), "words": (Options, ("rappor",)),
    "regions": (Regions, tuple(PROTOCOLS)[:5]),
}  # fmt: skip


class Group(NamedTuple):
    """A part of the devices, and what it is asked in this campaign."""

    share: int
    partition: Any
    protocol: str | None
    draw: Any


class Campaign(NamedTuple):
    """A public campaign, checked."""

    digest: str
    question: str
    earlier: tuple[str, ...]
    title: str
    bounds: tuple[float, float, float, float]
    crs: str
    nano_epsilon: int
    devices: int
    groups: tuple[Group, ...]
    content: dict[str, Any]

    @classmethod
    def load(cls, path: str) -> Campaign:
        """Read a campaign."""
        try:
            with open(path, "rb") as file:
                return cls.parse(file.read(MAX_CAMPAIGN + 1))
        except OSError as error:
            raise DeviceError(f"campaign cannot be read: {error.strerror}") from None

    @classmethod
    def parse(cls, raw: bytes) -> Campaign:
        """Check the bytes of a campaign."""
        _require(len(raw) <= MAX_CAMPAIGN, "it must have at most 32 MB")
        value = _strict_json(raw, "campaign")
        _require(type(value) is dict and "psd-campaign" in value, "it must be a campaign of psd")
        if type(value["psd-campaign"]) is not int or value["psd-campaign"] != 1:
            raise DeviceError("campaign has a version that this device does not know")
        _check("campaign", value, _CAMPAIGN)
        digest, question, nano = campaign_digest(value), value["question"], value["nano_epsilon"]
        if value["digest"] != digest:
            raise DeviceError("campaign does not match its digest: it was changed or is damaged")
        _require(question in [*QUESTIONS], "this device does not know its question")
        earlier = value["earlier"] if isinstance(value["earlier"], list) else [None]
        are_digests = all(isinstance(x, str) and _DIGEST.fullmatch(x) for x in earlier)
        _require(are_digests and len(earlier) < MAX_ROUNDS, "earlier must be a list of digests")
        bounds, crs, domain = (0.0,) * 4, "", value["domain"]
        if question in PLACES:
            _check("domain", domain, {"bounds": None, "crs": 2**15, "lattice": None})
            _require(domain["lattice"] == [2**DEPTH] * 2, "lattice must be 2^20 columns and rows")
            bounds, crs, domain = _check_edges("bounds", domain["bounds"], 2), domain["crs"], None
        _require(domain is None, "domain must be null if the question is not places")
        is_list = isinstance(value["groups"], list) and 1 <= len(value["groups"]) <= MAX_ROUNDS
        _require(is_list, f"it must have 1 to {MAX_ROUNDS} groups")
        groups = tuple(check_group(entry, nano, digest, question) for entry in value["groups"])
        _require(sum(g.share for g in groups) == SHARES, f"the shares must add up to {SHARES:,}")
        _require(any(group.draw for group in groups), "a group must be asked")
        about = digest, question, tuple(earlier), value["title"], bounds, crs
        return cls(*about, nano, value["devices"], groups, value)

    @property
    def shares(self) -> list[int]:
        """Shares of the devices by group."""
        return [group.share for group in self.groups]

    def answer_of(self, group: int, x: Any, y: Any = None) -> Any:
        """Answer in a group: of a point, its cell or *outside*; or of another answer."""
        partition = self.groups[group].partition
        if self.question == "words":
            return x if isinstance(x, str) else ""
        if self.question not in PLACES:
            return partition.answer(x)
        west, south, east, north = self.bounds
        if not (west <= x <= east and south <= y <= north):
            return len(partition.names)
        return partition.answer(partition.find(west, east, x), partition.find(south, north, y))

    def draw_group(self, words: Words) -> int:
        """Draw a group by the shares."""
        return bisect_right([*accumulate(self.shares)], words.below(SHARES))


_DIGEST = re.compile(r"[A-Za-z0-9_-]{22}", re.ASCII)
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,18})?(e[+-]?[0-9]{1,3})?", re.ASCII)
_N: Final = r"-?\d{1,15}(\.\d{1,40})?"
_REGION: Any = re.compile(rf"[^|]+\|[^|]+(\|{_N} {_N}( {_N} {_N}){{3,}})+", re.ASCII)
_CAMPAIGN: Final = {
    "devices": (1, 10**12), "digest": None, "domain": None, "earlier": None, "groups": None,
    "nano_epsilon": (1, MAX_EPSILON * NANO), "psd-campaign": None, "question": None, "title": 200,
}  # fmt: skip


def campaign_digest(content: dict[str, Any]) -> str:
    """Digest of a campaign: 132 bits of SHA-256 of its canonical JSON, without the digest."""
    text = canonical_json({key: value for key, value in content.items() if key != "digest"})
    return urlsafe_b64encode(hashlib.sha256(text.encode()).digest())[:22].decode()


def canonical_json(value: Any) -> str:
    """JSON in its one spelling: sorted keys, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _strict_json(raw: bytes, name: str) -> Any:
    hooks: Any = {"parse_float": int, "parse_constant": int}  # which refuses both, and what follows
    hooks["object_pairs_hook"] = lambda p: dict(p) if len(dict(p)) == len(p) else int("twice")
    try:
        return json.loads(raw.decode(), **hooks)
    except (ValueError, RecursionError):
        raise DeviceError(f"{name} is not valid: it is not strict JSON") from None


def _require(holds: Any, rule: str) -> None:
    if not holds:
        raise DeviceError(f"campaign is not valid: {rule}")


def _check(name: str, value: Any, rule: Any) -> Any:
    is_text = isinstance(value, str)
    if isinstance(rule, dict):
        has_fields = isinstance(value, dict) and value.keys() == rule.keys()
        _require(has_fields, f"{name} must have its fields and no others")
        return {field: _check(field, value[field], rule[field]) for field in rule}
    if isinstance(rule, tuple):
        is_integer = type(value) is int and rule[0] <= value <= rule[1]
        _require(is_integer, f"{name} must be an integer from {rule[0]:,} to {rule[1]:,}")
    elif isinstance(rule, int):
        is_short = is_text and len(value) <= rule and value.isprintable()
        _require(is_short, f"{name} must be a printable text of at most {rule:,} characters")
    elif rule is not None:
        _require(is_text and rule.fullmatch(value), f"{name} must be spelled {rule.pattern}")
    return value


def _check_edges(name: str, texts: Any, axes: int) -> Any:
    are_numbers = isinstance(texts, (list, tuple)) and len(texts) == 2 * axes
    are_numbers = are_numbers and all(isinstance(t, str) and _NUMBER.fullmatch(t) for t in texts)
    _require(are_numbers, f"{name} must be {2 * axes} numbers in decimal text")
    edges = tuple(map(float, texts))
    for low, high in zip(edges[:axes], edges[axes:], strict=True):
        coarsest = math.ulp(max(abs(low), abs(high)))
        is_wide = math.isfinite(high - low) and (high - low) / 2**DEPTH >= 4 * coarsest
        _require(is_wide, f"{name} must be wide enough, with lower edges before upper ones")
    return edges


def check_group(value: Any, nano: int, digest: str, question: str = "places") -> Group:
    """Check a group; cells and protocol are both null if it is not asked now."""
    rules = {"share": (0, SHARES), "cells": None, "protocol": None, "counted": None}
    share, cells, protocol, counted = _check("group", value, rules).values()
    _require(counted is None or cells is None, "a group that was counted must be closed")
    if cells is None and protocol is None:
        return Group(share, None, None, None)
    _require(type(cells) is list and {*map(type, cells)} <= {str}, "cells must be a list of texts")
    kind, names = QUESTIONS[question]
    partition, settings = kind(tuple(cells)), dict(protocol) if isinstance(protocol, dict) else {}
    sizes = (1, 1) if question == "words" else (2, MAX_ANSWERS)
    answers = _check("number of answers", len(partition.names) + 1, sizes)
    name, _ = settings.pop("name", None), partition.starts  # which are checked
    _require(name in names, "this device does not have its protocol")
    draw = _make_draw(str(name), nano, answers, settings, digest)
    return Group(share, partition, name, draw)


def report_line(digest: str, group: int, nonce: str, answer: str) -> str:
    """Report in its one spelling."""
    head = f'{{"psd-report":1,"campaign":"{digest}","group":{group},"nonce":"{nonce}"'
    return f'{head},"answer":{answer}}}'


def draw_report(campaign: Campaign, group: int, answer: Any, words: Words, ticket: str = "") -> str:
    """Draw the report of an answer; a ticket stands in place of the random nonce."""
    randomised = campaign.groups[group].draw.randomise(answer, words)
    nonce = ticket or f"{words.word():016x}{words.word():016x}"
    return report_line(campaign.digest, group, nonce, randomised)


@dataclass
class Store:
    """What a device has spent and sent, by campaign: one file, for its owner alone."""

    path: str
    cap: int
    answers: dict[str, dict[str, Any]]
    secret: str = ""

    spent = property(lambda store: sum(a["nano_epsilon"] for a in store.answers.values()))

    @classmethod
    def create(cls, path: str, cap: int) -> None:
        """Create a store; one that exists is never replaced."""
        cls(path, cap, {}).save(path)

    @classmethod
    @contextmanager
    def locked(cls, path: str) -> Iterator[Store]:
        """Open and lock a store; links to it are followed first, so that all lock one file."""
        path = os.path.realpath(path)
        if os.path.exists(path) and not os.path.isfile(path):
            raise DeviceError("store must be a file", 9)
        with open(lock_store(path), "rb") as file:
            if os.fstat(file.fileno()).st_nlink > 1:  # the other name would keep what it holds now
                raise DeviceError("store must have one name, and it has a hard link; remove one", 9)
            yield cls._parse(path, file.read(_MAX_STORE + 1))

    @classmethod
    def _parse(cls, path: str, raw: bytes) -> Store:
        value: Any = None
        with suppress(DeviceError, TypeError, KeyError, AttributeError):
            value = _strict_json(raw, "store")
            sums = value["cap"], *(each["nano_epsilon"] for each in value["answers"].values())
            is_whole = value["psd-device"] == 1 and {type(each) for each in sums} == {int}
            if is_whole and value["digest"] == campaign_digest(value):
                return cls(path, value["cap"], value["answers"], value.get("secret", ""))
        if isinstance(value, dict) and str(older := value.get("psd-store")) in ("1", "2"):
            told = f"store has the old store format {older}; commit {LAST_READER} reads it last; "
            told += "what was spent stays spent, and a new store is no fresh budget"
            raise DeviceError(told, 9)
        raise DeviceError("store is damaged or of another kind; this device answers no more", 9)

    def content(self) -> bytes:
        """Bytes of the file."""
        value: dict[str, Any] = {"psd-device": 1, "cap": self.cap, "answers": self.answers}
        value |= {"secret": self.secret} if self.secret else {}
        return canonical_json(value | {"digest": campaign_digest(value)}).encode() + b"\n"

    def save(self, to: str | None = None) -> None:
        """Replace the file, synced; at any moment it is the old one or the new one."""
        beside = to or self.path + ".new"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        try:
            if not to:
                with suppress(FileNotFoundError):
                    os.unlink(beside)  # of an answer that was killed, or prepared by somebody
            with open(os.open(beside, flags, 0o600), "wb") as file:
                file.write(self.content())
                file.flush()
                os.fsync(file.fileno())
            if not to:
                os.replace(beside, self.path)
            folder = os.open(os.path.dirname(os.path.abspath(self.path)), os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
        except FileExistsError:
            told = "store exists; it is not replaced" if to else "store is in use"
            raise DeviceError(told, 9) from None
        except OSError as error:
            raise DeviceError(f"store cannot be written: {error.strerror}", 6) from None


def lock_store(path: str) -> int:
    """Open and lock the file that has a name; return its handle, whose end frees it."""
    try:
        import fcntl
    except ImportError:  # Windows
        raise DeviceError("this system has no file locks, which the store needs", 9) from None
    for _ in range(int(100 * _WAIT)):
        try:
            handle = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
        except FileNotFoundError:
            raise DeviceError("store is missing; without it this device is silent", 9) from None
        except OSError as error:
            raise DeviceError(f"store cannot be opened: {error.strerror}", 9) from None
        with suppress(OSError):  # in use, or replaced meanwhile
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), os.stat(path)):
                return handle
        os.close(handle)
        time.sleep(0.01)
    raise DeviceError("store is in use by another process", 9)


def answer_place(
    path: str, campaign: Campaign, x: Any, y: Any, words: Words, ticket: str = ""
) -> str | None:
    """Report of a point, or of a number or option x; None if this device sends none."""
    with Store.locked(path) as store:
        rounds = [store.answers[name] for name in campaign.earlier if name in store.answers]
        # By the digest alone: no other campaign gets or uses up its report.
        entry = store.answers.get(campaign.digest)
        if entry is None:
            if any(each["report"] for each in rounds):
                return None
            groups = [each["group"] for each in rounds if each["shares"] == campaign.shares]
            entry = {"group": groups[0] if groups else None, "shares": campaign.shares}
            entry |= {"nano_epsilon": 0, "report": None}
        settled = entry.get("settled")  # by the first answer, for good
        if settled or entry["report"] is None:
            group, nano = entry["group"], campaign.nano_epsilon
            if settled:
                nano = min(nano, campaign.groups[group].draw.lifetime - entry["nano_epsilon"])
            if store.spent + nano > store.cap:
                raise DeviceError("campaign costs more epsilon than the cap of the store leaves", 4)
            entry["group"] = group = campaign.draw_group(words) if group is None else group
            draw = campaign.groups[group].draw
            if draw is not None:
                answer = settled or campaign.answer_of(group, x, y)
                if isinstance(draw, RapporDraw) and not settled:
                    store.secret = store.secret or "".join(f"{words.word():016x}" for _ in range(4))
                    answer = draw.settle(answer, Words(keyed_words(store.secret, campaign.digest)))
                    entry["settled"] = answer
                entry["report"] = draw_report(campaign, group, answer, words, ticket)
                entry["nano_epsilon"] += nano
            store.answers[campaign.digest] = entry
            store.save()
        return None if entry["report"] is None else str(entry["report"])


def parse_nano(text: str) -> int:
    """Nano-epsilon of decimal text, above 0 and at most 1,000."""
    match = re.fullmatch(r"(\d{1,4})(?:\.(\d{1,9}))?", text, re.ASCII)
    nano = int(match[1] + (match[2] or "").ljust(9, "0")) if match else 0
    if not 0 < nano <= MAX_EPSILON * NANO:
        raise DeviceError("cap must be a decimal number above 0 and at most 1,000")
    return nano


def show_campaign(campaign: Campaign) -> str:
    """What a campaign asks and costs, for the owner of a device."""
    cells, nano = (g.partition.cells for g in campaign.groups if g.partition), campaign.nano_epsilon
    about = (*map(repr, campaign.bounds), campaign.crs) if campaign.crs else next(cells)
    limit = max(getattr(group.draw, "lifetime", nano) for group in campaign.groups)
    once = f"all of this device {limit / NANO:.12g}" if limit > nano else "this device answers once"
    lines = [
        f"campaign {campaign.digest}: {campaign.title}",
        f"asks for {campaign.question} of {', '.join(about) or 'any kind'}",
        f"a report costs epsilon {nano / NANO:.12g}; {once}",
        *(f"a device that answered campaign {name} sends nothing" for name in campaign.earlier),
    ]
    for number, group in enumerate(campaign.groups):
        answers = group.draw and f"{group.draw.answers:,} answers by {group.protocol}"
        share = f"{group.share / SHARES:.1%} of the devices"
        lines.append(f"group {number}, {share}: {answers or 'later or never'}")
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="device.py", description=(__doc__ or "").split("\n")[0])
    add = parser.add_subparsers(dest="command", required=True).add_parser
    new = add("new", help="create the store of this device")
    new.add_argument("--cap", required=True, help="largest sum of epsilon of all campaigns")
    show = add("show", help="show what a campaign asks and costs")
    answer = add("answer", help="print the report of this device")
    value = answer.add_mutually_exclusive_group(required=True)
    value.add_argument("--at", nargs=2, type=float, metavar=("LON", "LAT"))
    value.add_argument("--answer", help="a number or an option, in place of a point")
    value.add_argument("--nowhere", action="store_true", help="outside, or no answer")
    answer.add_argument("--ticket", default="", help="32 digits of hex, the nonce of the report")
    status = add("status", help="show what the store has spent")
    for command in (show, answer):
        command.add_argument("campaign")
    for command in (new, answer, status):
        command.add_argument("--store", required=True)
    return parser


def run(arguments: argparse.Namespace) -> str:
    """Text that a command prints."""
    if arguments.command == "new":
        Store.create(arguments.store, parse_nano(arguments.cap))
        return "store created; without it this device does not answer"
    if arguments.command == "show":
        return show_campaign(Campaign.load(arguments.campaign))
    if arguments.command == "status":
        with Store.locked(arguments.store) as store:
            return f"spent epsilon {store.spent / NANO:.12g} of {store.cap / NANO:.12g}"
    if not re.fullmatch("[0-9a-f]{32}", arguments.ticket or "0" * 32, re.ASCII):
        raise DeviceError("ticket must be 32 small digits of hex")
    campaign = Campaign.load(arguments.campaign)
    if (arguments.answer if campaign.question in PLACES else arguments.at) is not None:
        raise DeviceError("--at is for places, and --answer for other questions")
    x, y = arguments.at or (arguments.answer or math.nan, math.nan)
    report = answer_place(arguments.store, campaign, x, y, Words(), arguments.ticket)
    if report is None:
        sys.stderr.write(
            "device: nothing to send: not asked in this campaign, or answered before\n"
        )
    return report or ""


def main() -> int:
    """Run the command line; errors are one line. Numbers below 0 and answers are no options."""
    given = iter(sys.argv[1:])  # what follows --answer is an answer, whatever it looks like
    texts = ["=".join((text, *islice(given, text == "--answer"))) for text in given]
    texts = [" " + t if re.fullmatch(r"-(\d|\.\d|inf|nan).*", t, re.I) else t for t in texts]
    try:
        text = run(_parser().parse_args(texts))
    except DeviceError as error:
        sys.stderr.write(f"device: error: {error}\n")
        return error.code
    sys.stdout.write(text + "\n" if text else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
