"""Facts of a stream: written, read back, and of one request."""

from dataclasses import replace

import pytest

from psd.errors import InputDataError
from psd.ingest.sources import Columns
from psd.privacy.loss import Loss
from psd.privacy.unit import PrivacyUnit
from psd.publish.request_arguments import request_from_arguments
from psd.publish.request_toml import to_toml
from psd.streams.plan import StreamPlan, fault_charge, guarantee_of, stream_charge
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
    clock="0" * 16,
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


def test_the_guarantee_of_a_stream_states_the_delta_of_its_slices():
    gaussian = replace(REQUEST, delta="1e-6", noise_law="gaussian")
    assert guarantee_of(gaussian, None) == gaussian.guarantee_text
    assert guarantee_of(gaussian, None).startswith("epsilon 0.5 and delta 1e-6 (rho 0.00664")
    assert stream_charge(gaussian).loss == gaussian.loss
    assert fault_charge(gaussian).loss == Loss.pure(0)


def test_the_guarantee_of_a_stream_states_the_delta_of_its_totals():
    request = replace(REQUEST, unit=PrivacyUnit(), columns=Columns(time="time"))
    assert guarantee_of(request, "1e-6") == (
        "epsilon 0.5 and delta 1e-6 per record; with a probability of at most 1e-6 it may reveal "
        "more than epsilon allows"
    )
