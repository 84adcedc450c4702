"""Kill processes that charge a ledger, at steps of the charge; run by test_ledger_survives.

Each child notes that a charge was granted only after the ledger said so.
"""

import shutil
import sys
from fractions import Fraction
from pathlib import Path

from psd.ledger.charges import ChargeRequest
from psd.ledger.ledger import Ledger
from psd.privacy.loss import NANO, Loss
from psd.privacy.unit import PrivacyUnit
from robustness.kills import forked, spread, was_killed
from support.ledger_columns import BY_LON_LAT

DELTA = Fraction(1, 10**6)
LOSS = Loss.gaussian(NANO, DELTA)  # 3 of them fit in (2, 1e-6), since 3.6 times its rho does

STEPS = ("ledger/ledger.py", "ledger/file.py", "ledger/entries.py", "ledger/state.py")


def request(loss=LOSS):
    return ChargeRequest(loss=loss, unit=PrivacyUnit(), what="try", readings=BY_LON_LAT)


def charge():
    Ledger("city.ledger").charge("rows", request())
    Path("granted").touch()
    return 0


def child(folder, template, step=0):
    """Charge a copy of a ledger."""
    folder.mkdir()
    shutil.copy(template, folder / "city.ledger")
    return forked(folder, charge, STEPS, step)


def main(folder, number):
    """Kill so many charges at steps that are evenly spaced."""
    template = folder / "template"
    Ledger.create(template).register("rows", 2, delta="1e-6")
    assert child(folder / "whole", template) == 0
    for i, step in enumerate(spread(number, folder / "whole")):
        assert was_killed(child(folder / f"killed-{i}", template, step))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
