"""`psd` in a process that runs out of something: `limited_process.py KIND VALUE ARGUMENT...`.

Everything is loaded first, so that the limit meets the work and not the start.
"""

import re
import resource
import sys
from pathlib import Path

import duckdb  # noqa: F401
import pandas  # noqa: F401
import pyarrow.compute  # noqa: F401
import pyproj  # noqa: F401

import psd.ingest.sources.arrow
import psd.ingest.sources.csv
import psd.ingest.tally_file
import psd.publish.drawing
import psd.publish.pipeline
import psd.release.file  # noqa: F401
from psd.publish.charging import PendingCharge
from psd_cli.commands import build  # noqa: F401
from psd_cli.main import main


def limit_files(number):
    """No more open files than so many, with those that are open."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, number))


def limit_memory(size):
    """So many bytes more than what is in use, once the charge is made."""
    charge = PendingCharge.charge

    def charged(self):
        statement = charge(self)
        used = re.search(r"VmSize:\s+(\d+)", Path("/proc/self/status").read_text())
        most = int(used[1]) * 1024 + size
        if resource.getrlimit(resource.RLIMIT_AS)[1] == resource.RLIM_INFINITY:
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        return statement

    PendingCharge.charge = charged


if __name__ == "__main__":
    {"files": limit_files, "memory": limit_memory}[sys.argv[1]](int(sys.argv[2]))
    main(sys.argv[3:])
