"""Cubes with a layer of times: windows whose hours the cells of space and time do not know."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from psd.errors import ParameterError, ReleaseFormatError
from psd.query import cube_covariance, cubes
from psd.query.areas import BoxAreas
from psd.query.cube_views import window_counts
from psd.query.cubes import Told, Windows, cube_totals, told_by_times
from psd.query.index import QueryIndex
from psd.release.cube_file import decode_cube, encode_cube
from support.cubes import SLICES, of_rush, rush
from support.forged_releases import file_of, table_of

BOXES = np.array([[0, 0, 16, 16], [1.3, 2.1, 6.7, 9.9], [1.3, 2.1, 4, 9.9], [4, 2.1, 6.7, 9.9]])
WINDOWS = ["2024-01-02T08", "weekdays 07-09", "2024-01-02T06..2024-01-02T07", "07-08"]
PURPOSE = {"category": "purpose", "labels": ["work", "home"], "other_labels": "drop"}
KINDS = {
    "hours": {},
    "Gaussian": {
        "epsilon": 3, "delta": "1e-6", "user": "user", "max_contributions": 8, "max_per_slice": 2,
    },
    "all categories": {"epsilon": 0.15, "slices": SLICES, **PURPOSE},
    "each category": {"epsilon": 1, **PURPOSE},
}  # fmt: skip


@pytest.fixture(scope="module", params=KINDS)
def made(request):
    return of_rush(**KINDS[request.param])


def cells(release, when):
    """Numbers of the cells of a window of all categories."""
    return release.record.cells_in(release.slices.window(when)).numbers


def nothing(_, windows):
    """As if there were no layer of times."""
    return Told.nothing(len(windows))


def test_the_layer_counts_each_slice_once(made):
    tree = made.record.times.tree
    leaf = tree.is_leaf
    labels = 2 if made.record.labels is not None else 1
    assert leaf.sum() == labels * len(made.slices)
    assert (tree.lengths[leaf, 0] == 1).all()
    assert not tree.loss[~leaf].any()
    spent = sum(layer.tree.max_path_loss for layer in made.record.layers)
    largest = made.record.epsilon if made.record.plane.rho is None else made.record.plane.loss.rho
    assert 0.999 * largest < spent <= largest


def test_hours_are_corrected_towards_those_of_all_places(made, monkeypatch):
    """By hand: an answer takes of the gap of all places its part of the common deviation."""
    for part in made._cube.fit.parts or [made._cube.fit]:
        whole = Windows.of_cells([cells(made, each) for each in WINDOWS], made.record.sizes)
        if part.record.is_part:
            whole = Windows(before=whole.before[:1])
        areas = BoxAreas(given=None, boxes=BOXES, ids=list(range(len(BOXES))))
        told, found = told_by_times(part, whole), cube_totals(part, areas, whole)
        with monkeypatch.context() as patched:
            patched.setattr(cubes, "told_by_times", nothing)
            plain = cube_totals(part, areas, whole)
            [(*_, batch)] = cubes.cube_batches(part, areas, whole)
        [(*_, corrected)] = cubes.cube_batches(part, areas, whole)
        # Cut cells of the plane have a part of the error that follows the corrected answer.
        of_plane = areas.totals(QueryIndex.of_fit(part.own_plane)).nonuniformity_variance
        followed = (corrected.scale**2 - batch.scale**2) * of_plane[:, None]
        assert (told.weight > 0).any()
        counts, variance = part.times
        for window, (new, old) in enumerate(zip(found, plain, strict=True)):
            inside = np.diff(whole.before[0][window]).astype(bool)
            common, whole_area = batch.common[:, window], batch.common[0, window]
            gap = counts[inside].sum() - old.signed[0]
            spread = old.perturbation_variance[0] + old.leaf_variance[0]
            weight = whole_area / (spread + variance * inside.sum())
            assert new.signed == pytest.approx(old.signed + common * weight * gap, rel=1e-9)
            # By as much as d c takes off the variance of both parts of the error together.
            before = old.perturbation_variance + old.leaf_variance + followed[:, window]
            after = new.perturbation_variance + new.leaf_variance
            wanted = before - common * weight * common * whole_area
            assert after == pytest.approx(wanted, rel=1e-9)
            assert (new.perturbation_variance >= old.perturbation_variance).all()
            fewer = new.leaf_variance - followed[:, window]
            assert (fewer <= old.leaf_variance * (1 + 1e-9)).all()


def test_joint_answers_are_the_single_ones(made):
    asked = made.query(BOXES, when=WINDOWS)
    joint, table = asked.joint(), asked.table
    assert joint.answers["estimate"].tolist() == pytest.approx(table["estimate"].tolist())
    for matrix, name in (
        (joint.perturbation_covariance, "perturbation_error"),
        (joint.nonuniformity_covariance, "nonuniformity_error"),
    ):
        assert np.diagonal(matrix) == pytest.approx(table[name].to_numpy() ** 2, rel=1e-9, abs=1e-9)
        assert np.linalg.eigvalsh(matrix).min() > -1e-9 * matrix.max()
    # Halves of a box sum to it, in each window.
    for window in range(len(WINDOWS)):
        at = window * len(BOXES)
        halves = np.ix_([at + 2, at + 3], [at + 2, at + 3])
        noise = joint.perturbation_covariance
        assert noise[halves].sum() == pytest.approx(noise[at + 1, at + 1], rel=1e-9)


def test_windows_that_share_hours_share_their_noise(monkeypatch):
    made = of_rush()
    when = ["weekdays 07-09", "weekdays 08-10", "weekdays 12-14"]
    noise = made.query(BOXES[:1], when=when).joint().perturbation_covariance
    fit = made._cube.fit
    windows = Windows.of_cells([cells(made, each) for each in when], made.record.sizes)
    told, variance = told_by_times(fit, windows), fit.times[1]
    # Of the whole area, the deviation in common is (1 - left) / weight.
    part = np.where(told.weight > 0, 1 - told.left, 0.0)
    for module in (cubes, cube_covariance):
        monkeypatch.setattr(module, "told_by_times", nothing)
    plain = made.query(BOXES[:1], when=when).joint().perturbation_covariance
    shared = np.intersect1d(*(cells(made, each) for each in when[:2]))
    assert len(shared) == 8
    more = part[0] * part[1] * variance * len(shared)
    assert more > 1
    assert noise[0, 1] - plain[0, 1] == pytest.approx(more, rel=1e-6)
    assert noise[0, 2] == pytest.approx(plain[0, 2], abs=1e-6)


def test_what_a_cube_is_about_is_that_of_all_layers(made):
    titled = made.replace(about={"title": "Rush hours"})
    assert {layer.about.title for layer in titled.record.layers} == {"Rush hours"}
    assert decode_cube(encode_cube(titled.record))[1] == titled.digest


def test_cells_have_the_answers_to_their_boxes(made):
    tree = made.record.cells
    boxes = made.domain.from_lattice(tree.boxes.astype(float))
    areas = BoxAreas(given=None, boxes=boxes, ids=list(range(len(boxes))))
    for when in WINDOWS:
        numbers = cells(made, when)
        count, signed = window_counts(made._cube.fit, numbers)
        [found] = cube_totals(made._cube.fit, areas, Windows.of_cells([numbers], made.record.sizes))
        assert signed == pytest.approx(found.signed, rel=1e-9, abs=1e-9)
        assert made[when].total == pytest.approx(count[0])


def test_explanations_have_the_error_of_the_answer(made):
    answers = made.query(BOXES, when=WINDOWS)
    for row, found in zip(answers.table.itertuples(), answers.explain(), strict=True):
        now, *others = found.remedies.to_dict("records")
        for name in ("perturbation_error", "nonuniformity_error", "error"):
            assert now[name] == pytest.approx(getattr(row, name), rel=1e-9, abs=1e-9)
        left = sum(now["error"] ** 2 - other["error"] ** 2 for other in others)
        assert left == pytest.approx(now["error"] ** 2, rel=1e-9)


def test_one_category_of_a_cube_whose_categories_are_together_is_not_corrected():
    made = of_rush(**KINDS["all categories"])
    assert made.record.labels is None
    every, work = cells(made, WINDOWS[0]), 2 * made.slices.window(WINDOWS[0]).numbers
    told = told_by_times(made._cube.fit, Windows.of_cells([every, work], made.record.sizes))
    assert told.weight[0] > 0 == told.weight[1]


@pytest.mark.deep
@pytest.mark.parametrize("options", [{}, {"epsilon": 1, **PURPOSE}], ids=["hours", "categories"])
def test_hours_of_all_places_are_known_and_intervals_hold(options, monkeypatch):
    data, off, plain, held = rush(), [], [], []
    hour = data["time"].dt.hour
    for seed in range(6):
        made = of_rush(seed=seed, **options)
        for when, mask in {
            "07-09": (hour >= 7) & (hour < 9),
            "10-11": hour == 10,
            "11-12": hour == 11,
        }.items():
            true = [
                (data["lon"].between(w, e) & data["lat"].between(s, n) & mask).sum()
                for w, s, e, n in BOXES
            ]
            table = made.query(BOXES, when=when).table
            off.append(table["estimate"] - true)
            held.append((table["lower"] <= true) & (true <= table["upper"]))
            with monkeypatch.context() as patched:
                patched.setattr(cubes, "told_by_times", nothing)
                plain.append(made.query(BOXES, when=when).table["estimate"] - true)
    assert np.square(off).sum() < np.square(plain).sum() / 2
    assert np.mean(held) >= 0.9


def test_layers_of_times_that_are_refused():
    record = of_rush().record
    times = record.times

    def changed(**arrays):
        return replace(times, tree=replace(times.tree, **arrays))

    leaf, tree = times.tree.is_leaf, times.tree
    fewer, twice = tree.loss.copy(), tree.loss.copy()
    fewer[leaf.nonzero()[0][0]] -= 1
    twice[0] = 1
    others = (
        changed(loss=fewer), changed(loss=twice), record.joint, record.plane,
        changed(loss=np.zeros_like(tree.loss), count=np.zeros_like(tree.count)),
    )  # fmt: skip
    for other in others:
        with pytest.raises(ParameterError, match="layer"):
            replace(record, times=other)
    with pytest.raises(ParameterError, match="at most epsilon"):
        replace(record, times=changed(loss=50 * tree.loss))


def test_layers_stand_in_one_order():
    """Else two files would have one digest."""
    made = of_rush(**KINDS["each category"])
    table = table_of(encode_cube(made.record))
    layer = np.array([0, 2, 1, 3], np.int32)[table["layer"].to_numpy()]
    moved = table.take(np.argsort(layer, kind="stable"))
    moved = moved.set_column(0, table.schema.field(0), pa.array(np.sort(layer)))
    with pytest.raises(ReleaseFormatError, match="a layer of categories, one of times, or both"):
        decode_cube(file_of(moved, table.schema.metadata), "c")


def test_categories_have_their_hours_in_common():
    """What their sum errs by is more than of independent errors, and at most the sum of each."""
    made = of_rush(**KINDS["each category"])
    asked = {"areas": BOXES, "when": WINDOWS}
    whole = made.query(**asked).table["nonuniformity_error"].to_numpy()
    alone = np.stack(
        [
            made.query(**asked, category=each).table["nonuniformity_error"]
            for each in PURPOSE["labels"]
        ]
    )
    assert (whole**2 > 1.2 * (alone**2).sum(axis=0)).any()
    assert (whole <= 1.001 * alone.sum(axis=0)).all()
