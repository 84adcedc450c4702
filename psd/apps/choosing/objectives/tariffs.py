"""Tariffs: a public list of them, each with a price for every region."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, Self

import numpy as np

from psd._util.arrays import Integers
from psd._util.instances import check_instance
from psd.apps.choosing.counts import BidLevels
from psd.apps.choosing.files import PriceList
from psd.apps.choosing.objectives import Pick
from psd.errors import ParameterError
from psd.ingest.tally import Tally
from psd.mechanisms.permute_and_flip import PermuteAndFlip
from psd.regions.hierarchy import RegionHierarchy
from psd.space.domain import Domain


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tariffs:
    """Tariffs of a public list; the score is what a tariff earns, over all regions.

    Guarantees
    ----------
    - Tariffs and regions are public, and whatever constraint they keep is kept by the answer.
    - A bid adds at most the price of its region in each tariff, so scores are monotone, and their
      sensitivity is the largest price of the list for each bid of a user.

    Parameters
    ----------
    bid : str
        Column of bids; a record without a finite number is left out. Public.
    ids : tuple of str
        Names of the tariffs, each once. Public.
    prices : tuple of tuple of Decimal
        For each tariff its price in each region; one price without regions. Public.
    domain : Domain
        Bids outside do not count. Public.
    regions : RegionHierarchy, optional
        Its lowest regions, in their order; bids in none of them do not count. Public.
    files : tuple of str
        Public files that these were read from; none of them may be an input. Public.

    Raises
    ------
    ParameterError
        If there are fewer than two tariffs, an id is empty or stands twice, a price is missing or
        not above 0, or regions are of another domain.

    Notes
    -----
    Proof. A bid in region r adds p to each tariff whose price p in r it reaches, and 0 to the
    others: 0 to the largest price of the list.

    References
    ----------
    McSherry, Talwar. "Mechanism Design via Differential Privacy." FOCS 2007, section 4.3, on
    constrained pricing.

    Examples
    --------
    >>> prices = ((Decimal("1.5"),), (Decimal(2),))
    >>> domain = Domain(bounds=(0, 0, 1, 1))
    >>> tariffs = Tariffs(bid="bid", ids=("today", "next"), prices=prices, domain=domain)
    >>> tariffs.candidates, tariffs.sensitivity(1), tariffs.step
    (2, 4, 0.5)
    """

    bid: str
    ids: tuple[str, ...]
    prices: tuple[tuple[Decimal, ...], ...]
    domain: Domain
    regions: RegionHierarchy | None = None
    files: tuple[str, ...] = ()

    name: ClassVar[str] = "tariff"
    mechanism: ClassVar[type[PermuteAndFlip]] = PermuteAndFlip
    draws: ClassVar[int] = 1
    is_monotone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_instance("domain", self.domain, Domain, "psd.Domain(bounds=(0, 50, 1, 51))")
        if len(self.ids) < 2:
            raise ParameterError(f"tariffs must be at least 2, got {len(self.ids)}")
        for number, name in enumerate(self.ids):
            if not name.strip() or name in self.ids[:number]:
                raise ParameterError(
                    f"tariffs must have an id each, and different ones, got {name[:80]!r}"
                )
        if self.regions is not None and self.regions.domain != self.domain:
            raise ParameterError("regions must be those of the domain")
        number = 1 if self.regions is None else self.regions.size
        if len(self.prices) != len(self.ids) or {len(row) for row in self.prices} != {number}:
            raise ParameterError(
                f"tariffs must have {number} prices each, one for each region, or one without them"
            )
        _ = self.price_list

    @property
    def price_list(self) -> PriceList:
        """All prices of the tariffs, each once."""
        try:
            return PriceList.of(sorted({price for row in self.prices for price in row}))
        except ParameterError as error:
            raise ParameterError(f"tariffs must share a list of prices: {error}") from None

    @property
    def shape(self) -> tuple[int]:
        """One score for each tariff."""
        return (len(self.ids),)

    @property
    def candidates(self) -> int:
        """Number of tariffs."""
        return len(self.ids)

    @property
    def step(self) -> float:
        """Largest number of which all prices are multiples."""
        return float(self.price_list.step)

    @property
    def bids(self) -> tuple[str, BidLevels]:
        """Column of bids and their levels, by region."""
        return self.bid, BidLevels(prices=self.price_list, regions=self.regions)

    def sensitivity(self, contributions: int) -> int:
        """Largest price of the list, for each contribution."""
        return contributions * self.price_list.largest

    def scores(self, tally: Tally, domain: Domain) -> Integers:
        """Add up over the regions what each tariff earns. Private."""
        prices = self.price_list
        index = {prices.price(number): number for number in range(len(prices))}
        # Number of each price in the list, (tariffs, regions); of each region, who reaches it.
        chosen = np.array([[index[price] for price in row] for row in self.prices])
        reached = BidLevels(prices=prices, regions=self.regions).reached(tally)[:, 0]
        bids = reached[np.arange(reached.shape[0]), chosen]
        revenue: Integers = (bids * np.array(prices.multiples, np.int64)[chosen]).sum(axis=1)
        return revenue

    def pick(self, answer: Integers) -> tuple[tuple[Pick, ...], Self]:
        """Name the tariff."""
        return ({"tariff": self.ids[int(answer)]},), self


objective = Tariffs
