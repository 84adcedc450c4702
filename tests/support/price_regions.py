"""Two public regions beside each other, for choices of prices."""

import geopandas as gpd
import shapely

from psd.regions.polygon_hierarchy import hierarchy_from_polygons


def two_columns(domain):
    """Regions west and east, each half of a domain."""
    west, south, east, north = domain.bounds
    middle = (west + east) / 2
    shapes = [shapely.box(middle, south, east, north), shapely.box(west, south, middle, north)]
    table = gpd.GeoDataFrame({"id": ["east", "west"]}, geometry=shapes, crs=domain.crs)
    return hierarchy_from_polygons(table, domain, ids="id")
