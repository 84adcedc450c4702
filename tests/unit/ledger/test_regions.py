"""Epsilons over regions: against a naive twin, and what may never count as apart."""

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from psd.ledger.regions import Region, spent_within

HERE = ("x=lon", "y=lat")


def region(*bounds, crs="EPSG:4326", columns=HERE):
    return Region(bounds=bounds, crs=crs, columns=columns)


SIDES = st.sampled_from(list(itertools.combinations(range(5), 2)))
REGIONS = st.builds(lambda x, y: region(x[0], y[0], x[1], y[1]), SIDES, SIDES)
CHARGES = st.lists(st.tuples(st.none() | REGIONS, st.integers(1, 10**12)), max_size=8)

# A slow machine fails no test.
untimed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def holds(place, x, y):
    west, south, east, north = place.bounds
    return west <= x <= east and south <= y <= north


@untimed
@given(CHARGES, st.none() | REGIONS)
def test_it_is_the_largest_sum_over_all_points(charges, within):
    """Edges are whole numbers, so a closed box has a whole point wherever boxes meet."""
    points = [
        (x, y)
        for x, y in itertools.product(range(5), repeat=2)
        if within is None or holds(within, x, y)
    ]
    sums = [
        sum(nano for place, nano in charges if place is None or holds(place, x, y))
        for x, y in points
    ]
    assert spent_within(charges, within) == max(sums)


@untimed
@given(CHARGES, st.tuples(REGIONS, st.integers(1, 10**12)))
def test_a_charge_that_fits_where_it_is_fits_everywhere(charges, new):
    """What is checked at a charge, the points of its region, keeps the whole under a budget."""
    before, there = spent_within(charges, None), spent_within(charges, new[0])
    assert spent_within([*charges, new], None) == max(before, there + new[1])


@pytest.mark.parametrize(
    ("other", "spent"),
    [
        pytest.param(region(2, 0, 3, 1), 5, id="apart"),
        pytest.param(region(1, 0, 2, 1), 10, id="common-edge"),
        pytest.param(region(1, 1, 2, 2), 10, id="common-corner"),
        pytest.param(region(0.5, 0.5, 3, 3), 10, id="overlapping"),
        pytest.param(region(2, 0, 3, 1, crs="EPSG:3857"), 10, id="other-crs"),
        pytest.param(region(2, 0, 3, 1, columns=("x=home", "y=lat")), 10, id="other-columns"),
        pytest.param(None, 10, id="everywhere"),
    ],
)
def test_only_regions_without_a_common_point_are_apart(other, spent):
    assert spent_within([(region(0, 0, 1, 1), 5), (other, 5)], None) == spent


@pytest.mark.parametrize("other", [{"crs": "EPSG:3857"}, {"columns": ("x=home", "y=lat")}])
def test_a_region_says_nothing_of_places_in_another_frame(other):
    assert spent_within([(region(0, 0, 1, 1), 5)], region(2, 0, 3, 1)) == 0
    assert spent_within([(region(0, 0, 1, 1), 5)], region(2, 0, 3, 1, **other)) == 5


def test_columns_and_rows_are_not_mistaken_for_each_other():
    """Far from the diagonal, where west is not among the souths."""
    charges = [
        (region(100, 0, 102, 1), 1),
        (region(101, 0.5, 103, 3), 2),
        (region(104, 2, 105, 3), 4),
        (region(104, 0, 105, 1), 8),
    ]
    assert spent_within(charges, None) == 8
    assert spent_within(charges[:3], None) == 4
    assert spent_within(charges[:2], None) == 3
    assert spent_within(charges, region(99, 0, 103, 3)) == 3
    assert spent_within(charges, region(99, 2, 103, 3)) == 2
    assert spent_within(charges, region(104, 1.5, 110, 3)) == 4
    assert spent_within(charges, region(106, 0, 107, 3)) == 0


def test_sums_beyond_the_range_of_one_budget_are_exact():
    charges = [(region(i, 0, i + 0.5, 1), 10**12) for i in range(300)]
    assert spent_within([*charges, (region(0, 0, 300, 1), 7)], None) == 10**12 + 7
