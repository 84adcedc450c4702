"""The release object: what it accepts, what it says about itself, what it refuses to save."""

from functools import partial

import numpy as np
import pytest

import psd
from psd.errors import ParameterError, ReleaseFormatError
from psd.estimation.least_squares import infer_counts
from psd.privacy.loss import NANO
from psd.privacy.unit import PrivacyUnit
from support.noise import for_users
from support.releases import release_from
from support.tables import refused, refused_calls
from support.trees import domain_of, random_tree, release_of


@pytest.fixture
def tree():
    return psd.decompositions.grid_tree(domain_of((4, 4)), 2)


def given(tree, counts, epsilons, **options):
    return psd.Release.from_counts(tree, counts, epsilons, domain=domain_of((4, 4)), **options)


def test_counts_of_the_leaves_or_of_every_node(tree):
    release = given(tree, [1, 2, 3, 4], "0.5")
    assert release.tree.count.tolist() == [0, 1, 2, 3, 4]
    assert release.tree.loss.tolist() == [0] + [NANO // 2] * 4
    assert release.record.epsilon == NANO // 2
    assert (release.method, release.record.source, release.unit.kind) == (
        "given",
        "given",
        "record",
    )
    assert release.total == pytest.approx(10)
    # The given tree stays as it was.
    assert not tree.count.any()
    assert not tree.loss.any()
    release = given(tree, [9, 1, 2, 3, 4], ["0.25", 1, 0.5, np.float64(0.5), 1])
    assert release.tree.count.tolist() == [9, 1, 2, 3, 4]
    assert release.tree.loss.tolist() == [NANO // 4, NANO, NANO // 2, NANO // 2, NANO]
    assert release.record.epsilon == NANO // 4 + NANO
    # An epsilon of 0 says that a node is not measured.
    for zero in (0, 0.0):
        assert given(tree, [0, 1, 2, 3, 4], [zero, 1, 1, 1, 1]).tree.loss[0] == 0


def test_counts_that_do_not_fit_are_refused(tree, subtests):
    counts = [1, 2, 3, 4]
    table = [
        ("shape", [1, 2, 3], 1),
        ("shape", [1] * 6, 1),
        ("as the grid", [[1, 2, 3], [4, 5, 6]], 1),
        ("counts", 7, 1),
        ("list of integers", [1.5, 2, 3, 4], 1),
        ("list of integers", [np.nan, 2, 3, 4], 1),
        ("list of integers", ["1", "2", "3", "4"], 1),
        ("epsilons must be one value", counts, [1, 1, 1]),
        ("epsilons must be one value", counts, [1] * 5),
        ("epsilon", counts, "a lot"),
        ("above 0, got -1", counts, [1, 1, 1, -1]),
    ]
    refused_calls(subtests, ParameterError, table, partial(given, tree))
    table = [
        ("unmeasured node has a count", counts, 0),
        ("epsilon 1e-9|not above 0|leaves", [0] * 4, 0),
        ("at most 1,000", [5, 1, 1, 1, 1], 600),
    ]
    errors = (ParameterError, ReleaseFormatError)
    refused_calls(subtests, errors, table, lambda *values: given(tree, *values).index.fit.estimates)
    with pytest.raises(ReleaseFormatError, match="whole lattice"):
        psd.Release.from_counts(tree, counts, 1, domain=domain_of((8, 8)))


def test_what_does_not_belong_together_is_refused(tree, tmp_path, subtests):
    made = given(tree, [1, 2, 3, 4], 1)
    kept = {"tree": made.tree, "domain": made.domain, "epsilon": NANO, "method": "test"}
    release_from(**kept)
    table = [
        ("must spend at most epsilon", {"epsilon": NANO - 1}),
        ("above 0", {"epsilon": 0}, {"epsilon": -NANO}),
        ("at most 1,000", {"epsilon": 1000 * NANO + 1}),
        ("an integer from 1 to 3, got 4", {"inference": 4}),
    ]
    refused(subtests, ParameterError, table, lambda fields: release_from(**kept | fields))
    replayed = release_from(**kept, source="replay")
    with pytest.raises(ParameterError, match="replayed"):
        replayed.save(tmp_path / "release.psd.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_release_is_immutable_and_says_what_it_is(tree):
    unit = PrivacyUnit(kind="user", max_contributions=3)
    release = given(tree, [-9, 2, 3, 1], "0.25", unit=unit)
    assert release.total == 0  # and not negative
    for name in ("epsilon", "model", "note"):
        with pytest.raises(AttributeError):
            setattr(release, name, 1)
    with pytest.raises(ValueError, match="read-only"):
        release.tree.count[1] = 99
    assert repr(release) == (
        "<Release: given, 5 cells, epsilon 0.25 per user; given: psd did not draw these counts and "
        "does not vouch for epsilon>"
    )
    tree = random_tree(np.random.default_rng(1))
    for k in (1, 5):
        estimates = release_of(tree, contributions=k).index.fit.estimates
        assert np.array_equal(estimates.signed, infer_counts(for_users(tree, k)).signed)
        assert np.array_equal(estimates.variance, infer_counts(for_users(tree, k)).variance)
    domain = psd.Domain(bounds=(0, 0, 5, 3), crs="EPSG:3857", lattice=(10, 6))
    rows = np.arange(15).reshape(3, 5)
    release = psd.Release.from_counts(
        psd.decompositions.grid_tree(domain, (5, 3)), rows, 1, domain=domain
    )
    boxes = [(x, y, x + 1, y + 1) for y in range(3) for x in range(5)]
    assert release.query(boxes)["estimate"].round(9).tolist() == rows.ravel().tolist()
