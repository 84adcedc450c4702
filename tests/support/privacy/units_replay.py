"""Builds from rows on, with and without whole units: what `test_units_replay` compares."""

import itertools
from dataclasses import dataclass, field
from functools import partial
from unittest.mock import patch

import geopandas as gpd
import numpy as np
import pyarrow as pa
import shapely

import psd
from psd.curator.curator import Curator
from psd.curator.private_bounds import ContributionChoice, PrivateBounds
from psd.decompositions import Cascade, Grid, KDStandard
from psd.ingest.tally import Batch
from psd.testing import LeakError, small_domain
from support.privacy.replay import largest_loss

SIDE = 3

# Two columns of cells and a part of the third; nothing of the cell in the north-east.
PLOT = gpd.GeoSeries(
    shapely.union_all([shapely.box(0, 0, 2, 3), shapely.box(2, 0, 2.5, 2)]), crs="EPSG:3857"
)

METHODS = (Grid(size=2), Cascade(signal=1), KDStandard(height=1))


@dataclass(frozen=True)
class Case:
    """Arguments of a build, which columns of a row name the unit, and how wide a cell is."""

    options: dict = field(default_factory=dict)
    unit: tuple[int, ...] = (0,)
    width: float = 1.0


TWO = {"user": "u", "max_contributions": 2}
PRIVATE = PrivateBounds(crs="EPSG:3857", share="0.5", lattice=(SIDE, SIDE))
CHOICE = ContributionChoice(share="0.25", over=1, limit=6)
CASES = {
    "record": Case(unit=(0, 1, 2, 3)),
    "user": Case(TWO),
    "user, one row": Case({"user": "u", "max_contributions": 1}),
    "user, three rows": Case({"user": "u", "max_contributions": 3}),
    "user-day": Case({**TWO, "per": "day", "time": "t", "time_zone": "Asia/Seoul"}, unit=(0, 1)),
    "users": Case({"user": "u", "count": "users"}),
    "auto": Case({"user": "u", "max_contributions": CHOICE}),
    "boundary": Case({**TWO, "boundary": PLOT}),
    "private bounds": Case({**TWO, "domain": PRIVATE}, width=1e6),
}

# Numbers of rows of the users: one alone, one with most of the rows, and all alike.
# Seventeen is the least number of rows that shares of M do not come out even for.
CROWDS = ([1], [9, 1, 1], [4, 3, 2, 1], [17], [2, 2, 2], [7, 6, 1, 1, 1])


def rows_of(sizes, seed):
    """Rows (user, day, hour, cell), those of different users mixed."""
    random = np.random.default_rng([seed, *sizes])
    user = np.repeat(np.arange(len(sizes)), sizes)
    random.shuffle(user)
    columns = [user, *(random.integers(0, top, len(user)) for top in (3, 24, SIDE * SIDE))]
    return np.stack(columns, axis=1)


def batches(rows, case):
    """The rows in two batches, as a source would hand them over."""
    for some in np.array_split(rows, 2):
        moment = np.datetime64("2024-02-28", "us") + some[:, 1].astype("timedelta64[D]")
        moment = moment + some[:, 2].astype("timedelta64[h]")
        yield Batch(
            x=(some[:, 3] % SIDE + 0.4) * case.width,
            y=(some[:, 3] // SIDE + 0.5) * case.width,
            user=pa.array([f"user {u}" for u in some[:, 0]], pa.string()),
            time=moment if "time" in case.options else None,
        )


def release_of(case, method, rows, noise):
    """A release of rows, with a key of the bounding that is always the same."""

    def noted(*arguments, **options):
        noise.curator = Curator(*arguments, **options)
        return noise.curator

    options = {"domain": small_domain(SIDE), **case.options}
    with (
        patch("psd.ingest.tally_builder.secrets.token_bytes", lambda size: b"sixteen bytes ok"),
        patch("psd.publish.counting.read", lambda *_, **__: batches(rows, case)),
        patch("psd.publish.drawing.Curator", noted),
    ):
        return psd.build(None, epsilon=1, method=method, sampler=noise, **options)


def compare(first, other):
    """Refuse any difference in what stands in the release."""
    for name in ("boxes", "parent", "level", "count", "loss"):
        if not np.array_equal(getattr(first.tree, name), getattr(other.tree, name)):
            raise LeakError(f"{name} of the tree depend on the data")
    for name in ("domain", "parameters", "unit", "epsilon"):
        if getattr(first.record, name) != getattr(other.record, name):
            raise LeakError(f"{name} of the release depends on the data")


def neighbours(rows, case):
    """The rows without one unit, for each unit."""
    units = np.unique(rows[:, case.unit], axis=0)
    for unit in units:
        yield rows[(rows[:, case.unit] != unit).any(axis=1)]
    if len(case.unit) == 4:  # equal rows are several records
        yield rows[1:]


def worst_of_rows(case, method, rows, others, **more):
    """The largest loss of these rows beside others, over all scripts."""

    return largest_loss(partial(release_of, case, method), rows, others, compare=compare, **more)


def worst(case, crowds=CROWDS, methods=METHODS):
    """The largest loss over data sets, scripts and units removed."""
    data = [rows_of(sizes, 1) for sizes in crowds]
    return max(
        worst_of_rows(case, method, rows, list(neighbours(rows, case)))
        for rows, method in itertools.product(data, methods)
    )
