"""Posterior medians against numerical integration, cell by cell, on tiny trees.

The twin holds every likelihood on a grid that is forty times as fine, over the whole range that
counts can have, and integrates by plain sums. Families are divided in two in the same order. It
takes the constants of the prior from the module, which may be tuned.

A median is compared through the distribution of which it is the median, since it may jump from
none to all of a total by the slightest change of a weight. Given the total that the module handed
to a family, the probability, in the twin, of lying more than `NEAR` standard deviations to one
side of the module's value is at most one half plus `USUALLY` in nine of ten divisions, and plus
`ALWAYS` in all of them; the rest is for totals of a few steps of the module's grid.
"""

from itertools import pairwise

import numpy as np
import pytest

from psd.estimation import posterior
from psd.estimation.least_squares import infer_counts
from psd.estimation.posterior import posterior_counts
from psd.privacy.loss import NANO
from psd.space.box_tree import Tree
from support.noise import for_users, noise_variance

pytestmark = pytest.mark.deep

NEAR, USUALLY, ALWAYS = 0.15, 0.02, 0.25
FINE = 1 / 40  # step of the twin, in standard deviations of the noise
SIDE = 16


class Dense:
    """Likelihood at 0, step, 2 step, ..., with its moments under a flat prior."""

    def __init__(self, step, value):
        self.step, self.value = step, value / value.max()
        x, weight = self.x, self.value / self.value.sum()
        self.mean = float((weight * x).sum())
        self.deviation = float(np.sqrt((weight * (x - self.mean) ** 2).sum()))

    @property
    def x(self):
        return self.step * np.arange(len(self.value))

    def at(self, x):
        return np.interp(x, self.x, self.value, left=0.0, right=0.0)


def noise_of(count, rate, x):
    exponent = -rate * np.abs(count - x)
    return np.exp(exponent - exponent.max())


def scale_free(a, b):
    return posterior.SCALE_FREE * np.hypot(a.deviation, b.deviation)


def joined(a, b):
    """Likelihood of a sum: all shares alike, or all on one side."""
    # The trapezium rule: the ends of each integral count half; an empty one has its limit.
    ends = np.zeros(len(a.value) + len(b.value) - 1)
    ends[: len(b.value)] += a.value[0] * b.value / 2
    ends[: len(a.value)] += b.value[0] * a.value / 2
    x = a.step * np.arange(len(ends))
    some = (np.convolve(a.value, b.value) - ends) * a.step
    some /= np.minimum(np.maximum(x, a.step), scale_free(a, b))
    some[0] = a.value[0] * b.value[0]
    sides = a.value[0] * b.at(x) + b.value[0] * a.at(x)
    mixed = (1 - posterior.ONE_SIDED) * some + posterior.ONE_SIDED / 2 * sides
    return Dense(a.step, mixed[: len(a.value)])


def fold(parts):
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return joined(fold(parts[:half]), fold(parts[half:]))


def distribution(total, a, b):
    """Values and probabilities of the first of two parts; the first and the last are atoms."""
    inner = np.linspace(0, total, 4001)
    scale = min(total, scale_free(a, b))
    density = a.at(inner) * b.at(total - inner) * (1 - posterior.ONE_SIDED) / scale
    ends = posterior.ONE_SIDED / 2 * np.array([a.at(0) * b.at(total), a.at(total) * b.at(0)])
    weight = np.concatenate([ends[:1], density * (inner[1] - inner[0]), ends[1:]])
    return np.concatenate([[0], inner, [total]]), weight / weight.sum()


def excesses(total, values, parts):
    """How far beyond one half the twin is at each median of one division in two after another."""
    if len(parts) == 1:
        return []
    half = len(parts) // 2
    a, b = fold(parts[:half]), fold(parts[half:])
    first, found = sum(values[:half]), []
    if total > 1e-6 * a.step:
        x, weight = distribution(total, a, b)
        near = NEAR * min(a.deviation, b.deviation)
        sides = weight[x <= first - near].sum(), weight[x >= first + near].sum()
        found.append(max(sides) - 0.5)
    found += excesses(first, values[:half], parts[:half])
    return found + excesses(total - first, values[half:], parts[half:])


def strips(box, number):
    """Equal strips, upright in a square and lying in anything else."""
    x0, y0, x1, y1 = box
    if x1 - x0 == y1 - y0:
        lines = np.linspace(x0, x1, number + 1).astype(int)
        return [(a, y0, b, y1) for a, b in pairwise(lines)]
    lines = np.linspace(y0, y1, number + 1).astype(int)
    return [(x0, a, x1, b) for a, b in pairwise(lines)]


def tree_of(sizes, count, epsilon):
    """A root of sizes[0] children, of which the first ones have sizes[1], sizes[2], ... ."""
    boxes, parent, level = [(0, 0, SIDE, SIDE)], [-1], [0]
    for node, size in enumerate(sizes):
        for box in strips(boxes[node], size) if size else []:
            boxes.append(box)
            parent.append(node)
            level.append(level[node] + 1)
    return Tree(boxes=boxes, parent=parent, level=level, count=count, loss=epsilon)


def naive_likelihoods(tree, contributions):
    """Likelihood of every node, leaves first."""
    rate = tree.loss / (NANO * contributions)
    noise = np.sqrt(noise_variance(tree.loss[tree.loss > 0], contributions))
    step = FINE * noise.min()
    top = max(tree.count.max(), 0) * 2 + 30 * noise.max()
    x = step * np.arange(int(top / step))
    found = {}
    for node in reversed(range(len(tree))):
        kids = np.flatnonzero(tree.parent == node)
        below = fold([found[kid] for kid in kids]).value if len(kids) else np.ones(len(x))
        own = noise_of(tree.count[node], rate[node], x) if rate[node] else 1.0
        found[node] = Dense(step, below * own)
    return found


def compared(tree, contributions=1):
    """Excesses of all families of a tree."""
    tree = for_users(tree, contributions)
    counts = posterior_counts(tree, infer_counts(tree))
    likelihoods, found = naive_likelihoods(tree, contributions), []
    for node in np.flatnonzero(~tree.is_leaf):
        kids = np.flatnonzero(tree.parent == node)
        found += excesses(counts[node], counts[kids].tolist(), [likelihoods[k] for k in kids])
    return found


def random_case(rng, sizes, *, top, root):
    """Tree over random counts, many of them empty, with noise and some unmeasured roots."""
    epsilon = rng.integers(200_000_000, NANO, 1 + sum(sizes))
    epsilon[0] *= root
    true = rng.integers(0, top, len(epsilon)) * (rng.random(len(epsilon)) < 0.6)
    parent = np.repeat(np.arange(len(sizes)), sizes)
    for node in reversed(np.flatnonzero(sizes)):
        true[node] = true[1:][parent == node].sum()
    noise = np.rint(rng.laplace(0, NANO / np.maximum(epsilon, 1)))
    count = np.where(epsilon > 0, true + noise, 0).astype(np.int64)
    return tree_of(sizes, count, epsilon), int(rng.integers(1, 3))


SHAPES = {"two": [2], "three": [3], "four": [4], "two over two": [2, 2, 2], "uneven": [3, 2, 0, 4]}


def all_excesses(shape, tries=2):
    """Excesses over small and larger counts, with and without a measured root."""
    rng = np.random.default_rng(len(shape))
    cases = [(top, root) for top in (2, 10, 60) for root in (True, False)] * tries
    return [
        excess
        for top, root in cases
        for excess in compared(*random_case(rng, SHAPES[shape], top=top, root=root))
    ]


@pytest.mark.parametrize("shape", SHAPES)
def test_medians_are_those_of_numerical_integration(shape):
    found = all_excesses(shape)
    assert len(found) >= 8
    assert max(found) <= ALWAYS
    assert np.quantile(found, 0.9) <= USUALLY


def test_a_mean_in_place_of_the_median_is_seen(monkeypatch):
    def mean(values, weights):
        return (values * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-300)

    monkeypatch.setattr(posterior, "_median", mean)
    found = [excess for shape in SHAPES for excess in all_excesses(shape, tries=1)]
    assert max(found) > ALWAYS or np.quantile(found, 0.9) > USUALLY


def test_a_prior_without_empty_sides_is_seen(monkeypatch):
    rng = np.random.default_rng(1)
    monkeypatch.setattr(posterior, "ONE_SIDED", 0.5)
    cases = [random_case(rng, [2], top=3, root=True)[0] for _ in range(20)]
    sound = [excess for tree in cases for excess in compared(tree)]
    monkeypatch.setattr(posterior, "ONE_SIDED", 0.01)
    published = [posterior_counts(tree, infer_counts(tree)) for tree in cases]
    monkeypatch.setattr(posterior, "ONE_SIDED", 0.5)
    planted = []
    for tree, counts in zip(cases, published, strict=True):
        likelihoods = naive_likelihoods(tree, 1)
        planted += excesses(counts[0], counts[1:].tolist(), [likelihoods[1], likelihoods[2]])
    assert np.quantile(sound, 0.9) <= USUALLY < np.quantile(planted, 0.9)
