"""Charges of several processes at once, builds that are killed, and disks that are full."""

import os
import resource
import stat
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

import psd
from privacy.planted_bugs.ledger import check_then_act
from psd.errors import BudgetError
from psd.ingest.tally_file import read_tally
from psd.ledger.charges import ChargeRequest
from psd.ledger.ledger import Ledger
from psd.privacy.epsilon import NANO
from psd.privacy.loss import Loss
from psd.privacy.unit import PrivacyUnit
from robustness.charge_kills import LOSS
from robustness.charge_kills import request as gaussian_request
from support.ledger_columns import BY_LON_LAT

TESTS = Path(__file__).parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)])}

# Tries to charge 0.01 so often, once all processes are there; says how often it could.
SPENDER = """
import sys, time
from pathlib import Path
from robustness.test_ledger_survives import charge_often
folder, number, tries, planted = Path(sys.argv[1]), *sys.argv[2:4], sys.argv[4] == "True"
(folder / f"ready-{number}").touch()
while len(list(folder.glob("ready-*"))) < 4:
    time.sleep(0.001)
print(charge_often(folder / "city.ledger", int(tries), planted))
"""


def charge_often(path, tries, planted, loss=None):
    ledger, granted = Ledger(path), 0
    loss = loss or Loss.pure(NANO // 100)
    with check_then_act(patience=0.01) if planted else nullcontext():
        for _ in range(tries):
            try:
                ledger.charge(
                    "rows",
                    ChargeRequest(
                        loss=loss,
                        unit=PrivacyUnit(),
                        what="try",
                        readings=BY_LON_LAT,
                    ),
                )
                granted += 1
            except BudgetError:
                pass
    return granted


def granted_to_four(folder, budget, tries, planted):
    """How often four processes together could charge 0.01."""
    Ledger.create(folder / "city.ledger").register("rows", budget)
    command = [sys.executable, "-c", SPENDER, str(folder)]
    spenders = [
        subprocess.Popen(
            [*command, str(number), str(tries), str(planted)],
            stdout=subprocess.PIPE,
            env=ENVIRONMENT,
        )
        for number in range(4)
    ]
    return sum(int(spender.communicate()[0]) for spender in spenders)


@pytest.mark.slow
def test_four_processes_are_granted_exactly_the_budget(tmp_path):
    assert granted_to_four(tmp_path, "1", 200, planted=False) == 100
    state = Ledger(tmp_path / "city.ledger").verify()
    assert (len(state.charges), state.spent("rows")) == (100, NANO)


@pytest.mark.slow
def test_check_then_act_is_caught(tmp_path):
    """All four look within half a second, twice: however slow the machine, 8 are granted of 5."""
    assert granted_to_four(tmp_path, "0.05", 5, planted=True) > 5


# Gaussian charges

GAUSSIANS = """
import sys, time
from pathlib import Path
from robustness.charge_kills import DELTA, NANO, Loss
from robustness.test_ledger_survives import charge_often
folder = Path(sys.argv[1])
(folder / f"ready-{sys.argv[2]}").touch()
while len(list(folder.glob("ready-*"))) < 4:
    time.sleep(0.001)
print(charge_often(folder / "city.ledger", 60, False, Loss.gaussian(NANO, DELTA, 10**9)))
"""


@pytest.mark.slow
def test_four_processes_are_granted_exactly_the_rho_of_a_budget(tmp_path):
    """Rho of (2, 1e-6) is .0881, so 88 charges of .001 fit, and none of them in epsilon."""
    Ledger.create(tmp_path / "city.ledger").register("rows", 2, delta="1e-6")
    command = [sys.executable, "-c", GAUSSIANS, str(tmp_path)]
    spenders = [
        subprocess.Popen([*command, str(number)], stdout=subprocess.PIPE, env=ENVIRONMENT)
        for number in range(4)
    ]
    assert sum(int(spender.communicate()[0]) for spender in spenders) == 88
    state = Ledger(tmp_path / "city.ledger").verify()
    assert len(state.charges) == 88
    assert state.balance("rows").rho_left == 152_688_379


@pytest.mark.slow
def test_killed_gaussian_charges_are_there_or_not(tmp_path):
    """Whole in both currencies or not at all, and three fit in any case."""
    driver = [sys.executable, str(TESTS / "robustness" / "charge_kills.py"), str(tmp_path), "60"]
    ran = subprocess.run(driver, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    reached = set()
    for place in tmp_path.glob("killed-*"):
        ledger = Ledger(place / "city.ledger")
        charges = list(ledger.verify().charges.values())
        assert [charge.loss for charge in charges] == [LOSS] * len(charges)
        reached.add(len(charges))
        assert not (place / "granted").exists()
        for _ in range(3 - len(charges)):
            ledger.charge("rows", gaussian_request())
        with pytest.raises(BudgetError):
            ledger.charge("rows", gaussian_request())
    assert reached == {0, 1}
    assert len(Ledger(tmp_path / "whole" / "city.ledger").verify().charges) == 1


# Killed builds


def killed(folder, number, *points, method="quadtree"):
    """Folders of builds that were killed, and of some that were run again."""
    driver = [sys.executable, str(TESTS / "robustness" / "ledger_kills.py")]
    driver += [str(folder), method, str(number)]
    driver += points
    ran = subprocess.run(driver, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return sorted(folder.glob("killed-*")), sorted(folder.glob("again-*"))


def check_left(place):
    """What holds whenever a build ends; returns how far it came."""
    charges = list(Ledger(place / "city.ledger").verify().charges.values())
    left = [path.name for path in (place / "out").iterdir()]
    assert left in ([], ["r.psd.parquet"])
    assert len(charges) <= 1
    drawn = (place / "drawn").exists()
    assert charges or not (drawn or left), "drawn or written, and not charged"
    if left:
        psd.Release.load(place / "out" / "r.psd.parquet")
    done = bool(charges) and charges[0].done
    if done:
        assert charges[0].digest == psd.Release.load(place / "out" / "r.psd.parquet").digest
    return bool(charges), drawn, bool(left), done


def check_again(place):
    """A killed build that was run again is charged again, and what it had left there is noted."""
    killed = place.with_name(place.name.replace("again", "killed"))
    before = digests(killed)
    release = killed / "out" / "r.psd.parquet"
    if release.exists():
        assert before in ([None], [psd.Release.load(release).digest])
        before = [psd.Release.load(release).digest]
    assert digests(place) == [*before, psd.Release.load(place / "out" / "r.psd.parquet").digest]


def digests(place):
    """What the charges of a ledger were noted as done with."""
    charges = Ledger(place / "city.ledger").verify().charges.values()
    assert all(charge.done == (charge.digest is not None) for charge in charges)
    return [charge.digest for charge in charges]


def check_kills(folder, number, **which):
    """Kill builds and run some again; returns how far the killed ones came."""
    places, again = killed(folder, number, **which)
    assert len(places) == number
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
    places, again = killed(tmp_path, 0, *POINTS)
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
    killed(tmp_path, 0, *OVER)
    older = files_of(tmp_path / "over")
    assert {*older} == {"r.psd.parquet", "k.tally"}
    for point, (*is_new, mode) in OVER.items():
        found = files_of(tmp_path / f"{point}-killed")
        psd.Release.load(found["r.psd.parquet"])
        read_tally(found["k.tally"])
        whole = [found.pop(name) for name in ("r.psd.parquet", "k.tally")]
        changed = [path.read_bytes() != older[path.name].read_bytes() for path in whole]
        assert changed == is_new, point
        hidden = [(path.name[:5], stat.S_IMODE(path.stat().st_mode)) for path in found.values()]
        assert hidden == ([] if mode is None else [(".psd-", mode)]), point
        # The next build charges again, and takes away what was left.
        assert {*files_of(tmp_path / f"{point}-again")} == {*older}
        assert len(Ledger(tmp_path / f"{point}-again" / "city.ledger").verify().charges) == 3


@pytest.mark.nightly
@pytest.mark.parametrize("method", ["quadtree", "grid", "kd-standard", "privtree", "gaussian"])
def test_500_killed_builds_of_each_of_five_ways_keep_what_they_were_charged(tmp_path, method):
    assert check_kills(tmp_path, 500, method=method) == STAGES


# Full disks


def test_no_room_for_the_charge(tmp_path):
    ledger = Ledger.create(tmp_path / "city.ledger")
    ledger.register("rows", 1)
    (tmp_path / "points.csv").write_text("lon,lat\n1,1\n")
    (tmp_path / "out").mkdir()
    size = ledger.path.stat().st_size

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size - 4096, size - 4096))

    args = "build points.csv -o out/r.psd.parquet --epsilon 1 --bounds 0 0 4 4 --method grid"
    args += " --ledger city.ledger --dataset rows"
    ran = subprocess.run(
        [sys.executable, "-m", "psd_cli", *args.split()],
        cwd=tmp_path,
        env=ENVIRONMENT,
        preexec_fn=limited,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 9, ran.stderr
    assert "the disk may be full" in ran.stderr
    assert list((tmp_path / "out").iterdir()) == []
    assert ledger.verify().charges == {}
    ledger.charge(
        "rows",
        ChargeRequest(loss=Loss.pure(NANO), unit=PrivacyUnit(), what="try", readings=BY_LON_LAT),
    )
