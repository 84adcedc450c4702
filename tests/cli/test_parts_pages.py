"""Pages whose examples run as they are written, in their order."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from clirun import cli

import psd
from psd.ledger import Ledger

ROOT = Path(__file__).resolve().parents[2]


def blocks(page):
    """Kind and content of every block of code."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def run_page(page):
    """Run every example; give the commands of psd that ran."""
    ran = []
    for kind, block in blocks(page):
        if kind == "python":
            exec(block, {})
            continue
        for line in block.replace("\\\n", " ").splitlines():
            if not line.startswith("psd "):
                subprocess.run(["bash", "-c", line], check=True)
                continue
            words = [
                name
                for word in shlex.split(line)[1:]
                for name in (sorted(map(str, Path().glob(word))) if "*" in word else [word])
            ]
            outcome = cli(*words)
            assert outcome.code == 0, outcome.err
            ran.append(words[0])
    return ran


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.nightly
def test_examples_of_tallies_run(folder):
    ran = run_page("tallies.md")
    assert ran == ["build", *["tally"] * 3, "build", "tally", "build", "tally", "merge", "build"]
    names = ("whole", "parts", "users", "again")
    releases = [psd.Release.load(f"{name}.psd.parquet") for name in names]
    assert [release.max_contributions for release in releases] == [1, 1, 4, 4]


@pytest.mark.nightly
def test_examples_of_slices_run(folder):
    ran = run_page("slices.md")
    assert ran == [
        "build", "query", "query", "build", "info", "export", "difference", "build", "evaluate",
    ]  # fmt: skip
    assert len(psd.Series.load("march.psd.parquet")) == 7


@pytest.mark.nightly
def test_examples_of_the_ledger_run(folder):
    ran = run_page("ledger.md")
    assert ran == [
        *["ledger"] * 2, "build", *["ledger"] * 4, "build", "ask", "query",
    ]  # fmt: skip
    book = Ledger("city.ledger").verify()
    assert [charge.done for charge in book.charges.values()] == [True] * 3
    assert Ledger("town.ledger").book().spent("visits") == 600_000_000
