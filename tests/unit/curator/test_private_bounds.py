"""Bounds found privately, and the area of use of a CRS."""

import io

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely

import psd
from psd.curator.private_bounds import ContributionChoice, PrivateBounds, find_bounds
from psd.errors import DomainError, InputDataError, ParameterError
from psd.ingest.tally import Tally
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO
from psd.publish.charging import charge_request
from psd.space.boundary import Boundary
from psd.space.bounds import snap_outward
from psd.space.covariate import Covariate
from support.requests import request_of
from support.tables import refuses

KOREA = Covariate(raster=np.ones((2, 2), np.uint16), domain=psd.Domain(bounds=(126, 37, 127, 38)))
LAND = gpd.GeoSeries([shapely.box(126, 37, 127, 38)], crs="EPSG:4326")


def test_the_area_of_use(subtests):
    assert psd.Domain.area_of_use("EPSG:4326").bounds == (-180, -90, 180, 90)
    korea = psd.Domain.area_of_use("EPSG:5179", lattice=(4, 4))
    west, south, east, north = korea.bounds
    assert 500_000 < west < 900_000 < 1_100_000 < east < 1_700_000
    assert 900_000 < south < 1_500_000 < 2_000_000 < north < 2_500_000
    assert (korea.crs, korea.lattice) == ("EPSG:5179", (4, 4))
    nowhere = ({"crs": 'LOCAL_CS["mine",UNIT["metre",1]]'}, "area of use")
    for act in (psd.Domain.area_of_use, PrivateBounds):
        refuses(subtests, act, [nowhere], DomainError)


def test_settings_that_are_refused(subtests):
    """Among them resolutions that do not fit the area of use."""
    stepped = {"coordinate_resolution": "0.01"}
    rows = [
        ({"share": "0"}, "share must be above 0"),
        ({"share": "1"}, "share"),
        ({"beyond": 2}, "beyond"),
        ({"beyond": 10_001}, "beyond"),
        ({"coordinate_resolution": "1e-7"}, "1 to 2\\^30 values"),
        ({"lattice": (0, 1)}, "lattice must have"),
        ({"coordinate_resolution": "fine"}, "decimal number above 0"),
        ({**stepped, "lattice": (64, 64)}, "lattice must be left out"),
        ({**stepped, "lattice": (36_001, 18_001)}, "must be left out"),
    ]
    refuses(subtests, PrivateBounds, rows)
    assert PrivateBounds(coordinate_resolution="361").widest.lattice == (1, 1)


def seoul(rows, k=1):
    rng = np.random.default_rng(rows)
    place = rng.normal((127, 37.5), 0.05, (rows, 2))
    table = pd.DataFrame(place, columns=["lon", "lat"])
    table["u"] = [f"u{number // k}" for number in range(rows)]
    return table


def test_bounds_are_near_the_quantiles():
    table = seoul(50_000)
    how = PrivateBounds(share="0.2", beyond=100)
    release = psd.build(table, domain=how, epsilon=1, method=psd.decompositions.Grid(size=8))
    # 14,000 proposals of rank noise over an eps of 0.05 each: off by well under 500 rows.
    for axis, name in enumerate(("lon", "lat")):
        for side, share in ((axis, 0.01), (axis + 2, 0.99)):
            rank = (table[name] < release.domain.bounds[side]).mean()
            assert abs(rank - share) < 0.015
    stated = {k: v for k, v in release.record.parameters.items() if k.startswith("bounds")}
    assert stated == {"bounds_epsilon": "0.2", "bounds_beyond": 100}
    assert release.record.epsilon == NANO
    assert release.tree.max_path_loss == NANO * 8 // 10
    assert release.total == pytest.approx(49_000, abs=1_500)


def test_bounds_come_first_then_the_resolution():
    table = seoul(20_000).round(2)
    how = PrivateBounds(share="0.5", beyond=50, coordinate_resolution="0.01")
    release = psd.build(table, domain=how, epsilon=2, method=psd.decompositions.Grid(size=4))
    domain = release.domain
    assert domain.coordinate_resolution == "0.01"
    assert all(side == round(side, 2) for side in domain.bounds)
    assert domain.lattice == (round(domain.width * 100) + 1, round(domain.height * 100) + 1)
    assert 0.15 < domain.width < 0.3
    inside = table["lon"].between(*domain.bounds[::2]) & table["lat"].between(*domain.bounds[1::2])
    assert release.total == pytest.approx(inside.sum(), abs=200)


DEGREES, METRES = ("0.000001", "0.03", "7", "100", "360"), ("0.03", "7", "250000")
STEPS = [*(("EPSG:4326", step) for step in DEGREES), *(("EPSG:5179", step) for step in METRES)]


@pytest.mark.parametrize(("crs", "resolution"), STEPS)
def test_no_outcome_is_refused_once_it_was_paid_for(crs, resolution):
    how = PrivateBounds(crs=crs, coordinate_resolution=resolution)
    random, outer = np.random.default_rng(17), how.outer
    low = np.concatenate([random.integers(0, 65_536, (200, 2)), [[0, 0]]])
    far = np.maximum(random.integers(0, 65_537, low.shape), low + 1)
    high = np.where(np.arange(len(low))[:, None] % 2, low + 1, far)
    for sides in np.concatenate([low, high], axis=1):
        bounds = outer.from_lattice(sides[None])[0]
        snapped = snap_outward(tuple(bounds.tolist()), resolution, outer.bounds)
        assert (np.array(snapped[:2]) <= bounds[:2]).all()
        assert (np.array(snapped[2:]) >= bounds[2:]).all()
        domain = psd.Domain(bounds=snapped, crs=crs, coordinate_resolution=resolution)
        values = domain.centres(0, [0, domain.lattice[0] - 1])
        assert snapped[0] in (values[0], outer.bounds[0])
        assert snapped[2] in (values[1], outer.bounds[2])


@pytest.mark.parametrize("rows", [0, 1])
def test_bounds_of_nearly_nothing_are_still_bounds(rows):
    zeros = np.zeros(rows, np.int32)
    tally = Tally(columns=zeros, rows=zeros, counts=np.ones(rows, int))
    for _ in range(50):
        allotted = PrivateBounds().allot(Budget(NANO))
        found = find_bounds(tally, PrivateBounds(), allotted, SecureSampler())
        assert allotted.left == 0
        west, south, east, north = found.bounds
        assert -180 <= west < east <= 180
        assert -90 <= south < north <= 90


def build(data=None, **more):
    data = seoul(3) if data is None else data
    return psd.build(data, **{"domain": PrivateBounds(), "epsilon": 1, **more})


def test_the_second_reading_never_refuses():
    """What it would say follows from noisy bounds, after they were paid for."""
    table, method = pd.DataFrame({"lon": [127.0], "lat": [37.5]}), psd.decompositions.Grid(size=2)
    for _ in range(20):
        assert len(build(table, epsilon="0.1", method=method).tree) == 5


def test_what_needs_bounds_beforehand_is_refused(subtests, monkeypatch):
    boundary = Boundary.from_polygons(LAND, KOREA.domain)
    rows = [
        ({"density": "covariate"}, "with private bounds"),
        ({"covariate": KOREA}, "bounds must be public with covariate"),
        ({"boundary": boundary}, "bounds must be public with boundary"),
        ({"epsilon": "0.00000001"}, "private bounds is below"),  # no share is left
    ]
    refuses(subtests, build, rows, ParameterError)
    # An input that is used up by reading is refused, too.
    monkeypatch.setattr("sys.stdin", io.StringIO("lon,lat\n1,1\n"))
    stream = pa.RecordBatchReader.from_batches(pa.schema([("lon", pa.float64())]), [])
    for data in ("-", ["-"], stream, iter([])):
        with subtests.test(data=data), pytest.raises(InputDataError, match="twice"):
            build(data)


def test_a_bound_and_bounds_can_both_be_found_and_must_leave_some_for_counting():
    for bounds, bound in (("0.5", "0.5"), ("0.9", "0.2")):
        who = {"user": "u", "max_contributions": ContributionChoice(share=bound)}
        with pytest.raises(ParameterError, match="must leave some for counting"):
            build("no such file.csv", domain=PrivateBounds(share=bounds), **who)
    who = {"user": "u", "max_contributions": ContributionChoice(share="0.1", over=2000)}
    how = {"domain": PrivateBounds(share="0.2"), "epsilon": 2, "method": "grid"}
    release = build(seoul(40_000, k=3), **how, **who)
    assert release.tree.max_path_loss == 2 * NANO * 7 // 10
    assert {"bound_epsilon", "bounds_epsilon"} <= set(release.record.parameters)


def test_a_resolution_is_claimed_and_left_out_where_coordinates_are_transformed(monkeypatch):
    claimed = request_of(domain=PrivateBounds(coordinate_resolution="0.01"), epsilon=1)
    assert charge_request(claimed).readings[0]["coordinate_resolution"] == "0.01"
    monkeypatch.setattr("psd.publish.counting.find_bounds", None)  # nothing is paid for
    points = gpd.GeoDataFrame(geometry=gpd.points_from_xy([127.0], [37.5]), crs="EPSG:4326")
    with pytest.raises(DomainError, match="must be left out where coordinates are transformed"):
        build(points, domain=PrivateBounds(crs="EPSG:5179", coordinate_resolution="1"))
