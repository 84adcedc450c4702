"""The order of the steps: balance, rows, charge, draw, file, done."""

from pathlib import Path

import pandas as pd
import pytest

import psd
import psd.ledger.entries
import psd.ledger.ledger
import psd.publish.charging
from psd.api.release import Release
from psd.curator.private_bounds import ContributionChoice, PrivateBounds
from psd.errors import LedgerError, WriteError
from psd.ledger.account import Account
from psd.ledger.charges import ChargeRequest
from psd.ledger.ledger import Ledger
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.loss import Loss
from psd.privacy.unit import PrivacyUnit
from psd.publish.refusals import UNREADABLE
from psd.space.time_slices import TimeSlices
from support.cli_runner import BOUNDS, SQUARE, cli, fails, write_points
from support.ledger_columns import BY_LON_LAT
from support.privacy.replay import answers_of_the_first

ROWS = [(0.5, 0.5, "a", "2024-01-01"), (1.5, -2.5, "b", "2024-01-02")]
TABLE = pd.DataFrame(ROWS, columns=["lon", "lat", "user", "time"])
QUADTREE = ("--method", "quadtree", "--set", "height=1")


def made_ledger(path):
    made = Ledger.create(path)
    made.register("rows", 10)
    made.register("users", 10, unit="user", columns=psd.Columns(user="user"))
    return made


@pytest.fixture
def ledger(tmp_path):
    return made_ledger(tmp_path / "city.ledger")


@pytest.fixture
def points(tmp_path):
    return write_points(tmp_path / "points.csv", ROWS, "lon,lat,user,time")


def paid_by(ledger, dataset="rows", epsilon=1):
    return ("--ledger", ledger.path, "--dataset", dataset, "--epsilon", epsilon)


def build(ledger, points, *more, dataset="rows"):
    """A command line that builds and pays."""
    target = points.with_name("r.psd.parquet")
    return ("build", points, "-o", target, *BOUNDS, *QUADTREE, *paid_by(ledger, dataset), *more)


def ask(ledger, points):
    return cli("ask", points, "--box", 0, 0, 1, 1, *paid_by(ledger)).code


# Charged before anything is drawn


@pytest.fixture
def watched(monkeypatch, ledger):
    """At every draw, the charges that are on the disk."""
    seen = []
    draw = SecureSampler.draw

    def watching(*question):
        seen.append(len(ledger.state().charges))
        return draw(*question)

    monkeypatch.setattr(SecureSampler, "draw", watching)
    return seen


DAYS = TimeSlices.parse("day", "2024-01-01,2024-01-02", "UTC")
USER = {"user": "user", "max_contributions": 2}
AUTO = {"user": "user", "max_contributions": ContributionChoice()}

SERIES = {"slices": DAYS, "time": "time"}
BUILDS = {
    **{method: {"method": method} for method in psd.methods()},
    "private bounds": {"domain": PrivateBounds(crs="EPSG:4326")},
    "auto": AUTO,  # of records of users, and not the method of that name
    "series": SERIES,
    "auto series": {**AUTO, **SERIES},
}


@pytest.mark.parametrize("name", BUILDS)
def test_every_draw_finds_its_charge_on_the_disk(name, ledger, watched):
    account = Account(ledger, "users" if "user" in BUILDS[name] else "rows")
    psd.build(TABLE, epsilon=1, account=account, **{"domain": SQUARE, **BUILDS[name]})
    assert set(watched) == {1}
    assert account.left == 9 * 10**9


def test_tallies_are_paid_before_they_are_drawn_from(ledger, points, watched, tmp_path):
    kept = tmp_path / "points.tally"
    assert cli("tally", points, "-o", kept, *BOUNDS).code == 0
    target = ("-o", tmp_path / "r.psd.parquet")
    assert cli("build", kept, *target, *QUADTREE, *paid_by(ledger)).code == 0
    assert set(watched) == {1}
    (charge,) = ledger.state().charges.values()
    assert (charge.region, charge.done) == (None, True)


def test_an_answer_is_paid_before_it_is_drawn(ledger, points, watched):
    assert ask(ledger, points) == 0
    assert watched == [1]


# Nothing is read that cannot be paid, and what cannot be read costs nothing


def test_the_balance_is_looked_at_before_the_rows(ledger, points):
    points.unlink()
    dearer = [11 if argument == 1 else argument for argument in build(ledger, points)]
    assert "'rows' has epsilon 10 left, and this costs 11" in fails(4, *dearer)
    fails(8, *build(ledger, points))
    assert ledger.state().charges == {}


def test_the_balance_is_looked_at_before_the_counts_of_a_tally(ledger, points, tmp_path):
    kept = tmp_path / "points.tally"
    assert cli("tally", points, "-o", kept, *BOUNDS).code == 0
    with kept.open("r+b") as file:
        file.seek(4)
        file.write(bytes(24))  # the head of the first page of counts
    line = ("build", kept, "-o", tmp_path / "r.psd.parquet", *QUADTREE)
    said = fails(4, *line, *paid_by(ledger, epsilon=11))
    assert "'rows' has epsilon 10 left, and this costs 11" in said
    assert "counts epsilon per user" in fails(9, *line, *paid_by(ledger, "users"))
    paid = (*line, *paid_by(ledger))
    assert UNREADABLE in fails(8, *paid)
    assert "PRIVATE, do not publish: tally" in cli(*paid, "--report-private").err
    assert ledger.state().charges == {}


def test_what_cannot_be_read_costs_nothing_and_is_one_sentence(ledger, points):
    for content in ("lon,lat\nx,1\n", "lat,x\n1,1\n", "", 'lon,lat\n"1,1\n'):
        points.write_text(content)
        assert UNREADABLE in fails(8, *build(ledger, points))
    assert ledger.state().charges == {}


def test_an_input_without_a_record_inside_is_charged(ledger, points):
    for number, content in enumerate(("lon,lat\n", "lon,lat\n99,1\n", "lon,lat\n1,91\n"), 1):
        points.write_text(content)
        assert cli(*build(ledger, points, "--overwrite")).code == 0
        assert state(ledger) == [True] * number


def test_the_balance_is_looked_at_again_at_the_charge(ledger, points, monkeypatch):
    """Another release is paid while the rows are read."""
    count_rows = psd.publish.counting.count_rows

    def meanwhile(*arguments, **options):
        counted = count_rows(*arguments, **options)
        what = {"unit": PrivacyUnit(), "what": "another", "readings": BY_LON_LAT}
        ledger.charge("rows", ChargeRequest(loss=Loss.pure(95 * 10**8), **what))
        return counted

    monkeypatch.setattr(psd.publish.counting, "count_rows", meanwhile)
    assert "has epsilon 0.5 left" in fails(4, *build(ledger, points))
    assert not points.with_name("r.psd.parquet").exists()
    assert [charge.what for charge in ledger.state().charges.values()] == ["another"]


# What is charged stays charged, and is done when the file is there


def state(ledger):
    """Whether each charge is done."""
    return [charge.done for charge in ledger.state().charges.values()]


def test_a_build_that_fails_after_its_charge_stays_charged(ledger, points, monkeypatch):
    draw = SecureSampler.draw

    def fail(*question):
        draw(*question)
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(SecureSampler, "draw", fail)
        assert UNREADABLE in fails(8, *build(ledger, points))
    assert state(ledger) == [False]
    assert cli(*build(ledger, points)).code == 0
    assert state(ledger) == [False, True]


def failing(error):
    def fail(*_, **__):
        raise error

    return fail


def test_a_release_that_cannot_be_written_is_charged_and_not_finished(ledger, points, monkeypatch):
    monkeypatch.setattr(Release, "save", failing(WriteError("no space left on device")))
    fails(6, *build(ledger, points))
    assert state(ledger) == [False]


def test_a_release_that_cannot_be_noted_is_there_and_charged(ledger, points, monkeypatch):
    monkeypatch.setattr(Ledger, "finish", failing(LedgerError("city.ledger is in use")))
    said = fails(9, *build(ledger, points))
    assert "r.psd.parquet was released and charged, but could not be recorded as done" in said
    assert Release.load(points.with_name("r.psd.parquet"))
    assert state(ledger) == [False]


def test_building_again_over_the_same_file_costs_again(ledger, points):
    assert cli(*build(ledger, points)).code == 0
    fails(6, *build(ledger, points))
    assert state(ledger) == [True]  # refused before the balance was looked at
    assert cli(*build(ledger, points, "--overwrite")).code == 0
    first, second = ledger.state().charges.values()
    assert first.digest != second.digest
    assert ledger.state().spent("rows") == 2 * 10**9


# Nothing in the ledger depends on the rows

DATA = {
    "d": "lon,lat,user,time\n1,1,a,2024-01-01\n2,2,b,2024-01-01\n",
    "one-less": "lon,lat,user,time\n1,1,a,2024-01-01\n",
    "secret-clinic": "lon,lat,user,time\n" + "".join(f"-3,{i},u{i},2024-01-01\n" for i in range(4)),
    "none": "lon,lat,user,time\n",
}


def ledgers_of(names, tmp_path, monkeypatch):
    """Entries that builds of several data sets leave, their answers being the same."""
    left = {}
    with monkeypatch.context() as patch:
        again = answers_of_the_first(patch)
        patch.setattr(psd.ledger.entries, "_now", lambda: "2024-01-01T00:00:00+00:00")
        # Where the file system keeps a file is a number that no row decides.
        patch.setattr(
            psd.publish.charging,
            "_file_states",
            lambda items: {Path(item): (1, 2) for item in items},
        )
        for name in names:
            ids = iter(range(100))
            patch.setattr(psd.ledger.ledger, "_random_id", lambda ids=ids: f"id {next(ids)}")
            (tmp_path / name).mkdir()
            with again():
                left[name] = entries_of_one(tmp_path / name, DATA[name])
    return left


def entries_of_one(folder: Path, text):
    made = made_ledger(folder / "l")
    points = folder / f"{folder.name}.csv"
    points.write_text(text)
    for more in ((), ("--max-contributions", "auto"), ("--count", "users")):
        of_users = ("--user", "user", *more) if more else ()
        dataset = "users" if more else "rows"
        outcome = cli(*build(made, points, *of_users, "--overwrite", dataset=dataset))
        assert outcome.code == 0, outcome.err
    assert ask(made, points) == 0
    return made.state()


LATER = [pytest.param(name, marks=pytest.mark.deep) for name in ("secret-clinic", "none")]


@pytest.mark.parametrize("other", ["one-less", *LATER])
def test_ledgers_differ_in_nothing_but_the_answers(other, tmp_path, monkeypatch):
    left = ledgers_of(("d", other), tmp_path, monkeypatch)
    assert len(left["d"].charges) == 4
    assert left[other] == left["d"]
