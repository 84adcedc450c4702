"""Private choices before a build: a bounding box, and max_contributions. Private side.

For shares of epsilon, four quantiles on a public outer lattice are drawn, between which the records
are read a second time, and units are counted to choose how many records are kept of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from psd._util.declared_parameters import check_parameters, integer_between, public_field
from psd.curator._constants import (
    BOUND_STEPS,
    BOUNDS_BEYOND,
    BOUNDS_SHARE,
    CHOICE_MAX,
    CHOICE_OVER,
    CHOICE_SHARE,
    OUTER_LINES,
    SMALL_BOUNDS,
)
from psd.curator.curator import Curator
from psd.errors import ParameterError
from psd.mechanisms.exponential_mechanism import Candidates, ExponentialMechanism
from psd.privacy.budget import share
from psd.privacy.loss import NANO
from psd.privacy.unit import MAX_CONTRIBUTIONS
from psd.space.bounds import snap_outward
from psd.space.domain import DEFAULT_LATTICE, USUAL_MIN_CELL, Domain, parse_min_cell
from psd.space.lattice_axis import parse_resolution

if TYPE_CHECKING:
    from psd.ingest.tally import Tally
    from psd.mechanisms.base import Sampler
    from psd.privacy.budget import Budget


_SIDES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateBounds:
    """How the bounds of a release are estimated; used in place of a domain. Public."""

    crs: str = public_field("EPSG:4326", lambda name, value: value, "coordinate reference system")
    share: Decimal = public_field(BOUNDS_SHARE, share, "share of epsilon for the bounds")
    beyond: int = public_field(
        BOUNDS_BEYOND, integer_between(3, 10_000), "one record in this number lies beyond each side"
    )
    # Of the resulting domain; left out with a `coordinate_resolution`.
    lattice: tuple[int, int] = public_field(DEFAULT_LATTICE, lambda name, value: value, "lattice")
    # As in `psd.space.domain.Domain`. Bounds come first, then the resolution: the estimated sides
    # move outward to its next multiples, or to the limits of the CRS.
    coordinate_resolution: str | None = public_field(
        None, lambda name, value: parse_resolution(value), "step to which coordinates are rounded"
    )
    # As in `psd.space.domain.Domain`; where the bounds are narrower, their shorter side.
    min_cell: str | None = public_field(
        USUAL_MIN_CELL,
        lambda name, value: value if value == USUAL_MIN_CELL else parse_min_cell(value),
        "smallest cell in metres",
    )

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.share == 0:
            raise ParameterError("share must be above 0, got 0; private bounds cost epsilon")
        _ = self.outer
        if self.coordinate_resolution is not None and self.lattice != DEFAULT_LATTICE:
            raise ParameterError(
                "lattice must be left out with coordinate_resolution, from which it follows, got "
                f"{self.lattice}"
            )
        _ = self.widest

    @property
    def outer(self) -> Domain:
        """Public domain in which the bounds are estimated: the area of use of the CRS."""
        return Domain.area_of_use(self.crs, lattice=(OUTER_LINES, OUTER_LINES))

    @property
    def widest(self) -> Domain:
        """The release's domain at its widest: the area of use, with the resolution if any."""
        # Others have no more values, so if this can be built, no outcome is refused after it was
        # paid for.
        return Domain.area_of_use(
            self.crs, lattice=self.lattice, coordinate_resolution=self.coordinate_resolution
        )

    def allot(self, budget: Budget) -> Budget:
        """Deduct the share of the four sides from the budget of a release, and state it."""
        stated = {"bounds_beyond": self.beyond}
        return budget.allot("bounds", Fraction(self.share), draws=_SIDES, states=stated)


def find_bounds(counts: Tally, request: PrivateBounds, budget: Budget, sampler: Sampler) -> Domain:
    """Domain between four private quantiles of the records; spends all of its budget.

    counts: over the outer lattice, private; all else public; budget: that of `PrivateBounds.allot`.

    Sensitivity, charge and proof: those of `psd.curator.curator.Curator.quantile`, asked four times
    about one cell, the outer lattice. The quantiles are 1/q and (q - 1)/q of each axis, whose
    integer scores have the sensitivity max(p, q - p) k = (q - 1) k, about twice that of a median's
    q/2. The four epsilons add up at every point of the outer domain; a curator that has no more
    than them refuses anything else. The domain is a function of the answers, so it is public from
    there on, and questions about the records inside it add their own epsilon. With a coordinate
    resolution, it ends with `psd.space.bounds.snap_outward`, which sees answers and public numbers.
    """
    each, outer = budget.left // _SIDES, request.outer
    curator = Curator(counts, outer, budget=budget, sampler=sampler)
    root, sides = curator.root(), np.zeros(4, np.int64)
    for side, (axis, p) in enumerate(
        ((0, 1), (1, 1), (0, request.beyond - 1), (1, request.beyond - 1))
    ):
        sides[side] = curator.quantile(root, axis=axis, loss=each, p=p, q=request.beyond)[0]
    # Opposite sides that noise put in the wrong order say nothing: the whole axis is taken.
    for axis in (0, 1):
        if sides[axis] >= sides[axis + 2]:
            sides[axis], sides[axis + 2] = 0, outer.lattice[axis]
    bounds: Any = tuple(outer.from_lattice(sides[None])[0].tolist())
    resolution = request.coordinate_resolution
    if resolution is not None:
        bounds = snap_outward(bounds, resolution, outer.bounds)
    domain = Domain(
        bounds=bounds,
        crs=request.crs,
        lattice=request.lattice,
        coordinate_resolution=resolution,
    )
    return domain.with_min_cell(request.min_cell)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContributionChoice:
    """How max_contributions is chosen privately. Public."""

    share: Decimal = public_field(CHOICE_SHARE, share, "share of epsilon for the choice")
    # 250 / epsilon by default.
    over: int | None = public_field(
        None, integer_between(0, 2**53), "users with more records than the bound"
    )
    limit: int = public_field(CHOICE_MAX, integer_between(1, MAX_CONTRIBUTIONS), "largest bound")

    name: ClassVar[str] = "max_contributions"

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.share == 0:
            raise ParameterError("share must be above 0, got 0; a choice costs epsilon")

    def allot(self, budget: Budget) -> Budget:
        """Deduct the share of the choice from the budget of a release, and state it."""
        stated = {"bound_over": self.target(_epsilon_of(budget)), "bound_most": self.limit}
        return budget.allot("bound", Fraction(self.share), states=stated)

    def target(self, epsilon: int) -> int:
        """Number of users that may have more records than the bound."""
        return -(-CHOICE_OVER * NANO // epsilon) if self.over is None else self.over


def candidate_bounds(limit: int) -> NDArray[np.int64]:
    """Public list of candidates: 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, ... up to the largest one."""
    decades = range(len(str(limit)))
    bounds = [*SMALL_BOUNDS, *(step * 10**decade for decade in decades for step in BOUND_STEPS)]
    return np.array([*(bound for bound in bounds if bound < limit), limit], np.int64)


def choose_contribution_bound(
    rows: NDArray[np.int64], choice: ContributionChoice, budget: Budget, sampler: Sampler
) -> int:
    """Choose the smallest bound that about t units of privacy exceed; spends all of its budget.

    rows: (units,) int64, records of each unit of privacy inside the domain, private; all else
    public; budget: that of `ContributionChoice.allot`.

    Sensitivity: 1 of the score -max(over(c) - t, t - over(b), 0), where over(c) is the number of
    units with more than c records, b the next smaller bound (without one, its term is 0) and t a
    public number. It is not multiplied by k, because units are counted and not their records.
    Charged to: every point of the domain, all of the allotted budget once. No other question reads
    these numbers, and the curator of the records gets what the release has left.
    Proof: a unit more or less changes over(c) by 1 for the bounds c below its own number of records
    and no other unit's number, so both differences change by at most 1, and so does the largest of
    them. The exponential mechanism with weights exp(epsilon score / 2) over the public list of
    bounds, epsilon being the allotted budget, is then epsilon-private for the unit [1]_. In rho,
    epsilon^2 / 8 is the allotted budget: all scores change by at most 1, so the log-ratios of the
    answers lie in an interval of length epsilon, and the choice is (epsilon^2 / 8)-zCDP. The bound
    is then public, and what the curator answers for a fixed bound is private for the same unit: the
    two add up.

    .. [1] McSherry, Talwar. "Mechanism Design via Differential Privacy." FOCS 2007.
    """
    target, price = choice.target(_epsilon_of(budget)), budget.left
    bounds = candidate_bounds(choice.limit)
    # Units with more records than each bound, (bounds,).
    over = len(rows) - np.searchsorted(np.sort(rows), bounds, side="right")
    # A question that counts records must pay for all records of a user. With the score -abs(over(c)
    # - t), all bounds that no user exceeds would be equally good, and the choice among them random.
    candidates = Candidates(
        group=np.zeros(len(bounds), np.int64),
        first=bounds,
        length=np.ones(len(bounds), np.int64),
        score=-count_misses(over, target),
    )
    budget.spend(price)
    selection = ExponentialMechanism(
        candidates=candidates,
        epsilon=budget.measure.of_selections(np.array([price])),
        sensitivity=np.array([1]),
    )
    return int(sampler.draw(selection)[0])


def count_misses(over: NDArray[np.int64], target: int) -> NDArray[np.int64]:
    """Units by which too many exceed each bound, or too few the next smaller one; private."""
    too_few = np.append(0, target - over[:-1])
    misses: NDArray[np.int64] = np.maximum(np.maximum(over - target, too_few), 0)
    return misses


def _epsilon_of(budget: Budget) -> int:
    """Nano-epsilon of a release; in rho, that of pure mechanisms which cost as much."""
    return int(budget.measure.of_pure(np.array([budget.release_total]))[0])
