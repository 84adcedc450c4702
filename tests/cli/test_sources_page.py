"""docs/guide/sources.md: its examples run as they are written, in their order."""

import re
import shlex
from pathlib import Path

import geopandas as gpd
import pandas as pd
import pyarrow as pa
import pytest

from support.cli_runner import passes
from support.postgres import execute, ingest, rows

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "postgresql://ann@db.example.org/city"


def blocks(text):
    """Kind and content of every block of code."""
    return re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def prepare(url):
    """What the page takes for granted in the database."""
    visits = pd.read_csv(ROOT / "data" / "seoul" / "visits.csv", dtype={"user_id": str})
    ingest(url, "page", pa.Table.from_pandas(visits))
    districts = gpd.read_file(ROOT / "data" / "seoul" / "districts.geojson")
    names = districts[[districts.columns[0]]].set_axis(["name"], axis=1)
    shapes = names.assign(wkb=districts.geometry.to_wkb())
    ingest(url, "outlines", pa.Table.from_pandas(shapes))
    execute(
        url,
        "CREATE TABLE visits AS SELECT user_id, 20 AS age, "
        "ST_SetSRID(ST_Point(lon, lat), 4326) AS geom FROM page",
        "CREATE TABLE districts AS SELECT name::text, ST_SetSRID(wkb::geometry, 4326) AS geom "
        "FROM outlines",
    )


@pytest.mark.nightly
def test_examples_of_the_page_run(tmp_path, monkeypatch, postgis):
    prepare(postgis)
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    text = (
        (ROOT / "docs" / "guide" / "sources.md")
        .read_text(encoding="utf-8")
        .replace(ADDRESS, postgis)
    )
    names, ran = {}, []
    for kind, block in blocks(text):
        if kind == "python":
            exec(block, names)
        elif kind == "sql":
            answers = rows(postgis, block.strip().removesuffix(";"))
            assert len(answers) == 5
            assert all(count > 0 for _, count in answers)
        else:
            lines = re.findall(r"^psd .*", block.replace("\\\n", " "), re.MULTILINE)
            for line in lines:
                name, again = shlex.split(line)[1], "--overwrite"
                assert passes(*shlex.split(line)[1:], again)
                ran.append(name)
    assert ran == ["build"] * 5 + ["export"]
