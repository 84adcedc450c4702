"""The release object: what it accepts, what it says about itself, what it refuses to save."""

import numpy as np
import pytest

import psd
from psd.errors import ParameterError, ReleaseFormatError
from psd.estimation.least_squares import infer_counts
from psd.privacy.epsilon import NANO
from psd.privacy.unit import PrivacyUnit
from support.noise import for_users
from support.releases import release_from
from support.trees import domain_of, random_tree, release_of


@pytest.fixture
def domain():
    return domain_of((4, 4))


@pytest.fixture
def tree(domain):
    return psd.grid_tree(domain, 2)


def test_counts_of_the_leaves(tree, domain):
    release = psd.Release.from_counts(tree, [1, 2, 3, 4], "0.5", domain=domain)
    assert release.tree.count.tolist() == [0, 1, 2, 3, 4]
    assert release.tree.epsilon.tolist() == [0] + [NANO // 2] * 4
    assert release.record.epsilon == NANO // 2
    assert (release.method, release.source, release.unit.kind) == ("given", "given", "record")
    assert release.total == pytest.approx(10)


def test_counts_of_every_node_with_their_own_epsilons(tree, domain):
    epsilons = ["0.25", 1, 0.5, np.float64(0.5), 1]
    release = psd.Release.from_counts(tree, [9, 1, 2, 3, 4], epsilons, domain=domain)
    assert release.tree.count.tolist() == [9, 1, 2, 3, 4]
    assert release.tree.epsilon.tolist() == [NANO // 4, NANO, NANO // 2, NANO // 2, NANO]
    assert release.record.epsilon == NANO // 4 + NANO


@pytest.mark.parametrize("zero", [0, 0.0])
def test_epsilon_zero_says_that_a_node_is_not_measured(tree, domain, zero):
    counts, epsilons = [0, 1, 2, 3, 4], [zero, 1, 1, 1, 1]
    release = psd.Release.from_counts(tree, counts, epsilons, domain=domain)
    assert release.tree.epsilon[0] == 0


def test_the_given_tree_stays_as_it_was(tree, domain):
    psd.Release.from_counts(tree, [1, 2, 3, 4], 1, domain=domain)
    assert not tree.count.any()
    assert not tree.epsilon.any()


@pytest.mark.parametrize(
    ("counts", "epsilons", "says"),
    [
        pytest.param([1, 2, 3], 1, "shape", id="too few counts"),
        pytest.param([1] * 6, 1, "shape", id="too many counts"),
        pytest.param([[1, 2, 3], [4, 5, 6]], 1, "as the grid", id="grid of another shape"),
        pytest.param(7, 1, "counts", id="one number"),
        pytest.param([1.5, 2, 3, 4], 1, "list of integers", id="fractions"),
        pytest.param([np.nan, 2, 3, 4], 1, "list of integers", id="nan"),
        pytest.param(["1", "2", "3", "4"], 1, "list of integers", id="text"),
        pytest.param([1, 2, 3, 4], [1, 1, 1], "epsilons must be one value", id="too few epsilons"),
        pytest.param([1, 2, 3, 4], [1] * 5, "epsilons must be one value", id="too many epsilons"),
        pytest.param([1, 2, 3, 4], "a lot", "epsilon", id="epsilon in words"),
        pytest.param([1, 2, 3, 4], [1, 1, 1, -1], "above 0, got -1", id="negative epsilon"),
    ],
)
def test_counts_that_do_not_fit_are_refused(tree, domain, counts, epsilons, says):
    with pytest.raises(ParameterError, match=says):
        psd.Release.from_counts(tree, counts, epsilons, domain=domain)


@pytest.mark.parametrize(
    ("counts", "epsilons", "says"),
    [
        pytest.param([1, 2, 3, 4], 0, "unmeasured node has a count", id="counts without epsilon"),
        pytest.param([0] * 4, 0, "epsilon 1e-9|not above 0|leaves", id="nothing measured"),
        pytest.param([5, 1, 1, 1, 1], 600, "at most 1,000", id="path above the largest epsilon"),
    ],
)
def test_counts_that_are_no_release_are_refused(tree, domain, counts, epsilons, says):
    with pytest.raises((ParameterError, ReleaseFormatError), match=says):
        _ = psd.Release.from_counts(tree, counts, epsilons, domain=domain).estimates


def test_a_tree_of_another_domain_is_refused(tree):
    with pytest.raises(ReleaseFormatError, match="whole lattice"):
        psd.Release.from_counts(tree, [1, 2, 3, 4], 1, domain=domain_of((8, 8)))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        pytest.param({"epsilon": NANO - 1}, "must spend at most epsilon", id="less than its path"),
        pytest.param({"epsilon": 0}, "above 0", id="epsilon 0"),
        pytest.param({"epsilon": -NANO}, "above 0", id="negative epsilon"),
        pytest.param({"epsilon": 1000 * NANO + 1}, "at most 1,000", id="epsilon above 1,000"),
        pytest.param({"inference": 3}, "must be 1 or 2, got 3", id="inference of the future"),
    ],
)
def test_what_does_not_belong_together_is_refused(tree, domain, fields, says):
    made = psd.Release.from_counts(tree, [1, 2, 3, 4], 1, domain=domain)
    kept = {"tree": made.tree, "domain": domain, "epsilon": NANO, "method": "test"}
    release_from(**kept)
    with pytest.raises(ParameterError, match=says):
        release_from(**kept | fields)


def test_estimates_use_the_contributions():
    tree = random_tree(np.random.default_rng(1))
    for k in (1, 5):
        estimates = release_of(tree, contributions=k).estimates
        assert np.array_equal(estimates.signed, infer_counts(for_users(tree, k)).signed)
        assert np.array_equal(estimates.variance, infer_counts(for_users(tree, k)).variance)


def test_a_negative_total_is_shown_as_zero(tree, domain):
    assert psd.Release.from_counts(tree, [-9, 2, 3, 1], 1, domain=domain).total == 0


def test_a_release_is_immutable(tree, domain):
    release = psd.Release.from_counts(tree, [1, 2, 3, 4], 1, domain=domain)
    with pytest.raises(AttributeError):
        release.epsilon = 1
    with pytest.raises(ValueError, match="read-only"):
        release.tree.count[1] = 99


def test_repr_says_what_it_is(tree, domain):
    release = psd.Release.from_counts(
        tree,
        [1, 2, 3, 4],
        "0.25",
        domain=domain,
        unit=PrivacyUnit(kind="user", max_contributions=3),
    )
    assert repr(release) == (
        "<Release: given, 5 cells, epsilon 0.25 per user; given: psd did not draw these counts and "
        "does not vouch for epsilon>"
    )


def test_replayed_answers_are_never_saved(tree, domain, tmp_path):
    made = psd.Release.from_counts(tree, [1, 2, 3, 4], 1, domain=domain)
    replayed = release_from(
        tree=made.tree, domain=domain, epsilon=NANO, method="test", source="replay"
    )
    with pytest.raises(ParameterError, match="replayed"):
        replayed.save(tmp_path / "release.psd.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_grid_is_given_row_by_row_from_the_south():
    domain = psd.Domain(bounds=(0, 0, 5, 3), crs="EPSG:3857", lattice=(10, 6))
    rows = np.arange(15).reshape(3, 5)
    release = psd.Release.from_counts(psd.grid_tree(domain, (5, 3)), rows, 1, domain=domain)
    boxes = [(x, y, x + 1, y + 1) for y in range(3) for x in range(5)]
    assert release.query(boxes)["estimate"].round(9).tolist() == rows.ravel().tolist()
