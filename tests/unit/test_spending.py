"""What a build claims: where its rows lie, as far as that can be held against other releases."""

import pandas as pd
import pytest

import psd
from psd.composition import Region
from psd.errors import LedgerError, ParameterError
from psd.ledger import Ledger
from psd.private_bounds import PrivateBounds
from psd.reading import wanted
from psd.sources import Columns
from psd.spending import Account, claim_of

DOMAIN = psd.Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(8, 8))
ADDRESS = "postgresql://db.example.org/city"


def claim(data, place=DOMAIN, columns=None, bound=None):
    return claim_of("build", 7, wanted(columns or Columns(), max_contributions=bound), place, data)


REGION = Region(bounds=(0, 0, 4, 4), crs="EPSG:3857", columns=("x=lon", "y=lat"), lattice=(8, 8))


@pytest.mark.parametrize(
    ("data", "region"),
    [
        ("points.csv", REGION),
        (["a.csv", "b.csv"], REGION),
        ("hdfs:///city/visits.parquet", None),
        ([psd.PostGIS(ADDRESS, table="visits_at_home")], None),
        ([psd.SparkTable("city.visits"), "a.csv"], None),
        ([psd.PostGIS(ADDRESS, query="SELECT lon + 9 AS lon, lat FROM visits")], None),
        (["points.csv", "-"], None),
        (pd.DataFrame({"lon": [], "lat": [], "table": []}), None),
    ],
)
def test_places_are_known_of_rows_of_files(data, region):
    assert claim(data).region == region


def test_columns_that_place_a_row_are_part_of_the_place():
    columns = Columns(x="home_x", y="home_y", geometry="point", layer="homes")
    assert claim("points.gpkg", columns=columns).region.columns == (
        "x=home_x",
        "y=home_y",
        "geometry=point",
        "layer=homes",
    )


def test_bounds_that_are_found_are_everywhere():
    assert claim("points.csv", PrivateBounds(crs="EPSG:4326")).region is None


def test_a_bound_that_is_chosen_is_not_claimed():
    columns = Columns(user="id")
    assert claim("points.csv", columns=columns, bound="auto").chosen
    fixed = claim("points.csv", columns=columns, bound=4)
    assert (fixed.chosen, fixed.unit.contributions) == (False, 4)


def test_accounts_of_nothing(tmp_path):
    ledger = Ledger.create(tmp_path / "l")
    with pytest.raises(LedgerError, match="not registered"):
        Account(ledger, "rows")
    ledger.register("rows", 1)
    with pytest.raises(ParameterError, match="nothing was charged"):
        Account(ledger, "rows").finish()
