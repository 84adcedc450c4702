"""What a plan expects of public data sets, whose number of rows is all it knows, and the truth."""

from pathlib import Path

import pytest

import psd
from psd.apps.evaluation.comparison import compare
from psd.apps.planning.plan import plan
from support.real_sets import BOUNDS

pytestmark = pytest.mark.deep

TOP = Path(__file__).resolve().parents[3]
SHARED = TOP.parent / "shared" / "data"
SEOUL = pytest.param(TOP / "data" / "seoul" / "visits.csv", (126.4, 37, 127.6, 38), id="seoul")
MISSING = pytest.mark.skipif(not SHARED.is_dir(), reason="folder shared/data missing")
OTHERS = [
    pytest.param(SHARED / f"{name}.csv", bounds, id=name, marks=[pytest.mark.nightly, MISSING])
    for name, bounds in BOUNDS.items()
]


@pytest.mark.parametrize(("path", "bounds"), [SEOUL, *OTHERS])
def test_the_truth_is_in_the_range_or_not_far_from_it(path, bounds):
    """Within a factor of 2 where people are, of 4 anywhere, as docs/measured/data/plans.csv."""
    domain = psd.Domain(bounds=bounds)
    given = {"domain": domain, "methods": ["auto"]}
    rows = path.read_bytes().count(b"\n") - 1
    expected = plan(round(rows, 2 - len(str(rows))), epsilon=["1"], **given, runs=1).ranges
    true = compare(path, epsilon=["1"], **given, runs=1, jobs=1).table.iloc[0]
    for row in expected.to_dict("records"):
        kind = "uniform" if row["centres"] == "anywhere" else row["centres"]
        found = true[f"{kind} {100 * row['size_share']:g} %"]
        factor = 4 if kind == "uniform" else 2
        assert row["mean_error_low"] / factor < found < factor * row["mean_error_high"], row
