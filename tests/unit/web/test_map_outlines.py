"""Outlines of countries: around the release, in its CRS, and none where they have no place."""

import numpy as np
import shapely

import psd
from psd.web.map_outlines import country_outlines

LOCAL = 'LOCAL_CS["site",UNIT["metre",1]]'


def lines(domain):
    return shapely.MultiLineString(country_outlines(domain))


def test_the_coast_of_korea_is_where_it_is_in_the_crs_of_the_release():
    degrees = psd.Domain(bounds=(126.4, 37, 127.6, 38))
    found = lines(degrees)
    assert 1 < found.length < 30
    assert shapely.box(125.6, 36.2, 128.4, 38.8).covers(found)
    # Incheon lies at the coast.
    assert found.distance(shapely.Point(126.6, 37.45)) < 0.15
    metres = psd.Domain(bounds=(14_070_785, 4_439_107, 14_204_369, 4_579_426), crs="EPSG:3857")
    there = shapely.transform(lines(metres), lambda xy: xy / 111_319.49)
    assert abs(there.bounds[0] - found.bounds[0]) < 0.3


def test_the_world_has_the_coarser_outlines():
    world = psd.Domain(bounds=(-180, -90, 180, 90))
    found = country_outlines(world)
    assert 1_000 < sum(len(line) for line in found) < 10_000
    assert all(np.abs(np.array(line)[:, 0]).max() <= 180 for line in found)


def test_lines_do_not_jump_across_the_antimeridian():
    fiji = psd.Domain(bounds=(2_900_000, -2_300_000, 3_600_000, -1_700_000), crs="EPSG:3832")
    found = lines(fiji)
    assert found.length > 100_000
    assert max(part.length / len(part.coords) for part in found.geoms) < 200_000


def test_a_plane_without_a_place_on_earth_has_none():
    assert country_outlines(psd.Domain(bounds=(0, 0, 100, 100), crs=LOCAL)) == []
