"""Builds that are killed, run out of disk or of memory: nothing half-written, nothing left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from psd.errors import WriteError
from psd.ingest.user_partitions import UserPartitions

ARGS = ("--epsilon", "1", "--bounds", "0", "0", "10", "10", "--method", "quadtree")
USERS = ("--user", "user", "--max-contributions", "2")


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    """Rows enough for a build of some seconds, with an id each."""
    path = tmp_path_factory.mktemp("input") / "points.csv"
    random = np.random.default_rng(5)
    places, users = random.uniform(0, 10, (300_000, 2)), random.integers(0, 50_000, 300_000)
    with path.open("w") as file:
        file.write("lon,lat,user\n")
        np.savetxt(file, np.column_stack([places, users]), fmt="%.6f,%.6f,%d")
    return path


@pytest.fixture
def room(tmp_path):
    """Folders for temporary files and for the output."""
    folders = tmp_path / "tmp", tmp_path / "out"
    for folder in folders:
        folder.mkdir()
    return folders


def started(room, *args, **streams):
    """A build in a process of its own."""
    temporary, out = room
    command = [sys.executable, "-m", "psd_cli", "build", *map(str, args), *ARGS]
    command += ["-o", out / "r.psd.parquet"]
    streams |= {"stderr": subprocess.PIPE, "stdout": subprocess.DEVNULL}
    return subprocess.Popen(command, env={**os.environ, "TMPDIR": str(temporary)}, **streams)


def left(room):
    """All files in both folders."""
    return sorted(path.name for folder in room for path in folder.rglob("*"))


def build_seconds(room, points):
    """How long a whole build takes here."""
    start = time.monotonic()
    process = started(room, points, *USERS)
    process.communicate()
    assert process.returncode == 0
    assert left(room) == ["r.psd.parquet"]
    (room[1] / "r.psd.parquet").unlink()
    return time.monotonic() - start


@pytest.mark.deep
def test_kill_leaves_nothing(room, points):
    whole = build_seconds(room, points)
    for share in np.linspace(0.1, 1, 12):
        process = started(room, points, *USERS)
        time.sleep(share * whole)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        # Either the release was finished, or there is nothing at all.
        assert left(room) in ([], ["r.psd.parquet"])
        (room[1] / "r.psd.parquet").unlink(missing_ok=True)


@pytest.mark.deep
def test_kill_while_standard_input_waits(room):
    process = started(room, "-", stdin=subprocess.PIPE)
    process.stdin.write(b"lon,lat\n" + b"1,1\n" * 100_000)
    process.stdin.flush()
    time.sleep(2)
    process.kill()
    process.communicate()
    assert left(room) == []


def test_no_room_for_rows_of_users(monkeypatch):
    opened = []

    def full():
        opened.append(Path("/dev/full").open("r+b", buffering=0))  # noqa: SIM115
        return opened[-1]

    monkeypatch.setattr("psd.ingest.user_partitions.tempfile.TemporaryFile", full)
    partitions, rows = UserPartitions(memory=512), np.arange(100)
    with pytest.raises(WriteError, match="records that exceed the memory limit"):
        partitions.add_rows(pa.array(["a"] * 100), rows, rows)
    for file in opened:
        file.close()


def test_ids_never_lie_in_a_file_with_a_name():
    asked = UserPartitions()._connection.execute("SELECT current_setting('temp_directory')")
    assert asked.fetchone() == ("",)
