"""Parts of arrays in threads: every item once, in order, for any number of processors."""

import threading
from itertools import product

import numpy as np
import pytest

from psd._util import processes
from psd._util.processes import even_parts, in_threads, map_items


def test_parts_cover_all_items_once_and_are_those_of_one_thread(monkeypatch):
    for items, processors in product((0, 1, 2, 7, 100), (1, 2, 3, 64)):
        monkeypatch.setattr(processes, "available_processors", lambda n=processors: n)
        parts = even_parts(items, 2)
        assert np.concatenate([np.arange(items)[p] for p in parts]).tolist() == [*range(items)]
        assert 1 <= len(parts) <= max(1, min(processors, items // 2, 4))
    values, pairs = np.arange(101), np.arange(202).reshape(-1, 2)
    for processors in (1, 2, 3):
        monkeypatch.setattr(processes, "available_processors", lambda n=processors: n)
        found = map_items(lambda v, p: v + p.sum(axis=1), values, pairs, least=10)
        assert found.tolist() == (values + pairs.sum(axis=1)).tolist()


def test_slices_run_at_the_same_time_and_their_errors_are_raised():
    both = threading.Barrier(2, timeout=60)
    assert len(in_threads(lambda part: both.wait() and part, [slice(0, 1), slice(1, 2)])) == 2

    def fails(part):
        raise ValueError(part.start)

    with pytest.raises(ValueError, match="3"):
        in_threads(fails, [slice(3, 4), slice(4, 5)])
