"""How often joint intervals hold, class breaks are covered, and what statistics cost.

    python lab/together.py [--draws 200]

Coverages are on the sample of Seoul, a quadtree of height 8 whose noise is drawn many times; those
of joint intervals are of signed estimates, for which the covariance is exact. Times
are CPU seconds, on a release with the default method.
"""

import numpy as np
from common import cpu_seconds, exact_counts, study
from data_sets import SEOUL_BOUNDS, chosen_sets

import psd
from psd.privacy.loss import NANO
from psd.query.answer_table import two_sided_quantile
from psd.query.box_parts import box_fraction
from psd.query.joint import simultaneous_level
from psd.query.traversal import traverse, weighted_total
from psd.release.post_processing import PostProcessing
from psd.space.box_tree import Tree
from psd.space.ground_areas import ground_areas
from psd.statistics.raster import density_raster, raster_overlay
from psd.statistics.top_cells import weighted_quantiles
from support.releases import changed


def drawn_again(release, truth, rng):
    """The release with other noise."""
    tree = release.tree
    p = -np.expm1(-np.maximum(tree.loss, 1) / NANO)
    noise = rng.geometric(p) - rng.geometric(p)
    count = np.where(tree.loss > 0, truth + noise, 0)
    names = ("boxes", "parent", "level", "loss")
    return changed(release, tree=Tree(count=count, **{n: getattr(tree, n) for n in names}))


def together(release, truth, boxes, count):
    """Share of the draws in which all intervals hold, single ones and joint ones."""
    release = changed(release, post_processing=PostProcessing(estimate="signed"))
    joint = release.query(boxes).joint()
    deviation = np.sqrt(np.diagonal(joint.perturbation_covariance))
    level = simultaneous_level(joint.perturbation_covariance / np.outer(deviation, deviation), 0.95)
    lattice = release.domain.to_lattice(np.array(boxes, float))
    covered = traverse(release.tree, len(boxes), box_fraction(release.index.fit, lattice))
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(count):
        signed = drawn_again(release, truth, rng).index.fit.estimates.signed
        draws.append(np.abs(weighted_total(covered, signed - truth)) / deviation)
    off = np.array(draws)
    return [
        (off <= two_sided_quantile(confidence)).all(axis=1).mean() for confidence in (0.95, level)
    ]


def breaks(release, truth, weight, number):
    """Share of the draws in which each class break is covered."""
    overlay = raster_overlay(release.index.fit, 64, 64)
    count = np.bincount(overlay.cell, truth[overlay.node] * overlay.share, overlay.cells)
    rng = np.random.default_rng(0)
    found = []
    for _ in range(number):
        again = drawn_again(release, truth, rng)
        table = again.query(quantiles=True, weight=weight, draws=50).table
        area = ground_areas(release.domain, overlay.boxes)
        weights = np.asarray(area if weight == "area" else count, np.float64)
        at = weighted_quantiles(count / area, weights, table.share.to_numpy())
        found.append((table.lower <= at + 1e-9) & (at <= table.upper + 1e-9))
    return np.mean(found, axis=0).round(2).tolist()


def timed(name, work):
    print(f"{name}: {cpu_seconds(work):.1f} s")


def main():
    parser = study(__doc__)
    parser.add_argument("--draws", type=int, default=200, help="of the noise, for each coverage")
    options = parser.parse_args()
    options.data, options.sets = None, ["seoul"]
    one = chosen_sets(options)[0]
    table, domain = one.table[["lon", "lat"]], one.domain
    method = psd.decompositions.Quadtree(height=8)
    frozen = psd.build(table, domain=domain, epsilon="1", method=method)
    truth = exact_counts(frozen.tree, one.tally())
    x, y = np.linspace(126.4, 127.6, 21), np.linspace(37, 38, 5)
    rows = [(x[i], y[j], x[i + 1], y[j + 1]) for i in range(20) for j in range(4)]
    nests = [(127 - s, 37.5 - s, 127 + s, 37.5 + s) for s in np.linspace(0.05, 0.45, 20)]
    for name, boxes in (("80 disjoint boxes", rows), ("20 nested boxes", nests)):
        single, joint = together(frozen, truth, boxes, options.draws)
        print(f"{name}: all hold in {single:.0%} of draws one by one, {joint:.0%} jointly")
    for weight in ("area", "people"):
        print(f"breaks by {weight} covered: {breaks(frozen, truth, weight, options.draws // 4)}")
    built = psd.build(table, domain=domain, epsilon="1")
    built.query([SEOUL_BOUNDS])
    rng = np.random.default_rng(0)
    low = rng.random((5000, 2)) * 0.8
    sides = np.concatenate([low, low + 0.02 + 0.1 * rng.random((5000, 2))], axis=1)
    boxes = np.array([126.4, 37] * 2) + sides * np.array([1.2, 1] * 2)
    timed("raster of 1,000 x 1,000", lambda: density_raster(built.index.fit, 1000, 1000))
    timed("top 10 of 400 x 250", lambda: built.query(top=10, size=(400, 250)))
    timed("class breaks of 64 x 64", lambda: built.query(quantiles=True))
    for m in (100, 1000, 5000):
        timed(f"{m:,} joint answers", lambda m=m: built.query(boxes[:m]).joint())


if __name__ == "__main__":
    main()
