"""psd local: a campaign from start to end."""

import hashlib
import json

import numpy as np
import pytest

import psd
from support.cli_runner import as_json, check_refusals, cli, fails, passes
from support.local import campaign_bytes

BOUNDS = "--bounds 0 0 8 4"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A campaign, its lines, parts and release."""
    path = tmp_path_factory.mktemp("local")
    generator = np.random.default_rng(1)
    rows = zip(generator.normal(3, 1.5, 4000), generator.normal(2, 0.8, 4000), strict=True)
    (path / "rows.csv").write_text("lon,lat\n" + "".join(f"{x:.4f},{y:.4f}\n" for x, y in rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        out = passes(f"local design -o c.json {BOUNDS} --epsilon 2 --devices 4000 --rounds 1")
        assert "wrote c.json; campaign " in out
        passes("local randomize c.json rows.csv -o r.jsonl")
        out = passes("local collect c.json r.jsonl --into parts")
        assert out == "collected 4,000 reports into parts\n"
        out = passes("local aggregate c.json parts -o r.psd.parquet")
        assert "4,000 reports, epsilon 2 per report" in out
    return path


@pytest.fixture
def campaign(folder, here):
    """Links to the files of the campaign in a folder of its own."""
    for path in folder.iterdir():
        (here / path.name).symlink_to(path)
    return here


def test_the_release_is_queried_like_any_other(campaign):
    for command in ("query r.psd.parquet --box 0 0 4 4", "sign check r.psd.parquet"):
        outcome = cli(command)
        assert outcome.code == 0, (command, outcome.err)
    assert psd.load("r.psd.parquet").unit.kind == "report"
    facts = json.loads(cli("info r.psd.parquet --format json").out)
    assert (facts["source"], facts["unit"], facts["reports"]) == ("local", "report", 4000)
    assert [row["level"] for row in facts["protocols"]] == [2, 3]
    text = cli("info r.psd.parquet").out
    assert "Each device is in one level, and a report costs epsilon 2." in text


def test_four_rounds(campaign):
    out = passes(f"local design -o c0.json {BOUNDS} --epsilon 4 --devices 4000")
    for number in range(4):
        randomize = f"local randomize c{number}.json rows.csv --store s -o"
        passes(f"{randomize} r{number}.jsonl")
        passes(f"local collect c{number}.json r{number}.jsonl --into p{number}")
        if number < 3:
            out = passes(f"local next c{number}.json p{number} -o c{number + 1}.json")
            assert f"round {number + 2} of 4" in out
    out = passes("local aggregate c3.json p3 -o r")
    assert ": 4,000 reports, epsilon 4 per report" in out
    assert "have answered this campaign" in fails(9, f"{randomize} again")
    assert "its last one" in fails(2, "local next c3.json p3 -o c4.json")


ASKED = {
    "--range 0 100": (["12", "x", "130"], "-5", 64),
    "--range 0 100 --protocol piecewise": (["12", "x", "130"], "50", 1),
    "--options o.txt": (["bus", "train", ""], "bus", 3),
}


@pytest.mark.parametrize(
    "asks", [pytest.param("--range 0 100", marks=pytest.mark.deep), *[*ASKED][1:]]
)
def test_options_and_numbers_give_a_table(here, asks):
    lines, answer, rows = ASKED[asks]
    (here / "o.txt").write_text("bus\ntrain\n")
    (here / "v.csv").write_text("value\n" + "".join(f'"{line}"\n' for line in lines * 50))
    passes(f"local design -o c {asks} --epsilon 2 --devices 150")
    assert "epsilon of a report" in passes("local describe c")
    passes("local randomize c v.csv -o r")
    passes("local collect c r --into p")
    assert passes("local aggregate c p -o t.csv") == f"wrote t.csv: {rows} rows\n"
    assert len((here / "t.csv").read_text().splitlines()) == rows + 1
    passes("local store s --cap 9")
    asked = "local randomize c --store s"
    assert passes(f"{asked} --answer={answer}") == passes(f"{asked} --nowhere")


def test_describe_protocols_and_the_device(campaign):
    assert "it answers once" in passes("local describe c.json")
    assert [group["answers"] for group in as_json("local describe c.json")["groups"]] == [17, 65]
    shown = passes("local protocols")
    assert shown.split()[:1] == ["protocol"]
    assert "forced-yes is refused" in shown
    assert "psd local design" in passes("local")
    passes("local client -o device.py")
    assert "wrote" in passes("local store store --cap 2")
    report = passes("local randomize c.json --store store --at 1 1")
    assert report == passes("local randomize c.json --store store --nowhere")
    line = "local describe c.json --shuffled --delta 1e-6"
    out = passes(line)
    assert "shuffled" in out
    assert "central model at delta 1e-06" in out
    assert 0 < as_json(line)["groups"][0]["shuffled_epsilon"] < 2
    assert "without tickets" in fails(2, f"{line} --tickets")
    (campaign / "l").write_text("secret-1\n")
    outcome = cli("local collect c.json l --into p")
    assert outcome.code == 0
    assert "collected 0 reports" in outcome.out
    assert outcome.err == "refused 1 lines: not a report in its one spelling\n"
    ticket = "ab" * 16
    (campaign / "t").write_text(hashlib.sha256(ticket.encode()).hexdigest() + "\n")
    passes("local store s --cap 9")
    line = passes(f"local randomize c.json --store s --at 1 1 --ticket {ticket}")
    (campaign / "l").write_text(line + (campaign / "r.jsonl").read_text())
    outcome = cli("local collect c.json l --into q --tickets t")
    assert "collected 1 reports" in outcome.out
    assert outcome.err == "refused 4,000 lines: with a ticket that is not listed\n"


SIZE = "--epsilon 1 --devices 9"
REFUSED = [
    (6, f"design -o c.json {BOUNDS} {SIZE}", "exists"),
    (2, f"design -o x {BOUNDS} --epsilon 0 --devices 9", "epsilon must be"),
    (2, "describe none", "campaign cannot be read"),
    (2, "describe rows.csv", "not strict JSON"),
    (2, "randomize c.json", "--store must be given"),
    (2, "randomize c.json rows.csv", "-o must be given"),
    (9, "randomize c.json --store lost --nowhere", "store is missing"),
    (2, "randomize c.json --store s --at a 1", "not a valid float"),
    (8, "collect c.json none --into q", "lines cannot be read"),
    (8, "aggregate c.json nothing -o x", "must have parts"),
    (8, "aggregate d.json parts -o x", "another campaign"),
    (6, "aggregate c.json parts -o r.psd.parquet", "exists"),
    (2, f"plan {BOUNDS} --devices x --epsilon 1", ""),
]


def test_refusals(campaign, subtests):
    (campaign / "d.json").write_bytes(campaign_bytes())
    check_refusals(subtests, REFUSED, "local")


@pytest.mark.deep
def test_joint_answers_and_a_plan_as_a_table_a_file_or_json(campaign, here):
    assert "as it is" in cli("query r.psd.parquet --box 0 0 4 4 --explain").out
    for verb, options in (("query", "--top 2"), ("query", "--quantiles"), ("export", "cells.gpkg")):
        assert cli(f"{verb} r.psd.parquet {options}").code == 0
    (here / "public.csv").write_text("lon,lat\n" + "1,1\n2,3\n" * 50)
    line = f"local plan {BOUNDS} --devices 2000 --epsilon 2 --runs 1 --points public.csv"
    out = passes(f"{line} --rounds 1,4")
    assert "factor" in out
    assert len([row for row in out.splitlines() if row.split()[:1] == ["points"]]) == 2
    assert as_json(line)[0]["devices"] == 2000
    passes(f"{line} -o plan.csv")
    assert (here / "plan.csv").read_text().startswith("density,devices,epsilon,rounds,error")


def test_words_from_design_to_table(here):
    sizes = "--epsilon 4 --devices 9000 --set bits=32 --set cohorts=4"
    passes(f"local design -o w.json --words {sizes}")
    shown = passes("local describe w.json")
    assert "11.082527091; the limit for any number of reports of its first answer" in shown
    texts = ["seoul"] * 6000 + ["부산"] * 3000
    (here / "rows.csv").write_text("\n".join(["value", *texts]) + "\n")
    passes("local randomize w.json rows.csv -o r")
    passes("local collect w.json r --into parts")
    (here / "list").write_text("부산\njeju\nseoul\n")
    told = passes("local aggregate w.json parts -o words.csv --words list --level 1e-8")
    assert "4 words, 2 present at level 1e-08" in told
    rows = [line.split(",") for line in (here / "words.csv").read_text().splitlines()]
    assert rows[0] == ["word", "estimate", "unbiased", "error", "low", "high", "present"]
    present = {"부산": "true", "jeju": "false", "seoul": "true", "no word": "false"}
    assert [(row[0], row[-1]) for row in rows[1:]] == [*present.items()]
    passes("local store s --cap 8")
    answer = "local randomize w.json --store s --answer seoul"
    assert passes(answer) != passes(answer)
