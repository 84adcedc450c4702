"""Inputs of every kind on the command line."""

import sys

import pyarrow as pa
import pytest

from support.cli_runner import BOUNDS, check_refusals, cli, fails, passes, write_points
from support.input_kinds import BUILD, KINDS, ROWS, builds_all_rows, write_parts
from support.postgres import execute, ingest

REGISTER = "ledger register l visits --budget 1"
PAID = ("--ledger", "l", "--dataset", "visits")

pytestmark = pytest.mark.usefixtures("here")


def test_a_build_reads_every_kind(here, subtests):
    (here / "d").mkdir()
    for given, make in KINDS.items():
        with subtests.test(given):
            make()
            builds_all_rows(given)


@pytest.mark.deep
def test_the_same_table_of_postgis(postgis):
    execute(postgis, "DROP TABLE IF EXISTS walks")
    ingest(postgis, "walks", pa.Table.from_pandas(ROWS))
    for given in (("--table", "public.walks"), ("--query", "SELECT * FROM walks")):
        passes("build", postgis, *given, "-o", "r", "--overwrite", *BUILD)
    told = fails(8, f"build {postgis} --table nothing -o x", *BUILD)
    assert "table nothing of database postgres on the local server names a table" in told
    told = fails(8, f"build {postgis} {postgis} --table walks -o x", *BUILD)
    assert "repeated" in told
    told = fails(8, "build postgresql://ann:secret@127.0.0.1:1/db --table a -o x", *BUILD)
    assert "does not answer" in told
    assert "secret" not in told
    execute(postgis, "DROP TABLE IF EXISTS half")
    ingest(postgis, "half", pa.Table.from_pandas(ROWS.iloc[::2]))
    ROWS.iloc[1::2].to_csv("a.csv", index=False)
    builds_all_rows(f"{postgis} a.csv --table half")


REFUSED = [
    (2, "a.parquet --table b", "--table must be given with an input"),
    (2, ("a.parquet", "--query", "SELECT 1"), "--query must be given with an input"),
    (2, "postgresql://ann:secret@host/db", "database db on host needs either --table"),
    (2, ("postgresql://h/db", "--table", "a", "--query", "SELECT 1"), "needs either --table"),
    (2, "a.parquet --time seen --time-zone KST --slices 2024-01", "Asia/Seoul"),
    (8, "a.parquet --time id --slices 2024-01", "'id' holds text that is not a time"),
    (8, "a.parquet --time when --slices 2024-01", "no column 'when'"),
    (2, "a.parquet --time lon --slices 2024-01", "different columns"),
    (8, "a.parquet --geometry place", "no column 'place'"),
    (8, "a.parquet a.parquet", "twice"),
    (8, "a.parquet *.parquet", "twice"),
    (8, "nothing/*.parquet", "no file matches"),
]


def test_what_is_refused_and_that_times_are_read(subtests):
    ROWS.to_parquet("a.parquet")
    check_refusals(subtests, REFUSED, "build", "-o", "r.psd", *BUILD)
    assert "secret" not in fails(2, f"build {REFUSED[2][1]} -o r.psd", *BUILD)
    passes("build a.parquet --time seen --time-zone Asia/Seoul --slices 2024-01 -o r", *BUILD)


def test_no_input_is_written_to_and_a_missing_driver_is_named(here, subtests, monkeypatch):
    (here / "d").mkdir()
    write_parts()
    table = [(6, "", "read as an input")]
    check_refusals(subtests, table, "build d -o d/0.parquet --overwrite", *BUILD, folder="d")
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
    outcome = cli("build postgresql://h/d --table a -o r", *BUILD)
    assert outcome.code == 7
    assert ".[postgis]" in outcome.err


def test_a_missing_column_is_answered_by_the_option_that_names_it(here):
    write_points(here / "v.csv", [(1, 2, "a")], header="long,lat,who")
    build = ("build v.csv -o r --epsilon 1", *BOUNDS)
    assert fails(8, *build).endswith(
        "no column 'lon' in the first line; name it by --x NAME; its columns are long, lat, "
        "who; did you mean 'long'?\n"
    )
    users = ("--x", "long", "--user", "id", "--max-contributions", 1)
    assert fails(8, *build, *users).endswith(
        "no column 'id' in the first line; name it by --user NAME; its columns are long, lat, who\n"
    )


@pytest.mark.parametrize(("inner", "pattern"), [("", "*.csv"), ("2024", "**/*.csv")])
def test_other_files_in_a_folder_of_points_are_answered_by_a_pattern(here, inner, pattern):
    (here / "mixed" / inner).mkdir(parents=True)
    for name, point in (("a.csv", (1, 2)), ("b.csv", (2, 3))):
        write_points(here / "mixed" / inner / name, [point])
    (here / "mixed" / "README.txt").write_text("Visits of the spring\n")
    build = ("-o", "r", "--epsilon", 1, *BOUNDS)
    hint = f"a folder stands for all its files: use 'mixed/{pattern}' for those of one kind\n"
    assert fails(8, "build mixed", *build).endswith(hint)
    passes(f"build mixed/{pattern}", *build)
    (here / "mixed" / "README.txt").unlink()
    write_points(here / "mixed" / "c.csv", [(1, 2)], header="a,b")
    assert "a folder stands" not in fails(8, "build mixed", *build, "--overwrite")


def test_with_a_ledger_no_message_names_a_column(here):
    write_points(here / "v.csv", [(1, 2)], header="Breite,Laenge")
    passes("ledger create l")
    passes(REGISTER)
    build = ("build v.csv -o r --epsilon 1", *BOUNDS)
    assert "its columns are Breite, Laenge" in fails(8, *build)
    outcome = cli(*build, *PAID)
    assert outcome.code == 8
    assert "Breite" not in outcome.out + outcome.err


def test_a_registered_delimiter_is_the_only_one(here):
    (here / "v.csv").write_text("lon;lat\n" + "1,5;2\n" * 50)
    passes("ledger create l")
    read = ("--delimiter", ";", "--decimal", ",")
    assert "x=lon y=lat decimal=, delimiter=;" in passes(REGISTER, *read)
    build = ("build v.csv -o r --epsilon 1", *BOUNDS, *PAID)
    assert "is registered with delimiter ';', got 'auto'" in cli(*build, *read[2:]).err
    passes(*build, *read)
