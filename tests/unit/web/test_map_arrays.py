"""Arrays of a map page: what they hold, and that a part of a tree keeps its answers."""

import base64
import zlib

import numpy as np
import pytest

from psd.testing.releases import release_from_counts
from psd.web.map_arrays import cut_arrays, pack_arrays, release_arrays, release_numbers
from support.map_engine import KINDS, built, viewed

TYPES = {"f8": np.float64, "i4": np.int32, "u2": np.uint16, "u1": np.uint8}


def unpacked(packed):
    """Arrays of a text, by the directory."""
    content, start, arrays = zlib.decompress(base64.b64decode(packed.text)), 0, {}
    for name, kind, length in packed.directory:
        width = np.dtype(TYPES[kind]).itemsize
        planes = np.frombuffer(content, np.uint8, width * length, start).reshape(width, length)
        arrays[name] = np.ascontiguousarray(planes.T).view(TYPES[kind]).ravel()
        start += width * length
    assert start == len(content)
    return arrays


def test_arrays_come_back_to_the_bit():
    random = np.random.default_rng(0)
    arrays = {
        "floats": np.array([0.1, -np.inf, np.inf, 5e-324, *random.random(100)]),
        "integers": random.integers(-(2**31), 2**31, 50).astype(np.int32),
        "short": np.array([0, 65535], np.uint16),
        "bytes": np.array([], np.uint8),
    }
    for name, values in unpacked(pack_arrays(arrays)).items():
        assert values.dtype == arrays[name].dtype
        assert values.tolist() == arrays[name].tolist()


@pytest.mark.deep
def test_counts_of_leaves_make_up_all_nodes():
    release = built()
    arrays = release_arrays(release)
    leaves = int(release.tree.is_leaf.sum())
    assert (len(arrays["count"]), len(arrays["signed"])) == (leaves, leaves)
    assert len(arrays["slope"]) == len(release.tree)
    offsets = arrays["offsets"].reshape(4, -1).T
    boxes = offsets.copy()
    for node in range(1, len(boxes)):
        boxes[node] += boxes[release.tree.parent[node]]
    assert np.array_equal(boxes, release.tree.boxes)


def test_what_a_release_lacks_is_not_stored():
    signed = release_arrays(viewed(built(), estimate="signed"))
    assert not {"signed", "real", "lines", "raster"} & signed.keys()
    assert "lines" in release_arrays(KINDS["streets"]())
    assert "raster" in release_arrays(KINDS["covariate"]())


def test_numbers_are_json_without_infinity():
    numbers = release_numbers(release_from_counts([[1, 2], [3, 4]]), 0.2)
    assert (numbers["good"], numbers["reliable"]) == (0.12, 0.2)
    assert numbers["density"] == "uniform"
    assert all(np.isfinite(v) for v in numbers.values() if isinstance(v, float))


@pytest.mark.parametrize("level", [0, 2])
def test_a_part_of_a_tree_has_the_nodes_down_to_a_level(level):
    release = built()
    arrays = cut_arrays(release, level)
    kept = int((release.tree.level <= level).sum())
    assert len(arrays["children"]) == len(arrays["count"]) == kept
    assert int(arrays["children"].sum()) == kept - 1
    assert np.array_equal(arrays["count"], release.estimates.count[:kept])
