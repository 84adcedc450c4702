"""Regions of a public hierarchy: counts on every level, and a cascade inside the lowest ones.

References
----------
.. [1] Abowd et al. "The 2020 Census Disclosure Avoidance System TopDown Algorithm." Harvard Data
   Science Review, 2022. https://doi.org/10.1162/99608f92.529e3cb9
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar

from psd._util.arrays import Integers
from psd._util.declared_parameters import check_parameters, choice, public_field
from psd.decompositions._constants import (
    AUTO_CELLS,
    CASCADE_SIGNAL,
    REGIONS_ALONE_TOTAL_SHARE,
    REGIONS_MAX_SHARE,
    REGIONS_MIN_SHARE,
    REGIONS_SHARE,
    REGIONS_SHARE_EXPONENTS,
    REGIONS_SIGNALS,
    TOTAL_SHARE,
)
from psd.decompositions.cascade import Cascade
from psd.errors import ParameterError
from psd.privacy.budget import root_shares, share, split_total
from psd.privacy.loss import epsilon_text, parse_decimal
from psd.release.post_processing import PostProcessing

if TYPE_CHECKING:
    from psd.decompositions._base import Curator
    from psd.space.box_tree import Tree
    from psd.space.growing_tree import Cells


INSIDE = ("cascade", "auto", "none")
"""What may be inside the lowest regions."""

_MAX_SIGNAL = 1_000_000
_MAX_TEXT, _MAX_WEIGHT = 100, 1_000_000
_DEGREES = {"absolute": 2, "squared": 3}


def _weights_text(name: str, value: object) -> str:
    """Check for numbers above 0 with commas between them."""
    try:
        weights = [parse_decimal(name, part.strip()) for part in str(value)[:_MAX_TEXT].split(",")]
    except ParameterError:
        weights = []
    if not weights or not all(0 < weight <= _MAX_WEIGHT for weight in weights):
        raise ParameterError(
            f"{name} must be numbers above 0 and at most {_MAX_WEIGHT:,} with commas between them, "
            f"got {str(value)[:_MAX_TEXT]!r}",
            name=name,
        )
    return ",".join(f"{weight:f}" for weight in weights)


@dataclass(frozen=True, slots=True, kw_only=True)
class Regions:
    """Noisy counts of the regions of every level, and cells inside the lowest regions.

    The levels share a part of epsilon, as the objective says; the rest goes to a cascade in each
    lowest region, whose cells are clipped to it. All counts are pooled by least squares, so that
    every level adds up.

    Guarantees
    ----------
    - Every region of every level is counted, unless public input says that no record can lie in it.
    - The shares of the total, of the levels and of the cells sum to exactly epsilon on every path.

    Parameters
    ----------
    inside : {"cascade", "auto", "none"}
        What is inside the lowest regions: cells, cells of which there are not many more than a
        million, or nothing. Public.
    levels_share : decimal in (0, 1), optional
        Share of epsilon for all levels together. By default 0.25: more if the regions have few
        records for epsilon, less if they have many; all that is left if nothing is inside. Public.
    weights : str, optional
        Weight of the error of each level, top first, such as ``"1,1,4"``; equal by default. Public.
    objective : {"absolute", "squared"}
        Errors whose weighted sum over the levels the shares minimise. Public.
    total_share : decimal in (0, 1), optional
        Share of epsilon for the total: 0.02, or 0.01 if nothing is inside. Public.

    Notes
    -----
    With shares a_l, the error of the count of a region of level l alone has the mean absolute value
    1 / (a_l epsilon) and the variance 2 / (a_l epsilon)^2, for w_l the weight of the level. The
    sum of w_l / a_l at a fixed sum of shares is smallest if a_l is in proportion to sqrt(w_l), that
    of w_l / a_l^2 if it is in proportion to cbrt(w_l).

    The default share is 0.25. With s below 100 it is 0.25 (100 / s)^(1/8), at most 0.4, and with s
    above 500 it is 0.25 (500 / s)^(2/9), at least 0.15, where s is the noisy total
    times epsilon (over k with at most k records per user) over the number of lowest regions.

    References
    ----------
    .. [1] Abowd et al., 2022.

    Examples
    --------
    >>> Regions(inside="none").inside
    'none'
    """

    inside: str = public_field("cascade", choice(*INSIDE), "what is inside the lowest regions")
    levels_share: Decimal | None = public_field(
        None, share, "share of epsilon for all levels of regions"
    )
    weights: str | None = public_field(None, _weights_text, "weight of each level, top first")
    objective: str = public_field(
        "absolute", choice(*_DEGREES), "errors whose weighted sum the shares minimise"
    )
    total_share: Decimal | None = public_field(None, share, "share of epsilon for the total")

    name: ClassVar[str] = "regions"
    picks: ClassVar[tuple[str, ...]] = ("levels_epsilon", "levels_rho", "signal")
    paper: ClassVar[str] = "after Abowd et al., HDSR 2022"

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.levels_share == 0 or self.total_share == 0:
            raise ParameterError(
                "levels_share and total_share must be above 0; every level is counted"
            )
        if self.inside == "none" and self.levels_share is not None:
            raise ParameterError(
                "levels_share must be left out with inside=none, where it is the rest"
            )
        if (self.levels_share or 0) + self._total_share >= 1:
            raise ParameterError(
                "levels_share and total_share must leave some epsilon for the cells"
            )

    @property
    def post_processing(self) -> PostProcessing:
        """Posterior medians where there are cells; least squares for regions alone."""
        return PostProcessing(estimate="least-squares" if self.inside == "none" else "posterior")

    @property
    def _total_share(self) -> Decimal:
        """Share for the total."""
        default = REGIONS_ALONE_TOTAL_SHARE if self.inside == "none" else TOTAL_SHARE
        return default if self.total_share is None else self.total_share

    def step(self, lattice: tuple[int, int]) -> tuple[int, int]:
        """One column and one row: cells begin where the box of their region does."""
        return 1, 1

    def build(self, curator: Curator) -> Tree:
        """Count the total, then every level of regions, then cells inside the lowest ones."""
        root, (left, paid) = curator.root(), split_total(curator.loss, self._total_share)
        total = int(curator.count(root, paid)[0])
        levels = curator.cut_regions(root)
        for_levels = left
        if self.inside != "none":
            signal = curator.noise.signal_to_noise(max(total, 1), curator.loss)
            part = self.levels_share or default_share(signal / len(levels[-1]))
            for_levels = min(max(int(curator.loss * part), len(levels)), left)
        measure = curator.noise.measure
        curator.declare(f"levels_{measure.name}", measure.text(for_levels))
        shares = self._level_shares(for_levels, len(levels))
        counts = [curator.count(cells, loss) for cells, loss in zip(levels, shares, strict=True)]
        if left > for_levels:
            self._divide(curator, levels[-1], total, counts[-1], left - for_levels)
        return curator.tree()

    def _level_shares(self, total: int, levels: int) -> tuple[int, ...]:
        """Loss of each level, at least 1."""
        weights = [Decimal(part) for part in (self.weights or ",".join("1" * levels)).split(",")]
        if len(weights) != levels:
            raise ParameterError(
                f"weights must be one for each of {levels} levels of regions, got {len(weights)}"
            )
        shares = root_shares(total, weights, _DEGREES[self.objective])
        if min(shares) < 1:
            raise ParameterError(
                f"epsilon must leave 1e-9 for each of {levels} levels of regions, got "
                f"{epsilon_text(total)} for all"
            )
        return shares

    def _divide(
        self, curator: Curator, regions: Cells, total: int, counts: Integers, loss: int
    ) -> None:
        """Divide the lowest regions in which records can lie."""
        signal = CASCADE_SIGNAL
        if self.inside == "auto":
            expected = curator.noise.signal_to_noise(total, loss)
            signal = min(max(signal, math.ceil(expected / AUTO_CELLS)), _MAX_SIGNAL)
            curator.declare("signal", signal)
        may_have_records = curator.inside_boundary(regions)
        Cascade(signal=signal).descend(
            curator,
            regions[may_have_records],
            totals=counts[may_have_records],
            loss=loss,
            first_levels=0,
        )


def default_share(signal: float) -> Decimal:
    """Share of epsilon for all levels, for expected records times epsilon in a lowest region."""
    few, many = REGIONS_SIGNALS
    if few <= signal <= many:
        return REGIONS_SHARE
    near, exponent = (few, REGIONS_SHARE_EXPONENTS[0])
    if signal > many:
        near, exponent = (many, REGIONS_SHARE_EXPONENTS[1])
    moved = float(REGIONS_SHARE) * (near / max(signal, 1e-9)) ** exponent
    return min(max(Decimal(f"{moved:.3f}"), REGIONS_MIN_SHARE), REGIONS_MAX_SHARE)
