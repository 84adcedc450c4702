"""The method for regions: shares of levels, what is refused, and what is inside the regions."""

from decimal import Decimal
from itertools import product

import numpy as np
import pytest

import psd
from psd.decompositions import Regions, as_region_method
from psd.decompositions._regions import default_share
from psd.errors import ParameterError
from psd.estimation.least_squares import infer_counts
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import root_shares
from psd.privacy.loss import NANO
from psd.testing import SCRIPTS, RecordingSampler, run_method
from psd.testing.data import LatticeRegions, region_tally
from support.noise import noise_variance
from support.privacy.region_replay import run_regions
from support.small_regions import SHAPES


def built(method, name="deep", keys=(), epsilon=NANO, script=SCRIPTS[0]):
    return run_regions(method, SHAPES[name], keys, RecordingSampler(script), epsilon=epsilon)


def spent_on_levels(run):
    """Epsilon of the root and of each level."""
    tree = run.tree
    tiers = range(len(tree.regions.levels))
    return [tree.loss[0] / NANO, *(tree.loss[tree.named(t)].max() / NANO for t in tiers)]


BAD_SETTINGS = (
    *({"inside": "grid"}, {"inside": "none", "levels_share": "0.5"}, {"objective": "median"}),
    *({"levels_share": 0}, {"levels_share": 1}, {"total_share": 0}),
    {"levels_share": "0.99", "total_share": "0.01"},
    *({"weights": weights} for weights in ("", "1,0", "1,x", "1,2000000")),
)


def test_settings_out_of_range_and_other_methods_are_refused(subtests):
    for settings in BAD_SETTINGS:
        with subtests.test(str(settings)), pytest.raises(ParameterError):
            Regions(**settings)
    with pytest.raises(ParameterError, match="3 levels of regions, got 2"):
        built(Regions(weights="1,2"))
    assert as_region_method("none") == Regions(inside="none")
    for value in (7, "grid"):
        with pytest.raises(ParameterError):
            as_region_method(value)


def test_levels_share_about_a_quarter_by_default_and_all_without_cells():
    assert default_share(100.0) == Decimal("0.25")
    assert default_share(50_000.0) == Decimal("0.15")
    assert default_share(23.3) == Decimal("0.300")
    assert default_share(0.0) == Decimal("0.4")
    assert spent_on_levels(built(Regions(levels_share="0.3"))) == pytest.approx([0.02, *[0.1] * 3])
    assert spent_on_levels(built(Regions(inside="none"))) == pytest.approx([0.01, *[0.33] * 3])
    one = spent_on_levels(built(Regions(levels_share="0.3", weights="1,4,16")))
    assert one == pytest.approx([0.02, 0.3 / 7, 0.6 / 7, 1.2 / 7])
    squared = Regions(inside="none", weights="8,1,1", objective="squared")
    assert spent_on_levels(built(squared)) == pytest.approx([0.01, 0.495, 0.2475, 0.2475])


@pytest.mark.parametrize(("degree", "objective"), [(2, 1), (3, 2)])
@pytest.mark.parametrize("weights", [(1, 1, 1), (1, 5, 2), (0.01, 1, 100)])
def test_shares_of_levels_are_the_best_of_a_search(weights, degree, objective):
    shares = np.array(root_shares(NANO, [Decimal(str(w)) for w in weights], degree)) / NANO
    steps = np.linspace(0.005, 0.99, 198)
    tried = np.array([(a, b, 1 - a - b) for a, b in product(steps, steps) if a + b < 0.999])

    def loss(shares):
        return (np.array(weights) / shares**objective).sum(axis=-1)

    assert loss(shares) <= loss(tried).min() * (1 + 1e-9)
    near = tried[loss(tried).argmin()]
    assert near == pytest.approx(shares, abs=0.006)


@pytest.mark.parametrize("epsilon", [20, 1_000, NANO, 1_000 * NANO])
@pytest.mark.parametrize("inside", ["cascade", "auto", "none"])
@pytest.mark.parametrize("name", SHAPES)
def test_every_path_spends_exactly_epsilon(name, inside, epsilon):
    for script in SCRIPTS:
        run = built(Regions(inside=inside), name, epsilon=epsilon, script=script)
        tree = run.tree
        spent = tree.loss.copy()
        for level in tree.levels[1:]:
            spent[level] += spent[tree.parent[level]]
        assert set(spent[tree.is_leaf & ~tree.outside].tolist()) == {epsilon}
        assert run.curator.spent == epsilon


def test_too_little_epsilon_for_the_levels_is_refused():
    with pytest.raises(ParameterError, match="levels"):
        built(Regions(weights="1,1000000,1"), epsilon=40)


def test_regions_without_a_possible_record_are_not_divided():
    keys = [(0, 0)] * 5_000
    run = built(Regions(), "one", keys, epsilon=5 * NANO)
    tree = run.tree
    assert len(tree) > 10
    area = tree.clipped_area
    assert (area[~tree.is_leaf] > 0).all()


def strips(number):
    """Regions of one lattice column each, on one level."""
    area = np.zeros((number, 1, number))
    area[np.arange(number), 0, np.arange(number)] = 1
    return LatticeRegions(area=area, parents=((0,) * number,))


@pytest.mark.deep
def test_regions_alone_have_the_error_of_plain_noise():
    # Pooled over 40,000 draws; the predicted error is exact, that of the draws is known to 1 %.
    number, draws = 1_000, 40
    regions, tally = strips(number), region_tally(strips(number), ())
    domain = psd.Domain(bounds=(0, 0, number, 1), crs="EPSG:3857", lattice=(number, 1))
    errors = []
    for _ in range(draws):
        tree = run_method(
            Regions(inside="none"), tally, domain, NANO, SecureSampler(), regions=regions
        ).tree
        estimates = infer_counts(tree, settled=True)
        errors.append(estimates.signed[tree.frame.lowest])
    plain = noise_variance(np.array([NANO]), 1)[0] ** 0.5
    predicted = np.sqrt(estimates.variance[tree.frame.lowest].mean())
    assert predicted / plain == pytest.approx(1.01, abs=0.01)
    assert np.sqrt(np.mean(np.square(errors))) / plain == pytest.approx(1.01, abs=0.04)


@pytest.mark.parametrize("inside", ["none", "cascade"])
def test_each_level_is_at_least_as_exact_as_its_own_count(inside):
    tree = built(Regions(inside=inside, levels_share=None if inside == "none" else "0.3")).tree
    estimates = infer_counts(tree, empty=tree.outside, settled=True)
    for tier in range(3):
        nodes = tree.named(tier)
        alone = noise_variance(tree.loss[nodes], 1)
        assert (estimates.variance[nodes] <= alone * 1.0001).all()
