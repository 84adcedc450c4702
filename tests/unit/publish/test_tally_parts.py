"""Releases from tallies: the same as from the rows, series, and what is refused."""

import dataclasses

import numpy as np
import pytest
import shapely

import psd
from psd.decompositions import Grid, Quadtree
from psd.errors import InputDataError, ParameterError
from psd.ingest.partial_tally import merge
from psd.ingest.sources import read
from psd.ingest.tally_builder import tally_batches
from psd.ingest.tally_file import read_tally, write_tally
from psd.privacy.budget import Budget
from psd.privacy.unit import PrivacyUnit
from psd.publish.counting import CountedRows
from psd.publish.drawing import draw_release
from psd.publish.tally_parts import TallyRequest, tally_of_build
from psd.regions.kinds.grid_cells import hierarchy_from_grid
from support.privacy.samplers import ExactSampler
from support.tallies import DOMAIN, REGIONS, ROWS, USERS, VARIANTS, cells, counted, table


def build(data, **more):
    how = {"epsilon": 1, "method": Grid(size=4), "sampler": ExactSampler(), **more}
    return psd.build(data, **how)


@pytest.mark.parametrize("method", [Grid(size=8), Quadtree(height=3)])
@pytest.mark.parametrize("name", ["rows", "user", "carried", "coarse", "days"])
def test_a_tally_gives_the_release_of_its_rows(tmp_path, name, method):
    how = VARIANTS[name]
    kept = counted(how)
    write_tally(kept, tmp_path / "t")
    found = build(read_tally(tmp_path / "t"), method=method)
    batches = read(table(), how.columns, DOMAIN)
    batches = read(table(), how.columns, DOMAIN)
    counts = tally_batches(batches, DOMAIN, unit=how.unit, key=how.key)
    want = draw_release(
        counts, DOMAIN, budget=Budget(10**9), method=method, unit=how.unit, sampler=ExactSampler()
    )
    assert np.array_equal(found.tree.count, want.tree.count)
    for part in dataclasses.fields(want.record):
        if part.name != "tree":
            assert getattr(found.record, part.name) == getattr(want.record, part.name)


@pytest.mark.parametrize("name", ["regions", "regions-carried"])
def test_parts_that_were_counted_by_regions_give_their_build(tmp_path, name):
    """From parts as from all records; and no part is read with other regions."""
    how, data = VARIANTS[name], table()
    cut = len(data) // 3
    parts = [("a", data[:cut]), ("b", data[cut : 2 * cut]), ("c", data[2 * cut :])]
    for part, rows in parts:
        write_tally(counted(how, part=part, data=rows), tmp_path / part)
    tallies = [read_tally(tmp_path / part) for part, _ in parts]
    merged, together = merge(tallies), counted(how)
    assert cells(merge(tallies[::-1])) == cells(merged) == cells(together)
    assert merged.rules.regions.digest == REGIONS.digest
    found = build(tallies, regions=REGIONS, method="none")
    tally = together.tally
    release = found if tally.slice is None else found["2024-01"]
    used = slice(None) if tally.slice is None else tally.slice == 0
    expected = np.bincount(tally.region[used], tally.counts[used], minlength=4)
    assert release.query()["estimate"].to_numpy() == pytest.approx(expected, abs=1e-6)
    without = counted(dataclasses.replace(how, regions=None, carry=False), part="d")
    for parts, regions, words in (
        (tallies, None, "must be those by which the tallies were counted, got none"),
        (tallies, hierarchy_from_grid("2", DOMAIN), "counted, got others"),
        ([without], REGIONS, "must be left out for tallies that were counted without any"),
    ):
        with pytest.raises(ParameterError, match=words):
            build(parts, regions=regions, **({} if regions is None else {"method": "none"}))
    with pytest.raises(InputDataError, match="have different regions; count all by the same"):
        merge([counted(ROWS, part="a"), counted(VARIANTS["regions"], part="b")])


def test_what_holds_records_or_a_key_does_not_show_them():
    counts = CountedRows(tally=counted(ROWS).tally, domain=DOMAIN, unit=ROWS.unit)
    assert repr(counts) == "<counted rows: private>"
    assert repr(TallyRequest(domain=DOMAIN, key=b"k" * 32)) == "<TallyRequest: private key>"


def test_what_is_about_records_is_refused_with_tallies(subtests):
    unit = PrivacyUnit(kind="user-slice", max_contributions=2)
    with pytest.raises(ParameterError, match='per must not be "user-slice" for a tally'):
        TallyRequest(
            domain=DOMAIN,
            unit=unit,
            columns=dataclasses.replace(USERS, time="time"),
            slices=psd.TimeSlices.parse("month", "2024-01..2024-04"),
        )
    for given, words in (
        ({"memory": "1GB"}, "memory must be left out; no records are read in this process"),
        ({"boundary": shapely.box(0, 0, 1, 1)}, "boundary must be left out for tallies"),
    ):
        with subtests.test(words), pytest.raises(ParameterError, match=words):
            build(counted(ROWS), **given)


@pytest.mark.app("spark")
def test_an_engine_is_refused_with_tallies():
    words = "engine must have an address|engine must be left out"
    with pytest.raises(ParameterError, match=words):
        build(counted(ROWS), engine="spark://host:1")


def test_a_build_with_regions_keeps_its_tally(tmp_path):
    rows, out, kept = table(), tmp_path / "r.psd.parquet", tmp_path / "tally"
    tally = psd.tally(rows, domain=DOMAIN, regions=REGIONS, x="x", y="y", part="a")
    assert cells(tally) == cells(counted(VARIANTS["regions"]))
    release = psd.build(rows, regions=REGIONS, epsilon=1, method="none", x="x", y="y")
    release.save(out)
    found = tally_of_build(tally.tally, release, [rows], columns=USERS, release=out)
    write_tally(found, kept)
    assert read_tally(kept).rules.regions.digest == REGIONS.digest
    assert cells(read_tally(kept)) == cells(tally)
    with pytest.raises(ParameterError, match="regions must be those of the domain of the tally"):
        psd.tally(rows, domain=(0, 0, 8, 9), regions=REGIONS, x="x", y="y", part="a")


@pytest.mark.parametrize("bound", ["series", "slice"])
def test_a_tally_of_slices_gives_a_series(bound):
    months = psd.TimeSlices.parse("month", "2024-01..2024-04")
    columns = dataclasses.replace(USERS, time="time")
    kept = counted(slices=months, columns=columns, contribution_scope=bound)
    per = "slice" if bound == "slice" else None
    series = build(kept, epsilon=2)
    assert series.slices is not None
    assert (series.record.scope, series.record.epsilon, series.slices) == (bound, 2 * 10**9, months)
    how = {"domain": DOMAIN, "slices": months, "time": "time", "per": per, "x": "x", "y": "y"}
    want = build(table(), epsilon=2, user="user", max_contributions=4, **how)
    totals = [[r.tree.count[r.tree.is_leaf].sum() for r in s._releases] for s in (series, want)]
    if bound == "slice":  # which rows are kept is the key's choice, how many is not
        assert totals[0] == totals[1]
    assert sum(totals[0]) == sum(totals[1])


def test_a_method_that_divides_finer_than_its_tally_is_refused():
    coarse = counted(dataclasses.replace(ROWS, step=(8, 8)))
    for method in (Quadtree(height=3), Quadtree(height=2)):
        assert psd.build(coarse, epsilon=1, method=method).method == "quadtree"
    for method in (Quadtree(height=4), Grid(size=3), Grid(), "auto", "kd-standard"):
        with pytest.raises(ParameterError, match="8 x 8 lattice cells"):
            psd.build(coarse, epsilon=1, method=method)
