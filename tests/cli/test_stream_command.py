"""psd stream: what it says, and its exit codes."""

import json

import pytest

import psd
from psd.ledger.ledger import Ledger
from support.cli_runner import cli, fails, files, passes
from support.streams import DAYS, day_of, write_rows

CREATE = (
    "stream", "create", "city.stream", "-o", "city.psd.parquet", "--epsilon", 1000, "--bounds",
    0, 0, 8, 8, "--slices", f"{DAYS[0]}..{DAYS[-1]}", "--read", "time=time", "--method", "grid",
    "--set", "size=2",
)  # fmt: skip
ADD = ("stream", "add", "city.stream", f"{DAYS[0]}.csv", "--slice", DAYS[0])


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    day_of(tmp_path, DAYS[0], 5)
    return tmp_path


def test_create_add_status_query(here):
    said = cli(*CREATE, "--by", "day").out
    assert said == "wrote city.stream (PRIVATE): grid, 7 slices by day, epsilon 1000 per record\n"
    assert passes(*ADD) == (
        f"wrote {here}/city.psd.parquet: slice {DAYS[0]} is in it, 1 of 7, "
        "epsilon 1000 per record\n"
    )
    facts = json.loads(passes("stream", "status", "city.stream", "--format", "json"))
    assert facts == {
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
    told = passes("stream", "status", "city.stream")
    assert DAYS[1] in told
    assert dict(
        line.split() for line in told.splitlines() if line.startswith(("up_", "ledger"))
    ) == {
        "up_to_date": "yes",
        "ledger": "none",
    }
    assert "5.0" in passes("query", "city.psd.parquet", "--box", 0, 0, 8, 8)


GAUSSIAN = ("--user", "user", "--max-contributions", 7, "--max-per-slice", 1, "--delta", "1e-6")


def with_epsilon(epsilon, *more):
    """Command line of a stream with another epsilon."""
    line = [*CREATE, *more]
    line[line.index("--epsilon") + 1] = epsilon
    return line


def test_the_state_is_not_taken_for_a_release(here):
    passes(*CREATE)
    for line in (("info",), ("query", "--box", 0, 0, 8, 8)):
        told = fails(5, line[0], "city.stream", *line[1:])
        assert "it is a database, such as the PRIVATE state of a stream" in told


def test_weeks_are_slices(here):
    weeks = [str(part).replace(f"{DAYS[0]}..{DAYS[-1]}", "2026-W02..2026-W03") for part in CREATE]
    assert "2 slices by week, epsilon" in cli(*weeks, "--by", "week").out
    passes(*ADD[:-1], "2026-W02")
    facts = json.loads(passes("info", "city.psd.parquet", "--format", "json"))
    assert facts["slices_by"] == "week"
    answer = passes("query", "city.psd.parquet", "--box", 0, 0, 8, 8, "--format", "csv")
    assert answer.splitlines()[1].startswith("2026-W02,1,5")


def test_gaussian_noise_of_slices_is_stated(here):
    stated = (
        "epsilon 1 and delta 1e-6 (rho 0.024355970359) per user, at most 7 records of each, at "
        "most 1 of them in each time slice; with a probability of at most 1e-6 it may reveal more "
        "than epsilon allows"
    )
    assert cli(*with_epsilon(1, *GAUSSIAN, "--noise", "gaussian")).out == (
        f"wrote city.stream (PRIVATE): grid, 7 slices by day, {stated}\n"
        "noise is discrete Gaussian\n"
    )
    assert stated in passes(*ADD)
    facts = json.loads(passes("info", "city.psd.parquet", "--format", "json"))
    assert (facts["epsilon"], facts["delta"], facts["guarantee"]) == ("1", "1e-6", stated)
    answer = passes("query", "city.psd.parquet", "--box", 0, 0, 8, 8, "--sum", "--format", "json")
    assert json.loads(answer)


def test_running_totals_are_named_and_not_summed(here):
    passes(*CREATE, "--totals")
    passes(*ADD)
    name, box = "city.totals.psd.parquet", ("--box", 0, 0, 8, 8)
    counts = "records, summed over each time slice and all before it"
    assert json.loads(passes("info", name, "--format", "json"))["counts"] == counts
    assert cli("query", name, *box).err == f"(counts are {counts})\n"
    assert "got running totals" in fails(2, "query", name, *box, "--sum")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--delta", "1e-6"), "noise is discrete Laplace (auto); no delta is spent, and none is"),
        ((*GAUSSIAN, "--noise", "laplace"), "noise is discrete Laplace; no delta is spent, and"),
        (("--delta", "1e-6", "--totals", "--counter", "toeplitz"), "totals is discrete Gaussian"),
    ],
)
def test_one_line_says_what_spends_the_delta(here, options, words):
    lines = cli(*with_epsilon(1, *options)).out.splitlines()
    assert [line for line in lines if words in line] == [lines[1]]


def test_noise_of_slices_that_does_not_fit_is_refused(here):
    left = files(here)
    assert "--delta must be given with --noise gaussian" in fails(2, *CREATE, "--noise", "gaussian")
    totals = (*GAUSSIAN[-2:], "--noise", "gaussian", "--totals", "--counter", "tree")
    assert "--counter must be slices with --noise gaussian" in fails(2, *CREATE, *totals)
    assert files(here) == left


def test_a_ledger_is_charged_rho_once(here):
    ledger = Ledger.create("city.ledger")
    columns = psd.Columns(time="time", user="user")
    ledger.register("people", 2, unit="user", columns=columns)
    ledger.register("visits", 2, unit="user", columns=columns, delta="1e-6")
    noise = (*GAUSSIAN, "--noise", "gaussian")
    line = (*with_epsilon(1, *noise), "--ledger", "city.ledger", "--dataset")
    assert "has no delta, so it takes no Gaussian noise" in fails(9, *line, "people")
    assert not (here / "city.stream").exists()
    passes(*line, "visits")
    passes(*ADD)
    [charge] = ledger.verify(releases=here).charges.values()
    assert (charge.loss.epsilon, charge.loss.rho) == (10**9, 24355970359)


def test_what_is_printed_does_not_depend_on_the_records(here):
    said = []
    for number in (0, 500):
        day_of(here, DAYS[0], number)
        cli(*CREATE)
        said.append(cli(*ADD))
        (here / "city.stream").unlink()
        (here / "city.psd.parquet").unlink()
    assert said[0] == said[1]


def test_the_private_report_is_asked_for(here):
    cli(*CREATE)
    write_rows(here / "all.csv", [(1, 1, f"{day}T12:00:00", "u") for day in DAYS])
    shown = cli("stream", "add", "city.stream", "all.csv", "--slice", DAYS[0], "--report-private")
    assert shown.err == (
        "PRIVATE, do not publish: records read 7, without coordinates 0, outside 6, kept 1\n"
    )


def test_refusals(here):
    cli(*CREATE)
    passes(*ADD)
    left = files(here)
    assert "was added before" in fails(2, *ADD)
    later = (*ADD[:-1], DAYS[2])
    assert "pass --skip to leave out 1 for good" in fails(2, *later)
    passes(*later, "--skip")
    assert "--slice 2026-01-06 comes too late" in fails(2, *ADD[:-1], DAYS[1])
    assert "--slice must be one of the 7 of the stream" in fails(2, *ADD[:-1], "2026-02-01")
    assert "exists; choose another name" in fails(6, *CREATE)
    (here / "city.stream").chmod(0o644)
    assert "must be readable by its owner only" in fails(8, *ADD)
    assert files(here) == left


def test_nothing_is_left_of_a_stream_that_is_refused(here):
    left = files(here)
    assert "--by must be day" in fails(2, *CREATE, "--by", "hour")
    assert "--max-contributions must be given with --user" in fails(2, *CREATE, "--user", "user")
    private = [*CREATE]
    private[7:12] = ["--bounds", "private:share=0.1"]
    assert "must be public with slices" in fails(2, *private)
    assert files(here) == left


def test_a_ledger_is_charged_once(here):
    ledger = Ledger.create("city.ledger")
    ledger.register("days", 1000, columns=psd.Columns(time="time"))
    said = cli(*CREATE, "--ledger", "city.ledger", "--dataset", "days").out
    assert f"ledger head {ledger.state().head_text}" in said
    passes(*ADD)
    assert len(ledger.verify(releases=here).charges) == 1
    again = [*CREATE]
    again[2], again[4] = "b.stream", "b.psd.parquet"
    outcome = cli(*again, "--ledger", "city.ledger", "--dataset", "days")
    assert (outcome.code, (here / "b.stream").exists()) == (4, False)


def test_a_ledger_with_registered_inputs_is_refused(here):
    ledger = Ledger.create("city.ledger")
    ledger.register("days", 1000, columns=psd.Columns(time="time"), inputs=[f"{DAYS[0]}.csv"])
    outcome = cli(*CREATE, "--ledger", "city.ledger", "--dataset", "days")
    assert outcome.code == 9
    assert "registered inputs, and those of a stream are not there yet" in outcome.err


def test_help_of_the_group():
    assert "psd stream status city.stream" in passes("stream")


def test_no_message_about_a_public_file_quotes_a_record(here):
    """Records that are named as a boundary are refused before they are read."""
    points = [{"type": "Feature", "properties": {"id": "kim"},
               "geometry": {"type": "Point", "coordinates": [1, 1]}}]  # fmt: skip
    (here / "p.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": points}))
    ledger = Ledger.create(here / "l")
    ledger.register("people", 1000)
    ledger.register("visits", 1000, columns=psd.Columns(time="time"))
    ledger.register_inputs("people", [here / "p.geojson"])
    line = (*CREATE, "--boundary", "p.geojson")
    assert "kim" in fails(2, *line)
    shown = fails(9, *line, "--ledger", "l", "--dataset", "visits")
    assert "must not be inputs of a dataset of this ledger" in shown
    assert "kim" not in shown
