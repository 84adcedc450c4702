"""Names that do not exist are refused, with the closest one that does."""

import pytest

from psd._util.suggestions import check_names
from psd.errors import ParameterError

KEYS = ("epsilon", "method", "bounds")


@pytest.mark.parametrize("names", [(), ("method",), ["bounds", "epsilon", "bounds"]])
def test_names_that_exist_pass(names):
    check_names("key", names, KEYS)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["bounds", "epsilom"], "key 'epsilom' does not exist; did you mean 'epsilon'?"),
        (["Bounds"], "key 'Bounds' does not exist; did you mean 'bounds'?"),
        (["zzz"], "key 'zzz' does not exist; use one of epsilon, method, bounds"),
        ([7], "key '7' does not exist; use one of epsilon, method, bounds"),
        (["a" * 200], f"key '{'a' * 80}' does not exist; use one of epsilon, method, bounds"),
        (["zzz", "epsilom"], "key 'zzz' does not exist; use one of epsilon, method, bounds"),
    ],
    ids=["typing error", "capital", "nothing close", "no text", "long", "the first of two"],
)
def test_the_refusal_suggests_a_name(names, message):
    with pytest.raises(ParameterError) as refusal:
        check_names("key", names, iter(KEYS))
    assert str(refusal.value) == message
