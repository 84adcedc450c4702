"""Programs of others that reopen what was written: GDAL's command line and QGIS."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "assets" / "qgis_picture.py"


def require(program, package):
    """Skip a test without a program, or fail where PSD_REQUIRE_GIS says that it is installed."""
    if shutil.which(program) is None:
        reason = f"{program} is not installed: apt-get install {package}"
        if os.environ.get("PSD_REQUIRE_GIS"):
            pytest.fail(reason)
        pytest.skip(reason)


def run(*words):
    """Output of a program."""
    surroundings = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, timeout=900, env=surroundings,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def ogrinfo(path, *words):
    """What GDAL says of a vector file."""
    require("ogrinfo", "gdal-bin")
    return run("ogrinfo", "-ro", *words, path)


def ogr_csv(path, query):
    """Rows of a query of a vector file, as GDAL writes them to CSV."""
    require("ogr2ogr", "gdal-bin")
    return run("ogr2ogr", "-f", "CSV", "/vsistdout/", path, "-sql", query)


def gdalinfo(path):
    """What GDAL says of a raster."""
    require("gdalinfo", "gdal-bin")
    return json.loads(run("gdalinfo", "-json", path))


def qgis(path, picture, *style):
    """How QGIS draws a file."""
    require("qgis", "qgis python3-qgis")
    return json.loads(run("/usr/bin/python3", PICTURE, path, picture, *style).splitlines()[-1])
