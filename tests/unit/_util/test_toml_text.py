"""TOML that is written is read back as the same table."""

import tomllib
from decimal import Decimal

import pytest

from psd._util.json_toml import toml_text
from psd.errors import ParameterError

TABLES = {
    "empty": {},
    "values": {"a": 1, "b": -2.5, "c": True, "d": False, "e": "text", "f": [1, [2, 3]], "g": []},
    "small and large floats": {"a": 1e-300, "b": 1e300, "c": float("inf")},
    "keys to be quoted": {"a b": 1, "": 2, "ü": 3, 'say "x"': 4, "a.b": {"c.d": 5}, "a-b_1": 6},
    "text to be escaped": {"a": 'a "quote", a \\ and\ta\nline', "b": "\x00\x1f\x7f", "c": "서울"},
    "values after a table": {"table": {"x": 1}, "y": 2, "more": {"inner": {"z": 3}, "w": 4}},
    "arrays of tables": {"release": [{"a": 1, "set": {"b": 2}}, {"a": 3, "part": [{"c": 4}]}]},
}


def test_a_table_is_read_back_and_a_value_without_a_form_refused():
    assert {name: tomllib.loads(toml_text(table)) for name, table in TABLES.items()} == TABLES
    table = {"a": None, "b": (1, 2), "c": {"d": None}, "e": ({"f": 1},)}
    assert tomllib.loads(toml_text(table)) == {"b": [1, 2], "c": {}, "e": [{"f": 1}]}
    for text in ("0.1", "1E-9", "1e3", "0.10"):
        written = toml_text({"epsilon": Decimal(text)})
        assert "e" not in written.removeprefix("epsilon").lower()
        assert tomllib.loads(written, parse_float=Decimal)["epsilon"] == Decimal(text)
    words = r"^size must be a text, a number, a Boolean or a list"
    for value in (b"1", {1}, object(), [None], [object()]):
        with pytest.raises(ParameterError, match=words):
            toml_text({"release": {"size": value}})
