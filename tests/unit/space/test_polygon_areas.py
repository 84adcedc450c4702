"""Areas of polygons in boxes, against overlays and against each other."""

import math

import numpy as np
import pytest
import shapely

from psd.space.polygon_areas import clip_outlines, divide_outlines

WORLD = np.array([-2.0, -2.0, 2.0, 2.0])


def star(rng, corners):
    """Star-shaped polygon around the origin."""
    angle = np.arange(corners) * 2 * math.pi / corners
    reach = rng.uniform(0.4, 1.5, corners)
    return shapely.Polygon(np.column_stack([np.cos(angle), np.sin(angle)]) * reach[:, None])


def polygon(rng, kind):
    made = star(rng, int(rng.integers(3, 40)))
    if kind == "holes":
        made = made.difference(shapely.MultiPoint(rng.uniform(-1, 1, (5, 2))).buffer(0.2))
    if kind == "parts":
        made = made.symmetric_difference(star(rng, 9))
    if kind == "on lines":
        # Through text, since a shape that remembers its precision would round the overlay.
        made = shapely.from_wkt(shapely.to_wkt(shapely.set_precision(made, 0.25)))
    if kind == "clockwise":
        made = made.reverse()
    return made


def boxes_of(rng, number):
    """Boxes, half of their edges on lines where vertices are."""
    corners = rng.uniform(-2, 1.5, (number, 2))
    boxes = np.column_stack([corners, corners + rng.choice([0.01, 0.25, 0.5], (number, 2))])
    return np.where(rng.random((number, 1)) < 0.5, np.round(boxes * 4) / 4, boxes)


def inside_of(shape, boxes):
    """ClippedPolygons of one shape in many boxes."""
    whole = clip_outlines(np.array([shape]), WORLD[None])
    return divide_outlines(whole, np.zeros(len(boxes), np.int64), boxes)


KINDS = ("plain", "holes", "parts", "on lines", "clockwise")


@pytest.mark.parametrize("kind", KINDS)
def test_fractions_are_those_of_overlays(kind):
    compared = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        shape, boxes = polygon(rng, kind), boxes_of(rng, 80)
        boxes = boxes[(boxes[:, :2] < boxes[:, 2:]).all(axis=1)]
        cells = shapely.box(*boxes.T)
        found = inside_of(shape, boxes)
        expected = shapely.area(shapely.intersection(shape, cells)) / shapely.area(cells)
        assert found.fraction == pytest.approx(expected, abs=1e-12)
        # What is not cut is inside or outside without rounding, and what is inside is not cut.
        assert np.isin(found.base[~found.cut], (0, 1)).all()
        assert (found.fraction[~found.cut] == found.base[~found.cut]).all()
        assert not found.cut[shapely.contains_properly(shape, cells)].any()
        assert not found.cut[shapely.disjoint(shape, cells)].any()
        compared += int(found.cut.sum())
    assert compared > 300


def boxes_between(lines):
    """Boxes between neighbouring lines of both axes."""
    x, y = np.meshgrid(np.arange(len(lines) - 1), np.arange(len(lines) - 1))
    return np.stack([lines[x], lines[y], lines[x + 1], lines[y + 1]], axis=-1).reshape(-1, 4)


def test_parts_of_a_box_add_up_and_cells_as_polygons_cut_no_cell():
    rng = np.random.default_rng(3)
    shape = polygon(rng, "holes")
    boxes = boxes_between(np.sort([-2, *rng.uniform(-2, 2, 30), 2]))
    area = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
    assert inside_of(shape, boxes).fraction @ area == pytest.approx(shape.area, rel=1e-13)
    boxes = boxes_between(np.linspace(-2, 2, 14))
    shape = shapely.unary_union(shapely.box(*boxes[::3].T))
    found = inside_of(shape, boxes)
    assert not found.cut.any()
    assert found.fraction.tolist() == [float(i % 3 == 0) for i in range(len(boxes))]
    nobody = clip_outlines(np.array([], object), np.zeros((0, 4)))
    assert len(nobody.fraction) == 0
    beside = inside_of(shapely.box(5, 5, 6, 6), np.array([[0.0, 0, 1, 1]]))
    assert beside.fraction.tolist() == [0]
    around = shapely.box(-9, -9, 9, 9)
    assert inside_of(around, WORLD[None]).fraction.tolist() == [1]
    assert inside_of(around.difference(shapely.box(-3, -3, 3, 3)), WORLD[None]).base.tolist() == [0]
    for seed in range(20):
        rng = np.random.default_rng(seed)
        shape = polygon(rng, KINDS[seed % 5])
        now = clip_outlines(np.array([shape]), WORLD[None])
        for _ in range(6):
            kept = rng.integers(0, len(now.boxes), 40)
            low, high = now.boxes[kept, :2], now.boxes[kept, 2:]
            middle = low + (high - low) * rng.random((40, 2))
            quarter = rng.integers(0, 4, 40)
            upper = np.column_stack([quarter % 2 == 1, quarter >= 2])
            boxes = np.hstack([np.where(upper, middle, low), np.where(upper, high, middle)])
            now = divide_outlines(now, kept, boxes)
        direct = inside_of(shape, now.boxes)
        assert now.fraction == pytest.approx(direct.fraction, abs=1e-9)
    angle = np.linspace(0, 2 * math.pi, 100_001)[:-1]
    shape = shapely.Polygon(np.column_stack([np.cos(angle), np.sin(angle)]))
    small = inside_of(shape, np.array([[-1.0005, -0.02, -0.9995, 0.02]]))
    assert small.cut[0]
    assert small.sides.shape[1] + small.steps.shape[1] < 1000
