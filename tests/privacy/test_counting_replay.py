"""Record and replay, with records that are counted as sorted codes.

Small lattices are counted in an array. Here they are counted like large ones: a code for each
record, in the order of repeated halves, and no count of any cell.
"""

import numpy as np
import pytest

import psd.testing.transcripts
from psd.decompositions.auto import Auto
from psd.decompositions.cascade import Cascade
from psd.decompositions.hilbert_rtree import HilbertRTree
from psd.decompositions.kd_standard import KDStandard
from psd.decompositions.privtree import PrivTree
from psd.decompositions.quadtree import Quadtree
from psd.ingest.quadrant_codes import QuadrantCodes, QuadrantOrder
from psd.ingest.tally import Batch, Tally
from psd.ingest.tally_builder import TallyBuilder
from psd.privacy.unit import PrivacyUnit
from psd.testing import replay_loss, small_domain, small_tally

METHODS = [
    Auto(),
    Cascade(signal=1),
    Quadtree(height=2),
    PrivTree(height=2),
    KDStandard(height=1),
    HilbertRTree(order=1),
]


def coded_tally(side, rows, k=1):
    """Count records by their coordinates, as sorted codes."""
    builder = TallyBuilder(small_domain(side), unit=PrivacyUnit())
    y, x = np.divmod(np.array(rows, np.int64), side)
    for part in (slice(1), slice(1, None)):
        builder.add_batch(Batch(x=x[part] + 0.5, y=y[part] + 0.25))
    codes = builder.build().quadrant_codes(QuadrantOrder((side, side)))
    assert isinstance(codes, QuadrantCodes)
    assert codes.counts is None
    assert len(codes.entries) == len(rows)  # not their codes, which would be sorted
    return Tally.of_codes(codes, contributions=k, report={})


SPACES = [(3, 2, 2_400, 0)]
MANY = [(*space, few) for few in (2**17, 0) for space in ((3, 1, 30), (3, 2, 240), (4, 1, 240))]


@pytest.mark.parametrize(
    ("side", "k", "every", "few"), SPACES + [pytest.param(*m, marks=pytest.mark.deep) for m in MANY]
)
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_no_answer_tells_more_than_epsilon(method, side, k, every, few, monkeypatch):
    expected = replay_loss(method, side, k, every=every)
    monkeypatch.setattr("psd.ingest.quadrant_codes._MAX_DENSE", 0)
    monkeypatch.setattr("psd.ingest.quadrant_codes._FEW", few)
    monkeypatch.setattr("psd.ingest.quadrant_codes._LARGEST_PART", 1)
    monkeypatch.setattr(psd.testing.transcripts, "small_tally", coded_tally)
    assert replay_loss(method, side, k, every=every) == expected
    assert expected[0] <= 1
    assert expected[1] > 0


def test_the_counts_are_those_of_the_array(monkeypatch):
    monkeypatch.setattr("psd.ingest.quadrant_codes._MAX_DENSE", 0)
    for rows in ((), (4,), (4, 4, 4), (0, 8, 2), (0, 0, 8)):
        coded, plain = coded_tally(3, rows), small_tally(3, rows)
        for name in ("columns", "rows", "counts"):
            np.testing.assert_array_equal(getattr(coded, name), getattr(plain, name))
