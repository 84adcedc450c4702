"""Seeded builds and their answers, bit for bit: what a change of shape must leave as it is.

    python lab/net.py                    # compare with what is recorded; exits with 1 if it differs
    python lab/net.py --only regions,rho # the builds whose names have one of these words
    python lab/net.py --record           # record anew, after a change of results on purpose

Forty builds and more: every method, units, regions, slices, rho, tallies merged in two orders, CSV
and Parquet. Their random bytes come from a seed, so each build gives the same counts in every run,
and takes the same bytes in the same order. Of each: the counts of all cells, the number and the
sizes of all draws, and 500 answers with their errors and intervals: one by one in NumPy, by the
compiled walk where there is numba, and, for a few, by a fit near the question. What is recorded
stands in ``lab/net.parquet``: digests of counts and draws, and the answers themselves, so that a
difference in the last bits of a float after the draw is told from one that counts.
"""

import argparse
import atexit
import hashlib
import os
import re
import secrets
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import shapely
from common import ROOT, items, table

import psd
from psd.curator.private_bounds import PrivateBounds
from psd.mechanisms.random_words import bytes_from

RECORDED = ROOT / "lab" / "net.parquet"
VISITS = ROOT / "data" / "seoul" / "visits.csv"
WARDS = ROOT / "data" / "seoul" / "wards.geojson"
DISTRICTS = ROOT / "data" / "seoul" / "districts.geojson"
BOUNDS = (126.4, 37.0, 127.6, 38.0)
ROWS, BOXES, POLYGONS = 25_000, 480, 20
NEAR, MANY = 6, 1_000
"""Boxes that are answered by a fit near them, and those that make a request large."""

NUMBERS = ("estimate", "perturbation_error", "nonuniformity_error", "lower", "upper")
CLOSE = 1e-12
"""Relative difference of floats after the draw that a change may keep, if it lists it. The same
size has what other processors round otherwise."""

AS_BOXES, LOCAL = ("many boxes", "near"), 1e-8
"""Parts that answer boxes again, and how far they may be from these; of them digests are kept."""


class Drawn:
    """Bytes of a seed in place of the system's, with what was asked for."""

    def __init__(self, seed: str) -> None:
        self._seed, self._calls = seed, count()
        self.sizes: list[int] = []

    def __call__(self, size: int) -> bytes:
        """The next bytes."""
        self.sizes.append(size)
        return hashlib.shake_128(f"{self._seed} {next(self._calls)}".encode()).digest(size)

    @property
    def digest(self) -> str:
        """Number of draws, and a digest of their sizes in order."""
        sizes = hashlib.sha256(np.array(self.sizes, np.int64).tobytes()).hexdigest()
        return f"{len(self.sizes)} {sizes}"


@contextmanager
def draws_of(seed: str) -> Iterator[Drawn]:
    """Draw from a seed, and take keys that choose the records of users from another one."""
    drawn, keys = Drawn(seed), defaultdict[int, Drawn](lambda: Drawn("keys"))
    # DuckDB names relations by tokens, of another size than keys.
    token_bytes = mock.patch.object(secrets, "token_bytes", lambda size=32: keys[size](size))
    with token_bytes, bytes_from(drawn):
        yield drawn


@cache
def rows() -> pd.DataFrame:
    """Part of the sample: whole users, in the order of the file."""
    every = pd.read_csv(VISITS)
    return every[every["user_id"].str[-1].isin(["0", "3", "7"])].head(ROWS).reset_index(drop=True)


@cache
def folder() -> Path:
    """The rows as files of each format, and in two parts, until this process ends."""
    path = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, path)
    rows().to_csv(path / "visits.csv", index=False)
    rows().to_parquet(path / "visits.parquet", index=False)
    half = len(rows()) // 2
    rows().iloc[:half].to_csv(path / "first.csv", index=False)
    rows().iloc[half:].to_parquet(path / "second.parquet", index=False)
    return path


def build(method: str | psd.decompositions.Decomposition, **how: Any) -> Any:
    """A build of the CSV file, unless `data` names another."""
    data = how.pop("data", "visits.csv")
    bounds = how.pop("domain", BOUNDS)
    return psd.build(folder() / data, domain=bounds, method=method, **{"epsilon": 1, **how})


def merged(names: tuple[str, str], **how: Any) -> Any:
    """A build of the tallies of two parts, merged in an order."""
    rules = {"epsilon": how.pop("epsilon", 1), "method": how.pop("method", "quadtree")}
    rules |= {name: how.pop(name) for name in DELTA if name in how}
    if "regions" in how:
        rules |= {"regions": how["regions"], "domain": BOUNDS}
    key = bytes(32) if "user" in how else None
    parts = [psd.tally(folder() / name, domain=BOUNDS, key=key, **how) for name in names]
    return psd.build(psd.merge(parts), **rules)


def days(last: int) -> psd.TimeSlices:
    """The first days of March."""
    return psd.TimeSlices.parse("day", f"2026-03-01..2026-03-{last:02}", "Asia/Seoul")


def weeks() -> psd.TimeSlices:
    """Weeks of March."""
    return psd.TimeSlices.parse("week", "2026-W10..2026-W13", "Asia/Seoul")


def wards(**how: Any) -> psd.regions.RegionFiles:
    """The wards of the sample, under their districts."""
    return psd.regions.RegionFiles(
        paths=(str(WARDS),), ids=("ward",), parents=("district",), gaps="elsewhere", **how
    )


USER = {"user": "user_id", "max_contributions": 4}
TIME = {"time": "timestamp", "time_zone": "Asia/Seoul"}
AB, BA = ("first.csv", "second.parquet"), ("second.parquet", "first.csv")
DELTA = {"delta": "1e-6", "noise": "gaussian"}
KOREA = psd.Domain(bounds=(900_000, 1_900_000, 1_010_000, 2_000_000), crs="EPSG:5179")
ROUNDED = psd.Domain(bounds=BOUNDS, coordinate_resolution="0.001")
COARSE = psd.Domain(bounds=BOUNDS, min_cell="250")
D = psd.decompositions

BUILDS: dict[str, Callable[[], Any]] = {
    **{f"method {name}": partial(build, name) for name in psd.methods()},
    "grid of 64": lambda: build(D.Grid(size=64), epsilon=0.5),
    "grid, tiny workload": lambda: build(D.Grid(workload="tiny")),
    "quadtree, uniform budget, pruned": lambda: build(D.Quadtree(budget="uniform", prune=20)),
    "quadtree, workload": lambda: build(
        D.Quadtree(height=6, budget="workload", workload="tiny"), epsilon=0.2
    ),
    "cascade, uniform density": lambda: build("cascade", density="uniform"),
    "cascade, signed": lambda: build("cascade", estimate="least-squares"),
    "users": lambda: build("auto", **USER),
    "users, parquet": lambda: build("auto", data="visits.parquet", **USER),
    "users by day": lambda: build("quadtree", **USER, **TIME, per="day"),
    "users counted": lambda: build("adaptive-grid", user="user_id", count="users"),
    "users, bound chosen": lambda: build("grid", user="user_id", max_contributions="auto"),
    "parquet": lambda: build("kd-hybrid", data="visits.parquet"),
    "bounds estimated": lambda: build("grid", domain=PrivateBounds()),
    "in metres": lambda: build("cascade", domain=KOREA, input_crs="EPSG:4326"),
    "rounded coordinates": lambda: build("auto", domain=ROUNDED),
    "smallest cell": lambda: build("privtree", domain=COARSE),
    "boundary": lambda: build("quadtree", boundary=districts()),
    "covariate": lambda: build("cascade", covariate=districts()),
    "slices of days": lambda: build("grid", **TIME, slices=days(5)),
    "slices of days, users": lambda: build("quadtree", **USER, **TIME, slices=days(5)),
    "slices of weeks, bound in each": lambda: build(
        "auto", **USER, **TIME, slices=weeks(), per="slice"
    ),
    "slices, users of a slice": lambda: build(
        "grid", **USER, **TIME, slices=weeks(), per="user-slice"
    ),
    "slices, at most so many in one": lambda: build(
        "quadtree", **USER, **TIME, slices=weeks(), max_per_slice=2
    ),
    "rho": lambda: build("quadtree", **USER, **DELTA),
    "rho, slices": lambda: build(
        D.Grid(size=32), **USER, **TIME, **DELTA, slices=days(7), max_per_slice=1
    ),
    "rho, slices chosen": lambda: build(
        "auto", **USER, **TIME, slices=days(9), per="slice", delta="1e-6"
    ),
    "rho, regions": lambda: build("none", **USER, **DELTA, regions=wards()),
    "regions": lambda: build("none", regions=wards()),
    "regions, whole numbers": lambda: build("none", regions=wards(), estimate="integer"),
    "regions, auto": lambda: build("auto", regions=wards(), **USER),
    "regions, cascade": lambda: build("cascade", regions=wards(), data="visits.parquet"),
    "regions, slices": lambda: build("none", regions=wards(), **USER, **TIME, slices=days(3)),
    "regions, grid cells": lambda: build(
        "auto", domain=KOREA, input_crs="EPSG:4326", regions=cells()
    ),
    "tallies, first and second": lambda: merged(AB),
    "tallies, second and first": lambda: merged(BA),
    "tallies of users, first and second": lambda: merged(AB, carry_users=True, **USER),
    "tallies of users, second and first": lambda: merged(BA, carry_users=True, **USER),
    "tallies of slices, first and second": lambda: merged(
        AB, carry_users=True, **USER, **TIME, slices=days(4)
    ),
    "tallies of slices, second and first": lambda: merged(
        BA, carry_users=True, **USER, **TIME, slices=days(4)
    ),
    "tallies of regions, rho": lambda: merged(
        AB, carry_users=True, **USER, regions=wards(), method="none", **DELTA
    ),
}
# Builds whose counts and answers must be those of another one.
SAME = {
    "users, parquet": "users",
    "tallies, second and first": "tallies, first and second",
    "tallies of users, second and first": "tallies of users, first and second",
    "tallies of slices, second and first": "tallies of slices, first and second",
}


def districts() -> Any:
    """Polygons of the districts."""
    import geopandas

    return geopandas.read_file(DISTRICTS)


def cells() -> psd.regions.CellRegions:
    """Squares of a public grid."""
    return psd.regions.CellRegions(kind="grid-cells", cells="5km,20km")


def questions(release: psd.Release) -> tuple[np.ndarray, list[Any]]:
    """Boxes of all sizes, some of them across the bounds or of no area; and polygons."""
    west, south, east, north = release.domain.bounds
    random = np.random.default_rng(46)
    centre = random.uniform(0.001, 0.999, (BOXES, 2))
    side = 10 ** random.uniform(-4, 0, (BOXES, 2))
    boxes = np.concatenate([centre - side / 2, centre + side / 2], axis=1)
    sides = np.array([east - west, north - south] * 2)
    boxes = boxes * sides + [west, south] * 2
    angle = np.linspace(0, 2 * np.pi, 7)[:-1]
    rings = [
        random.uniform(0.2, 0.8, 2)
        + 10 ** random.uniform(-2, -0.7) * np.c_[np.cos(angle + turn), np.sin(angle + turn)]
        for turn in random.uniform(0, 1, POLYGONS)
    ]
    return boxes, [shapely.Polygon(ring * sides[:2] + [west, south]) for ring in rings]


def values(answers: Any) -> np.ndarray:
    """Numbers of answers, shape (n, 5)."""
    return np.asarray(answers[list(NUMBERS)], np.float64)


def answers_of(release: Any) -> Iterator[tuple[str, np.ndarray]]:
    """500 answers in each way of answering, and those of the release as a whole."""
    boxes, polygons = questions(release)
    at_once = values(release.query(boxes).table)
    drawn = values(release.query(polygons, crs=release.domain.crs).table)
    yield "boxes", at_once
    yield "polygons", drawn
    compiled = release.query(np.tile(boxes, (-(-MANY // BOXES), 1))).table
    yield "many boxes", values(compiled)[:BOXES]
    near = [type(release)(release.record).query(box[None]).table for box in boxes[:NEAR]]
    yield "near", np.concatenate([values(one) for one in near])
    yield "cells", np.asarray(release.index.fit.estimates.count, np.float64)[:BOXES, None]
    yield "joint", release.query(boxes[:8]).joint().covariance
    for level in getattr(release, "levels", ()):
        yield f"level {level}", values(release.query(level=level).table)


class Difference(NamedTuple):
    """What is not as recorded: its build and part, and the largest relative difference."""

    build: str
    part: str
    what: str
    largest: float


class Found(NamedTuple):
    """What one build gave: digests of draws and counts, and its answers by part."""

    draws: str
    counts: str
    answers: dict[str, np.ndarray]


def counts_digest(releases: list[psd.Release]) -> str:
    """Digest of the cells and the counts of releases."""
    hashed = hashlib.sha256()
    for release in releases:
        for name in ("boxes", "parent", "level", "count", "loss"):
            hashed.update(np.ascontiguousarray(getattr(release.tree, name)).tobytes())
    return hashed.hexdigest()


def find(name: str) -> Found:
    """Build once, and ask."""
    with draws_of(SAME.get(name, name)) as drawn:
        made = BUILDS[name]()
    if made.slices is None:
        return Found(drawn.digest, counts_digest([made]), dict(answers_of(made)))
    answers: dict[str, np.ndarray] = {}
    for slice_name in (next(iter(made)), list(made)[-1]):
        for part, numbers in answers_of(made[slice_name]):
            answers[f"{slice_name}: {part}"] = numbers
    boxes, _ = questions(made[next(iter(made))])
    answers["total"] = values(made.query(boxes[:50]).table)
    return Found(drawn.digest, counts_digest([made[name] for name in made]), answers)


def recorded() -> dict[tuple[str, str], dict[str, Any]]:
    """Rows of the record by build and part."""
    rows = pq.read_table(RECORDED).to_pylist()
    return {(row["build"], row["part"]): row for row in rows}


def numbers_digest(numbers: np.ndarray) -> str:
    """Digest of the bits of numbers."""
    return hashlib.sha256(np.ascontiguousarray(numbers, np.float64).tobytes()).hexdigest()


def record(names: list[str]) -> None:
    """Write what the builds give now."""
    rows: list[dict[str, Any]] = []
    for name in names:
        found = find(name)
        print(f"{name}: {sum(map(len, found.answers.values())):,} answers", file=sys.stderr)
        for part, digest in (("draws", found.draws), ("counts", found.counts)):
            rows.append({"build": name, "part": part, "digest": digest, "numbers": None})
        for part, numbers in found.answers.items():
            digest = numbers_digest(numbers)
            kept = None if part.endswith(AS_BOXES) else numbers.ravel()
            rows.append({"build": name, "part": part, "digest": digest, "numbers": kept})
    schema = pa.schema(
        {"build": pa.string(), "part": pa.string(), "digest": pa.string()}
        | {"numbers": pa.list_(pa.float64())}
    )
    written = pa.Table.from_pylist(rows, schema=schema)
    pq.write_table(written, RECORDED, compression="zstd", compression_level=19)


def distance(before: np.ndarray, now: np.ndarray) -> float:
    """Largest difference of numbers, shape (n, m), beside the largest of their row."""
    size = np.fmax(np.abs(before), np.abs(now)).max(axis=1, keepdims=True, initial=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.abs(now - before) / size
    apart = np.where((now == before) | (np.isnan(now) & np.isnan(before)), 0, apart)
    return float(np.nan_to_num(apart, nan=np.inf).max(initial=0))


def limit(row: Difference) -> float:
    """Largest difference that may come from the last bits of floats alone."""
    return LOCAL if row.part.endswith(AS_BOXES) else CLOSE


def differences(name: str, known: dict[tuple[str, str], dict[str, Any]]) -> Iterator[Difference]:
    """Parts of a build that are not what is recorded."""
    found = find(name)
    for other in {name, SAME.get(name, name)}:
        if known[other, "counts"]["digest"] != found.counts:
            yield Difference(name, "counts", f"not those of {other}", np.inf)
    if known[name, "draws"]["digest"] != found.draws:
        yield Difference(name, "draws", "other numbers or sizes of draws", np.inf)
    parts = [part for build, part in known if build == name and part not in ("draws", "counts")]
    if parts != list(found.answers):
        yield Difference(name, "parts", ", ".join({*parts} ^ {*found.answers}), np.inf)
        return
    for part, now in found.answers.items():
        if known[name, part]["digest"] == numbers_digest(now):
            continue
        boxes = re.sub("(many boxes|near)$", "boxes", part)
        before = np.array(known[name, boxes]["numbers"])[: now.size]
        if before.size != now.size:
            yield Difference(name, part, f"{now.size} numbers, {before.size} before", np.inf)
            continue
        text = "other bits" if boxes == part else f"other bits; beside {boxes.rpartition(' ')[2]}"
        yield Difference(name, part, text, distance(before.reshape(now.shape), now))


def main() -> None:
    """Record, or compare and say what differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true", help="record what the builds give now")
    parser.add_argument("--only", type=items, default=[], help="words of names, with commas")
    options = parser.parse_args()
    os.environ["PSD_CACHE"] = "off"
    names = [
        name for name in BUILDS if not options.only or any(word in name for word in options.only)
    ]
    if options.record:
        record(names)
        return
    known = recorded()
    found = [row for name in names for row in differences(name, known)]
    header = ("build", "part", "what differs", "largest relative difference")
    shown = [(*row[:3], f"{row.largest:.1e}") for row in found]
    print(table(header, shown) if found else f"all {len(names)} builds as recorded, bit for bit")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
