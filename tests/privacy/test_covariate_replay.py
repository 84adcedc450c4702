"""A covariate is public knowledge: with it a build still reads the data through answers alone."""

import inspect

import numpy as np
import pytest

from psd.decompositions.cascade import Cascade
from psd.estimation import covariate_density as dasymetric
from psd.space import covariate, raster_files
from psd.space import polygon_pieces as pieces
from psd.space import raster_density as rasters
from psd.space.covariate import Covariate
from psd.testing import replay_loss, small_domain


def known(side, raster):
    return Covariate(domain=small_domain(side), raster=np.array(raster, np.uint16))


COVARIATES = {
    "half": [[0, 1], [0, 1]],
    "one cell": [[0, 0, 0], [0, 5, 0], [0, 0, 0]],
    "uneven": [[1, 9, 0, 4], [2, 0, 0, 1], [3, 3, 7, 0], [0, 1, 1, 1]],
}


@pytest.mark.parametrize(
    ("side", "k", "every"), [(3, 1, 12), (3, 2, 120), (4, 1, 120)], ids=["3", "3 by two", "4"]
)
@pytest.mark.parametrize("name", COVARIATES)
def test_a_steered_cascade_tells_no_more_than_epsilon(name, side, k, every):
    worst, checked = replay_loss(
        Cascade(), side, k, every=every, covariate=known(side, COVARIATES[name])
    )
    assert worst == 1
    assert checked > 90


@pytest.mark.parametrize("module", [covariate, dasymetric, pieces, rasters, raster_files])
def test_nothing_that_makes_a_covariate_knows_of_points(module):
    source = inspect.getsource(module)
    for word in ("tally", "curator", "psd.curator.points", "psd.ingest.sources", "psd.mechanisms"):
        assert word not in source
