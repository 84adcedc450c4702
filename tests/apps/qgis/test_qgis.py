"""The plugin of QGIS: forms, words of a command line, the archive, and the real program."""

import io
import json
import os
import re
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import geopandas as gpd
import pytest

import psd
from psd._apps import has_command
from psd._util.extras import INSTALL, SOURCE
from psd.apps.qgis.archive import plugin_archive
from psd.apps.qgis.plugin import command_line
from psd.apps.qgis.plugin.command_line import CommandError, check_version, find_command
from psd_cli.commands import find_command as find_psd_command
from psd_cli.commands._statistics import TITLES
from psd_cli.output.command_forms import COMMANDS, command_form
from support.cli_runner import fails, passes
from support.programs import require

TOP = Path(__file__).resolve().parents[3]
SCRIPT = TOP / "tests" / "support" / "run_in_qgis.py"
SEOUL = TOP / "data" / "seoul"
BOUNDS = "126.4,127.6,37,38 [EPSG:4326]"


def command_file(folder, text):
    path = folder / "psd"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_words_of_a_form():
    form = command_form("build")
    values = {
        "inputs": ["-a.csv", "b.csv"], "epsilon": "1", "bounds": "-1.5,2,3,4:crs=EPSG:4326",
        "set": ["height=8", "size=4"], "overwrite": True, "user": "", "crs": None,
    }  # fmt: skip
    assert command_line.words_of(form, values) == [
        "build", "--epsilon=1", "--set=height=8", "--set=size=4", "--bounds", "-1.5,2,3,4",
        "--bounds-crs=EPSG:4326", "--overwrite", "--", "-a.csv", "b.csv",
    ]  # fmt: skip
    values = {"box": ["1 2 3 4", "-5,6,7,8"], "release": "r.psd.parquet"}
    assert command_line.words_of(command_form("query"), values) == [
        "query", "--box", "1", "2", "3", "4", "--box", "-5", "6", "7", "8", "--", "r.psd.parquet"
    ]  # fmt: skip
    values = {"values": ["fare 0 60", '"trip length", -1.5, 9'], "epsilon": "1"}
    assert command_line.words_of(form, values) == [
        "build", "--epsilon=1", "--value", "fare", "0", "60", "--value", "trip length", "-1.5", "9",
    ]  # fmt: skip
    asked = {"release": "r", "mean": ["fare", "trip length"], "sum": ["fare"]}
    assert command_line.words_of(command_form("query"), asked) == [
        "query", "--mean=fare", "--mean=trip length", "--sum=fare", "--", "r"
    ]  # fmt: skip
    for wrong in ("fare 0", "trip length 0 60", '"fare 0 60'):
        with pytest.raises(CommandError, match="--value must be a column and two bounds, got"):
            command_line.words_of(form, {"values": [wrong]})
    with pytest.raises(CommandError, match="--box must be 4 numbers, got '1 2 3'"):
        command_line.words_of(command_form("query"), {"box": ["1 2 3"]})


def test_a_command_of_another_version_is_refused_and_an_error_shown_as_it_is(tmp_path):
    command = command_file(tmp_path, "echo psd, version 1.9.0")
    for version in ("1.9.0", "1.9.12"):
        check_version(command, version)
    for version in ("1.8.0", "1.10.0", "2.9.0"):
        minor = version.removesuffix(".0")
        with pytest.raises(CommandError, match=f"version {minor} as the plugin, got 1.9.0; insta"):
            check_version(command, version)
    with pytest.raises(CommandError, match="must be the command psd of this plugin, got"):
        check_version(command_file(tmp_path, "echo hello"), "1.0")
    # The psd of PyPI, 1.5.2, has files of numbers as its arguments, and no --version.
    stranger = "echo 'psd: error: the following arguments are required: INPUT' >&2; exit 2"
    with pytest.raises(CommandError, match=r"got .*INPUT.* the psd of PyPI is another program: "):
        check_version(command_file(tmp_path, stranger), "1.0")
    for text, shown in [
        ("echo 'psd: error: --x must be 1' >&2; exit 2", "^psd: error: --x must be 1$"),
        ("exit 7", "ended with code 7"),
    ]:
        with pytest.raises(CommandError, match=shown):
            command_line.run_command([command_file(tmp_path, text)])


def test_the_python_of_qgis_is_not_handed_on_and_a_run_can_be_stopped(monkeypatch, tmp_path):
    for name in ("PYTHONPATH", "PYTHONHOME", "GDAL_DATA", "PROJ_LIB"):
        monkeypatch.setenv(name, "/foreign")
    monkeypatch.setenv("LANG", "C.UTF-8")
    output, _ = command_line.run_command([command_file(tmp_path, "env")])
    assert "/foreign" not in output
    assert "LANG=C.UTF-8" in output
    with pytest.raises(CommandError):
        command_line.run_command([command_file(tmp_path, "exec sleep 600")], lambda: True)


def test_a_command_that_is_not_there_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CommandError, match="psd was not found; "):
        find_command("")
    with pytest.raises(CommandError, match="no/such/psd was not found"):
        find_command("no/such/psd")
    assert find_command(command_file(tmp_path, "true")) == find_command("")


def archive():
    return plugin_archive([command_form(name) for name in filter(has_command, COMMANDS)])


def test_the_archive_states_version_and_forms():
    with zipfile.ZipFile(io.BytesIO(archive())) as found:
        stated = json.loads(found.read("psd_qgis/forms.json"))
        assert f"version={psd.__version__}\n" in found.read("psd_qgis/metadata.txt").decode()
    assert stated["version"] == psd.__version__
    assert [form["command"] for form in stated["forms"]] == [*filter(has_command, COMMANDS)]
    assert archive() == archive()
    with zipfile.ZipFile(io.BytesIO(plugin_archive([]))) as alone:
        names = alone.namelist()
        assert {name.split("/")[0] for name in names} == {"psd_qgis"}
        texts = "".join(alone.read(name).decode() for name in names)
        assert INSTALL in texts
        assert f"tracker={SOURCE}" in texts
        assert not re.search("@[A-Z]+@", texts)
        wanted = {f"psd_qgis/{name}" for name in ("__init__.py", "metadata.txt", "icon.svg")}
        assert wanted <= set(names)
        for name in names:
            if name.endswith(".py"):
                compile(alone.read(name), name, "exec")


@pytest.fixture
def plugin(tmp_path):
    """Folder with the plugin as QGIS installs it, in a profile."""
    folder = tmp_path / "my profile é" / "profiles" / "default" / "python" / "plugins"
    with zipfile.ZipFile(io.BytesIO(archive())) as found:
        found.extractall(folder)
    return folder


def surroundings(folder, **more):
    """Variables for a program of QGIS, with the command of this environment on the path."""
    # QGIS takes the first python3 on the path for its own.
    path = f"/usr/bin:/bin:{Path(sys.executable).parent}"
    inherited = {"PSD_REQUIRE_GIS": "1"} if os.environ.get("PSD_REQUIRE_GIS") else {}
    return {"PATH": path, "HOME": str(folder), **inherited, **more}


def run_steps(plugin, folder, *steps, **more):
    """Results of algorithms in QGIS, or their errors."""
    require("qgis", "qgis python3-qgis")
    (folder / "steps.json").write_text(json.dumps(steps))
    done = subprocess.run(
        ["/usr/bin/python3", str(SCRIPT), str(plugin), str(folder / "steps.json")],
        capture_output=True, text=True, check=False, start_new_session=True,
        env=surroundings(folder, **more),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.deep
@pytest.mark.slow
def test_from_errors_and_records_to_a_styled_map_in_qgis(plugin, tmp_path):
    build = {"INPUTS": [str(SEOUL / "visits.csv")], "EPSILON": "0", "BOUNDS": BOUNDS,
             "OUTPUT": str(tmp_path / "s.psd.parquet")}  # fmt: skip
    twice = {**build, "BOUNDS_TEXT": "126,37,127,38"}
    refused, both = run_steps(plugin, tmp_path, ("psd:build", build), ("psd:build", twice))
    assert "--epsilon must be" in refused
    assert "bounds must be given on the map or as a text, got both" in both
    assert not list(tmp_path.glob("*.parquet"))
    (without,) = run_steps(plugin, tmp_path, ("psd:build", build), PATH="/usr/bin:/bin")
    assert "the command psd was not found; " in without
    release, answers = str(tmp_path / "s.psd.parquet"), str(tmp_path / "answers é.gpkg")
    build = {
        "INPUTS": [str(SEOUL / "visits.csv")], "EPSILON": "1", "BOUNDS": BOUNDS,
        "USER": "user_id", "MAX_CONTRIBUTIONS": "4", "OUTPUT": release,
        "ABOUT": "title=Visits in Seoul\nlicence=CC-BY-4.0",
    }  # fmt: skip
    polygons = str(SEOUL / "districts.geojson")
    built, counted, mapped, exported, planned = run_steps(
        plugin, tmp_path,
        ("psd:build", build),
        ("psd:query", {"RELEASE": release, "POLYGONS": polygons, "OUTPUT": answers}),
        ("psd:addtomap", {"RELEASE": release, "STYLE": "reliability",
                          "OUTPUT": str(tmp_path / "map.gpkg")}),
        ("psd:export", {"RELEASE": release, "SIZE": "20 10", "LOAD_LAYER": True,
                        "OUTPUT": str(tmp_path / "cells.tif")}),
        ("psd:plan", {"AREA": 605, "COUNT": 10000, "EPSILON": "1", "METHODS": "quadtree",
                      "DENSITY": "uniform", "SIZES": "1%", "RUNS": 1,
                      "OUTPUT": str(tmp_path / "plan.csv")}),
    )  # fmt: skip
    assert built["OUTPUT"] == release
    loaded = psd.load(release)
    assert loaded.record.about_texts["title"] == "Visits in Seoul"
    assert loaded.record.about_texts["licence"] == "CC-BY-4.0"
    assert loaded.domain.bounds == (126.4, 37.0, 127.6, 38.0)
    assert Path(counted["OUTPUT"]).exists()
    assert mapped["layers"] == ['coalesce("relative_error", 100000000000)']
    assert exported["layers"] == ["raster"]
    assert "wrote" in planned["TEXT"]


@pytest.mark.deep
@pytest.mark.slow
def test_values_from_records_to_a_map_of_means_in_qgis(plugin, tmp_path):
    release, answers = str(tmp_path / "r.psd.parquet"), str(tmp_path / "answers.gpkg")
    build = {
        "INPUTS": [str(TOP / "data" / "trips" / "rides.csv")], "EPSILON": "1", "BOUNDS": BOUNDS,
        "VALUES": "fare 0 60", "OUTPUT": release,
    }  # fmt: skip
    polygons = str(SEOUL / "districts.geojson")
    place = str(tmp_path / "map.gpkg")
    _, counted, mapped, refused = run_steps(
        plugin, tmp_path,
        ("psd:build", build),
        ("psd:query", {"RELEASE": release, "POLYGONS": polygons, "MEAN": "fare", "SUM": "fare",
                       "OUTPUT": answers}),
        ("psd:addtomap", {"RELEASE": release, "LEVEL": "5", "VALUE": "fare", "OUTPUT": place}),
        ("psd:addtomap", {"RELEASE": release, "VALUE": "tip", "OUTPUT": place}),
    )  # fmt: skip
    assert mapped["layers"] == ["mean_fare"]
    assert "the value must be one of the release, got tip" in refused
    table = gpd.read_file(counted["OUTPUT"], layer="answers")
    expected = psd.load(release).query(gpd.read_file(polygons), mean="fare", sum="fare").table
    assert table["mean_fare"].to_numpy() == pytest.approx(expected["mean_fare"].to_numpy())
    # Polygons go through a file of QGIS; the end of an interval follows its rounding.
    upper = expected["sum_fare_upper"].to_numpy()
    assert table["sum_fare_upper"].to_numpy() == pytest.approx(upper, rel=1e-4)


@pytest.mark.deep
@pytest.mark.slow
def test_qgis_process_knows_the_plugin(plugin, tmp_path):
    require("qgis_process.bin", "qgis")
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    variables = surroundings(
        tmp_path, QT_QPA_PLATFORM="offscreen", XDG_RUNTIME_DIR=str(runtime),
        QGIS_CUSTOM_CONFIG_PATH=str(plugin.parents[3]),
    )  # fmt: skip

    def process(*words):
        # It ends its whole group of processes when it leaves, so it has one of its own.
        return subprocess.run(
            ["qgis_process.bin", *words], capture_output=True, text=True, check=False,
            start_new_session=True, env=variables,
        )  # fmt: skip

    assert process("plugins", "enable", "psd_qgis").returncode == 0
    words = ["AREA=605", "COUNT=10000", "EPSILON=1", "METHODS=quadtree", "SIZES=1%",
             "DENSITY=uniform", "RUNS=1", f"OUTPUT={tmp_path}/plan.csv"]  # fmt: skip
    done = process("run", "psd:plan", "--", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "quadtree" in (tmp_path / "plan.csv").read_text()


# PRIVATE numbers on the screen, the form of what is printed, and the limit for unknown senders.
NOT_IN_FORMS = {"site", "report_private", "details", "form", "max_nodes", "help_all"}


def test_a_form_has_every_option_of_its_command_and_no_command_line(subtests):
    for name in filter(has_command, COMMANDS):
        with subtests.test(name):
            form = command_form(name)
            params = find_psd_command(name).params
            shown = [each for each in params if getattr(each, "group", "") not in TITLES]
            options = {parameter.name for parameter in shown} - NOT_IN_FORMS
            if "releases" in options:  # for folders, which no form writes
                options = options - {"releases"} | {"release"}
            fields = {field["name"] for field in form["fields"]}
            assert fields == options
            assert form["text"]
            assert "Examples:" not in form["text"]
            assert all(field["help"] for field in form["fields"] if field["option"])


def test_the_plugin_of_qgis_is_written_once(here):
    assert "Install from ZIP" in passes("qgis -o psd-é.zip")
    assert zipfile.ZipFile("psd-é.zip").testzip() is None
    assert "--overwrite" in fails(6, "qgis -o psd-é.zip")
    passes("qgis -o psd-é.zip --overwrite")
    assert "-o must end in .zip" in fails(2, "qgis -o psd.qgz")
