"""Sites: what is scored, which draws there are, and what is refused."""

import numpy as np
import pytest

from psd.choosing import Catchments, Sites
from psd.errors import DomainError, ParameterError
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import tally_batches

PLACES = Catchments.around(["a", "b", "c"], [[2, 2], [4.6, 2], [8, 8]], 2, "EPSG:3857")
X = [2, 2, 2, 3, 4.5, 4.5, 8, 8, 8, 8]
Y = [2, 2, 2, 2, 2.0, 2.0, 8, 8, 8, 8]


def scores(sites, x=X, y=Y):
    batch = Batch(x=np.array(x, np.float64), y=np.array(y, np.float64))
    return sites.scores(tally_batches([batch], sites.domain), sites.domain).tolist()


def test_the_score_is_the_number_of_records_inside():
    sites = Sites(catchments=PLACES)
    assert scores(sites) == [4, 3, 4]
    assert scores(sites, [], []) == [0, 0, 0]
    assert (sites.candidates, sites.draws, sites.is_monotone, sites.sensitivity(4)) == (
        3,
        1,
        True,
        4,
    )


def test_records_outside_the_bounds_do_not_count():
    assert scores(Sites(catchments=PLACES, bounds=(0, 0, 6.5, 10))) == [4, 3, 0]


@pytest.mark.parametrize(("cover", "left"), [(False, [3, 4]), (True, [2, 4])])
def test_the_second_draw_has_the_candidates_that_are_left(cover, left):
    pick, sites = Sites(catchments=PLACES, best=2, cover=cover).pick(np.int64(0))
    assert pick == ({"rank": 1, "id": "a"},)
    assert (sites.candidates, sites.taken) == (2, (0,))
    assert scores(sites) == left
    assert sites.pick(np.int64(1))[0] == ({"rank": 2, "id": "c"},)


def test_a_target_is_not_monotone():
    sites = Sites(catchments=PLACES, target=3)
    assert scores(sites) == [-1, 0, -1]
    assert not sites.is_monotone
    assert sites.sensitivity(4) == 4


@pytest.mark.parametrize(
    ("options", "kind", "told"),
    [
        ({"best": 0}, ParameterError, "best must be"),
        ({"best": 4}, ParameterError, "best must be"),
        ({"target": -1}, ParameterError, "target must be"),
        ({"target": 3, "best": 2}, ParameterError, "target must be left out"),
        ({"cover": True}, ParameterError, "cover must be left out for one site"),
        ({"bounds": (0, 0, 5, 5)}, DomainError, "'c' outside"),
        ({"bounds": (5, 0, 0, 5)}, DomainError, "bounds"),
        ({"catchments": "places.csv"}, ParameterError, "catchments must be"),
    ],
)
def test_wrong_parameters_are_refused(options, kind, told):
    with pytest.raises(kind, match=told):
        Sites(**{"catchments": PLACES} | options)
