"""Planted bugs of merged tallies: parts twice, and bounds that do not hold for all parts."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa

from privacy.planted_bugs.bug import planted, replaced
from psd.ingest import partial_tally
from psd.ingest.code_ranks import CodeRanks
from psd.ingest.sources import parquet
from psd.ingest.sources._csv_query import CsvQuery

USERS = "tests/privacy/test_merge_replay.py::test_a_user_of_several_parts_costs_epsilon"
UNIT = "tests/unit/ingest/test_partial_tally.py::"


@planted(test=USERS + "[add-2]", like="bounds per part where users are in several")
def k_of_one_part():
    """The bound of a merged tally is the largest of its parts, not their sum."""

    def largest(parts):
        return max(part.contributions for part in parts)

    return replaced(partial_tally, "combined_contribution_bound", largest)


@planted(
    test="tests/privacy/test_counting_replay.py::test_no_answer_tells_more_than_epsilon"
    "[privtree-3-2-240-few-sorted]",
    like="counts in two steps, one of which is taken twice",
)
def ranks_count_twice():
    """A record counts twice before a cell that is not the last of its family."""
    original = CodeRanks.ranks

    def doubled(self, codes):
        return np.minimum(2 * original(self, codes), len(self))

    return replaced(CodeRanks, "ranks", doubled)


@planted(
    test="tests/unit/ingest/sources/test_csv.py::test_many_rows_are_left_out_by_all_threads",
    like="the same row read twice: a second query after one that left rows out",
)
def second_query_of_all_rows():
    """The second query of a CSV file reads all rows, in place of those that were left out."""
    return replaced(CsvQuery, "left_out", lambda self: self.text(with_texts=True))


@planted(
    test=UNIT + "test_no_part_is_in_a_merged_tally_twice",
    like="the same row read twice: overlapping patterns, links, a file and its folder",
)
def part_merged_twice():
    """A part is merged twice, and its rows count double."""
    return replaced(partial_tally, "_check_parts", lambda origins, on_copy: None)


@planted(
    test=UNIT + "test_tallies_that_do_not_join",
    like="the smallest hashes of a union, of two hashes",
)
def hashes_of_two_keys():
    """Rows that were chosen by different keys are merged as if by one."""
    return replaced(partial_tally, "_check_user_rows", lambda origins, *, complete: None)


@planted(
    test="tests/unit/ingest/sources/test_tally_marks.py::test_a_tally_is_not_read_as_records",
    like="a tally behind a pattern, read with x=count: a loss of twice epsilon",
)
def tallies_read_as_records():
    """Cells of a tally are counted as records, at coordinates that are counts."""
    return replaced(parquet, "refuse_private_footer", lambda path, keys: None)


@planted(test=USERS + "[carry-1]", like="ids that are told apart by a short hash")
def users_by_a_digest():
    """Two users share a digest and a bound: one's rows return when the other leaves."""
    original = partial_tally.merge_user_rows

    def digested(part):
        names = pa.array(["v" if name == "u" else name for name in part.names.to_pylist()])
        different = names.unique()
        at = np.array([different.index(name).as_py() for name in names], np.int64)
        return dataclasses.replace(part, names=different, users=at[part.users])

    def joined(several, *terms):
        return original([digested(part) for part in several], *terms)

    return replaced(partial_tally, "merge_user_rows", joined)
