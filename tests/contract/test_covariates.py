"""Every method with a public covariate: budget, file, totals, and where a cascade stops."""

import json
from itertools import product

import numpy as np
import pytest
import shapely

import psd
from psd.curator.curator import Curator
from psd.decompositions.cascade import Cascade
from psd.mechanisms.laplace import LaplaceMechanism
from psd.mechanisms.sampler import SecureSampler
from psd.mechanisms.threshold import ThresholdMechanism
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO
from psd.privacy.unit import PrivacyUnit
from psd.publish.drawing import draw_release
from psd.release.post_processing import PostProcessing
from psd.space.covariate import Covariate
from psd.testing import small_domain, small_tally
from support.privacy.replay import small_cases
from support.releases import changed, decode, encode

METHODS = small_cases()
SIDE = 16
TALLIES = {"empty": (), "one place": (5,) * 900, "spread": tuple(range(SIDE * SIDE)) * 4}


def half(domain, columns=8, rows=8):
    """Nobody lives in the east; more and more people to the north."""
    raster = np.tile(np.arange(1, rows + 1, dtype=np.uint16)[:, None], (1, columns))
    raster[:, columns // 2 :] = 0
    return Covariate(domain=domain, raster=raster)


def built(method, rows, *, epsilon=NANO, side=SIDE, **shape):
    domain = small_domain(side)
    return draw_release(
        small_tally(side, rows),
        domain,
        budget=Budget(epsilon),
        method=method,
        unit=PrivacyUnit(),
        post_processing=PostProcessing(density="covariate"),
        covariate=half(domain, **shape),
    )


def spent_on_paths(tree):
    spent = tree.loss.copy()
    for level in tree.levels[1:]:
        spent[level] += spent[tree.parent[level]]
    return spent[tree.is_leaf]


@pytest.mark.parametrize("rows", TALLIES.values(), ids=TALLIES)
@pytest.mark.parametrize("method", METHODS)
def test_releases_come_back_and_keep_their_totals(method, rows):
    release = built(method, rows)
    loaded = decode(encode(release))
    assert encode(loaded) == encode(release)
    boxes = [(0, 0, SIDE, SIDE), (0, 0, 5.5, 7.25), (5.5, 0, SIDE, 7.25), (0, 7.25, SIDE, SIDE)]
    answers = loaded.query(boxes).table
    assert answers.equals(release.query(boxes).table)
    assert answers["estimate"][0] == release.total
    assert answers["estimate"][1:].sum() == pytest.approx(release.total, rel=1e-9, abs=1e-9)
    shapes = [shapely.box(*box) for box in boxes]
    by_polygon = loaded.query(shapes, crs=loaded.domain.crs)["estimate"]
    assert by_polygon.tolist() == pytest.approx(answers["estimate"].tolist(), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_counts_of_cells_are_what_was_measured(method):
    release = built(method, TALLIES["spread"])
    plain = changed(release, covariate=None, post_processing=PostProcessing())
    assert np.array_equal(plain.index.fit.estimates.count, release.index.fit.estimates.count)
    assert np.array_equal(plain.tree.count, release.tree.count)


@pytest.mark.parametrize("side", [1, 3, 16, 64])
def test_a_steered_cascade_spends_epsilon_on_every_path(side):
    for rows, epsilon in product(TALLIES.values(), (2, 100, NANO, 1_000 * NANO)):
        rows = tuple(row % (side * side) for row in rows)
        tree = built(Cascade(), rows, epsilon=epsilon, side=side).tree
        assert (spent_on_paths(tree) == epsilon).all()


@pytest.mark.parametrize("share", ["0", "0.2", "0.9"])
@pytest.mark.parametrize("columns", [2, 6, 8, 100])
def test_a_cascade_divides_no_empty_cell(columns, share):
    domain = small_domain(64)
    known = half(domain, columns=columns)
    tally = small_tally(64, tuple(range(64 * 64)) * 9)
    curator = Curator(
        tally, domain, budget=Budget(9 * NANO), sampler=SecureSampler(), covariate=known
    )
    tree = Cascade(step_share=share).build(curator)
    empty = np.flatnonzero(known.mass(tree.boxes) == 0)
    assert len(empty)
    # Wholly empty cells are leaves, and their parents are not wholly empty.
    assert tree.is_leaf[empty].all()
    assert (known.mass(tree.boxes[tree.parent[empty]]) > 0).all()
    assert (tree.loss[empty] > 0).all()
    assert (spent_on_paths(tree) == 9 * NANO).all()
    assert len(tree) > 4 * len(empty)


def test_only_cascades_are_steered():
    """A covariate that changed the cells of another method would have to be written about."""
    for name in psd.methods():
        method = psd.decompositions.method(name)
        sizes = set()
        for known in (None, half(small_domain(SIDE))):
            tally = small_tally(SIDE, ())
            # Answers of 0 and of the best cut, whatever is asked.
            curator = Curator(
                tally, small_domain(SIDE), budget=Budget(NANO), sampler=Silent(), covariate=known
            )
            sizes.add(len(method.build(curator)))
        assert len(sizes) == 1 or name in ("auto", "cascade", "cube")


class Silent:
    """Answers without noise, to an empty tally."""

    def draw(self, mechanism):
        if isinstance(mechanism, LaplaceMechanism):
            return mechanism.true + 40 * (len(mechanism.true) == 1)
        if isinstance(mechanism, ThresholdMechanism):
            return mechanism.values > 0
        candidates = mechanism.candidates
        return candidates.first[np.searchsorted(candidates.group, np.arange(len(mechanism.cost)))]


def test_the_header_names_no_file(tmp_path):
    import pyarrow.parquet as pq

    release = built(Cascade(), ())
    release.save(tmp_path / "r.psd.parquet")
    header = json.loads(pq.read_metadata(tmp_path / "r.psd.parquet").metadata[b"psd"])
    assert header["covariate"].keys() == {"columns", "rows", "sha256"}
    assert header["view"]["density"] == "covariate"
