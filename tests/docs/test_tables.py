"""Measured tables: each file is described once, and can be read."""

import csv
import re

from support.pages import ROOT

DATA = ROOT / "docs" / "measured" / "data"


def rows_of(path):
    """Lines of a file, the first of which has the names of the columns."""
    with path.open(newline="", encoding="utf-8") as file:
        return [*csv.reader(file)]


def test_each_table_is_described_once_and_has_columns_of_its_names(subtests):
    linked = re.findall(r"\]\(([\w-]+\.csv)\)", (DATA / "README.md").read_text("utf-8"))
    paths = sorted(DATA.glob("*.csv"))
    assert sorted(linked) == [path.name for path in paths]
    for path in paths:
        with subtests.test(path.name):
            header, *rows = rows_of(path)
            assert len({*header}) == len(header)
            assert all(header)
            assert rows
            assert {len(row) for row in rows} == {len(header)}
            assert not {"*", "|"} & {*path.read_text("utf-8")}
