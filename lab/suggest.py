"""Recall of suggested places on the sample of Seoul: models, budgets and a table of both.

Each user's last visit is left out; the other visits are own places, and the records of the
training. Recall at 20: the share of users whose last visit lies in one of 20 suggested regions of
40 x 40; in brackets, of those whose last visit lies in a region that is none of their own places.

    python lab/suggest.py [--runs 1] [--every 1] [--models weights,alternating,factors]
        [--epsilons 1,0.3,0.1]

prints the table of docs/guide/suggestions.md, and ends with 1 if a bar is missed.
"""

import sys
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from common import items, study, table
from data_sets import SEOUL, SEOUL_BOUNDS

import psd
from psd.accounting import rho_of
from psd.apps.suggest.models import FEATURES, RegionGrid, differences, features, solve_weights
from psd.apps.suggest.training import train_factors, train_weights
from psd.curator.person_sums import PersonSums
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.privacy.count_noise import Statistic, deviation, triangle
from psd.privacy.loss import parse_epsilon

DOMAIN = psd.Domain(bounds=SEOUL_BOUNDS)
CELLS, K, BOUND = 40, 20, 4
DELTA, FACTOR_DELTA = "1e-6", "1e-5"
NO_NOISE_RHO = 10**18
ALTERNATING = (
    Statistic(name="gramian", rows=1, width=21),
    Statistic(name="right side", rows=1, width=6),
)
RIDGE, ROUNDS = 1.0, 3

# Row, recall, recall in new regions: the least that each must reach.
BARS = {
    "shared weights, epsilon 0.3": (0.77, 0.46),
    "factors, epsilon 1": (0.49, 0),
    "factors, epsilon 3": (0.56, 0),
    "factors, epsilon 10": (0.62, 0),
}
CLOSE = 0.03


class NoNoise:
    """Sums as they are: what a model would be without privacy. For this comparison alone."""

    def draw(self, mechanism):
        return mechanism.true.copy()


@dataclass(frozen=True)
class Split:
    """Visits that are seen, in order of users, and the last visit of each user who has another."""

    seen: pd.DataFrame
    last: dict[Any, int]

    @property
    def places(self):
        """Regions of the seen visits of each user."""
        return {user: group.to_numpy() for user, group in self.seen.groupby("user_id")["region"]}


def split_visits(grid):
    """Leave out the last visit of each user with two or more."""
    visits = pd.read_csv(SEOUL).sort_values("timestamp", kind="stable")
    columns, rows, inside = DOMAIN.quantise(visits["lon"].to_numpy(), visits["lat"].to_numpy())
    visits = visits[inside].assign(region=grid.regions_of(columns, rows))
    number = visits.groupby("user_id")["region"].transform("size")
    is_last = ~visits.duplicated("user_id", keep="last") & (number > 1)
    last = visits[is_last].set_index("user_id")["region"].to_dict()
    return Split(visits[~is_last].sort_values("user_id", kind="stable"), last)


def empty_grid():
    """Regions before there is a release: where visits lie depends on no density."""
    tree = psd.decompositions.grid_tree(DOMAIN, 1)
    return RegionGrid.of_release(psd.Release.from_counts(tree, [1], 1, domain=DOMAIN), CELLS)


def build(split, epsilon):
    """A release of the seen visits."""
    return psd.build(
        split.seen, domain=DOMAIN, epsilon=epsilon, user="user_id", max_contributions=BOUND
    )


def persons(split, rho, sampler, seed=0):
    """The question for sums over at most four visits of each user."""
    order = np.random.default_rng(seed).permutation(len(split.seen))
    kept = split.seen.iloc[order].groupby("user_id").head(BOUND).sort_values("user_id")
    numbers = np.unique(kept["user_id"], return_inverse=True)[1]
    regions = kept["region"].to_numpy()
    return PersonSums(numbers, regions, budget=Budget(rho), sampler=sampler)


@cache
def differences_once(grid, regions):
    """Differences of one person, which all rounds and rows use again."""
    return differences(grid, np.frombuffer(regions, np.int64))


def correction(rows, weights):
    """A person's own small correction, by least squares with a ridge."""
    gramian = rows.T @ rows / len(rows) + RIDGE * np.eye(len(FEATURES))
    return np.linalg.solve(gramian, rows.T @ (1 - rows @ weights) / len(rows))


def alternating_part(grid, weights, regions):
    """As `psd.apps.suggest.models.person_part`, after the person's correction was taken out."""
    if len(regions) < 2:
        return [(np.zeros(0, int), np.empty((0, size.width))) for size in ALTERNATING]
    rows, first = differences_once(grid, regions.tobytes()), np.zeros(1, int)
    own = correction(rows, weights) if weights.any() else np.zeros(len(FEATURES))
    right = rows.T @ (1 - rows @ own) / len(grid.contrasts)
    return [
        (first, triangle(rows.T @ rows / len(grid.contrasts))[None]),
        (first, right[None]),
    ]


def alternate(people, grid):
    """Shared weights and corrections in turn; each round has an equal part of rho."""
    weights, rho = np.zeros(len(FEATURES)), people.rho // ROUNDS
    for _ in range(ROUNDS):
        part = partial(alternating_part, grid, weights)
        gramian, right = people.sums(part, ALTERNATING, rho)
        weights = solve_weights(gramian[0], right[0], deviation(ALTERNATING, 0, rho))
    return weights


def rho_at(epsilon, delta):
    """Rho of a budget."""
    return rho_of(parse_epsilon(epsilon), Fraction(delta))


def scorers(split, release, coarse, grid, options):
    """Each row of the table: from the features and regions of a user to scores of all regions."""
    every = np.arange(CELLS**2)

    def near(density, described, own):
        nearness = np.expm1(described[:, FEATURES.index("nearness_3_km")])
        return nearness * np.sqrt(density)

    def shared(weights, described, own):
        return described @ weights

    def corrected(weights, described, own):
        rows = differences_once(grid, own[:20].tobytes()) if len(own) > 1 else None
        personal = 0 if rows is None else correction(rows, weights)
        return described @ (weights + personal)

    def factors(model, described, own):
        return model.scores(own)

    rows = {
        "noisy popularity, epsilon 1": lambda described, own: grid.count[every],
        "nearness x root of density, epsilon 1": partial(near, grid.count),
        "nearness x root of density, epsilon 0.1": partial(near, coarse.count),
    }
    train = partial(train_weights, split.seen, release, user="user_id", cells=CELLS, delta=DELTA)
    for name, epsilon, sampler in (
        ("without privacy", 100, NoNoise()),
        *((f"epsilon {epsilon}", epsilon, None) for epsilon in options.epsilons),
    ):
        learnt = train(epsilon=epsilon, sampler=sampler).weights
        weights = np.array([learnt[feature] for feature in FEATURES])
        rows[f"shared weights, {name}"] = partial(shared, weights)
    for name, rho, drawn_by in (
        ("without privacy", NO_NOISE_RHO, NoNoise()),
        ("epsilon 0.3", rho_at("0.3", DELTA), SecureSampler()),
    )[: 2 * ("alternating" in options.models)]:
        weights = alternate(persons(split, rho, drawn_by), grid)
        rows[f"alternating, {name}"] = partial(shared, weights)
        rows[f"alternating with the correction on the device, {name}"] = partial(corrected, weights)
    learn = partial(train_factors, split.seen, release, user="user_id", delta=FACTOR_DELTA)
    for name, epsilon, sampler in (
        ("without privacy", 100, NoNoise()),
        *((f"epsilon {epsilon}", epsilon, None) for epsilon in ("1", "3", "10")),
    )[: 4 * ("factors" in options.models)]:
        model = learn(epsilon=epsilon, sampler=sampler)
        rows[f"factors, {name}"] = partial(factors, model)
    return rows


def recalls(split, grid, rows, step):
    """Recall at 20 of each row, over every step-th user and over those of them in a new region."""
    every, places = np.arange(CELLS**2), split.places
    hits = {name: np.zeros((2, 2)) for name in rows}
    for user, region in list(split.last.items())[::step]:
        own = places[user]
        described, is_new = features(grid, own, every), int(region not in own)
        for name, score in rows.items():
            scores = score(described, own)
            hit = np.count_nonzero(scores > scores[region]) < K
            hits[name][is_new] += (hit, 1)
    return {name: (hit.sum(0), hit[1]) for name, hit in hits.items()}


def measure(options):
    """Mean recalls over fresh releases, weights and factors."""
    split, results = split_visits(empty_grid()), []
    for _ in range(options.runs):
        release = build(split, 1)
        grid = RegionGrid.of_release(release, CELLS)
        coarse = RegionGrid.of_release(build(split, "0.1"), CELLS)
        rows = scorers(split, release, coarse, grid, options)
        results.append(recalls(split, grid, rows, options.every))
    return {
        name: tuple(np.mean([run[name][i][0] / run[name][i][1] for run in results]) for i in (0, 1))
        for name in results[0]
    }


def missed(found):
    """Bars that a table misses."""
    for name, bars in BARS.items():
        if name in found and any(value < bar for value, bar in zip(found[name], bars, strict=True)):
            yield f"{name}: {found[name]} is below {bars}"
    private, free = (
        found.get(f"shared weights, {name}", (0, 0)) for name in ("epsilon 0.3", "without privacy")
    )
    if any(private) and any(abs(a - b) > CLOSE for a, b in zip(private, free, strict=True)):
        yield f"privacy at epsilon 0.3 costs more than {CLOSE}: {private} against {free}"


def main():
    parser = study(__doc__, epsilons="1,0.3,0.1", runs=1)
    models = ["weights", "alternating", "factors"]
    parser.add_argument("--models", type=items, default=models, help="weights always")
    parser.add_argument("--every", type=int, default=1, help="test one user in so many")
    options = parser.parse_args()
    found = measure(options)
    rows = ((name, *(f"{value:.3f}" for value in values)) for name, values in found.items())
    print(table(("model", "recall at 20", "in a new region"), rows), end="")
    faults = list(missed(found))
    print(*faults, sep="\n", end="", file=sys.stderr)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
