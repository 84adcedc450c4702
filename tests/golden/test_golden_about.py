"""A release with statements of its publisher, written once, still loads with the same content."""

from pathlib import Path

import pytest

import psd

FILE = Path(__file__).parent / "about.format-9.psd.parquet"
DIGEST = "5fc305a7cba9d88aa89777c9fbb362707fc064eef23015e2acc01120319d4e0b"
STATED = {
    "title": "Visits in Seoul, 방문",
    "publisher": "Office of Seoul",
    "licence": "CC-BY-4.0",
    "reference_date": "2024-01/2024-06",
    "language": "ko",
}


def test_the_stored_release_states_the_stored_texts():
    release = psd.Release.load(FILE)
    assert release.digest == DIGEST
    assert release.about == STATED
    assert release.query([(126.4, 37, 127, 37.5)])["estimate"].tolist() == pytest.approx(
        [60.0], abs=1e-9
    )
