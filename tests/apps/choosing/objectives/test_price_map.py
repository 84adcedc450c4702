"""Price maps: the golden markets on a map and along a line, and what is refused."""

import numpy as np

from psd.apps.choosing import PriceList, PriceMap
from psd.errors import ParameterError
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import tally_batches
from psd.space.domain import Domain
from support.price_regions import two_columns
from support.privacy.price_markets import area_market
from support.tables import refuses

PRICES = PriceList.parse("1..100/1")
GRID = Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(8, 8))


def on_map(**changes):
    given = {"bid": "bid", "prices": PRICES, "zones": (1, 2), "domain": GRID, "depth": 3}
    return PriceMap(**given | changes)


def scores(maps, x, y, bids):
    records = Batch(x=np.array(x, np.float64), y=np.array(y, np.float64), bid=np.array(bids, float))
    tally = tally_batches([records], maps.domain, strata=maps.bids[1])
    return maps.scores(tally, maps.domain)


def test_the_scores_of_a_market_on_a_map_and_the_bound_of_its_maps():
    i = np.arange(600)
    x, y = 5 * i % 8, (3 * i + i // 8) % 8
    bids = 1 + (37 * i + 11 * (i // 64) ** 2) % 40 + 5 * x + 3 * y
    assert np.array_equal(scores(on_map(), x + 0.5, y + 0.5, bids), area_market())
    assert on_map(zones=(1, 2, 3)).candidates == 3 * 2 * 100**3
    assert on_map().sensitivity(4) == 400


def test_runs_of_regions_are_in_the_public_order():
    domain = Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(1, 1))
    regions, prices = two_columns(domain), PriceList.parse("1,3")
    west, east = (regions.levels[-1].ids.index(name) for name in ("west", "east"))
    maps = on_map(
        domain=domain, depth=None, regions=regions, order=(east, west), zones=(2,), prices=prices
    )
    revenue = scores(maps, [1, 1, 3], [1, 1, 1], [3, 1, 2])
    assert revenue.tolist() == [[1, 0], [2, 3]]
    rows, _ = maps.pick(np.array([[0, 0], [1, 1]]))
    assert [(row["zone"], row["price"], row["regions"]) for row in rows] == [
        (1, "1", "east"), (2, "3", "west"),
    ]  # fmt: skip
    assert rows[1]["geometry"].bounds == (0, 0, 2, 4)


def test_zones_of_cells_are_boxes():
    domain = Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(2, 2))
    maps = on_map(domain=domain, depth=1, zones=(3,))
    rows, _ = maps.pick(np.array([[0, 4], [0, 4], [1, 9], [2, 0]]))
    assert [row["price"] for row in rows] == ["5", "10", "1"]
    boxes = [tuple(row[side] for side in ("west", "south", "east", "north")) for row in rows]
    assert boxes == [(0, 0, 2, 4), (2, 0, 4, 2), (2, 2, 4, 4)]
    assert [row["geometry"].bounds for row in rows] == boxes


def test_wrong_maps_are_refused(subtests):
    domain = Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(1, 1))
    regions = {"domain": domain, "depth": None, "regions": two_columns(domain)}
    rows = [
        ({"depth": None}, "either a depth"),
        ({"depth": 9}, "zone_depth must be 0 to 8"),
        ({"depth": -1}, "zone_depth must be"),
        ({"depth": 2}, "lattice of"),
        ({"order": (0,)}, "no order"),
        *(({"zones": zones}, "zones must be") for zones in ((0,), (), (2, 1), (65,))),
        ({"prices": "1..9/1"}, "prices must be"),
        ({"domain": (0, 0, 1, 1)}, "domain must be"),
        # An order holds each region once.
        *(({**regions, "order": o}, "order must hold") for o in (None, (0,), (0, 0), (0, 1, 2))),
    ]
    refuses(subtests, on_map, rows, ParameterError)
