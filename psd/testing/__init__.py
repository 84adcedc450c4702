"""Checks for methods, sources and export formats, here and in other packages; and test data.

`check_method` runs the contract of a decomposition, with the privacy of all small data sets, on a
method of any package; `check_source` and `check_export` do so for the other kinds. The rest is
what they are made of: samplers that record and replay, small data sets, and releases from counts.

A test of another package is one line:

    def test_stripes():
        psd.testing.check_method(Stripes(doublings=2))
"""

from psd.auditing.transcripts import (
    SCRIPTS,
    Draw,
    LeakError,
    RecordingSampler,
    ReplayingSampler,
    Script,
)
from psd.publish.insecure import SeededSampler
from psd.testing.exact_loss import exact_loss, walks
from psd.testing.export import check_export
from psd.testing.method import check_method
from psd.testing.releases import release_from_counts
from psd.testing.replay import Run, compare_runs, replay_loss, run_method, transcript_loss
from psd.testing.small import data_sets, neighbour_pairs, neighbours, small_domain, small_tally
from psd.testing.source import check_source
from psd.testing.spending import spent_by_cell

__all__ = [
    "SCRIPTS",
    "Draw",
    "LeakError",
    "RecordingSampler",
    "ReplayingSampler",
    "Run",
    "Script",
    "SeededSampler",
    "check_export",
    "check_method",
    "check_source",
    "compare_runs",
    "data_sets",
    "exact_loss",
    "neighbour_pairs",
    "neighbours",
    "release_from_counts",
    "replay_loss",
    "run_method",
    "small_domain",
    "small_tally",
    "spent_by_cell",
    "transcript_loss",
    "walks",
]
