"""What a build logs: its stages, and nothing of records."""

import logging

import pandas as pd

import psd

DOMAIN = psd.Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(4, 4))


def logged(caplog, rows):
    caplog.clear()
    with caplog.at_level(logging.DEBUG, logger="psd"):
        psd.build(rows, domain=DOMAIN, epsilon=1, method="grid", x="x", y="y")
    return [(record.name, record.levelname, record.getMessage()) for record in caplog.records]


def test_a_build_logs_its_stages_whatever_the_records(caplog):
    few = pd.DataFrame({"x": [1.25], "y": [2.5]})
    many = pd.DataFrame({"x": [1.25, 3.5] * 99, "y": [2.5, 9.0] * 99})
    told = logged(caplog, few)
    assert told
    assert {(name, level) for name, level, _ in told} == {("psd", "INFO")}
    assert told == logged(caplog, many)
    assert not any(letter.isdigit() for _, _, text in told for letter in text)
