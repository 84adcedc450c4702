"""Public covariates: exact masses, and rasters from polygons and from other rasters."""

from fractions import Fraction

import numpy as np
import pytest

import psd
from psd.errors import ParameterError
from psd.space.covariate import MAX_SIDE, Covariate
from support.tables import refused
from support.trees import domain_of

DOMAIN = domain_of((12, 8))


def covariate(raster, domain=DOMAIN):
    return Covariate(domain=domain, raster=np.array(raster, np.uint16))


def naive_mass(known, box):
    """Mass of a box in lattice units, cell by cell, in fractions."""
    wide = Fraction(known.domain.lattice[0], known.columns)
    high = Fraction(known.domain.lattice[1], known.rows)
    x0, y0, x1, y1 = map(Fraction, box)
    total = Fraction(0)
    for row in range(known.rows):
        for column in range(known.columns):
            w = min(x1, (column + 1) * wide) - max(x0, column * wide)
            h = min(y1, (row + 1) * high) - max(y0, row * high)
            if w > 0 and h > 0:
                total += int(known.raster[row, column]) * w / wide * h / high
    return total


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (4, 4), (5, 7), (8, 12)])
def test_masses_are_those_of_the_definition(shape):
    rng = np.random.default_rng(shape)
    known = covariate(rng.integers(0, 3, shape) * rng.integers(1, 60_000, shape) + 1)
    corners = np.sort(rng.random((60, 2, 2)) * [12, 8], axis=1).reshape(-1, 4)
    boxes = np.vstack([corners, np.rint(corners), [[0, 0, 12, 8], [3, 2, 3.25, 2.5]]])
    for box, mass in zip(boxes, known.mass(boxes), strict=True):
        assert mass == pytest.approx(float(naive_mass(known, box)), rel=1e-12, abs=0)


def test_tiny_boxes_keep_their_precision():
    known = Covariate(
        domain=psd.Domain(bounds=(0, 0, 1, 1), crs="EPSG:3857"),
        raster=np.full((1024, 1024), 65_535, np.uint16),
    )
    box = np.array([[2**20 - 1, 2**20 - 1, 2**20, 2**20]])
    assert known.mass(box) == pytest.approx(65_535 / 2**20, rel=1e-12)


def test_a_mass_is_zero_exactly_where_the_covariate_is():
    known = covariate([[7, 0, 0], [0, 0, 65_535]])
    assert known.mass(np.array([[4, 0, 12, 4], [0, 4, 8, 8]])).tolist() == [0, 0]
    assert (known.mass(np.array([[3.999, 0, 12, 4], [0, 4, 8.001, 8]])) > 0).all()


def test_the_whole_has_the_sum_of_the_raster():
    raster = np.random.default_rng(1).integers(0, 2**16, (1024, 1024), np.uint16)
    known = covariate(raster, psd.Domain(bounds=(0, 0, 3, 7), crs="EPSG:3857"))
    assert known.mass(np.array([[0, 0, 2**20, 2**20]])) == [int(raster.sum(dtype=np.int64))]
    assert known.surface[-1, -1] == raster.sum(dtype=np.int64)


def test_a_covariate_cannot_be_changed_and_says_what_it_is():
    given = np.array([[1, 0]], np.uint16)
    known = covariate(given)
    given[0, 0] = 9
    assert known.raster.tolist() == [[1, 0]]
    with pytest.raises(ValueError, match="read-only"):
        known.raster[0, 0] = 5
    assert repr(known) == "<Covariate: 2 x 1 cells, 50.0% not empty>"


def test_other_rasters_are_refused(subtests):
    wide = np.ones((1, MAX_SIDE + 1), np.uint16)
    table = [
        ("16-bit", np.ones((2, 2)), np.ones(4, np.uint16)),
        ("1 to 1,024 columns", np.ones((0, 4), np.uint16), wide),
        ("0 everywhere", np.zeros((2, 2), np.uint16)),
    ]
    refused(subtests, ParameterError, table, lambda raster: Covariate(domain=DOMAIN, raster=raster))


def test_densities_are_rounded_up_and_dust_is_not():
    known = Covariate.from_density(DOMAIN, np.array([[1.0, 1e-30, 0.0, 0.5 + 1e-13]]))
    assert known.raster.tolist() == [[65_535, 1, 0, 32_768]]
