"""Kept tallies: terms, parts, keys, the file and its refusals, building."""

import dataclasses
import os

import numpy as np
import pytest

import psd
from psd.errors import InputDataError, ParameterError
from psd.ingest.partial_tally import (
    EMPTY,
    CountingRules,
    PartOrigin,
    combined_contribution_bound,
    merge,
)
from psd.ingest.sources import Columns
from psd.ingest.user_rows import UserRows
from psd.privacy.unit import PrivacyUnit
from psd.publish.tally_parts import tally_rows
from support.tallies import DOMAIN, K4, ROWS, USERS, cells, counted, recipe, table

SURE = 10**12


# Parts and bounds.


def origin(run, k=1, key="a"):
    return PartOrigin(run=run, names=(run,), contributions=k, key=key)


@pytest.mark.parametrize(
    ("origins", "bound"),
    [
        ([origin("1", 4)], 4),
        ([origin("1", 4), origin("2", 3)], 7),
        ([origin("1", 4), origin("2", 3, key="b")], 7),
        ([origin("1", 1), origin("2", 2), origin("3", 4)], 7),
    ],
)
def test_bounds_add_up_since_one_user_may_be_in_all_parts(origins, bound):
    assert (
        combined_contribution_bound(origins) == combined_contribution_bound(origins[::-1]) == bound
    )


def test_bounds_of_parts_add_up():
    a, b = counted(part="a"), counted(part="b", unit=dataclasses.replace(K4, max_contributions=3))
    both = merge([a, b])
    assert both.unit == PrivacyUnit(kind="user", max_contributions=7)
    assert both.tally.contributions == 7
    assert (
        psd.build(both, epsilon=1, method=psd.decompositions.Grid(size=2)).unit.max_contributions
        == 7
    )


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        ({}, {"domain": dataclasses.replace(DOMAIN, lattice=(32, 32))}, "different bounds, CRS"),
        ({}, {"domain": dataclasses.replace(DOMAIN, bounds=(0, 0, 8, 9))}, "different bounds, CRS"),
        ({}, {"domain": dataclasses.replace(DOMAIN, crs="EPSG:3395")}, "different bounds, CRS"),
        (
            {},
            {"domain": psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", coordinate_resolution="1")},
            "or coordinate resolution",
        ),
        ({}, {"step": (2, 2)}, "steps of the lattice"),
        (
            {},
            {"unit": PrivacyUnit(), "columns": Columns(x="x", y="y"), "key": None},
            "units of privacy",
        ),
        ({}, {"unit": PrivacyUnit(kind="user", weight=12)}, "units of privacy"),
        ({}, {"slices": "2024-01"}, "time slices"),
        ({"slices": "2024-01"}, {"slices": "2024-02"}, "time slices"),
        (
            {"slices": "2024-01"},
            {"slices": "2024-01", "contribution_scope": "slice"},
            "per slice or for all",
        ),
        ({}, {"columns": dataclasses.replace(USERS, time="time")}, "time zones"),
        ({"carry": True}, {"carry": True, "key": bytes(32)}, "different keys"),
        ({"carry": True}, {}, "count all in one way"),
        (
            {"carry": True},
            {"carry": True, "unit": PrivacyUnit(kind="user", max_contributions=3)},
            "different numbers of records",
        ),
        (
            {"unit": PrivacyUnit(kind="user", weight=12)},
            {"unit": PrivacyUnit(kind="user", weight=12)},
            "tallies that count users cannot be merged",
        ),
        (
            {"unit": PrivacyUnit(kind="user", max_contributions=10**9)},
            {"unit": PrivacyUnit(kind="user", max_contributions=1)},
            "must sum to at most",
        ),
    ],
)
def test_tallies_that_do_not_join(a, b, told):
    made = []
    for part, changes in (("a", a), ("b", b)):
        if "slices" in changes:
            months = psd.TimeSlices.parse("month", changes["slices"])
            columns = dataclasses.replace(USERS, time="time")
            changes = {**changes, "slices": months, "columns": columns}
        made.append(counted(part=part, **changes))
    with pytest.raises(InputDataError, match=told):
        merge(made)


def test_no_part_is_in_a_merged_tally_twice():
    a, b, c = (counted(ROWS, part=name) for name in "abc")
    both = merge([a, b])
    for wrong in ([a, a], [both, a], [a, merge([b, c]), b], [both, merge([b, c])]):
        with pytest.raises(InputDataError, match="repeated"):
            merge(wrong)
    with pytest.raises(InputDataError, match="part of the same name"):
        merge([a, counted(ROWS, part="a")])
    with pytest.raises(InputDataError, match="part of the same name"):
        merge([merge([a, b]), merge([c, counted(ROWS, part="b")])])
    assert len(merge([both, c]).origins) == 3


def test_the_same_file_is_seen_under_any_name(tmp_path):
    table().to_csv(tmp_path / "a.csv", index=False)
    (tmp_path / "copy.csv").write_bytes((tmp_path / "a.csv").read_bytes())
    os.symlink(tmp_path / "a.csv", tmp_path / "link.csv")
    first = tally_rows(tmp_path / "a.csv", ROWS)
    for name in ("copy.csv", "link.csv", "a.csv", "*.csv"):
        paths = [tmp_path / name] if name != "*.csv" else [tmp_path / "cop*.csv"]
        with pytest.raises(InputDataError, match="of the same file"):
            merge([first, tally_rows(paths, ROWS)])
    with pytest.raises(InputDataError, match="repeated"):
        tally_rows([tmp_path / "a.csv", tmp_path / "link.csv"], ROWS)


def test_parts_without_rows_do_no_harm(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text("x,y\n")
    empty = [tally_rows(tmp_path / name, ROWS) for name in ("a", "b")]
    assert all(EMPTY in kept.origins[0].names for kept in empty)
    both = merge([*empty, counted(ROWS)])
    assert cells(both) == cells(counted(ROWS))
    assert cells(merge(empty)) == {}


def test_what_is_no_file_needs_a_name():
    with pytest.raises(ParameterError, match="part must name an input"):
        tally_rows(table(), ROWS)
    with pytest.raises(ParameterError, match="part must be 1 to 100"):
        tally_rows(table(), ROWS, part="a\n")
    nameless = dataclasses.replace(counted(ROWS).origins[0], names=())
    with pytest.raises(InputDataError, match="name the part"):
        merge([dataclasses.replace(counted(ROWS), origins=(nameless,)), counted(ROWS, part="b")])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"columns": Columns()}, "user must be a column"),
        ({"unit": PrivacyUnit()}, "user must be a column"),
        ({"key": None, "carry": True}, "same key="),
        ({"carry": True, "step": (2, 2)}, "full lattice"),
        ({"carry": True, "unit": PrivacyUnit(kind="user", weight=12)}, "full lattice"),
        ({"slices": psd.TimeSlices.parse("month", "2024-01")}, "time must name"),
        ({"unit": PrivacyUnit(kind="user-day", time_zone="UTC")}, "time must name"),
        (
            {
                "slices": psd.TimeSlices.parse("month", "2024-01", "Asia/Seoul"),
                "columns": dataclasses.replace(USERS, time="time"),
            },
            "time_zone must be",
        ),
        (
            {"contribution_scope": "slice", "unit": PrivacyUnit(kind="user", weight=12)},
            "slices must be given",
        ),
    ],
)
def test_recipes_that_make_no_sense(changes, told):
    with pytest.raises(ParameterError, match=told):
        recipe(**changes)


# Keys.


# The file.


# Building.


def test_carried_rows_hold_no_more_than_k_of_each_user():
    kept = counted(carry=True).counts
    assert isinstance(kept, UserRows)
    assert np.bincount(kept.users).max() == 4
    assert len(kept.users) == 9 * 4
    assert repr(kept) == "<UserRows: private>"


def test_terms_leave_the_bound_to_the_parts():
    assert CountingRules(domain=DOMAIN, unit=K4) == CountingRules(
        domain=DOMAIN, unit=PrivacyUnit(kind="user")
    )
