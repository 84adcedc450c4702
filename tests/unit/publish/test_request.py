"""A request: checked at once, printed, compared, and written as TOML and back."""

import dataclasses
from dataclasses import replace
from functools import partial

import geopandas as gpd
import pytest
import shapely

import psd
from psd.curator.contribution_choice import ContributionChoice
from psd.curator.private_bounds import PrivateBounds
from psd.decompositions import Quadtree
from psd.errors import PsdError
from psd.ingest.sources import Columns
from psd.privacy.unit import PrivacyUnit
from psd.publish.public_files import BoundaryFile, CovariateFile
from psd.publish.request import BuildRequest, ReadRequest
from psd.publish.request_table import table_from_request
from psd.publish.request_values import from_toml, request_from_table, to_toml
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


REQUESTS = {
    "records": {},
    "a domain": {"domain": psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(8, 8))},
    "rounded coordinates": {"domain": psd.Domain(bounds=BOUNDS, coordinate_resolution="0.0001")},
    "private bounds": {"domain": PrivateBounds(share="0.2", beyond=20)},
    "rounded private bounds": {
        "domain": PrivateBounds(crs="EPSG:5179", coordinate_resolution="0.10")
    },
    "a method": {"method": Quadtree(height=3, prune=32)},
    "a workload": {"method": Quadtree(height=1, budget="workload", workload="1 3")},
    "users": USER,
    "a chosen bound": CHOSEN,
    "a described choice": {
        "user": "id",
        "max_contributions": ContributionChoice(share=".1", over=9),
    },
    "days": {**USER, "per": "day", "time": "at", "time_zone": "Asia/Seoul"},
    "counted users": {"user": "id", "count": "users"},
    "slices": {"slices": MONTHS, "time": "at"},
    "a limit in each slice": {**USER, "slices": MONTHS, "time": "at", "max_per_slice": 2},
    "a bound per slice": {**USER, "slices": MONTHS, "time": "at", "per": "slice"},
    "columns": {"x": "east", "y": "north", "geometry": "geom", "layer": "visits"},
    "post-processing": {"method": "cascade", "estimate": "signed", "density": "uniform"},
    "a covariate": {"covariate": CovariateFile(path="land.gpkg", column="people", size=64)},
    "a repaired boundary": {"boundary": BoundaryFile(path="old.gpkg", repair=True)},
    "a boundary": {"boundary": BoundaryFile(path="city: old.gpkg"), "density": "uniform"},
}


def test_toml_and_back(subtests):
    for name, arguments in REQUESTS.items():
        with subtests.test(name):
            given = request(**arguments)
            text = to_toml(given)
            assert from_toml(text) == given
            assert hash(from_toml(text)) == hash(given)
            assert to_toml(from_toml(text)) == text
            assert eval(repr(given.epsilon), {"Decimal": type(given.epsilon)}) == given.epsilon
    # The keys are those of the command line.
    table = table_from_request(request(**REQUESTS["a described choice"], method="grid"))
    assert table["max_contributions"] == "auto:share=0.1,over=9,limit=1000"
    assert request_from_table({**table, "max_contributions": "4"}).unit.max_contributions == 4
    assert from_table(bounds="area-of-use").domain.bounds[0] == -180


def from_table(**table):
    return request_from_table({"epsilon": 1, "bounds": list(BOUNDS), **table})


def test_a_request_is_frozen_and_says_its_guarantee():
    given = request(**REQUESTS["a bound per slice"])
    with pytest.raises(dataclasses.FrozenInstanceError):
        given.epsilon = 2
    assert given.guarantee_text.startswith("epsilon 0.5 per user, at most 4 records of each")
    assert given.guarantee_text.endswith("in each slice")
    assert given.nano_epsilon == 500_000_000


def test_paths_begin_at_the_folder_of_the_recipe(tmp_path):
    given = request(covariate=CovariateFile(path=str(tmp_path / "land.npy")))
    table = {"epsilon": 1, "bounds": list(BOUNDS), "covariate": "land.npy:size=9"}
    found = request_from_table(table, folder=tmp_path).covariate
    assert found == CovariateFile(path=str(tmp_path / "land.npy"), size=9)
    assert str(tmp_path / "land.npy") in to_toml(given, folder=tmp_path)
    # Polygons in memory are no file.
    polygons = gpd.GeoSeries([shapely.box(*BOUNDS)], crs="EPSG:4326")
    for name in ("covariate", "boundary"):
        given = request(**{name: polygons})
        with pytest.raises(PsdError, match=f"{name} must be a file to be written"):
            to_toml(given)


def test_a_coordinate_resolution_is_a_key_beside_the_bounds(subtests):
    given = from_table(coordinate_resolution="1e-3")
    assert given.domain == psd.Domain(bounds=BOUNDS, coordinate_resolution="0.001")
    stated = table_from_request(given)
    assert (stated["lattice"], stated["coordinate_resolution"]) == (None, "0.001")
    assert 'coordinate_resolution = "0.001"' in to_toml(given)
    text = to_toml(given).replace('"0.001"', "0.001")
    assert from_toml(text) == given
    everywhere = from_table(bounds="area-of-use", coordinate_resolution="1e-3").domain
    assert everywhere.lattice == (360_001, 180_001)
    left_out = "lattice must be left out with coordinate_resolution"
    stepped = {"coordinate_resolution": "1e-3", "lattice": [64, 64]}
    rows = [
        (stepped, left_out),
        ({"bounds": "private", **stepped}, left_out),
        ({"bounds": "private", "coordinate_resolution": "1e-8"}, "1 to 2\\^30 values"),
        ({"coordinate_resolution": "fine"}, "must be a decimal number above 0"),
    ]
    refuses(subtests, from_table, rows)


def test_a_repair_is_of_a_boundary(subtests):
    boundary = from_table(boundary="city.gpkg:repair=yes").boundary
    assert boundary == BoundaryFile(path="city.gpkg", repair=True)
    plain = from_table(boundary="city.gpkg")
    assert from_table(boundary="city.gpkg:repair=no") == plain
    rows = [
        ({"repair": True}, "key 'repair' does not exist"),
        ({"boundary": "city.gpkg:repair=1"}, "boundary repair must be yes or no, got '1'"),
    ]
    refuses(subtests, from_table, rows)


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
        ({"slices": "2024-01"}, "slices must be of type TimeSlices"),
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


def test_what_a_table_refuses(subtests):
    with pytest.raises(PsdError, match="epsilon must be given"):
        request_from_table({})
    rows = [
        ({"bound": 4}, "did you mean 'bounds'"),
        ({"bounds": "somewhere"}, "must be four numbers, area-of-use or private"),
        ({"bounds": "private:shard=0.1"}, "did you mean 'share'"),
        ({"read": "x"}, "read must be a table"),
        ({"read": {"z": "lon"}}, "key of read 'z' does not exist"),
        ({"read": {"table": "t"}}, "key of read 'table' does not exist"),
        ({"max_contributions": True}, "must be a whole number"),
        ({"slices": "2024"}, "must be months, weeks, days or hours"),
        ({"set": {"workload": "boxes.csv"}, "bounds": None}, "public with a workload"),
        ({"covariate": "a.npy:column=x"}, "only polygons have columns"),
    ]
    refuses(subtests, from_table, rows)


def test_tallies_state_what_is_about_rows():
    domain = psd.Domain(bounds=BOUNDS)
    for key, value in (("bounds", list(BOUNDS)), ("user", "id"), ("slices", "2024-01")):
        with pytest.raises(PsdError, match=f"{key} must be left out for tallies"):
            request_from_table({"epsilon": 1, key: value}, domain=domain)
    unit = PrivacyUnit(kind="user", max_contributions=3)
    reading = ReadRequest(columns=None, unit=unit, slices=MONTHS)
    given = BuildRequest(epsilon=1, method="grid").complete(domain, reading)
    assert (given.domain, given.unit.max_contributions) == (domain, 3)
    assert "user" not in to_toml(given)
    with pytest.raises(PsdError, match="bounds must be left out for tallies"):
        request().complete(psd.Domain(bounds=(0, 0, 1, 1)), reading)


def test_a_recipe_states_how_text_is_read():
    read = {
        "wkt": "geom", "delimiter": "tab", "decimal": ",", "encoding": "windows-1252",
        "skip_rows": 3, "input_crs": "EPSG:4326",
    }  # fmt: skip
    table = {"epsilon": 1, "bounds": [0, 0, 9, 9], "crs": "EPSG:3857", "read": read}
    request = request_from_table(table)
    assert request.columns == Columns(**read)
    assert from_toml(to_toml(request)) == request
    assert request_from_table({**table, "read": {**read, "skip_rows": "3"}}) == request
