"""Tariffs: what each of them earns over all regions, and what is refused."""

from decimal import Decimal

import numpy as np

from psd.apps.choosing import Tariffs
from psd.errors import ParameterError
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import tally_batches
from psd.space.domain import Domain
from support.price_regions import two_columns
from support.tables import refuses

DOMAIN = Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(4, 4))
REGIONS = two_columns(DOMAIN)
WEST_FIRST = REGIONS.levels[-1].ids.index("west") == 0


def rows(*pairs):
    """Prices of west and east in the order of the regions."""
    return tuple(tuple(map(Decimal, pair if WEST_FIRST else pair[::-1])) for pair in pairs)


def tariffs(**changes):
    given = {
        "bid": "bid", "ids": ("today", "next"), "prices": rows(("2", "3"), ("2.5", "1")),
        "domain": DOMAIN, "regions": REGIONS,
    }  # fmt: skip
    return Tariffs(**given | changes)


def scores(listed, bids, x):
    records = Batch(x=np.array(x, np.float64), y=np.ones(len(x)), bid=np.array(bids, np.float64))
    tally = tally_batches([records], listed.domain, strata=listed.bids[1])
    return (listed.scores(tally, listed.domain) * listed.step).tolist()


def test_a_tariff_earns_the_prices_that_bids_reach_in_their_region():
    bids, x = [2, 2.5, 9, 1, 3, 9, 9, np.nan], [1, 1, 1, 3, 3, 3, 9, 3]
    assert scores(tariffs(), bids, x) == [2 * 3 + 3 * 2, 2.5 * 2 + 1 * 3]
    assert scores(tariffs(), [], []) == [0, 0]
    assert (tariffs().step, tariffs().sensitivity(2), tariffs().candidates) == (0.5, 12, 2)
    assert tariffs().pick(np.int64(1))[0] == ({"tariff": "next"},)
    everywhere = tariffs(prices=((Decimal(2),), (Decimal("2.5"),)), regions=None)
    assert scores(everywhere, [2, 2.5, 9], [1, 3, 3]) == [6, 5]


def test_wrong_lists_are_refused(subtests):
    rows_of = [
        ({"ids": ("today",), "prices": rows(("1", "1"))}, "at least 2, got 1"),
        ({"ids": ("today", "today")}, "'today'"),
        ({"ids": ("today", " ")}, "an id each"),
        ({"prices": rows(("1", "2"))}, "2 prices each"),
        ({"prices": ((Decimal(1),), (Decimal(2),))}, "2 prices each"),
        ({"prices": rows(("1e30", "1"), ("1", "1"))}, "tariffs must share a list of prices"),
        ({"prices": rows(("0", "2"), ("1", "1"))}, "prices must be"),
        ({"regions": None}, "1 prices each"),
        ({"domain": Domain(bounds=(0, 0, 5, 5), crs="EPSG:3857")}, "regions must be those"),
        ({"domain": (0, 0, 1, 1)}, "domain must be"),
    ]
    refuses(subtests, tariffs, rows_of, ParameterError)
