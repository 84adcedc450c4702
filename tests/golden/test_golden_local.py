"""A local release written once still loads, and answers what it answered then.

The file was written once, from random reports; other reports would give other answers.
"""

import json
from pathlib import Path

import pytest

import psd

HERE = Path(__file__).parent
FILE = HERE / "local.format-8.psd.parquet"
ANSWERS = HERE / "local.answers.json"
DIGEST = "9828742659b35bc0008636b1fba85346d72d962472214fbb9351f27dff899e49"
BOXES = [(0, 0, 8, 4), (1.3, 0.2, 4.4, 3.1), (2, 1, 3, 2), (6, 2, 8, 4)]


def answers_of(release):
    """Every number of the answer table."""
    table = release.query(BOXES, confidence=0.9).drop(columns="id")
    return {name: values.tolist() for name, values in table.items()}


def test_the_stored_release_answers_the_stored_numbers():
    release = psd.Release.load(FILE)
    assert release.digest == DIGEST
    stored, answers = json.loads(ANSWERS.read_text()), answers_of(release)
    assert answers.keys() == stored.keys()
    for name in ("reliable", "quality"):
        assert answers.pop(name) == stored.pop(name)
    for name, values in answers.items():
        assert values == pytest.approx(stored[name], rel=1e-12, abs=1e-9), name


def test_the_stored_release_states_its_reports():
    local = psd.Release.load(FILE).record.local
    assert [(level.level, level.protocol) for level in local.levels] == [
        (2, "subset"),
        (3, "hashing"),
    ]
    assert local.reports == 5000
