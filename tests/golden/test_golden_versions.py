"""A release of an earlier post-processing version answers what it answered then.

The file has the counts of one build of simulated points by the method cascade, whose estimates
version 2 changed. Its answers were written by the library before version 2.
"""

import json
from pathlib import Path

import pytest

import psd
from psd.release.post_processing import INFERENCE_VERSION, PostProcessing
from support.releases import changed

HERE = Path(__file__).parent
FILE = HERE / "cascade.inference-1.psd.parquet"
ANSWERS = HERE / "cascade.inference-1.answers.json"

BOXES = [
    (126.4, 37.0, 127.6, 38.0),
    (126.9, 37.4, 127.1, 37.6),
    (126.7, 37.25, 127.3, 37.75),
    (126.96, 37.54, 126.97, 37.55),
    (126.41, 37.01, 126.42, 37.02),
    (127.0, 37.2, 127.6, 37.4),
    (120.0, 30.0, 126.8, 37.9),
]
VIEWS = [
    PostProcessing(estimate="posterior", density="smooth"),
    PostProcessing(estimate="signed", density="uniform"),
    PostProcessing(estimate="least-squares", density="uniform", prune=20),
]


def answers_of(release):
    """Every number of the answer tables of some views."""
    answers = {}
    for view in VIEWS:
        table = changed(release, post_processing=view).query(BOXES).drop(columns="id")
        answers[f"{view.estimate} {view.density}"] = {
            name: values.tolist() for name, values in table.items()
        }
    return answers


def test_a_release_of_version_1_answers_as_before():
    release = psd.load(FILE)
    assert release.inference == 1
    stored, answers = json.loads(ANSWERS.read_text()), answers_of(release)
    assert list(answers) == list(stored)
    for view, table in answers.items():
        assert list(table) == list(stored[view])
        for name, values in table.items():
            if name in ("reliable", "quality"):
                assert values == stored[view][name]
            else:
                assert values == pytest.approx(stored[view][name], rel=1e-12, abs=1e-9)


def test_its_version_stays_when_it_is_written_again(tmp_path):
    psd.load(FILE).save(tmp_path / "again.psd.parquet")
    assert psd.load(tmp_path / "again.psd.parquet").inference == 1
    assert psd.load(tmp_path / "again.psd.parquet").digest == psd.load(FILE).digest


def test_the_present_version_has_other_estimates():
    release = psd.load(FILE)
    present = changed(release, inference=INFERENCE_VERSION)
    assert present.total != release.total
    assert present.total == pytest.approx(release.total, rel=0.01)


if __name__ == "__main__":
    ANSWERS.write_text(json.dumps(answers_of(psd.load(FILE)), indent=1) + "\n")
