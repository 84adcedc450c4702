"""Price: the golden markets of digital goods, and what is refused."""

import numpy as np
import pytest

from psd.apps.choosing import Price, PriceList
from psd.errors import ParameterError
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import tally_batches
from psd.space.domain import Domain

DOMAIN = Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(1, 1))


def scores(price, bids, x=1.0):
    x = np.broadcast_to(np.asarray(x, np.float64), len(bids)).copy()
    records = Batch(x=x, y=np.ones(len(bids)), bid=np.array(bids, np.float64))
    tally = tally_batches([records], price.domain, strata=price.bids[1])
    return price.scores(tally, price.domain)


def test_a_price_earns_itself_times_the_bids_that_reach_it():
    price = Price(bid="bid", prices=PriceList.parse("0.5,1,2.5"), domain=DOMAIN)
    assert scores(price, [0.4, 0.5, 1, 3, 9, np.nan]).tolist() == [4, 6, 10]
    assert scores(price, [0.5, 1, 3], [1, 9, 1]).tolist() == [2, 2, 5]
    assert scores(price, []).tolist() == [0, 0, 0]
    assert (price.step, price.sensitivity(3), price.candidates) == (0.5, 15, 3)
    assert price.pick(np.int64(1))[0] == ({"price": "1.0"},)
    hundred = Price(bid="bid", prices=PriceList.parse("1..100/1"), domain=DOMAIN)
    assert scores(hundred, range(1, 101)).tolist() == [p * (101 - p) for p in range(1, 101)]


def test_wrong_types_are_refused():
    with pytest.raises(ParameterError, match="prices must be"):
        Price(bid="bid", prices="1..9/1", domain=DOMAIN)
    with pytest.raises(ParameterError, match="domain must be"):
        Price(bid="bid", prices=PriceList.parse("1,2"), domain=(0, 0, 1, 1))
    with pytest.raises(ParameterError, match="prices must be at least 2, got 1"):
        Price(bid="bid", prices=PriceList.parse("7"), domain=DOMAIN)
