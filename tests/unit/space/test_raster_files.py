"""Rasters from files: arrays, ASCII grids, and GeoTIFF where rasterio is installed."""

import sys

import numpy as np
import pytest

import psd
from psd.errors import DomainError, InputDataError, MissingExtraError
from psd.space.covariate import Covariate
from psd.space.raster_files import read_raster

DOMAIN = psd.Domain(bounds=(0, 0, 4, 2), crs="EPSG:3857", lattice=(4, 2))
VALUES = np.array([[1.0, 2, 3, 4], [5, 6, 7, 8]])
HEAD = "NCOLS 4\nNROWS 2\nXLLCORNER 0\nYLLCORNER -1.5\nCELLSIZE 0.5\nNODATA_value -9999\n"
ESRI_WGS84 = (
    'GEOGCS["GCS_WGS_1984",DATUM["D_WGS_1984",SPHEROID["WGS_1984",6378137.0,298.257223563]],'
    'PRIMEM["Greenwich",0.0],UNIT["Degree",0.0174532925199433]]'
)


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


@pytest.mark.parametrize(
    ("text", "crs", "error", "told"),
    [
        pytest.param(HEAD + "1 " * 8, None, DomainError, "no CRS", id="no CRS"),
        pytest.param(
            HEAD + "1 " * 8, "land", DomainError, "must be a coordinate reference", id="no such CRS"
        ),
        pytest.param(HEAD + "1 " * 8, "EPSG:4326", DomainError, "warp it", id="other CRS"),
        pytest.param(HEAD + "1 " * 7, "EPSG:3857", InputDataError, "as a raster", id="too few"),
        pytest.param(HEAD + "x " * 8, "EPSG:3857", InputDataError, "as a raster", id="text"),
        pytest.param("1 2 3", "EPSG:3857", InputDataError, "has no ncols", id="no head"),
        pytest.param("", "EPSG:3857", InputDataError, "has no ncols", id="empty"),
        pytest.param(
            HEAD.replace("0.5", "-1") + "1 " * 8,
            "EPSG:3857",
            InputDataError,
            "as a raster",
            id="cell",
        ),
        pytest.param("\u00e9" * 40, "EPSG:3857", InputDataError, "as a raster", id="no ASCII"),
    ],
)
def test_other_grids_are_refused(tmp_path, text, crs, error, told):
    with pytest.raises(error, match=told):
        read_raster(grid(tmp_path, text, crs), DOMAIN)


def test_arrays_of_objects_are_not_loaded(tmp_path):
    np.save(tmp_path / "land.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(InputDataError, match="as a raster"):
        read_raster(tmp_path / "land.npy", DOMAIN)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(InputDataError, match="does not exist"):
        read_raster(tmp_path / "land.npy", DOMAIN)


def test_geotiff_without_rasterio_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rasterio", None)
    (tmp_path / "land.tif").write_bytes(b"II*\0")
    with pytest.raises(MissingExtraError, match=r"psd-publisher\[raster\]"):
        read_raster(tmp_path / "land.tif", DOMAIN)


@pytest.fixture
def geotiff(tmp_path):
    rasterio = pytest.importorskip("rasterio", reason="the extra raster is not installed")
    from rasterio.transform import Affine, from_bounds

    def write(values=VALUES, crs="EPSG:3857", turned=False, nodata=None):
        rows, columns = values.shape
        place = Affine(1, 0.2, 0, 0, -1, 2) if turned else from_bounds(0, 0, 4, 2, columns, rows)
        path = tmp_path / "land.tif"
        shape = {"width": columns, "height": rows, "count": 1, "dtype": values.dtype}
        with rasterio.open(
            path, "w", driver="GTiff", crs=crs, transform=place, nodata=nodata, **shape
        ) as image:
            image.write(values, 1)
        return path

    return write


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_geotiff_is_read_with_its_bounds(geotiff):
    values, bounds = read_raster(geotiff(nodata=8), DOMAIN)
    assert values.tolist() == [[1, 2, 3, 4], [5, 6, 7, 0]]
    assert bounds == (0, 0, 4, 2)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_other_geotiffs_are_refused(geotiff, tmp_path):
    with pytest.raises(DomainError, match="warp it first"):
        read_raster(geotiff(crs="EPSG:4326"), DOMAIN)
    with pytest.raises(DomainError, match="no CRS"):
        read_raster(geotiff(crs=None), DOMAIN)
    with pytest.raises(InputDataError, match="rotated"):
        read_raster(geotiff(turned=True), DOMAIN)
    (tmp_path / "other.tif").write_bytes(b"II*\0")
    with pytest.raises(InputDataError, match="as a raster"):
        read_raster(tmp_path / "other.tif", DOMAIN)
