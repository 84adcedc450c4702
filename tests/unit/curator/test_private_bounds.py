"""Bounds found privately, and the area of use of a CRS."""

import io

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely

import psd
from psd.curator.contribution_choice import ContributionChoice
from psd.curator.private_bounds import PrivateBounds, find_bounds
from psd.errors import DomainError, InputDataError, ParameterError, PsdError
from psd.ingest.tally import Tally
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.privacy.epsilon import NANO
from psd.publish.charging import charge_request
from psd.publish.request_arguments import request_from_arguments
from psd.space.boundary import Boundary
from psd.space.bounds import snap_outward
from psd.space.covariate import Covariate

KOREA = Covariate(raster=np.ones((2, 2), np.uint16), domain=psd.Domain(bounds=(126, 37, 127, 38)))
LAND = gpd.GeoSeries([shapely.box(126, 37, 127, 38)], crs="EPSG:4326")


def test_the_area_of_use():
    assert psd.Domain.area_of_use("EPSG:4326").bounds == (-180, -90, 180, 90)
    korea = psd.Domain.area_of_use("EPSG:5179", lattice=(4, 4))
    west, south, east, north = korea.bounds
    assert 500_000 < west < 900_000 < 1_100_000 < east < 1_700_000
    assert 900_000 < south < 1_500_000 < 2_000_000 < north < 2_500_000
    assert (korea.crs, korea.lattice) == ("EPSG:5179", (4, 4))


def test_a_crs_that_nobody_placed_has_no_area_of_use():
    local = 'LOCAL_CS["mine",UNIT["metre",1]]'
    with pytest.raises(DomainError, match="area of use"):
        psd.Domain.area_of_use(local)
    with pytest.raises(DomainError, match="area of use"):
        PrivateBounds(crs=local)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"share": "0"}, "share must be above 0"),
        ({"share": "1"}, "share"),
        ({"beyond": 2}, "beyond"),
        ({"beyond": 10_001}, "beyond"),
    ],
)
def test_settings_out_of_range_are_refused(settings, words):
    with pytest.raises(ParameterError, match=words):
        PrivateBounds(**settings)


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
    stated = {k: v for k, v in release.parameters.items() if k.startswith("bounds")}
    assert stated == {"bounds_epsilon": "0.2", "bounds_beyond": 100}
    assert release.record.epsilon == NANO
    assert release.tree.max_path_epsilon == NANO * 8 // 10
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


@pytest.mark.parametrize(
    ("crs", "resolution"),
    [
        *(("EPSG:4326", step) for step in ("0.000001", "0.03", "7", "100", "360")),
        *(("EPSG:5179", step) for step in ("0.03", "7", "250000")),
    ],
)
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


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"coordinate_resolution": "1e-7"}, "1 to 2\\^30 values"),
        ({"coordinate_resolution": "361"}, None),
        ({"lattice": (0, 1)}, "lattice must have"),
        ({"coordinate_resolution": "fine"}, "decimal number above 0"),
        ({"coordinate_resolution": "0.01", "lattice": (64, 64)}, "lattice must be left out"),
        ({"coordinate_resolution": "0.01", "lattice": (36_001, 18_001)}, "must be left out"),
    ],
)
def test_a_resolution_has_to_fit_the_area_of_use(settings, words):
    if words is None:
        assert PrivateBounds(**settings).widest.lattice == (1, 1)
        return
    with pytest.raises(PsdError, match=words):
        PrivateBounds(**settings)


def test_rounded_coordinates_that_would_be_transformed_are_refused_before_they_are_paid_for(
    monkeypatch,
):
    monkeypatch.setattr("psd.publish.count_rows.find_bounds", None)
    points = gpd.GeoDataFrame(geometry=gpd.points_from_xy([127.0], [37.5]), crs="EPSG:4326")
    how = PrivateBounds(crs="EPSG:5179", coordinate_resolution="1")
    with pytest.raises(DomainError, match="must be left out where coordinates are transformed"):
        psd.build(points, domain=how, epsilon=1)


def test_a_ledger_learns_the_resolution():
    how = PrivateBounds(coordinate_resolution="0.01")
    build = request_from_arguments(domain=how, epsilon=1)
    assert charge_request(build).readings[0]["coordinate_resolution"] == "0.01"


def test_a_bound_and_bounds_can_both_be_found():
    who = {"user": "u", "max_contributions": ContributionChoice(share="0.1", over=2000)}
    release = psd.build(
        seoul(40_000, k=3), domain=PrivateBounds(share="0.2"), epsilon=2, method="grid", **who
    )
    assert release.tree.max_path_epsilon == 2 * NANO * 7 // 10
    assert {"bound_epsilon", "bounds_epsilon"} <= set(release.parameters)


@pytest.mark.parametrize("rows", [0, 1])
def test_bounds_of_nearly_nothing_are_still_bounds(rows):
    tally = Tally(
        columns=np.zeros(rows, np.int32), rows=np.zeros(rows, np.int32), counts=np.ones(rows, int)
    )
    for _ in range(50):
        allotted = PrivateBounds().allot(Budget(NANO))
        found = find_bounds(tally, PrivateBounds(), allotted, SecureSampler())
        assert allotted.left == 0
        west, south, east, north = found.bounds
        assert -180 <= west < east <= 180
        assert -90 <= south < north <= 90


def test_the_second_reading_never_refuses():
    """What it would say follows from noisy bounds, after they were paid for."""
    table = pd.DataFrame({"lon": [127.0], "lat": [37.5]})
    for _ in range(20):
        release = psd.build(
            table, domain=PrivateBounds(), epsilon="0.1", method=psd.decompositions.Grid(size=2)
        )
        assert len(release.tree) == 5


@pytest.mark.parametrize(
    "data",
    [
        pytest.param("-", id="standard input"),
        pytest.param(["-"], id="in a list"),
        pytest.param(
            pa.RecordBatchReader.from_batches(pa.schema([("lon", pa.float64())]), []), id="stream"
        ),
        pytest.param(iter([]), id="iterator"),
    ],
)
def test_an_input_that_is_used_up_by_reading_is_refused(data, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("lon,lat\n1,1\n"))
    with pytest.raises(InputDataError, match="twice"):
        psd.build(data, domain=PrivateBounds(), epsilon=1)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"density": "covariate"}, "with private bounds"),
        ({"covariate": KOREA}, "bounds must be public with covariate"),
        (
            {"boundary": Boundary.from_polygons(LAND, KOREA.domain)},
            "bounds must be public with boundary",
        ),
    ],
)
def test_what_needs_bounds_beforehand_is_refused(given, words):
    with pytest.raises(ParameterError, match=words):
        psd.build(seoul(3), domain=PrivateBounds(), epsilon=1, **given)


def test_an_epsilon_of_which_no_share_is_left_is_refused():
    with pytest.raises(ParameterError, match="private bounds is below"):
        psd.build(seoul(3), domain=PrivateBounds(), epsilon="0.00000001")


@pytest.mark.parametrize(("bounds", "bound"), [("0.5", "0.5"), ("0.9", "0.2")])
def test_shares_that_leave_nothing_are_refused_before_a_row_is_read(bounds, bound):
    with pytest.raises(ParameterError, match="must leave some for counting"):
        psd.build(
            "no such file.csv",
            domain=PrivateBounds(share=bounds),
            epsilon=1,
            user="u",
            max_contributions=ContributionChoice(share=bound),
        )
