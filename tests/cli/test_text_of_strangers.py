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
# The name of the folder opens a tag, so that the names of its files close one.
FORGED = "[/x][red].psd.parquet"
SIDES = "id,west,south,east,north\n"


@pytest.fixture(autouse=True)
def forged(release, here):
    """A release that a stranger edited, in a file whose name is markup."""
    (here / "[").mkdir()
    three_by_three().save(FORGED)
    table = pq.read_table(FORGED)
    header = json.loads(table.schema.metadata[b"psd"])
    header |= {"library": COLOURED, "parameters": {CLOSING: COLOURED}}
    header["domain"]["crs"] = LOCAL
    footer = stamped(table, {"psd": json.dumps(header, sort_keys=True)})
    pq.write_table(table.replace_schema_metadata(footer), FORGED)


def shown(*args):
    outcome = cli(*args)
    assert outcome.code == 0, outcome.err
    return outcome.out


def test_query_shows_the_text_of_a_release_as_it_is(subtests, here):
    line = f"query {FORGED} --box -4 -4 5 5"
    assert "22" in shown(line)
    assert "all of the error" in shown(f"query {FORGED} --box -4 -1 5 5 --explain")
    assert cli(line, stderr=Terminal()).code == 0
    text = shown("info", FORGED)
    assert f"{CLOSING}={COLOURED}" in text
    assert 'ENGCRS["[/x][bold]"' in text
    for name in (CLOSING, COLOURED, "[bold]", "\\[x]"):
        sides = {"west": [-4, 0], "south": [-4, 0], "east": [0, 5], "north": [0, 5]}
        pd.DataFrame({**sides, "id": [name, "b"]}).to_csv("[/b].csv", index=False)
        for kind, number in (("", 1), ("--joint", 3)):
            with subtests.test(name, kind=kind):
                text = shown(f"query r.psd.parquet --boxes [/b].csv {kind}")
                assert text.count(name) == number
    shapes = [shapely.box(-4, -4, 0, 0), shapely.box(0, 0, 5, 5)]
    table = gpd.GeoDataFrame({"name": [CLOSING, "b"], CLOSING: [1, 2]}, geometry=shapes, crs=4326)
    table.to_parquet("d.parquet")
    assert CLOSING in shown("query r.psd.parquet --polygons d.parquet")
    assert CLOSING in shown("query r.psd.parquet --top 2 --polygons d.parquet")
    assert CLOSING in fails(5, "info", CLOSING)
    (here / "[" / "d]").write_bytes(b"PAR1")
    told = fails(5, "query [/d] --box -4 -1 5 5")
    assert "[/d] cannot be read as a release" in told
    (here / "b.csv").write_text(f"{SIDES}{CLOSING},90,0,91,1\n")
    assert f"box {CLOSING} (" in fails(2, f"query {FORGED} --boxes b.csv")


def test_no_text_sends_codes_to_a_terminal(here):
    code = "\x1b[2Jid\x9b31m"
    assert printable(f"{code}한국 é") == "\\x1b[2Jid\\x9b31m한국 é"
    for box, place in (("-4,-4,5,5", "out"), ("90,0,91,1", "err")):
        (here / "b.csv").write_text(f"{SIDES}{code},{box}\n")
        for kind in ("", "--joint", "--explain"):
            text = getattr(cli(f"query r.psd.parquet --boxes b.csv {kind}"), place)
            assert "\\x1b[2Jid" in text
            assert "\x1b" not in text


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
