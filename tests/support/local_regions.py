"""Campaigns of named regions that tests share."""

import geopandas as gpd
import numpy as np
import shapely

import psd
from psd.apps.local.campaign_design import design_regions
from psd.regions.polygon_hierarchy import hierarchy_from_polygons

BOXES = [(0.0, 0.0, 8.0, 4.0), (126.76, 37.41, 127.19, 37.71), (-7.6, 49.8, 1.9, 60.9)]


def wards(bounds=BOXES[0], number=40, seed=1):
    """Wards in two districts, one of two parts, one with a hole, and a gap."""
    west, south, east, north = bounds
    size = np.array([east - west, north - south])
    points = np.random.default_rng(seed).uniform(0, 1, (number, 2)) * size + [west, south]
    box = shapely.box(*bounds)
    cells = shapely.voronoi_polygons(shapely.MultiPoint(points), extend_to=box)
    cells = shapely.intersection(shapely.get_parts(cells), box)
    two = shapely.union_all([cells[0], max(cells[1:], key=lambda c: shapely.distance(c, cells[0]))])
    hole = shapely.difference(cells[5], shapely.buffer(shapely.centroid(cells[5]), size.min() / 99))
    keep = [cell for cell in cells[1:-1] if not cell.equals(cells[5]) and not two.covers(cell)]
    shapes = [two, hole, *keep]
    half = west + size[0] / 2
    district = ["east" if shapely.centroid(shape).x > half else "west" for shape in shapes]
    ids = [f"w{number}" for number in range(len(shapes))]
    return gpd.GeoDataFrame({"ward": ids, "district": district}, geometry=shapes, crs=4326)


def region_campaign(bounds=BOXES[0], **changes):
    domain = psd.Domain(bounds=bounds)
    table = wards(bounds)
    regions = hierarchy_from_polygons(
        table, domain, ids="ward", parents=["district"], gaps="outside"
    )
    return design_regions(regions, **{"epsilon": 2, "devices": 20_000, **changes})
