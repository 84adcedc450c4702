"""Files that were written once, and the answers that they gave then."""

import json
from pathlib import Path

import pytest

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def stored(name):
    """The stored answers of a name."""
    return json.loads((GOLDEN / f"{name}.answers.json").read_text())


def check_answers(table, answers, rel=1e-12, abs=1e-9):
    """Each column of answers is that of a table."""
    for name, values in answers.items():
        is_number = not isinstance(values[0], (str, bool))
        wanted = pytest.approx(values, rel=rel, abs=abs) if is_number else values
        assert table[name].tolist() == wanted, name
