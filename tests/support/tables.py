"""Tables of cases: every one that fails is named."""

import pytest

from psd.errors import PsdError


def refused(subtests, error, table, use):
    """Each row of a table has words of an error, and values that a use refuses with it."""
    for words, *values in table:
        for value in values:
            with subtests.test(value=value), pytest.raises(error, match=words):
                use(value)


def refused_calls(subtests, error, table, use):
    """Each row of a table has words of an error, and the arguments of a use that raises it."""
    for words, *arguments in table:
        with subtests.test(words, arguments=arguments), pytest.raises(error, match=words):
            use(*arguments)


def returned(subtests, table, use):
    """Each row of a table has a result, and values for which a use returns it."""
    for wanted, *values in table:
        for value in values:
            with subtests.test(value=value):
                found = use(value)
                assert found == wanted, f"{found!r} and not {wanted!r}"


def refuses(subtests, act, rows, error=PsdError):
    """Each row has arguments by name, and the words in which a use refuses them."""
    for given, words in rows:
        with subtests.test(words, given=given), pytest.raises(error, match=words):
            act(**given)
