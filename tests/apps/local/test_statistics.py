"""Every statistic on the release of a campaign."""

import numpy as np
import pytest

from psd.apps.local.campaign_design import design
from psd.release.post_processing import PostProcessing
from psd.statistics.raster import density_raster
from support.local import local_release, places
from support.releases import changed

pytestmark = pytest.mark.deep


@pytest.mark.parametrize("density", ["uniform", "smooth"])
@pytest.mark.parametrize("estimate", ["least-squares", "signed"])
def test_statistics_of_a_local_release(estimate, density):
    local = local_release(design((0, 0, 8, 4), 2, 3000, rounds=1), *places(3000))
    release = changed(local, post_processing=PostProcessing(estimate=estimate, density=density))
    assert np.isfinite(density_raster(release.index.fit, 3, 5).error).all()
    halves = [(0, 0, 3.3, 4), (3.3, 0, 8, 4)]
    whole = release.query([(0, 0, 8, 4)]).table.loc[0]
    total = release.query(halves).joint().total()
    assert total.perturbation_error == pytest.approx(whole["perturbation_error"], rel=1e-9)
    top = release.query(top=2, size=(3, 3), draws=20).table
    assert ((top.probability >= 0) & (top.probability <= 1)).all()
    breaks = release.query(quantiles=True, classes=3, size=(4, 4), draws=5).table
    assert (breaks.lower <= breaks.upper).all()
    rings = release.query([(2, 1, 4, 3), (1, 0.5, 6.5, 4), (0, 0, 8, 4)]).nested()
    assert (rings.ring >= 0).all()
    other = local_release(design((0, 0, 8, 4), 1, 3000, rounds=1), *places(3000, seed=2))
    assert np.isfinite(release.query(halves, difference=other).table["error"]).all()
