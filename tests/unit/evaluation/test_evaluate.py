"""True errors and their parts: they add up, and each is what its name says."""

import dataclasses

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from psd.errors import InputDataError, ParameterError
from psd.evaluation.evaluate import evaluate
from psd.ingest.tally_file import read_tally_of_release, write_tally
from psd.publish.observer import Observer
from psd.publish.tally_parts import tally_of_build
from psd.testing import RecordingSampler

DOMAIN = psd.Domain(bounds=(0, 0, 10, 10), crs="EPSG:3857")
BOXES = np.array([(0.0, 0, 10, 10), (1, 1, 4, 7), (3.3, 2.1, 3.9, 9.5), (9, 9, 9.5, 9.5)])


def points(size=3_000, users=40):
    random = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "lon": random.beta(2, 5, size) * 10,
            "lat": random.beta(5, 2, size) * 10,
            "user_id": random.zipf(1.6, size) % users,
        }
    )


def brute_force(table, boxes):
    x, y = table["lon"].to_numpy(), table["lat"].to_numpy()
    return [int(((x >= w) & (x < e) & (y >= s) & (y < n)).sum()) for w, s, e, n in boxes]


@pytest.mark.parametrize("name", psd.methods())
def test_parts_add_up_for_records(name):
    table = points()
    release = psd.build(table, domain=DOMAIN, epsilon=1, method=name)
    answers = evaluate(release, table, boxes=BOXES).answers
    assert answers["true_count"].tolist() == brute_force(table, BOXES)
    parts = answers.filter(regex="^true_(perturbation|nonuniformity|bounding)_error$")
    assert np.allclose(parts.sum(axis=1), answers["true_error"], rtol=0, atol=1e-9)
    assert np.allclose(answers["estimate"] - answers["true_count"], answers["true_error"])
    assert (answers["true_bounding_error"] == 0).all()


def test_without_noise_only_the_cells_are_wrong():
    """Counts echoed by a recorder: the perturbation part vanishes, the whole domain is right."""
    table = points()
    release = psd.build(
        table,
        domain=DOMAIN,
        epsilon=1,
        method=psd.decompositions.Quadtree(height=4),
        sampler=RecordingSampler(),
    )
    answers = evaluate(release, table, boxes=BOXES).answers
    assert np.allclose(answers["true_perturbation_error"], 0, atol=1e-6)
    assert answers["true_nonuniformity_error"][0] == pytest.approx(0, abs=1e-6)
    assert answers["true_nonuniformity_error"].abs().max() > 1


def test_on_own_edges_only_the_noise_is_wrong():
    table = points()
    release = psd.build(table, domain=DOMAIN, epsilon=1, method=psd.decompositions.Grid(size=8))
    boxes = release.to_geopandas().geometry.bounds.to_numpy()
    answers = evaluate(release, table, boxes=boxes).answers
    assert np.allclose(answers["true_nonuniformity_error"], 0, atol=1e-6)


def test_bounded_users_have_a_third_part():
    table, kept = points(), []
    arguments = {"domain": DOMAIN, "user": "user_id", "max_contributions": 5}
    release = psd.build(table, epsilon=1, observer=Observer(private_tally=kept.append), **arguments)
    answers = evaluate(release, table, boxes=BOXES, tally=kept[0]).answers
    whole = answers.iloc[0]
    assert whole["true_bounding_error"] == kept[0].counts.sum() - len(table) < 0
    assert np.allclose(
        answers["true_perturbation_error"]
        + answers["true_nonuniformity_error"]
        + answers["true_bounding_error"],
        answers["true_error"],
        rtol=0,
        atol=1e-9,
    )


def test_bounded_users_need_their_own_tally():
    table, kept = points(), []
    arguments = {"domain": DOMAIN, "user": "user_id", "epsilon": 1}
    release = psd.build(table, max_contributions=5, **arguments)
    psd.build(table, max_contributions=6, observer=Observer(private_tally=kept.append), **arguments)
    with pytest.raises(ParameterError, match="needs tally=, the private tally"):
        evaluate(release, table, boxes=BOXES)
    with pytest.raises(ParameterError, match="tally= must be the tally of this release"):
        evaluate(release, table, boxes=BOXES, tally=kept[0])


def test_another_file_is_refused():
    table = points()
    release = psd.build(table, domain=DOMAIN, epsilon=1, method="grid")
    with pytest.raises(InputDataError, match="no record lies inside"):
        evaluate(release, table.assign(lon=99.0), boxes=BOXES)


def test_geodataframe_and_frame_are_judged_alike():
    table = points()
    release = psd.build(table, domain=DOMAIN, epsilon=1, method="grid")
    shapes = gpd.GeoDataFrame(geometry=shapely.points(table["lon"], table["lat"]), crs="EPSG:3857")
    first, second = (evaluate(release, t, boxes=BOXES).answers for t in (table, shapes))
    pd.testing.assert_frame_equal(first, second)


@pytest.fixture
def built(tmp_path):
    """A tally, the path of its release, and that of the tally's file."""
    kept, release = [], tmp_path / "r.psd.parquet"
    arguments = {"domain": DOMAIN, "user": "user_id", "max_contributions": 5, "epsilon": 1}
    made = psd.build(points(), observer=Observer(private_tally=kept.append), **arguments)
    made.save(release)
    path = tmp_path / "tally.parquet"
    tally = tally_of_build(kept[0], made, [points()], columns=psd.Columns(), release=release)
    write_tally(tally, path)
    return tally, release, path


def test_tally_file_is_marked_private_and_closed(built):
    tally, release, path = built
    assert path.stat().st_mode & 0o777 == 0o600
    assert b"PRIVATE" in path.read_bytes()
    found = read_tally_of_release(path, DOMAIN, release)
    assert found.tally.contributions == 5
    for name in ("columns", "rows", "counts", "contributions"):
        assert np.array_equal(getattr(found.tally, name), getattr(tally.counts, name))


def test_a_tally_belongs_to_one_release(built, tmp_path):
    _, release, path = built
    again = tmp_path / "again.psd.parquet"
    arguments = {"domain": DOMAIN, "user": "user_id", "max_contributions": 5, "epsilon": 1}
    psd.build(points(), **arguments).save(again)
    with pytest.raises(InputDataError, match="is of another release"):
        read_tally_of_release(path, DOMAIN, again)
    with pytest.raises(InputDataError, match="is of another release"):
        read_tally_of_release(path, psd.Domain(bounds=(0, 0, 10, 11), crs="EPSG:3857"), release)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"lon,lat\n"])
def test_what_is_no_tally_is_refused(built, content):
    _, release, path = built
    path.write_bytes(content)
    with pytest.raises(InputDataError, match="is not a tally"):
        read_tally_of_release(path, DOMAIN, release)
    with pytest.raises(InputDataError, match="does not exist"):
        read_tally_of_release(path.parent / "absent", DOMAIN, release)


@pytest.mark.parametrize(
    ("name", "value"),
    [("columns", 2**20), ("rows", -1), ("counts", 0)],
    ids=["cell outside", "negative cell", "empty cell"],
)
def test_a_damaged_tally_is_refused(built, name, value):
    tally, release, path = built
    wrong = getattr(tally.counts, name).copy()
    wrong[0] = value
    counts = dataclasses.replace(tally.counts, **{name: wrong})
    write_tally(dataclasses.replace(tally, counts=counts), path, overwrite=True)
    with pytest.raises(InputDataError, match="is damaged"):
        read_tally_of_release(path, DOMAIN, release)


def test_a_tally_is_no_release(built):
    with pytest.raises(psd.PsdError, match="PRIVATE tally"):
        psd.Release.load(built[2])


def test_a_release_of_rows_takes_no_tally(built):
    table = points()
    release = psd.build(table, domain=DOMAIN, epsilon=1, method="grid")
    with pytest.raises(ParameterError, match="tally= must be absent"):
        evaluate(release, table, boxes=BOXES, tally=built[0])


def test_points_on_the_far_edges_count():
    """The last cells hold the far edges, and so does a box that reaches them."""
    table = points()
    table.loc[:299, "lon"] = 10.0
    release = psd.build(table, domain=DOMAIN, epsilon=1, method="grid")
    whole = evaluate(release, table, boxes=BOXES[:1]).answers.iloc[0]
    assert whole["true_count"] == len(table)
    assert whole["true_nonuniformity_error"] == pytest.approx(0, abs=1e-6)


def test_repr_says_nothing():
    table = points()
    release = psd.build(table, domain=DOMAIN, epsilon=1, method="grid")
    assert repr(evaluate(release, table, boxes=BOXES)) == "<Evaluation: private>"
