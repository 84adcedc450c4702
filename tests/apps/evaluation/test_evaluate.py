"""True errors and their parts: they add up, and each is what its name says."""

import dataclasses

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from psd.apps.evaluation.true_errors import evaluate
from psd.apps.evaluation.workload import AREAS, draw_workload
from psd.errors import InputDataError, ParameterError
from psd.ingest.tally_file import read_tally_of_release, write_tally
from psd.publish.observer import Observer
from psd.publish.tally_parts import tally_of_build
from psd.testing import RecordingSampler
from support.evaluations import BOXES, DOMAIN, METHODS, built, points
from support.local import sum_inside

PARTS = [f"true_{part}_error" for part in ("perturbation", "nonuniformity", "bounding")]


@pytest.mark.parametrize("name", METHODS)
def test_parts_add_up_for_records(name):
    table = points()
    answers = evaluate(built(table, name), table, boxes=BOXES).answers
    true = sum_inside(table["lon"], table["lat"], BOXES)
    assert answers["true_count"].tolist() == true.tolist()
    assert np.allclose(answers[PARTS].sum(axis=1), answers["true_error"], rtol=0, atol=1e-9)
    assert np.allclose(answers["estimate"] - answers["true_count"], answers["true_error"])
    assert (answers["true_bounding_error"] == 0).all()


def test_without_noise_only_the_cells_are_wrong_and_on_own_edges_only_the_noise():
    """Counts echoed by a recorder: the perturbation part vanishes, the whole domain is right."""
    table = points()
    method = psd.decompositions.Quadtree(height=4)
    answers = evaluate(built(table, method, sampler=RecordingSampler()), table, boxes=BOXES).answers
    assert np.allclose(answers["true_perturbation_error"], 0, atol=1e-6)
    assert answers["true_nonuniformity_error"][0] == pytest.approx(0, abs=1e-6)
    assert answers["true_nonuniformity_error"].abs().max() > 1
    release = built(table, psd.decompositions.Grid(size=8))
    boxes = release.to_geopandas().geometry.bounds.to_numpy()
    answers = evaluate(release, table, boxes=boxes).answers
    assert np.allclose(answers["true_nonuniformity_error"], 0, atol=1e-6)


def of_users(table, bound=5):
    kept = []
    how = {"domain": DOMAIN, "epsilon": 1, "user": "user_id", "max_contributions": bound}
    return psd.build(table, observer=Observer(private_tally=kept.append), **how), kept[0]


def test_bounded_users_have_a_third_part():
    table = points()
    release, tally = of_users(table)
    answers = evaluate(release, table, boxes=BOXES, tally=tally).answers
    assert answers["true_bounding_error"][0] == tally.counts.sum() - len(table) < 0
    assert np.allclose(answers[PARTS].sum(axis=1), answers["true_error"], rtol=0, atol=1e-9)
    with pytest.raises(ParameterError, match="needs tally=, the private tally"):
        evaluate(release, table, boxes=BOXES)
    with pytest.raises(ParameterError, match="tally= must be the tally of this release"):
        evaluate(release, table, boxes=BOXES, tally=of_users(table, 6)[1])
    with pytest.raises(ParameterError, match="tally= must be absent"):
        evaluate(built(table), table, boxes=BOXES, tally=tally)


def test_points_of_any_frame_on_the_far_edges_too_and_of_another_file():
    """The last cells hold the far edges, and so does a box that reaches them."""
    table = points()
    table.loc[:299, "lon"] = 10.0
    release = built(table)
    shapes = gpd.GeoDataFrame(geometry=shapely.points(table["lon"], table["lat"]), crs="EPSG:3857")
    first, second = (evaluate(release, t, boxes=BOXES) for t in (table, shapes))
    pd.testing.assert_frame_equal(first.answers, second.answers)
    whole = first.answers.iloc[0]
    assert whole["true_count"] == len(table)
    assert whole["true_nonuniformity_error"] == pytest.approx(0, abs=1e-6)
    assert repr(first) == "<Evaluation: private>"
    with pytest.raises(InputDataError, match="no record lies inside"):
        evaluate(release, table.assign(lon=99.0))


def test_raster_asks_about_every_cell_once_and_intervals_are_those_of_the_release():
    table = points()
    release = built(table, psd.decompositions.Quadtree(height=4))
    cells = evaluate(release, table, raster=7).raster
    assert len(cells) == 49
    assert cells["true_count"].sum() == len(table)
    assert cells["west"].iloc[:7].tolist() == pytest.approx([i * 10 / 7 for i in range(7)])
    assert (cells["south"].diff().fillna(0) >= 0).all()
    assert evaluate(release, table).raster is None
    for wrong in (0, 257, 1.5):
        with pytest.raises(ParameterError, match="raster"):
            evaluate(release, table, raster=wrong)
    table = points()
    release = built(table, psd.decompositions.Quadtree(height=4))
    found = evaluate(release, table, boxes=BOXES[1:3]).answers
    answers = release.query(found[["west", "south", "east", "north"]].to_numpy()).table
    for name in ("lower", "upper", "perturbation_error", "nonuniformity_error", "error"):
        assert np.array_equal(found[name], answers[name])


@pytest.fixture
def kept(tmp_path):
    """A tally, the path of its release, and that of the tally's file."""
    made, counts = of_users(points())
    release, path = tmp_path / "r.psd.parquet", tmp_path / "tally.parquet"
    made.save(release)
    tally = tally_of_build(counts, made, [points()], columns=psd.Columns(), release=release)
    write_tally(tally, path)
    return tally, release, path


def test_tally_file_is_marked_private_and_closed(kept, tmp_path):
    tally, release, path = kept
    assert path.stat().st_mode & 0o777 == 0o600
    assert b"PRIVATE" in path.read_bytes()
    found = read_tally_of_release(path, DOMAIN, release)
    assert found.tally.contributions == 5
    for name in ("columns", "rows", "counts", "contributions"):
        assert np.array_equal(getattr(found.tally, name), getattr(tally.counts, name))
    with pytest.raises(psd.PsdError, match="PRIVATE tally"):
        psd.load(path)
    _, release, path = kept
    again = tmp_path / "again.psd.parquet"
    of_users(points())[0].save(again)
    other = psd.Domain(bounds=(0, 0, 10, 11), crs="EPSG:3857")
    for domain, of in ((DOMAIN, again), (other, release)):
        with pytest.raises(InputDataError, match="is of another release"):
            read_tally_of_release(path, domain, of)


def test_what_is_no_tally_is_refused(kept):
    tally, release, path = kept
    for content in (b"", b"PAR1", b"lon,lat\n"):
        path.write_bytes(content)
        with pytest.raises(InputDataError, match="is not a tally"):
            read_tally_of_release(path, DOMAIN, release)
    with pytest.raises(InputDataError, match="does not exist"):
        read_tally_of_release(path.parent / "absent", DOMAIN, release)
    for name, value in (("columns", 2**20), ("rows", -1), ("counts", 0)):
        wrong = getattr(tally.counts, name).copy()
        wrong[0] = value  # a cell outside, a negative one, an empty one
        counts = dataclasses.replace(tally.counts, **{name: wrong})
        write_tally(dataclasses.replace(tally, counts=counts), path, overwrite=True)
        with pytest.raises(InputDataError, match="is damaged"):
            read_tally_of_release(path, DOMAIN, release)


def test_workload_has_eight_classes_inside_the_bounds():
    table = points()
    made = draw_workload(table["lon"].to_numpy(), table["lat"].to_numpy(), DOMAIN.bounds)
    names, sizes = np.unique(made.classes, return_counts=True)
    assert len(names) == 2 * len(AREAS)
    assert set(sizes) == {500}
    west, south, east, north = made.boxes.T
    assert west.min() >= -1e-9
    assert north.max() <= 10 + 1e-9
    area = (east - west) * (north - south) / 100
    assert np.allclose(area.reshape(2, 4, 500), np.array(AREAS)[:, None])
