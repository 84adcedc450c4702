"""Bounds in texts and files, degrees for a CRS in metres, and the commands that take them."""

import io
from contextlib import redirect_stderr

import geopandas as gpd
import numpy as np
import pytest
from pyproj import CRS, Transformer
from shapely import LineString, MultiPolygon, box

import psd
from psd.errors import DomainError, InputDataError, ParameterError
from psd.publish.area import bounds_from_file, bounds_from_text, transform_bounds
from psd.publish.fields import public_files
from psd.publish.request import BuildRequest
from psd.publish.request_values import request_from_toml, request_to_toml
from psd.publish.tally_parts import TallyRequest
from psd.space.bounds import check_ground, ground_sides, may_be_degrees
from psd_cli.main import run
from support.cli_runner import fails, passes, write_points
from support.tables import refused, returned

LONDON = (-0.51, 51.28, 0.34, 51.7)
BRITAIN = "EPSG:27700"
HALL = 'LOCAL_CS["hall",UNIT["metre",1]]'


def test_bounds_narrower_than_a_metre_are_refused(subtests):
    for bounds, crs, size in (
        (LONDON, BRITAIN, "0.85 x 0.42 m"),
        ((0, 0, 1, 0.99), "EPSG:3857", "1 x 0.99 m"),
        ((0, 0, 0.99, 80), "EPSG:3857", "0.99 x 80 m"),
        ((0, 40, 3, 43), "EPSG:2263", "0.914 x 0.914 m"),  # in feet
    ):
        text = " ".join(f"{edge:g}" for edge in bounds)
        with subtests.test(bounds=bounds, crs=crs):
            with pytest.raises(DomainError) as raised:
                check_ground(bounds, crs)
            assert str(raised.value) == (
                f"bounds must be at least 1 m wide and high in {crs}, got {text}, which is {size}; "
                'if they are degrees, give bounds_crs="EPSG:4326"'
            )
            assert raised.value.value == bounds
    for bounds, crs in (
        (LONDON, "EPSG:4326"),
        (LONDON, "EPSG:4258"),
        ((0, 0, 1, 1), "EPSG:3857"),
        ((0, 40, 4, 44), "EPSG:2263"),
        ((530_000, 180_000, 530_000.5, 180_000.5), BRITAIN),  # no degrees
        ((0, 0, 0.1, 0.1), HALL),
    ):
        check_ground(bounds, crs)


def test_numbers_of_degrees_are_known_and_requests_refuse_them(subtests):
    table = [
        (True, ((-8, 49, 2, 61), BRITAIN), ((-180, -90, 180, 90), "EPSG:3857")),
        (False, ((-180, -90, 180, 91), "EPSG:3857"), ((-8, 49, 181, 61), BRITAIN)),
        (False, ((-8, 49, 2, 61), "EPSG:4258"), ((-8, 49, 2, 61), HALL)),
    ]
    returned(subtests, table, lambda case: may_be_degrees(*case))
    domain = psd.Domain(bounds=LONDON, crs=BRITAIN)  # a file with such bounds still loads
    for make in (
        lambda: BuildRequest(domain=domain, epsilon=1, method="auto"),
        lambda: TallyRequest(domain=domain),
    ):
        with pytest.raises(DomainError, match="if they are degrees, give"):
            make()


@pytest.mark.parametrize("command", [("build", "--epsilon", 1), ("tally",)])
def test_commands_refuse_or_warn(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    points = write_points(tmp_path / "p.csv", [(0, 51)])
    options = (*command, points, "-o", "out", "--crs", BRITAIN, "--input-crs", "EPSG:4326")
    message = fails(3, *options, "--bounds=-0.51,51.28,0.34,51.7")
    assert message.endswith("if they are degrees, give --bounds-crs EPSG:4326\n")
    warning = io.StringIO()
    with redirect_stderr(warning):
        assert run([str(each) for each in (*options, "--bounds=-8,49,2,61")]) == 0
    first, *rest = warning.getvalue().splitlines(keepends=True)
    assert all(line.startswith("(to see, as the holder of the data,") for line in rest)
    assert first == (
        "psd: warning: --bounds -8 49 2 61 may be degrees, and --crs EPSG:27700 has none: records "
        "elsewhere are left out. If they are, give --bounds-crs EPSG:4326\n"
    )


DEGREES = (-0.51, 51.28, 0.34, 51.7)
METRES = (503068.0, 154482.0, 563299.0, 202731.0)


@pytest.fixture
def wards(tmp_path):
    table = gpd.GeoDataFrame(geometry=[box(-0.51, 51.28, 0, 51.5), box(0, 51.4, 0.34, 51.7)])
    table.set_crs("EPSG:4326").to_file(tmp_path / "wards.gpkg")
    return tmp_path / "wards.gpkg"


def test_four_numbers_and_other_words(subtests):
    plain = "1,2,3.5,4", "1 2 3.5 4", "[1, 2, 3.5, 4]", "+1.,2e0,35e-1,4", " 1 , 2 , 3.5 , 4 "
    table = [
        ((1, 2, 3.5, 4), *plain),
        (
            None,
            "1,2,3",
            "1,2,3,4,5",
            "everywhere",
            "a,b,c,d",
            "1_0,2,3,4",
            "1,2,3.5,4:crs=EPSG:4326",
            "",
        ),
    ]
    returned(subtests, table, bounds_from_text)
    for crs in ("EPSG:4326", "OGC:CRS84"):
        assert transform_bounds((1, 2, 3.5, 4), crs, "EPSG:4326") == (1, 2, 3.5, 4)


def test_the_outline_is_inside_the_transformed_bounds():
    west, south, east, north = transform_bounds(DEGREES, "EPSG:4326", BRITAIN)
    assert (west, south, east, north) == METRES
    x, y = (np.linspace(DEGREES[axis], DEGREES[axis + 2], 500) for axis in (0, 1))
    corners = np.array(DEGREES).reshape(2, 2)
    outline = [(x, np.full(500, side)) for side in corners[:, 1]]
    outline += [(np.full(500, side), y) for side in corners[:, 0]]
    for points in outline:
        moved = Transformer.from_crs("EPSG:4326", BRITAIN, always_xy=True).transform(*points)
        assert west <= moved[0].min()
        assert moved[0].max() <= east
        assert south <= moved[1].min()
        assert moved[1].max() <= north
    back = transform_bounds(METRES, BRITAIN, "EPSG:4326")
    assert all(side == round(side, 6) for side in back)
    assert back[0] <= DEGREES[0]
    assert back[3] >= DEGREES[3]
    polar = transform_bounds((-180, -90, 180, -70), "EPSG:4326", "EPSG:3031")
    assert polar == (-2194495.0, -2194495.0, 2194495.0, 2194495.0)  # the whole circle of 70 south
    world = transform_bounds((-20037508, -20037508, 20037508, 20037508), "EPSG:3857", "EPSG:4326")
    assert world == pytest.approx((-180, -85.051129, 180, 85.051129), abs=1e-4)


def test_bounds_across_longitude_180(tmp_path):
    """They are bounds where the CRS of the release is not cut inside them."""

    def moved(bounds, crs="EPSG:3832"):
        return transform_bounds(bounds, "EPSG:4326", crs)

    pacific = moved((170, -22, -170, -12))
    assert pacific == moved((170, -22, 180, -12))[:2] + pacific[2:]
    assert pacific[2] == 4452780
    parts = MultiPolygon([box(170, -22, 180, -12), box(-180, -22, -170, -12)])
    gpd.GeoSeries([parts], crs="EPSG:4326").to_file(tmp_path / "fiji.gpkg")
    assert bounds_from_file(str(tmp_path / "fiji.gpkg"), "EPSG:3832") == pacific
    for same in ((170, -22, 190, -12), (-190, -22, -170, -12)):
        assert moved(same) == pacific
    for bounds, crs, meridian in (
        ((170, -22, -170, -12), "EPSG:3857", "180"),
        ((-40, -22, -20, -12), "EPSG:3832", "-30"),
    ):
        with pytest.raises(DomainError, match=f"must not cross longitude {meridian} in {crs}"):
            moved(bounds, crs)
    world = moved((-180, -80, 180, 80))
    assert world[2] - world[0] > 4e7


def test_grads_and_longitudes_that_do_not_begin_at_greenwich(subtests):
    """France has grads from Paris, Spain degrees from Madrid; areas of use are in degrees."""
    for crs in ("EPSG:4807", "EPSG:27572", "EPSG:2062", "EPSG:4903", "EPSG:4902"):
        with subtests.test(crs):
            move = Transformer.from_crs("EPSG:4326", crs, always_xy=True)
            exact = move.transform_bounds(*CRS.from_user_input(crs).area_of_use.bounds)
            shift = 300 if CRS.from_user_input(crs).is_projected else 0.003  # of the datum
            found = psd.Domain.area_of_use(crs).bounds
            assert found == pytest.approx(exact, abs=shift)
    lille = psd.Domain(bounds=(650_000, 2_610_000, 680_000, 2_640_000), crs="EPSG:27572")
    assert lille.bounds[0] == 650_000
    assert psd.Domain(bounds=(-200, -100, 200, 100), crs="EPSG:4807").width == 400
    for bounds, reason in (
        ((190, 0, 201, 10), "longitudes within 200 grads, got 190.0 to 201.0"),
        ((0, 48, 4, 101), "latitudes within 100 grads, got 48.0 to 101.0"),
    ):
        with pytest.raises(DomainError, match=reason):
            psd.Domain(bounds=bounds, crs="EPSG:4807")
    # The smallest cell is as large on the ground as in degrees.
    grads = psd.Domain(bounds=(0, 50, 0.1, 50.1), crs="EPSG:4807", min_cell=100)
    degrees = psd.Domain(bounds=(0, 45, 0.09, 45.09), min_cell=100)
    assert grads.cell_step == degrees.cell_step


def test_transformed_bounds_hold_all_that_they_held(subtests):
    """Bounds that the other CRS cuts, or in which it has no place for a pole, are refused."""
    grads, pole, pacific = "EPSG:4807", (-3e6, -3e6, 3e6, 3e6), (2e6, -2e6, 5e6, 2e6)
    for bounds, source, target in (
        ((172, -20, 179, -10), "EPSG:4326", grads),
        ((-180, -90, 180, 90), "EPSG:4326", grads),
        ((199, 10, -199, 20), grads, "EPSG:3857"),
        ((188, -50, -195, -33), grads, "EPSG:2193"),
        (pacific, "EPSG:3832", "EPSG:2193"),
        (pole, "EPSG:3031", "EPSG:6932"),
        (pole, "EPSG:3031", "EPSG:4326"),
    ):
        with subtests.test(source=source, target=target):
            west, south, east, north = transform_bounds(bounds, source, target)
            low, high = bounds[0], bounds[2] + 400 * (bounds[2] < bounds[0])
            places = np.random.default_rng(3).uniform((low, bounds[1]), (high, bounds[3]), (999, 2))
            x, y = Transformer.from_crs(source, target, always_xy=True).transform(*places.T)
            assert ((west <= x) & (x <= east) & (south <= y) & (y <= north)).all()
            if high - low != 360:  # no more than they held
                assert east - west < 1.1 * np.ptp(x)
    for bounds, source, reason in (
        (pacific, "EPSG:3832", "must not cross longitude 180 in EPSG:3857"),
        (pole, "EPSG:3031", "cannot be transformed to EPSG:3857; do they hold a pole"),
    ):
        with pytest.raises(DomainError, match=reason):
            transform_bounds(bounds, source, "EPSG:3857")


def test_polygons_of_a_file_and_recipes(wards):
    assert bounds_from_file(str(wards), "EPSG:4326") == DEGREES
    bounds = bounds_from_file(str(wards), BRITAIN)
    exact = gpd.read_file(wards).to_crs(BRITAIN).total_bounds
    assert list(bounds) == [*np.floor(exact[:2]), *np.ceil(exact[2:])]
    text = "epsilon = 1\ncrs = 'EPSG:27700'\n{}\n"
    for numbers in (list(DEGREES), "'-0.51,51.28,0.34,51.7'"):
        stated = f"bounds = {numbers}\nbounds_crs = 'EPSG:4326'"
        request = request_from_toml(text.format(stated))
        assert request.domain.bounds == METRES
        assert request_from_toml(request_to_toml(request)) == request
    named = request_from_toml(text.format("bounds = 'wards.gpkg'"), folder=wards.parent)
    assert named.domain.bounds == bounds
    layer = request_from_toml(text.format("bounds = 'wards.gpkg:layer=wards'"), folder=wards.parent)
    assert layer == named
    assert public_files({"bounds": "wards.gpkg"}, wards.parent) == [str(wards)]
    assert public_files({"bounds": wards}) == [str(wards)]
    for value in (DEGREES, "-0.51,51.28,0.34,51.7", "area-of-use", "private"):
        assert public_files({"bounds": value}) == []


def test_bounds_that_are_refused(tmp_path, subtests):
    def use(case):
        bounds, crs = case
        return psd.Domain(bounds=transform_bounds(bounds, crs, BRITAIN), crs=BRITAIN)

    table = [
        ("bounds_crs must be a coordinate reference", ((1, 2, 3, 4), "EPSG:0")),
        ("bounds_crs must be", ((1, 2, 3, 4), "")),
        ("west below east", ((3, 2, 1, 4), "EPSG:4326")),
        ("latitudes within 90", ((1, 2, 3, 400), "EPSG:4326")),
        ("cannot be transformed", ((1, 2, 3, 4), 'LOCAL_CS["a",UNIT["metre",1]]')),
        ("cannot be transformed|area of use", ((100, -89, 120, -80), "EPSG:4326")),
    ]
    refused(subtests, DomainError, table, use)
    lines = gpd.GeoDataFrame(geometry=[LineString([(0, 0), (1, 1)])], crs="EPSG:4326")
    lines.to_file(tmp_path / "l.gpkg")
    (tmp_path / "text.gpkg").write_text("polygons")
    files = [
        (InputDataError, "no.gpkg does not exist", "no.gpkg"),
        (InputDataError, "of:l.gpkg does not exist", "of:l.gpkg"),
        (
            ParameterError,
            "a file of polygons, area-of-use or private, got 'everywhere'",
            "everywhere",
        ),
        (ParameterError, "got '1.5,2,3'", "1.5,2,3"),
        (ParameterError, "got 'private:share=0.1'", "private:share=0.1"),
        (ParameterError, "bounds must hold polygons only", str(tmp_path / "l.gpkg")),
        (InputDataError, "text.gpkg", str(tmp_path / "text.gpkg")),
    ]
    for error, words, path in files:
        with subtests.test(path), pytest.raises(error, match=words):
            bounds_from_file(path, BRITAIN)


@pytest.mark.deep
def test_commands_take_the_same_values(tmp_path, wards):
    write_points(tmp_path / "v.csv", [(-0.1, 51.5)] * 60)
    read = ("--crs", BRITAIN, "--input-crs", "EPSG:4326")
    out = tmp_path / "r.psd.parquet"
    build = ("build", tmp_path / "v.csv", "-o", out, "--overwrite", "--epsilon", 1, *read)
    texts = "-0.51,51.28,0.34,51.7", "-0.51 51.28 0.34 51.7"
    degrees = [("--bounds", text, "--bounds-crs", "EPSG:4326") for text in texts]
    degrees.append((f"--bounds={texts[0]}", "--bounds-crs", "EPSG:4326"))
    cases = [(bounds, METRES) for bounds in degrees]
    cases.append((("--bounds", wards), bounds_from_file(str(wards), BRITAIN)))
    for number, (bounds, wanted) in enumerate(cases):
        passes(*build, *bounds)
        assert psd.load(out).domain.bounds == wanted
        tally = tmp_path / f"{number}.tally"
        passes("tally", tmp_path / "v.csv", "-o", tally, *read, *bounds)


def test_a_degree_of_longitude_is_measured_farthest_from_the_equator():
    sides = ground_sides((0, 51, 1, 52), None)
    assert [round(side) for side in sides] == [68076, 110574]
