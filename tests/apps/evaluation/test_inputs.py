"""Inputs of every kind: psd check evaluate and psd check compare read what psd build reads."""

import pyarrow as pa
import pytest

from support.cli_runner import passes
from support.input_kinds import BUILD, KINDS, ROWS, builds_all_rows
from support.postgres import execute, ingest

COMPARE = "-o c.csv --methods grid --epsilons 1 --runs 1 --jobs 1 --bounds -4 -4 4 4"

pytestmark = pytest.mark.deep


@pytest.mark.parametrize("given", KINDS)
def test_the_three_commands_read_every_kind(here, given):
    (here / "d").mkdir()
    KINDS[given]()
    builds_all_rows(given)
    assert "score" in passes(f"check evaluate r {given}")
    assert "score" in passes(f"check compare {given} {COMPARE}")


def test_the_same_table_of_postgis(postgis, here):
    execute(postgis, "DROP TABLE IF EXISTS runs")
    ingest(postgis, "runs", pa.Table.from_pandas(ROWS))
    passes("build", postgis, "--table", "runs", "-o", "r", *BUILD)
    for given in (("--table", "public.runs"), ("--query", "SELECT * FROM runs")):
        assert "score" in passes("check evaluate r", postgis, *given)
    passes(f"check compare {postgis} --table runs {COMPARE}")
