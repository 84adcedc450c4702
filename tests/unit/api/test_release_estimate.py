"""Estimates alone, and which engine answers: many boxes, few boxes, and no numba."""

import os
import subprocess
import sys
import threading
from functools import partial
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

import psd
from psd.errors import ParameterError
from psd.query import boxes as engine
from psd.query import compiled_walk as compiled
from psd.space.box_tree import MAX_LEVELS
from support.tables import refused
from support.trees import grid_release, random_queries, random_tree, release_of

pytestmark = pytest.mark.deep

SIDE = 64


@pytest.fixture(scope="module")
def release():
    return release_of(random_tree(np.random.default_rng(3), height=5, top=500))


def queries(n, seed=0):
    return random_queries(np.random.default_rng(seed), (SIDE, SIDE), 2 * n + 10)[:n]


def test_estimates_are_those_of_query(release, subtests):
    for size in (0, 1, 999, 1000, 1001, 3000):
        boxes = queries(size)
        assert len(boxes) == size
        found = release.query(boxes, errors=False).arrays["estimate"]
        with subtests.test(size=size):
            assert (found.dtype, found.shape) == (np.float64, (size,))
            expected = release.query(boxes).table.estimate.tolist()
            assert found.tolist() == pytest.approx(expected, rel=1e-9)


def test_boxes_come_in_every_shape_that_query_takes_and_others_are_refused(release, subtests):
    box = (1.5, 2, 30, 40)
    expected = release.query(box).table.estimate.tolist()
    sides = dict(zip(("west", "south", "east", "north"), box, strict=True))
    for same in (box, [box], np.array([box]), pd.DataFrame([sides])):
        assert release.query(same, errors=False).arrays["estimate"].tolist() == pytest.approx(
            expected, rel=1e-12
        )
    inside = [(0, 0, 20, 10), (0, 0, SIDE, SIDE)] * 600
    beyond = [(-5, -1, 20, 10), (-1e9, -1e9, 1e9, 1e9)] * 600
    assert (
        release.query(beyond, errors=False).arrays["estimate"].tolist()
        == release.query(inside, errors=False).arrays["estimate"].tolist()
    )
    assert release.query(beyond, errors=False).arrays["estimate"][1] == release.total
    table = [
        ("west below its east", [(5, 0, 4, 1)]),
        ("must have finite sides", [(0, 0, 1, np.nan)]),
        ("outside the bounds", [(70, 0, 80, 1)]),
        ("boxes must have four sides", [(0, 0, 1)]),
    ]
    for errors in (True, False):
        refused(subtests, ParameterError, table, partial(release.query, errors=errors))


def test_a_view_with_negative_cells_answers_nothing_below_zero():
    release = grid_release([[-9, 1], [0, 2]])
    assert release.total == 0
    assert release.query([(0, 0, 1, 1), (0, 0, 2, 2)], errors=False).arrays[
        "estimate"
    ].tolist() == [0, 0]


def test_without_numba_the_answers_are_the_same(release, monkeypatch):
    boxes = queries(1500)
    sums = compiled.walk_query_totals(
        release.index.flat_tree, release.index.fit.estimates.count, release.domain.to_lattice(boxes)
    )
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "psd.query.compiled_walk", raising=False)
    monkeypatch.delattr("psd.query.compiled_walk", raising=False)
    assert engine._compiled_engine(release.index, 5000) is None
    slow, slowly = release.query(boxes).table, release.query(boxes, errors=False).arrays["estimate"]
    assert slow.estimate.tolist() == pytest.approx(sums.estimate.tolist(), rel=1e-9)
    assert slowly.tolist() == slow.estimate.tolist()
    noise = np.sqrt(sums.published_variance)
    assert slow.perturbation_error.tolist() == pytest.approx(noise.tolist(), rel=1e-9)


def test_only_many_boxes_are_compiled_and_chunks_of_them_answer_like_one(release, monkeypatch):
    boxes = queries(2000)
    whole, alone = release.query(boxes).table, release.query(boxes, errors=False).arrays["estimate"]
    monkeypatch.setattr(compiled, "_BOXES_PER_BATCH", 300)
    pd.testing.assert_frame_equal(release.query(boxes).table, whole, rtol=1e-12)
    monkeypatch.setattr(compiled, "_ROOM", 1)
    pd.testing.assert_frame_equal(release.query(boxes).table, whole, rtol=1e-12)
    assert release.query(boxes, errors=False).arrays["estimate"].tolist() == pytest.approx(
        alone.tolist(), rel=1e-12
    )
    walk = Mock(wraps=compiled.walk_query_totals)
    monkeypatch.setattr(compiled, "walk_query_totals", walk)
    for size in (999, 1000, 1001):
        release.query(queries(size))
    assert [len(call.args[-1]) for call in walk.call_args_list] == [1000, 1001]


def test_a_long_chain_of_cells_is_walked_without_recursion():
    # A damaged or hostile file may be as deep as trees may be.
    depth = MAX_LEVELS - 1
    boxes = np.tile([[0, 0, 4, 4]], (depth, 1))
    boxes = np.concatenate([boxes, [[0, 0, 1, 4], [1, 0, 4, 4]]])
    parent = np.concatenate([[-1], np.arange(depth - 1), [depth - 1, depth - 1]])
    level = np.concatenate([np.arange(depth), [depth, depth]])
    epsilon = np.zeros(depth + 2, np.int64)
    epsilon[-2:] = 10**9
    count = np.where(epsilon > 0, 10, 0)
    tree = psd.decompositions.Tree(
        boxes=boxes, parent=parent, level=level, count=count, loss=epsilon
    )
    found = release_of(tree)
    lattice = np.array([[0.0, 0, 2.5, 4], [0, 0, 1, 4]])
    sums = compiled.walk_query_totals(
        found.index.flat_tree, found.index.fit.estimates.count, lattice
    )
    assert sums.estimate.tolist() == pytest.approx([15, 10])


def test_threads_do_not_share_lists(release):
    boxes = queries(4000)
    expected = release.query(boxes, errors=False).arrays["estimate"].tolist()
    found = [None] * 4

    def ask(place):
        found[place] = release.query(boxes, errors=False).arrays["estimate"].tolist()

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


def test_compiles_where_nothing_may_be_written(tmp_path):
    # A file where folders would be made: no place for a cache, whoever runs the test.
    (tmp_path / "file").touch()
    blocked = str(tmp_path / "file" / "cache")
    script = f"""
import numpy, psd
from numba.core import caching
for name, kind in vars(caching).items():
    if name.endswith("CacheLocator"):
        kind.get_cache_path = lambda self: {blocked!r}
from psd.query import compiled_walk as compiled
assert compiled._walk.stats.cache_path is None
{TOTAL}"""
    subprocess.run([sys.executable, "-c", script], check=True, env=dict(os.environ))


def test_compiles_where_the_disk_is_full(tmp_path):
    script = f"""
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
{TOTAL}"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)
    kept = [file.stat().st_size for file in tmp_path.rglob("*") if file.is_file()]
    assert max(kept, default=0) <= 1000


def test_a_cache_of_a_version_with_other_modules_is_replaced(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    script = [sys.executable, "-c", TOTAL]
    subprocess.run(script, check=True, env=environment)
    indexes = list(tmp_path.rglob("*.nbi"))
    old, other = b"psd.query.index", b"psd.query.gones"
    stale = [index.read_bytes().replace(old, other) for index in indexes]
    assert stale != [index.read_bytes() for index in indexes]
    for index, content in zip(indexes, stale, strict=True):
        index.write_bytes(content)
    subprocess.run(script, check=True, env=environment)
    assert [index.read_bytes() for index in indexes] != stale


TOTAL = """
import numpy, psd
release = psd.testing.release_from_counts(numpy.arange(16).reshape(4, 4))
from psd.query import compiled_walk as compiled
whole = numpy.array([[0.0, 0, 4, 4]])
index = release.index
total = compiled.walk_value_totals(index.flat_tree, index.fit.estimates.count, whole)
assert abs(total[0] - 120) < 1e-9, total
"""
