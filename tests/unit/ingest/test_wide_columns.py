"""Records are counted by slice, region and cell, as one record at a time, and for each unit."""

from collections import Counter

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely

import psd
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import TallyBuilder, tally_batches
from psd.ingest.user_partitions import UserRows
from psd.privacy.unit import PrivacyUnit
from psd.publish.drawing import slice_tally
from psd.regions.polygon_hierarchy import hierarchy_from_polygons

PLANE = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(16, 8))
COARSE = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(2, 1))
FINE = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857")
DAYS = psd.TimeSlices.parse("day", "2024-01-01..2024-01-03")
KEY = b"0123456789abcdef"
RECORD = PrivacyUnit()
USER = PrivacyUnit(kind="user", max_contributions=3)
UNITS = {
    "record": RECORD,
    "user": USER,
    "user-day": PrivacyUnit(kind="user-day", max_contributions=2, time_zone="UTC"),
    "users": PrivacyUnit(kind="user", weight=12),
}
EACH_SLICES = pytest.mark.parametrize("slices", [None, DAYS], ids=["all", "days"])


def hierarchy(domain=PLANE, seed=1):
    """Five triangles, whose outlines pass through cells, and a part that is in none."""
    points = np.random.default_rng(seed).uniform(0, 8, (6, 2)).round(1)
    shapes = shapely.get_parts(shapely.delaunay_triangles(shapely.multipoints(points)))[:5]
    table = gpd.GeoDataFrame({"id": range(len(shapes))}, geometry=shapes, crs="EPSG:3857")
    return hierarchy_from_polygons(table, domain, ids="id", gaps="outside")


def records(number=2000, seed=2, users=60):
    rng = np.random.default_rng(seed)
    x, y = (rng.uniform(-0.2, 8.2, number).round(1) for _ in "xy")
    user = [f"u{u}" for u in rng.integers(0, users, number)]
    hours = pd.to_timedelta(rng.integers(0, 120, number), unit="h")
    return pd.DataFrame({"x": x, "y": y, "user": user, "time": pd.Timestamp("2023-12-31") + hours})


def batch(table):
    users, times = pa.array(table.user, pa.string()), table.time.to_numpy().astype("datetime64[us]")
    return Batch(x=table.x.to_numpy(), y=table.y.to_numpy(), user=users, time=times)


def counted(table, regions, unit=RECORD, slices=None, pieces=1, **options):
    parts = [batch(table.iloc[start::pieces]) for start in range(pieces)]
    options |= {"unit": unit, "key": KEY, "slices": slices, "strata": regions}
    return tally_batches(parts, regions.domain, **options)


def keys(tally):
    slices = np.zeros(len(tally.counts), int) if tally.slice is None else tally.slice
    columns = (slices, tally.region, tally.rows, tally.columns, tally.counts)
    return Counter({tuple(key): n for *key, n in zip(*(v.tolist() for v in columns), strict=True)})


def naive(table, regions, slices=None, step=(1, 1)):
    """The key of each record, one at a time; None if it is dropped."""
    found, domain = [], regions.domain
    west, south, east, north = domain.bounds
    for x, y, time in zip(table.x, table.y, table.time, strict=True):
        a, b = np.array([x]), np.array([y])
        if not (west <= x <= east and south <= y <= north):
            found.append(None)
            continue
        region = int(regions.assign(a, b)[0])
        slice_ = 0 if slices is None else int(slices.index(np.array([time], "datetime64[us]"))[0])
        column, row, _ = domain.quantise(a, b)
        cell = int(row[0]) // step[1] * step[1], int(column[0]) // step[0] * step[0]
        found.append(None if region < 0 or slice_ < 0 else (slice_, region, *cell))
    return found


@pytest.mark.parametrize("domain", [PLANE, FINE], ids=["small", "large"])
@EACH_SLICES
@pytest.mark.parametrize("step", [(1, 1), (4, 2)], ids=["fine", "coarse"])
def test_each_record_has_one_key(domain, slices, step):
    table, regions = records(600), hierarchy(domain)
    tally = counted(table, regions, slices=slices, step=step, pieces=3)
    expected = [key for key in naive(table, regions, slices, step) if key is not None]
    assert keys(tally) == Counter(expected)
    assert tally.report["kept"] == len(expected)
    assert tally.report["outside"] == len(table) - len(expected)
    assert list(keys(tally)) == sorted(keys(tally))
    assert tally.region.dtype == np.int32


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
@EACH_SLICES
def test_order_and_batches_have_no_effect(unit, slices):
    """Also where a user has equal cells and times in several regions: each cell meets several."""
    table = records(3000, users=20)
    table["time"] = table.time.dt.floor("D")
    regions = hierarchy(COARSE)
    expected = keys(counted(table, regions, unit, slices))
    shuffled = table.sample(frac=1, random_state=3)
    assert keys(counted(shuffled, regions, unit, slices, pieces=4)) == expected
    assert keys(counted(shuffled, regions, unit, slices, memory=2**20)) == expected


@pytest.mark.parametrize("name", list(UNITS)[1:])
@EACH_SLICES
def test_a_user_moves_the_counts_by_no_more_than_the_limit(name, slices):
    unit, table, regions = UNITS[name], records(2500, users=15), hierarchy()
    tally = keys(counted(table, regions, unit, slices))
    for user in table.user.unique()[:6]:
        others = keys(counted(table[table.user != user], regions, unit, slices))
        assert not others - tally  # no count of another user has changed
        alone = table[table.user == user]
        moved = tally - others
        assert moved == keys(counted(alone, regions, unit, slices))
        days = alone.time.dt.date.nunique() if unit.kind == "user-day" else 1
        assert sum(moved.values()) <= unit.contributions * days
        assert not {*moved} - {*naive(alone, regions, slices)}


def test_kept_records_of_users_have_wide_columns():
    table, regions = records(1500), hierarchy()
    unit = PrivacyUnit(kind="user", max_contributions=1000)  # a limit that no user reaches
    assert keys(counted(table, regions, unit)) == keys(counted(table, regions))
    builder = TallyBuilder(PLANE, unit=USER, strata=regions)
    builder.add_batch(batch(table))
    rows = builder.user_rows(KEY)
    assert isinstance(rows, UserRows)
    region, column = np.divmod(rows.columns, PLANE.lattice[0])
    found = Counter(zip([0] * len(region), region, rows.rows, column, strict=True))
    assert found == keys(counted(table, regions, USER))
    tally = counted(table, regions, slices=DAYS)
    for number in range(3):
        expected = {key[1:]: n for key, n in keys(tally).items() if key[0] == number}
        found = keys(slice_tally(tally, number))
        assert {key[1:]: n for key, n in found.items()} == expected
