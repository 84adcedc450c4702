"""Checks of methods, sources and export formats of any package, and test data.

`check_method` checks the contract of a decomposition and its privacy on all small data sets;
`check_source` and `check_export` check the other kinds. Tests may use the other names too: samplers
that record and replay, small data sets, releases of counts. A test of another package is one line:

    def test_stripes():
        psd.testing.check_method(Stripes(doublings=2))
"""

from psd.publish.insecure import SeededSampler
from psd.testing.data import (
    data_sets,
    neighbour_pairs,
    neighbours,
    release_from_counts,
    small_domain,
    small_tally,
)
from psd.testing.exact_loss import exact_loss, spent_by_cell, walks
from psd.testing.files import check_export, check_source
from psd.testing.method import check_method
from psd.testing.transcripts import (
    SCRIPTS,
    Draw,
    LeakError,
    RecordingSampler,
    ReplayingSampler,
    Run,
    Script,
    compare_runs,
    replay_loss,
    run_method,
    transcript_loss,
)

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
