"""The file of weights: what is in it, and what is refused."""

import json

import pytest

from psd.errors import ParameterError, ReleaseFormatError, WriteError
from psd.suggest.grid import RegionGrid
from psd.suggest.shared import FEATURES
from psd.suggest.weights import SharedWeights, read_weights, write_weights
from support.suggestions import city_release

WEIGHTS = SharedWeights(
    weights=dict.fromkeys(FEATURES, 0.25),
    release="ab" * 32,
    cells=40,
    epsilon="0.3",
    delta="1e-6",
    max_contributions=4,
)


def test_a_file_has_the_public_fields_and_no_other(tmp_path):
    path = tmp_path / "w.json"
    write_weights(WEIGHTS, path)
    assert json.loads(path.read_text()) == {
        "psd_weights": 1,
        "weights": dict.fromkeys(FEATURES, 0.25),
        "release": "ab" * 32,
        "cells": 40,
        "epsilon": "0.3",
        "delta": "1e-6",
        "max_contributions": 4,
    }
    assert read_weights(path) == WEIGHTS
    with pytest.raises(WriteError):
        write_weights(WEIGHTS, path)


CHANGES = {
    "version": {"psd_weights": 2},
    "field": {"person": "u1"},
    "missing": {"epsilon": ...},
    "feature": {"weights": {**dict.fromkeys(FEATURES, 0.25), "person": 1.0}},
    "order": {"weights": dict.fromkeys(reversed(FEATURES), 0.25)},
    "integer": {"weights": dict.fromkeys(FEATURES, 1)},
    "text": {"weights": dict.fromkeys(FEATURES, "1.0")},
    "list": {"weights": [0.25] * 6},
    "digest": {"release": "xy" * 32},
    "short digest": {"release": "ab"},
    "cells": {"cells": 101},
    "epsilon": {"epsilon": "-1"},
    "number": {"epsilon": 0.3},
    "delta": {"delta": "0.1"},
    "bound": {"max_contributions": True},
    "id": {"ledger": "a person"},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_wrong_fields_are_refused(tmp_path, change):
    path = tmp_path / "w.json"
    write_weights(WEIGHTS, path)
    fields = json.loads(path.read_text()) | change
    path.write_text(json.dumps({key: value for key, value in fields.items() if value is not ...}))
    with pytest.raises(ReleaseFormatError, match="is not a file of weights: "):
        read_weights(path)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"cells": NaN}', '{"cells": 1, "cells": 1}', "[" * 9999, "x" * 70000]
)
def test_what_is_not_strict_json_is_refused(tmp_path, text):
    path = tmp_path / "w.json"
    path.write_text(text)
    with pytest.raises(ReleaseFormatError, match="is not a file of weights: "):
        read_weights(path)
    with pytest.raises(ReleaseFormatError, match="does not exist"):
        read_weights(tmp_path / "none.json")


def test_infinite_weights_are_refused():
    with pytest.raises(ParameterError, match="weights must be finite"):
        SharedWeights(**{**_fields(), "weights": dict.fromkeys(FEATURES, float("inf"))})


def _fields():
    return {name: getattr(WEIGHTS, name) for name in SharedWeights.__dataclass_fields__}


def test_weights_of_another_release_are_refused():
    grid = RegionGrid.of_release(city_release(), 10)
    with pytest.raises(ParameterError, match="release must be the one that the weights"):
        WEIGHTS.check_grid(grid)
    SharedWeights(**{**_fields(), "release": grid.digest}).check_grid(grid)
