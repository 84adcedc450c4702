"""Cells of H3 as regions: those of the library, all of the bounds, and their boxes."""

import dataclasses
import sys

import geopandas as gpd
import h3.api.basic_int as library
import numpy as np
import pyarrow as pa
import pytest
import shapely

import psd
from psd.errors import DomainError, MissingExtraError, ParameterError, ReleaseFormatError
from psd.space.boundary import Boundary
from psd.space.region_hierarchy import RegionHierarchy
from psd.space.region_kinds import _h3_cells
from psd.space.region_kinds.h3 import hierarchy_from_h3
from support.tables import refused

SEOUL = psd.Domain(bounds=(126.7, 37.4, 127.3, 37.8), lattice=(1000, 700))
NORWAY = psd.Domain(bounds=(4, 58, 31, 71), lattice=(2**20, 2**20))


def points(domain, number, seed=1):
    west, south, east, north = domain.bounds
    rng = np.random.default_rng(seed)
    return rng.uniform(west, east, number), rng.uniform(south, north, number)


@pytest.mark.parametrize(
    ("domain", "resolution"), [(SEOUL, 5), (SEOUL, 8), (NORWAY, 2), (NORWAY, 4), (SEOUL, 0)]
)
def test_records_are_in_the_cells_of_the_library(domain, resolution):
    found = hierarchy_from_h3(str(resolution), domain)
    x, y = points(domain, 4000)
    x[:3], y[:3] = domain.bounds[2], domain.bounds[1]
    region = found.assign(x, y)
    assert (region >= 0).all()
    for a, b, number in zip(x[:200], y[:200], region[:200], strict=True):
        assert found.levels[0].ids[number] == f"{library.latlng_to_cell(b, a, resolution):x}"
    columns, rows, _ = domain.quantise(x, y)
    cells = np.stack([columns, rows, columns + 1, rows + 1], axis=1)
    assert found.meets(region, cells).all()
    assert (found.boxes[region, :2] <= cells[:, :2]).all()
    assert (found.boxes[region, 2:] >= cells[:, 2:]).all()


def test_cells_cover_the_bounds_and_no_more():
    found = hierarchy_from_h3("7", SEOUL)
    assert shapely.area(found.shapes()).sum() == pytest.approx(0.6 * 0.4, rel=1e-4)
    assert (shapely.area(found.shapes()) > 0).all()
    assert found.part_outside.max() < 1
    area = found.clipped_area(np.arange(found.size), found.boxes)
    assert area.sum() == pytest.approx(1000 * 700, rel=1e-4)


def test_parents_are_those_of_the_index():
    found = hierarchy_from_h3("4..8", SEOUL)
    assert [level.name for level in found.levels] == [f"resolution {r}" for r in range(4, 9)]
    for upper, lower, resolution in zip(found.levels, found.levels[1:], range(4, 8), strict=False):
        for text, parent in zip(lower.ids[:500], lower.parent[:500], strict=True):
            cell = library.cell_to_parent(library.str_to_int(text), resolution)
            assert upper.ids[parent] == library.int_to_str(cell)
    assert list(found.levels[-1].ids[:2]) == sorted(found.levels[-1].ids[:2])


@pytest.mark.deep
def test_rounded_coordinates_decide_by_their_values():
    domain = psd.Domain(bounds=SEOUL.bounds, coordinate_resolution="0.01")
    found = hierarchy_from_h3("9", domain)
    x, y = points(domain, 500)
    assert np.array_equal(found.assign(x, y), found.assign(x.round(2), y.round(2)))


def test_only_cells_of_the_boundary_are_regions():
    outline = gpd.GeoSeries([shapely.Point(127, 37.6).buffer(0.1)], crs="EPSG:4326")
    boundary = Boundary.from_polygons(outline, SEOUL)
    found, full = hierarchy_from_h3("8", SEOUL, boundary=boundary), hierarchy_from_h3("8", SEOUL)
    assert found.size < full.size / 4
    x, y = points(SEOUL, 3000)
    inside = boundary.contains(x, y)
    assert (found.assign(x, y)[inside] >= 0).all()


def test_a_release_has_the_same_cells():
    found = hierarchy_from_h3("5,7", SEOUL)
    again = RegionHierarchy.from_table(SEOUL, found.parameters(), found.to_table())
    assert again.digest == found.digest
    x, y = points(SEOUL, 500)
    assert np.array_equal(again.assign(x, y), found.assign(x, y))


def test_a_forged_release_is_refused(subtests):
    found = hierarchy_from_h3("5,7", SEOUL)
    stated, table = found.parameters(), found.to_table()
    changes = [{"resolutions": numbers} for numbers in ([5, 8], ["5", "7"], [7, 5])]
    changes += [{"levels": ["a", "b"]}, {"more": 1}]
    cells = [pa.array(cells, pa.int64()) for cells in ([1, 2, 3], [], [-1], [None])]
    forged = [({**stated, **change}, table) for change in changes]
    for case in (*forged, *((stated, pa.table({"cell": column})) for column in cells)):
        with subtests.test(case=case), pytest.raises(ReleaseFormatError):
            RegionHierarchy.from_table(SEOUL, *case)


def test_resolutions_that_are_refused(subtests):
    table = [
        ("h3 must be", "", "16", "5..16", "9..5", "5,5", "-1", "a", "1.5"),
        ("got more of resolution 12; the finest that fits is 11", "12"),
    ]
    refused(subtests, ParameterError, table, lambda text: hierarchy_from_h3(text, SEOUL))
    small = dataclasses.replace(SEOUL, lattice=(8, 8))
    assert hierarchy_from_h3((5, 7), small).levels[1].ids[0]  # a tuple


def test_what_cells_cannot_cover_is_refused(monkeypatch):
    with pytest.raises(DomainError, match="h3 needs bounds in EPSG:4326, got EPSG:3857"):
        hierarchy_from_h3("5", psd.Domain(bounds=(0, 0, 9, 9), crs="EPSG:3857"))
    with pytest.raises(DomainError, match="around a pole or across the antimeridian"):
        hierarchy_from_h3("2", psd.Domain(bounds=(170, 60, 180, 70)))
    monkeypatch.setitem(sys.modules, "h3.api.basic_int", None)
    with pytest.raises(MissingExtraError, match="psd-publisher"):
        _h3_cells.h3_library()
