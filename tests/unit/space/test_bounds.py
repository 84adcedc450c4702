"""Bounds in texts and files, degrees for a CRS in metres, and the commands that take them."""

import io
from contextlib import redirect_stderr

import geopandas as gpd
import numpy as np
import pytest
from pyproj import Transformer
from shapely import LineString, MultiPolygon, box

import psd
from psd.errors import DomainError, InputDataError, ParameterError
from psd.publish.bounds_text import bounds_file, bounds_from_text, transform_bounds
from psd.publish.request import BuildRequest
from psd.publish.request_values import from_toml, public_files, to_toml
from psd.publish.tally_parts import TallyRequest
from psd.space.bounds import check_ground, may_be_degrees
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
                f"if they are degrees, write {text.replace(' ', ',')}:crs=EPSG:4326"
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
        with pytest.raises(DomainError, match="if they are degrees, write"):
            make()


@pytest.mark.parametrize("command", [("build", "--epsilon", 1), ("tally",)])
def test_commands_refuse_or_warn(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    points = write_points(tmp_path / "p.csv", [(0, 51)])
    options = (*command, points, "-o", "out", "--crs", BRITAIN, "--input-crs", "EPSG:4326")
    message = fails(3, *options, "--bounds=-0.51,51.28,0.34,51.7")
    assert message.endswith("write -0.51,51.28,0.34,51.7:crs=EPSG:4326\n")
    warning = io.StringIO()
    with redirect_stderr(warning):
        assert run([str(each) for each in (*options, "--bounds=-8,49,2,61")]) == 0
    assert warning.getvalue() == (
        "psd: warning: --bounds -8 49 2 61 may be degrees, and --crs EPSG:27700 has none: records "
        "elsewhere are left out. If they are, write --bounds=-8,49,2,61 --bounds-crs EPSG:4326\n"
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
        ((1, 2, 3.5, 4), *plain, "1,2,3.5,4:crs=EPSG:4326", "1,2,3.5,4:crs=OGC:CRS84"),
        (None, "1,2,3", "1,2,3,4,5", "everywhere", "a,b,c,d", "1_0,2,3,4", "private:share=.1", ""),
    ]
    returned(subtests, table, lambda text: bounds_from_text(text, "EPSG:4326"))


def test_the_outline_is_inside_the_transformed_bounds():
    text = ",".join(map(str, DEGREES)) + ":crs=EPSG:4326"
    west, south, east, north = bounds_from_text(text, BRITAIN)
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
    pacific = bounds_from_text("170,-22,-170,-12:crs=EPSG:4326", "EPSG:3832")
    assert (
        pacific == bounds_from_text("170,-22,180,-12:crs=EPSG:4326", "EPSG:3832")[:2] + pacific[2:]
    )
    assert pacific[2] == 4452780
    parts = MultiPolygon([box(170, -22, 180, -12), box(-180, -22, -170, -12)])
    gpd.GeoSeries([parts], crs="EPSG:4326").to_file(tmp_path / "fiji.gpkg")
    assert bounds_from_text(f"of:{tmp_path / 'fiji.gpkg'}", "EPSG:3832") == pacific
    for same in ("170,-22,190,-12", "-190,-22,-170,-12"):
        assert bounds_from_text(f"{same}:crs=EPSG:4326", "EPSG:3832") == pacific
    for text, crs, meridian in (
        ("170,-22,-170,-12", "EPSG:3857", "180"),
        ("-40,-22,-20,-12", "EPSG:3832", "-30"),
    ):
        with pytest.raises(DomainError, match=f"must not cross longitude {meridian} in {crs}"):
            bounds_from_text(f"{text}:crs=EPSG:4326", crs)
    world = bounds_from_text("-180,-80,180,80:crs=EPSG:4326", "EPSG:3832")
    assert world[2] - world[0] > 4e7


def test_polygons_of_a_file_and_recipes(wards):
    assert bounds_from_text(f"of:{wards}", "EPSG:4326") == DEGREES
    bounds = bounds_from_text(f"of:{wards}", BRITAIN)
    exact = gpd.read_file(wards).to_crs(BRITAIN).total_bounds
    assert list(bounds) == [*np.floor(exact[:2]), *np.ceil(exact[2:])]
    assert bounds_file(f"of:{wards}") == str(wards)
    text = "epsilon = 1\ncrs = 'EPSG:27700'\nbounds = {!r}\n"
    request = from_toml(text.format("-0.51,51.28,0.34,51.7:crs=EPSG:4326"))
    assert request.domain.bounds == METRES
    assert from_toml(to_toml(request)) == request
    named = from_toml(text.format("of:wards.gpkg"), folder=wards.parent)
    assert named.domain.bounds == bounds_from_text(f"of:{wards}", BRITAIN)
    assert public_files({"bounds": "of:wards.gpkg"}, wards.parent) == [str(wards)]


def test_bounds_that_are_refused(tmp_path, subtests):
    def use(text):
        return psd.Domain(bounds=bounds_from_text(text, BRITAIN), crs=BRITAIN)

    table = [
        ("crs of the bounds must be a coordinate reference", "1,2,3,4:crs=EPSG:0"),
        ("crs of the bounds must be", "1,2,3,4:crs="),
        ("west below east", "3,2,1,4:crs=EPSG:4326"),
        ("latitudes within 90", "1,2,3,400:crs=EPSG:4326"),
        ("cannot be transformed", '1,2,3,4:crs=LOCAL_CS["a",UNIT["metre",1]]'),
        ("cannot be transformed|area of use", "100,-89,120,-80:crs=EPSG:4326"),
    ]
    refused(subtests, DomainError, table, use)
    refused(subtests, InputDataError, [("no.gpkg", "of:no.gpkg")], use)
    lines = gpd.GeoDataFrame(geometry=[LineString([(0, 0), (1, 1)])], crs="EPSG:4326")
    lines.to_file(tmp_path / "l.gpkg")
    with pytest.raises(ParameterError, match="bounds must hold polygons only"):
        bounds_from_text(f"of:{tmp_path / 'l.gpkg'}", BRITAIN)


@pytest.mark.deep
def test_commands_take_the_same_texts(tmp_path, wards):
    write_points(tmp_path / "v.csv", [(-0.1, 51.5)] * 60)
    text = "-0.51,51.28,0.34,51.7:crs=EPSG:4326"
    read = ("--crs", BRITAIN, "--input-crs", "EPSG:4326")
    out = tmp_path / "r.psd.parquet"
    for number, bounds in enumerate((text, f"of:{wards}")):
        built = ("build", tmp_path / "v.csv", "-o", out, "--overwrite", "--epsilon", 1, *read)
        passes(*built, "--bounds", bounds)
        assert psd.load(out).bounds == bounds_from_text(bounds, BRITAIN)
        passes(*built, f"--bounds={bounds}")
        tally = tmp_path / f"{number}.tally"
        passes("tally", tmp_path / "v.csv", "-o", tally, *read, "--bounds", bounds)
    told = fails(2, *built, "--bounds", "1,2,3")
    assert "--bounds must be four numbers" in told
    told = fails(6, "build", tmp_path / "v.csv", "-o", wards, "--overwrite", "--epsilon", 1,
                 "--bounds", f"{wards}")  # fmt: skip
    assert "read as an input" in told or "ending" in told
