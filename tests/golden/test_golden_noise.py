"""A series whose losses are in rho, written once, still loads with the same content."""

from fractions import Fraction
from pathlib import Path

import pytest

import psd
from psd.privacy.count_noise import CountNoise

FILE = Path(__file__).parent / "gaussian.format-11.psd.parquet"
DIGEST = "8147b98198bc578686a10493f862de70f664f54c0227b67746e760579383c6b1"


def test_the_stored_series_has_the_stored_loss_and_answers():
    series = psd.SeriesRelease.load(FILE)
    assert series.digest == DIGEST
    assert series.guarantee_text == (
        "epsilon 1 and delta 1e-6 (rho 0.024355970359) per user, at most 3 records of each, at "
        "most 1 of them in each time slice; with a probability of at most 1e-6 it may reveal more "
        "than epsilon allows"
    )
    first = series.record.releases[0]
    assert (first.rho, first.delta) == (24_355_970_359, Fraction(1, 10**6))
    assert first.tree.noise == CountNoise.gaussian(3)
    answer = series["2024-01-02"].query([(126.4, 37, 127, 37.5)])
    assert answer["estimate"].tolist() == pytest.approx([81.089414], abs=1e-5)
    assert answer[["lower", "upper"]].to_numpy().tolist() == [
        pytest.approx([59.800292, 102.378536], abs=1e-5)
    ]
