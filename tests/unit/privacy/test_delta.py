from decimal import Decimal
from fractions import Fraction

import pytest

from psd.errors import ParameterError
from psd.privacy.delta import delta_text, parse_delta


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("1e-6", Fraction(1, 10**6)),
        ("0.000001", Fraction(1, 10**6)),
        (".00099999", Fraction(99999, 10**8)),
        (1e-9, Fraction(1, 10**9)),
        (Decimal("2.5E-8"), Fraction(25, 10**9)),
        ("1e-300", Fraction(1, 10**300)),
    ],
)
def test_delta_is_read_exactly(text, exact):
    assert parse_delta(text) == exact


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0", "delta must be above 0 and below 0.001, got 0; usual values are 1e-9 to 1e-5"),
        ("1", "delta must be above 0 and below 0.001, got 1; usual values are 1e-9 to 1e-5"),
        ("1e-2", "delta must be above 0 and below 0.001, got 1e-2; usual values"),
        ("1e-3", "delta must be above 0 and below 0.001, got 1e-3; usual values"),
        ("-1", "delta must be above 0 and below 0.001, got -1; usual values"),
        ("NaN", "delta must be a decimal number such as 1e-6, got 'NaN'"),
        (float("inf"), "delta must be a decimal number such as 1e-6, got 'inf'"),
        ("1e-400", "delta must be at least 1e-300, got 1e-400; usual values"),
        ("1e-12345", "delta must be a decimal number such as 1e-6, got '1e-12345'"),
        ("1.0000000000000001e-6", "delta must be of at most 15 digits, got 1.0000000000000001e-6"),
        ("", "delta must be a decimal number such as 1e-6, got ''"),
        (True, "delta must be a decimal number such as 1e-6, got 'True'"),
    ],
)
def test_other_numbers_are_refused(text, sentence):
    with pytest.raises(ParameterError) as caught:
        parse_delta(text)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("text", ["1e-6", "2.5e-8", "9.99999999999999e-4", "1e-300", "1.2e-10"])
def test_text_reads_back(text):
    assert delta_text(parse_delta(text)) == text
    assert parse_delta(delta_text(parse_delta(text))) == parse_delta(text)
