"""Levels of bids: which key a record has, and how many bids reach a price."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from psd.apps.choosing.counts import BidLevels
from psd.apps.choosing.files import PriceList
from psd.errors import InputDataError
from psd.ingest.sources import Columns, read
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import TallyBuilder, tally_batches
from psd.privacy.unit import PrivacyUnit
from psd.space.domain import Domain
from support.price_regions import two_columns

PRICES = PriceList.parse("1,2,5")
DOMAIN = Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(2, 2))
BIDS = [0.5, 1, 2.5, 9, -1, np.nan, np.inf]


def batch(bids, x=1.0, user=None):
    x = np.broadcast_to(np.asarray(x, np.float64), len(bids)).copy()
    return Batch(x=x, y=np.ones(len(bids)), bid=np.array(bids, np.float64), user=user)


def test_bids_are_counted_by_the_prices_that_they_reach():
    levels = BidLevels(prices=PRICES)
    tally = tally_batches([batch(BIDS), batch([5, 5], 9.0)], DOMAIN, strata=levels)
    assert levels.reached(tally).tolist() == [[[3, 2, 1]]]
    assert tally.report["without a bid"] == 2
    assert tally.report["outside"] == 2
    assert tally.report["kept"] == 5
    assert levels.reached(tally_batches([], DOMAIN, strata=levels)).tolist() == [[[0, 0, 0]]]
    assert levels.reached(tally_batches([], DOMAIN)).tolist() == [[[0, 0, 0]]]


def test_cells_and_regions_are_parts_and_users_are_bounded():
    levels = BidLevels(prices=PRICES)
    tally = tally_batches([batch([2, 5], [1.0, 3.0]), batch([5], 3.0)], DOMAIN, strata=levels)
    assert levels.reached(tally, (2, 2))[0].tolist() == [[1, 1, 0], [2, 2, 2], [0] * 3, [0] * 3]
    regions = two_columns(DOMAIN)
    levels = BidLevels(prices=PRICES, regions=regions)
    tally = tally_batches([batch([2, 5, np.nan], [1.0, 3.0, 3.0])], DOMAIN, strata=levels)
    west, east = (regions.levels[-1].ids.index(name) for name in ("west", "east"))
    assert levels.reached(tally)[[west, east], 0].tolist() == [[1, 1, 0], [1, 1, 1]]
    levels, unit = BidLevels(prices=PRICES), PrivacyUnit(kind="user", max_contributions=1)
    user = pa.array(["a"] * 6 + ["b"])
    builder = TallyBuilder(DOMAIN, unit=unit, strata=levels)
    builder.add_batch(batch([1, 2, 2, 5, 5, np.nan, 2], user=user))
    reached = levels.reached(builder.build(b"0" * 16))[0, 0]
    assert reached[0] == 2
    assert 1 <= reached[1] <= 2
    with pytest.raises(InputDataError, match="no bids"):
        tally_batches([Batch(x=np.ones(3), y=np.ones(3))], DOMAIN, strata=levels)


VALUES = ["1", "2.5", " 3 ", "", "x", "1_0", "inf", "nan", "-2", "1e2", None]
NUMBERS = [1, 2.5, 3, np.nan, np.nan, np.nan, np.inf, np.nan, -2, 100, np.nan]


def numbers_of(data):
    columns = Columns(x="x", y="y", bid="bid")
    return np.concatenate([part.bid for part in read(data, columns, DOMAIN)])


FORMS = {
    "csv": lambda data, path: data.to_csv(path, index=False),
    "parquet": lambda data, path: data.to_parquet(path),
    "xlsx": lambda data, path: data.to_excel(path, index=False),
    "gpkg": lambda data, path: located(data).to_file(path),
    "geojson": lambda data, path: located(data).to_file(path),
    "arrow": lambda data, path: pa.Table.from_pandas(data),
    "frame": lambda data, path: data,
}


def located(data):
    return gpd.GeoDataFrame(data, geometry=gpd.points_from_xy(data.x, data.y, crs=DOMAIN.crs))


def test_no_value_of_a_bid_stops_a_reading(subtests, tmp_path):
    data, finite = table(pd.Series(VALUES, dtype=object)), np.isfinite(NUMBERS)
    for form, write in FORMS.items():
        with subtests.test(form):
            path = tmp_path / f"bids.{form}"
            made = write(data, path)
            found = numbers_of(made if form in ("arrow", "frame") else path)
            assert np.isfinite(found).tolist() == finite.tolist()
            assert found[finite].tolist() == np.array(NUMBERS)[finite].tolist()


def table(bids):
    return pd.DataFrame({"x": 1.0, "y": 1.0, "bid": bids})


def test_no_type_of_bids_stops_a_reading(subtests):
    dates = pd.to_datetime(["2020-01-01", "2021-01-01"])
    whole, kinds = pd.array([1, None], dtype="Int64"), pd.Categorical(["1", "2"])
    for values in ([[1], {2: 3}], [10**400, 1], dates, [1 + 2j, 3], whole, kinds):
        with subtests.test(repr(values)[:40]):
            # Old versions of pandas cannot tell the type of every number themselves.
            bids = pd.Series(values, dtype=object) if isinstance(values, list) else values
            assert len(numbers_of(table(bids))) == 2
