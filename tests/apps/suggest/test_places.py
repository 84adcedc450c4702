"""Regions ranked for a person."""

import numpy as np
import pytest

from psd.apps.suggest.models import FEATURES, RegionGrid, SharedWeights, features
from psd.apps.suggest.places import read_places, suggest_places
from psd.errors import InputDataError, ParameterError
from support.suggestions import city_release

RELEASE = city_release()
OWN = np.array([[126.45, 37.05], [127.0, 37.5], [0.0, 0.0]])
PROMISE = {"cells": 10, "epsilon": "0.3", "delta": "1e-6", "max_contributions": 4}


def weights(**values):
    return SharedWeights(
        weights={name: float(values.get(name, 0)) for name in FEATURES},
        release=RegionGrid.of_release(RELEASE, 10).digest,
        **PROMISE,
    )


def test_regions_are_ranked_by_the_weighted_sum_of_their_features():
    shared = weights(nearness_3_km=0.5, own_place=0.1, log_density=0.2)
    table = suggest_places(OWN, RELEASE, shared, 100)
    grid = RegionGrid.of_release(RELEASE, 10)
    described = features(grid, grid.locate(*OWN.T), np.arange(100))
    scores = described @ np.array([0, 0.5, 0, 0, 0.1, 0.2])
    assert table["score"].tolist() == sorted(scores.tolist(), reverse=True)
    assert table["rank"].tolist() == list(range(1, 101))
    west, south, east, north = (table[side] for side in ("west", "south", "east", "north"))
    inside = [(west <= x) & (x < east) & (south <= y) & (y < north) for x, y in OWN[:2]]
    assert (table["own_place"] == (inside[0] | inside[1])).all()
    assert suggest_places(OWN, RELEASE, weights(own_place=1), 2)["own_place"].all()
    for points, release, k, told in [
        (OWN[2:], RELEASE, 5, "own places must lie in the area of the release, got none inside"),
        (OWN[:0], RELEASE, 5, "own places must lie in the area"),
        (OWN, RELEASE, 0, "k must be between 1 and 100, got 0"),
        (OWN, RELEASE, 101, "k must be between 1 and 100, got 101"),
        (OWN, city_release(7), 5, "release must be the one"),
    ]:
        with pytest.raises(ParameterError, match=told):
            suggest_places(points, release, weights(), k)


def test_places_are_read_by_the_names_of_their_columns(tmp_path):
    path = tmp_path / "own.csv"
    with pytest.raises(InputDataError, match="can be read"):
        read_places(path)
    path.write_bytes("\ufeffname,lon,lat\nhome,126.5,37.5\nwork,127,37.25\n".encode())
    assert read_places(path).tolist() == [[126.5, 37.5], [127, 37.25]]
    assert read_places(path, "lat", "lon").tolist() == [[37.5, 126.5], [37.25, 127]]
    for content, told in [
        (b"\xff\xfe\x00", "in UTF-8"),
        (b"", "must have the columns lon and lat"),
        (b"x,y\n1,2\n", "must have the columns lon and lat"),
        (b"lon,lat\n1,here\n", "must have a number"),
        (b"lon,lat\n1\n", "must have a number"),
    ]:
        path.write_bytes(content)
        with pytest.raises(InputDataError, match=told):
            read_places(path)
