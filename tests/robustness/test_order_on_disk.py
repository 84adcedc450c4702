"""The order in which a paid build brings its files to the disk, as the kernel sees it."""

import os
import re
import shutil
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest

from psd.ledger.ledger import Ledger

TOP = Path(__file__).parents[2]
BUILD = (
    "build points.csv -o out/r.psd.parquet --epsilon 1 --bounds 0 0 4 4 --method quadtree "
    "--set height=1 --ledger city.ledger --dataset rows"
)
RUN = "import sys; from psd_cli.main import main; main(sys.argv[1:])"
UNSYNCED = (
    "import psd._util.atomic_write; psd._util.atomic_write._sync = lambda path: None; "
    "psd._util.atomic_write.os.fsync = id; " + RUN
)

# What a call of the kernel is to the protocol; the first that fits.
STEPS = (
    ("journal", r"fdatasync.*city\.ledger-journal>"),
    ("ledger", r"fdatasync.*city\.ledger>"),
    ("no journal", r"unlink.*city\.ledger-journal"),
    ("folder of the ledger", r"fdatasync.*/here>"),
    ("random", r"getrandom"),
    ("release", r"fsync.*/out/"),
    ("name", r"(link|linkat|rename)\(.*r\.psd\.parquet"),
    ("folder of the release", r"fsync.*/out>"),
)
COMMIT = ["journal", "folder of the ledger", "journal", "ledger", "no journal"]
COMMIT += ["folder of the ledger"]
ORDER = [*COMMIT, "random", "release", "name", "folder of the release", *COMMIT]

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(
        shutil.which("strace") is None and "PSD_REQUIRE_STRACE" not in os.environ,
        reason="strace is not installed",
    ),
]


def steps(folder, program):
    """Steps of a build from its charge on, repeated ones once."""
    here = folder / "here"
    (here / "out").mkdir(parents=True)
    (here / "points.csv").write_text("lon,lat\n1,1\n2,3\n")
    Ledger.create(here / "city.ledger").register("rows", 1)
    calls = "trace=fsync,fdatasync,getrandom,link,linkat,rename,unlink"
    trace = ["strace", "-f", "-y", "-e", calls, "-o", folder / "trace"]
    environment = {**os.environ, "PYTHONPATH": str(TOP)}
    command = [*trace, sys.executable, "-c", program, *BUILD.split()]
    subprocess.run(command, cwd=here, env=environment, check=True, capture_output=True)
    lines = (folder / "trace").read_text(errors="replace").splitlines()
    named = [
        next((name for name, pattern in STEPS if re.search(pattern, line)), None) for line in lines
    ]
    from_charge = named[named.index("journal") :]
    return [name for name, _ in groupby(filter(None, from_charge))]


def test_the_order_on_the_disk(tmp_path):
    assert steps(tmp_path, RUN) == ORDER


def test_a_release_that_is_not_brought_to_the_disk_is_caught(tmp_path):
    assert steps(tmp_path, UNSYNCED) == [*COMMIT, "random", "name", *COMMIT]
