"""TOML of any text, and values of another type, are read or refused in a sentence."""

from decimal import Decimal

import pytest

from psd._util.json_toml import check_texts, read_toml, texts_of, values_of
from psd.errors import ParameterError


def test_values_are_lists_and_texts_and_others_are_refused():
    assert values_of("bounds", [1, "2"]) == (1, "2")
    assert texts_of("inputs", "a.csv") == ("a.csv",)
    assert texts_of("slices", [2024, "2025"]) == ("2024", "2025")
    for read in (values_of, texts_of):
        with pytest.raises(ParameterError, match=r"^bounds must be a list, got a value of type"):
            read("bounds", 5)
    check_texts("private", {"engine": None, "dataset": "a"}, ("engine", "dataset", "analyst"))
    with pytest.raises(ParameterError, match=r"^dataset of private must be a text, got a value of"):
        check_texts("private", {"dataset": ["secret"]}, ("engine", "dataset"))
    assert read_toml("recipe", "a = 0.1\nb = 1") == {"a": Decimal("0.1"), "b": 1}
    for text, words in [
        ("a = ", "Invalid value"),
        ("x=" + "[" * 5_000, "its values are nested too deeply"),
        ("x=" + "{a=" * 5_000, "its values are nested too deeply"),
        ("x=" + "1" * 5_000, "a number has too many digits"),
        ("x=1e" + "9" * 50, "a number has too many digits"),
    ]:
        with pytest.raises(ParameterError, match=f"^recipe must be TOML: {words}") as refusal:
            read_toml("recipe", text)
        assert len(str(refusal.value)) < 200
