"""Price maps: zones with one price each, on a grid or along a public order of regions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self

import numpy as np

from psd._util.arrays import Integers
from psd._util.instances import check_instance
from psd.apps.choosing.counts import BidLevels
from psd.apps.choosing.files import PriceList
from psd.apps.choosing.objectives import Pick
from psd.errors import ParameterError
from psd.ingest.tally import Tally
from psd.mechanisms.choice_laws import check_maps, leaf_numbers, spans_of, zone_layout
from psd.mechanisms.price_maps import PriceMaps
from psd.regions.hierarchy import RegionHierarchy
from psd.space.domain import Domain

_MAX_DEPTH = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PriceMap:
    """Maps of zones with one price each; the score is what a map earns.

    Guarantees
    ----------
    - Prices, cells, regions and their order are public, so the list of maps is.
    - A bid lies in one zone of each map and adds its price if it reaches it, at most the largest
      price; so scores are monotone, and their sensitivity is that price for each bid of a user.

    Parameters
    ----------
    bid : str
        Column of bids; a record without a finite number is left out. Public.
    prices : PriceList
        Public.
    zones : tuple of int
        Numbers of zones that a map may have, ascending; all have the same weight. Public.
    domain : Domain
        Bids outside do not count. With a depth, its lattice is that of the cells. Public.
    depth : int, optional
        Halvings of each axis: zones are the leaves of a pruned tree that halves 2^depth x 2^depth
        cells, across x first. Public.
    regions : RegionHierarchy, optional
        Zones are runs of its lowest regions instead. Public.
    order : tuple of int, optional
        Numbers of the regions in their public order, each once. Public.
    files : tuple of str
        Public files that the regions were read from; none of them may be an input. Public.

    Raises
    ------
    ParameterError
        If there is not exactly one of depth and regions, the order does not hold each region once,
        or the numbers of zones are out of range.

    Notes
    -----
    Proof. A bid has one cell, or region, and a map has one zone that holds it, with one price p:
    the bid adds p to the score of the map if it reaches p, else 0. The scores of a bin at a price
    add up to those of maps, so the mechanism needs bins and prices alone.

    References
    ----------
    McSherry, Talwar. "Mechanism Design via Differential Privacy." FOCS 2007, section 4.2, on
    attribute auctions.

    Examples
    --------
    >>> domain = Domain(bounds=(0, 0, 1, 1), lattice=(4, 4))
    >>> prices = PriceList.parse("1..5/1")
    >>> maps = PriceMap(bid="bid", prices=prices, zones=(1, 2, 3), domain=domain, depth=2)
    >>> maps.shape, maps.sensitivity(1)
    ((16, 5), 5)
    """

    bid: str
    prices: PriceList
    zones: tuple[int, ...]
    domain: Domain
    depth: int | None = None
    regions: RegionHierarchy | None = None
    order: tuple[int, ...] | None = None
    files: tuple[str, ...] = ()

    name: ClassVar[str] = "prices"
    draws: ClassVar[int] = 1
    is_monotone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_instance(
            "prices", self.prices, PriceList, 'psd.apps.choosing.PriceList.parse("1..9/0.5")'
        )
        check_instance("domain", self.domain, Domain, "psd.Domain(bounds=(0, 50, 1, 51))")
        if (self.depth is None) == (self.regions is None):
            raise ParameterError("zones need either a depth of cells, or regions with their order")
        if self.regions is None:
            depth = self.depth
            if depth is None or not 0 <= depth <= _MAX_DEPTH:
                raise ParameterError(f"zone_depth must be 0 to {_MAX_DEPTH}, got {depth}")
            if self.domain.lattice != (2**depth, 2**depth) or self.order is not None:
                raise ParameterError(
                    f"domain must have a lattice of 2^{depth} x 2^{depth} cells, and no order"
                )
        elif self.order is None or sorted(self.order) != list(range(self.regions.size)):
            raise ParameterError("order must hold the number of each region once")
        check_maps(zone_layout(self.layout, self.shape[0]), self.zones, len(self.prices))

    @property
    def layout(self) -> str:
        """Leaves of a pruned tree, or runs of regions."""
        return "halving-tree" if self.regions is None else "runs"

    @property
    def mechanism(self) -> partial[PriceMaps]:
        """Maps of so many zones of the layout."""
        return partial(PriceMaps, zones=tuple(map(int, self.zones)), layout=self.layout)

    @property
    def shape(self) -> tuple[int, int]:
        """Cells or regions, and prices."""
        bins = 4 ** (self.depth or 0) if self.regions is None else self.regions.size
        return bins, len(self.prices)

    @property
    def candidates(self) -> int:
        """Numbers of zones, times the most maps with prices that one of them has."""
        layout = zone_layout(self.layout, self.shape[0])
        largest = max(layout.count(k) * len(self.prices) ** k for k in self.zones)
        return int(len(self.zones) * largest)

    @property
    def step(self) -> float:
        """Step of the price list."""
        return float(self.prices.step)

    @property
    def bids(self) -> tuple[str, BidLevels]:
        """Column of bids and their levels, by region."""
        return self.bid, BidLevels(prices=self.prices, regions=self.regions)

    def sensitivity(self, contributions: int) -> int:
        """Largest price, for each contribution."""
        return contributions * self.prices.largest

    def scores(self, tally: Tally, domain: Domain) -> Integers:
        """Revenue of each cell or region at each price. Private."""
        reached = self.bids[1].reached(tally, self.domain.lattice if self.depth else (1, 1))
        if self.order is None:  # cells, not regions
            # Cells stand row by row in the tally, and in the order of the tree in the scores.
            bins = np.empty_like(reached[0])
            bins[self._bins] = reached[0]
        else:
            bins = reached[list(self.order), 0]
        revenue: Integers = bins * np.array(self.prices.multiples, np.int64)
        return revenue

    @property
    def _bins(self) -> Integers:
        """Number in the tree of each cell, row by row."""
        rows, columns = (axis.ravel().astype(np.int64) for axis in np.indices(self.domain.lattice))
        return leaf_numbers(columns, rows, self.depth or 0)

    def pick(self, answer: Integers) -> tuple[tuple[Pick, ...], Self]:
        """Zones in their order, each with its price and its outline."""
        zones, prices = answer[:, 0], answer[:, 1]
        describe = self._cells if self.regions is None else self._run
        rows = tuple(
            {"zone": number, "price": f"{self.prices.price(int(prices[first])):f}"}
            | describe(first, stop)
            for number, (first, stop) in enumerate(spans_of(zones), 1)
        )
        return rows, self

    def _cells(self, first: int, stop: int) -> Pick:
        """Box of a node of the tree."""
        import shapely

        bins = self._bins
        cells = np.flatnonzero((bins >= first) & (bins < stop))
        row, column = np.divmod(cells, self.domain.lattice[0])
        lines = np.array([[column.min(), row.min(), column.max() + 1, row.max() + 1]])
        box = [float(edge) for edge in self.domain.from_lattice(lines)[0]]
        sides = dict(zip(("west", "south", "east", "north"), box, strict=True))
        return sides | {"geometry": shapely.box(*box)}

    def _run(self, first: int, stop: int) -> Pick:
        import shapely

        assert self.regions is not None  # the zones are runs of regions in their order
        assert self.order is not None
        numbers = list(self.order[first:stop])
        names = [str(self.regions.levels[-1].ids[number]) for number in numbers]
        shapes = self.regions.shapes()[numbers]
        return {"regions": " ".join(names), "geometry": shapely.union_all(shapes)}


objective = PriceMap
