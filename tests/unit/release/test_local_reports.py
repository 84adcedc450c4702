"""What a file of a local release states of its reports."""

import json
from fractions import Fraction

import pytest

from psd.errors import ParameterError
from psd.release.local_reports import (
    LevelReports,
    LocalReports,
    is_local_header,
    local_header,
    parse_local,
)

LEVEL = LevelReports(
    level=2, protocol="hashing", reports=100, p=Fraction(3, 5), q=Fraction(1, 3), outside=7
)
LOCAL = LocalReports(campaign="A" * 22, levels=(LEVEL,))


def header(**changes):
    value = local_header(LOCAL)
    value["levels"][0] |= changes
    return value


def test_reports_are_written_and_read():
    assert parse_local(json.loads(json.dumps(local_header(LOCAL)))) == LOCAL
    assert parse_local(None) is None
    assert local_header(None) is None
    assert header()["levels"][0]["p"] == "3/5"


@pytest.mark.parametrize(
    "value",
    [
        5,
        {},
        {"campaign": "A" * 22},
        {"campaign": "A" * 22, "levels": []},
        {"campaign": 5, "levels": [header()["levels"][0]]},
        {"campaign": "short", "levels": [header()["levels"][0]]},
        {"campaign": "A" * 22, "levels": header()["levels"] * 2},
        {"campaign": "A" * 22, "levels": [5]},
        header(extra=1),
        header(level=-1),
        header(level=True),
        header(level=256),
        header(reports=0, outside=0),
        header(reports=2**53),
        header(reports=1.0),
        header(outside=101),
        header(outside=-1),
        header(p="0.6"),
        header(p="6/10"),
        header(p="1/0"),
        header(p="1/3"),
        header(p="5/3"),
        header(p=0.6),
        header(q="-1/3"),
        header(protocol="Hashing"),
        header(protocol=["hashing"]),
    ],
    ids=range(26),
)
def test_other_values_are_refused(value):
    assert not is_local_header(value)
    with pytest.raises((ParameterError, TypeError)):
        parse_local(value)
