"""The file of weights: what is in it, and what is refused."""

import json

import pytest

from psd.apps.suggest.models import FEATURES, RegionGrid, SharedWeights, read_weights, write_weights
from psd.errors import ParameterError, ReleaseFormatError, WriteError
from support.suggestions import city_release

PROMISE = {"cells": 40, "epsilon": "0.3", "delta": "1e-6", "max_contributions": 4}
FIELDS = {"weights": dict.fromkeys(FEATURES, 0.25), "release": "ab" * 32, **PROMISE}
WEIGHTS = SharedWeights(**FIELDS)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "w.json"


def test_a_file_has_the_public_fields_and_no_other(path):
    write_weights(WEIGHTS, path)
    assert json.loads(path.read_text()) == {"psd_weights": 1, **FIELDS}
    assert read_weights(path) == WEIGHTS
    with pytest.raises(WriteError):
        write_weights(WEIGHTS, path)


CHANGES = [
    {"psd_weights": 2}, {"person": "u1"}, {"epsilon": ...}, {"weights": [0.25] * 6},
    {"weights": {**dict.fromkeys(FEATURES, 0.25), "person": 1.0}},
    {"weights": dict.fromkeys(reversed(FEATURES), 0.25)}, {"weights": dict.fromkeys(FEATURES, 1)},
    {"weights": dict.fromkeys(FEATURES, "1.0")}, {"release": "xy" * 32}, {"release": "ab"},
    {"cells": 101}, {"epsilon": "-1"}, {"epsilon": 0.3}, {"delta": "0.1"},
    {"max_contributions": True}, {"ledger": "a person"},
]  # fmt: skip


def test_wrong_fields_are_refused(path, subtests):
    for change in CHANGES:
        with subtests.test(str(change)):
            fields = {"psd_weights": 1, **FIELDS, **change}
            refused(path, json.dumps({k: v for k, v in fields.items() if v is not ...}))


def refused(path, text, words="is not a file of weights: "):
    path.write_text(text)
    with pytest.raises(ReleaseFormatError, match=words):
        read_weights(path)


def test_what_is_not_strict_json_or_of_another_release_is_refused(path, subtests):
    twice = '{"cells": 1, "cells": 1}'
    for text in ("", "[]", "{}", '{"cells": NaN}', twice, "[" * 9999, "x" * 70000):
        with subtests.test(text[:30]):
            refused(path, text)
    with pytest.raises(ReleaseFormatError, match="does not exist"):
        read_weights(path.with_name("none.json"))
    with pytest.raises(ParameterError, match="weights must be finite"):
        SharedWeights(**{**FIELDS, "weights": dict.fromkeys(FEATURES, float("inf"))})
    grid = RegionGrid.of_release(city_release(), 10)
    with pytest.raises(ParameterError, match="release must be the one that the weights"):
        WEIGHTS.check_grid(grid)
    SharedWeights(**{**FIELDS, "release": grid.digest}).check_grid(grid)
