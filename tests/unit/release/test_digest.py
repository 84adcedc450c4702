"""The digest of a release: what changes it, and what does not."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

from psd.release.digest import canonical_json, content_digest
from psd.space.box_tree import Tree

HEADER = {"format": 4, "epsilon": "1", "unit": "record"}
TREE = Tree(
    boxes=np.array([[0, 0, 2, 1], [0, 0, 1, 1], [1, 0, 2, 1]]),
    parent=np.array([-1, 0, 0]),
    level=np.array([0, 1, 1]),
    count=np.array([7, -1, 8]),
    epsilon=np.array([500, 500, 500]),
)


def test_a_header_is_canonical():
    assert canonical_json({"b": 1, "a": "ü"}) == b'{"a": "\\u00fc", "b": 1}'
    assert canonical_json(dict(reversed(HEADER.items()))) == canonical_json(HEADER)
    with pytest.raises(ValueError, match="Out of range"):
        canonical_json({"epsilon": float("nan")})


def test_it_can_be_computed_from_its_description():
    parts = [
        b"psd",
        json.dumps(HEADER, sort_keys=True).encode(),
        TREE.boxes.astype("<i4").tobytes(),
        TREE.parent.astype("<i4").tobytes(),
        TREE.level.astype("<i2").tobytes(),
        TREE.count.astype("<i8").tobytes(),
        TREE.epsilon.astype("<i8").tobytes(),
    ]
    content = b"".join(len(part).to_bytes(8, "little") + part for part in parts)
    expected = hashlib.sha256(b"psd public content 1\n" + content).hexdigest()
    assert content_digest(b"psd", HEADER, [TREE]) == expected


def other(name):
    """The tree with another value in one array."""
    values = getattr(TREE, name).copy()
    values[-1] += 1
    return replace(TREE, **{name: values})


CONTENTS = {
    "another kind": (b"psd series", HEADER, [TREE]),
    "another field": (b"psd", HEADER | {"epsilon": "2"}, [TREE]),
    "one field more": (b"psd", HEADER | {"crs": None}, [TREE]),
    "a text for a number": (b"psd", HEADER | {"format": "4"}, [TREE]),
    "no tree": (b"psd", HEADER, []),
    "two trees": (b"psd", HEADER, [TREE, TREE]),
    **{name: (b"psd", HEADER, [other(name)]) for name in ("boxes", "count", "epsilon")},
}


def test_other_content_has_another_digest():
    digests = {content_digest(*content) for content in CONTENTS.values()} | {
        content_digest(b"psd", HEADER, [TREE])
    }
    assert len(digests) == len(CONTENTS) + 1


def test_the_order_of_slices_counts():
    trees = [TREE, other("count")]
    assert content_digest(b"psd", HEADER, trees) != content_digest(b"psd", HEADER, trees[::-1])


def test_the_layout_in_memory_does_not_count():
    boxes = np.asfortranarray(TREE.boxes)
    assert content_digest(b"psd", HEADER, iter([replace(TREE, boxes=boxes)])) == content_digest(
        b"psd", HEADER, [TREE]
    )
