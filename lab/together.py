"""How often joint intervals hold, class breaks are covered, and what statistics cost.

    psd build data/seoul/visits.csv -o seoul.psd.parquet --epsilon 1 --bounds 126.4 37 127.6 38
    python lab/together.py data/seoul/visits.csv seoul.psd.parquet

Coverages are on the sample data, a quadtree of height 8 whose noise is drawn 200 times.
"""

import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

import psd
from psd.privacy.epsilon import NANO
from psd.query.boxes import box_fraction
from psd.query.derived import two_sided_quantile
from psd.query.simultaneous import simultaneous_level
from psd.query.traversal import traverse, weighted_total
from psd.space.box_tree import Tree, locate
from psd.space.ground_areas import ground_areas
from psd.statistics.overlay import raster_overlay
from psd.statistics.quantiles import weighted_quantiles

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support.releases import changed

DRAWS = 200
BOUNDS = (126.4, 37, 127.6, 38)


def true_counts(tree, domain, path):
    """Exact counts of all nodes."""
    rows = pd.read_csv(path)
    columns, lines, _ = domain.quantise(rows.lon.to_numpy(), rows.lat.to_numpy())
    count = np.bincount(locate(tree, columns, lines), minlength=len(tree))
    for level in reversed(tree.levels[1:]):
        np.add.at(count, tree.parent[level], count[level])
    return count


def drawn_again(release, truth, rng):
    """The release with other noise."""
    tree = release.tree
    p = -np.expm1(-np.maximum(tree.epsilon, 1) / NANO)
    noise = rng.geometric(p) - rng.geometric(p)
    count = np.where(tree.epsilon > 0, truth + noise, 0)
    names = ("boxes", "parent", "level", "epsilon")
    return changed(release, tree=Tree(count=count, **{n: getattr(tree, n) for n in names}))


def together(release, truth, boxes):
    """Share of the draws in which all intervals hold, single ones and joint ones."""
    joint = release.joint(boxes)
    deviation = np.sqrt(np.diagonal(joint.perturbation_covariance))
    level = simultaneous_level(joint.perturbation_covariance / np.outer(deviation, deviation), 0.95)
    lattice = release.domain.to_lattice(np.array(boxes, float))
    covered = traverse(release.tree, len(boxes), box_fraction(release.model, lattice))
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(DRAWS):
        signed = drawn_again(release, truth, rng).estimates.signed
        draws.append(np.abs(weighted_total(covered, signed - truth)) / deviation)
    off = np.array(draws)
    return [
        (off <= two_sided_quantile(confidence)).all(axis=1).mean() for confidence in (0.95, level)
    ]


def breaks(release, truth, weight):
    """Share of the draws in which each class break is covered."""
    overlay = raster_overlay(release.model, 64, 64)
    count = np.bincount(overlay.cell, truth[overlay.node] * overlay.share, overlay.cells)
    rng = np.random.default_rng(0)
    found = []
    for _ in range(DRAWS // 4):
        table = drawn_again(release, truth, rng).quantiles(5, weight=weight, draws=50)
        area = ground_areas(release.domain, overlay.boxes)
        weights = np.asarray(area if weight == "area" else count, np.float64)
        at = weighted_quantiles(count / area, weights, table.share.to_numpy())
        found.append((table.lower <= at + 1e-9) & (at <= table.upper + 1e-9))
    return np.mean(found, axis=0).round(2).tolist()


def timed(name, work):
    start = time.perf_counter()
    work()
    print(f"{name}: {time.perf_counter() - start:.1f} s")


def main(points, release):
    domain = psd.Domain(bounds=BOUNDS)
    frozen = psd.build(
        points, domain=domain, epsilon="1", method=psd.decompositions.Quadtree(height=8)
    )
    truth = true_counts(frozen.tree, domain, points)
    x, y = np.linspace(126.4, 127.6, 21), np.linspace(37, 38, 5)
    rows = [(x[i], y[j], x[i + 1], y[j + 1]) for i in range(20) for j in range(4)]
    nests = [(127 - s, 37.5 - s, 127 + s, 37.5 + s) for s in np.linspace(0.05, 0.45, 20)]
    for name, boxes in (("80 disjoint boxes", rows), ("20 nested boxes", nests)):
        single, joint = together(frozen, truth, boxes)
        print(f"{name}: all hold in {single:.0%} of draws one by one, {joint:.0%} jointly")
    for weight in ("area", "people"):
        print(f"breaks by {weight} covered: {breaks(frozen, truth, weight)}")
    saved = psd.Release.load(release)
    saved.query([BOUNDS])
    rng = np.random.default_rng(0)
    low = rng.random((5000, 2)) * 0.8
    sides = np.concatenate([low, low + 0.02 + 0.1 * rng.random((5000, 2))], axis=1)
    boxes = np.array([126.4, 37] * 2) + sides * np.array([1.2, 1] * 2)
    timed("raster of 1,000 x 1,000", lambda: saved.raster(1000, 1000))
    timed("top 10 of 400 x 250", lambda: saved.top(10, size=(400, 250)))
    timed("class breaks of 64 x 64", lambda: saved.quantiles(5))
    for m in (100, 1000, 5000):
        timed(f"{m:,} joint answers", lambda m=m: saved.joint(boxes[:m]))


if __name__ == "__main__":
    main(*sys.argv[1:])
