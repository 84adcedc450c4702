"""Sums over the cells of queries."""

from dataclasses import fields

import numpy as np
import pytest

from psd.estimation.constants import SMOOTH_SHIFT
from psd.estimation.nonuniformity import cell_ceiling, nonuniformity_variance
from psd.query.totals import QueryTotals, concatenate, query_totals
from psd.query.traversal import Traversal, TraversalLevel
from psd.release.post_processing import PostProcessing
from support.releases import changed
from support.trees import grid_release

# A cell of its own, 90 records in the middle of few: node 5 of a grid of 3 x 3.
COUNTS = np.array([[2, 4, 6], [8, 90, 10], [1, 3, 5]])


def model(**choice):
    return changed(grid_release(COUNTS), post_processing=PostProcessing(**choice)).index.fit


def leaves_of(pairs):
    """Cover of leaves: (query, node, share of the points, share of the area)."""
    query, node, fraction, area = (np.array(values) for values in zip(*pairs, strict=True))
    step = TraversalLevel(
        query=query,
        node=node,
        fraction=fraction.astype(float),
        area=area.astype(float),
        opened=np.zeros(len(query), bool),
        parent=np.zeros(len(query), np.int64),
    )
    return Traversal(queries=int(query.max()) + 1, levels=(step,))


def sums_of(number, start=0.0):
    return QueryTotals(**{
        field.name: start + 100.0 * place + np.arange(number)
        for place, field in enumerate(fields(QueryTotals))
    })  # fmt: skip


PAIRS = [(0, 1, 1, 1), (0, 5, 0.5, 0.25), (1, 5, 1, 1), (1, 9, 0.5, 0.5)]


def test_estimates_are_sums_of_shares_and_cut_leaves_vary_and_may_hold_records_outside():
    asked = model()
    sums = query_totals(asked, leaves_of(PAIRS))
    count, signed = asked.estimates.count, asked.estimates.signed
    assert sums.estimate == pytest.approx([count[1] + count[5] / 2, count[5] + count[9] / 2])
    assert sums.signed == pytest.approx([signed[1] + signed[5] / 2, signed[5] + signed[9] / 2])
    # Only cut leaves have a variance of their own, and may hold records outside the query.
    uneven = asked.dispersion
    parts = [
        nonuniformity_variance(*(np.array([v]) for v in values), uneven.cluster_size)[0]
        for values in (
            (asked.estimates.count[5], 0.5, 0.25, uneven.overdispersion[5]),
            (asked.estimates.count[9], 0.5, 0.5, uneven.overdispersion[9]),
        )
    ]
    assert sums.leaf_variance == pytest.approx(parts)
    of_cells = cell_ceiling(asked.estimates.count, asked.estimates.variance)
    assert sums.beyond == pytest.approx([of_cells[5] / 2, of_cells[9] / 2])


def test_records_are_moved_by_a_smooth_density_alone():
    cover = leaves_of(PAIRS)
    assert query_totals(model(), cover).shift.tolist() == [0, 0]
    smooth = model(density="smooth")
    shift = query_totals(smooth, cover).shift
    assert shift == pytest.approx([SMOOTH_SHIFT * smooth.estimates.count[5] * 0.25, 0])


def test_the_variance_of_published_counts_is_that_of_least_squares_where_they_are_signed():
    sums = query_totals(model(estimate="signed"), leaves_of(PAIRS))
    assert (sums.published_variance == sums.perturbation_variance).all()
    assert (sums.perturbation_variance > 0).all()


def test_what_neighbours_say_is_added_to_the_variance_of_leaves():
    sums = sums_of(3)
    expected = sums.leaf_variance + sums.shift**2 + sums.line_variance
    assert sums.nonuniformity_variance.tolist() == expected.tolist()


@pytest.mark.parametrize("sizes", [(), (0,), (2,), (2, 0, 3)])
def test_sums_of_some_queries_follow_those_of_others(sizes):
    parts = [sums_of(size, start=1000.0 * place) for place, size in enumerate(sizes)]
    together = concatenate(parts)
    for field in fields(QueryTotals):
        values = getattr(together, field.name)
        expected = [value for part in parts for value in getattr(part, field.name)]
        assert (values.tolist(), values.dtype) == (expected, np.float64)
