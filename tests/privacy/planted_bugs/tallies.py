"""Planted bugs of merged tallies: parts twice, and bounds that do not hold for all parts."""

import dataclasses

import numpy as np
import pyarrow as pa

from privacy.planted_bugs.bug import around, instead, like, planted, replaced
from psd.ingest.partial_tally import EMPTY

USERS = "tests/privacy/test_merge_replay.py::test_a_user_of_several_parts_costs_epsilon"
VALUES = "tests/privacy/test_merge_replay.py::"
VALUES += "test_a_record_of_a_part_costs_epsilon_whatever_its_value_is"
COUNTING = "tests/privacy/test_counting_replay.py::"
UNIT = "tests/unit/ingest/test_partial_tally.py::"
REFUSALS = "tests/privacy/test_refusals.py::"


@planted(test=USERS + "[8-add-2]", like="bounds per part where users are in several")
@instead("psd.ingest.partial_tally.combined_contribution_bound")
def k_of_one_part(parts):
    """The bound of a merged tally is the largest of its parts, not their sum."""
    return max(part.contributions for part in parts)


@planted(test=VALUES, like="noise for a part of what a record changes")
@around("psd.ingest.partial_tally.add_tallies")
def merged_values_weigh_one(original, tallies):
    """Merged sums of weights have the noise of one weight, though a record has 720,720."""
    return dataclasses.replace(original(tallies), record_weight=1)


@planted(test=COUNTING + "test_no_answer_tells_more_than_epsilon[privtree-3-2-2400-0]")
@like("counts in two steps, one of which is taken twice")
@around("psd.ingest.quadrant_codes.CodeRanks.ranks")
def ranks_count_twice(original, self, codes):
    """A record counts twice before a cell that is not the last of its family."""
    return np.minimum(2 * original(self, codes), len(self))


@planted(test="tests/unit/ingest/sources/test_csv.py::test_many_rows_are_left_out_by_all_threads")
@like("the same row read twice: a second query after one that left rows out")
@instead("psd.ingest.sources.csv.CsvQuery.left_out")
def second_query_of_all_rows(self):
    """The second query of a CSV file reads all rows, in place of those that were left out."""
    return self.text(with_texts=True)


@planted(test=UNIT + "test_no_part_is_in_a_merged_tally_twice")
@like("the same row read twice: overlapping patterns, links, a file and its folder")
def part_merged_twice():
    """A part is merged twice, and its rows count double."""
    return replaced("psd.ingest.partial_tally._check_parts", lambda origins, on_copy: None)


@planted(test=REFUSALS + "test_parts_of_one_name_are_refused_whether_or_not_they_have_records")
@like("a free refusal that tells whether a file has a record")
@around("psd.ingest.partial_tally._check_parts")
def empty_parts_lose_their_name(original, origins, on_copy):
    """Two parts of one name are merged if neither has a record, and refused otherwise."""
    names = [(EMPTY,) if EMPTY in each.names else each.names for each in origins]
    pairs = zip(origins, names, strict=True)
    original([dataclasses.replace(each, names=own) for each, own in pairs], on_copy)


@planted(test=UNIT + "test_tallies_that_do_not_join")
@like("the smallest hashes of a union, of two hashes")
def hashes_of_two_keys():
    """Rows that were chosen by different keys are merged as if by one."""
    return replaced("psd.ingest.partial_tally._check_user_rows", lambda origins, *, complete: None)


@planted(test="tests/unit/ingest/sources/test_tally_marks.py::test_a_tally_is_not_read_as_records")
@like("a tally behind a pattern, read with x=count: a loss of twice epsilon")
def tallies_read_as_records():
    """Cells of a tally are counted as records, at coordinates that are counts."""
    return replaced("psd.ingest.sources.parquet.refuse_private_footer", lambda path, keys: None)


@planted(test=USERS + "[8-carry-1]", like="ids that are told apart by a short hash")
@around("psd.ingest.partial_tally.merge_user_rows")
def users_by_a_digest(original, several, *terms):
    """Two users share a digest and a bound: one's rows return when the other leaves."""

    def digested(part):
        names = pa.array(["v" if name == "u" else name for name in part.names.to_pylist()])
        different = names.unique()
        at = np.array([different.index(name).as_py() for name in names], np.int64)
        return dataclasses.replace(part, names=different, users=at[part.users])

    return original([digested(part) for part in several], *terms)
