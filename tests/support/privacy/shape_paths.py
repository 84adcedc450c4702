"""The worst path of a shape, built for real by the curator on a data set and on its neighbour.

The path has 20 levels, and counts that a dynamic programme chose.
"""

from dataclasses import dataclass, replace

import numpy as np

import psd.curator.curator
import psd.curator.path_charges
from psd.ingest.tally import Tally
from psd.privacy.loss import NANO
from psd.space.domain import Domain
from psd.testing import SCRIPTS, run_method
from support.privacy.replay import largest_loss
from support.privacy.shapes import worst_path

LEVELS = 20
EPSILONS = (0.5, 1, 1.1, 1.65, 2, 6.5, 8, 20)
PLAIN = Domain(bounds=(0, 0, 1, 1), crs="EPSG:3857")
PATH = replace(SCRIPTS[0], name="path", compare=lambda step, biased: np.arange(len(biased)) == 0)


@dataclass(frozen=True)
class ShapeAlone:
    """All of epsilon for a shape."""

    height: int = LEVELS

    def build(self, curator):
        curator.privtree_shape(curator.root(), curator.loss, height=self.height)
        return curator.tree()


def rule_of(epsilon, k):
    """Scale and delta as the curator has them, whatever was planted there."""
    rule = psd.curator.curator.split_rule(np.array([round(epsilon * NANO)]), k)
    return rule.numerator / int(rule.denominator[0]), rule.delta[0]


def at_points(places, k):
    """Tally of numbers of records at lattice cells, in the order of the cells."""
    kept = [(x, y, n) for (x, y), n in places if n]
    columns, rows, counts = np.array(kept, np.int64).reshape(-1, 3).T
    return Tally(
        columns=columns.astype(np.int32), rows=rows.astype(np.int32), counts=counts, contributions=k
    )


def on_path(counts, k, more=0):
    """Data whose nodes in the south-west corner have the counts, the root's first."""
    off = [(2 ** (LEVELS - 1 - d),) * 2 for d in range(len(counts) - 1)]
    left = [int(n) for n in -np.diff(counts)]
    return at_points([((0, 0), counts[-1] + more), *zip(off[::-1], left[::-1], strict=True)], k)


def path_loss(epsilon, k):
    """Loss of the worst path as built, and as worked out."""
    scale, delta = rule_of(epsilon, k)
    worst, counts = worst_path(scale, delta, records=k)
    nano = round(epsilon * NANO)

    def build(tally, sampler):
        return run_method(ShapeAlone(), tally, PLAIN, nano, sampler)

    first, other = on_path(counts, k), on_path(counts, k, k)
    return largest_loss(build, first, [other], scripts=[PATH], claim=epsilon), worst
