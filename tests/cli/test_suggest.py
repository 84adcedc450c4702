"""psd suggest, from records to the table of a person."""

import json
import subprocess
import sys

import pytest

import psd
from robustness.bad_suggestions import PLACES, TRAIN, SuggestCase, prepare
from support.cli_runner import cli, files

PRICE = ("--epsilon", "0.3", "--delta", "1e-6")
LEDGER = ("--ledger", "city.ledger", "--dataset", "visits")


@pytest.fixture
def room(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    prepare(SuggestCase(name="S00", given=""))
    return tmp_path


def test_weights_are_learnt_charged_and_used(room):
    ledger = psd.Ledger.create("city.ledger")
    ledger.register("visits", 1, unit="user", columns=psd.Columns(user="id"), delta="1e-6")
    outcome = cli("suggest", *TRAIN.split(), *PRICE, *LEDGER)
    assert outcome.code == 0, outcome
    assert outcome.out.startswith("wrote out.json\nledger head 4 ")
    (charge,) = ledger.state().charges.values()
    assert (charge.what, charge.done) == ("suggest", True)
    assert json.loads((room / "out.json").read_text())["charge"] == charge.id
    places = PLACES.replace("city.weights.json", "out.json")
    rows = json.loads(cli("suggest", *places.split(), "-k", 5, "--format", "json").out)
    assert [row["rank"] for row in rows] == [1, 2, 3, 4, 5]


def test_a_budget_that_does_not_suffice_writes_nothing(room):
    ledger = psd.Ledger.create("city.ledger")
    ledger.register("visits", "0.1", unit="user", columns=psd.Columns(user="id"), delta="1e-6")
    outcome = cli("suggest", *TRAIN.split(), *PRICE, *LEDGER)
    assert (outcome.code, (room / "out.json").exists()) == (4, False)
    assert not ledger.state().charges


@pytest.mark.parametrize("name", ["city.ledger", "city.psd.parquet", "visits.csv"])
def test_no_file_that_is_read_is_overwritten(name, room):
    ledger = psd.Ledger.create("city.ledger")
    ledger.register("visits", 1, unit="user", columns=psd.Columns(user="id"), delta="1e-6")
    before = (room / name).read_bytes()
    line = TRAIN.replace("out.json", name).split()
    outcome = cli("suggest", *line, *PRICE, *LEDGER, "--overwrite")
    assert (outcome.code, outcome.out) == (6, "")
    assert "is read as an input too" in outcome.err
    assert (room / name).read_bytes() == before


def test_with_a_ledger_no_message_tells_of_a_record(room):
    ledger = psd.Ledger.create("city.ledger")
    ledger.register("visits", 1, unit="user", columns=psd.Columns(user="id"), delta="1e-6")
    (room / "visits.csv").write_text("id,lon,lat\n,1,1\n")
    outcome = cli("suggest", *TRAIN.split(), *PRICE, *LEDGER)
    assert (outcome.code, outcome.out) == (8, "")
    assert "the input could not be read to its end" in outcome.err
    assert "id" not in outcome.err.replace("--report-private", "").split()
    assert not (room / "out.json").exists()
    told = cli("suggest", *TRAIN.split(), *PRICE, *LEDGER, "--report-private")
    assert "PRIVATE" in told.err
    assert "no user id" in told.err


def test_the_weights_are_written_beside_nothing_else(room):
    before = files(room)
    assert cli("suggest", *TRAIN.split(), *PRICE).code == 0
    assert files(room) == sorted([*before, "out.json"])
    assert cli("suggest", *TRAIN.split(), *PRICE).code == 6
    assert cli("suggest", *TRAIN.split(), *PRICE, "--overwrite").code == 0


def test_the_table_has_the_ranks_of_the_own_places(room):
    outcome = cli("suggest", *PLACES.split(), "-k", 3, "--format", "csv")
    header, *rows = outcome.out.splitlines()
    assert header == "rank,west,south,east,north,own_place,score"
    assert [row.split(",")[0] for row in rows] == ["1", "2", "3"]
    assert cli("suggest", *PLACES.split(), "-k", 3).out.count("\n") >= 4


def test_the_table_for_people_says_yes_for_own_places(room):
    words = set(cli("suggest", *PLACES.split()).out.split())
    assert words & {"yes", "no", "True", "False"} == {"yes", "no"}


def test_places_takes_other_columns(room):
    (room / "own.csv").write_text("east,north\n1.5,2.5\n7,7\n")
    outcome = cli("suggest", *PLACES.split(), "--x", "east", "--y", "north")
    assert outcome.code == 0, outcome


def test_the_device_loads_no_private_module_opens_no_connection_and_writes_no_file(room):
    """In a process of its own, each file that is opened to write, and each socket, is an error."""
    script = f"""
import sys

def refuse(event, args):
    writes = event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+")
    if event.startswith(("socket.", "subprocess.", "os.system")) or writes:
        if event != "open" or str(args[0]) != "/dev/null":
            sys.stdout.write(f"REFUSED {{event}} {{args}}\\n")
            sys.exit(9)

sys.dont_write_bytecode = True
import psd, psd_cli.main
sys.addaudithook(refuse)
code = psd_cli.main.run(["suggest"] + {PLACES.split()!r})
private = ("ingest", "mechanisms", "curator", "ledger", "publish", "evaluation", "planning")
loaded = [n for n in sys.modules if n.startswith(tuple("psd." + name for name in private))]
sys.exit(str(loaded) if loaded else code)
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "REFUSED" not in ended.stdout


def test_help_names_both_commands():
    assert {"train", "places"} <= set(cli("suggest").out.split())
    assert "never" in cli("suggest", "--help").out
