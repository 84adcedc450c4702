"""Joint answers: totals, differences, ratios, what is refused, and a few exact numbers."""

import math

import geopandas as gpd
import numpy as np
import pytest
import shapely

import psd
from psd.errors import ParameterError
from psd.query import region_overlaps as regions_module
from support.trees import domain_of


@pytest.fixture
def release():
    domain = domain_of((4, 4))
    counts = np.arange(16) * 10 + 50
    return psd.Release.from_counts(psd.grid_tree(domain, 4), counts, 1.0, domain=domain)


def test_polygons_keep_their_columns_and_index(release):
    shapes = [shapely.box(0, 0, 1, 1), shapely.Point(2, 2).buffer(1.5)]
    table = gpd.GeoDataFrame({"name": ["a", "b"]}, geometry=shapes, crs="EPSG:3857", index=[7, 3])
    answers = release.joint(table).answers
    assert answers.index.tolist() == [7, 3]
    assert list(answers.columns[-2:]) == ["joint_lower", "joint_upper"]
    assert "name" in answers
    with pytest.raises(ParameterError, match="joint_lower"):
        release.joint(table.assign(joint_lower=1))


def test_touching_polygons_do_not_overlap(release):
    shapes = [shapely.box(0, 0, 1.7, 4), shapely.box(1.7, 0, 4, 4), shapely.box(0, 3, 4, 4)]
    assert release.joint(shapes[:2], crs=release.domain.crs).overlap is None
    assert release.joint(shapes, crs=release.domain.crs).overlap == (0, 2)


def test_no_regions(release):
    joint = release.joint(np.empty((0, 4)))
    assert len(joint) == 0
    assert joint.covariance.shape == (0, 0)
    assert joint.total().estimate == 0


def test_too_many_regions(release, monkeypatch):
    monkeypatch.setattr(regions_module, "MAX_REGIONS", 2)
    with pytest.raises(ParameterError, match="at most 2 for joint answers, got 3"):
        release.joint([(0, 0, 1, 1)] * 3)


@pytest.mark.parametrize("weights", [[1], [[1, 1]], [1, math.nan], [1, 1, 1]])
def test_weights_that_are_refused(release, weights):
    with pytest.raises(ParameterError, match="weights"):
        release.joint([(0, 0, 1, 1), (2, 0, 4, 2)]).combine(weights)


@pytest.mark.parametrize("number", [-1, 2])
def test_regions_that_are_not_there(release, number):
    joint = release.joint([(0, 0, 1, 1), (2, 0, 4, 2)])
    with pytest.raises(ParameterError, match="from 0 to 1, got"):
        joint.difference(0, number)
