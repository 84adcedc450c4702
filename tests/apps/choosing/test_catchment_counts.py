"""Sums over catchments are those of one cell after another, on any lattice."""

import numpy as np
import pytest
import shapely

from psd.apps.choosing.candidate_areas import CandidateAreas
from psd.apps.choosing.counts import PlacedCounts
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import tally_batches
from psd.space.domain import Domain

BOUNDS = {"EPSG:3857": (0, 0, 40_000, 30_000), "EPSG:4326": (126, 37, 127, 38)}


def counted(domain, number=3000):
    west, south, east, north = domain.bounds
    rng = np.random.default_rng(1)
    x = rng.uniform(west, east, number)
    y = rng.normal((south + north) / 2, (north - south) / 9, number)
    return tally_batches([Batch(x=x, y=np.clip(y, south, north))], domain)


def candidates(domain, shape, number=40):
    """Some of them outside, some larger than the domain."""
    west, south, east, north = domain.bounds
    width = east - west
    rng = np.random.default_rng(2)
    points = rng.uniform((west - width / 5, south), (east, north), (number, 2))
    ids = [str(index) for index in range(number)]
    if shape == "circles":
        return CandidateAreas.around(ids, points, 5000, domain.crs)
    polygons = np.array([shapely.Point(p).buffer(width / 9, quad_segs=2) for p in points], object)
    return CandidateAreas(ids=tuple(ids), crs=domain.crs, polygons=polygons)


def one_by_one(tally, domain, places):
    x, y = domain.centres(0, tally.columns), domain.centres(1, tally.rows)
    return [
        int(tally.counts[places.contains(np.full(len(x), index), x, y)].sum())
        for index in range(len(places))
    ]


LATTICES = [(2**20, 2**20), (2**30, 7), (7, 5000), (1, 1), None]


@pytest.mark.parametrize("shape", ["circles", "polygons"])
@pytest.mark.parametrize("crs", BOUNDS)
@pytest.mark.parametrize("lattice", LATTICES)
def test_sums_are_those_of_single_cells(shape, crs, lattice):
    step = {"EPSG:3857": "100", "EPSG:4326": "0.01"}[crs]
    cells = {"lattice": lattice} if lattice else {"coordinate_resolution": step}
    domain = Domain(bounds=BOUNDS[crs], crs=crs, **cells)
    tally, places = counted(domain), candidates(domain, shape)
    sums = PlacedCounts(tally, domain).sums(places).tolist()
    assert sums == one_by_one(tally, domain, places)
    assert max(sums) > 0


def test_what_is_covered_counts_no_more():
    domain = Domain(bounds=BOUNDS["EPSG:3857"], crs="EPSG:3857")
    tally = counted(domain)
    places = CandidateAreas.around(
        ["a", "b"], [[20_000, 15_000], [22_000, 15_000]], 3000, domain.crs
    )
    placed = PlacedCounts(tally, domain)
    before = placed.sums(places)
    placed.remove(places, 0)
    after = placed.sums(places)
    assert after[0] == 0
    assert 0 < after[1] < before[1]
    assert tally.counts.sum() == 3000, "the tally is not changed"


@pytest.mark.parametrize("lattice", [(2**20, 2**20), (36, 5000), (7, 7), (1, 1)])
def test_circles_go_on_beyond_longitude_180(lattice):
    """Each record is counted once, on whichever side it is; the reference is a distance."""
    domain = Domain(bounds=(-180, -60, 180, 60), lattice=lattice)
    rng = np.random.default_rng(3)
    x = (180 + rng.normal(0, 1, 2000) + 180) % 360 - 180
    tally = tally_batches([Batch(x=x, y=rng.normal(-17, 1, 2000))], domain)
    points = [[179.9, -17], [-179.9, -17.5], [180, -16], [-180, -16], [150, -17]]
    places = CandidateAreas.around(list("abcde"), points, 80_000)
    assert places.bounds[::2] == (-180, 180)
    longitude, latitude = domain.centres(0, tally.columns), domain.centres(1, tally.rows)
    expected = []
    for (east, north), (across, along) in zip(points, places.radii, strict=True):
        turned = (longitude - east + 180) % 360 - 180
        inside = np.hypot(turned / across, (latitude - north) / along) <= 1
        expected.append(int(tally.counts[inside].sum()))
    placed = PlacedCounts(tally, domain)
    assert placed.sums(places).tolist() == expected
    assert lattice[0] < 2**20 or min(expected[:4]) > 50
    placed.remove(places, 0)
    assert placed.sums(places)[0] == 0
