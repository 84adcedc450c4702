"""Where bounds lie, in words."""

import pytest

from psd.space.countries import border_arcs, country_shapes
from psd.space.domain import Domain, place_text

SITE = 'LOCAL_CS["site",UNIT["metre",1]]'


@pytest.mark.parametrize(
    ("bounds", "crs", "told"),
    [
        ((-0.5, 51, 0.5, 52), "EPSG:4326", "United Kingdom; middle 51.5 N 0 E"),
        ((500_000, 150_000, 560_000, 200_000), "EPSG:27700", "United Kingdom; middle 51.5 N"),
        ((2_900_000, -2_300_000, 3_600_000, -1_700_000), "EPSG:3832", "Fiji; middle 17.8 S 179"),
        ((2, 49, 8, 52), "EPSG:4326", "France, Germany, Belgium and 2 more; middle 50.5 N 5 E"),
        # Exchanged coordinates.
        ((51, -0.5, 52, 0.5), "EPSG:4326", "at sea, 620 km from Somalia; middle 0 N 51.5 E"),
        ((0, 0, 100, 100), SITE, ""),
        ((0, 10, 40, 60), "IAU_2015:30100", ""),
    ],
)
def test_countries_and_the_middle_are_named(bounds, crs, told):
    found = place_text(Domain(bounds=bounds, crs=crs))
    assert found.startswith(told)
    assert bool(found) == bool(told)


def test_the_world_is_named_too():
    assert "more; middle 0 N 0 E" in place_text(Domain(bounds=(-180, -90, 180, 90)))
    web = Domain(bounds=(-2e7, -2e7, 2e7, 2e7), crs="EPSG:3857")
    assert "more" in place_text(web)


def test_borders_and_countries_are_files_of_the_package():
    names, shapes = country_shapes()
    assert len(names) == len(shapes) > 200
    assert 100 < len(border_arcs(coarse=True)) < len(border_arcs(coarse=False))
