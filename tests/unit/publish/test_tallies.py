"""`psd.tally` and `psd.merge` for tables and files, and what they refuse."""

import numpy as np
import pandas as pd
import pytest

import psd
from psd.curator.private_bounds import PrivateBounds
from psd.errors import InputDataError, ParameterError, WriteError
from support.privacy.samplers import ExactSampler

BOUNDS = (0, 0, 8, 8)
POINTS = pd.DataFrame(
    {"lon": [0.5, 1.5, 1.6, 7.0], "lat": [0.5, 1.5, 1.6, 7.0], "who": ["a", "a", "b", "c"]}
)


@pytest.fixture
def parts(tmp_path):
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    POINTS[:2].to_csv(paths[0], index=False)
    POINTS[2:].to_csv(paths[1], index=False)
    return paths


def grid(data, **arguments):
    """Counts of a grid of 4 x 4 cells without noise."""
    method = psd.decompositions.Grid(size=4)
    return psd.build(data, epsilon=1, method=method, sampler=ExactSampler(), **arguments).tree.count


def test_tallies_of_parts_and_files_of_tallies_give_the_counts_of_all_rows(parts, tmp_path):
    everything = grid(POINTS, domain=BOUNDS)
    assert np.array_equal(grid([psd.tally(path, domain=BOUNDS) for path in parts]), everything)
    psd.tally(parts[0], tmp_path / "a.tally", domain=BOUNDS)
    second = psd.tally(str(parts[1]), domain=psd.Domain(bounds=BOUNDS))
    merged = psd.merge([tmp_path / "a.tally", second], output=tmp_path / "all.tally")
    assert np.array_equal(grid(merged), everything)
    assert (tmp_path / "all.tally").stat().st_mode & 0o777 == 0o600
    assert np.array_equal(grid(psd.merge(tmp_path / "all.tally")), everything)
    # Users are carried with one key, and a method makes a tally smaller.
    how = {"user": "who", "max_contributions": 1, "key": tmp_path / "k", "carry_users": True}
    merged = psd.merge([psd.tally(path, domain=BOUNDS, **how) for path in parts])
    assert merged.unit.max_contributions == 1
    assert merged.tally.counts.sum() == 3
    for method, step in ((psd.decompositions.Grid(size=4), 2**18), (None, 1)):
        assert psd.tally(parts[0], domain=BOUNDS, method=method).rules.step == (step, step)


def test_outputs_are_not_overwritten_inputs_never_and_only_tallies_merge(parts, tmp_path):
    psd.tally(parts[0], tmp_path / "a.tally", domain=BOUNDS)
    with pytest.raises(WriteError, match="exists"):
        psd.tally(parts[0], tmp_path / "a.tally", domain=BOUNDS)
    psd.tally(parts[0], tmp_path / "a.tally", domain=BOUNDS, overwrite=True)
    with pytest.raises(WriteError):
        psd.tally(parts[0], parts[0], domain=BOUNDS, overwrite=True)
    with pytest.raises(WriteError):
        psd.merge(tmp_path / "a.tally", output=tmp_path / "a.tally", overwrite=True)
    with pytest.raises(ParameterError, match="output must be named"):
        psd.merge([tmp_path / "a.tally"], tmp_path / "b.tally")
    with pytest.raises(ParameterError, match="at least one tally"):
        psd.merge([])
    with pytest.raises(ParameterError, match="value of type DataFrame"):
        psd.merge([POINTS])
    with pytest.raises(InputDataError):
        psd.merge(parts)
    tally = psd.tally(parts[0], domain=BOUNDS)
    with pytest.raises(InputDataError, match="repeated"):
        psd.merge([tally, tally])


def test_wrong_arguments_are_refused_with_their_name(subtests):
    for arguments, message in (
        ({"part": None}, "part must name"),
        ({"part": ""}, "part must be 1 to 100"),
        ({"domain": None}, "bounds must be public here, got none"),
        ({"domain": PrivateBounds()}, "bounds must be public here, got private ones"),
        ({"domain": "0 0 8 8"}, "domain must be a psd.Domain"),
        ({"method": psd.decompositions.Grid}, "method must be an instance"),
        ({"user": "who", "max_contributions": "auto"}, "must be a number"),
        ({"key": b"k" * 32}, "key must be left out without user"),
        ({"carry_users": True}, "carry must have user="),
        ({"column": "lon"}, "argument 'column' does not exist"),
        ({"epsilon": 1}, "epsilon must be left out"),
    ):
        with subtests.test(arguments=arguments), pytest.raises(ParameterError, match=message):
            psd.tally(POINTS, **{"domain": BOUNDS, "part": "p", **arguments})
