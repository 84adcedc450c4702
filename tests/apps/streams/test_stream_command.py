"""psd stream: what it says, and its exit codes."""

import json

import pytest

import psd
from psd.ledger.ledger import Ledger
from support.cli_runner import as_json, check_refusals, cli, fails, passes
from support.streams import DAYS, day_of, write_rows

OPTIONS = (
    f"--epsilon 1000 --bounds 0 0 8 8 --slices {DAYS[0]}..{DAYS[-1]} --time time "
    "--method grid --set size=2"
)
CREATE = f"stream create city.stream -o city.psd.parquet {OPTIONS}"
ONE = CREATE.replace("--epsilon 1000", "--epsilon 1")
OF_FIRST = f"stream add city.stream {DAYS[0]}.csv --slice"
ADD = f"{OF_FIRST} {DAYS[0]}"
USER = "--user user --max-contributions 7 --max-per-slice 1 --delta 1e-6"
GAUSSIAN = f"{USER} --noise gaussian"
BOX = "--box 0 0 8 8"
PAID = "--ledger city.ledger --dataset"


@pytest.fixture(autouse=True)
def day(here):
    day_of(here, DAYS[0], 5)


def test_create_add_status_query(here):
    said = passes(f"{CREATE} --by day")
    assert said == "wrote city.stream (PRIVATE): grid, 7 slices by day, epsilon 1000 per record\n"
    assert passes(ADD) == (
        f"wrote {here}/city.psd.parquet: slice {DAYS[0]} is in it, 1 of 7, "
        "epsilon 1000 per record\n"
    )
    assert as_json("stream status city.stream") == {
        "method": "grid",
        "guarantee": "epsilon 1000 per record",
        "slices_by": "day",
        "time_zone": "UTC",
        "first": DAYS[0],
        "last": DAYS[-1],
        "slices": 7,
        "added": 1,
        "skipped": [],
        "next": DAYS[1],
        "output": f"{here}/city.psd.parquet",
        "totals": None,
        "counter": None,
        "up_to_date": True,
        "ledger": None,
        "dataset": None,
    }


def test_status_in_words_and_query(here):
    passes(f"{CREATE} --by day")
    passes(ADD)
    assert "pass --skip to leave out 1 for good" in fails(2, f"{OF_FIRST} {DAYS[2]}")
    told = passes("stream status city.stream")
    assert DAYS[1] in told
    lines = [line.split() for line in told.splitlines() if line.startswith(("up_", "ledger"))]
    assert lines == [["up_to_date", "yes"], ["ledger", "none"]]
    assert "5.0" in passes(f"query city.psd.parquet {BOX}")
    for line in ("info city.stream", f"query city.stream {BOX}"):
        told = "it is a database, such as the PRIVATE state of a stream"
        assert told in fails(5, line)
    assert "psd stream status city.stream" in passes("stream")


def test_weeks_are_slices():
    weeks = CREATE.replace(f"{DAYS[0]}..{DAYS[-1]}", "2026-W02..2026-W03")
    assert "2 slices by week, epsilon" in passes(f"{weeks} --by week")
    passes(f"{OF_FIRST} 2026-W02")
    assert as_json("info city.psd.parquet")["slices_by"] == "week"
    answer = passes(f"query city.psd.parquet {BOX} --each slice --format csv")
    assert answer.splitlines()[1].startswith("2026-W02,1,5")


def test_gaussian_noise_of_slices_is_stated():
    stated = (
        "epsilon 1 and delta 1e-6 (rho 0.024355970359) per user, at most 7 records of each, at "
        "most 1 of them in each time slice; with a probability of at most 1e-6 it may reveal more "
        "than epsilon allows"
    )
    assert cli(f"{ONE} {GAUSSIAN}").out == (
        f"wrote city.stream (PRIVATE): grid, 7 slices by day, {stated}\n"
        "noise is discrete Gaussian\n"
    )
    assert stated in passes(ADD)
    facts = as_json("info city.psd.parquet")
    assert (facts["epsilon"], facts["delta"], facts["guarantee"]) == ("1", "1e-6", stated)
    assert as_json(f"query city.psd.parquet {BOX}")


def test_running_totals_are_named_and_not_summed():
    passes(f"{CREATE} --totals")
    passes(ADD)
    counts = "records, summed over each time slice and all before it"
    assert as_json("info city.totals.psd.parquet")["counts"] == counts
    query = f"query city.totals.psd.parquet {BOX}"
    assert cli(f"{query} --each slice").err == f"(counts are {counts})\n"
    passes(f"{OF_FIRST} {DAYS[1]} --skip")
    assert "got running totals" in fails(2, query)
    assert cli(f"{query} --when {DAYS[1]}").code == 0


def test_a_ledger_is_charged_rho_once(here):
    ledger = Ledger.create("city.ledger")
    columns = psd.Columns(time="time", user="user")
    ledger.register("people", 2, unit="user", columns=columns)
    ledger.register("visits", 2, unit="user", columns=columns, delta="1e-6")
    line = f"{ONE} {GAUSSIAN} {PAID}"
    assert "has no delta, so it takes no Gaussian noise" in fails(9, f"{line} people")
    assert not (here / "city.stream").exists()
    said = cli(f"{line} visits").out
    assert f"ledger head {ledger.state().head_text}" in said
    passes(ADD)
    [charge] = ledger.verify(releases=here).charges.values()
    assert (charge.loss.epsilon, charge.loss.rho) == (10**9, 24355970359)
    line = line.replace("city.stream", "b.stream").replace("city.psd", "b.psd")
    fails(4, line.replace("--epsilon 1 ", "--epsilon 2 "), "visits")
    ledger.register_inputs("visits", [f"{DAYS[0]}.csv"])
    told = fails(9, line, "visits")
    assert "registered inputs, and those of a stream are not there yet" in told
    assert not (here / "b.stream").exists()


def test_a_file_that_was_charged_to_another_dataset_is_warned_of(here):
    ledger = Ledger.create("city.ledger")
    for name in ("visits", "others"):
        ledger.register(name, 9, columns=psd.Columns(time="time"))
    cli(f"{ONE} {PAID} visits")
    assert "also charged" not in cli(ADD).err
    day_of(here, DAYS[1], 5)
    cli(f"build {DAYS[1]}.csv -o b.psd.parquet --epsilon 1 --bounds 0 0 8 8 {PAID} others "
        "--time time --method grid")  # fmt: skip
    told = cli(f"stream add city.stream {DAYS[1]}.csv --slice {DAYS[1]}").err
    assert "a file of this input was also charged to dataset 'others'" in told


def test_a_stream_and_its_ledger_are_never_overwritten(here):
    Ledger.create("city.ledger")
    cli(CREATE)
    build = f"build {DAYS[0]}.csv --epsilon 1 --bounds 0 0 8 8 --method grid --overwrite -o"
    cli(f"{build} r.psd.parquet")
    for name in ("city.stream", "city.ledger"):
        before = (here / name).read_bytes()
        for line in (build, f"query r.psd.parquet {BOX} --format csv --overwrite -o"):
            assert "is never overwritten" in fails(6, f"{line} {name}")
        assert (here / name).read_bytes() == before


def test_what_is_printed_does_not_depend_on_the_records(here):
    said = []
    for number in (0, 500):
        day_of(here, DAYS[0], number)
        cli(CREATE)
        said.append(cli(ADD))
        (here / "city.stream").unlink()
        (here / "city.psd.parquet").unlink()
    assert said[0] == said[1]  # but for the private report, which is asked for
    cli(CREATE)
    write_rows(here / "all.csv", [(1, 1, f"{day}T12:00:00", "u") for day in DAYS])
    shown = cli(f"stream add city.stream all.csv --slice {DAYS[0]} --report-private")
    assert shown.err == (
        "PRIVATE, do not publish: records read 7, without coordinates 0, outside 6, kept 1\n"
    )


NOTHING = [
    (2, f"{CREATE} --by hour", "--by must be day"),
    (2, f"{CREATE} --value fare 0 60", "--value must be left out for a stream"),
    (2, f"{CREATE} --user user", "--max-contributions must be given with --user"),
    (2, CREATE.replace("0 0 8 8", "private:share=0.1"), "is now --bounds private"),
    (
        2,
        f"{CREATE} --delta 1e-6 --noise gaussian --totals --counter tree",
        "--counter must be slices with --noise gaussian",
    ),
]


def test_nothing_is_left_of_a_stream_that_is_refused(subtests):
    check_refusals(subtests, NOTHING)


def test_no_message_about_a_public_file_quotes_a_record(here):
    """Records that are named as a boundary are refused before they are read."""
    points = [{"type": "Feature", "properties": {"id": "kim"},
               "geometry": {"type": "Point", "coordinates": [1, 1]}}]  # fmt: skip
    (here / "p.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": points}))
    ledger = Ledger.create(here / "city.ledger")
    ledger.register("people", 1000)
    ledger.register("visits", 1000, columns=psd.Columns(time="time"))
    ledger.register_inputs("people", [here / "p.geojson"])
    line = f"{CREATE} --boundary p.geojson"
    assert "kim" in fails(2, line)
    shown = fails(9, f"{line} {PAID} visits")
    assert "must not be inputs of a dataset of this ledger" in shown
    assert "kim" not in shown
