"""Price: the golden markets of digital goods, and what is refused."""

import numpy as np
import pytest

from psd.choosing import Price, PriceList
from psd.errors import ParameterError
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import tally_batches
from psd.mechanisms.permute_and_flip import PermuteAndFlip
from psd.privacy.epsilon import NANO
from psd.space.domain import Domain

DOMAIN = Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(1, 1))


def scores(price, bids, x=1.0):
    x = np.broadcast_to(np.asarray(x, np.float64), len(bids)).copy()
    records = Batch(x=x, y=np.ones(len(bids)), bid=np.array(bids, np.float64))
    tally = tally_batches([records], price.domain, regions=price.bids[1])
    return price.scores(tally, price.domain)


def test_a_price_earns_itself_times_the_bids_that_reach_it():
    price = Price(bid="bid", prices=PriceList.parse("0.5,1,2.5"), domain=DOMAIN)
    assert scores(price, [0.4, 0.5, 1, 3, 9, np.nan]).tolist() == [4, 6, 10]
    assert scores(price, [0.5, 1, 3], [1, 9, 1]).tolist() == [2, 2, 5]
    assert scores(price, []).tolist() == [0, 0, 0]
    assert (price.step, price.sensitivity(3), price.candidates) == (0.5, 15, 3)
    assert price.pick(np.int64(1))[0] == ({"price": "1.0"},)


@pytest.mark.parametrize(("epsilon", "earned"), [("1", 25.012505), ("0.1", 21.277491)])
def test_the_expected_revenue_of_a_hundred_bids(epsilon, earned):
    price = Price(bid="bid", prices=PriceList.parse("1..100/1"), domain=DOMAIN)
    revenue = scores(price, range(1, 101))
    assert revenue.max() == 2550
    mechanism = PermuteAndFlip(
        scores=revenue, epsilon=int(float(epsilon) * NANO), sensitivity=100, is_monotone=True
    )
    chances = np.exp([mechanism.log_probability(np.array([i]))[0] for i in range(100)])
    assert (chances * revenue).sum() / 100 == pytest.approx(earned, abs=1e-6)


def test_wrong_types_are_refused():
    with pytest.raises(ParameterError, match="prices must be"):
        Price(bid="bid", prices="1..9/1", domain=DOMAIN)
    with pytest.raises(ParameterError, match="domain must be"):
        Price(bid="bid", prices=PriceList.parse("1,2"), domain=(0, 0, 1, 1))
    with pytest.raises(ParameterError, match="prices must be at least 2, got 1"):
        Price(bid="bid", prices=PriceList.parse("7"), domain=DOMAIN)


def test_noise_on_the_best_price_earns_much_less():
    """The figure of docs/guide/choices.md and docs/measured/market-choices.md at epsilon 1."""
    prices = np.arange(1, 101)
    revenue = prices * (101 - prices) / 100
    assert revenue.max() == 25.5
    scale = np.exp(-1 / 100)
    noise = (1 - scale) / (1 + scale) * scale ** np.abs(prices - prices[revenue.argmax()])
    # Prices below the list are its first, those above it its last.
    noise[[0, -1]] = scale ** np.abs(prices[[0, -1]] - prices[revenue.argmax()]) / (1 + scale)
    assert noise.sum() == pytest.approx(1)
    assert (noise * revenue).sum() == pytest.approx(7.76, abs=0.005)
