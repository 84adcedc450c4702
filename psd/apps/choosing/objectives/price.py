"""Price: one price for all, by the bids that reach it."""

from __future__ import annotations

from dataclasses import dataclass
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
from psd.space.domain import Domain


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Prices of a public list; the score is what a price earns, itself times bids that reach it.

    Guarantees
    ----------
    - The prices are public; bids above the largest count as the largest.
    - A bid adds 0 to the prices above it and their own amount to the others, at most the largest
      price; so scores are monotone, and their sensitivity is the largest price for each bid of a
      user.

    Parameters
    ----------
    bid : str
        Column of bids; a record without a finite number is left out. Public.
    prices : PriceList
        Public.
    domain : Domain
        Bids outside do not count. Public.

    Raises
    ------
    ParameterError
        If there are fewer than two prices, or an argument is of another type.

    Notes
    -----
    Proof. A bid b adds p to the score of each price p at most b, which are all at most the largest
    price P, and 0 to the others: 0 to P. Scores are in steps of the list, so they are integers.

    References
    ----------
    McSherry, Talwar. "Mechanism Design via Differential Privacy." FOCS 2007, section 4.1, on
    digital goods.

    Examples
    --------
    >>> prices, domain = PriceList.parse("0.5..10/0.5"), Domain(bounds=(0, 0, 1, 1))
    >>> price = Price(bid="bid", prices=prices, domain=domain)
    >>> price.candidates, price.sensitivity(1), price.step
    (20, 20, 0.5)
    """

    bid: str
    prices: PriceList
    domain: Domain

    name: ClassVar[str] = "price"
    mechanism: ClassVar[type[PermuteAndFlip]] = PermuteAndFlip
    draws: ClassVar[int] = 1
    is_monotone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_instance(
            "prices", self.prices, PriceList, 'psd.apps.choosing.PriceList.parse("1..9/0.5")'
        )
        check_instance("domain", self.domain, Domain, "psd.Domain(bounds=(0, 50, 1, 51))")
        if len(self.prices) < 2:
            raise ParameterError(
                "prices must be at least 2, got 1; there is nothing to choose from fewer"
            )

    @property
    def shape(self) -> tuple[int]:
        """One score for each price."""
        return (len(self.prices),)

    @property
    def candidates(self) -> int:
        """Number of prices."""
        return len(self.prices)

    @property
    def step(self) -> float:
        """Step of the price list."""
        return float(self.prices.step)

    @property
    def bids(self) -> tuple[str, BidLevels]:
        """Column of bids and their levels."""
        return self.bid, BidLevels(prices=self.prices)

    def sensitivity(self, contributions: int) -> int:
        """Largest price, for each contribution."""
        return contributions * self.prices.largest

    def scores(self, tally: Tally, domain: Domain) -> Integers:
        """Multiply each price by the number of bids that reach it. Private."""
        reached = BidLevels(prices=self.prices).reached(tally)[0, 0]
        revenue: Integers = reached * np.array(self.prices.multiples, np.int64)
        return revenue

    def pick(self, answer: Integers) -> tuple[tuple[Pick, ...], Self]:
        """State the price."""
        return ({"price": f"{self.prices.price(int(answer)):f}"},), self


objective = Price
