"""What auto picks, from which answers, and that it says so."""

import numpy as np
import pytest

import psd
from psd.decompositions.auto import Auto
from psd.errors import ParameterError
from psd.privacy.loss import NANO
from psd.release.post_processing import PostProcessing
from psd.space.domain import Domain
from psd.testing import RecordingSampler, Script, run_method, small_domain, small_tally


def answering(total):
    """Noise that gives a total whatever is true, and nothing for any other cell."""

    def count(step, true):
        return np.full(len(true), total if step == 0 else 0)

    return RecordingSampler(Script("total", count, lambda step, s: 0, lambda step, b: b > 0))


def stated(total, *, side=2**12, epsilon=NANO, k=1, **parameters):
    curator, tree = run_method(
        Auto(**parameters),
        small_tally(side, (0,), k),
        small_domain(side),
        epsilon,
        answering(total),
    )
    assert curator.spent == epsilon
    return curator.declared, tree


def test_a_fine_lattice_gets_a_cascade():
    picked, _ = stated(1_000)
    look = {"look_epsilon": "0.02", "look_total": 1_000}
    assert picked == {**look, "picked": "cascade", "signal": 5}


def test_a_coarse_lattice_that_can_be_afforded_gets_a_complete_quadtree():
    picked, tree = stated(1_000, side=8)
    assert picked["picked"] == "quadtree"
    assert tree.is_leaf.sum() == 64
    assert stated(1_000 // 4, side=8)[0]["picked"] == "cascade"


def test_cells_bound_the_number_of_cells():
    picked, _ = stated(10_000, cells=100)
    assert picked["signal"] == 98  # 10,000 records at epsilon 0.98, in 100 cells
    assert stated(10_000, cells=100_000)[0]["signal"] == 5
    assert stated(10_000, cells=100, k=7)[0]["signal"] == 14  # divided by the bound of a user


def test_a_total_below_zero_is_no_record():
    for total in (-(10**6), 0):
        picked, tree = stated(total)
        assert picked["picked"] == "cascade"
        assert tree.is_leaf.sum() == 16  # the first tier is at least two levels down


def test_the_look_stays_as_the_count_of_the_root():
    _, tree = stated(1_234)
    assert (tree.count[0], tree.loss[0]) == (1_234, NANO // 50)


def test_pick_and_price_stand_in_the_release(tmp_path):
    import pandas as pd

    points = pd.DataFrame({"lon": [0.1, 0.2], "lat": [0.3, 0.4]})
    release = psd.build(points, domain=Domain(bounds=(0, 0, 1, 1)), epsilon="0.5")
    assert release.method == "auto"
    assert release.record.parameters["picked"] == "cascade"
    assert release.record.parameters["look_epsilon"] == "0.01"
    assert release.record.parameters["look_total"] == release.tree.count[0]
    assert release.record.post_processing == PostProcessing(estimate="posterior", density="smooth")
    release.save(tmp_path / "r.psd.parquet")
    assert psd.load(tmp_path / "r.psd.parquet").record.parameters == release.record.parameters


def test_a_look_for_nothing_is_refused():
    with pytest.raises(ParameterError, match="look_share must be above 0"):
        Auto(look_share="0")
