"""A private tally is not read as records, whatever its name."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import psd
from psd.errors import InputDataError
from psd.ingest.engines import _spark_tables
from psd.ingest.sources import Columns, read
from psd.ingest.tally_file import write_tally
from support.tallies import DOMAIN, VARIANTS, counted

COUNTS_AS_RECORDS = Columns(x="count", y="row")


@pytest.fixture(params=["a.tally", "a.parquet", "a.gpkg", "a"])
def tally(request, tmp_path):
    path = tmp_path / "in" / request.param
    path.parent.mkdir()
    write_tally(counted(VARIANTS["rows"]), path)
    return path


def refused(data):
    with pytest.raises(InputDataError, match="is a private tally and holds no records"):
        list(read(data, COUNTS_AS_RECORDS, DOMAIN))


def test_a_tally_is_not_read_as_records(tally):
    """One record changes the count of a cell by one, so the loss would be twice epsilon."""
    for data in (tally, tally.parent, f"{tally.parent}/[a]*"):
        refused(data)


@pytest.mark.parametrize("key", [b"PRIVATE psd tally", b"PRIVATE psd records", b"private"])
def test_any_private_mark_of_a_footer_is_refused(key, tmp_path):
    table = pa.table({"count": [1.0], "row": [2.0]})
    pq.write_table(table.replace_schema_metadata({key: b"{}", b"geo": b"{}"}), tmp_path / "p")
    refused(tmp_path / "p")


@pytest.mark.parametrize("variant", ["rows", "carried"])
def test_spark_refuses_the_columns_of_a_tally(variant, tmp_path):
    """Spark does not show the footer."""
    write_tally(counted(VARIANTS[variant]), tmp_path / "t.parquet")

    class Reader:
        def parquet(self, path):
            frame = type("Frame", (), {})()
            frame.columns = pq.read_schema(path).names
            return frame

    session = type("Session", (), {"read": Reader()})()
    with pytest.raises(InputDataError, match="is a private tally and holds no records"):
        _spark_tables._frame(session, tmp_path / "t.parquet", Columns())


def test_an_answer_is_not_drawn_from_a_tally(tally):
    ledger = psd.Ledger.create(tally.parents[1] / "l")
    ledger.register("rows", 1, columns=COUNTS_AS_RECORDS)
    account = psd.Account(ledger, "rows")
    with pytest.raises(InputDataError, match="could not be read to its end"):
        psd.ask(tally, box=(0, 0, 9, 9), epsilon=1, account=account, x="count", y="row")
    assert ledger.state().charges == {}
