"""Planted bugs of the domain: rows in the wrong cells, or in cells at all."""

import numpy as np

from privacy.planted_bugs.bug import around, instead, planted

LAWS = "tests/property/test_domain_laws.py::"
CELLS = LAWS + "test_a_point_falls_in_the_cell_whose_published_edges_hold_it"
ROUNDED = "tests/unit/space/test_lattice_axis.py::test_bounds_come_before_the_resolution"
OUTSIDE = "tests/unit/space/test_domain.py::test_points_beyond_the_bounds_are_outside"


def cells_by(cell):
    @instead("psd.space.domain.Domain._cells")
    def cells(self, axis, values):
        low, high, number = self.bounds[axis], self.bounds[axis + 2], self.lattice[axis]
        return cell(values, low, high, number).astype(np.int32)

    return cells()


@planted(test=CELLS, like="float cell numbers, wrong for every size of a grid of the world")
def cells_by_truncation():
    """The cell of a point is a truncated quotient, one too far below the far edge."""
    return cells_by(lambda values, low, high, number: (values - low) / (high - low) * number)


@planted(test=CELLS, like="float cell numbers, wrong for 46 % of the points on published edges")
def cells_by_rounding():
    """A point on a published edge is counted on the other side of it."""

    def rounded_and_clipped(values, low, high, number):
        return np.clip(np.floor((values - low) * (number / (high - low))), 0, number - 1)

    return cells_by(rounded_and_clipped)


def inside_by(rule):
    @around("psd.space.domain.Domain.quantise")
    def quantise(original, self, x, y):
        inside = rule(self, x, y)
        west, south, east, north = self.bounds
        x, y = (
            np.clip(np.nan_to_num(v[inside], nan=low), low, high)
            for v, low, high in ((x, west, east), (y, south, north))
        )
        columns, rows, _ = original(self, x, y)
        return columns, rows, inside

    return quantise()


@planted(test=OUTSIDE, like="NaN that passes every comparison")
def nan_is_inside():
    """A row without coordinates is counted in a corner."""

    def is_not_outside(domain, x, y):
        west, south, east, north = domain.bounds
        return ~((x < west) | (x > east) | (y < south) | (y > north))

    return inside_by(is_not_outside)


@planted(test=OUTSIDE, like="clipping in place of dropping")
def rows_outside_are_clamped():
    """Rows outside the domain are moved to its edge, where they crowd a cell."""
    return inside_by(lambda domain, x, y: np.isfinite(x) & np.isfinite(y))


@planted(test=ROUNDED, like="edges snapped before bounds")
@around("psd.space.domain.Domain.quantise")
def rounded_before_the_bounds(original, self, x, y):
    """Rows are rounded before the bounds are applied, so that one just outside is counted."""
    step = float(self.coordinate_resolution)
    return original(self, *(np.round(values / step) * step for values in (x, y)))
