"""A coordinate resolution: what is refused, and which cells, edges and values it gives."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from psd.errors import DomainError
from psd.space.domain import DEFAULT_LATTICE, Domain
from psd.space.lattice_axis import SteppedAxis, parse_resolution

METRES = "EPSG:3857"


def stepped(bounds, step, crs=METRES):
    return Domain(bounds=bounds, crs=crs, coordinate_resolution=step)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("0.0001", "0.0001"),
        ("1e-4", "0.0001"),
        (" 0.10 ", "0.1"),
        (1e-4, "0.0001"),
        (0.1, "0.1"),
        (25, "25"),
        ("1E+2", "100"),
        (Decimal("0.250"), "0.25"),
        (np.float64(0.5), "0.5"),
    ],
)
def test_a_resolution_is_kept_in_its_shortest_text(value, text):
    assert parse_resolution(value) == text
    assert stepped((0, 0, 1000, 1000), value).coordinate_resolution == text


@pytest.mark.parametrize(
    "value",
    [0, "-0.1", "nan", "inf", "a step", "", True, [0.1], 1 / 3, "1e-16", "1e15", "1e999999999"],
)
def test_a_resolution_that_is_not_a_short_decimal_is_refused(value):
    with pytest.raises(DomainError, match="coordinate_resolution must be a decimal number"):
        stepped((0, 0, 1000, 1000), value)


@pytest.mark.parametrize(
    ("bounds", "step", "says"),
    [
        pytest.param((0.2, 0, 0.8, 2), "1", "got 0 multiples", id="no value along x"),
        pytest.param((0, 0.2, 2, 0.8), "1", "got 0 multiples", id="no value along y"),
        pytest.param((0, 0, 1100, 1), "0.000001", "1,100,000,001 multiples", id="above 2^30"),
        pytest.param((0, 0, 1e7, 1e7), "1e-9", "coarser than the rounding", id="below doubles"),
    ],
)
def test_a_resolution_that_does_not_fit_the_bounds_is_refused(bounds, step, says):
    with pytest.raises(DomainError, match=says) as error:
        stepped(bounds, step)
    assert error.value.name == "coordinate_resolution"


def test_the_lattice_follows_from_the_resolution_and_no_other_is_taken():
    domain = stepped((-0.25, 0.1, 0.35, 0.3), "0.1")
    assert domain.lattice == (6, 3)
    assert replace(domain, bounds=domain.bounds) == domain
    with pytest.raises(DomainError, match="lattice must be left out"):
        replace(domain, lattice=(6, 4))
    plain = Domain(bounds=domain.bounds, crs=METRES)
    assert plain.lattice == DEFAULT_LATTICE
    assert plain != domain


def test_lines_are_half_way_between_values_and_the_outermost_are_the_bounds():
    domain = stepped((-0.25, 0.1, 0.35, 0.3), "0.1")
    assert domain.edges(0, range(7)).tolist() == [-0.25, -0.15, -0.05, 0.05, 0.15, 0.25, 0.35]
    assert domain.edges(1, range(4)).tolist() == [0.1, 0.15, 0.25, 0.3]
    assert domain.centres(0, range(6)).tolist() == [-0.2, -0.1, 0.0, 0.1, 0.2, 0.3]
    # Between lines, of that part of the cell; the first cell is half as high as the second.
    assert domain.edges(1, [0.5, 1.5]).tolist() == pytest.approx([0.125, 0.2])


def test_bounds_that_are_doubles_near_a_value_have_it():
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


def test_records_beside_the_outermost_values_are_in_their_cells():
    domain = stepped((0.3, -1.7, 3.8, 0.9), 1)
    assert domain.lattice == (3, 2)
    columns, rows, _ = domain.quantise(np.array([0.3, 0.45, 3.8]), np.array([-1.7, 0.9, 0.2]))
    assert (columns.tolist(), rows.tolist()) == ([0, 0, 2], [0, 1, 1])


@pytest.mark.parametrize(
    ("box", "lines"),
    [
        pytest.param((1, 1, 3, 3), (1, 1, 3, 3), id="edges on values"),
        pytest.param((0.9, 0.1, 2.1, 3.9), (1, 1, 3, 4), id="edges beside values"),
        pytest.param((1.2, 1, 1.8, 3), (2, 1, 2, 3), id="between two values"),
        pytest.param((-5, -5, 0, 9), (0, 0, 0, 10), id="beyond the bounds"),
        pytest.param((8, 8, 9, 9), (8, 8, 10, 10), id="the far bounds"),
        pytest.param((8, 8, 8.99, 8.99), (8, 8, 9, 9), id="just below the far bounds"),
        pytest.param((1 + 1e-7, 1 - 1e-7, 3 + 1e-7, 3 - 1e-7), (1, 1, 3, 3), id="nearly on values"),
    ],
)
def test_edges_of_boxes_snap_by_the_stated_rule(box, lines):
    domain = stepped((0, 0, 9, 9), 1)
    assert domain.to_lattice(np.array([box], float))[0].tolist() == list(lines)


def test_boxes_that_tile_share_their_lines():
    domain, rng = stepped((-1, -1, 1, 1), "0.01"), np.random.default_rng(1)
    cuts = np.concatenate([[-1], np.sort(rng.uniform(-1, 1, 20).round(3)), [1]])
    boxes = np.stack([cuts[:-1], np.full(21, -1), cuts[1:], np.full(21, 1)], axis=1)
    lines = domain.to_lattice(boxes)
    assert (lines[1:, 0] == lines[:-1, 2]).all()
    assert (lines[0, 0], lines[-1, 2]) == (0, domain.lattice[0])


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
