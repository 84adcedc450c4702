"""A user without the rights of root, to whom permissions of files matter."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

NOBODY = 65534


@contextlib.contextmanager
def nobody():
    """A folder of a user who is not root, in whose name the block runs."""
    folder, is_root = Path(tempfile.mkdtemp(prefix="psd")), os.geteuid() == 0
    if is_root:
        os.chown(folder, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, 0)  # programs ask for both
    try:
        yield folder
    finally:
        if is_root:
            os.setresuid(0, 0, 0)
        for path in folder.iterdir():
            path.chmod(0o700)
        shutil.rmtree(folder)
