"""Planted bugs of merged tallies: parts twice, and bounds that do not hold for all parts."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa

from privacy.planted_bugs.mutant import Mutant, replaced
from psd.errors import InputDataError
from psd.ingest import partial_tally as kept
from psd.privacy.unit import PrivacyUnit
from support.privacy.merge_replay import OTHERS, counted, parts_of, worst_loss

# Checks


def a_user_of_two_parts(how, _):
    """All that one more user can have in two parts."""
    worst_loss(*how)


def _is_refused(parts, why):
    try:
        kept.merge(parts)
    except InputDataError:
        return
    raise AssertionError(why)


def a_part_is_merged_once(*_):
    part = counted([("v", 0), ("w", 3)], 1, unit=PrivacyUnit())
    _is_refused([part, part], "a part was merged twice")


def marks_are_of_one_key(*_):
    """Marks of different keys have no smallest ones in common."""
    first, second = parts_of(OTHERS, 1, "carry")
    origins = (dataclasses.replace(second.origins[0], key="0" * 32),)
    _is_refused([first, dataclasses.replace(second, origins=origins)], "two keys were merged")


# Bugs


def largest_of_the_bounds():
    return replaced(
        kept, "combined_contribution_bound", lambda parts: max(part.contributions for part in parts)
    )


def parts_are_not_looked_at():
    return replaced(kept, "_check_parts", lambda origins: None)


def keys_are_not_looked_at():
    return replaced(kept, "_check_carried", lambda origins, *, whole: None)


def users_by_a_digest():
    """u and v share a digest, and with it the bound: v's rows come back when u leaves."""
    original = kept.merge_user_rows

    def digested(one):
        names = pa.array(["v" if name == "u" else name for name in one.names.to_pylist()])
        different = names.unique()
        at = np.array([different.index(name).as_py() for name in names], np.int64)
        return dataclasses.replace(one, names=different, users=at[one.users])

    def joined(several, *terms):
        return original([digested(one) for one in several], *terms)

    return replaced(kept, "merge_user_rows", joined)


USERS = "tests/privacy/test_merge_replay.py::test_a_user_of_several_parts_costs_epsilon"
TWICE = "tests/unit/ingest/test_partial_tally.py::"

MUTANTS = (
    Mutant(
        id="k-of-one-part",
        wrong="the bound of a merged tally is the largest of its parts, not their sum",
        like="bounds per part where users are in several",
        plant=largest_of_the_bounds,
        check=a_user_of_two_parts,
        sound=(2, "add"),
        test=USERS,
    ),
    Mutant(
        id="part-merged-twice",
        wrong="a part is merged twice, and its rows count double",
        like="the same row read twice: overlapping patterns, links, a file and its folder",
        plant=parts_are_not_looked_at,
        check=a_part_is_merged_once,
        test=TWICE + "test_no_part_is_in_a_merged_tally_twice",
    ),
    Mutant(
        id="users-by-a-digest",
        wrong="two users share a digest and a bound, so that one's rows return when the other goes",
        like="ids that are told apart by a short hash",
        plant=users_by_a_digest,
        check=a_user_of_two_parts,
        sound=(1, "carry"),
        test=USERS,
    ),
    Mutant(
        id="marks-of-two-keys",
        wrong="rows that were chosen by different keys are merged as if by one",
        like="the smallest hashes of a union, of two hashes",
        plant=keys_are_not_looked_at,
        check=marks_are_of_one_key,
        test=TWICE + "test_tallies_that_do_not_join",
    ),
)
