"""A coordinate resolution: what is refused, and which cells, edges and values it gives."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from psd.errors import DomainError
from psd.space.domain import DEFAULT_LATTICE, Domain
from psd.space.lattice_axis import SteppedAxis, parse_resolution
from support.tables import refused, returned

METRES = "EPSG:3857"


def stepped(bounds, step, crs=METRES):
    return Domain(bounds=bounds, crs=crs, coordinate_resolution=step)


def test_a_resolution_is_kept_in_its_shortest_text_and_fits_the_bounds(subtests):
    table = [
        ("0.0001", "0.0001", "1e-4", 1e-4),
        ("0.1", " 0.10 ", 0.1),
        ("25", 25),
        ("100", "1E+2"),
        ("0.25", Decimal("0.250")),
        ("0.5", np.float64(0.5)),
    ]
    returned(subtests, table, parse_resolution)
    bounds = (0, 0, 1000, 1000)
    returned(subtests, table, lambda value: stepped(bounds, value).coordinate_resolution)
    others = [0, "-0.1", "nan", "inf", "a step", "", True, [0.1], 1 / 3]
    others += ["1e-16", "1e15", "1e999999999"]
    table = [("coordinate_resolution must be a decimal number", *others)]
    refused(subtests, DomainError, table, lambda value: stepped(bounds, value))
    for says, bounds, step in (
        ("got 0 multiples", (0.2, 0, 0.8, 2), "1"),
        ("got 0 multiples", (0, 0.2, 2, 0.8), "1"),
        ("1,100,000,001 multiples", (0, 0, 1100, 1), "0.000001"),
        ("coarser than the rounding", (0, 0, 1e7, 1e7), "1e-9"),
    ):
        with subtests.test(bounds=bounds):
            with pytest.raises(DomainError, match=says) as error:
                stepped(bounds, step)
            assert error.value.name == "coordinate_resolution"


def test_the_lattice_follows_from_the_resolution():
    domain = stepped((-0.25, 0.1, 0.35, 0.3), "0.1")
    assert domain.lattice == (6, 3)
    assert replace(domain, bounds=domain.bounds) == domain
    with pytest.raises(DomainError, match="lattice must be left out"):
        replace(domain, lattice=(6, 4))
    plain = Domain(bounds=domain.bounds, crs=METRES)
    assert plain.lattice == DEFAULT_LATTICE
    assert plain != domain
    domain = stepped((-0.25, 0.1, 0.35, 0.3), "0.1")
    assert domain.edges(0, range(7)).tolist() == [-0.25, -0.15, -0.05, 0.05, 0.15, 0.25, 0.35]
    assert domain.edges(1, range(4)).tolist() == [0.1, 0.15, 0.25, 0.3]
    assert domain.centres(0, range(6)).tolist() == [-0.2, -0.1, 0.0, 0.1, 0.2, 0.3]
    # Between lines, of that part of the cell; the first cell is half as high as the second.
    assert domain.edges(1, [0.5, 1.5]).tolist() == pytest.approx([0.125, 0.2])
    # 0.1 and 0.7 are doubles above and below the decimals that they state.
    axis = SteppedAxis.within(0.1, 0.7, "0.1")
    assert (axis.first, axis.cells) == (1, 7)
    assert SteppedAxis.within(np.nextafter(0.1, 1), 0.7, "0.1").first == 2
    assert SteppedAxis.within(0.1, np.nextafter(0.7, 0), "0.1").cells == 6


def test_bounds_come_before_the_resolution():
    """A record just outside is outside, although its nearest value is inside."""
    domain = stepped((0, 0, 3, 3), 1)
    x = np.array([0, -1e-9, 3, 3.0001, 0.5, 2.49, 2.5])
    columns, _, inside = domain.quantise(x, np.zeros(len(x)))
    assert inside.tolist() == [True, False, True, False, True, True, True]
    assert columns.tolist() == [0, 3, 1, 2, 3]
    # Records beside the outermost values are in their cells.
    domain = stepped((0.3, -1.7, 3.8, 0.9), 1)
    assert domain.lattice == (3, 2)
    columns, rows, _ = domain.quantise(np.array([0.3, 0.45, 3.8]), np.array([-1.7, 0.9, 0.2]))
    assert (columns.tolist(), rows.tolist()) == ([0, 0, 2], [0, 1, 1])


def test_edges_of_boxes_snap_by_the_stated_rule(subtests):
    domain = stepped((0, 0, 9, 9), 1)
    table = [
        ([1, 1, 3, 3], (1, 1, 3, 3), (1 + 1e-7, 1 - 1e-7, 3 + 1e-7, 3 - 1e-7)),
        ([1, 1, 3, 4], (0.9, 0.1, 2.1, 3.9)),  # edges beside values
        ([2, 1, 2, 3], (1.2, 1, 1.8, 3)),  # between two values
        ([0, 0, 0, 10], (-5, -5, 0, 9)),  # beyond the bounds
        ([8, 8, 10, 10], (8, 8, 9, 9)),  # the far bounds
        ([8, 8, 9, 9], (8, 8, 8.99, 8.99)),
    ]
    returned(subtests, table, lambda box: domain.to_lattice(np.array([box], float))[0].tolist())


@pytest.mark.parametrize("step", [None, "0.001"])
def test_cells_do_not_depend_on_the_values_they_are_computed_with(step, monkeypatch):
    domain = Domain(bounds=(0, 0, 1, 2), coordinate_resolution=step)
    values = np.random.default_rng(1).uniform(0, 1, 20_001)
    some = [0, 8191, 8192, 20_000]
    alone = [domain.axes[0].find_cells(values[[i]]).tolist() for i in some]
    together = domain.axes[0].find_cells(values)
    assert [[cell] for cell in together[some].tolist()] == alone
    monkeypatch.setattr("psd.space.lattice_axis._BLOCK", 3)
    assert domain.axes[0].find_cells(values).tolist() == together.tolist()
    assert domain.axes[0].find_cells(values[:0]).tolist() == []
