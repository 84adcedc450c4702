"""Sites: what is scored, which draws there are, and what is refused."""

from functools import partial

import numpy as np
import pytest

from psd.apps.choosing import CandidateAreas, Sites
from psd.errors import DomainError, ParameterError
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import tally_batches
from support.tables import refuses

PLACES = CandidateAreas.around(["a", "b", "c"], [[2, 2], [4.6, 2], [8, 8]], 2, "EPSG:3857")
X = [2, 2, 2, 3, 4.5, 4.5, 8, 8, 8, 8]
Y = [2, 2, 2, 2, 2.0, 2.0, 8, 8, 8, 8]


def scores(sites, x=X, y=Y):
    batch = Batch(x=np.array(x, np.float64), y=np.array(y, np.float64))
    return sites.scores(tally_batches([batch], sites.domain), sites.domain).tolist()


def test_the_score_is_the_number_of_records_inside_or_the_distance_to_a_target():
    sites, target = Sites(catchments=PLACES), Sites(catchments=PLACES, target=3)
    assert scores(sites) == [4, 3, 4]
    assert scores(sites, [], []) == [0, 0, 0]
    assert (sites.candidates, sites.draws) == (3, 1)
    assert (sites.is_monotone, sites.sensitivity(4)) == (True, 4)
    assert scores(Sites(catchments=PLACES, bounds=(0, 0, 6.5, 10))) == [4, 3, 0]
    assert scores(target) == [-1, 0, -1]
    assert (target.is_monotone, target.sensitivity(4)) == (False, 4)


@pytest.mark.parametrize(("cover", "left"), [(False, [3, 4]), (True, [2, 4])])
def test_the_second_draw_has_the_candidates_that_are_left(cover, left):
    pick, sites = Sites(catchments=PLACES, best=2, cover=cover).pick(np.int64(0))
    assert pick == ({"rank": 1, "id": "a"},)
    assert (sites.candidates, sites.taken) == (2, (0,))
    assert scores(sites) == left
    assert sites.pick(np.int64(1))[0] == ({"rank": 2, "id": "c"},)


def test_wrong_parameters_are_refused(subtests):
    rows = [
        ({"best": 0}, "best must be"),
        ({"best": 4}, "best must be"),
        ({"target": -1}, "target must be"),
        ({"target": 3, "best": 2}, "target must be left out"),
        ({"cover": True}, "cover must be left out for one site"),
        ({"catchments": "places.csv"}, "catchments must be"),
    ]
    sites = partial(Sites, catchments=PLACES)
    refuses(subtests, sites, rows, ParameterError)
    rows = [({"bounds": (0, 0, 5, 5)}, "'c' outside"), ({"bounds": (5, 0, 0, 5)}, "bounds")]
    refuses(subtests, sites, rows, DomainError)
