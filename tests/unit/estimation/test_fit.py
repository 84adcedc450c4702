"""The fit of all cells: which estimates and densities a post-processing chooses."""

from dataclasses import fields, replace
from fractions import Fraction

import geopandas as gpd
import numpy as np
import pytest
import shapely

import psd
from psd.estimation import fit as module
from psd.estimation.constants import MEDIAN_REACH, SLOPE_OVERDISPERSION
from psd.estimation.density import CovariateDensity
from psd.estimation.fit import fit, fit_together
from psd.estimation.least_squares import infer_counts, prune_counts
from psd.estimation.nonuniformity import fit_dispersion
from psd.estimation.posterior import posterior_counts
from psd.release.post_processing import PostProcessing
from psd.space.boundary import Boundary
from psd.space.covariate import Covariate
from support.releases import changed
from support.trees import grid_release

COUNTS = np.array([[2, -4, 6, 0], [8, 90, -10, 1], [1, 3, 5, 0], [0, 0, -7, 2]])
RELEASE = grid_release(COUNTS)


def model(release=RELEASE, **choice):
    return fit(changed(release, post_processing=PostProcessing(**choice)).record)


def with_covariate():
    raster = np.arange(16, dtype=np.uint16).reshape(4, 4)
    return changed(RELEASE, covariate=Covariate(domain=RELEASE.domain, raster=raster))


def test_each_estimate_is_the_one_that_was_chosen():
    projected = infer_counts(RELEASE.tree)
    asked = model()
    assert asked.estimates.count.tolist() == projected.count.tolist()
    assert (asked.estimates.count >= 0).all()
    assert asked.total == asked.estimates.count[0]
    asked = model(estimate="signed")
    assert asked.estimates.count.tolist() == asked.estimates.signed.tolist()
    assert (asked.estimates.count < 0).any()
    assert asked.published_covariance is asked.estimates
    asked = model(estimate="posterior")  # medians replace the counts alone
    expected = posterior_counts(RELEASE.tree, projected, 1, None, reach=MEDIAN_REACH)
    assert asked.estimates.count.tolist() == expected.tolist()
    assert asked.estimates.signed.tolist() == projected.signed.tolist()
    assert asked.estimates.variance.tolist() == projected.variance.tolist()
    asked = model(prune=20)
    expected = prune_counts(RELEASE.tree, projected, 20, asked.parent_shares)
    assert asked.estimates.count.tolist() == expected.tolist()
    asked = model(grid_release(-np.abs(COUNTS)), estimate="signed")
    assert asked.estimates.count[0] < 0 == asked.total


@pytest.mark.deep
def test_each_density_is_the_one_that_was_chosen():
    assert model().density is None
    assert not isinstance(model(density="smooth").density, CovariateDensity | None)
    release = with_covariate()
    assert isinstance(model(release, density="covariate").density, CovariateDensity)
    assert model(release, density="uniform").density is None


def test_shares_of_parents_follow_the_covariate_where_it_is_the_density():
    release = with_covariate()
    leaves = RELEASE.tree.is_leaf
    even = model(release, density="uniform").parent_shares
    assert even[leaves] == pytest.approx(1 / 4)
    shares = model(release, density="covariate").parent_shares
    boxes = RELEASE.tree.boxes[leaves]
    values, parent = 4 * boxes[:, 1] + boxes[:, 0], RELEASE.tree.parent[leaves]
    assert shares[leaves] == pytest.approx(values / np.bincount(parent, values)[parent])


def test_leaves_outside_a_boundary_have_no_records():
    west = gpd.GeoSeries([shapely.box(0, 0, 2, 4)], crs=RELEASE.domain.crs)
    boundary = Boundary.from_polygons(west, RELEASE.domain)
    tree = RELEASE.tree
    east = tree.boxes[:, 0] >= 2
    release = changed(
        RELEASE,
        tree=replace(tree, count=np.where(east, 0, tree.count), loss=np.where(east, 0, tree.loss)),
        covariate=boundary.release_covariate(None),
        boundary=True,
    )
    asked = model(release, density="covariate")
    assert asked.record.outside.tolist() == east.tolist()
    assert (asked.estimates.count[east] == 0).all()
    assert model().record.outside is None


def test_overdispersion_is_larger_where_the_density_follows_a_covariate():
    domain = psd.Domain(bounds=(0, 0, 64, 64), crs="EPSG:3857", lattice=(64, 64))
    counts = np.random.default_rng(1).negative_binomial(3, 0.02, 256)
    plain = psd.Release.from_counts(
        psd.decompositions.grid_tree(domain, 16), counts, 1.0, domain=domain
    )
    raster = np.arange(1, 17, dtype=np.uint16).reshape(4, 4)
    release = changed(plain, covariate=Covariate(domain=domain, raster=raster))
    asked = model(release, density="covariate")
    fitted = fit_dispersion(release.tree, asked.estimates, asked.parent_shares)
    inner = fitted.overdispersion < 1 / SLOPE_OVERDISPERSION
    assert inner[release.tree.is_leaf].all()
    assert not inner.all()
    assert asked.dispersion.overdispersion[inner] == pytest.approx(
        1.4 * fitted.overdispersion[inner]
    )
    assert (asked.dispersion.overdispersion[~inner] == 1).all()
    assert asked.dispersion.cluster_size == fitted.cluster_size
    for density in ("uniform", "smooth"):
        other = model(release, density=density)
        fitted = fit_dispersion(release.tree, other.estimates, other.parent_shares)
        assert other.dispersion.overdispersion.tolist() == fitted.overdispersion.tolist()


@pytest.mark.parametrize("estimate", ["least-squares", "signed", "posterior"])
def test_nobody_can_write_to_a_fit(estimate):
    asked = model(estimate=estimate, density="smooth")
    held = [asked, asked.estimates, asked.published_covariance, asked.dispersion]
    values = [getattr(part, field.name) for part in held for field in fields(part)]
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    assert len(arrays) > 12
    assert not any(array.flags.writeable for array in arrays)
    assert asked.density is asked.density


def numbers_of(value):
    """Arrays of a fit, and of the values in it, by name."""
    for field in fields(value):
        part = getattr(value, field.name)
        if isinstance(part, np.ndarray):
            yield field.name, part
        elif field.name in ("estimates", "published_covariance", "dispersion", "pattern"):
            yield from (() if part is None else numbers_of(part))


@pytest.mark.parametrize("estimate", ["posterior", "signed", "least-squares"])
@pytest.mark.parametrize("together", [1, 2**16])
def test_records_that_are_fitted_together_have_the_fits_that_they_have_alone(
    estimate, together, monkeypatch
):
    monkeypatch.setattr(module, "_TOGETHER", together)
    rng = np.random.default_rng(5)
    choice = PostProcessing(estimate=estimate, density="smooth", prune=3)
    records = [
        changed(grid_release(rng.poisson(4, shape)), post_processing=choice).record
        for shape in ((8, 8), (1, 1), (16, 16), (4, 4), (8, 8))
    ]
    wider = replace(records[3].tree.noise, factor=Fraction(3))  # as running totals have
    object.__setattr__(records[3], "tree", replace(records[3].tree, noise=wider))
    outside = np.zeros(len(records[0].tree), bool)
    outside[-3:] = True
    monkeypatch.setattr(
        module, "_empty_leaves", lambda record: outside if record is records[0] else None
    )
    found = list(fit_together(iter(records)))
    assert [each.record for each in found] == records
    for each, record in zip(found, records, strict=True):
        alone = fit(record)
        for (name, values), (_, other) in zip(numbers_of(each), numbers_of(alone), strict=True):
            assert np.array_equal(values, other, equal_nan=True), name
        assert np.array_equal(each.density.share, alone.density.share)
    if estimate == "posterior":
        assert found[0].estimates.count[-3:].tolist() == [0, 0, 0]
