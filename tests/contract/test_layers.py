"""Which module may reach which: the public side never the points, a method never a mechanism."""

import subprocess
import sys
from pathlib import Path

import pytest

import psd
from psd.testing.method import private_members

PACKAGE = Path(psd.__file__).parent

# The wall: what holds points or draws on them, and what reads a release alone.
PRIVATE = """
    ingest mechanisms curator ledger publish
    apps.choosing apps.streams apps.evaluation apps.planning apps.auditing apps.spark
    apps.suggest.training
"""


def test_decompositions_touch_no_private_member():
    paths = [*(PACKAGE / "decompositions").glob("*.py")]
    assert len(paths) > 9
    assert {path.name: private_members(path.read_text()) for path in paths} == {
        path.name: [] for path in paths
    }
    planted = "def build(self, curator):\n    return curator._layers[0]"
    assert private_members(planted) == ["_layers"]


@pytest.mark.deep
def test_public_side_loads_without_the_private_side():
    """The same at run time, lazy imports of a whole session included."""
    script = f"""
import sys, psd
domain = psd.Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857")
tree = psd.decompositions.grid_tree(domain, 4)
release = psd.Release.from_counts(tree, list(range(16)), 1.0, domain=domain)
import tempfile, shapely
with tempfile.TemporaryDirectory() as folder:
    release.save(folder + "/r.psd.parquet")
    release = psd.load(folder + "/r.psd.parquet")
    for suffix in ("gpkg", "parquet", "geojson", "csv"):
        release.export(folder + "/cells." + suffix)
release.query([(0, 0, 1, 1)]).table; release.query(shapely.box(0, 0, 1, 1), crs=domain.crs).table
release.to_geopandas("all")
release.query([(0, 0, 1, 1)]).joint().total()
release.query([(0, 0, 1, 1), (0, 0, 2, 2)]).nested()
release.query(top=2, size=(3, 3)); release.query(quantiles=True, size=(3, 3))
import psd.statistics.raster; psd.statistics.raster.density_raster(release.index.fit, 3, 3)
import geopandas, numpy, psd.space.boundary
west = geopandas.GeoSeries([shapely.box(0, 0, 2, 4)], crs=domain.crs)
psd.space.boundary.Boundary.from_polygons(west, domain)
psd.Covariate.from_polygons(west, domain, size=8).mass(numpy.array([[0, 0, 1, 1]]))
psd.Covariate.from_raster(numpy.eye(4), domain, size=8)
private = {PRIVATE!r}.split()
bad = [m for m in sys.modules if any(f"{{m}}.".startswith(f"psd.{{p}}.") for p in private)]
sys.exit(str(bad) if bad else 0)
"""
    subprocess.run([sys.executable, "-c", script], check=True)
