"""GeoTIFF: what comes back, and the extra it needs."""

import numpy as np
import pytest

import psd
from psd.errors import MissingExtraError
from psd.statistics.raster import density_raster
from support.trees import SOUTH_UP, grid_release


@pytest.mark.deep
def test_geotiff_comes_back(tmp_path):
    import rasterio

    domain = psd.Domain(bounds=(9e5, 19e5, 10e5, 20e5), crs="EPSG:5179", lattice=(3, 3))
    tree = psd.decompositions.grid_tree(domain, 3)
    release = psd.Release.from_counts(tree, SOUTH_UP, 1.0, domain=domain)
    release.export(tmp_path / "r.tif", size=(6, 9))
    expected = density_raster(release.index.fit, 6, 9)
    with rasterio.open(tmp_path / "r.tif") as image:
        assert image.descriptions == ("count", "density", "error")
        assert image.units == ("records", "records per km2", "records")
        assert np.array_equal(image.read(1), expected.count)
        assert np.array_equal(image.read(2), expected.density)
        assert np.array_equal(image.read(3), expected.error)
        assert tuple(image.bounds) == release.domain.bounds
        assert image.crs.to_epsg() == 5179
        assert np.isnan(image.nodata)
        assert image.read(1).sum() == pytest.approx(release.total, rel=1e-9)
        assert image.tags()["epsilon"] == "1"
        assert image.tags()["source"].startswith("given; given: psd did not draw")
        assert set(image.tags()) <= {
            "epsilon", "unit_of_privacy", "source", "counts", "method", "library", "AREA_OR_POINT",
            "digest", "relative_error", "reliable", "quality", "unreliable", "OVR_RESAMPLING_ALG",
        }  # fmt: skip


def test_a_geotiff_without_rasterio(tmp_path, monkeypatch):
    import sys

    monkeypatch.setattr("psd.export._release._raster_of", lambda *_: pytest.fail("began"))
    monkeypatch.setattr("psd.export._release._cells_of", lambda *_: pytest.fail("began"))
    for package, extra, ending in (("rasterio", "raster", "tif"), ("openpyxl", "xlsx", "xlsx")):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(MissingExtraError, match=rf"{package}; run pip install '\.\[{extra}\]'"):
            grid_release(SOUTH_UP).export(tmp_path / f"r.{ending}")
    assert not list(tmp_path.iterdir())
