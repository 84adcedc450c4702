"""Merged tallies by record and replay: a whole user leaves all parts.

A build of merged tallies is recorded with a user and replayed without. The loss may not pass
epsilon, and has to reach it. Planted: a part merged twice, bounds that are not added, residues
taken for granted, and users told apart by a digest.
"""

import dataclasses
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pyarrow as pa
import pytest
from replay import SCRIPTS, Recorder, Replayer, Violation, compare, loss, run, small_domain

import psd
from psd import kept as kept_module
from psd.carrying import carried
from psd.epsilon import NANO
from psd.errors import InputDataError
from psd.intake import Intake
from psd.kept import KeptTally, merge
from psd.keys import users_of_residue
from psd.sources import Columns
from psd.tally import Batch
from psd.tallying import Recipe, origin_of
from psd.unit import Unit

DOMAIN = small_domain(2)
KEY = b"sixteen bytes ok"
OTHERS = [[("v", 0), ("w", 3)], [("v", 1)]]
GRID = psd.Quadtree(height=1)


def counted(rows, k, *, carry=False, residue=None, unit=None):
    """Tally of rows (user, cell)."""
    unit = unit or Unit(kind="user", max_contributions=k)
    chosen = None if residue is None else users_of_residue(KEY, residue)
    intake = Intake(DOMAIN, unit=unit, chosen=chosen)
    x, y = np.array([(cell % 2, cell // 2) for _, cell in rows], float).reshape(-1, 2).T + 0.5
    intake.add(Batch(x=x, y=y, user=pa.array([user for user, _ in rows], pa.string())))
    columns = Columns(user="user" if unit.has_user else None)
    recipe = Recipe(
        domain=DOMAIN, unit=unit, columns=columns, key=KEY, residue=residue, carry=carry
    )
    origin = origin_of(recipe, ())
    origin = dataclasses.replace(origin, names=(origin.run,))
    counts = (
        carried(intake.parts(), DOMAIN, None, unit, "series", KEY) if carry else intake.tally(KEY)
    )
    return KeptTally(terms=recipe.terms, origins=(origin,), counts=counts)


def parts_of(rows, k, way):
    """Tallies of two parts of the rows, or of two residues of all of them."""
    if way == "residue":
        return [counted([*rows[0], *rows[1]], k, residue=(r, 2)) for r in range(2)]
    return [counted(part, k, carry=way == "carry") for part in rows]


def worst_loss(k, way, join=merge, parts=parts_of):
    """Worst loss over all that one more user can have in two parts: 0 to 2 rows in each."""
    each = [rows for size in range(3) for rows in combinations_with_replacement(range(4), size)]
    worst, first = Fraction(0), join(parts(OTHERS, k, way))
    recorded = []
    for script in SCRIPTS:
        recorder = Recorder(script)
        recorded.append((recorder, run(GRID, first.tally, DOMAIN, NANO, recorder)))
    for added in product(each, repeat=2):
        rows = [[*old, *(("u", c) for c in more)] for old, more in zip(OTHERS, added, strict=True)]
        second = join(parts(rows, k, way))
        for recorder, made in recorded:
            replayer = Replayer(recorder.calls)
            compare(made, run(GRID, second.tally, DOMAIN, NANO, replayer))
            worst = max(worst, loss(recorder.calls, replayer.calls))
    if worst > 1:
        raise Violation(f"loss {worst} above the promised 1")
    return worst


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("way", ["add", "carry", "residue"])
def test_a_user_of_several_parts_costs_epsilon(k, way):
    assert worst_loss(k, way) == 1


def test_a_row_of_one_part_costs_epsilon():
    def parts(rows, k, way):
        return [counted(part, 1, unit=Unit()) for part in rows]

    def one_row(rows, k, way):
        return parts([rows[0][:3], OTHERS[1]], k, way)

    assert worst_loss(1, "add", parts=one_row) == 1


def with_bound(kept, k):
    """The same counts under a bound that is none of theirs."""
    origins = (dataclasses.replace(kept.origins[0], contributions=k),)
    return dataclasses.replace(kept, origins=origins)


def test_planted_bounds_that_are_not_added():
    with pytest.raises(Violation, match="times its sensitivity"):
        worst_loss(2, "add", join=lambda parts: with_bound(merge(parts), 2))


def test_planted_part_merged_twice(monkeypatch):
    """Nobody looks at the parts, and the rows of one file count double."""

    def rows_twice(rows, k, way):
        return [counted(part, 1, unit=Unit()) for part in ([*rows[0][:3]], [*rows[0][:3]])]

    monkeypatch.setattr(kept_module, "_check_parts", lambda origins: None)
    with pytest.raises(Violation, match="times its sensitivity"):
        worst_loss(1, "add", parts=rows_twice)


def test_planted_residues_that_nobody_checked():
    """Two parts are said to be residues; the users were never parted."""

    def said(rows, k, way):
        made = [counted(part, k) for part in rows]
        return [
            dataclasses.replace(
                one, origins=(dataclasses.replace(one.origins[0], residue=(number, 2)),)
            )
            for number, one in enumerate(made)
        ]

    with pytest.raises(Violation, match="times its sensitivity"):
        worst_loss(2, "add", parts=said)


def test_planted_digest_of_two_users(monkeypatch):
    """u and v share a digest, and with it the bound: v's rows come back when u leaves."""
    original = kept_module.joined

    def digested(several, *terms):
        for one in several:
            names = pa.array(["v" if name == "u" else name for name in one.names.to_pylist()])
            different = names.unique()
            at = [different.index(name).as_py() for name in names]
            users = np.array(at, np.int64)[one.users]
            changed.append(dataclasses.replace(one, names=different, users=users))
        return original([changed.pop(0) for _ in several], *terms)

    changed = []
    monkeypatch.setattr(kept_module, "joined", digested)
    with pytest.raises(Violation, match="times its sensitivity"):
        worst_loss(1, "carry")


def test_planted_other_key_for_each_part():
    """Marks of different keys are no bottom-k of the union, and are refused."""
    parts = parts_of(OTHERS, 1, "carry")
    other = dataclasses.replace(
        parts[1], origins=(dataclasses.replace(parts[1].origins[0], key="0" * 32),)
    )
    with pytest.raises(InputDataError, match="different keys"):
        merge([parts[0], other])
