"""A file of two layers, for whatever reads regions from files."""

from pathlib import Path

import geopandas as gpd
import pytest
import shapely

from psd.errors import InputDataError


def two_layers(path):
    """Write layers whose first regions are named as they are; the path."""
    for number, name in enumerate(("wards", "school, old")):
        shapes = [shapely.box(2 * number, 0, 4, 8), shapely.box(4, 0, 8 - 2 * number, 8)]
        columns = {"id": [name, "b"], "n": [5 + number, 1], "order": [number, 1 - number]}
        table = gpd.GeoDataFrame(columns, geometry=shapes, crs="EPSG:3857")
        table.to_file(path, layer=name)
    return str(path)


def read_layers(read, path):
    """What is read of both layers; a reader names the layers unless one is chosen."""
    with pytest.raises(InputDataError, match=r"several layers \(wards, school, old\)"):
        read(Path(path))
    with pytest.raises(InputDataError, match="no layer 'parks'; its layers are wards"):
        read(Path(f"{path}:layer=parks"))
    return [read(Path(f"{path}:layer={name}")) for name in ("wards", "school, old")]
