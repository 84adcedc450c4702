"""Kill processes that charge a ledger, at steps of the charge; called by test_ledger_survives.

Each child is a fork. It notes that a charge was granted only after the ledger said so.
"""

import os
import shutil
import signal
import sys
from fractions import Fraction
from pathlib import Path

from psd.ledger.charges import ChargeRequest
from psd.ledger.ledger import Ledger
from psd.privacy.epsilon import NANO
from psd.privacy.loss import Loss
from psd.privacy.unit import PrivacyUnit
from support.ledger_columns import BY_LON_LAT

DELTA = Fraction(1, 10**6)
LOSS = Loss.gaussian(NANO, DELTA)  # 3 of them fit in (2, 1e-6), since 3.6 times its rho does

STEPS = ("ledger/ledger.py", "ledger/file.py", "ledger/entries.py", "ledger/state.py")


def request(loss=LOSS):
    return ChargeRequest(loss=loss, unit=PrivacyUnit(), what="try", readings=BY_LON_LAT)


def child(folder, step):
    """Charge in a fork that ends at a step; 0 for no end. Returns how it ended."""
    process = os.fork()
    if process:
        return os.waitpid(process, 0)[1]
    seen = 0

    def count(frame, event, argument):
        nonlocal seen
        if frame.f_code.co_filename.endswith(STEPS):
            seen += 1
            if seen == step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(count)
    Ledger(folder / "city.ledger").charge("rows", request())
    sys.setprofile(None)
    (folder / "granted").touch()
    (folder / "steps").write_text(str(seen))
    os._exit(0)


def prepared(folder, template):
    folder.mkdir()
    shutil.copy(template, folder / "city.ledger")
    return folder


def main(folder, number):
    """Kill so many charges at steps that are evenly spaced."""
    template = folder / "template"
    Ledger.create(template).register("rows", 2, delta="1e-6")
    whole = prepared(folder / "whole", template)
    assert child(whole, 0) == 0
    steps = int((whole / "steps").read_text())
    for i in range(number):
        step = 1 + i * (steps - 1) // max(number - 1, 1)
        ended = child(prepared(folder / f"killed-{i}", template), step)
        assert os.WTERMSIG(ended) == signal.SIGKILL, ended
    print(steps)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
