"""Files of regions that may not be read."""

import pytest

from psd.errors import InputDataError
from psd.space.domain import Domain
from psd.space.raster_files import read_raster
from psd.space.region_files import read_polygons


@pytest.mark.parametrize("name", ["own.vrt", "own.gpkg"])
def test_a_virtual_data_set_is_refused(tmp_path, name):
    (tmp_path / "private.csv").write_text("id,lon,lat\nlone,1,1\n")
    (tmp_path / name).write_text(
        '<OGRVRTDataSource><OGRVRTLayer name="private">'
        f"<SrcDataSource>{tmp_path}/private.csv</SrcDataSource></OGRVRTLayer></OGRVRTDataSource>"
    )
    with pytest.raises(InputDataError, match="virtual data set"):
        read_polygons(tmp_path / name)


@pytest.mark.deep
def test_a_virtual_raster_is_refused(tmp_path):
    (tmp_path / "own.tif").write_text('<VRTDataset rasterXSize="1" rasterYSize="1"/>')
    with pytest.raises(InputDataError, match="virtual data set"):
        read_raster(tmp_path / "own.tif", Domain(bounds=(0, 0, 1, 1)))
