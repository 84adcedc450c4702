"""The table of the page on errors has the values of the constants that it names."""

import re

import numpy as np

from psd.estimation import constants as of_estimates
from psd.query import constants as of_answers
from support.pages import ROOT

PAGE = (ROOT / "docs" / "reference" / "errors.md").read_text("utf-8")
CONSTANTS = {**vars(of_estimates), **vars(of_answers)}


def test_values_are_those_of_the_constants(subtests):
    rows = re.findall(r"^\|[^|]*\|[^|]*\| ([^|]+) \| (`[^|]+`) \|[^|]+\|$", PAGE, re.M)
    assert len(rows) > 9
    for value, named in rows:
        shown = [float(number) for number in re.findall(r"\d+\.\d+", value)]
        for expression in re.findall(r"`([^`]+)`", named):
            with subtests.test(expression):
                for number in np.atleast_1d(eval(expression, {}, CONSTANTS)):
                    assert np.isclose(shown, number).any()
