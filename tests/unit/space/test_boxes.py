"""Arithmetic of boxes."""

import numpy as np
import pytest

from psd.space.box_tree import SIDES, box_sides, quadrants


def area(boxes):
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def test_sides_are_named_and_those_of_32_bits_do_not_overflow():
    boxes = np.array([[SIDES.index(side) for side in ("west", "south", "east", "north")]])
    assert boxes.tolist() == [[0, 1, 2, 3]]
    assert [side.tolist() for side in box_sides(boxes)] == [[2], [2]]
    low, high = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    width, height = box_sides(np.array([[low, 0, high, 1], [0, low, 1, high]], np.int32))
    assert width.tolist() == [2**32 - 1, 1]
    assert height.tolist() == [1, 2**32 - 1]
    parts = quadrants(np.array([[0, 0, 4, 2]]), np.array([[4, 0]]))[0]
    assert area(parts).tolist() == [0, 0, 8, 0]
    assert quadrants(np.empty((0, 4), int), np.empty((0, 2), int)).shape == (0, 4, 4)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64])
def test_quadrants_tile_their_box(dtype):
    rng = np.random.default_rng(3)
    corners = np.sort(rng.integers(-20, 20, (200, 2, 2)), axis=1)
    boxes = corners.reshape(-1, 4).astype(dtype)
    lines = rng.integers(boxes[:, :2], boxes[:, 2:] + 1).astype(dtype)
    parts = quadrants(boxes, lines)
    assert parts.shape == (200, 4, 4)
    assert parts.dtype == dtype
    assert (area(parts).sum(axis=1) == area(boxes)).all()
    x, y = lines.T
    assert (parts[:, 0, 2:] == lines).all()
    assert (parts[:, 3, :2] == lines).all()
    assert (parts[:, 1, [0, 3]] == np.stack([x, y], 1)).all()
    assert (parts[:, 2, [2, 1]] == np.stack([x, y], 1)).all()
