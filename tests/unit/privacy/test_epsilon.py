"""Epsilon from text, and shares that sum to exactly the whole."""

from decimal import Decimal

import numpy as np
import pytest

from psd.errors import ParameterError
from psd.privacy.epsilon import NANO, epsilon_decimal, epsilon_text, parse_decimal, parse_epsilon


@pytest.mark.parametrize(
    ("value", "nano"),
    [
        pytest.param("0.1", 100_000_000, id="text"),
        pytest.param(0.1, 100_000_000, id="float counts as its repr"),
        pytest.param(np.float64(0.1), 100_000_000, id="numpy float"),
        pytest.param(1, NANO, id="whole number"),
        pytest.param(np.int64(2), 2 * NANO, id="numpy whole number"),
        pytest.param(Decimal("0.25"), 250_000_000, id="Decimal"),
        pytest.param("1.001", 1_001_000_000, id="above its float in nano-units"),
        pytest.param("0.29", 290_000_000, id="below its float in nano-units"),
        pytest.param("1e-9", 1, id="smallest"),
        pytest.param(1e-9, 1, id="smallest as float"),
        pytest.param("1000", 1000 * NANO, id="largest"),
        pytest.param("1E3", 1000 * NANO, id="exponent"),
        pytest.param("0.1000000000000", 100_000_000, id="zeros beyond nine decimals"),
        pytest.param("+.5", NANO // 2, id="sign and no leading digit"),
        pytest.param("2.", 2 * NANO, id="no trailing digit"),
    ],
)
def test_epsilon_is_read_exactly(value, nano):
    assert parse_epsilon(value) == nano
    assert type(parse_epsilon(value)) is int


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("0.1234567891", id="ten decimals"),
        pytest.param(0.1 + 0.2, id="float arithmetic"),
        pytest.param("1e-400", id="below every float"),
        pytest.param("0", id="zero"),
        pytest.param("-0.5", id="negative"),
        pytest.param("1000.000000001", id="just above the largest"),
        pytest.param("1e9", id="far above the largest"),
        pytest.param("nan", id="nan"),
        pytest.param(float("nan"), id="float nan"),
        pytest.param("inf", id="inf"),
        pytest.param(float("inf"), id="float inf"),
        pytest.param(Decimal("NaN"), id="Decimal nan"),
        pytest.param("abc", id="word"),
        pytest.param("0,5", id="decimal comma"),
        pytest.param("1/3", id="fraction"),
        pytest.param("1_0", id="underscore"),
        pytest.param("1e99999", id="exploding exponent"),
        pytest.param("\u0660.\u0665", id="digits of another script"),
        pytest.param(" 1", id="space"),
        pytest.param("1\n", id="line end"),
        pytest.param("", id="empty"),
        pytest.param(True, id="True"),
        pytest.param(np.True_, id="numpy True"),
        pytest.param(None, id="None"),
    ],
)
def test_bad_epsilon_is_refused_with_one_sentence(value):
    with pytest.raises(ParameterError) as refusal:
        parse_epsilon(value)
    message = str(refusal.value)
    assert message.startswith("epsilon ")
    assert "\n" not in message
    assert str(value) in message or repr(value)[1:-1] in message


def test_a_text_that_is_no_number_is_answered_by_an_example():
    with pytest.raises(ParameterError, match=r"number such as 0\.5, got 'half'"):
        parse_decimal("epsilon", "half")


@pytest.mark.parametrize(
    ("nano", "text"),
    [
        (1, "0.000000001"),
        (100_000_000, "0.1"),
        (NANO, "1"),
        (10 * NANO, "10"),
        (100 * NANO + 1, "100.000000001"),
        (1000 * NANO, "1000"),
    ],
)
def test_text_of_epsilon_is_read_back(nano, text):
    assert epsilon_text(nano) == text
    assert epsilon_decimal(nano) == Decimal(text)
    assert parse_epsilon(text) == nano
