"""Kept tallies: terms, parts, keys, the file and its refusals, building."""

import dataclasses
import os

import numpy as np
import pytest

import psd
from psd.errors import InputDataError, ParameterError
from psd.ingest import partial_tally
from psd.ingest.partial_tally import merge
from psd.ingest.sources import Columns
from psd.ingest.user_partitions import UserRows
from psd.privacy.unit import PrivacyUnit
from psd.privacy.values import WEIGHT
from psd.publish.tally_parts import tally_rows
from support.tallies import DOMAIN, K4, ROWS, USERS, VARIANTS, cells, counted, recipe, table

K3 = PrivacyUnit(kind="user", max_contributions=3)
TIMED = dataclasses.replace(USERS, time="time")
SHARES = {"unit": PrivacyUnit(kind="user", weight=12)}


def users(k):
    return {"unit": PrivacyUnit(kind="user", max_contributions=k)}


def test_bounds_add_up_since_one_user_may_be_in_all_parts():
    for bounds in ([4], [4, 3], [1, 2, 4]):
        for keys in ("aaa", "aba"):
            origins = [
                partial_tally.PartOrigin(
                    run=str(n), names=(str(n),), reading={}, contributions=k, key=keys[n]
                )
                for n, k in enumerate(bounds)
            ]
            for order in (origins, origins[::-1]):
                assert partial_tally.combined_contribution_bound(order) == sum(bounds)
    both = merge([counted(part="a"), counted(part="b", unit=K3)])
    assert both.unit == PrivacyUnit(kind="user", max_contributions=7)
    assert both.tally.contributions == 7
    release = psd.build(both, epsilon=1, method=psd.decompositions.Grid(size=2))
    assert release.unit.max_contributions == 7
    kept = counted(carry=True).counts
    assert isinstance(kept, UserRows)
    assert np.bincount(kept.users).max() == 4
    assert len(kept.users) == 9 * 4
    assert repr(kept) == "<UserRows: private>"
    # Terms leave the bound to the parts.
    rules = partial_tally.CountingRules
    assert rules(domain=DOMAIN, unit=K4) == rules(domain=DOMAIN, **users(1))


def months(names, zone="UTC"):
    return {"slices": psd.TimeSlices.parse("month", names, zone), "columns": TIMED}


def test_tallies_that_do_not_join(subtests):
    rounded = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", coordinate_resolution="1")
    rows = {"unit": PrivacyUnit(), "columns": Columns(x="x", y="y"), "key": None}
    january, carry = months("2024-01"), {"carry": True}
    for a, b, told in [
        ({}, {"domain": dataclasses.replace(DOMAIN, lattice=(32, 32))}, "different bounds, CRS"),
        ({}, {"domain": dataclasses.replace(DOMAIN, bounds=(0, 0, 8, 9))}, "different bounds, CRS"),
        ({}, {"domain": dataclasses.replace(DOMAIN, crs="EPSG:3395")}, "different bounds, CRS"),
        ({}, {"domain": rounded}, "or coordinate resolution"),
        ({}, {"step": (2, 2)}, "steps of the lattice"),
        ({}, rows, "units of privacy"),
        ({}, SHARES, "units of privacy"),
        ({}, january, "time slices"),
        (january, months("2024-02"), "time slices"),
        (january, january | {"contribution_scope": "slice"}, "per slice or for all"),
        ({}, {"columns": TIMED}, "time zones"),
        (carry, carry | {"key": bytes(32)}, "different keys"),
        (carry, {}, "count all in one way"),
        (carry, carry | {"unit": K3}, "different numbers of records"),
        (SHARES, SHARES, "tallies that count users cannot be merged"),
        (users(10**9), users(1), "must sum to at most"),
    ]:
        with subtests.test(told, b=b), pytest.raises(InputDataError, match=told):
            merge([counted(part="a", **a), counted(part="b", **b)])


def test_no_part_is_in_a_merged_tally_twice():
    a, b, c = (counted(ROWS, part=name) for name in "abc")
    both, again = merge([a, b]), merge([c, counted(ROWS, part="b")])
    for wrong, told in [
        ([a, a], "repeated"),
        ([both, a], "repeated"),
        ([a, merge([b, c]), b], "repeated"),
        ([both, merge([b, c])], "repeated"),
        ([a, counted(ROWS, part="a")], "part of the same name"),
        ([both, again], "part of the same name"),
    ]:
        with pytest.raises(InputDataError, match=told):
            merge(wrong)
    assert len(merge([both, c]).origins) == 3


def test_no_more_is_added_than_can_be_counted_exactly():
    """Sums that were too large would begin again below 0."""
    for variant, weight in (("rows", 1), ("values", WEIGHT)):
        parts = [counted(VARIANTS[variant], part=part) for part in "ab"]
        for part in parts:
            part.counts.counts[0] = 2**61 // weight
        with pytest.raises(InputDataError, match="hold more records than a computer can count"):
            merge(parts)
        parts[1].counts.counts[0] //= 2
        assert merge(parts).tally.counts.min() > 0


def test_the_same_file_is_seen_under_any_name(tmp_path):
    table().to_csv(tmp_path / "a.csv", index=False)
    (tmp_path / "copy.csv").write_bytes((tmp_path / "a.csv").read_bytes())
    os.symlink(tmp_path / "a.csv", tmp_path / "link.csv")
    first = tally_rows(tmp_path / "a.csv", ROWS)
    for name in ("copy.csv", "link.csv", "a.csv", "cop*.csv"):
        with pytest.raises(InputDataError, match="of the same file"):
            merge([first, tally_rows([tmp_path / name], ROWS)])
    with pytest.raises(InputDataError, match="repeated"):
        tally_rows([tmp_path / "a.csv", tmp_path / "link.csv"], ROWS)


def test_parts_without_rows_or_names(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text("x,y\n")
    empty = [tally_rows(tmp_path / name, ROWS) for name in ("a", "b")]
    assert all(partial_tally.EMPTY in kept.origins[0].names for kept in empty)
    assert cells(merge([*empty, counted(ROWS)])) == cells(counted(ROWS))
    assert cells(merge(empty)) == {}
    with pytest.raises(ParameterError, match="part must name an input"):
        tally_rows(table(), ROWS)
    with pytest.raises(ParameterError, match="part must be 1 to 100"):
        tally_rows(table(), ROWS, part="a\n")
    nameless = dataclasses.replace(counted(ROWS).origins[0], names=())
    with pytest.raises(InputDataError, match="name the part"):
        merge([dataclasses.replace(counted(ROWS), origins=(nameless,)), counted(ROWS, part="b")])


def test_recipes_that_make_no_sense(subtests):
    slices = months("2024-01")["slices"]
    for changes, told in [
        ({"columns": Columns()}, "user must be a column"),
        ({"unit": PrivacyUnit()}, "user must be a column"),
        ({"key": None, "carry": True}, "same key="),
        ({"carry": True, "step": (2, 2)}, "full lattice"),
        ({"carry": True, **SHARES}, "full lattice"),
        ({"slices": slices}, "time must name"),
        ({"unit": PrivacyUnit(kind="user-day", time_zone="UTC")}, "time must name"),
        (months("2024-01", "Asia/Seoul"), "time_zone must be"),
        ({"contribution_scope": "slice", **SHARES}, "slices must be given"),
    ]:
        with subtests.test(told, changes=changes), pytest.raises(ParameterError, match=told):
            recipe(**changes)
