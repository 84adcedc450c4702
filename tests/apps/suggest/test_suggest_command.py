"""psd suggest, from records to the table of a person."""

import json
import subprocess
import sys

import pytest

import psd
from robustness.bad_suggestions import PLACES, TRAINED, prepare
from support.cli_runner import check_refusals, cli, files, passes

TRAIN = f"suggest {TRAINED}"
PAID = f"{TRAIN} --ledger city.ledger --dataset visits"


@pytest.fixture(autouse=True)
def room(here):
    prepare()
    return here


def ledger(budget=1):
    made = psd.Ledger.create("city.ledger")
    made.register("visits", budget, unit="user", columns=psd.Columns(user="id"), delta="1e-6")
    return made


def test_weights_are_learnt_charged_and_used(room):
    book = ledger()
    assert passes(PAID).startswith("wrote out.json\nledger head 4 ")
    (charge,) = book.state().charges.values()
    assert (charge.what, charge.done) == ("suggest", True)
    assert json.loads((room / "out.json").read_text())["charge"] == charge.id
    places = PLACES.replace("city.weights.json", "out.json")
    rows = json.loads(cli(f"suggest {places} -k 5 --format json").out)
    assert [row["rank"] for row in rows] == [1, 2, 3, 4, 5]


def test_a_small_budget_and_files_that_are_read_write_nothing(room, subtests):
    book = ledger("0.1")
    assert cli(PAID).code == 4
    assert not (room / "out.json").exists()
    assert not book.state().charges
    names = ("city.ledger", "city.psd.parquet", "visits.csv")
    told = {"city.ledger": "is never overwritten"}
    table = [(6, f"-o {name}", told.get(name, "is read as an input too")) for name in names]
    line = PAID.replace("-o out.json ", "")
    check_refusals(subtests, table, f"{line} --overwrite")


def test_with_a_ledger_no_message_tells_of_a_record(room):
    ledger()
    (room / "visits.csv").write_text("id,lon,lat\n,1,1\n")
    outcome = cli(PAID)
    assert (outcome.code, outcome.out) == (8, "")
    assert "the input could not be read to its end" in outcome.err
    assert "id" not in outcome.err.replace("--report-private", "").split()
    assert not (room / "out.json").exists()
    told = cli(f"{PAID} --report-private").err
    assert "PRIVATE" in told
    assert "no user id" in told


def test_the_weights_are_written_beside_nothing_else(room):
    before = files(room)
    assert cli(TRAIN).code == 0
    assert files(room) == sorted([*before, "out.json"])
    assert cli(TRAIN).code == 6
    assert cli(f"{TRAIN} --overwrite").code == 0


def test_the_table_has_the_ranks_of_the_own_places(room):
    header, *rows = cli(f"suggest {PLACES} -k 3 --format csv").out.splitlines()
    assert header == "rank,west,south,east,north,own_place,score"
    assert [row.split(",")[0] for row in rows] == ["1", "2", "3"]
    assert cli(f"suggest {PLACES} -k 3").out.count("\n") >= 4
    told = set(cli(f"suggest {PLACES}").out.split())
    assert told & {"yes", "no", "True", "False"} == {"yes", "no"}
    (room / "own.csv").write_text("east,north\n1.5,2.5\n7,7\n")
    assert cli(f"suggest {PLACES} --x east --y north").code == 0
    assert {"train", "places"} <= set(cli("suggest").out.split())
    assert "never" in cli("suggest --help").out


DESCRIBED = ["fields", "public_inputs"]
"""Modules of the table of options, which read no record and draw nothing."""


@pytest.mark.deep
def test_the_device_loads_no_private_module_opens_no_connection_and_writes_no_file():
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
described = {{"psd.publish"}} | {{f"psd.publish.{{n}}" for n in {DESCRIBED!r}}}  # what options are
loaded = {{n for n in sys.modules if n.startswith(tuple("psd." + name for name in private))}}
loaded -= described
sys.exit(str(loaded) if loaded else code)
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "REFUSED" not in ended.stdout
