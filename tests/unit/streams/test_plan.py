"""Facts of a stream: written, read back, and of one request."""

from dataclasses import replace

import pytest

from psd.errors import InputDataError, ParameterError
from psd.ingest.sources import Columns
from psd.privacy.unit import PrivacyUnit
from psd.publish.request_arguments import request_from_arguments
from psd.publish.request_toml import to_toml
from psd.streams.creation import create_stream
from psd.streams.plan import StreamPlan, guarantee_of
from support.streams import WEEK

REQUEST = request_from_arguments(
    domain=(0, 0, 8, 8), epsilon="0.5", method="grid", slices=WEEK, time="time", user="id",
    max_contributions=2, per="user-slice",
)  # fmt: skip
PLAN = StreamPlan(
    request=to_toml(REQUEST),
    folder="/",
    output="/city.psd.parquet",
    key="00" * 32,
    files={},
    statement={"stream_slices": 7},
)


def test_a_plan_is_read_back():
    plan = StreamPlan.from_rows(PLAN.to_rows())
    assert plan == PLAN
    assert plan.build_request() == REQUEST
    assert repr(plan) == "<StreamPlan: private>"


@pytest.mark.parametrize("missing", ["request", "ledger"])
def test_other_facts_are_refused(missing):
    rows = PLAN.to_rows()
    del rows[missing]
    with pytest.raises(InputDataError, match="other facts than that of a stream"):
        StreamPlan.from_rows(rows)


def test_gaussian_noise_of_slices_is_refused_since_they_are_drawn_with_pure_epsilon(tmp_path):
    gaussian = replace(REQUEST, delta="1e-6", noise_law="gaussian")
    assert not gaussian.loss.is_pure
    with pytest.raises(ParameterError, match="noise_law must be laplace for the slices"):
        create_stream(tmp_path / "city.stream", tmp_path / "city.psd.parquet", gaussian)


def test_the_guarantee_of_a_stream_states_the_delta_of_its_totals():
    request = replace(REQUEST, unit=PrivacyUnit(), columns=Columns(time="time"))
    assert guarantee_of(request, "1e-6") == (
        "epsilon 0.5 and delta 1e-6 per record; with a probability of at most 1e-6 it may reveal "
        "more than epsilon allows"
    )
