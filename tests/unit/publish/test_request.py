"""A request: checked at once, printed, compared, and written as TOML and back."""

import dataclasses
from dataclasses import replace
from functools import partial
from pathlib import Path

import geopandas as gpd
import pytest
import shapely

import psd
from psd.curator.private_bounds import PrivateBounds
from psd.decompositions import Quadtree
from psd.errors import PsdError
from psd.ingest.sources import Columns
from psd.privacy.unit import PrivacyUnit
from psd.publish.fields import values_of_request
from psd.publish.public_inputs import BoundaryFile, CovariateFile
from psd.publish.request import BuildRequest, BuildTerms, ReadRequest
from psd.publish.request_values import (
    request_from_toml,
    request_from_values,
    request_to_toml,
    terms_from_values,
)
from psd.publish.tally_parts import TallyRequest
from psd.space.time_slices import TimeSlices
from support.requests import request_of
from support.tables import refuses

BOUNDS = (126.4, 37.0, 127.6, 38.0)
MONTHS = TimeSlices.parse("month", "2024-01..2024-03,2024-07", "Asia/Seoul")
USER = {"user": "id", "max_contributions": 4}
CHOSEN = {"user": "id", "max_contributions": "auto"}


def request(**arguments):
    return request_of(**{"domain": BOUNDS, "epsilon": "0.50"} | arguments)


def of_values(**values):
    return request_of(**{"epsilon": 1, "bounds": list(BOUNDS), **values})


def test_a_request_is_frozen_and_says_its_guarantee():
    given = request(**USER, slices=MONTHS, time="at", per="slice")
    with pytest.raises(dataclasses.FrozenInstanceError):
        given.epsilon = 2
    assert given.guarantee_text.startswith("epsilon 0.5 per user, at most 4 records of each")
    assert given.guarantee_text.endswith("in each slice")
    assert given.nano_epsilon == 500_000_000


def test_paths_begin_at_the_folder_of_the_recipe(tmp_path):
    given = request(covariate=CovariateFile(path=str(tmp_path / "land.npy")))
    table = {"covariate": "land.npy", "covariate_size": 9, "boundary": Path("old.gpkg")}
    table |= {"epsilon": 1, "bounds": list(BOUNDS), "about": "about.toml"}
    (tmp_path / "about.toml").write_text("title = 'Visits'")
    found = request_from_values(table, folder=tmp_path)
    assert found.boundary == BoundaryFile(path=str(tmp_path / "old.gpkg"))
    assert found.about.title == "Visits"
    assert found.covariate == CovariateFile(path=str(tmp_path / "land.npy"), size=9)
    assert str(tmp_path / "land.npy") in request_to_toml(given, folder=tmp_path)
    # Polygons in memory are no file.
    polygons = gpd.GeoSeries([shapely.box(*BOUNDS)], crs="EPSG:4326")
    for name in ("covariate", "boundary"):
        given = request(**{name: polygons})
        with pytest.raises(PsdError, match=f"{name} must be a file to be written"):
            request_to_toml(given)


def test_a_coordinate_resolution_is_a_key_beside_the_bounds(subtests):
    given = of_values(coordinate_resolution="1e-3")
    assert given.domain == psd.Domain(bounds=BOUNDS, coordinate_resolution="0.001")
    stated = values_of_request(given)
    assert ("lattice" in stated, stated["coordinate_resolution"]) == (False, "0.001")
    assert 'coordinate_resolution = "0.001"' in request_to_toml(given)
    text = request_to_toml(given).replace('"0.001"', "0.001")
    assert request_from_toml(text) == given
    everywhere = of_values(bounds="area-of-use", coordinate_resolution="1e-3").domain
    assert everywhere.lattice == (360_001, 180_001)
    left_out = "lattice must be left out with coordinate_resolution"
    stepped = {"coordinate_resolution": "1e-3", "lattice": [64, 64]}
    rows = [
        (stepped, left_out),
        ({"bounds": "private", **stepped}, left_out),
        ({"bounds": "private", "coordinate_resolution": "1e-8"}, "1 to 2\\^30 values"),
        ({"coordinate_resolution": "fine"}, "must be a decimal number above 0"),
    ]
    refuses(subtests, of_values, rows)


def test_a_repair_is_of_polygons(subtests):
    boundary = of_values(boundary="city.gpkg", repair=True).boundary
    assert boundary == BoundaryFile(path="city.gpkg", repair=True)
    assert not of_values(boundary="city.gpkg", repair=False).boundary.repair
    bow = shapely.Polygon([(126.5, 37.1), (127.5, 37.9), (127.5, 37.1), (126.5, 37.9)])
    series = gpd.GeoSeries([bow], crs="EPSG:4326")
    for polygons in (bow, series, gpd.GeoDataFrame(geometry=series)):
        with subtests.test(type(polygons).__name__):
            assert of_values(boundary=polygons, repair=True).boundary.mask is not None
            with pytest.raises(PsdError, match="polygon 1 of the boundary is not valid"):
                of_values(boundary=polygons)
    alone = "repair must be given with polygons as regions= or boundary= alone"
    rows = [
        ({"repair": True}, alone),
        ({"repair": True, "regions": "tiles=8"}, alone),
        ({"repair": "yes", "boundary": "city.gpkg"}, "repair must be true or false, got 'yes'"),
        ({"boundary": "a.gpkg:repair=yes", "bounds": None}, "a.gpkg:repair=yes does not exist"),
    ]
    refuses(subtests, of_values, rows)


IN_UTC = Columns(user="id", time="at")
DAYS = PrivacyUnit(kind="user-day", max_contributions=2, time_zone="Asia/Seoul")


def test_what_is_refused(subtests):
    sliced = {"slices": MONTHS, "time": "at"}
    rows = [
        ({"domain": psd.Domain}, "got the class Domain"),
        ({"domain": "126 37 127 38"}, "got a value of type str"),
        ({"domain": (1, 2, 3)}, "four numbers"),
        ({"epsilon": 0}, "epsilon must be above 0"),
        ({"method": Quadtree}, r"got the class Quadtree; write Quadtree\(\)"),
        ({"method": 7}, "must be a name or a decomposition"),
        ({"method": "quadtre"}, "quadtre"),
        ({"slices": "2024"}, "slices must be months, weeks, days or hours"),
        ({"slices": 2024}, "slices must be a list"),
        ({"slices": MONTHS}, "time must name the column"),
        ({**sliced, "time_zone": "UTC"}, "time_zone must be that of the"),
        ({**sliced, "domain": PrivateBounds()}, "must be public with slices"),
        ({"per": "slice", **USER}, "slices must be given with"),
        ({"max_per_slice": 1, **USER}, "slices must be given with max_per_slice="),
        ({"max_per_slice": 1, **USER, **sliced, "per": "slice"}, 'left out with per="slice"'),
        ({"max_per_slice": 1, **CHOSEN, **sliced}, "a number with max_per_slice=, got auto"),
        ({"per": "slice", **sliced}, "with user and max_contributions"),
        ({"max_contribution": 4}, "did you mean 'max_contributions'"),
        ({"covariate": 3}, "covariate must be"),
        ({"boundary": 3}, "boundary must be"),
        ({"covariate": CovariateFile(path="a.gpkg"), "domain": PrivateBounds()}, "must be public"),
    ]
    refuses(subtests, request, rows)
    rows = [
        ({"columns": "lon"}, "columns must be of type Columns"),
        ({"columns": Columns}, "got the class Columns"),
        ({"unit": PrivacyUnit(kind="user")}, "user must be a column"),
        ({"columns": Columns(user="id")}, "user must be a column"),
        ({"contribution_scope": "day"}, "must be series or slice"),
        ({"columns": IN_UTC, "unit": DAYS}, "time_zone must be that of the days of the unit"),
    ]
    refuses(subtests, ReadRequest, rows)
    refuses(subtests, partial(TallyRequest, domain=psd.Domain(bounds=BOUNDS)), rows[-1:])
    for zone in ("UTC", "Europe/London"):
        columns, unit = replace(IN_UTC, time_zone=zone), replace(DAYS, time_zone=zone)
        assert ReadRequest(columns=columns, unit=unit).columns.time_zone == zone


def test_what_values_refuse(subtests):
    with pytest.raises(PsdError, match="epsilon must be given"):
        request_from_values({})
    auto = {"user": "id", "max_contributions": "auto"}
    wards = {"regions": "wards.gpkg", "region_id": "ward"}
    texts = "must be west, south, east and north, a file of polygons, area-of-use or private, got "
    four = "bounds_crs must be given with bounds= of four numbers alone"
    rows = [
        ({"bound": 4}, "did you mean 'bounds'"),
        ({"bounds": "somewhere"}, f"{texts}'somewhere'"),
        ({"bounds": "of:city.gpkg"}, "of:city.gpkg does not exist"),
        ({"bounds": "private:share=0.1"}, f"{texts}'private:share=0.1'"),
        ({"bounds": "1,2,3,4:crs=EPSG:4326"}, f"{texts}'1,2,3,4:crs=EPSG:4326'"),
        ({"bounds": 5}, "bounds must be a list"),
        ({"bounds_share": "0.2"}, 'bounds_share must be given with bounds="private" alone'),
        ({"bounds": "private", "bounds_share": "x"}, "^bounds_share must be a decimal number"),
        ({"bounds": "private", "bounds_beyond": "x"}, "^bounds_beyond must be an integer"),
        ({"bounds": "private", "lattice": [0, 1]}, "^lattice must have"),
        ({"bounds": "private", "bounds_crs": "EPSG:4326"}, four),
        ({"bounds": "area-of-use", "bounds_crs": "EPSG:4326"}, four),
        ({"bounds": "city.gpkg", "bounds_crs": "EPSG:4326"}, four),
        ({"bounds": None, "bounds_crs": "EPSG:4326"}, four),
        ({"bounds": (1, 2, 3), "bounds_crs": "EPSG:3857"}, "bounds must be four numbers"),
        ({"bounds": list("west"), "bounds_crs": "EPSG:3857"}, "bounds must be four numbers"),
        ({"domain": BOUNDS}, "bounds must be left out with domain"),
        ({"domain": BOUNDS, "bounds": None, "crs": "EPSG:3857"}, "crs must be left out with"),
        ({"lattice": "8,x"}, "lattice must be two whole numbers"),
        ({"lattice": (8.5, 8)}, "lattice must have 1 to"),
        ({"read": "x"}, "argument 'read' is now keys of their own"),
        ({"noise_law": "laplace"}, "argument 'noise_law' is now noise"),
        ({"private_output": "report"}, "is now report_private and keep_tally"),
        ({"z": "lon"}, "argument 'z' does not exist"),
        ({"table": "t"}, "argument 'table' does not exist"),
        ({"ledger": "t"}, "argument 'ledger' does not exist"),
        ({**auto, "max_contributions": True}, "must be an integer, got 'True'"),
        ({**auto, "max_contributions": "auto:share=0.1"}, "must be a whole number or auto"),
        ({**auto, "max_contributions": 4, "choice_over": 9}, "choice_over must be given with"),
        ({**auto, "choice_share": "x"}, "^choice_share must be a decimal number"),
        ({**auto, "choice_over": -1}, "^choice_over must be between"),
        ({**auto, "per": 5}, "per must be one of day, user-slice, slice, record, got '5'"),
        ({"noise": "cauchy"}, "noise must be one of auto, laplace, gaussian, got 'cauchy'"),
        ({"count": "all"}, "count must be one of records, users, got 'all'"),
        ({"skip_rows": "three"}, "skip_rows must be a number, got 'three'"),
        ({"slices": "2024"}, "must be months, weeks, days or hours"),
        ({"set": {"workload": "boxes.csv"}, "bounds": None}, "public with a workload"),
        ({"set": {"estimate": "signed"}}, "has no parameter 'estimate'"),
        ({"set": "height"}, "set must be KEY=VALUE"),
        ({"set": ["height=3", "height=4"]}, "set height must be given once"),
        ({"set": {"height": 3}, "method": Quadtree()}, "set must be left out with a method"),
        ({"covariate": "a.npy", "covariate_column": "x"}, "only polygons have columns"),
        ({"covariate": "a.npy", "covariate_size": 0}, "covariate_size must be between 1 and"),
        ({"covariate_column": "x"}, "covariate_column must be given with a file"),
        ({"regions": "w.gpkg"}, "region_id must be the column that names the regions, got none"),
        ({"regions": ["h3=5", "tiles=8"]}, "must be files, or one kind of cells, got h3=5 and"),
        ({"regions": ["a.gpkg", "tiles=8"]}, "must be files, or one kind of cells, got a.gpkg"),
        ({"regions": "tile=8"}, "did you mean 'tiles'"),
        ({"regions": {"file": "w.gpkg"}}, "regions must be paths, .* got a value of type dict"),
        ({"regions": "tiles=8", "region_id": "id"}, "region_id must be given with polygons"),
        ({"gaps": "outside"}, "gaps must be given with regions= alone"),
        ({**wards, "gaps": "all"}, "gaps must be one of refuse, elsewhere, outside, got 'all'"),
        ({**wards, "region_id": ["a", "b"]}, "region_id must be one column, or one for each of 1"),
        ({**wards, "regions": ["a", "b"], "region_parent": "c"}, "region_parent must be left out"),
        ({**wards, "tolerance": "wide"}, "tolerance must be a number, got 'wide'"),
        ({"about": 5}, "about must be a list"),
        ({"about": "titl=a"}, "did you mean 'title'"),
        ({"about": "title="}, "about must be FILE or KEY=VALUE, .* got 'title='"),
        ({"about": {"title": ""}}, "about title must have 1 to 200 characters"),
        ({"about": ["title=a", {"title": "b"}]}, "about title must be given once"),
    ]  # fmt: skip
    for values, words in rows:
        with subtests.test(words, values=values):
            with pytest.raises(PsdError, match=words) as raised:
                of_values(**values)
            # Programs find the name of the field that the message names.
            name = getattr(raised.value, "name", None)
            assert name is None or name in str(raised.value)


def test_a_workload_changes_the_default_method_in_every_form():
    for method in ({}, {"method": "auto"}):
        assert of_values(**method, set={"workload": "medium"}).method.budget == "workload"
        assert of_values(**method, set={"workload": "tiny"}).method.name == "grid"
    assert of_values(method="auto", set={"cells": 99}).method.name == "auto"


def test_tallies_state_what_is_about_rows():
    domain = psd.Domain(bounds=BOUNDS)
    for key, value in (("bounds", list(BOUNDS)), ("user", "id"), ("slices", "2024-01")):
        with pytest.raises(PsdError, match=f"{key} must be left out for tallies"):
            terms_from_values({"epsilon": 1, key: value}, tallied=domain)
    unit = PrivacyUnit(kind="user", max_contributions=3)
    given = BuildTerms(epsilon=1, method="grid").of_tallies(domain, unit, MONTHS, "series")
    assert (given.domain, given.unit.max_contributions) == (domain, 3)
    assert (type(given), given.is_tallied, given.of_records()) == (BuildRequest, True, given)
    assert "user" not in request_to_toml(given)
    with pytest.raises(PsdError, match="bounds must be left out for tallies"):
        request().of_tallies(psd.Domain(bounds=(0, 0, 1, 1)), unit, MONTHS, "series")


def test_a_request_without_bounds_does_not_exist():
    terms = terms_from_values({"epsilon": 1, "method": "grid"})
    assert (type(terms), terms.domain) == (BuildTerms, None)
    for build in (
        terms.of_records,
        lambda: BuildRequest(domain=None, epsilon=1, method="grid"),
        lambda: request_from_values({"epsilon": 1}),
    ):
        with pytest.raises(PsdError, match="bounds must be given for records, or a boundary"):
            build()


def test_a_recipe_states_how_text_is_read():
    read = {
        "wkt": "geom", "delimiter": "tab", "decimal": ",", "encoding": "windows-1252",
        "skip_rows": 3, "input_crs": "EPSG:4326",
    }  # fmt: skip
    table = {"epsilon": 1, "bounds": [0, 0, 9, 9], "crs": "EPSG:3857", **read}
    request = request_from_values(table)
    assert request.columns == Columns(**read)
    assert request_from_toml(request_to_toml(request)) == request
    assert request_from_values({**table, "skip_rows": "3"}) == request


# The method of many slices that nobody named

NINE = {"time": "at", "slices": "2024-01..2024-09"}


def test_more_than_eight_slices_are_a_cube_unless_a_method_is_named():
    for months, name in (("2024-01..2024-08", "auto"), ("2024-01..2024-09", "cube")):
        found = request(time="at", slices=months)
        assert (found.method.name, found.is_cube) == (name, name == "cube")
        # A recipe states the method, so it is the same whatever the default is later.
        text = request_to_toml(found)
        assert f'method = "{name}"' in text
        assert request_from_toml(text) == found
        assert hash(request_from_toml(text)) == hash(found)
    assert request(**NINE).post_processing == request(**NINE, method="auto").post_processing


@pytest.mark.parametrize(
    "change",
    [
        {"method": "auto"},
        {"method": "cascade"},
        {"set": {"cells": 1000}},
        {"set": {"workload": "medium"}},
        {"separate_slices": True},
        {"values": {"fare": (0, 60)}},
        {"regions": "h3=5"},
        {"epsilon": "1e-9"},
        {"delta": "1e-6", "epsilon": "1e-7"},
        {"user": "id", "max_contributions": 200_000_000, "per": "slice"},
    ],
    ids=lambda change: " ".join(change),
)
def test_slices_stay_apart_where_a_cube_would_be_refused_or_was_not_meant(change):
    found = request(**{**NINE, **change})
    assert not found.is_cube
    assert not request_from_toml(request_to_toml(found)).is_cube


def test_what_a_cube_takes_makes_one():
    for change in (
        {**USER, "per": "slice"},
        {**USER, "max_per_slice": 1, "delta": "1e-6"},
        {"user": "id", "count": "users"},
        {**USER, "per": "day"},
        CHOSEN,
        {"boundary": BoundaryFile(path="old.gpkg"), "estimate": "signed"},
    ):
        assert request(**{**NINE, **change}).is_cube


def test_tallies_state_slices_that_make_a_cube():
    given, unit = {"epsilon": 1}, PrivacyUnit()
    many = TimeSlices.parse("month", NINE["slices"])
    for more, slices, name in (
        ({}, many, "cube"),
        ({}, MONTHS, "auto"),
        ({"separate_slices": True}, many, "auto"),
        ({"method": "auto"}, many, "auto"),
    ):
        terms = terms_from_values({**given, **more}, tallied=psd.Domain(bounds=BOUNDS))
        made = terms.of_tallies(psd.Domain(bounds=BOUNDS), unit, slices, "series")
        assert made.method.name == name


def test_separate_slices_needs_slices_that_are_not_counted_together():
    for change, words in (
        ({}, "slices must be given with separate_slices, which"),
        ({**NINE, "method": "cube"}, "separate_slices must be left out with method cube, which"),
        ({**NINE, "category": "c", "labels": "a"}, "separate_slices must be left out with method"),
        ({**NINE, "separate_slices": "yes"}, "separate_slices must be true or false"),
    ):
        with pytest.raises(PsdError, match=words):
            request(**{"separate_slices": True, **change})
