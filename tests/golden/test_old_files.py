"""Files from before all formats began at 1 are refused by name, and by the commit that reads them.

The files in ``old`` were written by the last version that had their formats.
"""

import re
import shutil

import pytest

import psd
from psd.errors import InputDataError, LedgerError, ReleaseFormatError, WriteError
from psd.ingest.tally_file import read_origins, read_tally
from psd.version import LAST_READER
from support.cli_runner import fails
from support.golden import GOLDEN

OLD = GOLDEN / "old"

# File, family, format, and who reads it.
FILES = [
    ("about.psd.parquet", "release", 9, ReleaseFormatError, psd.load),
    ("days.psd.parquet", "series", 2, ReleaseFormatError, psd.load),
    ("rows.tally", "tally", 3, InputDataError, read_tally),
    ("rows.tally", "tally", 3, InputDataError, lambda path: read_origins([path])),
    ("city.ledger", "ledger", 1, LedgerError, lambda path: psd.Ledger(path).state()),
    ("city.ledger", "ledger", 1, LedgerError, lambda path: psd.Ledger(path).register("a", 1)),
]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """Copies, since a ledger that is opened may be changed."""
    for path in OLD.iterdir():
        shutil.copy(path, tmp_path / path.name)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("name", "family", "number", "error", "read"), FILES)
def test_an_old_file_is_refused_in_one_sentence(name, family, number, error, read, tmp_path):
    sentence = (
        f"{name}:? (it )?has the old {family} format {number}; this version reads the new "
        f"{family} format 1 alone, and commit {LAST_READER} is the last that reads the old ones"
    )
    more = "; what was spent stays spent, and a new ledger over the same data is no fresh budget"
    with pytest.raises(error, match=f"{sentence}{more if family == 'ledger' else ''}$") as caught:
        read(name)
    assert "\n" not in str(caught.value)
    assert (tmp_path / name).read_bytes() == (OLD / name).read_bytes()


def test_an_old_ledger_pays_nothing_and_is_never_replaced(tmp_path):
    (tmp_path / "p.csv").write_text("lon,lat\n1,1\n")
    build = "build p.csv --bounds 0 0 4 4 --epsilon 0.1 --overwrite -o"
    paid = fails(9, f"{build} r.psd.parquet --ledger city.ledger --dataset visits")
    assert re.search("old ledger format 1; .* is no fresh budget", " ".join(paid.split()))
    assert not (tmp_path / "r.psd.parquet").exists()
    assert "never overwritten" in fails(6, f"{build} city.ledger")
    with pytest.raises(WriteError, match="exists"):
        psd.Ledger.create("city.ledger")
    assert (tmp_path / "city.ledger").read_bytes() == (OLD / "city.ledger").read_bytes()
