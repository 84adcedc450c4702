"""What a file of a local release states of its reports."""

import json
from fractions import Fraction

import pytest

from psd.errors import ParameterError
from psd.release.record import (
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


def test_reports_are_written_and_read_and_other_values_are_refused(subtests):
    assert parse_local(json.loads(json.dumps(local_header(LOCAL)))) == LOCAL
    assert parse_local(None) is None
    assert local_header(None) is None
    assert header()["levels"][0]["p"] == "3/5"
    [level], campaign = header()["levels"], "A" * 22
    for value in (
        *(5, {}, {"campaign": campaign}, {"campaign": campaign, "levels": []}),
        *({"campaign": other, "levels": [level]} for other in (5, "short")),
        *({"campaign": campaign, "levels": levels} for levels in ([level] * 2, [5])),
        *(header(level=level) for level in (-1, True, 256)),
        *(header(reports=0, outside=0), header(reports=2**53), header(reports=1.0)),
        *(header(outside=101), header(outside=-1), header(q="-1/3"), header(extra=1)),
        *(header(p=p) for p in ("0.6", "6/10", "1/0", "1/3", "5/3", 0.6)),
        *(header(protocol="Hashing"), header(protocol=["hashing"])),
    ):
        with subtests.test(value=value):
            assert not is_local_header(value)
            with pytest.raises((ParameterError, TypeError)):
                parse_local(value)
