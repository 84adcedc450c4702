"""Private bounds: a bounding box that is estimated from the records for a share of epsilon.

Four quantiles on a public outer lattice are drawn. The domain of the release is the box between
them, and the records are read a second time. Private side.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from psd._util.declared_parameters import check_parameters, integer_between, public_field
from psd.curator._constants import BOUNDS_BEYOND, BOUNDS_SHARE, OUTER_LINES
from psd.curator.curator import Curator
from psd.errors import ParameterError
from psd.privacy.budget import share
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
        """Check the fields."""
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
        """The release's domain at its widest: the area of use, with the resolution if any.

        Bounds inside the area of use have no more values than it, and those of `snap_outward` have
        one or more. So if this domain can be built, no outcome is refused after it was paid for.
        """
        return Domain.area_of_use(
            self.crs, lattice=self.lattice, coordinate_resolution=self.coordinate_resolution
        )

    def allot(self, budget: Budget) -> Budget:
        """Deduct the share of the four sides from the budget of a release, and state it."""
        stated = {"bounds_beyond": self.beyond}
        return budget.allot("bounds", Fraction(self.share), draws=_SIDES, states=stated)


def find_bounds(counts: Tally, request: PrivateBounds, budget: Budget, sampler: Sampler) -> Domain:
    """Domain between four private quantiles of the records; spends all of its budget.

    counts: over the outer lattice, private; all else public. `budget` is that of
    `PrivateBounds.allot`. If the two answers of an axis are out of order, the domain spans the
    outer axis.

    Sensitivity, charge and proof: those of `psd.curator.curator.Curator.quantile`, asked four
    times about one cell, the outer lattice. The quantiles are 1/q and (q - 1)/q of
    each axis, whose integer scores have the sensitivity max(p, q - p) k = (q - 1) k, about twice
    that of a median's q/2. The epsilons of all four add up at every point of the outer domain; a
    curator that has no more than them refuses anything else. The domain is a function of the
    answers, so it is public from there on, and questions about the records inside it add their own
    epsilon. With a coordinate resolution, the function ends with `psd.space.bounds.snap_outward`,
    which sees the answers and public numbers only.
    """
    each, outer = budget.left // _SIDES, request.outer
    curator = Curator(counts, outer, budget=budget, sampler=sampler)
    root, sides = curator.root(), np.zeros(4, np.int64)
    for side, (axis, p) in enumerate(
        ((0, 1), (1, 1), (0, request.beyond - 1), (1, request.beyond - 1))
    ):
        sides[side] = curator.quantile(root, axis=axis, loss=each, p=p, q=request.beyond)[0]
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
