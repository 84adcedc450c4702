"""How a bound chosen for a share of epsilon compares with the best fixed one.

    python lab/bounds.py [--epsilons .1,1] [--runs 3] [--tune] [--data FOLDER] [--sets A,B]

Scores are those of `psd.apps.evaluation.evaluate`, relative to all rows, so that what a bound
leaves out is part of the error. The rows of sets without users are given to made-up ones: sizes are
Zipf, and half of each user's rows are neighbours of each other.
"""

from decimal import Decimal

import numpy as np
from common import study
from data_sets import add_sets, chosen_sets, with_users

from psd.apps.evaluation.true_counts import PointRecorder, true_counts
from psd.apps.evaluation.true_errors import class_errors, geometric_mean
from psd.apps.evaluation.workload import draw_workload
from psd.curator.private_bounds import (
    ContributionChoice,
    candidate_bounds,
    choose_contribution_bound,
    count_misses,
)
from psd.decompositions import method
from psd.ingest.sources import Columns, read
from psd.ingest.tally_builder import TallyBuilder
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.privacy.loss import parse_epsilon
from psd.privacy.unit import PrivacyUnit
from psd.publish.drawing import draw_release

MOST = 1000


class Data:
    """A set, its true counts, and its tally under any bound."""

    def __init__(self, one):
        self.domain, self.table = one.domain, one.table
        if "user_id" not in self.table:
            self.table = with_users(self.table, np.random.default_rng(7))
        self.taken()
        self.sizes = self.builder.rows_per_unit()
        self.points = self.seen.points
        self.queries = draw_workload(*self.points, self.domain.bounds)

    def taken(self):
        """Read anew; rows are counted once."""
        self.builder = TallyBuilder(self.domain, unit=PrivacyUnit(kind="user", max_contributions=1))
        self.seen = PointRecorder(self.domain)
        for batch in self.seen.record(read(self.table, Columns(user="user_id"), self.domain)):
            self.builder.add_batch(batch)

    def truth(self, bound):
        self.taken()
        counts = self.builder.build(unit=PrivacyUnit(kind="user", max_contributions=bound))
        return true_counts(self.queries, self.points, counts, self.domain, bounded=True)


def score(data, truth, bound, epsilon, paid, runs):
    """Score of releases under a bound."""
    unit = PrivacyUnit(kind="user", max_contributions=bound)
    errors = []
    for _ in range(runs):
        release = draw_release(
            truth.counts,
            data.domain,
            budget=Budget(epsilon, spent=paid),
            method=method("auto"),
            unit=unit,
        )
        errors.append(class_errors(release, truth))
    return geometric_mean(np.mean(errors, axis=0))


def price(choice, epsilon):
    """Nano-epsilon of a choice."""
    return choice.allot(Budget(epsilon)).total


def chosen_bound(sizes, choice, epsilon):
    """A bound that is chosen for a share of epsilon."""
    return choose_contribution_bound(sizes, choice, choice.allot(Budget(epsilon)), SecureSampler())


def chances(data, choice, epsilon):
    """Probability of every bound."""
    bounds = candidate_bounds(choice.most)
    over = len(data.sizes) - np.searchsorted(np.sort(data.sizes), bounds, side="right")
    gap = count_misses(over, choice.target(epsilon))
    weight = np.exp(-price(choice, epsilon) / 1e9 * (gap - gap.min()) / 2)
    return bounds, weight / weight.sum()


def main():
    parser = study(__doc__, epsilons="0.1,1", runs=3)
    add_sets(parser, "seoul,city-towns,city-streets")
    parser.add_argument("--tune", action="store_true", help="try other shares")
    given = parser.parse_args()
    for one in chosen_sets(given):
        data = Data(one)
        truths = {int(k): data.truth(int(k)) for k in candidate_bounds(MOST)}
        for text in given.epsilons:
            epsilon = parse_epsilon(text)
            fixed = {k: score(data, t, k, epsilon, 0, given.runs) for k, t in truths.items()}
            best = min(fixed, key=fixed.__getitem__)
            over = int((data.sizes > best).sum())
            print(
                f"{one.name} {text}: users {len(data.sizes)}, best k {best} {fixed[best]:.4f}, "
                f"over it {over} = {over * float(text):.0f} / epsilon"
            )
            if given.tune:
                print("  ", {k: round(v, 4) for k, v in fixed.items()})
                tune(data, fixed, epsilon)
                continue
            choice = ContributionChoice()
            chosen = [chosen_bound(data.sizes, choice, epsilon) for _ in range(9)]
            scores = [score(data, truths[k], k, epsilon, price(choice, epsilon), 1) for k in chosen]
            print(
                f"   auto: k {sorted(chosen)}, score {np.mean(scores):.4f}, "
                f"{np.mean(scores) / fixed[best]:.2f} of the best; k 1 {fixed[1]:.4f}, "
                f"k 1000 {fixed[MOST]:.4f}"
            )


def tune(data, fixed, epsilon):
    """Expected score over the best one, by share and by users over the bound."""
    best = min(fixed.values())
    for share in map(Decimal, ("0.02", "0.05", "0.1", "0.2")):
        line = []
        for times in (10, 30, 100, 200, 300, 500, 1000):
            choice = ContributionChoice(share=share, over=int(times * 1e9 / epsilon), limit=MOST)
            bounds, chance = chances(data, choice, epsilon)
            mean = sum(p * fixed[int(k)] for k, p in zip(bounds, chance, strict=True))
            line.append(f"{times}: {mean / best / (1 - float(share)) ** 0.6:.2f}")
        print(f"   share {share}  " + "  ".join(line))


if __name__ == "__main__":
    main()
