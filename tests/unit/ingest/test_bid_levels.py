"""Levels of bids: which key a record has, and how many bids reach a price."""

import numpy as np
import pandas as pd
import pytest

from psd.errors import InputDataError
from psd.ingest.bid_levels import BidLevels
from psd.ingest.sources import Columns, read
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import TallyBuilder, tally_batches
from psd.privacy.unit import PrivacyUnit
from psd.space.domain import Domain
from psd.space.price_list import PriceList
from support.price_regions import two_columns

PRICES = PriceList.parse("1,2,5")
DOMAIN = Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(2, 2))
BIDS = [0.5, 1, 2.5, 9, -1, np.nan, np.inf]


def batch(bids, x=1.0, user=None):
    x = np.broadcast_to(np.asarray(x, np.float64), len(bids)).copy()
    return Batch(x=x, y=np.ones(len(bids)), bid=np.array(bids, np.float64), user=user)


def test_bids_are_counted_by_the_prices_that_they_reach():
    levels = BidLevels(prices=PRICES)
    tally = tally_batches([batch(BIDS), batch([5, 5], 9.0)], DOMAIN, regions=levels)
    assert levels.reached(tally).tolist() == [[[3, 2, 1]]]
    assert tally.report["without a bid"] == 2
    assert tally.report["outside"] == 2
    assert tally.report["kept"] == 5
    assert levels.reached(tally_batches([], DOMAIN, regions=levels)).tolist() == [[[0, 0, 0]]]
    assert levels.reached(tally_batches([], DOMAIN)).tolist() == [[[0, 0, 0]]]


def test_cells_are_parts():
    levels = BidLevels(prices=PRICES)
    tally = tally_batches([batch([2, 5], [1.0, 3.0]), batch([5], 3.0)], DOMAIN, regions=levels)
    assert levels.reached(tally, (2, 2))[0].tolist() == [[1, 1, 0], [2, 2, 2], [0] * 3, [0] * 3]


def test_regions_are_parts():
    regions = two_columns(DOMAIN)
    levels = BidLevels(prices=PRICES, regions=regions)
    tally = tally_batches([batch([2, 5, np.nan], [1.0, 3.0, 3.0])], DOMAIN, regions=levels)
    west, east = (regions.levels[-1].ids.index(name) for name in ("west", "east"))
    reached = levels.reached(tally)[:, 0]
    assert reached[west].tolist() == [1, 1, 0]
    assert reached[east].tolist() == [1, 1, 1]


def test_several_bids_of_a_user_are_bounded_and_not_refused():
    import pyarrow as pa

    levels, unit = BidLevels(prices=PRICES), PrivacyUnit(kind="user", max_contributions=1)
    user = pa.array(["a"] * 6 + ["b"])
    builder = TallyBuilder(DOMAIN, unit=unit, regions=levels)
    builder.add_batch(batch([1, 2, 2, 5, 5, np.nan, 2], user=user))
    reached = levels.reached(builder.build(b"0" * 16))[0, 0]
    assert reached[0] == 2
    assert 1 <= reached[1] <= 2


def test_a_source_without_bids_is_refused():
    x = np.ones(3)
    with pytest.raises(InputDataError, match="no bids"):
        tally_batches([Batch(x=x, y=x)], DOMAIN, regions=BidLevels(prices=PRICES))


VALUES = ["1", "2.5", " 3 ", "", "x", "1_0", "inf", "nan", "-2", "1e2", None]
NUMBERS = [1, 2.5, 3, np.nan, np.nan, np.nan, np.inf, np.nan, -2, 100, np.nan]


def numbers_of(data):
    columns = Columns(x="x", y="y", bid="bid")
    return np.concatenate([part.bid for part in read(data, columns, DOMAIN)])


def table():
    return pd.DataFrame({"x": 1.0, "y": 1.0, "bid": pd.Series(VALUES, dtype=object)})


@pytest.mark.parametrize("form", ["csv", "parquet", "frame", "arrow", "xlsx", "gpkg", "geojson"])
def test_no_value_of_a_bid_stops_a_reading(form, tmp_path):
    data, path = table(), tmp_path / f"bids.{form}"
    if form == "csv":
        data.to_csv(path, index=False)
    elif form == "parquet":
        data.to_parquet(path)
    elif form == "xlsx":
        data.to_excel(path, index=False)
    elif form in ("gpkg", "geojson"):
        import geopandas as gpd

        points = gpd.points_from_xy(data.x, data.y, crs=DOMAIN.crs)
        gpd.GeoDataFrame(data, geometry=points).to_file(path)
    elif form == "arrow":
        import pyarrow as pa

        path = pa.Table.from_pandas(data)
    else:
        path = data
    read_back = numbers_of(path)
    finite = np.isfinite(NUMBERS)
    assert np.isfinite(read_back).tolist() == finite.tolist()
    assert read_back[finite].tolist() == np.array(NUMBERS)[finite].tolist()


@pytest.mark.parametrize(
    "values",
    [
        [[1], {2: 3}],
        [10**400, 1],
        pd.to_datetime(["2020-01-01", "2021-01-01"]),
        [1 + 2j, 3],
        pd.array([1, None], dtype="Int64"),
        pd.Categorical(["1", "2"]),
    ],
)
def test_no_type_of_bids_stops_a_reading(values):
    assert len(numbers_of(pd.DataFrame({"x": 1.0, "y": 1.0, "bid": values}))) == 2
