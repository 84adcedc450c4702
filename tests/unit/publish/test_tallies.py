"""`psd.tally` and `psd.merge` for tables and files, and what they refuse."""

import numpy as np
import pandas as pd
import pytest

import psd
from psd.errors import InputDataError, ParameterError, WriteError
from support.privacy.samplers import ExactSampler

BOUNDS = (0, 0, 8, 8)
POINTS = pd.DataFrame(
    {"lon": [0.5, 1.5, 1.6, 7.0], "lat": [0.5, 1.5, 1.6, 7.0], "who": ["a", "a", "b", "c"]}
)


@pytest.fixture
def parts(tmp_path):
    """Two files of rows."""
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    POINTS[:2].to_csv(paths[0], index=False)
    POINTS[2:].to_csv(paths[1], index=False)
    return paths


def grid(data, **arguments):
    """Counts of a grid of 4 x 4 cells without noise."""
    method = psd.decompositions.Grid(size=4)
    return psd.build(data, epsilon=1, method=method, sampler=ExactSampler(), **arguments).tree.count


def test_tallies_of_parts_give_the_counts_of_all_rows(parts):
    tallies = [psd.tally(path, domain=BOUNDS) for path in parts]
    assert np.array_equal(grid(tallies), grid(POINTS, domain=BOUNDS))


def test_files_of_tallies_merge(parts, tmp_path):
    psd.tally(parts[0], tmp_path / "a.tally", domain=BOUNDS)
    second = psd.tally(str(parts[1]), domain=psd.Domain(bounds=BOUNDS))
    merged = psd.merge([tmp_path / "a.tally", second], tmp_path / "all.tally")
    assert np.array_equal(grid(merged), grid(POINTS, domain=BOUNDS))
    assert (tmp_path / "all.tally").stat().st_mode & 0o777 == 0o600
    assert np.array_equal(grid(psd.merge(tmp_path / "all.tally")), grid(merged))


def test_users_are_carried_with_one_key(parts, tmp_path):
    arguments = {
        "domain": BOUNDS,
        "user": "who",
        "max_contributions": 1,
        "key": tmp_path / "visits.key",
        "carry_users": True,
    }
    merged = psd.merge([psd.tally(path, **arguments) for path in parts])
    assert merged.unit.max_contributions == 1
    assert merged.tally.counts.sum() == 3


def test_a_method_makes_a_tally_smaller(parts):
    method = psd.decompositions.Grid(size=4)
    coarse = psd.tally(parts[0], domain=BOUNDS, method=method)
    assert coarse.rules.step == (2**18, 2**18)
    assert psd.tally(parts[0], domain=BOUNDS).rules.step == (1, 1)


def test_outputs_are_not_overwritten_and_inputs_never(parts, tmp_path):
    psd.tally(parts[0], tmp_path / "a.tally", domain=BOUNDS)
    with pytest.raises(WriteError, match="exists"):
        psd.tally(parts[0], tmp_path / "a.tally", domain=BOUNDS)
    psd.tally(parts[0], tmp_path / "a.tally", domain=BOUNDS, overwrite=True)
    with pytest.raises(WriteError):
        psd.tally(parts[0], parts[0], domain=BOUNDS, overwrite=True)
    with pytest.raises(WriteError):
        psd.merge(tmp_path / "a.tally", tmp_path / "a.tally", overwrite=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "part must name"),
        ({"part": ""}, "part must be 1 to 100"),
        ({"part": "p", "domain": None}, "domain must be a psd.Domain or four numbers"),
        ({"part": "p", "domain": psd.PrivateBounds()}, "domain must be a psd.Domain"),
        ({"part": "p", "domain": "0 0 8 8"}, "domain must be a psd.Domain"),
        ({"part": "p", "method": psd.decompositions.Grid}, "method must be an instance"),
        ({"part": "p", "user": "who", "max_contributions": "auto"}, "must be a number"),
        ({"part": "p", "key": b"k" * 32}, "key must be left out without user"),
        ({"part": "p", "carry_users": True}, "carry must have user="),
        ({"part": "p", "column": "lon"}, "argument 'column' does not exist"),
    ],
)
def test_wrong_arguments_are_refused_with_their_name(arguments, message):
    with pytest.raises(ParameterError, match=message):
        psd.tally(POINTS, **{"domain": BOUNDS, **arguments})


def test_what_is_not_a_tally_does_not_merge(parts):
    with pytest.raises(ParameterError, match="at least one tally"):
        psd.merge([])
    with pytest.raises(ParameterError, match="value of type DataFrame"):
        psd.merge([POINTS])
    with pytest.raises(InputDataError):
        psd.merge(parts)
    tally = psd.tally(parts[0], domain=BOUNDS)
    with pytest.raises(InputDataError, match="repeated"):
        psd.merge([tally, tally])
