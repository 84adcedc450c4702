"""Pages whose examples run as they are written, in their order."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from math import exp
from pathlib import Path

import pytest

import psd
from psd.ledger.ledger import Ledger
from psd.release import signing
from support.cli_runner import cli

ROOT = Path(__file__).resolve().parents[2]


def blocks(page):
    """Kind and content of every block of code."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(r"^ *```(\w*)\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)


def shell(text):
    """What a text of the shell prints, with this Python as python."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = ["bash", "-euc", text]
    environment = {**os.environ, "PATH": path}
    return subprocess.run(command, check=True, stdout=-1, text=True, env=environment).stdout


def run_page(page):
    """Run every example; give the commands of psd that ran."""
    ran = []
    for kind, block in blocks(page):
        if kind == "python":
            exec(block, {})
            continue
        if "psd " not in block:
            shell(block)
            continue
        for line in block.replace("\\\n", " ").splitlines():
            line = line.strip()
            if not line.startswith("psd "):
                shell(line)
                continue
            words = [
                name
                for word in shlex.split(line, comments=True)[1:]
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
    ran = run_page("guide/tallies.md")
    assert ran == ["build", *["tally"] * 3, "build", "tally", "build", "tally", "merge", "build"]
    names = ("whole", "parts", "users", "again")
    releases = [psd.Release.load(f"{name}.psd.parquet") for name in names]
    assert [release.max_contributions for release in releases] == [1, 1, 4, 4]


@pytest.mark.nightly
def test_examples_of_slices_run(folder):
    ran = run_page("guide/slices.md")
    assert ran == [
        "build", "query", "query", "build", "info", "export", "difference", "build", "evaluate",
    ]  # fmt: skip
    assert len(psd.Series.load("march.psd.parquet")) == 7


@pytest.mark.nightly
def test_examples_of_the_ledger_run(folder):
    ran = run_page("guide/ledger.md")
    assert ran == [
        *["ledger"] * 2, "build", *["ledger"] * 4, "build", "ask", "query",
    ]  # fmt: skip
    book = Ledger("city.ledger").verify()
    assert [charge.done for charge in book.charges.values()] == [True] * 3
    assert Ledger("town.ledger").book().spent("visits") == 600_000_000


def test_examples_of_signing_run(folder):
    shutil.copy(ROOT / "tests" / "golden" / "seoul.psd.parquet", folder)
    assert run_page("guide/signing.md") == ["keygen", "sign", "verify", "verify"]
    (folder / "office.pem").unlink()  # the reader has the rest
    assert cli("verify", "seoul.psd.parquet", "--key", "office.pub.pem").code == 0
    Path("seoul.psd.parquet.sig").unlink()
    assert cli("verify", "seoul.psd.parquet", "--key", "office.pub.pem").code == 5
    assert {"new_key", "sign", "verify"} <= set(signing.__all__)


@pytest.mark.nightly
def test_examples_of_epsilon_run(folder):
    assert run_page("privacy/epsilon.md") == ["plan", "plan", "ledger", "ledger"]
    assert Ledger("city.ledger").book().datasets["people"].budget == 2_000_000_000


def test_odds_of_the_page_are_those_that_its_command_prints():
    text = (ROOT / "docs" / "privacy" / "epsilon.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.]+) : 1 \| ([\d.]+) % \| ([\d.]+) % ", text, re.M)
    printed = [line.split() for line in shell(blocks("privacy/epsilon.md")[0][1]).splitlines()]
    assert len(rows) == len(printed) == 5
    for row, line in zip(rows, printed, strict=True):
        epsilon, odds, even, rare = map(float, line)
        assert odds == round(exp(epsilon), 3)
        digits = len(row[1].partition(".")[2])
        assert row == (line[0], f"{odds:.{digits}f}", f"{even:.1%}"[:-1], f"{rare:.1%}"[:-1])
