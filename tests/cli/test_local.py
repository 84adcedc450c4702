"""psd local: a campaign from start to end."""

import hashlib
import json

import numpy as np
import pytest

import psd
from support.cli_runner import cli, fails, passes
from support.local import campaign_bytes

BOUNDS = ("--bounds", 0, 0, 8, 4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A campaign, its lines, parts and release."""
    path = tmp_path_factory.mktemp("local")
    generator = np.random.default_rng(1)
    rows = zip(generator.normal(3, 1.5, 4000), generator.normal(2, 0.8, 4000), strict=True)
    (path / "rows.csv").write_text("lon,lat\n" + "".join(f"{x:.4f},{y:.4f}\n" for x, y in rows))
    out = passes(
        "local",
        "design",
        "-o",
        path / "c.json",
        *BOUNDS,
        "--epsilon",
        2,
        "--devices",
        4000,
        "--rounds",
        1,
    )
    assert f"wrote {path / 'c.json'}; campaign " in out
    passes("local", "randomize", path / "c.json", path / "rows.csv", "-o", path / "r.jsonl")
    out = passes("local", "collect", path / "c.json", path / "r.jsonl", "--into", path / "parts")
    assert out == f"collected 4,000 reports into {path / 'parts'}\n"
    out = passes(
        "local", "aggregate", path / "c.json", path / "parts", "-o", path / "r.psd.parquet"
    )
    assert "4,000 reports, epsilon 2 per report" in out
    return path


def test_the_release_is_queried_like_any_other(folder):
    release = folder / "r.psd.parquet"
    box = ("--box", 0, 0, 4, 4)
    assert "as it is" in cli("query", release, *box, "--explain").out
    others = (
        ("query", release, *box),
        ("top", release, "-k", 2),
        ("quantiles", release),
        ("export", release, folder / "cells.gpkg"),
        ("verify", release),
    )
    for command in others:
        outcome = cli(*command)
        assert outcome.code == 0, (command[0], outcome.err)
    assert psd.load(release).unit.kind == "report"


def test_four_rounds(folder, tmp_path):
    size = ("--epsilon", 4, "--devices", 4000)
    out = passes("local", "design", "-o", tmp_path / "c0.json", *BOUNDS, *size)
    for number in range(4):
        campaign, parts = tmp_path / f"c{number}.json", tmp_path / f"p{number}"
        lines = tmp_path / f"r{number}.jsonl"
        rows = (campaign, folder / "rows.csv", "--store", tmp_path / "s", "-o", lines)
        passes("local", "randomize", *rows)
        passes("local", "collect", campaign, lines, "--into", parts)
        if number < 3:
            out = passes("local", "next", campaign, parts, "-o", tmp_path / f"c{number + 1}.json")
            assert f"round {number + 2} of 4" in out
    out = passes("local", "aggregate", campaign, parts, "-o", tmp_path / "r.psd.parquet")
    assert ": 4,000 reports, epsilon 4 per report" in out
    again = ("local", "randomize", *rows[:-1], tmp_path / "again")
    assert "have answered this campaign" in fails(9, *again)
    assert "its last one" in fails(2, "local", "next", campaign, parts, "-o", tmp_path / "c4.json")


@pytest.mark.parametrize(
    ("asks", "lines", "answer", "rows"),
    [
        (("--range", 0, 100), ["12", "x", "130"], "-5", 64),
        (("--range", 0, 100, "--protocol", "piecewise"), ["12", "x", "130"], "50", 1),
        (("--options", "{}/o.txt"), ["bus", "train", ""], "bus", 3),
    ],
)
def test_options_and_numbers_give_a_table(tmp_path, asks, lines, answer, rows):
    (tmp_path / "o.txt").write_text("bus\ntrain\n")
    (tmp_path / "v.csv").write_text("value\n" + "".join(f'"{line}"\n' for line in lines * 50))
    asks = [str(word).format(tmp_path) for word in asks]
    passes("local", "design", "-o", tmp_path / "c", *asks, "--epsilon", 2, "--devices", 150)
    assert "epsilon of a report" in passes("local", "describe", tmp_path / "c")
    passes("local", "randomize", tmp_path / "c", tmp_path / "v.csv", "-o", tmp_path / "r")
    passes("local", "collect", tmp_path / "c", tmp_path / "r", "--into", tmp_path / "p")
    out = passes("local", "aggregate", tmp_path / "c", tmp_path / "p", "-o", tmp_path / "t.csv")
    assert out == f"wrote {tmp_path / 't.csv'}: {rows} rows\n"
    assert len((tmp_path / "t.csv").read_text().splitlines()) == rows + 1
    passes("local", "store", tmp_path / "s", "--cap", 9)
    asked = ("local", "randomize", tmp_path / "c", "--store", tmp_path / "s")
    assert passes(*asked, f"--answer={answer}") == passes(*asked, "--nowhere")


def test_info_states_the_reports(folder):
    facts = json.loads(cli("info", folder / "r.psd.parquet", "--format", "json").out)
    assert (facts["source"], facts["unit"], facts["reports"]) == ("local", "report", 4000)
    assert [row["level"] for row in facts["protocols"]] == [2, 3]
    text = cli("info", folder / "r.psd.parquet").out
    assert "Each device is in one level, and a report costs epsilon 2." in text


def test_describe_protocols_and_the_device(folder):
    shown = passes("local", "describe", folder / "c.json")
    assert "it answers once" in shown
    facts = json.loads(passes("local", "describe", folder / "c.json", "--format", "json"))
    assert [group["answers"] for group in facts["groups"]] == [17, 65]
    shown = passes("local", "protocols")
    assert shown.split()[:1] == ["protocol"]
    assert "forced-yes is refused" in shown
    assert "psd local design" in passes("local")
    passes("local", "client", "-o", folder / "device.py")
    assert "wrote" in passes("local", "store", folder / "store", "--cap", 2)
    report = passes(
        "local", "randomize", folder / "c.json", "--store", folder / "store", "--at", 1, 1
    )
    again = passes(
        "local", "randomize", folder / "c.json", "--store", folder / "store", "--nowhere"
    )
    assert report == again


def test_refused_lines_are_counted_and_not_quoted(folder, tmp_path):
    (tmp_path / "l").write_text("secret-1\n")
    outcome = cli("local", "collect", folder / "c.json", tmp_path / "l", "--into", tmp_path / "p")
    assert outcome.code == 0
    assert "collected 0 reports" in outcome.out
    assert outcome.err == "refused 1 lines: not a report in its one spelling\n"


def test_tickets(folder, tmp_path):
    ticket = "ab" * 16
    (tmp_path / "t").write_text(hashlib.sha256(ticket.encode()).hexdigest() + "\n")
    passes("local", "store", tmp_path / "s", "--cap", 9)
    line = passes(
        *("local", "randomize", folder / "c.json", "--store", tmp_path / "s", "--at", 1, 1),
        *("--ticket", ticket),
    )
    (tmp_path / "l").write_text(line + (folder / "r.jsonl").read_text())
    outcome = cli(
        *("local", "collect", folder / "c.json", tmp_path / "l", "--into", tmp_path / "p"),
        *("--tickets", tmp_path / "t"),
    )
    assert "collected 1 reports" in outcome.out
    assert outcome.err == "refused 4,000 lines: with a ticket that is not listed\n"


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("design", "-o", "{}/c.json", *BOUNDS, "--epsilon", 1, "--devices", 9), 6, "exists"),
        (("design", "-o", "{}/x", *BOUNDS, "--epsilon", 0, "--devices", 9), 2, "epsilon must be"),
        (("design", "-o", "{}/x", "--bounds", 1, 0, 0, 1, "--epsilon", 1, "--devices", 9), 3, ""),
        (("describe", "{}/none"), 2, "campaign cannot be read"),
        (("describe", "{}/rows.csv"), 2, "not strict JSON"),
        (("randomize", "{}/c.json"), 2, "--store must be given"),
        (("randomize", "{}/c.json", "{}/rows.csv"), 2, "-o must be given"),
        (("randomize", "{}/c.json", "--store", "{}/lost", "--nowhere"), 9, "store is missing"),
        (("randomize", "{}/c.json", "--store", "{}/s", "--at", "a", "1"), 2, "not a valid float"),
        (("collect", "{}/c.json", "{}/none", "--into", "{}/q"), 8, "lines cannot be read"),
        (("aggregate", "{}/c.json", "{}/nothing", "-o", "{}/x"), 8, "must have parts"),
        (("aggregate", "{}/d.json", "{}/parts", "-o", "{}/x"), 8, "another campaign"),
        (("aggregate", "{}/c.json", "{}/parts", "-o", "{}/r.psd.parquet"), 6, "exists"),
    ],
)  # fmt: skip
def test_refusals(folder, args, code, words):
    (folder / "d.json").write_bytes(campaign_bytes())
    error = fails(code, "local", *(str(arg).format(folder) for arg in args))
    assert words in error
    assert not (folder / "x").exists()


def test_shuffled_reports_are_described(folder):
    out = passes("local", "describe", folder / "c.json", "--shuffled", "--delta", "1e-6")
    assert "shuffled" in out
    assert "central model at delta 1e-06" in out
    shown = json.loads(
        passes(
            "local",
            "describe",
            folder / "c.json",
            *("--shuffled", "--delta", "1e-6", "--format", "json"),
        )
    )
    assert 0 < shown["groups"][0]["shuffled_epsilon"] < 2
    refused = ("--shuffled", "--delta", "1e-6", "--tickets")
    assert "without tickets" in fails(2, "local", "describe", folder / "c.json", *refused)


def test_a_plan_is_a_table_a_file_or_json(tmp_path):
    (tmp_path / "public.csv").write_text("lon,lat\n" + "1,1\n2,3\n" * 50)
    args = (*BOUNDS, "--devices", 2000, "--epsilon", 2, "--runs", 1)
    args = ("local", "plan", *args, "--points", tmp_path / "public.csv")
    out = passes(*args, "--rounds", "1,4")
    assert "factor" in out
    assert len([line for line in out.splitlines() if line.split()[:1] == ["points"]]) == 2
    assert json.loads(passes(*args, "--format", "json"))[0]["devices"] == 2000
    passes(*args, "-o", tmp_path / "plan.csv")
    assert (tmp_path / "plan.csv").read_text().startswith("density,devices,epsilon,rounds,error")
    fails(2, "local", "plan", *BOUNDS, "--devices", "x", "--epsilon", 1)


def test_words_from_design_to_table(tmp_path):
    campaign, table = tmp_path / "w.json", tmp_path / "words.csv"
    sizes = ("--set", "bits=32", "--set", "cohorts=4")
    passes("local", "design", "-o", campaign, "--words", "--epsilon", 4, "--devices", 9000, *sizes)
    shown = passes("local", "describe", campaign)
    assert "11.082527091; the limit for any number of reports of its first answer" in shown
    texts = ["seoul"] * 6000 + ["부산"] * 3000
    (tmp_path / "rows.csv").write_text("\n".join(["value", *texts]) + "\n")
    passes("local", "randomize", campaign, tmp_path / "rows.csv", "-o", tmp_path / "r")
    passes("local", "collect", campaign, tmp_path / "r", "--into", tmp_path / "parts")
    (tmp_path / "list").write_text("부산\njeju\nseoul\n")
    read = ("local", "aggregate", campaign, tmp_path / "parts", "-o", table)
    assert "4 words, 2 present at level 1e-08" in passes(
        *read, "--words", tmp_path / "list", "--level", 1e-8
    )
    rows = [line.split(",") for line in table.read_text().splitlines()]
    assert rows[0] == ["word", "estimate", "unbiased", "error", "low", "high", "present"]
    assert [(row[0], row[-1]) for row in rows[1:]] == [
        ("부산", "true"),
        ("jeju", "false"),
        ("seoul", "true"),
        ("no word", "false"),
    ]
    passes("local", "store", tmp_path / "s", "--cap", 8)
    answer = ("local", "randomize", campaign, "--store", tmp_path / "s", "--answer", "seoul")
    assert len({passes(*answer), passes(*answer)}) == 2
