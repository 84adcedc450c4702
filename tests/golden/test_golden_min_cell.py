"""A release with a smallest cell written once, of format 7, still loads, and answers the same.

``python tests/golden/test_golden_min_cell.py`` writes the file and the answers anew.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import psd
from psd.decompositions import method
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import tally_batches
from psd.privacy.budget import Budget
from psd.privacy.unit import PrivacyUnit
from psd.publish.drawing import draw_release

HERE = Path(__file__).parent
FILE = HERE / "smallest.psd.parquet"
ANSWERS = HERE / "smallest.answers.json"
BOXES = [(126.4, 37.0, 127.6, 38.0), (126.9, 37.4, 127.1, 37.6), (126.96, 37.54, 126.97, 37.55)]
# What the noise of the cells alone decides; intervals of newer versions may be others.
COLUMNS = ["estimate", "perturbation_error"]


def answers_of(release):
    """Estimates and their errors by the noise."""
    table = release.query(BOXES)
    return {name: table[name].tolist() for name in COLUMNS}


def test_the_stored_release_answers_the_stored_numbers():
    release = psd.load(FILE)
    assert (release.domain.min_cell, release.domain.cell_step) == ("250", (4096, 4096))
    stored, answers = json.loads(ANSWERS.read_text()), answers_of(release)
    assert release.digest == stored.pop("digest")
    for name, values in answers.items():
        assert values == pytest.approx(stored[name], rel=1e-12, abs=1e-9), name


def test_it_is_written_as_it_was(tmp_path):
    psd.load(FILE).save(tmp_path / "r.psd.parquet")
    assert psd.load(tmp_path / "r.psd.parquet").digest == psd.load(FILE).digest


def write():
    """Write the file and the answers; other noise each time."""
    domain = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0), min_cell=250)
    random = np.random.default_rng(1)
    rows = Batch(x=random.normal(127, 0.05, 3_000), y=random.normal(37.5, 0.05, 3_000))
    release = draw_release(
        tally_batches([rows], domain),
        domain,
        budget=Budget(10**9),
        method=method("cascade"),
        unit=PrivacyUnit(),
    )
    release.save(FILE, overwrite=True)
    stored = {"digest": release.digest, **answers_of(release)}
    ANSWERS.write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    write()
