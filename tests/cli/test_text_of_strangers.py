"""Text of files, ids, paths and messages is printed as it is: no markup, no codes of a terminal."""

import json
import re
from pathlib import Path

import geopandas as gpd
import pandas as pd
import pyarrow.parquet as pq
import pytest
import shapely

import psd_cli
from psd_cli.output.terminal import printable
from support.cli_runner import Terminal, cli, fails, three_by_three
from support.forged_releases import stamped

CLOSING = "[/x]"
COLOURED = "[red]:smile:[/red]"
LOCAL = (
    'ENGCRS["[/x][bold]",EDATUM["[/x]"],CS[Cartesian,2],AXIS["x",east],AXIS["y",north],'
    'LENGTHUNIT["metre",1]]'
)
BOX = ("--box", -4, -1, 5, 5)


def inside(folder):
    """A folder whose name opens a tag, so that the names of its files close one."""
    (folder / "[").mkdir(exist_ok=True)
    return folder / "["


@pytest.fixture
def release(tmp_path):
    """A release that a stranger edited, in a file whose name is markup."""
    path = inside(tmp_path) / "x][red].psd.parquet"
    three_by_three().save(path)
    table = pq.read_table(path)
    header = json.loads(table.schema.metadata[b"psd"])
    header |= {"library": COLOURED, "parameters": {CLOSING: COLOURED}}
    header["domain"]["crs"] = LOCAL
    footer = stamped(table, {"psd": json.dumps(header, sort_keys=True)})
    pq.write_table(table.replace_schema_metadata(footer), path)
    return path


def shown(*args):
    outcome = cli(*args)
    assert outcome.code == 0, outcome.err
    return outcome.out


def test_info_shows_the_text_of_a_release_as_it_is(release):
    text = shown("info", release)
    assert f"{CLOSING}={COLOURED}" in text
    assert 'ENGCRS["[/x][bold]"' in text


def test_query_shows_the_text_of_a_release_as_it_is(release):
    assert "22" in shown("query", release, "--box", -4, -4, 5, 5)
    assert "all of the error" in shown("query", release, *BOX, "--explain")


@pytest.mark.parametrize("kind", [(), ("--joint",)])
@pytest.mark.parametrize("name", [CLOSING, COLOURED, "[bold]", "\\[x]"])
def test_ids_are_shown_as_they_are(tmp_path, name, kind):
    path = tmp_path / "r.psd.parquet"
    three_by_three().save(path)
    boxes = inside(tmp_path) / "b].csv"
    sides = {"west": [-4, 0], "south": [-4, 0], "east": [0, 5], "north": [0, 5]}
    pd.DataFrame({**sides, "id": [name, "b"]}).to_csv(boxes, index=False)
    text = shown("query", path, "--boxes", boxes, *kind)
    assert text.count(name) == 1 + 2 * len(kind)


def test_names_and_columns_of_polygons_are_shown_as_they_are(tmp_path):
    path = tmp_path / "r.psd.parquet"
    three_by_three().save(path)
    shapes = [shapely.box(-4, -4, 0, 0), shapely.box(0, 0, 5, 5)]
    table = gpd.GeoDataFrame({"name": [CLOSING, "b"], CLOSING: [1, 2]}, geometry=shapes, crs=4326)
    table.to_parquet(tmp_path / "d.parquet")
    polygons = ("--polygons", tmp_path / "d.parquet")
    assert CLOSING in shown("query", path, *polygons)
    assert CLOSING in shown("top", path, "-k", 2, *polygons)


def test_messages_show_paths_and_ids_as_they_are(release, tmp_path):
    assert CLOSING in fails(5, "info", tmp_path / CLOSING)
    (inside(tmp_path) / "d]").write_bytes(b"PAR1")
    assert "[/d] cannot be read as a release" in fails(5, "query", tmp_path / "[/d]", *BOX)
    boxes = tmp_path / "b.csv"
    boxes.write_text(f"id,west,south,east,north\n{CLOSING},90,0,91,1\n")
    assert f"box {CLOSING} (" in fails(2, "query", release, "--boxes", boxes)


def test_no_text_sends_codes_to_a_terminal(tmp_path):
    code = "\x1b[2Jid\x9b31m"
    assert printable(f"{code}한국 é") == "\\x1b[2Jid\\x9b31m한국 é"
    path = tmp_path / "r.psd.parquet"
    three_by_three().save(path)
    boxes = tmp_path / "b.csv"
    for box, place in (("-4,-4,5,5", "out"), ("90,0,91,1", "err")):
        boxes.write_text(f"id,west,south,east,north\n{code},{box}\n")
        for kind in ((), ("--joint",), ("--explain",)):
            text = getattr(cli("query", path, "--boxes", boxes, *kind), place)
            assert "\\x1b[2Jid" in text
            assert "\x1b" not in text


def test_stages_are_text_on_a_terminal(release):
    terminal = Terminal()
    assert cli("query", release, "--box", -4, -4, 5, 5, stderr=terminal).code == 0


def test_markup_is_nowhere_turned_on():
    """Every console comes from one module, and nothing is escaped or marked up elsewhere."""
    folder = Path(psd_cli.__file__).parent
    found = {
        path.name
        for path in folder.rglob("*.py")
        if re.search(r"Console\(|rich\.markup|from_markup|markup=True", path.read_text("utf-8"))
    }
    assert found == {"terminal.py"}
    consoles = re.findall(r"Console\((.*)\)", (folder / "output" / "terminal.py").read_text())
    assert [one for one in consoles if "stderr=True" not in one] == [
        "width=width, markup=False, emoji=False, highlight=False"
    ]
