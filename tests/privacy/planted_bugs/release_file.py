"""Planted bugs of the release file: what is written, and what is believed of one that is read."""

from __future__ import annotations

import contextlib
import dataclasses
import json

import pandas as pd

import psd.publish.build
import psd.release.file
import psd.space.box_tree
from privacy.planted_bugs.mutant import Mutant, replaced
from psd.api.release import Release
from psd.errors import PsdError, ReleaseFormatError
from psd.space.domain import Domain
from psd.testing import RecordingSampler
from support.releases import changed

SQUARE = Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(4, 4))

# Checks


def _refused(ask, what):
    try:
        ask()
    except ReleaseFormatError:
        return
    raise AssertionError(f"{what} was taken")


def _release():
    return Release.from_counts(psd.grid_tree(SQUARE, 2), [1, 2, 3, 4], "1", domain=SQUARE)


def only_real_noise_is_saved(_, folder):
    table = pd.DataFrame({"lon": [1.5], "lat": [1.5]})
    noise = RecordingSampler()
    release = psd.build(table, domain=SQUARE, epsilon=1, method="quadtree", sampler=noise)
    with contextlib.suppress(PsdError):
        release.save(folder / "release")
    assert not (folder / "release").exists()


def one_reading_of_a_header(*_):
    for text in ('{"epsilon": "1", "epsilon": "9"}', '{"epsilon": NaN}', '{"epsilon": -Infinity}'):
        _refused(lambda text=text: psd.release.file.strict_json(text.encode()), text)


def _header(**changes):
    header = json.loads(json.dumps(psd.release.file.header_of(_release())))
    psd.release.file.arguments(dict(header))
    _refused(lambda: psd.release.file.arguments({**header, **changes}), str(changes))


def other_fields_are_refused(*_):
    _header(rows=1234)


def other_versions_are_refused(*_):
    _header(format=psd.release.file.FORMAT + 1)


def cells_that_overlap_are_refused(*_):
    tree = _release().tree
    boxes = tree.boxes.copy()
    boxes[-1] = boxes[-2]
    _refused(
        lambda: psd.space.box_tree.check_tree(
            dataclasses.replace(tree, boxes=boxes), SQUARE.lattice
        ),
        "a tree of overlapping cells",
    )


# Bugs


def replayed_noise_is_the_curators():
    original = psd.publish.build.release_of

    def release_of(*arguments, **options):
        return changed(original(*arguments, **options), source="curator")

    return replaced(psd.publish.build, "release_of", release_of)


def any_json():
    return replaced(psd.release.file, "strict_json", json.loads)


def _arguments(change):
    original = psd.release.file.arguments
    return replaced(psd.release.file, "arguments", lambda header: original(change(header)))


def unknown_fields_are_skipped():
    known = psd.release.file._FIELDS.keys() | {"format", "domain"}
    return _arguments(lambda header: {k: v for k, v in header.items() if k in known})


def versions_are_not_looked_at():
    return _arguments(lambda header: {**header, "format": psd.release.file.FORMAT})


def siblings_may_overlap():
    return replaced(psd.space.box_tree, "_children_tile", lambda tree: True)


FILE = "tests/unit/release/test_file.py::"

MUTANTS = (
    Mutant(
        id="replayed-noise-is-saved",
        wrong="a release of scripted noise can be saved like a real one",
        like="releases with a seed, which anybody can subtract",
        plant=replayed_noise_is_the_curators,
        check=only_real_noise_is_saved,
        test="tests/unit/publish/test_build.py::test_a_release_of_other_noise_is_a_replay_and_is_not_saved",
    ),
    Mutant(
        id="header-read-twice",
        wrong="keys that stand twice, NaN and infinity pass as JSON",
        like="two readers of one file that see another epsilon",
        plant=any_json,
        check=one_reading_of_a_header,
        test=FILE + "test_headers_that_are_no_strict_json_are_refused",
    ),
    Mutant(
        id="unknown-fields-skipped",
        wrong="fields that nobody knows are skipped when a release is read",
        like="an allow-list that is none",
        plant=unknown_fields_are_skipped,
        check=other_fields_are_refused,
        test=FILE + "test_other_headers_are_refused",
    ),
    Mutant(
        id="version-of-the-future",
        wrong="a format of a later version is read as if it were this one",
        like="fields whose meaning changed",
        plant=versions_are_not_looked_at,
        check=other_versions_are_refused,
        test=FILE + "test_other_headers_are_refused",
    ),
    Mutant(
        id="cells-of-a-file-overlap",
        wrong="children of a file that do not tile their parent are taken",
        like="foreign and damaged files",
        plant=siblings_may_overlap,
        check=cells_that_overlap_are_refused,
        test=FILE + "test_other_columns_and_values_are_refused",
    ),
)
