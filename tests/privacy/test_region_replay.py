"""Builds over public regions: record and replay, exact loss, and the budget of every record.

A record is a pair of a lattice cell and a lowest region. Hierarchies have one to three levels, more
siblings than a node has children, lattice cells in two regions, and cells in none.
"""

import numpy as np
import pytest

from psd.curator.curator import Curator
from psd.decompositions import Regions
from psd.errors import BudgetError, ParameterError
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO
from psd.testing import SCRIPTS, RecordingSampler
from psd.testing.data import region_keys, region_tally, small_domain, small_tally, spent_by_key
from support.privacy.curators import small_curator
from support.privacy.region_replay import exact_signed_loss, region_loss, run_regions
from support.small_regions import SHAPES, Stepwise

METHODS = [
    Stepwise(),
    Regions(),
    Regions(inside="none", objective="squared"),
    Regions(inside="auto", levels_share="0.4", total_share="0.1"),
]

EACH = pytest.mark.parametrize("regions", SHAPES.values(), ids=SHAPES)
METHOD = pytest.mark.parametrize(
    "method", METHODS, ids=lambda method: getattr(method, "inside", method.name)
)


@METHOD
@EACH
def test_loss_beside_no_record_is_at_most_epsilon(regions, method):
    assert 0 < region_loss(method, regions, size=0, every=6) <= 1


@pytest.mark.deep
@METHOD
@EACH
def test_loss_is_at_most_epsilon_and_all_of_it(regions, method):
    assert region_loss(method, regions, every=2) == 1


@pytest.mark.deep
@METHOD
@EACH
def test_loss_of_users_with_two_records_in_any_regions(regions, method):
    assert region_loss(method, regions, k=2, size=0, every=2) <= 1
    assert exact_signed_loss(method, regions, k=2) == 1


@METHOD
@EACH
def test_every_pair_of_cell_and_region_is_charged_exactly_epsilon(regions, method):
    keys = region_keys(regions)
    for script in SCRIPTS:
        curator = run_regions(method, regions, keys, RecordingSampler(script)).curator
        assert spent_by_key(curator.questions, keys, 4).tolist() == [NANO] * len(keys)
        assert curator.spent == NANO


@EACH
def test_regions_without_a_record_are_counted_as_all_others(regions):
    sampler = RecordingSampler(SCRIPTS[0])
    run_regions(Stepwise(), regions, (), sampler)
    level = sampler.draws[len(regions.levels)]
    assert len(level.true) == regions.size
    assert not level.true.any()


def test_parts_of_a_cell_in_two_regions_are_counted_separately():
    keys = [(1, 0), (1, 1), (1, 1), (5, 0)]  # cell 1 lies in the first two regions
    curator = region_curator("flat", keys)
    [cells] = curator.cut_regions(curator.root())
    assert curator.count(cells, NANO).tolist() == [2, 2, 0, 0]


def test_cells_that_do_not_meet_their_region_are_empty_at_no_cost():
    regions = SHAPES["one"]
    sampler = RecordingSampler(SCRIPTS[1])
    curator = run_regions(Stepwise(), regions, ((0, 0),), sampler).curator
    tree = curator.tree()
    assert tree.outside.any()
    assert not tree.count[tree.outside].any()
    assert not tree.loss[tree.outside].any()
    assert (tree.loss[tree.is_leaf & ~tree.outside] > 0).all()


def region_curator(name, keys=(), tally=None):
    """Curator of records at pairs of cell and region."""
    tally = tally or region_tally(SHAPES[name], keys)
    how = {"budget": Budget(NANO), "sampler": RecordingSampler(SCRIPTS[0])}
    return Curator(tally, small_domain(4), regions=SHAPES[name], **how)


@pytest.mark.parametrize("region", [None, [0, 4], [-1, 0]])
def test_a_tally_of_other_regions_is_refused(region):
    tally = small_tally(4, (0, 5))
    if region is not None:
        object.__setattr__(tally, "region", np.array(region, np.int32))
    with pytest.raises(ParameterError, match="regions"):
        region_curator("flat", tally=tally)


@pytest.mark.parametrize("tier", [0, 1])
def test_levels_that_cost_more_than_epsilon_together_are_refused(tier):
    curator = region_curator("deep")
    levels = curator.cut_regions(curator.root())
    curator.count(levels[tier], NANO)
    with pytest.raises(BudgetError):
        curator.count(levels[tier + 1][-1:], 1)
    assert curator.spent == NANO


def test_only_an_uncut_root_is_cut_into_regions():
    curator = region_curator("flat")
    [cells] = curator.cut_regions(curator.root())
    for other in (cells, curator.curve(2)):
        with pytest.raises(ParameterError, match="root"):
            curator.cut_regions(other)
    bare, _ = small_curator(4, ())
    with pytest.raises(ParameterError, match="regions must be given"):
        bare.cut_regions(bare.root())
