"""A release file written once still loads, and answers what it answered then.

The file and the answers are kept beside this module. They change only when the file format or
the inference changes on purpose; then ``python tests/golden/test_golden_release.py`` writes
both again, and the change is explained where it is recorded.
"""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import psd
from psd.errors import ReleaseFormatError
from psd.privacy.unit import PrivacyUnit
from psd.release.post_processing import PostProcessing
from support.releases import changed

HERE = Path(__file__).parent
FILE = HERE / "seoul.psd.parquet"
ANSWERS = HERE / "seoul.answers.json"

# The same release in format 1, which had no view, in format 2, which had fewer units, and in
# format 3, which had no digest.
FORMAT_1 = HERE / "seoul.format-1.psd.parquet"
FORMAT_2 = HERE / "seoul.format-2.psd.parquet"
FORMAT_3 = HERE / "seoul.format-3.psd.parquet"

# An office may have printed it.
DIGEST = "edd0cdbda8bb09590d7e7d8c9b23b59a2283069323f58ee1e15c0082e8eb7eca"

BOXES = [
    (126.4, 37.0, 127.6, 38.0),
    (126.9, 37.4, 127.1, 37.6),
    (126.7, 37.25, 127.3, 37.75),
    (126.41, 37.01, 126.42, 37.02),
    (127.0, 37.5, 127.6, 38.0),
    (120.0, 30.0, 126.8, 37.9),
]


def made_once():
    """Quadtree of 16 x 16 leaves: a hill of counts, with fixed noise of both signs."""
    domain = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0))
    tree = psd.grid_tree(domain, 16)
    width, height = domain.lattice
    west, south, east, north = (tree.boxes.astype(float) / [width, height, width, height]).T
    share = (east - west) * (north - south)
    away = np.hypot((west + east) / 2 - 0.5, (south + north) / 2 - 0.5)
    noise = np.arange(len(tree)) * 7919 % 23 - 11
    count = np.floor(20_000 * share * np.exp(-4 * away)).astype(int) + noise
    epsilon = np.array(["0.1", "0.1", "0.2", "0.2", "0.4"])[tree.level]
    return psd.Release.from_counts(
        tree, count, epsilon, domain=domain, unit=PrivacyUnit(kind="user", max_contributions=2)
    )


def answers_of(release):
    """Every number of the answer table."""
    table = release.query(BOXES, confidence=0.9).drop(columns="id")
    return {name: values.tolist() for name, values in table.items()}


@pytest.mark.parametrize("path", [FILE, FORMAT_3, FORMAT_2])
def test_the_stored_release_answers_the_stored_numbers(path):
    stored = json.loads(ANSWERS.read_text())
    answers = answers_of(psd.Release.load(path))
    assert list(answers) == list(stored)
    for name in ("reliable", "quality"):
        assert answers.pop(name) == stored.pop(name)
    for name, values in answers.items():
        assert values == pytest.approx(stored[name], rel=1e-12, abs=1e-12)


def test_the_stored_release_is_the_one_that_was_made():
    stored, made = psd.Release.load(FILE), made_once()
    for name in ("boxes", "parent", "level", "count", "epsilon"):
        assert np.array_equal(getattr(stored.tree, name), getattr(made.tree, name))
    assert stored.domain == made.domain
    assert (stored.unit.kind, stored.unit.max_contributions) == ("user", 2)
    assert stored.record.epsilon == 1_000_000_000
    assert stored.post_processing == PostProcessing(
        estimate="least-squares", density="uniform", prune=0
    )


def test_a_file_of_format_1_is_refused_by_its_number():
    with pytest.raises(ReleaseFormatError, match=r"format version 1 is not known.* reads 2 to 11"):
        psd.Release.load(FORMAT_1)


def test_what_each_format_added():
    assert pq.read_table(FORMAT_1).equals(pq.read_table(FORMAT_2))
    assert pq.read_table(FORMAT_2).equals(pq.read_table(FORMAT_3))
    assert pq.read_table(FORMAT_3).equals(pq.read_table(FILE))
    footers = [pq.read_metadata(p).metadata for p in (FORMAT_1, FORMAT_2, FORMAT_3, FILE)]
    first, second, third, fourth = (json.loads(footer[b"psd"]) for footer in footers)
    view = {"estimate": "least-squares", "density": "uniform", "prune": 0}
    added = {"format": 2, "view": view, "covariate": None, "library": second["library"]}
    assert second == first | added
    added = {"format": 3, "weight": 0, "time_zone": None, "boundary": False}
    assert third == second | added | {"library": third["library"]}
    assert fourth == third | {"format": 4, "library": fourth["library"]}
    assert [b"psd-digest" in footer for footer in footers] == [False, False, False, True]


@pytest.mark.parametrize("path", [FORMAT_2, FORMAT_3])
def test_an_older_file_is_written_anew_in_format_4(path, tmp_path):
    psd.Release.load(path).save(tmp_path / "r.psd.parquet")
    written = pq.read_schema(tmp_path / "r.psd.parquet").metadata[b"psd"]
    assert json.loads(written)["format"] == 4


def test_the_digest_stays_what_it_was():
    assert psd.Release.load(FILE).digest == DIGEST
    assert changed(psd.Release.load(FILE)).digest == DIGEST


def test_the_stored_file_is_small():
    assert FILE.stat().st_size < 20_000


if __name__ == "__main__":
    made_once().save(FILE, overwrite=True)
    ANSWERS.write_text(json.dumps(answers_of(made_once()), indent=1) + "\n")
