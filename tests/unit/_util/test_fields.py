"""Public parameters of a method: texts and values that are read, and those that are refused."""

from decimal import Decimal

import numpy as np
import pytest

from psd._util.declared_parameters import declared, from_settings
from psd._util.instances import check_choice
from psd.decompositions import method, methods
from psd.decompositions.grid import Grid
from psd.decompositions.quadtree import Quadtree
from psd.errors import ParameterError
from support.parameters import Example
from support.tables import refused


def test_texts_become_values():
    texts = {"height": "3", "size": "4", "budget": "leaf", "part": "0.25"}
    assert from_settings(Example, texts) == Example(
        height=3, size=4, budget="leaf", part=Decimal("0.25")
    )
    for value, read in (("0", 0), ("-0", 0), ("012", 12), (np.int64(5), 5), (12, 12)):
        height = Example(height=value).height
        assert height == read
        assert type(height) is int
    for value in (0.25, np.float64(0.25), "0.25", Decimal("0.25")):
        assert Example(part=value).part == Decimal("0.25")
    values = declared(Example(height=np.int64(3), part="0.10"))
    assert values == {"height": 3, "size": None, "budget": "uniform", "part": "0.10"}
    assert [type(value) for value in values.values()] == [int, type(None), str, str]


# Digits of another script and superscripts are no digits; five thousand are too many.
NO_HEIGHTS = [13, -1, "8.0", 8.0, True, "--5", "-", "", " 5", "1_0", "\u0665", "\u00b2", "9" * 5000]
BAD_VALUES = {
    "height": [*NO_HEIGHTS, None],
    "size": [0],
    "budget": ["Leaf", None, ["leaf"]],
    "part": [1, "-0.1", "a third", float("nan")],
}


def test_bad_values_are_refused_by_name(subtests):
    for name, values in BAD_VALUES.items():
        refused(subtests, ParameterError, [(name, *values)], lambda v, n=name: Example(**{n: v}))
    assert Example(size=None).size is None
    with pytest.raises(ParameterError, match=r"example has no parameter 'hight'.*height, size"):
        from_settings(Example, {"hight": "3"})


@pytest.mark.parametrize("name", methods())
def test_every_method_is_made_by_name_and_made_again_from_its_json(name):
    made = method(name)
    settings = {key: str(value) for key, value in declared(made).items() if value is not None}
    assert method(name, settings) == made
    assert made.name == name


def test_methods_read_their_own_settings_and_refuse_others(subtests):
    quadtree = Quadtree(height=3, budget="leaf")
    assert method("quadtree", {"height": "3", "budget": "leaf"}) == quadtree
    assert method("grid", {"size": "64"}) == Grid(size=64)
    suggested = "must be one of .*grid.*quadtree, got 'quadtre'; did you mean 'quadtree'"
    for name, settings, says in [
        ("quadtre", {}, suggested),
        *((name, {}, "must be one of") for name in ("_table", "../grid", "")),
        ("quadtree", {"size": "3"}, "quadtree has no parameter 'size'"),
        ("quadtree", {"height": "13"}, "height must be between 0 and 12, got 13"),
        ("quadtree", {"name": "x"}, "no parameter 'name'"),
        ("grid", {"total_share": "0"}, "total_share must be above 0"),
    ]:
        with subtests.test(name, **settings), pytest.raises(ParameterError, match=says):
            method(name, settings)


def test_signs_among_choices_stand_in_quotes():
    with pytest.raises(ParameterError, match=r"^x must be one of auto, ',', tab, got 'z'$"):
        check_choice("x", "z", ["auto", ",", "tab"])
