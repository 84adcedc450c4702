"""Degrees as bounds for a CRS in metres: refused where they are tiny, else warned of."""

import io
from contextlib import redirect_stderr

import pytest

import psd
from psd.errors import DomainError
from psd.publish.request import BuildRequest
from psd.publish.tally_parts import TallyRequest
from psd.space.bounds import check_ground, may_be_degrees
from psd_cli.main import run
from support.cli_runner import fails, write_points
from support.tables import returned

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


def test_numbers_of_degrees(subtests):
    table = [
        (True, ((-8, 49, 2, 61), BRITAIN), ((-180, -90, 180, 90), "EPSG:3857")),
        (False, ((-180, -90, 180, 91), "EPSG:3857"), ((-8, 49, 181, 61), BRITAIN)),
        (False, ((-8, 49, 2, 61), "EPSG:4258"), ((-8, 49, 2, 61), HALL)),
    ]
    returned(subtests, table, lambda case: may_be_degrees(*case))


def test_requests_refuse_them():
    domain = psd.Domain(bounds=LONDON, crs=BRITAIN)  # a file with such bounds still loads
    cells = psd.CellRegions(kind="grid-cells", cells="0.1")
    for make in (
        lambda: BuildRequest(domain=domain, epsilon=1, method="auto"),
        lambda: TallyRequest(domain=domain),
        lambda: psd.plan([100], domain=domain, epsilons=["1"]),
        lambda: psd.plan_regions(cells, domain=domain, epsilons=["1"]),
    ):
        with pytest.raises(DomainError, match="if they are degrees, write"):
            make()


@pytest.mark.parametrize("command", [("build", "--epsilon", 1), ("tally",)])
def test_commands_refuse_or_warn(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    points = write_points(tmp_path / "p.csv", [(0, 51)])
    options = (*command, points, "-o", "out", "--crs", BRITAIN, "--read", "input_crs=EPSG:4326")
    message = fails(3, *options, "--bounds=-0.51,51.28,0.34,51.7")
    assert message.endswith("write -0.51,51.28,0.34,51.7:crs=EPSG:4326\n")
    warning = io.StringIO()
    with redirect_stderr(warning):
        assert run([str(each) for each in (*options, "--bounds=-8,49,2,61")]) == 0
    assert warning.getvalue() == (
        "psd: warning: --bounds -8 49 2 61 may be degrees, and --crs EPSG:27700 has none: records "
        "elsewhere are left out. If they are, write --bounds=-8,49,2,61:crs=EPSG:4326\n"
    )
