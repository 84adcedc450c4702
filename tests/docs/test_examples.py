"""Examples of the pages: every command parses, and every example runs as it is written.

A block of code is ``sh``, ``python``, ``sql`` or ``toml``, and runs in the order of the page, in
a folder with the sample data; a block that begins with ``# NAME.toml`` is written to that file.
Before a block that needs more than that (a cluster, files of the reader) stands
``<!-- not run: REASON -->``: its commands are parsed only. A page writes into a folder of its own
under ``try``, so that pages run alone, and one after another in one folder.
"""

import importlib
import re
import sys
from math import exp

import geopandas as gpd
import pandas as pd
import pyarrow as pa
import pytest

import psd
import psd.testing
from psd._util import plugins
from psd.decompositions import methods, register
from psd.ledger.ledger import Ledger
from support.cli_runner import parse
from support.pages import INSTALLS, ROOT, blocks, command_lines, run_page, run_shell
from support.postgres import execute, ingest, rows

PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *(
        str(path.relative_to(ROOT))
        for folder in ("guide", "privacy", "contributing")
        for path in sorted((ROOT / "docs" / folder).glob("*.md"))
    ),
]
FILE = re.compile(
    r"[\w./*?-]+\.(?:parquet|csv|gpkg|npy|tif|fgb|xlsx|json|wkt|html|tally|key|pem|ledger|toml)\b(?!\()"
)
POSTGIS = "needs a PostGIS server"
METHOD = "docs/contributing/method.md"
ADDRESS = "postgresql://ann@db.example.org/city"


def test_blocks_have_a_language_and_commands_parse(subtests):
    for page in PAGES:
        with subtests.test(page):
            for block in blocks(page):
                if not block.language.startswith("{"):  # a directive of the site
                    assert block.language in {"sh", "python", "sql", "toml", "text"}
                for words in command_lines(block) if block.language == "sh" else ():
                    parse(words)


def folder_of(page):
    """Folder into which a page writes; None if it writes nothing."""
    folders = {name for b in blocks(page) for name in re.findall(r"mkdir -p (try\S*)", b.text)}
    assert len(folders) <= 1
    return folders.pop() if folders else None


def paths_in(page):
    """Texts of the examples of a page that may name files."""
    for block in blocks(page):
        if block.reason in ("", POSTGIS) and INSTALLS not in block.text:
            # The paths of a recipe begin at its folder, so only its own name counts.
            code = block.text.partition("\n")[0] if block.language == "toml" else block.text
            yield re.sub(r'folder / f?"[^"]*"|  +# .*', "", code)


def test_a_page_writes_into_its_folder_which_no_other_has(subtests):
    for page in {*PAGES} - {"CONTRIBUTING.md", METHOD}:
        with subtests.test(page):
            code = "".join(paths_in(page))
            beginnings = ("data/", f"{folder_of(page)}/")
            elsewhere = {name for name in FILE.findall(code) if not name.startswith(beginnings)}
            elsewhere -= {"psd.ledger"}  # a module
            assert elsewhere <= {"seoul.psd.parquet"}, "of the first command of the README alone"
            assert not re.search(r"(-o |save\(\"|create |> )seoul\.", code)
    folders = [folder for page in PAGES if (folder := folder_of(page))]
    assert len(folders) > 10
    assert len({*folders}) == len(folders)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the sample data and a release of it."""
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    return tmp_path


@pytest.fixture
def release(folder):
    """The release of the first command of the README."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    command = re.search(r"&& (psd build .*?) &&", readme)[1]
    run_shell(command)


@pytest.fixture
def database(postgis):
    """The tables that the page of sources expects in a database, which has no others later on."""
    before = tables_of(postgis)
    visits = pd.read_csv(ROOT / "data" / "seoul" / "visits.csv", dtype={"user_id": str})
    ingest(postgis, "page", pa.Table.from_pandas(visits))
    districts = gpd.read_file(ROOT / "data" / "seoul" / "districts.geojson")
    names = districts[[districts.columns[0]]].set_axis(["name"], axis=1)
    shapes = names.assign(wkb=districts.geometry.to_wkb())
    ingest(postgis, "outlines", pa.Table.from_pandas(shapes))
    execute(
        postgis,
        "CREATE TABLE visits AS SELECT user_id, 20 AS age, "
        "ST_SetSRID(ST_Point(lon, lat), 4326) AS geom FROM page",
        "CREATE TABLE districts AS SELECT name::text, ST_SetSRID(wkb::geometry, 4326) AS geom "
        "FROM outlines",
    )
    yield postgis
    execute(postgis, *(f'DROP TABLE "{name}"' for name in tables_of(postgis) - before))


def tables_of(url):
    """Names of the tables of a database."""
    query = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'"
    return {name for (name,) in rows(url, query)}


SPECIAL = {
    "CONTRIBUTING.md",
    "docs/guide/sources.md",
    "docs/guide/ledger.md",
    "docs/guide/signing.md",
    METHOD,  # tests/contract/test_outside_packages.py runs it
}


@pytest.mark.nightly
@pytest.mark.parametrize("page", [page for page in PAGES if page not in SPECIAL])
def test_examples_run(page, release):
    run_page(page)
    if page == "docs/guide/tallies.md":
        for name, most in {"whole": 1, "parts": 1, "users": 4, "again": 4}.items():
            assert psd.load(f"try/tallies/{name}.psd.parquet").unit.max_contributions == most


@pytest.mark.deep
def test_examples_of_signing_run(release):
    run_page("docs/guide/signing.md")


@pytest.mark.nightly
def test_examples_of_sources_run(folder, database):
    run_page("docs/guide/sources.md", (ADDRESS, database), POSTGIS)


@pytest.mark.nightly
def test_examples_of_the_ledger_run(folder):
    run_page("docs/guide/ledger.md")
    book = Ledger("try/ledger/city.ledger").verify()
    assert [charge.done for charge in book.charges.values()] == [True] * 6
    assert Ledger("try/ledger/town.ledger").state().spent("visits") == 600_000_000


@pytest.mark.slow  # as long as all others together
@pytest.mark.nightly
def test_all_pages_run_one_after_another_in_one_folder(release, database):
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    linked = dict.fromkeys(f"docs/{name}" for name in re.findall(r"\]\(([\w/-]+\.md)\)", index))
    order = [page for page in ("README.md", *linked) if page in PAGES and folder_of(page)]
    assert {*order} == {page for page in PAGES if folder_of(page)}
    for page in order:
        run_page(page, (ADDRESS, database), POSTGIS)


def test_the_method_of_contributing_builds_a_release(monkeypatch):
    monkeypatch.setattr(plugins, "_registered", {})
    (code,) = (b.text for b in blocks("CONTRIBUTING.md") if b.language == "python")
    names = {}
    exec(code, names)
    if "halves" not in methods():  # else it was saved beside the other methods
        register(names["method"])
    points = pd.DataFrame({"lon": [1.0, 2.0, 3.0], "lat": [1.0, 2.0, 3.0]})
    release = psd.build(points, domain=(0, 0, 4, 4), epsilon=1, method="halves")
    assert release.tree.is_leaf.sum() == 8


@pytest.mark.deep
def test_the_method_of_contributing_passes_the_contract_as_a_file_of_the_package(
    tmp_path, monkeypatch
):
    (code,) = (b.text for b in blocks("CONTRIBUTING.md") if b.language == "python")
    for line in ("from psd import", "import psd\n"):
        assert line not in code, "a method of psd cannot import the public interface"
    (tmp_path / "halves.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        module = importlib.import_module("halves")
        for section in ("Guarantees", "Parameters", "References", "Examples"):
            assert section in module.method.__doc__
        assert "References" in module.__doc__
        psd.testing.check_method(module.method(height=2))
    finally:
        sys.modules.pop("halves", None)


@pytest.mark.deep
def test_odds_of_the_page_are_those_that_its_command_prints():
    page = "docs/privacy/epsilon.md"
    text = (ROOT / page).read_text(encoding="utf-8")
    table = re.findall(r"^\| ([\d.]+) \| ([\d.]+) : 1 \| ([\d.]+) % \| ([\d.]+) % ", text, re.M)
    printed = [line.split() for line in run_shell(blocks(page)[0].text).splitlines()]
    assert len(table) == len(printed) == 5
    for row, line in zip(table, printed, strict=True):
        epsilon, odds, even, rare = map(float, line)
        assert odds == round(exp(epsilon), 3)
        digits = len(row[1].partition(".")[2])
        assert row == (line[0], f"{odds:.{digits}f}", f"{even:.1%}"[:-1], f"{rare:.1%}"[:-1])
