"""Public parameters of a method: texts and values that are read, and those that are refused."""

from decimal import Decimal

import numpy as np
import pytest

from psd._util.declared_parameters import (
    declared,
)
from psd._util.fields import from_settings
from psd.decompositions import method, methods
from psd.decompositions.grid import Grid
from psd.decompositions.quadtree import Quadtree
from psd.errors import ParameterError
from support.parameters import Example


def test_texts_become_values():
    texts = {"height": "3", "size": "4", "budget": "leaf", "part": "0.25"}
    assert from_settings(Example, texts) == Example(
        height=3, size=4, budget="leaf", part=Decimal("0.25")
    )


@pytest.mark.parametrize(
    ("value", "read"),
    [("0", 0), ("-0", 0), ("012", 12), (np.int64(5), 5), (12, 12)],
)
def test_whole_numbers_are_read(value, read):
    height = Example(height=value).height
    assert height == read
    assert type(height) is int


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"height": 13}, id="above the range"),
        pytest.param({"height": -1}, id="below the range"),
        pytest.param({"height": "8.0"}, id="decimal point"),
        pytest.param({"height": 8.0}, id="float"),
        pytest.param({"height": True}, id="True"),
        pytest.param({"height": "--5"}, id="two signs"),
        pytest.param({"height": "-"}, id="sign alone"),
        pytest.param({"height": ""}, id="nothing"),
        pytest.param({"height": " 5"}, id="space"),
        pytest.param({"height": "1_0"}, id="underscore"),
        pytest.param({"height": "\u0665"}, id="digit of another script"),
        pytest.param({"height": "\u00b2"}, id="superscript digit"),
        pytest.param({"height": "9" * 5000}, id="five thousand digits"),
        pytest.param({"height": None}, id="None where it is not the default"),
        pytest.param({"size": 0}, id="optional, out of range"),
        pytest.param({"budget": "Leaf"}, id="unknown word"),
        pytest.param({"budget": None}, id="no word"),
        pytest.param({"budget": ["leaf"]}, id="list"),
        pytest.param({"part": 1}, id="share of all"),
        pytest.param({"part": "-0.1"}, id="negative share"),
        pytest.param({"part": "a third"}, id="share in words"),
        pytest.param({"part": float("nan")}, id="share nan"),
    ],
)
def test_bad_values_are_refused_by_name(given):
    (name,) = given
    with pytest.raises(ParameterError, match=name):
        Example(**given)


def test_none_is_a_value_where_it_is_the_default():
    assert Example(size=None).size is None


@pytest.mark.parametrize("value", [0.25, np.float64(0.25), "0.25", Decimal("0.25")])
def test_share_is_kept_as_decimal(value):
    assert Example(part=value).part == Decimal("0.25")


def test_an_unknown_key_is_refused_with_the_known_ones():
    with pytest.raises(ParameterError, match=r"example has no parameter 'hight'.*height, size"):
        from_settings(Example, {"hight": "3"})


def test_json_has_decimal_texts_and_plain_numbers():
    values = declared(Example(height=np.int64(3), part="0.10"))
    assert values == {"height": 3, "size": None, "budget": "uniform", "part": "0.10"}
    assert [type(value) for value in values.values()] == [int, type(None), str, str]


@pytest.mark.parametrize("name", methods())
def test_every_method_is_made_by_name_and_made_again_from_its_json(name):
    made = method(name)
    settings = {key: str(value) for key, value in declared(made).items() if value is not None}
    assert method(name, settings) == made
    assert made.name == name


def test_methods_read_their_own_settings():
    assert method("quadtree", {"height": "3", "budget": "leaf"}) == Quadtree(
        height=3, budget="leaf"
    )
    assert method("grid", {"size": "64"}) == Grid(size=64)


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        pytest.param(
            "quadtre",
            {},
            "must be one of .*grid.*quadtree, got 'quadtre'; did you mean 'quadtree'",
            id="unknown method",
        ),
        pytest.param("_table", {}, "must be one of", id="private module"),
        pytest.param("../grid", {}, "must be one of", id="path"),
        pytest.param("", {}, "must be one of", id="nothing"),
        pytest.param(
            "quadtree", {"size": "3"}, "quadtree has no parameter 'size'", id="unknown key"
        ),
        pytest.param(
            "quadtree", {"height": "13"}, "height must be between 0 and 12, got 13", id="value"
        ),
        pytest.param("quadtree", {"name": "x"}, "no parameter 'name'", id="class attribute"),
        pytest.param(
            "grid", {"total_share": "0"}, "total_share must be above 0", id="no share and no size"
        ),
    ],
)
def test_unknown_methods_and_keys_are_refused(name, settings, says):
    with pytest.raises(ParameterError, match=says):
        method(name, settings)
