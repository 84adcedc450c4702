"""Checks that several planted bugs share."""

from __future__ import annotations

from dataclasses import dataclass

from psd.testing import replay_loss

REPLAYED = "tests/privacy/test_replay.py::test_no_answer_tells_more_than_epsilon"


@dataclass(frozen=True)
class Replayed:
    """Answers given back on all small data sets and a part of their neighbours."""

    k: int = 1
    side: int = 3
    every: int = 24

    def __call__(self, method, folder):
        replay_loss(method, self.side, self.k, every=self.every)
