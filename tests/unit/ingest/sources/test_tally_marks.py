"""A private tally is not read as records, whatever its name."""

from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import psd
from psd.apps.spark import tables
from psd.errors import InputDataError
from psd.ingest.sources import Columns, read
from psd.ingest.tally_file import write_tally
from support.tallies import DOMAIN, VARIANTS, counted

COUNTS_AS_RECORDS = Columns(x="count", y="row")


def test_a_tally_is_not_read_as_records(tmp_path):
    """One record changes the count of a cell by one, so the loss would be twice epsilon."""
    ledger = psd.Ledger.create(tmp_path / "l")
    ledger.register("rows", 1, columns=COUNTS_AS_RECORDS)
    account = psd.ledger.Account(ledger, "rows")
    for name in ("a.tally", "a.parquet", "a.gpkg", "a"):
        path = tmp_path / f"in {name}" / name
        path.parent.mkdir()
        write_tally(counted(VARIANTS["rows"]), path)
        for data in (path, path.parent, f"{path.parent}/[a]*"):
            refused(data)
        with pytest.raises(InputDataError, match="could not be read to its end"):
            psd.ask(path, area=(0, 0, 9, 9), epsilon=1, account=account, x="count", y="row")
        assert ledger.state().charges == {}


def refused(data):
    with pytest.raises(InputDataError, match="is a private tally and holds no records"):
        list(read(data, COUNTS_AS_RECORDS, DOMAIN))


def test_any_private_mark_of_a_footer_is_refused(tmp_path):
    table = pa.table({"count": [1.0], "row": [2.0]})
    for key in (b"PRIVATE psd tally", b"PRIVATE psd records", b"private"):
        pq.write_table(table.replace_schema_metadata({key: b"{}", b"geo": b"{}"}), tmp_path / "p")
        refused(tmp_path / "p")


@pytest.mark.parametrize("variant", ["rows", "carried", "values", "regions-values"])
def test_the_columns_of_a_tally_are_refused(tmp_path, variant):
    """Spark does not show the footer, and a table has none."""

    def parquet(path):
        return SimpleNamespace(columns=pq.read_schema(path).names)

    session = SimpleNamespace(read=SimpleNamespace(parquet=parquet))
    path = tmp_path / "tally.parquet"
    write_tally(counted(VARIANTS[variant]), path)
    with pytest.raises(InputDataError, match="is a private tally and holds no records"):
        tables._frame(session, path, Columns())
    for table in (pq.read_table(path), pd.read_parquet(path)):
        refused(table)
