"""Which texts are a CRS, and which would have PROJ open a file."""

import json
import math
import os
from itertools import product

import geopandas as gpd
import pytest
from pyproj import CRS
from pyproj.exceptions import ProjError
from shapely import Point, box

import psd
from psd.errors import DomainError
from psd.ingest.sources import Columns, read
from psd.space.boundary import Boundary, bounds_of
from psd.space.crs import (
    axis_labels,
    check_plane_crs,
    explain_proj_errors,
    half_turn,
    metres_per_unit,
    parse_crs,
    prime_meridian,
    radians_per_unit,
)
from psd.space.regions import regions_table, to_release_crs
from support.tables import refused

FILE = "/nowhere/shifts.gsb"
LONLAT = CRS("EPSG:4326").to_wkt()
UTM = "+proj=utm +zone=31 +ellps=intl"
BOUND = CRS(f"{UTM} +nadgrids={FILE} +type=crs")
HEIGHTS = CRS(f"{UTM} +geoidgrids={FILE} +vunits=m +type=crs")
MERCATOR = (
    "+proj=merc +a=6378137 +b=6378137 +lat_ts=0 +lon_0=0 +x_0=0 +y_0=0 +k=1 +units=m "
    "+nadgrids=@null +wktext +no_defs"
)
TURNED = "+proj=ob_tran +o_proj=longlat +o_lon_p=-162 +o_lat_p=39.25 +lon_0=180 +type=crs"
EXTENDED = 'PROJCS["m",GEOGCS["g",DATUM["d",SPHEROID["s",6378137,0]],PRIMEM["Greenwich",0],\
UNIT["degree",0.0174532925199433]],PROJECTION["Mercator_1SP"],PARAMETER["central_meridian",0],\
PARAMETER["scale_factor",1],PARAMETER["false_easting",0],PARAMETER["false_northing",0],\
UNIT["metre",1],EXTENSION["PROJ4","{}"]]'
SHIFTED = 'GEOGCS["x",DATUM["d",SPHEROID["s",6378137,298.2],EXTENSION["PROJ4_GRIDS","{}"]],\
PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]]'


def derived(method, parameter="o_lon_p", value=-162):
    """A definition in JSON with another method, or another parameter."""
    found = CRS(TURNED).to_json_dict()
    found["conversion"]["method"]["name"] = method
    found["conversion"]["parameters"][0] |= {"name": parameter, "value": value}
    return json.dumps(found)


STEPS = f"PROJ-based operation method: +proj=tinshift +file={FILE}"
FILES = {
    "grids of shifts": f"{UTM} +nadgrids={FILE} +type=crs",
    "grids that may be missing": f"{UTM} +nadgrids=@{FILE}",
    "grids after those of nothing": f"{UTM} +nadgrids=@null,{FILE}",
    "grids twice": f"{UTM} +nadgrids=@null +nadgrids={FILE}",
    "grids of heights": f"{UTM} +geoidgrids={FILE} +vunits=m",
    "spaces around the sign": f"{UTM} +nadgrids = {FILE}",
    "no plus": f"proj=utm zone=31 nadgrids={FILE}",
    "a list of definitions": f"+init={FILE}:100",
    "one beside a projection": f"+proj=longlat +init={FILE}:100 +type=crs",
    "triangles": f"+proj=tinshift +file={FILE} +type=crs",
    "a model": f"+proj=defmodel +model={FILE} +type=crs",
    "a pipeline": f"+proj=pipeline +step +proj=hgridshift +grids={FILE} +type=crs",
    "WKT": BOUND.to_wkt(),
    "WKT on lines": BOUND.to_wkt(pretty=True),
    "WKT of heights": HEIGHTS.to_wkt(),
    "JSON": BOUND.to_json(),
    "JSON of heights": HEIGHTS.to_json(),
    "JSON that hides a letter": derived(STEPS).replace("file=", "f\\u0069le="),
    "a method": derived(STEPS),
    "a method without a file": derived("PROJ-based operation method: +proj=noop"),
    "a method with more": derived(f"PROJ ob_tran o_proj=longlat +nadgrids={FILE}"),
    "a parameter with more": derived("PROJ airy", f"nadgrids={FILE} +lon_0"),
    "an extension of old WKT": EXTENDED.format(f"{MERCATOR} +nadgrids={FILE}"),
    "grids of old WKT": SHIFTED.format(FILE),
    "a datum of that name": LONLAT.replace("World Geodetic System 1984", f"x nadgrids={FILE}"),
}  # fmt: skip
PLAIN = {
    "a code": "EPSG:5179",
    "two codes": "EPSG:25832+5783",
    "a code of Esri": "ESRI:54009",
    "a URN": "urn:ogc:def:crs:OGC:1.3:CRS84",
    "a name": "WGS 84 / UTM zone 31N",
    "an old code": "+init=epsg:4326",
    "WKT": CRS("EPSG:27700").to_wkt(),
    "old WKT": CRS("EPSG:3857").to_wkt("WKT1_GDAL"),
    "WKT of Esri": CRS("EPSG:2154").to_wkt("WKT1_ESRI"),
    "old WKT of shifts by nothing": SHIFTED.format("@null"),
    "JSON": CRS("EPSG:27700").to_json(),
    "a projection": UTM,
    "a datum by three numbers": f"{UTM} +towgs84=1,2,3",
    "the web's": MERCATOR,
    "a sphere": "+proj=longlat +a=6378137 +b=6378137 +nadgrids=@null",
    "turned poles": TURNED,
    "a local one": 'LOCAL_CS["mine",UNIT["metre",1]]',
}


def test_a_crs_that_names_a_file_is_refused(subtests):
    for what, crs in FILES.items():
        for use in (parse_crs, lambda crs: psd.Domain(bounds=(0, 0, 1, 1), crs=crs)):
            told = pytest.raises(DomainError, match=r"^crs must not name files[^\n]*\Z")
            with subtests.test(what), told:
                use(crs)
    # One that a layer brings too.
    table = [("not name files", BOUND, HEIGHTS, CRS(EXTENDED.format(FILES["grids of shifts"])))]
    refused(subtests, DomainError, table, parse_crs)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
def test_a_crs_of_numbers_is_what_it_was(subtests):
    for what, crs in PLAIN.items():
        with subtests.test(what):
            assert parse_crs(crs).to_wkt() == CRS(crs).to_wkt()
    crs = gpd.GeoSeries([Point(0, 0)], crs=5179).crs
    assert parse_crs(crs) == crs
    # "epsg:4326" is not the known text, so it is parsed.
    assert check_plane_crs("EPSG:4326") == check_plane_crs("epsg:4326") == ("EPSG:4326", True)


def test_what_is_no_crs_is_none_and_nobody_waits_for_a_queue(subtests, tmp_path):
    table = [("a coordinate reference system", "", "EPSG:0", "\udc80", "{" * 9, "+proj=none")]
    refused(subtests, DomainError, table, parse_crs)
    os.mkfifo(tmp_path / "queue")
    for text in (f"+proj=tinshift +file={tmp_path}/queue", f"+init={tmp_path}/queue:1"):
        with pytest.raises(DomainError, match="not name files"):
            parse_crs(text)
    told = r"^a region cannot be transformed to EPSG:4326; is one"
    with pytest.raises(DomainError, match=told), explain_proj_errors("a region", "EPSG:4326"):
        raise ProjError("words of PROJ")
    with explain_proj_errors("a region", "EPSG:4326"):
        pass


LOCAL = psd.Domain(bounds=(0, 0, 1, 1), crs=PLAIN["a local one"])


def test_polygons_come_to_a_domain_by_a_way_that_is_known(subtests):
    square = gpd.GeoSeries([box(0, 0, 1, 1)])
    table = [
        ("one of the two a local CRS", square.set_crs("EPSG:4326")),
        ("not name files", square.set_crs(BOUND)),
    ]
    for use in (
        lambda shapes: Boundary.from_polygons(shapes, LOCAL),
        lambda shapes: bounds_of(shapes, LOCAL.crs),
        lambda shapes: to_release_crs(regions_table(shapes), LOCAL),
    ):
        refused(subtests, DomainError, table, use)


TIMES = (
    'TIMECRS["t",TDATUM["u",CALENDAR["proleptic Gregorian"],TIMEORIGIN[1970-01-01T00:00:00Z]],'
    'CS[TemporalDateTime,1],AXIS["Time (T)",future]]'
)


def test_a_crs_without_coordinates_x_and_y_is_refused_with_its_reason(subtests):
    kinds = {
        "EPSG:4978": "centre of the earth",
        "+proj=geocent +ellps=bessel +towgs84=1,2,3": "centre of the earth",
        "EPSG:5773": "heights alone",
        TIMES: "which is a Temporal CRS",
    }
    uses = {
        "a domain": (lambda crs: psd.Domain(bounds=(0, 0, 1, 1), crs=crs), "^crs must"),
        "columns": (lambda crs: Columns(input_crs=crs), "^input_crs must"),
        "geometries": (
            lambda crs: list(read(one_point(crs), Columns(), psd.Domain(bounds=(0, 0, 1, 1)))),
            "^the GeoDataFrame has a CRS that is refused: crs must",
        ),
        "regions": (lambda crs: regions_table(one_point(crs)), "^crs must"),
    }
    for (crs, reason), (use, start) in product(kinds.items(), uses.values()):
        told = pytest.raises(DomainError, match=f"{start} have coordinates x and y, .*{reason}")
        with subtests.test(crs=crs, start=start), told:
            use(crs)
    for crs in ("EPSG:4979", "EPSG:7415", "EPSG:4326+5773"):  # heights play no part
        assert parse_crs(crs).name


def one_point(crs):
    return gpd.GeoDataFrame(geometry=[Point(0.5, 0.5)], crs=crs)


def test_a_projection_that_proj_cannot_compute_is_refused_with_its_cause():
    # A method that no version of PROJ has: what one cannot compute, the next may.
    named = CRS("ESRI:54099").to_wkt().replace(',ID["ESRI",54099]', "")
    unknown = named.replace('METHOD["Adams_Square_II"]', 'METHOD["Square of Nowhere"]')
    assert unknown != named
    with pytest.raises(DomainError, match="or one whose projection PROJ cannot compute"):
        psd.Domain(bounds=(-5e6, -5e6, 5e6, 5e6), crs=unknown)


def test_units_of_coordinates_are_those_of_the_crs():
    assert axis_labels("EPSG:4326") == ("longitude (degrees)", "latitude (degrees)")
    assert axis_labels("EPSG:27700") == ("x (metres)", "y (metres)")
    assert metres_per_unit("EPSG:3857") == 1
    assert metres_per_unit("EPSG:2263") == pytest.approx(0.304801, abs=1e-6)  # US feet
    assert math.degrees(radians_per_unit("EPSG:4807")) == pytest.approx(0.9)  # grads


def test_longitudes_have_the_unit_and_the_meridian_of_the_crs():
    assert half_turn("EPSG:4326") == 180
    assert half_turn("EPSG:4807") == 200  # grads
    assert prime_meridian("EPSG:4326") == 0
    assert prime_meridian("EPSG:27572") == pytest.approx(2.337229, abs=1e-6)  # Paris
