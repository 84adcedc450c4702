"""Rasters from files: arrays, ASCII grids, and GeoTIFF where rasterio is installed."""

import sys

import numpy as np
import pytest
from pyproj import CRS

import psd
from psd.errors import DomainError, InputDataError, MissingExtraError
from psd.space.covariate import Covariate
from psd.space.raster_files import read_raster
from support.tables import refused, refused_calls

DOMAIN = psd.Domain(bounds=(0, 0, 4, 2), crs="EPSG:3857", lattice=(4, 2))
VALUES = np.array([[1.0, 2, 3, 4], [5, 6, 7, 8]])
HEAD = "NCOLS 4\nNROWS 2\nXLLCORNER 0\nYLLCORNER -1.5\nCELLSIZE 0.5\nNODATA_value -9999\n"
ESRI_WGS84 = CRS("EPSG:4326").to_wkt("WKT1_ESRI")


def grid(folder, text, crs="EPSG:3857"):
    path = folder / "land.asc"
    path.write_text(text)
    if crs:
        path.with_suffix(".prj").write_text(crs)
    return path


def test_arrays_lie_over_the_bounds(tmp_path):
    np.save(tmp_path / "land.npy", VALUES)
    values, bounds = read_raster(tmp_path / "land.npy", DOMAIN)
    assert bounds is None
    assert np.array_equal(values, VALUES)
    raster = Covariate.from_raster(values, DOMAIN, bounds=bounds, size=2).raster
    assert (raster[1] < raster[0]).all()  # the first row of the file is the northern one


def test_grids_have_bounds_and_places_without_data(tmp_path):
    values, bounds = read_raster(grid(tmp_path, HEAD + "1 2 3 4\n5 6\n7 -9999\n"), DOMAIN)
    assert values.tolist() == [[1, 2, 3, 4], [5, 6, 7, 0]]
    assert bounds == (0, -1.5, 2, -0.5)


def test_a_crs_in_the_words_of_another_program_is_the_same_crs(tmp_path):
    domain = psd.Domain(bounds=(0, 0, 4, 2))
    assert read_raster(grid(tmp_path, HEAD + "1 " * 8, ESRI_WGS84), domain)[0].shape == (2, 4)
    with pytest.raises(DomainError, match="warp it first"):
        read_raster(grid(tmp_path, HEAD + "1 " * 8, ESRI_WGS84), DOMAIN)


def test_other_files_are_refused(tmp_path, subtests):
    land = HEAD + "1 " * 8
    table = [
        ("no CRS", land, None),
        ("must be a coordinate reference", land, "land"),
        ("warp it", land, "EPSG:4326"),
    ]

    def use(text, crs="EPSG:3857"):
        return read_raster(grid(tmp_path, text, crs), DOMAIN)

    refused_calls(subtests, DomainError, table, use)
    no_size = HEAD.replace("0.5", "-1") + "1 " * 8
    table = [
        ("as a raster", HEAD + "1 " * 7, HEAD + "x " * 8, no_size, "\u00e9" * 40),
        ("has no ncols", "1 2 3", ""),
    ]
    refused(subtests, InputDataError, table, use)
    np.save(tmp_path / "land.npy", np.array([{}]), allow_pickle=True)
    for name, words in (("land.npy", "as a raster"), ("no.npy", "does not exist")):
        with subtests.test(name), pytest.raises(InputDataError, match=words):
            read_raster(tmp_path / name, DOMAIN)


def test_geotiff_without_rasterio_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rasterio", None)
    (tmp_path / "land.tif").write_bytes(b"II*\0")
    with pytest.raises(MissingExtraError, match=r"psd-publisher\[raster\]"):
        read_raster(tmp_path / "land.tif", DOMAIN)


@pytest.fixture
def geotiff(tmp_path):
    import rasterio
    from rasterio.transform import Affine, from_bounds

    def write(crs="EPSG:3857", turned=False, nodata=None):
        rows, columns = VALUES.shape
        place = Affine(1, 0.2, 0, 0, -1, 2) if turned else from_bounds(0, 0, 4, 2, columns, rows)
        shape = {"width": columns, "height": rows, "count": 1, "dtype": VALUES.dtype}
        shape |= {"driver": "GTiff", "crs": crs, "transform": place, "nodata": nodata}
        with rasterio.open(tmp_path / "land.tif", "w", **shape) as image:
            image.write(VALUES, 1)
        return tmp_path / "land.tif"

    return write


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_geotiff_is_read_with_its_bounds_and_others_are_refused(geotiff, tmp_path):
    values, bounds = read_raster(geotiff(nodata=8), DOMAIN)
    assert values.tolist() == [[1, 2, 3, 4], [5, 6, 7, 0]]
    assert bounds == (0, 0, 4, 2)
    with pytest.raises(DomainError, match="warp it first"):
        read_raster(geotiff(crs="EPSG:4326"), DOMAIN)
    with pytest.raises(DomainError, match="no CRS"):
        read_raster(geotiff(crs=None), DOMAIN)
    with pytest.raises(InputDataError, match="rotated"):
        read_raster(geotiff(turned=True), DOMAIN)
    (tmp_path / "other.tif").write_bytes(b"II*\0")
    with pytest.raises(InputDataError, match="as a raster"):
        read_raster(tmp_path / "other.tif", DOMAIN)
