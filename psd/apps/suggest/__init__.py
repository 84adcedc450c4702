"""Suggestions of places: a shared model that is learnt with privacy, used where own places are.

The curator's side learns a few shared numbers from noisy sums over people
(`train_weights`, `train_factors`). A device scores regions by these numbers, a release and the
places of its owner; it reads files only. The rest holds no records: the features,
the models, which see noisy sums, the file of weights, and the scores.
"""

from __future__ import annotations

from psd._util.lazy_names import lazy_names
from psd.apps.suggest.models import (
    FEATURES,
    FactorModel,
    RegionGrid,
    SharedWeights,
    learn_weights,
    read_weights,
    write_weights,
)
from psd.apps.suggest.places import suggest_places
from psd.privacy.count_noise import NoisySums, PersonPart, Statistic

__all__ = [
    "FEATURES",
    "FactorModel",
    "NoisySums",
    "PersonPart",
    "RegionGrid",
    "SharedWeights",
    "Statistic",
    "learn_weights",
    "read_weights",
    "suggest_places",
    "train_factors",
    "train_weights",
    "write_weights",
]

# Training reads records, what is imported above does not.
__getattr__, __dir__ = lazy_names(__name__, __all__)
