"""Plots of plans of regions: pictures, and pages whose names of levels are only text."""

import geopandas as gpd
import pytest
import shapely

import psd
from psd.apps.planning.figures import plot_region_plan
from psd.errors import ParameterError
from psd.regions.polygon_hierarchy import hierarchy_from_polygons

DOMAIN = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857")
pytestmark = pytest.mark.deep


@pytest.fixture(scope="module")
def expected():
    """A plan of two levels, of which one has a name that is no plain word."""
    shapes = [shapely.box(x, 0, x + 2, 8) for x in (0, 2, 4, 6)]
    rows = {"ward": list("abcd"), "<b>$x_": ["w", "w", "e", "e"]}
    table = gpd.GeoDataFrame(rows, geometry=shapes, crs="EPSG:3857")
    regions = hierarchy_from_polygons(table, DOMAIN, ids="ward", parents=["<b>$x_"])
    options = {"domain": DOMAIN, "epsilon": ["0.1", "1"], "method": "none"}
    return psd.apps.planning.plan_regions(regions, population=[0, 40, 900, 20_000], **options)


def test_pictures_and_a_page_that_has_every_number_of_the_table(expected, tmp_path):
    with pytest.raises(ParameterError, match=r"must end in \.png, \.svg or \.html"):
        plot_region_plan(expected, tmp_path / "p.pdf")
    assert not any(tmp_path.iterdir())
    for name in ("p.png", "p.svg", "p.html"):
        plot_region_plan(expected, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 5_000
    page = (tmp_path / "p.html").read_text()
    assert "&lt;b&gt;$x_" in page
    assert "<b>$x_" not in page
    assert "20,940 records; each record is protected." in page
    for value in expected.table["error"]:
        assert f">{value:,.1f}<" in page
