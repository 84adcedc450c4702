"""What holds for every objective: how far a record moves scores, and the exact loss of a choice.

An objective is found by the name of its file, so that a new one fails here until it has examples.
"""

import itertools
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pytest

import psd
from psd._util import plugins
from psd.apps.choosing import CandidateAreas, Price, PriceList, PriceMap, Sites, Tariffs
from psd.apps.choosing.objectives import Objective, as_objective, objective_class, objectives
from psd.curator.candidate_scores import CandidateScores
from psd.curator.curator import Curator
from psd.errors import ParameterError
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import tally_batches
from psd.mechanisms.permute_and_flip import PermuteAndFlip
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO
from support.price_regions import two_columns

PLACES = CandidateAreas.around(["a", "b", "c"], [[2, 2], [4.6, 2], [8, 8]], 2, "EPSG:3857")
SPOTS = [(2.0, 2.0, 1), (3.0, 2.0, 9), (4.0, 2.5, np.nan), (8.0, 8.0, 2), (0.1, 0.1, 0.5)]
"""Coordinates and bids of records."""

PRICES = PriceList.parse("1,2")
CELLS = psd.Domain(bounds=(0, 0, 10, 10), crs="EPSG:3857", lattice=(2, 2))
AREA = psd.Domain(bounds=(0, 0, 10, 10), crs="EPSG:3857", lattice=(1, 1))
REGIONS = two_columns(AREA)


def tariffs(*prices, **regions):
    prices = tuple(tuple(map(Decimal, row)) for row in prices)
    return Tariffs(bid="bid", ids=("a", "b"), prices=prices, domain=AREA, **regions)


EXAMPLES = {
    "sites": [
        Sites(catchments=PLACES, **how)
        for how in ({}, {"best": 2}, {"best": 2, "cover": True}, {"target": 2})
    ],
    "price": [Price(bid="bid", prices=PriceList.parse("0.5,1,1.5,2"), domain=AREA)],
    "price-map": [
        PriceMap(bid="bid", prices=PRICES, zones=(1, 2, 3), domain=CELLS, depth=1),
        PriceMap(bid="bid", prices=PRICES, zones=(2,), domain=AREA, regions=REGIONS, order=(1, 0)),
    ],
    "tariffs": [tariffs([2, 1], [1, 2], regions=REGIONS), tariffs([2], [1])],
}
LEAST = {"site": 0.8, "price": 0.6, "prices": 0.3, "tariff": 0.45}
"""Share of epsilon that some data set of three records loses; more of it with more records."""

OBJECTIVES = [
    pytest.param(example, id=f"{name}-{number}")
    for name, examples in EXAMPLES.items()
    for number, example in enumerate(examples)
]


def counted(objective, records):
    """Tally of records, which are numbers of spots."""
    x, y, bid = np.array([SPOTS[record] for record in records], np.float64).reshape(-1, 3).T
    if objective.bids is None:
        return tally_batches([Batch(x=x, y=y)], objective.domain)
    batch = Batch(x=x, y=y, bid=bid)
    return tally_batches([batch], objective.domain, strata=objective.bids[1])


def data_sets(most=3):
    """All data sets of at most so many records."""
    for size in range(most + 1):
        yield from itertools.combinations_with_replacement(range(len(SPOTS)), size)


@dataclass
class Forced:
    """Answers in a given order, and the log-probability of them together."""

    answers: list[np.ndarray]
    log: float = 0.0

    def draw(self, mechanism):
        answer = self.answers.pop(0)[None]
        self.log += mechanism.log_probability(answer)[0]
        return answer


def answers(objective, draw):
    """All answers of a draw, and for maps many that are none."""
    bins = objective.shape[0]
    if objective.mechanism is PermuteAndFlip:
        return [np.array(number) for number in range(bins - draw)]
    pairs = [*itertools.product(range(max(objective.zones)), range(objective.shape[1]))]
    return [np.array(rows) for rows in itertools.product(pairs, repeat=bins)]


def law(objective, records, nano):
    """Log-probability of each sequence of answers."""
    tally, laws = counted(objective, records), {}
    ranges = [answers(objective, draw) for draw in range(objective.draws)]
    for number, path in enumerate(itertools.product(*ranges)):
        forced, asked = Forced([*path]), objective
        curator = Curator(tally, objective.domain, budget=Budget(nano), sampler=forced)
        root = curator.root()
        for _ in range(objective.draws):
            answer = curator.choose(root, asked, asked.mechanism, nano // objective.draws)
            if objective.draws > 1:
                asked = asked.pick(answer)[1]
        assert curator.spent <= nano
        if forced.log > -np.inf:
            laws[number] = forced.log
    return laws


def test_every_objective_has_examples():
    assert sorted(EXAMPLES) == sorted(plugins.own_names("psd.apps.choosing.objectives"))
    for name, examples in EXAMPLES.items():
        assert {type(example) for example in examples} == {objective_class(name)}
    assert set(EXAMPLES) <= set(objectives())


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_it_has_the_members_of_the_protocol_and_is_frozen(objective):
    assert as_objective(objective) is objective
    kinds = (Objective, CandidateScores)
    members = {name for kind in kinds for name in vars(kind) if not name.startswith("_")}
    assert members <= set(dir(objective))
    with pytest.raises((AttributeError, TypeError)):
        objective.draws = 2


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_record_moves_no_score_further_than_it_says(objective):
    domain = objective.domain
    scores = {r: objective.scores(counted(objective, r), domain) for r in data_sets(4)}
    assert {(each.shape, each.dtype.name) for each in scores.values()} == {
        (objective.shape, "int64")
    }
    moves = set()
    for records, more in itertools.product(data_sets(), range(len(SPOTS))):
        after = scores[tuple(sorted((*records, more)))]
        moves |= set((after - scores[records]).ravel().tolist())
    assert max(map(abs, moves)) == objective.sensitivity(1)
    assert objective.is_monotone == (min(moves) >= 0)
    assert objective.sensitivity(7) == 7 * objective.sensitivity(1)


FAST = ("sites-0", "sites-3", "tariffs-0", "tariffs-1")
LOSSES = [
    pytest.param(*each.values, id=each.id, marks=[] if each.id in FAST else [pytest.mark.deep])
    for each in OBJECTIVES
]


@pytest.mark.parametrize("objective", LOSSES)
def test_the_exact_loss_is_at_most_epsilon_and_almost_that(objective):
    nano, worst = 7 * NANO // 10, 0.0
    laws = {records: law(objective, records, nano) for records in data_sets()}
    for records, first in laws.items():
        assert sum(map(np.exp, first.values())) == pytest.approx(1, abs=1e-9)
        for more in range(len(SPOTS)):
            second = laws.get(tuple(sorted((*records, more))))
            if second is not None:
                worst = max(worst, *(abs(first[path] - second[path]) for path in first))
    assert worst <= nano / NANO + 1e-9
    assert worst >= LEAST[objective.name] * nano / NANO


def test_an_objective_of_another_package(monkeypatch):
    @dataclass(frozen=True)
    class Other(Sites):
        name = "other"

    plugins.register("psd.apps.choosing.objectives", "objective", "other", type("m", (), {})())
    try:
        assert "other" in objectives()
        with pytest.raises(ParameterError, match="member 'objective'"):
            objective_class("other")
    finally:
        plugins._registered["psd.apps.choosing.objectives"].pop("other")
    for function, given, told in (
        (as_objective, object(), "must have"),
        (as_objective, Sites, "class"),
        (objective_class, "nothing", "'nothing'"),
    ):
        with pytest.raises(ParameterError, match=told):
            function(given)
