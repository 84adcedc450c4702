"""Regions of a map page: ids and names alone, their outlines, and what is refused."""

from functools import partial

import geopandas as gpd
import numpy as np
import pytest
import shapely

from psd.errors import ParameterError
from psd.testing.releases import release_from_counts
from psd.web.map_regions import given_regions, outline_arrays, release_regions
from support.map_engine import of_zooms
from support.tables import refused

RELEASE = release_from_counts(np.full((4, 4), 50))


def table(shapes, **columns):
    return gpd.GeoDataFrame(columns, geometry=shapes, crs=RELEASE.domain.crs)


def test_ids_and_names_are_read_and_nothing_else():
    boxes = [shapely.box(0, 0, 2, 2), shapely.box(1, 1, 3, 3)]
    texts = {"name": ["West", "East"], "secret": ["x1", "x2"]}
    group = given_regions(RELEASE, table(boxes, id=[11, 12], **texts))
    assert (group.ids, group.names, group.overlaps) == (["11", "12"], ["West", "East"], [[0, 1]])
    assert group.areas == pytest.approx([4e-6, 4e-6])
    assert "x1" not in repr(group.to_json())
    # Without ids regions are numbered.
    group = given_regions(RELEASE, table([shapely.box(0, 0, 1, 1), shapely.box(2, 2, 9, 9)]))
    assert (group.ids, group.names) == (["1", "2"], ["1", "2"])
    assert group.areas == pytest.approx([1e-6, 4e-6])  # of what lies inside the bounds


def test_other_regions_are_refused(subtests):
    bow = shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])
    rows = [
        ("1 to 5,000", table([])),
        ("different ids", table([shapely.box(0, 0, 1, 1)] * 2, id=["a", "a"])),
        ("valid", table([bow])),
    ]
    refused(subtests, ParameterError, rows, partial(given_regions, RELEASE))


def test_outlines_are_rings_turned_to_the_left():
    hole = shapely.box(0, 0, 3, 3).difference(shapely.box(1, 1, 2, 2))
    two = shapely.MultiPolygon([shapely.box(3, 3, 4, 4), shapely.box(0, 3, 1, 4)])
    arrays = outline_arrays([given_regions(RELEASE, table([hole, two]))])
    begin, ends = arrays["begin0"].tolist(), arrays["ends0"].tolist()
    assert (begin, ends) == ([0, 2, 4], [4, 8, 12, 16])
    xy = np.column_stack([arrays["x0"], arrays["y0"]])
    areas = [shapely.LinearRing(xy[a:b]) for a, b in zip([0, *ends], ends, strict=False)]
    assert [ring.is_ccw for ring in areas] == [True, False, True, True]


def test_levels_of_a_release_are_groups_of_its_nodes():
    release = of_zooms("9,10")
    groups = release_regions(release)
    assert [group.name for group in groups] == list(reversed(release.levels))
    for group in groups:
        answers = release.query_regions(group.name)
        assert group.ids == answers["id"].tolist()
        assert release.estimates.count[group.nodes] == pytest.approx(answers["estimate"])
