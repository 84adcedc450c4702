"""Records where a setting is meant: the message has their type, and none of their values."""

import inspect

import numpy as np
import pandas as pd
import pytest

import psd
from psd.errors import ParameterError, PsdError

RECORDS = pd.DataFrame({"lon": [126.98765] * 5, "lat": [37.54321] * 5, "who": ["p98765"] * 5})
COLUMNS = {
    "Series": RECORDS.who,
    "DataFrame": RECORDS[["lon", "lat"]],
    "ndarray": RECORDS.lon.to_numpy(),
}
BOUNDS = (126, 37, 128, 38)
BUILD = {
    "data": RECORDS, "bounds": BOUNDS, "epsilon": 1, "method": "grid", "user": "who",
    "max_contributions": 2,
}  # fmt: skip
CALLS = {
    "build": BUILD,
    "tally": {"data": RECORDS, "bounds": BOUNDS, "part": "a", "per": "record"},
    "plan": {"count": 10, "bounds": BOUNDS, "epsilon": 1, "method": "grid", "runs": 1},
}


@pytest.mark.parametrize(
    "name_of_call", ["build", "tally", pytest.param("plan", marks=pytest.mark.app("planning"))]
)
def test_no_message_has_a_value_of_records(name_of_call, subtests):
    """Each argument in turn."""
    call = getattr(psd, name_of_call)
    names = {*inspect.signature(call).parameters} - {"data", "output", "users", "progress"}
    names |= {"max_contributions", "slices", "delta"}
    several = {"epsilon", "density", "sizes", "methods"} if name_of_call == "plan" else set()
    for name in sorted(names - several):
        for kind, value in COLUMNS.items():
            with (
                subtests.test(name, kind=kind),
                pytest.raises((PsdError, AttributeError)) as refused,
            ):
                call(**{**CALLS[name_of_call], name: value})
            assert "98765" not in str(refused.value)
            assert "54321" not in str(refused.value)


def test_a_column_is_given_by_its_name(subtests):
    for name, value in {"user": RECORDS.who, "x": RECORDS.lon, "time": np.zeros(5)}.items():
        words = rf"^{name} must not be a table, .* got a value of type \w+; .* by its name"
        with subtests.test(name), pytest.raises(ParameterError, match=words):
            psd.build(**{**BUILD, name: value})
    with pytest.raises(ParameterError, match=r"^slices must be public, not a column"):
        psd.build(**BUILD, time="who", slices=RECORDS.who)


@pytest.mark.app("planning")
def test_a_table_is_no_number_of_records():
    words = r"^count must be an integer, got a value of type Data"
    with pytest.raises(ParameterError, match=words):
        psd.plan(RECORDS, epsilon=1, bounds=BOUNDS)
