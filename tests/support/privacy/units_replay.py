"""Whole units are removed, and the answers of the build before are given back.

As in `replay`, but from rows on: reading, bounding, choices and counting. What stands in the
release may differ in nothing, and the answers may tell no more than epsilon in all.
"""

import itertools
from dataclasses import dataclass, field
from fractions import Fraction

import geopandas as gpd
import numpy as np
import pyarrow as pa
import shapely

import psd
from psd.curator.contribution_choice import ContributionChoice
from psd.curator.curator import Curator
from psd.curator.private_bounds import PrivateBounds
from psd.decompositions.cascade import Cascade
from psd.decompositions.grid import Grid
from psd.decompositions.kd_standard import KDStandard
from psd.ingest.tally import Batch
from psd.testing import (
    SCRIPTS,
    LeakError,
    RecordingSampler,
    ReplayingSampler,
    small_domain,
    transcript_loss,
)

SIDE = 3

# Two columns of cells and a part of the third; nothing of the cell in the north-east.
PLOT = gpd.GeoSeries(
    shapely.union_all([shapely.box(0, 0, 2, 3), shapely.box(2, 0, 2.5, 2)]), crs="EPSG:3857"
)

METHODS = (Grid(size=2), Cascade(signal=1), KDStandard(height=1))
EPSILON = Fraction(1)


@dataclass(frozen=True)
class Case:
    """Arguments of a build, which columns of a row name the unit, and how wide a cell is."""

    options: dict = field(default_factory=dict)
    unit: tuple[int, ...] = (0,)
    width: float = 1.0


CASES = {
    "record": Case(unit=(0, 1, 2, 3)),
    "user": Case({"user": "u", "max_contributions": 2}),
    "user, one row": Case({"user": "u", "max_contributions": 1}),
    "user, three rows": Case({"user": "u", "max_contributions": 3}),
    "user-day": Case(
        {"user": "u", "max_contributions": 2, "per": "day", "time": "t", "time_zone": "Asia/Seoul"},
        unit=(0, 1),
    ),
    "users": Case({"user": "u", "count": "users"}),
    "auto": Case(
        {"user": "u", "max_contributions": ContributionChoice(share="0.25", over=1, limit=6)},
    ),
    "boundary": Case({"user": "u", "max_contributions": 2, "boundary": PLOT}),
    "private bounds": Case(
        {
            "user": "u",
            "max_contributions": 2,
            "domain": PrivateBounds(crs="EPSG:3857", share="0.5", lattice=(SIDE, SIDE)),
        },
        width=1e6,
    ),
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


def release_of(rows, case, method, noise, monkeypatch):
    """A release of rows, with a key of the bounding that is always the same."""
    monkeypatch.setattr(
        "psd.ingest.tally_builder.secrets.token_bytes", lambda size: b"sixteen bytes ok"
    )
    monkeypatch.setattr("psd.publish.count_rows.read", lambda *_, **__: batches(rows, case))

    def noted(*arguments, **options):
        noise.curator = Curator(*arguments, **options)
        return noise.curator

    monkeypatch.setattr("psd.publish.drawing.Curator", noted)
    options = {"domain": small_domain(SIDE), **case.options}
    return psd.build(None, epsilon=1, method=method, sampler=noise, **options)


def compare(first, other):
    """Refuse any difference in what stands in the release."""
    for name in ("boxes", "parent", "level", "count", "epsilon"):
        if not np.array_equal(getattr(first.tree, name), getattr(other.tree, name)):
            raise LeakError(f"{name} of the tree depend on the data")
    for name in ("domain", "parameters", "unit", "epsilon"):
        if getattr(first, name) != getattr(other, name):
            raise LeakError(f"{name} of the release depends on the data")


def neighbours(rows, case):
    """The rows without one unit, for each unit."""
    units = np.unique(rows[:, case.unit], axis=0)
    for unit in units:
        yield rows[(rows[:, case.unit] != unit).any(axis=1)]
    if len(case.unit) == 4:  # equal rows are several records
        yield rows[1:]


def worst(case, monkeypatch, crowds=CROWDS, methods=METHODS, seeds=(1,)):
    """The largest loss over data sets, scripts and units removed."""
    found = Fraction(0)
    for sizes in crowds:
        for seed, method, script in (
            (seed, method, script) for seed in seeds for method in methods for script in SCRIPTS
        ):
            rows, recorder = rows_of(sizes, seed), RecordingSampler(script)
            first = release_of(rows, case, method, recorder, monkeypatch)
            for fewer in neighbours(rows, case):
                replayer = ReplayingSampler(recorder.draws)
                compare(first, release_of(fewer, case, method, replayer, monkeypatch))
                if len(replayer.draws) < len(recorder.draws):
                    raise LeakError("fewer questions than on the other data set")
                found = max(found, transcript_loss(recorder.draws, replayer.draws))
    if found > EPSILON:
        raise LeakError(f"loss {found} above the promised {EPSILON}")
    return found


SLOW = ("private bounds",)


def outside_alone(monkeypatch):
    """Rows outside the boundary come and go; the answers must tell nothing at all of them."""
    case = CASES["boundary"]
    inside = rows_of([4, 3, 2, 1], 1)
    inside = inside[inside[:, 3] != 8]
    outside = np.array([[user, 0, 0, 8] for user in (0, 0, 5, 6, 6, 6)])
    for method, script in itertools.product((Grid(size=SIDE), *METHODS), SCRIPTS):
        recorder = RecordingSampler(script)
        first = release_of(inside, case, method, recorder, monkeypatch)
        replayer = ReplayingSampler(recorder.draws)
        more = np.concatenate([outside, inside])
        more = release_of(more, case, method, replayer, monkeypatch)
        compare(first, more)
        if transcript_loss(recorder.draws, replayer.draws):
            raise LeakError("rows outside the boundary move an answer")
