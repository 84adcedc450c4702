"""Tables of arguments that are refused."""

import pytest

from psd.errors import PsdError


def refuses(subtests, act, rows, error=PsdError):
    """Each row of arguments is refused in the words beside it."""
    for given, words in rows:
        with subtests.test(words, given=given), pytest.raises(error, match=words):
            act(**given)
