"""Price maps: the golden markets on a map and along a line, and what is refused."""

import numpy as np
import pytest

from psd.choosing import PriceList, PriceMap
from psd.errors import ParameterError
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import tally_batches
from psd.privacy.price_map_laws import map_law
from psd.privacy.zone_layouts import zone_layout
from psd.space.domain import Domain
from support.price_regions import two_columns

PRICES = PriceList.parse("1..100/1")
GRID = Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(8, 8))


def on_map(**changes):
    given = {"bid": "bid", "prices": PRICES, "zones": (1, 2), "domain": GRID, "depth": 3}
    return PriceMap(**given | changes)


def scores(maps, x, y, bids):
    records = Batch(x=np.array(x, np.float64), y=np.array(y, np.float64), bid=np.array(bids, float))
    tally = tally_batches([records], maps.domain, regions=maps.bids[1])
    return maps.scores(tally, maps.domain)


@pytest.mark.parametrize(
    ("zones", "epsilon", "expected", "log"),
    [
        (1, 1, 168.380403, 170.220546),
        (2, 1, 175.613690, 179.957249),
        (4, 1, 178.386601, 189.945397),
        (8, 0.1, 146.998380, 55.081463),
    ],
)
def test_a_golden_market_on_a_map(zones, epsilon, expected, log):
    i = np.arange(600)
    x, y = 5 * i % 8, (3 * i + i // 8) % 8
    bids = 1 + (37 * i + 11 * (i // 64) ** 2) % 40 + 5 * x + 3 * y
    assert bids.sum() == 29_260
    revenue = scores(on_map(), x + 0.5, y + 0.5, bids)
    law = map_law(revenue, zone_layout("halving-tree", 64), zones, epsilon / 100)
    assert law.expected_score / 100 == pytest.approx(expected, abs=1e-6)
    assert law.log_sum == pytest.approx(log, abs=1e-6)


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


def test_the_bound_counts_the_numbers_of_zones_and_the_most_maps_of_one():
    assert on_map(zones=(1, 2, 3)).candidates == 3 * 2 * 100**3
    assert on_map().sensitivity(4) == 400


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"depth": None}, "either a depth"),
        ({"depth": 9}, "zone_depth must be 0 to 8"),
        ({"depth": -1}, "zone_depth must be"),
        ({"depth": 2}, "lattice of"),
        ({"order": (0,)}, "no order"),
        ({"zones": (0,)}, "zones must be"),
        ({"zones": ()}, "zones must be"),
        ({"zones": (2, 1)}, "zones must be"),
        ({"zones": (65,)}, "zones must be"),
        ({"prices": "1..9/1"}, "prices must be"),
        ({"domain": (0, 0, 1, 1)}, "domain must be"),
    ],
)
def test_wrong_maps_are_refused(changes, told):
    with pytest.raises(ParameterError, match=told):
        on_map(**changes)


@pytest.mark.parametrize("order", [None, (0,), (0, 0), (0, 1, 2)])
def test_an_order_holds_each_region_once(order):
    domain = Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(1, 1))
    with pytest.raises(ParameterError, match="order must hold"):
        on_map(domain=domain, depth=None, regions=two_columns(domain), order=order)
