"""Merged tallies by record and replay: a whole user leaves all parts."""

import dataclasses
from itertools import combinations_with_replacement, product

import numpy as np
import pyarrow as pa

import psd
from psd.ingest.partial_tally import PartialTally, merge
from psd.ingest.sources import Columns
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import TallyBuilder
from psd.privacy.loss import NANO
from psd.privacy.unit import PrivacyUnit
from psd.publish.tally_parts import TallyRequest, origin_of
from psd.testing import run_method, small_domain
from support.privacy.replay import largest_loss

DOMAIN = small_domain(2)
KEY = b"sixteen bytes ok"
OTHERS = [[("v", 0), ("w", 3)], [("v", 1)]]
GRID = psd.decompositions.Quadtree(height=1)


def counted(rows, k, *, carry=False, unit=None, values=()):
    """Tally of rows (user, cell), which have a number for each value."""
    unit = unit or PrivacyUnit(kind="user", max_contributions=k)
    builder = TallyBuilder(DOMAIN, unit=unit, values=values)
    x, y = np.array([(row[1] % 2, row[1] // 2) for row in rows], float).reshape(-1, 2).T + 0.5
    user = pa.array([row[0] for row in rows], pa.string())
    numbers = np.array([row[2:] for row in rows], float).reshape(len(rows), len(values))
    builder.add_batch(Batch(x=x, y=y, user=user, values=numbers))
    names = tuple(value.name for value in values)
    columns = Columns(user="user" if unit.has_user else None, values=names)
    recipe = TallyRequest(
        domain=DOMAIN, unit=unit, columns=columns, key=KEY, carry=carry, values=values
    )
    origin = origin_of(recipe, ())
    origin = dataclasses.replace(origin, names=(origin.run,))
    counts = builder.user_rows(KEY) if carry else builder.build(KEY)
    return PartialTally(rules=recipe.rules, origins=(origin,), counts=counts)


def parts_of(rows, k, way):
    """Tallies of two parts of the rows."""
    return [counted(part, k, carry=way == "carry") for part in rows]


def worst_loss(k, way, parts=parts_of, every=1):
    """Worst loss over all that one more user can have in two parts: 0 to 2 rows in each."""

    each = [rows for size in range(3) for rows in combinations_with_replacement(range(4), size)]
    rows = [
        [[*old, *(("u", c) for c in more)] for old, more in zip(OTHERS, added, strict=True)]
        for added in product(each, repeat=2)
    ]
    first, *others = (merge(parts(part, k, way)).tally for part in (OTHERS, *rows[::every]))
    return largest_loss(
        lambda tally, sampler: run_method(GRID, tally, DOMAIN, NANO, sampler), first, others
    )
