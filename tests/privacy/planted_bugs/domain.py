"""Planted bugs of the domain: rows in the wrong cells, or in cells at all."""

from __future__ import annotations

import numpy as np

from privacy.planted_bugs.mutant import Mutant, replaced
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import tally_batches
from psd.space.domain import Domain

# Checks


def _counted(domain, x, y):
    batch = Batch(x=np.array(x, float), y=np.array(y, float))
    return tally_batches([batch], domain)


def last_places_are_in_last_cells(*_):
    """The largest numbers below the far edge, and the far edge itself, for many lattices."""
    for cells in range(1, 400):
        domain = Domain(bounds=(-180, -90, 180, 90), crs="EPSG:4326", lattice=(cells, cells))
        below = np.nextafter([180.0, 90.0], 0)
        columns, rows, inside = domain.quantise(np.array([below[0], 180]), np.array([below[1], 90]))
        assert inside.all()
        assert columns.tolist() == rows.tolist() == [cells - 1] * 2


def edges_are_where_they_are_published(*_):
    for cells in range(1, 400):
        domain = Domain(bounds=(126.4, 37, 127.6, 38), crs="EPSG:4326", lattice=(cells, cells))
        boxes = np.stack([np.arange(cells)] * 2 + [np.arange(1, cells + 1)] * 2, axis=1)
        places = domain.from_lattice(boxes)
        columns, rows, _ = domain.quantise(places[:, 0], places[:, 1])
        assert np.array_equal(columns, np.arange(cells))
        assert np.array_equal(rows, np.arange(cells))


def what_is_no_number_is_nowhere(*_):
    domain = Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(4, 4))
    nan, inf = float("nan"), float("inf")
    counted = _counted(domain, [nan, 1, nan, 1, inf, 1], [1, nan, nan, 1, 1, -inf])
    assert (counted.columns.tolist(), counted.counts.tolist()) == ([1], [1])


def places_outside_are_nowhere(*_):
    domain = Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(4, 4))
    counted = _counted(domain, [1, 4.001, -0.001, 1], [1, 1, 1, 9])
    assert counted.counts.sum() == 1


# Bugs


def _cells_by(place):
    def cells(self, axis, values):
        low, high, number = self.bounds[axis], self.bounds[axis + 2], self.lattice[axis]
        return place(values, low, high, number).astype(np.int32)

    return replaced(Domain, "_cells", cells)


def truncated_quotients():
    return _cells_by(lambda values, low, high, number: (values - low) / (high - low) * number)


def rounded_and_clipped():
    return _cells_by(
        lambda values, low, high, number: np.clip(
            np.floor((values - low) * (number / (high - low))), 0, number - 1
        )
    )


def _inside_by(rule):
    original = Domain.quantise

    def quantise(self, x, y):
        inside = rule(self, x, y)
        west, south, east, north = self.bounds
        x, y = (
            np.clip(np.nan_to_num(v[inside], nan=low), low, high)
            for v, low, high in ((x, west, east), (y, south, north))
        )
        columns, rows, _ = original(self, x, y)
        return columns, rows, inside

    return replaced(Domain, "quantise", quantise)


def not_outside_is_inside():
    """No comparison holds of NaN, so a row that is not outside is taken for inside."""

    def rule(domain, x, y):
        west, south, east, north = domain.bounds
        return ~((x < west) | (x > east) | (y < south) | (y > north))

    return _inside_by(rule)


def clamped():
    """Rows outside are moved to the nearest edge."""
    return _inside_by(lambda domain, x, y: np.isfinite(x) & np.isfinite(y))


LAWS = "tests/property/test_domain_laws.py::"
CELLS = LAWS + "test_a_point_falls_in_the_cell_whose_published_edges_hold_it"

MUTANTS = (
    Mutant(
        id="cells-by-truncation",
        wrong="the cell of a place is a truncated quotient, one too far below the far edge",
        like="float cell numbers, wrong for every size of a grid of the whole world",
        plant=truncated_quotients,
        check=last_places_are_in_last_cells,
        test=CELLS,
    ),
    Mutant(
        id="cells-by-rounding",
        wrong="a place on a published edge is counted on the other side of it",
        like="float cell numbers, wrong for 46 % of the places on published edges",
        plant=rounded_and_clipped,
        check=edges_are_where_they_are_published,
        test=CELLS,
    ),
    Mutant(
        id="nan-is-inside",
        wrong="a row without coordinates is counted in a corner",
        like="NaN that passes every comparison",
        plant=not_outside_is_inside,
        check=what_is_no_number_is_nowhere,
        test="tests/unit/space/test_domain.py::test_points_beyond_the_bounds_are_outside",
    ),
    Mutant(
        id="rows-outside-are-clamped",
        wrong="rows outside the domain are moved to its edge, where they crowd a cell",
        like="clipping in place of dropping",
        plant=clamped,
        check=places_outside_are_nowhere,
        test="tests/unit/space/test_domain.py::test_points_beyond_the_bounds_are_outside",
    ),
)
