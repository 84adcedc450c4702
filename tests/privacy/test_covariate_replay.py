"""A covariate is public knowledge: with it a build still reads the data through answers alone."""

import geopandas as gpd
import numpy as np
import pytest
import shapely

from psd.decompositions.cascade import Cascade
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO
from psd.privacy.unit import PrivacyUnit
from psd.publish.drawing import draw_release
from psd.space.boundary import Boundary
from psd.space.covariate import Covariate
from psd.testing import replay_loss, small_domain, small_tally


def known(side, raster):
    return Covariate(domain=small_domain(side), raster=np.array(raster, np.uint16))


COVARIATES = {
    "half": [[0, 1], [0, 1]],
    "one cell": [[0, 0, 0], [0, 5, 0], [0, 0, 0]],
    "uneven": [[1, 9, 0, 4], [2, 0, 0, 1], [3, 3, 7, 0], [0, 1, 1, 1]],
}


@pytest.mark.deep
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


@pytest.mark.parametrize("bounded", [False, True], ids=["covariate", "covariate and boundary"])
def test_no_records_change_the_covariate_of_a_release(bounded):
    domain, west = small_domain(4), shapely.box(0, 0, 2, 4)
    boundary = Boundary.from_polygons(gpd.GeoSeries([west], crs=domain.crs), domain)
    rasters = set()
    for rows in ((), (0,), (1, 4, 5, 13), (0,) * 50):  # all of them in the west
        release = draw_release(
            small_tally(4, rows),
            domain,
            budget=Budget(NANO),
            method=Cascade(),
            unit=PrivacyUnit(),
            covariate=known(4, COVARIATES["uneven"]),
            boundary=boundary if bounded else None,
        )
        rasters.add(release.record.covariate.raster.tobytes())
    assert len(rasters) == 1
    assert (np.array(COVARIATES["uneven"], np.uint16).tobytes() in rasters) != bounded
