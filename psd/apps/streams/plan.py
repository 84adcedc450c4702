"""What was fixed when a stream was created: request, output, charge, counter. Private side.

The total after step t is the sum of the counts of steps 1 to t. With A the lower triangle of ones
and A = B C, a counter publishes C x plus independent noise and computes B (C x + noise); the
variance of total t is that of the noise times the squared norm of row t of B [1]_.

``slices`` is C = 1: noise on every step; totals are sums of noisy counts and cost nothing. ``tree``
has noise on the blocks of steps of a binary tree; the estimate of a block joins its own count with
those of its two halves, with weights by variance [2]_, and a total is the sum of the blocks that
fill it. ``toeplitz`` is the square root of A in whole numbers: C is the lower triangle of
round(2^20 c_j), with c_0 = 1 and c_j = c_(j-1) (2j - 1) / (2j) [3]_. Half of epsilon is for the
totals of these two: the noise is drawn on blocks of steps, or on sums with weights, before anything
is added up, and all that follows reads noisy counts only.

One unit lies in one step. It changes one column of C: the squared sensitivity is the largest
squared norm of a column, that of the first one. A unit in several steps changes several columns,
whose norms add up; so totals of a user with records in several slices are sums.

P1. Totals cost at most the loss that is for them. Proof. Let a unit lie in one step, with at most k
records. ``tree``: the unit is in the tally of the one block of each level that holds its step, so
in at most h = `tree_levels` of the blocks, and each of them is released with epsilon / h for a unit
of k records; the losses add up to epsilon. ``toeplitz``: step t releases the counts of sum_s C_ts
x_s. The unit changes x of one step s, by n_c <= k in cell c, and the numbers of cell c by C_ts n_c
over all t; noise of sigma_c^2 = S^2 k^2 / (2 rho_c), S^2 the squared norm of the largest column of
C, costs sum_t (C_ts n_c)^2 / (2 sigma_c^2) <= (n_c / k)^2 rho_c in rho. So the T releases cost what
one release of the unit's records costs by the proof of `psd.curator.curator.Curator`: at most rho.
The tally of step t is a function of the records of steps up to t; that later records may depend on
earlier answers changes nothing, since a unit's records are the same in both data sets but for
itself, and the matrix is fixed.

.. [1] Li, Miklau, Hay, McGregor, Rastogi. "The Matrix Mechanism." VLDB Journal 2015.
.. [2] Honaker. "Efficient Use of Differentially Private Binary Trees." TPDP 2015.
.. [3] Fichtenberger, Henzinger, Upadhyay. "Constant Matters: Fine-grained Error Bound on
   Differentially Private Continual Observation." ICML 2023, arXiv:2202.11205.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np

from psd._util.arrays import Floats
from psd._util.file_endings import file_of
from psd._util.json_toml import read_toml, strict_json
from psd.apps.streams.state import add_blocks, empty_tally, numbers_of, packed, tally_of
from psd.errors import InputDataError, LedgerError, ParameterError, PsdError
from psd.privacy.loss import Loss, failure_text, parse_delta
from psd.publish.charging import charge_request
from psd.publish.fields import public_files
from psd.publish.public_inputs import resolve_public_inputs
from psd.publish.request import BuildRequest
from psd.publish.request_values import request_from_toml, request_to_toml
from psd.release.file import canonical_json
from psd.space.box_tree import Tree

if TYPE_CHECKING:
    from psd.apps.streams.state import Block
    from psd.ingest.tally import Tally
    from psd.ledger.charges import Charge, ChargeRequest, Dataset
    from psd.publish.public_inputs import PublicInputs
    from psd.space.domain import Domain
    from psd.space.time_slices import TimeSlices


Counter = Literal["slices", "tree", "toeplitz"]
"""Names of counters."""

COUNTERS: Final[tuple[Counter, ...]] = ("slices", "tree", "toeplitz")

UNIT_WEIGHT: Final = 2**20
"""The number that stands for 1 in the matrix of the counter ``toeplitz``."""


@lru_cache(maxsize=8)
def toeplitz_weights(steps: int) -> tuple[int, ...]:
    """First column of C: round(2^20 c_j), by exact arithmetic."""
    weights, binomial = [], 1  # c_j is the binomial coefficient (2j over j), over 4^j
    for j in range(steps):
        weights.append((2 * UNIT_WEIGHT * binomial + 4**j) // (2 * 4**j))
        binomial = binomial * 2 * (2 * j + 1) // (j + 1)
    return tuple(weights)


def toeplitz_squared_sensitivity(steps: int) -> int:
    """Squared norm of the first column of C, the largest one, of all its entries."""
    return sum(weight**2 for weight in toeplitz_weights(steps))


@lru_cache(maxsize=8)
def toeplitz_row(steps: int) -> Floats:
    """First column of B = A C^-1, by substitution; the last row read backwards. shape (steps,)."""
    weights = np.array(toeplitz_weights(steps), np.float64)
    inverse = np.zeros(steps)
    inverse[0] = 1 / weights[0]
    for j in range(1, steps):
        inverse[j] = -(weights[1 : j + 1] @ inverse[j - 1 :: -1]) / weights[0]
    # A is the lower triangle of ones, so that A C^-1 has running sums.
    row = np.cumsum(inverse)
    row.setflags(write=False)
    return row


def tree_levels(steps: int) -> int:
    """Number of blocks that a step lies in: the largest block is a power of 2 of the steps."""
    return steps.bit_length()


def blocks_closed(step: int) -> range:
    """Levels of the blocks that end with a step, counted from 0; a block has 2^level steps."""
    end = step + 1
    return range((end & -end).bit_length())


def blocks_of(steps: int) -> list[tuple[int, int]]:
    """Level and last step of the blocks that fill the first steps, the largest first."""
    blocks, end = [], 0
    for level in reversed(range(steps.bit_length())):
        if steps >> level & 1:
            end += 2**level
            blocks.append((level, end - 1))
    return blocks


def block_variance(level: int) -> Fraction:
    """Variance of the estimate of a block, over that of its noise.

    P1. It is v_l = 2^l / (2^(l+1) - 1): v_0 = 1; the sum of two halves has variance 2 v_l, and with
    weights by variance the estimate has 1 / (1 + 1 / (2 v_l)), which is v_(l+1).
    """
    return Fraction(2**level, 2 ** (level + 1) - 1)


def variance_factors(counter: Counter, steps: int) -> list[Fraction]:
    """Variance of each total over that of the noise of a slice, a block or an entry of C x."""
    if counter == "slices":
        return [Fraction(number) for number in range(1, steps + 1)]
    if counter == "tree":
        return [
            sum((block_variance(level) for level, _ in blocks_of(number)), Fraction(0))
            for number in range(1, steps + 1)
        ]
    squares = np.cumsum(toeplitz_row(steps) ** 2)
    return [Fraction(value) for value in squares.tolist()]


Draw = Callable[["Tally"], Tree]
"""Draws the counts of a tally, with the part of the budget that a counter gives each draw."""

_DENOMINATOR = 10**12

# Tallies that are added at once.
_BATCH = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Total:
    """Running total after a step, and what the next steps need. Private."""

    drawn: Tree  # cells, and the loss that was paid for each count
    numbers: Floats  # (n,) float64; estimate of each node
    factor: Fraction  # variance of a number over that of a count which this loss paid for alone
    # Private; what the next steps need.
    blocks: Mapping[tuple[int, int], Block] = field(default_factory=dict)

    def __repr__(self) -> str:
        return "<Total: private>"

    def tree(self, squared_sensitivity: int) -> Tree:
        """Cells with the totals, rounded to whole numbers, and the noise of these."""
        noise = replace(
            self.drawn.noise,
            squared_sensitivity=squared_sensitivity,
            factor=self.factor.limit_denominator(_DENOMINATOR),
        )
        return replace(self.drawn, count=np.rint(self.numbers).astype(np.int64), noise=noise)


def sum_of_slices(drawn: Tree, earlier: Sequence[Tree], number: int) -> Total:
    """Running total as the sum of noisy slices: of the last, and the total before it. Public."""
    counts = np.sum([drawn.count, *(tree.count for tree in earlier)], axis=0)
    return Total(drawn=drawn, numbers=counts.astype(np.float64), factor=Fraction(number))


def next_total(
    counter: Counter,
    steps: range,
    tally: Tally,
    blocks: Mapping[tuple[int, int], Block],
    draw: Draw,
    *,
    number: int,
) -> Total:
    """Draw what a counter needs for a step, and for those that were left out before it."""
    blocks, weights = dict(blocks), toeplitz_weights(number) if counter == "toeplitz" else ()
    for step in steps:
        # Private: the tally, and the blocks of earlier steps. Steps that were left out are empty.
        exact = tally if step == steps[-1] else empty_tally(tally.contributions)
        drawn = (
            _advance_tree(step, exact, blocks, draw)
            if counter == "tree"
            else _advance_toeplitz(weights, step, exact, blocks, draw)
        )
    if counter == "tree":
        # The total is the sum of the blocks that fill the steps.
        filling = blocks_of(steps[-1] + 1)
        return Total(
            drawn=drawn,
            numbers=np.sum([numbers_of(blocks[at]) for at in filling], axis=0),
            factor=sum((block_variance(level) for level, _ in filling), Fraction(0)),
            blocks={at: blocks[at] for at in filling},
        )
    # The total is the last row of B times what was published.
    row = toeplitz_row(number)[: steps[-1] + 1]
    numbers = np.zeros(len(drawn))
    for step, weight in enumerate(row[::-1].tolist()):
        numbers += weight * numbers_of(blocks[0, step])
    return Total(
        drawn=drawn,
        numbers=numbers,
        factor=Fraction(float(row @ row)) * toeplitz_squared_sensitivity(number),
        blocks={(0, step): blocks[0, step] for step in steps},
    )


def _advance_tree(
    step: int, tally: Tally, blocks: dict[tuple[int, int], Block], draw: Draw
) -> Tree:
    """Draw the blocks that end with a step, the smallest first; join each with its halves."""
    drawn, exact = draw(tally), tally
    blocks[0, step] = packed(exact, drawn.count.astype(np.float64))
    for level in blocks_closed(step)[1:]:
        halves = blocks.pop((level - 1, step - 2 ** (level - 1))), blocks.pop((level - 1, step))
        first = tally_of(halves[0], tally.contributions)
        exact = add_blocks([first, exact], [1, 1], tally.contributions)
        drawn = draw(exact)
        # The block's own count and the sum of its halves, by their variances.
        weight, below = 2 * block_variance(level - 1), numbers_of(halves[0]) + numbers_of(halves[1])
        numbers = (float(weight) * drawn.count + below) / float(weight + 1)
        blocks[level, step] = packed(exact, numbers)
    return drawn


def _advance_toeplitz(
    weights: tuple[int, ...],
    step: int,
    tally: Tally,
    blocks: dict[tuple[int, int], Block],
    draw: Draw,
) -> Tree:
    """Draw the sum of all steps so far, each times its weight."""
    largest = UNIT_WEIGHT * tally.contributions
    summed = add_blocks([tally], [weights[0]], largest)
    for start in range(0, step, _BATCH):
        part = range(start, min(start + _BATCH, step))
        tallies = [tally_of(blocks[0, earlier], largest) for earlier in part]
        factors = [weights[step - earlier] for earlier in part]
        summed = add_blocks([summed, *tallies], [1, *factors], largest)
    drawn = draw(summed)
    blocks[0, step] = packed(tally, drawn.count)
    return drawn


_NOT_OFFERED = {
    "count": "count must be records in a stream; the weight of a user's records depends on all "
    "of them, and later ones are not there yet",
    "choice": "max_contributions must be a number in a stream, got auto; the bound is needed "
    "before the first record is read",
    "slices": "slices must be given for a stream; each of them is added once",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRequest(BuildRequest):
    """A request that a stream can have: with slices, and a bound that is known before reading."""

    domain: Domain
    slices: TimeSlices  # all that the stream can have

    def __post_init__(self) -> None:
        slices: TimeSlices | None = self.slices
        faults = {
            "slices": slices is None,
            "count": bool(self.unit.weight),
            "choice": self.contribution_choice is not None,
        }
        for name, applies in faults.items():
            if applies:
                raise ParameterError(_NOT_OFFERED[name])
        BuildRequest.__post_init__(self)  # which refuses private bounds with slices

    @classmethod
    def of(cls, request: BuildRequest) -> StreamRequest:
        """The same request, for a stream."""
        return cls(**{each.name: getattr(request, each.name) for each in fields(request)})


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StreamPlan:
    """Facts of a stream that never change. Private: it names files, and has the key."""

    request: str  # the `BuildRequest` as TOML
    folder: str  # where the relative paths in it begin
    output: str  # file of the public series
    key: str  # of the hash that chooses the kept records, in hexadecimal digits
    files: Mapping[str, str]  # SHA-256 of each public file of the request
    # What each slice states: the charge, and the number of slices.
    statement: Mapping[str, int | str]
    # Digest of the clock changes of the time zone, see `psd._util.wall_clock.zone_rules`.
    clock: str
    ledger: str | None = None  # budget that paid
    dataset: str | None = None
    analyst: str | None = None
    totals: str | None = None  # file of the running totals
    counter: Counter | None = None  # how these are computed
    # What Gaussian noise of ``toeplitz`` spends; that of slices is in the request.
    delta: str | None = None

    def __repr__(self) -> str:
        return "<StreamPlan: private>"

    def to_rows(self) -> dict[str, str]:
        """Return the rows of the state, with the digest of the others."""
        rows = {name: json.dumps(getattr(self, name)) for name in self.__slots__}
        return {**rows, "digest": json.dumps(self._digest)}

    @classmethod
    def from_rows(cls, rows: Mapping[str, str]) -> StreamPlan:
        """Make the plan of the rows of a state, whose digest must be the one that was written."""
        try:
            values = {name: strict_json(text.encode()) for name, text in rows.items()}
            digest = values.pop("digest")
            if values.keys() != {*cls.__slots__} or not all(
                _is_fact(name, value) for name, value in values.items()
            ):
                raise ValueError("facts that are missing, unknown or of another type")
            if (values["totals"] is None) != (values["counter"] is None):
                raise ValueError("totals without a counter, or a counter without totals")
            if (values["ledger"] is None) != (values["dataset"] is None):
                raise ValueError("a ledger without a dataset, or a dataset without a ledger")
            if (values["ledger"] is None) != ("charge" not in values["statement"]):
                raise ValueError("a charge without a ledger, or a ledger without a charge")
            plan = cls(**values)
            if digest != plan._digest:
                raise ValueError("a fact that was changed")
        except (PsdError, ValueError, KeyError):
            raise InputDataError(
                "state has other facts than those of a stream, or they are damaged; restore a copy"
            ) from None
        return plan

    @property
    def _digest(self) -> str:
        """SHA-256 over the values of the plan, which finds damage, and no edits: it has no key."""
        # What a stream may spend is compared with the charge that paid for it, see `check_paid`.
        values = {name: getattr(self, name) for name in self.__slots__}
        values["request"] = read_toml("request", self.request)
        # Numbers of TOML are decimals, which have one text each.
        return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()

    def build_request(self) -> StreamRequest:
        """Return the request, if its public files have not changed, since all slices share them."""
        for path, digest in self.files.items():
            if _file_digest(path) != digest:
                raise InputDataError(
                    f"public file {path} must not change while a stream grows, and it has; "
                    "restore it as it was when the stream was created"
                )
        try:
            return StreamRequest.of(request_from_toml(self.request, folder=Path(self.folder)))
        except ParameterError as error:
            raise InputDataError(
                f"state has a request that is none ({error}); restore a copy"
            ) from None


def _is_text(value: Any) -> bool:
    """Whether a fact is a text that a path can have; ValueError for a lone surrogate."""
    return isinstance(value, str) and b"\0" not in os.fsencode(value)


# Facts that a stream may be without.
_OPTIONAL = ("ledger", "dataset", "analyst", "totals", "counter", "delta")


def _is_fact(name: str, value: Any) -> bool:
    """Whether a value may be that of a fact."""
    if name == "key":  # 32 bytes in hexadecimal digits
        return isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef")
    if name == "files":
        return isinstance(value, dict) and all(map(_is_text, (*value, *value.values())))
    if name == "statement":
        return isinstance(value, dict) and all(
            type(each) is int and each > 0 if key == "stream_slices" else _is_text(each)
            for key, each in value.items()
        )
    if value is None:
        return name in _OPTIONAL
    return value in get_args(Counter) if name == "counter" else _is_text(value)


def file_digests(request: BuildRequest, folder: Path) -> dict[str, str]:
    """SHA-256 of each public file of a request, by its path; an object in memory is refused."""
    paths = public_files(read_toml("request", request_to_toml(request)), folder)
    return {path: _file_digest(path) or "" for path in paths}


def _file_digest(path: str) -> str | None:
    """SHA-256 of a file; None if it cannot be read."""
    try:
        with file_of(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def stream_charge(
    request: StreamRequest, counter: str | None = None, delta: str | None = None
) -> ChargeRequest:
    """Return the charge of a stream, which counts everywhere: its inputs are not there yet."""
    slices, unit = request.slices, request.unit
    listed = canonical_json({"by": slices.by, "zone": slices.time_zone, "names": [*slices.names]})
    return replace(
        charge_request(request),
        what=f"stream {request.method.name}",
        terms={
            "slices": f"{len(slices)} {hashlib.sha256(listed).hexdigest()}",
            "unit": f"{unit.kind} {unit.contributions} {unit.max_per_slice or 'any'} of a slice",
            "noise": request.law,
            "counter": counter or "none",
            "delta": delta or "none",
        },
    )


def check_paid(request: StreamRequest, plan: StreamPlan, charge: Charge, dataset: Dataset) -> None:
    """Compare what a state says of its stream with the charge that paid for it."""
    # An edited state would not spend what was paid for.
    owed, unit = stream_charge(request, plan.counter, plan.delta), request.unit
    differ = {
        "epsilon or delta": owed.loss != charge.loss,
        "unit": (unit.kind, unit.time_zone) != (dataset.unit, dataset.time_zone),
        "contribution bound": unit.contributions != charge.bound,
        "columns": any(reading != dataset.reading for reading in owed.readings),
        "number of slices": plan.statement.get("stream_slices") != len(request.slices),
        **{name: value != charge.terms.get(name) for name, value in owed.terms.items()},
    }
    different = [name for name, applies in differ.items() if applies]
    if different:
        raise LedgerError(
            f"state must have the {different[0]} that charge {charge.id} paid for when the stream "
            "was created, and it has another; one of the two was edited: restore a copy"
        )


def fault_charge(request: StreamRequest) -> ChargeRequest:
    """Return the charge of an addition that a fault ends, which the stream did not pay for."""
    # The stream is charged once, and each of its additions may end by a fault, so its epsilon does
    # not lower the price of a fault; see `psd.ledger.state.LedgerState`.
    return replace(stream_charge(request), loss=Loss.pure(0), terms={})


def guarantee_of(request: BuildRequest, delta: str | None) -> str:
    """Return the guarantee of a whole stream, in a few words; delta is what totals spend."""
    if delta is None:
        return request.guarantee_text
    words, note = request.unit.summed_text, failure_text(parse_delta(delta))
    return f"{request.loss.text} and delta {delta} {words}; {note}"


def read_public_inputs(request: StreamRequest) -> PublicInputs:
    """Read the public files of a request."""
    return resolve_public_inputs(
        request.domain,
        request.post_processing,
        covariate=request.covariate,
        boundary=request.boundary,
    )
