"""One table as an input of each kind."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest

import psd
from support.cli_runner import BOUNDS, CERTAIN, passes

ROWS = pd.DataFrame(
    {
        "lon": np.tile([-3.0, -1, 1, 3], 25),
        "lat": np.repeat([-3.0, -1, 0.5, 1, 3], 20),
        "id": [f"u{i % 10}" for i in range(100)],
        "seen": pd.date_range("2024-01-01", periods=100, freq="h").strftime("%Y-%m-%dT%H:%M"),
    }
)
SHAPES = gpd.GeoDataFrame(
    ROWS[["id", "seen"]], geometry=gpd.points_from_xy(ROWS.lon, ROWS.lat), crs=4326
)
BUILD = ("--set", "height=2", *CERTAIN, *BOUNDS)


def write_parts():
    for part in range(4):
        ROWS.iloc[part::4].to_parquet(f"d/{part}.parquet")


def write_layers():
    SHAPES.to_file("a.gpkg", layer="visits")
    SHAPES.iloc[:9].to_file("a.gpkg", layer="other")


KINDS = {
    "a.csv": lambda: ROWS.to_csv("a.csv", index=False),
    "a.parquet": lambda: ROWS.to_parquet("a.parquet"),
    "d": write_parts,
    "d/*.parquet": write_parts,
    "d/0.parquet d/[123].parquet": write_parts,
    "a.gpkg --layer visits": write_layers,
    "a.geojson": lambda: SHAPES.to_file("a.geojson"),
    "b.parquet --geometry place": lambda: SHAPES.rename_geometry("place").to_parquet("b.parquet"),
}


def builds_all_rows(given):
    passes(f"build {given} -o r --overwrite", *BUILD)
    release = psd.load("r")
    assert release.index.fit.estimates.count[release.tree.is_leaf].sum() == pytest.approx(100)
