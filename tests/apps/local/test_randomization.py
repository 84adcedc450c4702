"""One report for each row, and one device as the library runs it."""

import json
import math
import os
import re
import subprocess
import sys
import threading

import pytest

from psd.apps.local import device
from psd.apps.local.aggregation import count_support
from psd.apps.local.campaigns import load_campaign
from psd.apps.local.collection import collect
from psd.apps.local.device import NANO
from psd.apps.local.randomization import RowStore, answer, client, create_store, randomize
from psd.errors import BudgetError, InputDataError, LedgerError, ParameterError, WriteError
from support.local import GRID, HASHING, KARY, campaign, campaign_bytes

GROUPS = ((500_000, GRID, HASHING), (500_000, ["0", "1", "2", "3"], KARY))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "c.json").write_bytes(campaign_bytes(GROUPS, nano_epsilon=8 * NANO))
    return tmp_path


def rows(folder, text, **options):
    (folder / "rows.csv").write_bytes(text.encode() if isinstance(text, str) else text)
    out = folder / "out.jsonl"
    count = randomize(str(folder / "c.json"), str(folder / "rows.csv"), str(out), **options)
    lines = out.read_text().splitlines()
    assert len(lines) == count
    return lines


def test_every_row_has_a_report(folder):
    points = ["1,1", "7,3", "99,99", ",", "nan,1", "a,b", "1_0,1", "inf,2", "1"]
    lines = rows(folder, "lon,lat\n" + "\n".join(points * 30) + "\n")
    assert len(lines) == 270
    nonces = [json.loads(line)["nonce"] for line in lines]
    assert nonces == sorted(set(nonces))
    done = collect(str(folder / "c.json"), [str(folder / "out.jsonl")], str(folder / "in"))
    assert done.reports == 270
    one = campaign(GROUPS, nano_epsilon=8 * NANO)
    groups = count_support(one, folder / "in").groups
    outside = groups[1].support[-1] / groups[1].reports
    assert abs(outside - 7 / 9) < 0.2


def test_tables_that_cannot_be_read_other_columns_and_existing_files(folder):
    for content, words in [
        ("a,b\n1,2\n", "columns lon and lat"),
        ("", "columns lon and lat"),
        (b"lon,lat\n\xff,1\n", "CSV in UTF-8"),
        ('lon,lat\n"1,1\n', "CSV in UTF-8"),
    ]:
        with pytest.raises(InputDataError, match=words):
            rows(folder, content)
        assert not (folder / "out.jsonl").exists()
    with pytest.raises(InputDataError):
        randomize(str(folder / "c.json"), str(folder / "none"), str(folder / "x"))
    assert rows(folder, "lon,lat\n") == []
    with pytest.raises(WriteError):
        rows(folder, "lon,lat\n1,1\n")
    assert len(rows(folder, "a,b\n1,1\n", x="a", y="b", overwrite=True)) == 1
    later = ((500_000, None, None), (500_000, GRID, HASHING))
    (folder / "c.json").write_bytes(campaign_bytes(later))
    with pytest.raises(ParameterError, match="store must be given"):
        rows(folder, "lon,lat\n1,1\n")


def test_the_device_of_the_library(folder):
    store, path = str(folder / "store"), str(folder / "c.json")
    create_store(store, "8")
    first = answer(path, store, 1, 1)
    assert re.match(r'\{"psd-report":1', first)
    assert answer(path, store, math.nan, 1) == first
    with pytest.raises(LedgerError, match="exists"):
        create_store(store, "8")
    with pytest.raises(ParameterError, match="cap must be"):
        create_store(store + "2", "-1")
    with pytest.raises(LedgerError, match="missing"):
        answer(path, store + "2", 1, 1)
    (folder / "d.json").write_bytes(campaign_bytes(GROUPS, title="d"))
    with pytest.raises(BudgetError, match="more epsilon"):
        answer(str(folder / "d.json"), store, 1, 1)
    client(str(folder / "device.py"))
    assert not re.findall("import psd|from psd", (folder / "device.py").read_text())
    with pytest.raises(WriteError):
        client(str(folder / "device.py"))


def in_rounds(folder, **options):
    return rows(folder, "lon,lat\n" + "1,1\n" * 60, store=str(folder / "s"), **options)


FIRST = ((500_000, GRID, HASHING), (500_000, None, None))


def second(folder):
    """The second round of the campaign: its first group is closed."""
    later = campaign_bytes(FIRST[::-1], earlier=[campaign(FIRST).digest])
    (folder / "c.json").write_bytes(later)


def test_rows_keep_their_groups_over_rounds_and_answer_once(folder):
    (folder / "c.json").write_bytes(campaign_bytes(FIRST))
    first = in_rounds(folder)
    with pytest.raises(LedgerError, match="have answered this campaign"):
        in_rounds(folder, overwrite=True)
    second(folder)
    assert len(first) + len(in_rounds(folder, overwrite=True)) == 60
    digests = [campaign(FIRST).digest, load_campaign(str(folder / "c.json")).digest]
    again = campaign_bytes(FIRST, title="again", earlier=digests)
    (folder / "c.json").write_bytes(again)
    assert in_rounds(folder, overwrite=True) == []
    assert (folder / "s").stat().st_mode & 0o777 == 0o600


def test_links_to_a_store_of_rows_lead_to_one_store(folder):
    (folder / "c.json").write_bytes(campaign_bytes(FIRST))
    (folder / "s").symlink_to(folder / "rows")
    first = in_rounds(folder)
    assert (folder / "s").is_symlink()
    (folder / "s").unlink()
    (folder / "s").hardlink_to(folder / "rows")
    second(folder)
    with pytest.raises(LedgerError, match="has a hard link"):
        in_rounds(folder, overwrite=True)
    (folder / "rows").unlink()
    assert len(first) + len(in_rounds(folder, overwrite=True)) == 60


def test_rows_keep_their_groups_over_equal_shares_alone(folder):
    (folder / "c.json").write_bytes(campaign_bytes(FIRST))
    in_rounds(folder)
    quarters = ((250_000, GRID, HASHING), (750_000, None, None))
    other = campaign_bytes(quarters, earlier=[campaign(FIRST).digest])
    (folder / "c.json").write_bytes(other)
    with pytest.raises(LedgerError, match="with equal shares"):
        in_rounds(folder, overwrite=True)


def test_of_two_processes_at_once_one_answers_for_the_rows(folder, monkeypatch):
    (folder / "c.json").write_bytes(campaign_bytes(FIRST))
    first = in_rounds(folder)
    second(folder)
    monkeypatch.setattr(device, "_WAIT", 0.01)
    read, refused = RowStore._read, []

    def other_meanwhile(*given):
        monkeypatch.setattr(RowStore, "_read", read)
        with pytest.raises(LedgerError, match="in use by another process") as refusal:
            in_rounds(folder, overwrite=True)
        refused.append(refusal)
        return read(*given)

    monkeypatch.setattr(RowStore, "_read", other_meanwhile)
    assert len(first) + len(in_rounds(folder, overwrite=True)) == 60
    assert len(refused) == 1


def test_a_lost_damaged_or_foreign_store_of_rows_is_refused(folder):
    second(folder)
    with pytest.raises(LedgerError, match="store is missing"):
        in_rounds(folder)
    for content in (b"", b"{}", b"x" * 100):
        (folder / "s").write_bytes(content)
        with pytest.raises(LedgerError, match="damaged or of another kind"):
            in_rounds(folder)
    (folder / "s").write_text('{"psd-row-store": 2}')
    with pytest.raises(LedgerError, match=r"old row store format 2; .* no fresh budget$"):
        in_rounds(folder)
    (folder / "s").unlink()
    (folder / "c.json").write_bytes(campaign_bytes(title="another"))
    in_rounds(folder)
    second(folder)
    with pytest.raises(LedgerError, match="of an earlier round of this campaign with equal"):
        in_rounds(folder, overwrite=True)


def test_rows_come_in_parts(folder, monkeypatch):
    monkeypatch.setattr("psd.apps.local.randomization._ROWS", 7)
    monkeypatch.setattr("psd.apps.local.randomization._DRAWN", 5)
    for options in ({}, {"store": str(folder / "rows.store")}):
        lines = rows(folder, "lon,lat\n" + "1,1\n7,3\n" * 50, overwrite=True, **options)
        nonces = [json.loads(line)["nonce"] for line in lines]
        assert len(set(nonces)) == 100
        assert nonces == sorted(nonces)


def test_a_table_that_changes_between_two_readings_is_refused(folder, monkeypatch):
    taken = RowStore.take

    def grow(store, campaign, count):
        groups = taken(store, campaign, count)
        with open(folder / "rows.csv", "a") as file:
            file.write("1,1\n")
        return groups

    monkeypatch.setattr(RowStore, "take", grow)
    with pytest.raises(InputDataError, match="must stay as it is"):
        rows(folder, "lon,lat\n1,1\n", store=str(folder / "rows.store"))
    assert not (folder / "out.jsonl").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_a_pipe_is_read_once(folder):
    os.mkfifo(folder / "pipe")
    writer = threading.Thread(target=(folder / "pipe").write_text, args=("lon,lat\n1,1\n" * 1,))
    writer.start()
    out, store = str(folder / "out.jsonl"), str(folder / "rows.store")
    assert randomize(str(folder / "c.json"), str(folder / "pipe"), out, store=store) == 1
    writer.join()


PEAK = """
import sys
from psd.apps.local.randomization import randomize
randomize(*sys.argv[1:])
# Not ru_maxrss, which begins with the memory of the process that starts this one.
status = dict(line.split(":") for line in open("/proc/self/status"))
print(status["VmHWM"].split()[0])
"""


@pytest.mark.deep
def test_memory_does_not_grow_with_the_rows(folder):
    peaks = []
    for number in (2**14, 2**17):
        (folder / "rows.csv").write_text("lon,lat\n" + "1,1\n7,3\n" * (number // 2))
        names = [str(folder / name) for name in ("c.json", "rows.csv", f"{number}.jsonl")]
        outcome = subprocess.run(
            [sys.executable, "-c", PEAK, *names], capture_output=True, text=True, check=True
        )
        peaks.append(int(outcome.stdout))
    assert peaks[1] < 1.1 * peaks[0], peaks
