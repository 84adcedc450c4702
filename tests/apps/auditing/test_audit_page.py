"""The page of audits: its Python runs, and its table has every method."""

import re
from pathlib import Path

import pandas as pd

import psd

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = (DOCS / "privacy" / "audit.md").read_text(encoding="utf-8")


def test_python_runs(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(block.replace("runs=4", "runs=1, canaries=256, confidence=0.999999"), {})
    assert capsys.readouterr().out.startswith("False ")


def test_table_has_every_method():
    table = pd.read_csv(DOCS / "measured" / "data" / "audits.csv")
    assert {*table["method"]} >= {*psd.methods()}
