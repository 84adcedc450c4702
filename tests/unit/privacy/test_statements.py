"""Names under which a release states its budget, and methods that may not take them."""

import dataclasses

import pytest

from psd._util.fields import integer_between, public_field
from psd.decompositions.quadtree import Quadtree
from psd.errors import ParameterError
from psd.privacy.statements import (
    BUDGET_STATEMENTS,
    RECEIPT_STATEMENTS,
    STATEMENTS,
    STREAM_STATEMENTS,
    method_parameters,
)


def method(field, picks=()):
    """A method with one parameter."""
    kind = dataclasses.make_dataclass(
        "Own",
        [(field, int, public_field(1, integer_between(0, 2), "a parameter"))],
        namespace={"name": "own", "picks": picks},
        frozen=True,
    )
    return kind()


def test_a_name_states_one_thing():
    groups = (BUDGET_STATEMENTS, RECEIPT_STATEMENTS, STREAM_STATEMENTS)
    assert sum(map(len, groups)) == len(frozenset.union(*groups))
    assert frozenset.union(*groups) == STATEMENTS


def test_parameters_of_a_method_are_handed_on():
    assert dict(method_parameters(method("height"))) == {"height": 1}
    assert method_parameters(Quadtree(height=3))["height"] == 3


@pytest.mark.parametrize("name", sorted(STATEMENTS))
def test_no_parameter_and_no_pick_has_the_name_of_a_statement(name):
    message = f"^{name} of own states the budget of a release"
    with pytest.raises(ParameterError, match=message):
        method_parameters(method(name))
    with pytest.raises(ParameterError, match=message):
        method_parameters(method("height", picks=(name,)))
