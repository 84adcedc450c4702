"""Every statistic on a release of every registered method."""

import numpy as np
import pytest
import shapely

from psd.privacy.budget import Budget
from psd.privacy.loss import NANO
from psd.privacy.unit import PrivacyUnit
from psd.publish.drawing import draw_release
from psd.release.post_processing import PostProcessing
from psd.statistics.raster import density_raster
from psd.testing import small_domain, small_tally
from support.privacy.replay import small_cases

pytestmark = pytest.mark.deep

SIDE = 8
ROWS = {"empty": (), "one place": (5,) * 900, "spread": tuple(range(SIDE * SIDE)) * 4}
METHODS = small_cases()


def built(method, rows, view, epsilon=NANO):
    domain = small_domain(SIDE)
    tally = small_tally(SIDE, rows)
    return draw_release(
        tally,
        domain,
        budget=Budget(epsilon),
        method=method,
        unit=PrivacyUnit(),
        post_processing=view,
    )


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("method", METHODS)
def test_statistics_of_every_method(method, rows):
    for estimate in ("least-squares", "posterior", "signed"):
        release = built(method, rows, PostProcessing(estimate=estimate))
        raster = density_raster(release.index.fit, 3, 5)
        assert raster.count.sum() == pytest.approx(release.index.fit.estimates.count[0], abs=1e-6)
        assert np.isfinite(raster.error).all()
        halves = [(0, 0, 3.3, SIDE), (3.3, 0, SIDE, SIDE)]
        total = release.query(halves).joint().total()
        whole = release.query([(0, 0, SIDE, SIDE)]).table.loc[0]
        assert total.perturbation_error == pytest.approx(whole["perturbation_error"], rel=1e-9)
        if estimate != "signed":  # its answers alone are cut off at 0
            assert total.estimate == pytest.approx(release.total, abs=1e-6)
        top = release.query(top=2, size=(3, 3), draws=20).table
        assert ((top.probability >= 0) & (top.probability <= 1)).all()
        assert len(release.query(top=1, draws=5).table) == 1
        breaks = release.query(quantiles=True, classes=3, size=(4, 4), draws=5).table
        assert (np.diff(breaks.density) >= 0).all()
        assert (breaks.lower <= breaks.upper).all()
        rings = release.query([(2, 2, 4, 5), (1, 1, 6.5, 7), (0, 0, SIDE, SIDE)]).nested()
        assert (rings.ring >= 0).all()
        assert rings.ring.sum() == pytest.approx(rings.estimate[2], abs=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_two_releases_of_every_method(method):
    # Of one epsilon, a few counts may be the same by chance, and are then taken for one release.
    a, b = (
        built(method, ROWS["spread"], PostProcessing(), epsilon) for epsilon in (NANO, NANO // 2)
    )
    shapes = [shapely.box(0, 0, 4, 4), shapely.Point(4, 4).buffer(3)]
    table = a.query(shapes, difference=b, crs=a.domain.crs).table
    assert table.difference.to_numpy() == pytest.approx((table["first"] - table["second"]).tolist())
    squares = sum(release.query(shapes, crs=a.domain.crs).table.error ** 2 for release in (a, b))
    assert table.error.to_numpy() ** 2 == pytest.approx(squares.to_numpy())
    ratios = a.query(shapes, difference=b, ratio=True, crs=a.domain.crs).table
    known = ratios.ratio.notna()
    assert (ratios.lower[known] <= ratios.ratio[known]).all()
    assert (ratios.ratio[known] <= ratios.upper[known]).all()
