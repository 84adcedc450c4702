"""Sites: candidates by the records in their catchments."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from psd._util.arrays import Integers
from psd._util.declared_parameters import integer_between
from psd._util.instances import check_instance
from psd.apps.choosing.candidate_areas import CandidateAreas
from psd.apps.choosing.counts import PlacedCounts
from psd.apps.choosing.objectives import Pick
from psd.errors import DomainError, ParameterError
from psd.ingest.tally import Tally
from psd.mechanisms.permute_and_flip import PermuteAndFlip
from psd.space.domain import Domain

_MAX_TARGET = 2**40


@dataclass(frozen=True, slots=True, kw_only=True)
class Sites:
    """Candidate sites; the score is the number of records in the catchment.

    Guarantees
    ----------
    - Candidates, catchments and the number of draws are public; only the scores read records.
    - A record adds 1 to the score of each catchment that it lies in and is not covered, so the
      sensitivity is that of a count. With a target, the score may fall as well.

    Parameters
    ----------
    catchments : CandidateAreas
        Candidates and the area that each of them serves. Public.
    best : int
        Sites that are chosen one after another, each with an equal part of epsilon. Public.
    cover : bool
        Whether a record counts only until a chosen site covers it. Public.
    target : int, optional
        The score is minus the distance of the number of records from it. Public.
    bounds : tuple of float, optional
        West, south, east, north; records outside do not count. The box around the catchments by
        default. Public.
    coordinate_resolution : str, optional
        Of the domain, as in `psd.Domain`. Public.
    files : tuple of str
        Files that the candidates were read from; none of them may be an input. Public.
    taken : tuple of int
        Candidates that earlier draws have chosen. Public.

    Raises
    ------
    ParameterError
        If more sites are chosen than there are, or a target is given together with `cover` or
        several sites.
    DomainError
        If a catchment lies outside the bounds.

    Notes
    -----
    Proof. A record is in a catchment or not, by its own lattice cell. Without a target the score
    is a sum of counts of distinct records, so a record more adds 0 or 1 to each: monotone, with
    sensitivity k for a user of k records. With a target t the score -abs(count - t) changes by at
    most as much as the count, in either direction: not monotone. Which records are covered is a
    function of each record and of earlier answers, so each draw is such a question again.

    References
    ----------
    McSherry, Talwar. "Mechanism Design via Differential Privacy." FOCS 2007, on facilities.

    Examples
    --------
    >>> places = CandidateAreas.around(["a", "b"], [[0, 0], [3, 0]], 2, "EPSG:3857")
    >>> Sites(catchments=places).domain.bounds
    (-2.0, -2.0, 5.0, 2.0)
    """

    catchments: CandidateAreas
    best: int = 1
    cover: bool = False
    target: int | None = None
    bounds: tuple[float, float, float, float] | None = None
    coordinate_resolution: str | None = None
    files: tuple[str, ...] = ()
    taken: tuple[int, ...] = ()

    name: ClassVar[str] = "site"
    mechanism: ClassVar[type[PermuteAndFlip]] = PermuteAndFlip
    bids: ClassVar[None] = None
    step: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        check_instance(
            "catchments", self.catchments, CandidateAreas, "psd.apps.choosing.CandidateAreas"
        )
        best = integer_between(1, len(self.catchments))("best", self.best)
        object.__setattr__(self, "best", best)
        if self.target is not None:
            object.__setattr__(
                self, "target", integer_between(0, _MAX_TARGET)("target", self.target)
            )
            if self.best > 1 or self.cover:
                raise ParameterError(
                    "target must be left out where several sites are chosen; choose one after "
                    "another yourself"
                )
        if self.cover and self.best == 1:
            raise ParameterError("cover must be left out for one site; best= has their number")
        # The catchment of each candidate must meet the domain.
        west, south, east, north = self.domain.bounds
        unrolled, owner = self.catchments.unrolled()
        boxes = unrolled.boxes
        meets = (boxes[:, 0] <= east) & (boxes[:, 2] >= west)
        meets &= (boxes[:, 1] <= north) & (boxes[:, 3] >= south)
        is_outside = np.bincount(owner[meets], minlength=len(self.catchments)) == 0
        if is_outside.any():
            name = self.catchments.ids[int(is_outside.argmax())]
            raise DomainError(
                f"candidates must lie in the bounds, got {name[:80]!r} outside; are x and y "
                "swapped, or is the CRS another one?",
                name="bounds",
            )

    @property
    def domain(self) -> Domain:
        """The bounds, or the box around all catchments."""
        bounds = self.catchments.bounds if self.bounds is None else self.bounds
        return Domain(
            bounds=bounds,
            crs=self.catchments.crs,
            coordinate_resolution=self.coordinate_resolution,
            min_cell=None,
        )

    @property
    def shape(self) -> tuple[int]:
        """One score for each site that was not chosen before."""
        return (len(self._open),)

    @property
    def candidates(self) -> int:
        """Sites that were not chosen before."""
        return len(self._open)

    @property
    def draws(self) -> int:
        """One for each site."""
        return self.best

    @property
    def is_monotone(self) -> bool:
        """True without a target."""
        return self.target is None

    @property
    def _open(self) -> Integers:
        """Numbers of the candidates that are left."""
        return np.setdiff1d(np.arange(len(self.catchments)), self.taken)

    def sensitivity(self, contributions: int) -> int:
        """All contributions of a unit, which may lie in one catchment."""
        return contributions

    def scores(self, tally: Tally, domain: Domain) -> Integers:
        """Count the records in the catchments that are left. Private."""
        placed = PlacedCounts(tally, domain)
        for site in self.taken if self.cover else ():
            placed.remove(self.catchments, site)
        counts = placed.sums(self.catchments)[self._open]
        if self.target is None:
            return counts
        return -np.abs(counts - self.target)

    def pick(self, answer: Integers) -> tuple[tuple[Pick, ...], Self]:
        """Name the site, and take it from the list."""
        site = int(self._open[int(answer)])
        row: Pick = {"rank": len(self.taken) + 1, "id": self.catchments.ids[site]}
        return (row,), replace(self, taken=(*self.taken, site))


objective = Sites
