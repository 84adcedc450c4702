"""Tallies of parts merge to the tally of the whole, whatever the parts and the order.

Checks are functions of a way to merge. They pass for `psd.ingest.partial_tally.merge` and must
fail for ways that are wrong as known.
"""

import dataclasses
from collections import Counter
from functools import reduce

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

import psd
from psd.ingest import partial_tally as kept_module
from psd.ingest.partial_tally import PartialTally, merge
from psd.ingest.sources import Columns
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import TallyBuilder
from psd.privacy.unit import PrivacyUnit
from psd.publish.tally_parts import TallyRequest, origin_of
from support import tallies
from support.laws import for_examples

pytestmark = pytest.mark.deep

SIDE = 3
DOMAIN = psd.Domain(bounds=(0, 0, SIDE, SIDE), crs="EPSG:3857", lattice=(SIDE, SIDE))
KEY = b"sixteen bytes ok"
DAYS = psd.TimeSlices.parse("day", "2024-01-01..2024-01-02")
START = np.datetime64("2024-01-01", "us")

# A row: user, column, row, hour of three days, of which the third is in no slice.
# A row: user, column, row, hour of three days, of which the third is in no slice.
PLACE = st.integers(0, SIDE - 1)
ROW = st.tuples(st.sampled_from("abc"), PLACE, PLACE, st.integers(0, 71))
PARTS = st.lists(st.lists(ROW, max_size=9), min_size=1, max_size=4)
BOUNDS = st.integers(1, 3)

reproducible = settings(derandomize=True, database=None, deadline=None, max_examples=50)


def examples(way):
    """Examples for a way to merge; those that show that it is wrong need not be small."""
    return settings(reproducible, phases=tuple(Phase) if way is merge else (Phase.generate,))


RECIPES = {
    "user": {},
    "user, slices": {"slices": DAYS},
    "user, k per slice": {"slices": DAYS, "contribution_scope": "slice"},
    "user, M per slice": {"slices": DAYS, "kind": "user, M"},
    "user-day": {"kind": "user-day"},
}


UNITS = {
    "record": lambda k: PrivacyUnit(),
    "user": lambda k: PrivacyUnit(kind="user", max_contributions=k),
    "user, M": lambda k: PrivacyUnit(kind="user", max_contributions=k, max_per_slice=(k + 1) // 2),
    "user-day": lambda k: PrivacyUnit(kind="user-day", max_contributions=k, time_zone="UTC"),
}


def recipe(k, kind="user", **more):
    columns = Columns(user=None if kind == "record" else "user", time="time")
    return TallyRequest(domain=DOMAIN, unit=UNITS[kind](k), columns=columns, key=KEY, **more)


def counted(rows, how):
    x, y = np.array([(c, r) for _, c, r, _ in rows], float).reshape(-1, 2).T + 0.5
    time = START + np.array([hour for *_, hour in rows], np.int64) * np.timedelta64(3600, "s")
    ids = pa.array([user for user, *_ in rows], pa.string())
    unit = psd.privacy.unit.counted_unit(how.unit, how.contribution_scope)
    builder = TallyBuilder(DOMAIN, unit=unit, slices=how.slices)
    builder.add_batch(Batch(x=x, y=y, user=ids, time=time.astype("datetime64[us]")))
    counts = builder.user_rows(KEY) if how.carry else builder.build(KEY)
    origin = origin_of(how, ())
    origins = (dataclasses.replace(origin, names=(origin.run,)),)
    return PartialTally(rules=how.rules, origins=origins, counts=counts)


def cells(kept):
    return Counter(tallies.cells(kept))


def whole(parts):
    return [row for part in parts for row in part]


@for_examples(examples, PARTS, BOUNDS)
def carried_parts(way, name, parts, k):
    """Carried rows of any parts are those of the whole, unless two parts hold equal rows."""
    several = Counter(row for part in parts for row in set(part))
    assume(max(several.values(), default=0) <= 1)
    how = recipe(k, **RECIPES[name])
    joined = way([counted(part, dataclasses.replace(how, carry=True)) for part in parts])
    assert cells(joined) == cells(counted(whole(parts), how))
    assert joined.unit == how.unit


@for_examples(examples, PARTS, BOUNDS, st.sampled_from("abc"))
def removal(way, name, parts, k, user):
    """Of any parts, equal rows or not: a user takes away own rows alone, at most k."""
    how = recipe(k, carry=True, **RECIPES[name])
    kinds = (lambda row: True, lambda row: row[0] != user, lambda row: row[0] == user)
    full, rest, own = (
        cells(way([counted([row for row in part if of(row)], how) for part in parts]))
        for of in kinds
    )
    assert full == rest + own
    days = {(0, row[3] // 24 if name == "user-day" else 0) for row in whole(parts)}
    units = {"user-day": len(days), "user, k per slice": 2}.get(name, 1)
    assert own.total() <= k * units


@for_examples(examples, PARTS, BOUNDS, st.randoms(use_true_random=False))
def order(way, name, parts, k, random):
    """The order and the steps of merging change nothing, equal rows or not."""
    how = recipe(k, carry=True, **RECIPES[name])
    apart = [counted(part, how) for part in parts]
    want = way(apart)
    stepwise = reduce(lambda a, b: way([a, b]), random.sample(apart, len(apart)))
    assert cells(stepwise) == cells(want)
    assert stepwise.origins == want.origins


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("check", [carried_parts, removal, order])
def test_carried_users(check, name):
    check(merge, name)


@reproducible
@given(PARTS)
def test_rows_of_disjoint_parts(parts):
    for how in (recipe(1, kind="record"), recipe(1, kind="record", slices=DAYS)):
        joined = merge([counted(part, how) for part in parts])
        assert cells(joined) == cells(counted(whole(parts), how))
        assert joined.unit == PrivacyUnit()


@reproducible
@given(PARTS, BOUNDS, st.sampled_from("abc"))
def test_bounds_that_were_added_hold(parts, k, user):
    """One user more or less changes a merged tally by at most the bound that it states."""
    how = recipe(k)
    full = merge([counted(part, how) for part in parts])
    rest = merge([counted([row for row in part if row[0] != user], how) for part in parts])
    lost = cells(full)
    lost.subtract(cells(rest))
    assert min(lost.values(), default=0) >= 0
    assert lost.total() <= full.unit.contributions == k * len(parts)


def without_a_bound(tallies):
    """Rows of all parts are kept: the k of a part is not the k of the whole."""
    many = dataclasses.replace(tallies[0].unit, max_contributions=10**6)
    counts = kept_module.merge_user_rows([t.counts for t in tallies], many, None)
    origins = tuple(sorted((o for t in tallies for o in t.origins), key=lambda o: o.run))
    return dataclasses.replace(tallies[0], counts=counts, origins=origins)


@pytest.mark.parametrize("check", [carried_parts, removal])
def test_a_wrong_way_is_noticed(check):
    with pytest.raises(AssertionError):
        check(without_a_bound, "user")
