"""Releases from tallies: the same as from the rows, series, and what is refused."""

import dataclasses

import numpy as np
import pytest

import psd
from psd.errors import ParameterError
from psd.ingest.tally_file import read_tally, write_tally
from psd.privacy.budget import Budget
from support.privacy.samplers import ExactSampler
from support.tallies import DOMAIN, ROWS, USERS, VARIANTS, counted, table


@pytest.mark.parametrize(
    "method", [psd.decompositions.Grid(size=8), psd.decompositions.Quadtree(height=3)]
)
@pytest.mark.parametrize("name", ["rows", "user", "carried", "coarse", "days"])
def test_a_tally_gives_the_release_of_its_rows(tmp_path, name, method):
    how = VARIANTS[name]
    kept = counted(how)
    write_tally(kept, tmp_path / "t")
    found = psd.build(
        [read_tally(tmp_path / "t")], epsilon=1, method=method, sampler=ExactSampler()
    )
    from psd.ingest.sources import read
    from psd.ingest.tally_builder import tally_batches
    from psd.publish.drawing import draw_release

    batches = read(table(), how.columns, DOMAIN)
    counts = tally_batches(batches, DOMAIN, unit=how.unit, key=how.key)
    want = draw_release(
        counts, DOMAIN, budget=Budget(10**9), method=method, unit=how.unit, sampler=ExactSampler()
    )
    assert np.array_equal(found.tree.count, want.tree.count)
    for part in dataclasses.fields(want.record):
        if part.name != "tree":
            assert getattr(found.record, part.name) == getattr(want.record, part.name)


@pytest.mark.parametrize("bound", ["series", "slice"])
def test_a_tally_of_slices_gives_a_series(bound):
    months = psd.TimeSlices.parse("month", "2024-01..2024-04")
    columns = dataclasses.replace(USERS, time="time")
    kept = counted(slices=months, columns=columns, contribution_scope=bound)
    per = "slice" if bound == "slice" else None
    series = psd.build(
        kept, epsilon=2, method=psd.decompositions.Grid(size=4), sampler=ExactSampler()
    )
    assert isinstance(series, psd.SeriesRelease)
    assert (series.scope, series.record.epsilon, series.slices) == (bound, 2 * 10**9, months)
    want = psd.build(
        table(), domain=DOMAIN, epsilon=2, slices=months, time="time", per=per, x="x", y="y",
        user="user", max_contributions=4, method=psd.decompositions.Grid(size=4),
        sampler=ExactSampler(),
    )  # fmt: skip
    totals = [[r.tree.count[r.tree.is_leaf].sum() for r in s.releases] for s in (series, want)]
    if bound == "slice":  # which rows are kept is the key's choice, how many is not
        assert totals[0] == totals[1]
    assert sum(totals[0]) == sum(totals[1])


def test_a_method_that_divides_finer_than_its_tally_is_refused():
    coarse = counted(dataclasses.replace(ROWS, step=(8, 8)))
    assert (
        psd.build(coarse, epsilon=1, method=psd.decompositions.Quadtree(height=3)).method
        == "quadtree"
    )
    assert (
        psd.build(coarse, epsilon=1, method=psd.decompositions.Quadtree(height=2)).method
        == "quadtree"
    )
    for method in (
        psd.decompositions.Quadtree(height=4),
        psd.decompositions.Grid(size=3),
        psd.decompositions.Grid(),
        "auto",
        "kd-standard",
    ):
        with pytest.raises(ParameterError, match="8 x 8 lattice cells"):
            psd.build(coarse, epsilon=1, method=method)
