"""Names that do not exist are refused, with the closest one that does."""

import pytest

from psd._util.instances import check_names
from psd.errors import ParameterError

KEYS = ("epsilon", "method", "bounds")
REFUSALS = {
    ("bounds", "epsilom"): "'epsilom' does not exist; did you mean 'epsilon'?",
    ("Bounds",): "'Bounds' does not exist; did you mean 'bounds'?",
    ("zzz",): "'zzz' does not exist; use one of epsilon, method, bounds",
    (7,): "'7' does not exist; use one of epsilon, method, bounds",
    ("a" * 200,): f"'{'a' * 80}' does not exist; use one of epsilon, method, bounds",
    ("zzz", "epsilom"): "'zzz' does not exist; use one of epsilon, method, bounds",
}


def test_the_refusal_suggests_a_name(subtests):
    for names in ((), ("method",), ["bounds", "epsilon", "bounds"]):
        check_names("key", names, KEYS)
    for names, message in REFUSALS.items():
        with subtests.test(str(names)):
            with pytest.raises(ParameterError) as refusal:
                check_names("key", names, iter(KEYS))
            assert str(refusal.value) == f"key {message}"
