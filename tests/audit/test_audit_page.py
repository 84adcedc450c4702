"""The page of audits: its commands are command lines, and its Python runs."""

import re
import shlex
from pathlib import Path

import psd
from psd_cli.commands.audit import command

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "privacy" / "audit.md").read_text(encoding="utf-8")


def test_commands_parse():
    lines = [line for line in PAGE.splitlines() if line.startswith("psd ")]
    assert lines
    for line in lines:
        prog, sub, *args = shlex.split(line)
        assert (prog, sub) == ("psd", "audit")
        command.make_context("audit", args)


def test_python_runs(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(block.replace("runs=4", "runs=1, canaries=256, confidence=0.999999"), {})
    assert capsys.readouterr().out.startswith("False ")


def test_table_has_every_method():
    rows = (DOCS / "measured" / "audit-table.md").read_text(encoding="utf-8").splitlines()
    methods = {line.split("|")[1].strip() for line in rows if line.startswith("| ")}
    assert methods >= set(psd.methods())
