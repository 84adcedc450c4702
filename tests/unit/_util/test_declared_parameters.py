"""Parameters that a release may state: what is declared, and nothing else."""

import dataclasses
import operator
import pickle

import numpy as np
import pytest

from psd._util.declared_parameters import (
    NO_PARAMETERS,
    DeclaredParameters,
    declared,
    integer_between,
    parameters_from_file,
    public_field,
)
from psd.errors import ParameterError
from psd.privacy.budget import STATEMENTS, method_parameters
from support.parameters import Example


@dataclasses.dataclass(frozen=True, kw_only=True)
class Picking(Example):
    """A method that picks something during a build."""

    picks = ("picked",)


def test_declared_parameters_are_the_fields_in_order_and_no_others():
    fields = [("height", 8), ("size", None), ("budget", "uniform"), ("part", "0.10")]
    assert list(declared(Example(part="0.10")).items()) == fields

    @dataclasses.dataclass(frozen=True)
    class Undeclared:
        rows: int = 3
        name = "undeclared"

    with pytest.raises(ParameterError, match="rows of undeclared is not a declared public"):
        declared(Undeclared())
    field = ("ledger", int, public_field(1, integer_between(0, 2), "taken"))
    kind = dataclasses.make_dataclass("Taking", [field], namespace={"name": "taking"}, frozen=True)
    with pytest.raises(ParameterError, match="ledger of taking states the budget"):
        method_parameters(kind())


def test_nothing_else_makes_declared_parameters():
    for seal in (None, object(), True):
        with pytest.raises(ParameterError, match="those that its method declares"):
            DeclaredParameters(seal, {"rows": 1234}, ())
    parameters = declared(Example())
    for change, error in [
        (lambda: setattr(parameters, "rows", 1234), AttributeError),
        (lambda: setattr(parameters, "_values", {"rows": 1234}), AttributeError),
        (lambda: delattr(parameters, "_values"), AttributeError),
        (lambda: operator.setitem(parameters, "rows", 1234), TypeError),
        (lambda: parameters | {"rows": 1234}, TypeError),
    ]:
        with pytest.raises(error):
            change()


def test_picks_are_those_of_the_class_and_statements_those_of_the_table():
    plain, picking = declared(Example()), declared(Picking())
    assert picking.with_picks({"picked": "grid"})["picked"] == "grid"
    stated = plain.with_statement(STATEMENTS, {"bound_epsilon": "0.1"})
    assert stated["bound_epsilon"] == "0.1"
    for call, words in [
        (lambda: picking.with_picks({"rows": 1234}), "pick 'rows' is not declared public"),
        (lambda: plain.with_picks({"picked": "grid"}), "pick 'picked' is not declared public"),
        (
            lambda: plain.with_statement(STATEMENTS, {"rows": 1234}),
            "statement 'rows' is not declared public",
        ),
        (lambda: plain.with_statement(frozenset({"height"}), {"height": 1}), "is stated twice"),
        (lambda: picking.with_picks({"picked": 1}).with_picks({"picked": 2}), "is stated twice"),
    ]:
        with pytest.raises(ParameterError, match=words):
            call()


def test_parameters_of_a_file_are_kept_in_a_copy(subtests):
    mine = {"size": 3, "Of another program": None}
    parameters = parameters_from_file(mine)
    mine["rows"] = 1234
    again = pickle.loads(pickle.dumps(parameters))
    assert dict(parameters) == dict(again) == {"size": 3, "Of another program": None}
    assert type(again) is DeclaredParameters
    assert dict(NO_PARAMETERS) == {}
    for value in (0.5, True, [1], b"1", np.int64(3), "", "two\nlines", "x" * 101, 2**62 + 1):
        words = pytest.raises(ParameterError, match="parameter size must be")
        with subtests.test(repr(value)), words:
            parameters_from_file({"size": value})
    for names, words in (([""], "short printable text"), (range(101), "at most 100 parameters")):
        with subtests.test(words), pytest.raises(ParameterError, match=words):
            parameters_from_file(dict.fromkeys(names))
    for name in ("Size", "1st", "", "größe", "a" * 41, "two words"):
        own = {"name": "named", "picks": (name,)}
        kind = dataclasses.make_dataclass("Named", [], namespace=own)
        with subtests.test(name), pytest.raises(ParameterError, match="must be small letters"):
            declared(kind())
