"""Charges of several processes at once, builds that are killed, and disks that are full."""

import stat
import subprocess
import sys
from contextlib import nullcontext, suppress

import pytest

import psd
from privacy.planted_bugs.ledger import check_then_act
from psd.errors import BudgetError
from psd.ingest.tally_file import read_tally
from psd.ledger.ledger import Ledger
from psd.privacy.loss import NANO, Loss
from robustness.charge_kills import DELTA, LOSS, request
from robustness.kills import environment, run_script

pytestmark = pytest.mark.deep

# Tries to charge so often, once all processes are there; says how often it could.
SPENDER = """
import sys, time
from pathlib import Path
from robustness.test_ledger_survives import charge_often
folder, number, tries, how = Path(sys.argv[1]), *sys.argv[2:]
(folder / f"ready-{number}").touch()
while len(list(folder.glob("ready-*"))) < 4:
    time.sleep(0.001)
print(charge_often(folder / "city.ledger", int(tries), how))
"""
LOSSES = {"gaussian": Loss.gaussian(NANO, DELTA, 10**9)}


def charge_often(path, tries, how):
    ledger, granted = Ledger(path), 0
    loss = LOSSES.get(how, Loss.pure(NANO // 100))
    with check_then_act(patience=0.01) if how == "planted" else nullcontext():
        for _ in range(tries):
            with suppress(BudgetError):
                ledger.charge("rows", request(loss))
                granted += 1
    return granted


def granted_to_four(folder, budget, tries, how="pure", **registration):
    """How often four processes together could charge; and what the ledger says of it."""
    ledger = Ledger.create(folder / "city.ledger")
    ledger.register("rows", budget, **registration)
    command = [sys.executable, "-c", SPENDER, str(folder)]
    spenders = [
        subprocess.Popen(
            [*command, str(number), str(tries), how], stdout=subprocess.PIPE, env=environment()
        )
        for number in range(4)
    ]
    return sum(int(spender.communicate()[0]) for spender in spenders), ledger.verify()


def test_four_processes_are_granted_exactly_the_budget(tmp_path):
    granted, state = granted_to_four(tmp_path, "1", 200)
    assert (granted, len(state.charges), state.spent("rows")) == (100, 100, NANO)


def test_check_then_act_is_caught(tmp_path):
    """All four look within half a second, twice: however slow the machine, 8 are granted of 5."""
    assert granted_to_four(tmp_path, "0.05", 5, "planted")[0] > 5


def test_four_processes_are_granted_exactly_the_rho_of_a_budget(tmp_path):
    """Rho of (2, 1e-6) is .0881, so 88 charges of .001 fit, and none of them in epsilon."""
    granted, state = granted_to_four(tmp_path, 2, 60, "gaussian", delta="1e-6")
    assert granted == len(state.charges) == 88
    assert state.balance("rows").rho_left == 152_688_379


def test_killed_gaussian_charges_are_there_or_not(tmp_path):
    """Whole in both currencies or not at all, and three fit in any case."""
    reached = set()
    for place in run_script("robustness/charge_kills.py", tmp_path, 60)[0]:
        ledger = Ledger(place / "city.ledger")
        charges = list(ledger.verify().charges.values())
        assert [charge.loss for charge in charges] == [LOSS] * len(charges)
        reached.add(len(charges))
        assert not (place / "granted").exists()
        for _ in range(3 - len(charges)):
            ledger.charge("rows", request())
        with pytest.raises(BudgetError):
            ledger.charge("rows", request())
    assert reached == {0, 1}
    assert len(Ledger(tmp_path / "whole" / "city.ledger").verify().charges) == 1


# Killed builds


def check_left(place):
    """What holds whenever a build ends; returns how far it came."""
    charges = list(Ledger(place / "city.ledger").verify().charges.values())
    left = [path.name for path in (place / "out").iterdir()]
    assert left in ([], ["r.psd.parquet"])
    assert len(charges) <= 1
    drawn = (place / "drawn").exists()
    assert charges or not (drawn or left), "drawn or written, and not charged"
    if left:
        psd.load(place / "out" / "r.psd.parquet")
    done = bool(charges) and charges[0].done
    if done:
        assert charges[0].digest == psd.load(place / "out" / "r.psd.parquet").digest
    return bool(charges), drawn, bool(left), done


def check_again(place):
    """A killed build that was run again is charged again, and what it had left there is noted."""
    killed = place.with_name(place.name.replace("again", "killed"))
    before = digests(killed)
    release = killed / "out" / "r.psd.parquet"
    if release.exists():
        assert before in ([None], [psd.load(release).digest])
        before = [psd.load(release).digest]
    assert digests(place) == [*before, psd.load(place / "out" / "r.psd.parquet").digest]


def digests(place):
    """What the charges of a ledger were noted as done with."""
    charges = Ledger(place / "city.ledger").verify().charges.values()
    assert all(charge.done == (charge.digest is not None) for charge in charges)
    return [charge.digest for charge in charges]


def check_kills(folder, number, method="quadtree", first=0, every=1):
    """Kill builds, or a part of so many, and run some again; returns how far the killed came."""
    places, again = run_script("robustness/ledger_kills.py", folder, method, number, first, every)
    assert len(places) == len(range(first, number, every))
    for place in again:
        check_again(place)
    return {check_left(place) for place in places}


STAGES = {
    (False, False, False, False),
    (True, False, False, False),
    (True, True, False, False),
    (True, True, True, False),
    (True, True, True, True),
}


@pytest.mark.slow
def test_killed_builds_keep_what_they_were_charged(tmp_path):
    assert check_kills(tmp_path, 60) == STAGES


@pytest.mark.slow
def test_killed_gaussian_builds_keep_what_they_were_charged(tmp_path):
    assert check_kills(tmp_path, 30, method="gaussian") == STAGES
    for place in tmp_path.glob("again-*"):
        losses = [charge.loss for charge in Ledger(place / "city.ledger").state().charges.values()]
        assert set(losses) == {LOSS}


# How far a build comes that is killed there: charged, drawn, there, noted.
POINTS = {
    "before-the-charge": (False, False, False, False),
    "after-the-charge": (True, False, False, False),
    "while-drawing": (True, True, False, False),
    "while-writing": (True, True, False, False),
    "after-the-name": (True, True, True, False),
    "before-the-note": (True, True, True, False),
}


@pytest.mark.slow
def test_killed_at_named_points(tmp_path):
    places, again = run_script("robustness/ledger_kills.py", tmp_path, "quadtree", 0, 0, 1, *POINTS)
    assert len(again) == len(POINTS)
    for place in again:
        check_again(place)
    reached = {place.name.removeprefix("killed-"): check_left(place) for place in places}
    assert reached == POINTS


# Where a build over a release and its tally is killed: which of the two are new by then, and the
# permissions of the file that is about to take the place of the next.
OVER = {
    "over-the-release": (False, False, 0o644),
    "over-the-tally": (True, False, 0o600),
    "over-both": (True, True, None),
}


def files_of(place):
    return {path.name: path for path in (place / "out").iterdir()}


@pytest.mark.slow
def test_killed_while_a_release_and_its_tally_are_replaced(tmp_path):
    run_script("robustness/ledger_kills.py", tmp_path, "quadtree", 0, 0, 1, *OVER)
    older = files_of(tmp_path / "over")
    assert {*older} == {"r.psd.parquet", "k.tally"}
    for point, (*is_new, mode) in OVER.items():
        found = files_of(tmp_path / f"{point}-killed")
        psd.load(found["r.psd.parquet"])
        read_tally(found["k.tally"])
        whole = [found.pop(name) for name in ("r.psd.parquet", "k.tally")]
        changed = [path.read_bytes() != older[path.name].read_bytes() for path in whole]
        assert changed == is_new, point
        hidden = [(path.name[:5], stat.S_IMODE(path.stat().st_mode)) for path in found.values()]
        assert hidden == ([] if mode is None else [(".psd-", mode)]), point
        # The next build charges again, and takes away what was left.
        assert {*files_of(tmp_path / f"{point}-again")} == {*older}
        assert len(Ledger(tmp_path / f"{point}-again" / "city.ledger").verify().charges) == 3


# In halves, so that two workers share the five ways alike.
@pytest.mark.nightly
@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("method", ["quadtree", "grid", "kd-standard", "privtree", "gaussian"])
def test_500_killed_builds_of_each_of_five_ways_keep_what_they_were_charged(tmp_path, method, half):
    assert check_kills(tmp_path, 500, method=method, first=half, every=2) == STAGES
