"""Releases of local campaigns: the same file, the same queries."""

from dataclasses import replace
from fractions import Fraction

import geopandas as gpd
import numpy as np
import pytest
from pyproj import Transformer
from shapely import box

import psd
from psd.apps.local.aggregation import counted_groups, release_of
from psd.apps.local.campaign_design import design, grid_cells
from psd.apps.local.device import NANO
from psd.errors import InputDataError, ParameterError, ReleaseFormatError
from psd.estimation.least_squares import measure_record, share_variance
from psd.privacy.unit import PrivacyUnit
from psd.release.post_processing import PostProcessing
from psd.release.record import LocalReports
from support.local import HASHING, KARY, campaign, counted_places, local_release, places, sum_inside
from support.releases import changed
from support.seeded_system import same_draws, seeded_system  # noqa: F401

BOUNDS = (0, 0, 8, 4)
DEVICES = 20_000


@pytest.fixture(scope="module")
def release():
    with seeded_system():
        return local_release(design(BOUNDS, 2, DEVICES, rounds=1), *places(DEVICES))


def test_a_local_release_is_saved_and_loaded(release, tmp_path):
    path = tmp_path / "r.psd.parquet"
    release.save(path)
    loaded = psd.load(path)
    assert loaded.record.local == release.record.local
    assert loaded.digest == release.digest
    assert (loaded.record.source, loaded.unit.kind, loaded.epsilon) == ("local", "report", 2)
    assert loaded.query([BOUNDS]).table.equals(release.query([BOUNDS]).table)
    assert loaded.tree.max_path_loss > 2 * NANO  # a level each, not the sum of a path


def test_cells_at_the_rim_of_a_world_hold_places_on_earth_alone(release):
    """Of EPSG:8857 polygons beside the rim were a quarter too low, as if cells were filled."""
    assert (release.record.covariate, release.record.post_processing.density) == (None, "smooth")
    bounds, number = (-17_243_960, -8_392_928, 17_243_960, 8_392_928), np.arange(4000)
    longitude = number * 180 * (3 - np.sqrt(5)) % 360 - 180
    latitude = np.degrees(np.arcsin((2 * number + 1) / len(number) - 1))
    move = Transformer.from_crs("EPSG:4326", "EPSG:8857", always_xy=True)
    area = {"bounds": list(map(str, bounds)), "crs": "EPSG:8857", "lattice": [2**20, 2**20]}
    one = ((1_000_000, grid_cells(3), KARY),)
    world = campaign(one, nano_epsilon=12 * NANO, domain=area)
    with seeded_system():
        made = local_release(world, *move.transform(longitude, latitude))
    assert made.record.post_processing.density == "covariate"
    rim = gpd.GeoSeries([box(-180, -30, -150, 30)], crs="EPSG:4326")
    inside = ((longitude < -150) & (np.abs(latitude) < 30)).sum()
    assert made.query(rim)["estimate"][0] == pytest.approx(inside, rel=0.12)


def test_a_local_release_has_no_posterior(release):
    with pytest.raises(ParameterError, match="estimate must be least-squares or signed"):
        changed(release, post_processing=PostProcessing(estimate="posterior"))
    assert changed(release, post_processing=PostProcessing(estimate="signed")).total > 0
    (explanation,) = release.query([(1, 1, 3, 3)]).explain()
    assert explanation.remedies["change"].tolist() == ["as it is"]


def test_variances_follow_pooled_shares_and_not_their_own_estimate(release):
    measured, local = measure_record(release.record), release.record.local
    for level in local.levels:
        nodes = release.tree.levels[level.level]
        pooled = np.maximum(release.index.fit.estimates.signed[nodes], 0) / local.reports
        expected = share_variance(pooled, level, local.reports) * local.reports**2
        assert measured.variance[nodes] == pytest.approx(expected, rel=1e-4)


def test_few_reports_and_everything_outside():
    one = design(BOUNDS, 1, DEVICES, rounds=1)
    x, y = places(40)
    with pytest.raises(InputDataError, match="at least as many reports as cells"):
        local_release(one, x, y)
    counts = counted_groups(one, counted_places(one, *places(500)))
    none = [replace(counts[0], reports=0, support=0 * counts[0].support, outside=0), *counts[1:]]
    with pytest.raises(InputDataError, match="every open group must have reports"):
        release_of(one, none)
    x = np.full(2000, np.nan)
    one = campaign(((1_000_000, grid_cells(1), KARY),), nano_epsilon=4 * NANO)
    assert local_release(one, x, x).total < 300
    single = campaign(((1_000_000, [""], KARY),), nano_epsilon=4 * NANO)
    assert local_release(single, *places(2000)).total == pytest.approx(1900, abs=200)
    one = campaign(((1_000_000, grid_cells(3), HASHING),), nano_epsilon=NANO)
    release = local_release(one, *places(DEVICES))
    assert release.record.local.levels[0].protocol == "hashing"
    assert release.tree.levels[3] == slice(21, 85)


def test_estimates_are_near_the_truth(release):
    """Of settled bits too."""
    x, y = places(DEVICES)
    rappor = local_release(design(BOUNDS, 4, DEVICES, rounds=1, protocol="rappor"), x, y)
    assert {level.protocol for level in rappor.record.local.levels} == {"rappor"}
    inside = (x >= 0) & (x <= 8) & (y >= 0) & (y <= 4)
    for made, deviations in ((release, 5), (rappor, 6)):
        off = abs(made.total - inside.sum())
        assert off < deviations * made.index.fit.estimates.variance[0] ** 0.5
    boxes = [(2, 1, 4, 3), (0, 0, 4, 4)]
    answers = release.query(boxes).table
    off = np.abs(answers["estimate"] - sum_inside(x, y, boxes))
    assert (off < 6 * answers["error"]).all()


def broken(release, **changes):
    level = release.record.local.levels[-1]
    local = replace(release.record.local, levels=(replace(level, **changes),))
    return replace(release.record, local=local)


CONTRADICTIONS = [
    lambda r: replace(r.record, source="curator"),
    lambda r: replace(r.record, unit=PrivacyUnit()),
    lambda r: replace(r.record, local=None),
    lambda r: replace(r.record, epsilon=NANO),
    lambda r: broken(r, level=200),
    lambda r: broken(r, reports=3, outside=0),
    lambda r: broken(r, q=Fraction(1)),
    lambda r: replace(r.record, local=LocalReports(campaign="x", levels=())),
    lambda r: replace(r.record, tree=replace(r.tree, count=-r.tree.count)),
    lambda r: replace(r.record, tree=replace(r.tree, count=r.tree.count * 1000)),
]


def test_records_that_contradict_themselves_are_refused(release, subtests):
    for number, change in enumerate(CONTRADICTIONS):
        with subtests.test(number), pytest.raises((ParameterError, ReleaseFormatError)):
            change(release)
    domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    given = psd.Release.from_counts(
        psd.decompositions.grid_tree(domain, 2), [5, 1, 0, 2], 1.0, domain=domain
    )
    for fields in ({"source": "local"}, {"unit": PrivacyUnit(kind="report")}):
        with pytest.raises(ParameterError, match="source local and unit report"):
            replace(given.record, **fields)
