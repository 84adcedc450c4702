"""A made-up table, requests to tally it in every variant, and what is in a tally."""

import dataclasses
import itertools

import geopandas as gpd
import numpy as np
import pandas as pd
import shapely

import psd
from psd.ingest.sources import Columns
from psd.privacy.unit import PrivacyUnit
from psd.privacy.values import Value
from psd.publish.tally_parts import TallyRequest, tally_rows
from psd.regions.polygon_hierarchy import hierarchy_from_polygons

DOMAIN = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(64, 64))
SECRET = bytes(range(32))
K4 = PrivacyUnit(kind="user", max_contributions=4)
USERS = Columns(x="x", y="y", user="user")


def table(count=300, seed=0, users=9):
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-1, 9, (2, count))
    time = np.datetime64("2024-01-01", "us") + rng.integers(0, 90 * 86_400, count) * 10**6
    user = [f"u{n}" for n in rng.integers(0, users, count)]
    fare = rng.uniform(-5, 70, count)
    return pd.DataFrame({"x": x, "y": y, "user": user, "time": time, "fare": fare})


def recipe(**changes):
    plain = {"domain": DOMAIN, "unit": K4, "columns": USERS, "key": SECRET}
    return TallyRequest(**{**plain, **changes})


ROWS = recipe(unit=PrivacyUnit(), columns=Columns(x="x", y="y"), key=None)


def counted(how=None, part="a", data=None, **changes):
    how = recipe(**changes) if how is None else how
    return tally_rows(table() if data is None else data, how, part=part)


def cells(kept):
    found = kept.tally
    slices = found.slice if found.slice is not None else np.zeros(len(found.counts), int)
    region = [] if found.region is None else [found.region]
    keys = [slices, *region, found.rows, found.columns]
    places = zip(*(key.tolist() for key in keys), strict=True)
    counts = found.counts if found.values is None else np.column_stack([found.counts, found.values])
    return dict(zip(places, counts.tolist(), strict=True))


# Four triangles that leave a rim out.
REGIONS = hierarchy_from_polygons(
    gpd.GeoDataFrame(
        {"id": list("nesw")},
        geometry=[
            shapely.Polygon([(4, 4), a, b])
            for a, b in itertools.pairwise([(1, 7), (7, 7), (7, 1), (1, 1), (1, 7)])
        ],
        crs=DOMAIN.crs,
    ),
    DOMAIN,
    ids="id",
    gaps="outside",
)

VALUED = {"columns": Columns(x="x", y="y", values=("fare",)), "values": (Value("fare", 0, 60),)}

# Every variant of a tally.
VARIANTS = {
    "rows": ROWS,
    "user": recipe(),
    "carried": recipe(carry=True),
    "stepped": dataclasses.replace(
        ROWS,
        domain=psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", coordinate_resolution="0.25"),
    ),
    "coarse": dataclasses.replace(ROWS, step=(8, 4)),
    "shares": recipe(unit=PrivacyUnit(kind="user", weight=720_720)),
    "slices": recipe(
        slices=psd.TimeSlices.parse("month", "2024-01..2024-04"),
        columns=dataclasses.replace(USERS, time="time"),
    ),
    "days": recipe(
        unit=PrivacyUnit(kind="user-day", max_contributions=2, time_zone="Asia/Seoul"),
        columns=dataclasses.replace(USERS, time="time", time_zone="Asia/Seoul"),
        carry=True,
    ),
    "carried-slices": recipe(
        slices=psd.TimeSlices.parse("day", "2024-01-01..2024-02-15"),
        columns=dataclasses.replace(USERS, time="time"),
        contribution_scope="slice",
        carry=True,
    ),
    "values": dataclasses.replace(ROWS, **VALUED),
    "regions": dataclasses.replace(ROWS, regions=REGIONS),
    "regions-values": dataclasses.replace(ROWS, regions=REGIONS, **VALUED),
    "regions-carried": recipe(
        regions=REGIONS,
        slices=psd.TimeSlices.parse("month", "2024-01..2024-04"),
        columns=dataclasses.replace(USERS, time="time"),
        carry=True,
    ),
}
