"""Refusals do not depend on records: builds are replayed over random bounds on neighbouring inputs.

The rule and its proof are those of `psd.publish.refusals`. What is compared is all that an analyst
can see of a build: exit code, output, message, the entries of the ledger and the set of files.
"""

import errno
import itertools
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from shapely import Point

import psd
from psd.curator.private_bounds import PrivateBounds
from psd.decompositions import Quadtree
from psd.errors import BudgetError, InputDataError, ParameterError, ResourceError
from psd.ingest.sources import Columns
from psd.ingest.tally_builder import TallyBuilder
from psd.ingest.user_partitions import UserPartitions
from psd.ledger.charges import ChargeRequest
from psd.ledger.ledger import Ledger
from psd.ledger.state import MAX_FAULTS
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.loss import NANO, Loss
from psd.privacy.unit import PrivacyUnit
from psd.publish.observer import Observer
from psd.publish.refusals import UNREADABLE
from support.cli_runner import Outcome, cli, files

HEADER = "user,time,lon,lat,a,b"
DAY = "2024-01-31 10:00"
BASE = [
    ("u", DAY, 126.9, 37.5, 0.5, 0.5),
    ("u", DAY, 127.1, 37.6, 1.5, 0.5),
    ("v", DAY, 126.98, 37.57, 0.5, 1.5),
]
LONE = ("w", DAY, 2.35, 48.86, -3.5, -3.5)

# Inputs of one form. Each is a neighbour of the first: one record or one user more or less.
ALIKE = {
    "base": BASE,
    "one more inside": [*BASE, ("w", DAY, 126.98, 37.57, 0.5, 1.5)],
    "one more elsewhere": [*BASE, LONE],
    "one less": BASE[:-1],
    "none": [],
    "no coordinates": [*BASE, ("w", DAY, None, None, None, None)],
    "longitude 200": [*BASE, ("w", DAY, 200.0, 37.5, 200.0, 0.5)],
    "latitude 95": [*BASE, ("w", DAY, 127.0, 95.0, 0.5, 95.0)],
}

# Records of another form, by what they lack; each lies inside, elsewhere, or nowhere.
FAULTS = {
    "id": lambda x, y: ("", DAY, x, y, x, y),
    "time": lambda x, y: ("w", "", x, y, x, y),
    "number": lambda x, y: ("w", DAY, x, "37.5N", x, "0.5N"),
}
PLACES = ((126.98, 37.57), (2.35, 48.86), (200.0, 95.0), ("", ""))

DAILY = ("--user", "user", "--per", "day", "--time", "time", "--max-contributions", 1)
UNITS = {
    "record": ((), {}),
    "user": (
        ("--user", "user", "--max-contributions", 2),
        {"user": "user", "max_contributions": 2},
    ),
    "user-day": (DAILY, {"user": "user", "per": "day", "time": "time", "max_contributions": 1}),
}
COLUMNS = {"lon": (), "a": ("--x", "a", "--y", "b")}
BOX = (126, 37, 128, 38)
LEDGER = ("--ledger", "city.ledger", "--dataset", "rows")
FAULT = Outcome(8, "", f"psd: error: {UNREADABLE}\n")
QUADTREE = ("--method", "quadtree", "--set", "height=2", "--epsilon", "0.000001")


def write(path, rows):
    """CSV of rows; None is a missing field."""
    lines = (",".join("" if field is None else str(field) for field in row) for row in rows)
    path.write_text("\n".join([HEADER, *lines]) + "\n")


def random_bounds(rng, column="lon"):
    """A box around a record, down to about a metre wide, or anywhere."""
    row = (*BASE, LONE)[rng.integers(len(BASE) + 1)]
    x, y = row[2:4] if column == "lon" else row[4:6]
    half = 10.0 ** rng.uniform(-5, 1)
    if rng.random() < 0.4:
        x, y = rng.uniform(-150, 150), rng.uniform(-70, 70)
    x, y = x + rng.uniform(-1, 1) * half, y + rng.uniform(-1, 1) * half
    return (max(x - half, -180), max(y - half, -90), min(x + half, 180), min(y + half, 90))


# What a fault costs under the budget of a room, with the charge of its build.
PRICE = 1000 * NANO // MAX_FAULTS
CHARGED = ((1000, False), (PRICE - 1000, False))


class Room:
    """A folder with an input, an output and a ledger that has a dataset for each unit."""

    def __init__(self, folder, unit):
        self.folder, self.unit = folder, unit
        self.ledger = Ledger.create(folder / "city.ledger")
        self.register("rows", unit)

    def register(self, name, unit, budget=1000):
        """Add a dataset that is read as the units are."""
        user, time = UNITS[unit][1].get("user"), UNITS[unit][1].get("time")
        self.ledger.register(name, budget, unit=unit, columns=Columns(user=user, time=time))

    def account(self, name="rows", analyst=None):
        return psd.ledger.Account(self.ledger, name, analyst=analyst)

    def charges(self):
        """Epsilon of each charge, and whether it is done."""
        charges = self.ledger.state().charges.values()
        return [(charge.loss.epsilon, charge.done) for charge in charges]

    def build(self, rows, bounds, options=(), *, paid):
        """What a build by the command line shows."""
        write(self.folder / "in.csv", rows)
        Path(self.folder, "r.psd").unlink(missing_ok=True)
        before = len(self.charges())
        where = ("--bounds", *(repr(float(edge)) for edge in bounds))
        line = ("build", "in.csv", "-o", "r.psd", *where, *QUADTREE, *options)
        outcome = cli(*line, *(LEDGER if paid else ()))
        charged, out = tuple(self.charges()[before:]), self.without_head(outcome.out)
        return outcome.code, out, outcome.err, charged, tuple(files(self.folder))

    def without_head(self, out):
        """Output without the head of the ledger, which covers the random ids of all charges."""
        return out.replace(f"ledger head {self.ledger.state().head_text}\n", "ledger head\n")

    def call(self, data, bounds, arguments, *, paid):
        """What a call of `psd.build` shows."""
        before, how = len(self.charges()), {"domain": bounds, "method": Quadtree(height=2)}
        account = self.account() if paid else None
        try:
            release = psd.build(data, epsilon="0.000001", account=account, **how, **arguments)
        except psd.errors.PsdError as error:
            shown = (type(error), str(error), error.__cause__, error.__context__)
        else:
            shown = (type(release), len(release.tree.count), release.domain.bounds)
        return *shown, tuple(self.charges()[before:])


@pytest.fixture
def room(tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    return Room(tmp_path, getattr(request, "param", "record"))


def frame(rows):
    """The same rows in memory."""
    table = pd.DataFrame(rows, columns=HEADER.split(",")).replace("", None)
    return table.astype(dict.fromkeys(["lon", "lat", "a", "b"], float))


def same(bounds, shown):
    """What all builds of some bounds show."""
    shown = set(shown)
    assert len(shown) == 1, (bounds, shown)
    return shown.pop()


def replay_commands(room, rounds, seed):
    """Builds of all inputs show the same, whatever the bounds; with a ledger each is charged."""
    rng = np.random.default_rng(seed)
    for number in range(rounds):
        column = ("lon", "a")[number % 2]
        options = (*UNITS[room.unit][0], *COLUMNS[column])
        bounds = random_bounds(rng, column)
        for paid in (False, True) if column == "lon" else (False,):
            base = same(bounds, (room.build(r, bounds, options, paid=paid) for r in ALIKE.values()))
            assert base[0] == 0
            assert base[3] == (((1000, True),) if paid else ())


def replay_calls(room, rounds, seed):
    """The same through `psd.build`."""
    rng = np.random.default_rng(seed)
    arguments = UNITS[room.unit][1]
    tables = [frame(rows) for rows in ALIKE.values()]
    for _ in range(rounds):
        bounds = random_bounds(rng)
        for paid in (False, True):
            base = same(bounds, (room.call(t, bounds, arguments, paid=paid) for t in tables))
            assert base[-1] == (((1000, False),) if paid else ())


each_unit = pytest.mark.parametrize("room", UNITS, indirect=True)


@pytest.mark.deep
@each_unit
def test_builds_of_neighbours_show_the_same(room):
    replay_commands(room, 2, seed=1)


@each_unit
@pytest.mark.parametrize("rounds", [1, pytest.param(4, marks=pytest.mark.deep)])
def test_calls_of_neighbours_show_the_same(room, rounds):
    replay_calls(room, rounds, seed=2)


@pytest.mark.nightly
@each_unit
def test_builds_of_neighbours_show_the_same_over_many_bounds(room):
    replay_commands(room, 20, seed=3)
    replay_calls(room, 50, seed=4)


@pytest.mark.parametrize("number", [1, pytest.param(3, marks=pytest.mark.deep)])
@pytest.mark.parametrize("paid", [False, True], ids=["free", "paid"])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("room", ["user-day"], indirect=True)
def test_a_fault_of_form_shows_the_same_wherever_it_lies(room, fault, paid, number):
    rng = np.random.default_rng(5)
    boxes = (BOX, random_bounds(rng), random_bounds(rng))[:number]
    shown = (
        room.build([*BASE, FAULTS[fault](*place)], bounds, DAILY, paid=paid)
        for bounds, place in itertools.product(boxes, PLACES)
    )
    code, out, err, charged, left = same(boxes, shown)
    assert (code, out, charged) == (8, "", ())
    assert left == ("city.ledger", "in.csv")
    assert (UNREADABLE in err) == paid


def test_faults_of_all_kinds_show_the_same_with_a_ledger(room):
    room.register("days", "user-day")
    contents = [
        *(f"{HEADER}\n{','.join(map(str, FAULTS[name](127, 37.5)))}\n" for name in FAULTS),
        "",
        "no header",
        f"{HEADER}\n1,2\n",
        f'{HEADER}\n"\n',
        f"{HEADER},user\n",
        b"\xff\xfe" + HEADER.encode(),
        b"\x1f\x8b cut off",
    ]
    line = ("build", "in.csv", "-o", "r.psd", "--bounds", *BOX, *QUADTREE, *DAILY)
    for content in contents:
        Path("in.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
        assert cli(*line, *LEDGER[:-1], "days") == FAULT, content
    assert room.charges() == []


def test_records_without_a_valid_transform_are_outside(room):
    near = [Point(14137578, 4509031), Point(14126446, 4509031)]
    more = [[], [Point(1e30, 1e30)], [Point(0, 1e30)], [Point()]]
    tables = [gpd.GeoDataFrame(geometry=[*near, *each], crs="EPSG:3857") for each in more]
    for bounds in (BOX, (-10, -10, 10, 10), (126.99, 37.4, 127.01, 37.6)):
        same(bounds, (room.call(data, bounds, {}, paid=True) for data in tables))


@pytest.mark.parametrize(
    "bounds", [(9e5, 19e5, 10e5, 20e5), (10e5, 14e5, 11e5, 15e5), (955e3, 194e4, 956e3, 196e4)]
)
def test_columns_without_a_valid_transform_are_outside(room, bounds):
    domain, degrees = psd.Domain(bounds=bounds, crs="EPSG:5179"), {"input_crs": "EPSG:4326"}
    near = [(127.0, 37.5), (126.9, 37.5)]
    more = ([], [(0.0, 95.0)], [(200.0, -95.0)], [(1e30, 1e30)], [(np.nan, np.nan)])
    tables = [pd.DataFrame([*near, *each], columns=["x", "y"]) for each in more]
    shown = same(bounds, (room.call(data, domain, degrees, paid=True) for data in tables))
    assert shown[0] is psd.Release


def bisect(room, ask):
    """Look for the lone record: keep the half for which a build shows what the first one did."""
    west, south, east, north = -180.0, -90.0, 180.0, 90.0
    first = ask((west, south, east, north))
    shown = {first}
    for number in range(24):
        middle = (west + east) / 2 if number % 2 else (south + north) / 2
        half = (west, south, middle, north) if number % 2 else (west, south, east, middle)
        again = ask(half)
        shown.add(again)
        if again == first:
            west, south, east, north = half
        elif number % 2:
            west = middle
        else:
            south = middle
    return shown, (west, south, east, north)


@pytest.mark.deep
@pytest.mark.parametrize("how", ["command", "call", "ask"])
def test_bisected_bounds_find_no_record_and_each_build_is_charged(room, how):
    """25 builds at epsilon 1e-9 once found a lone record to 10 m."""
    write(room.folder / "in.csv", [LONE])
    epsilon, method = "0.000000001", Quadtree(height=2)

    def ask(bounds):
        if how == "call":
            given = {"domain": bounds, "epsilon": epsilon, "method": method}
            return psd.build(frame([LONE]), account=room.account(), **given).domain.lattice
        edges = tuple(map(repr, bounds))
        if how == "ask":
            return cli("ask", "in.csv", "--box", *edges, "--epsilon", epsilon, *LEDGER).code
        line = ("build", "in.csv", "-o", "r.psd", "--overwrite", "--bounds", *edges)
        outcome = cli(*line, *QUADTREE[:-1], epsilon, *LEDGER)
        return outcome.code, room.without_head(outcome.out), outcome.err

    shown, (west, south, east, north) = bisect(room, ask)
    assert len(shown) == 1
    assert not (west <= LONE[2] <= east and south <= LONE[3] <= north)
    assert [epsilon for epsilon, _ in room.charges()] == [1] * 25


# A lack of memory or disk.

SHORTAGES = {
    "memory": (TallyBuilder, "add_batch", MemoryError()),
    "disk": (UserPartitions, "_write", OSError(errno.ENOSPC, "No space left on device")),
}


def failing(error):
    def fail(*_, **__):
        raise error

    return fail


def run_short(monkeypatch, kind):
    """Let memory or disk give out while records are counted."""
    owner, name, error = SHORTAGES[kind]
    monkeypatch.setattr(owner, name, failing(error))
    if kind == "disk":
        add = UserPartitions.add_rows

        def add_rows(self, *batch):
            add(self, *batch)
            self._partition_waiting()
            self._spill()

        monkeypatch.setattr(UserPartitions, "add_rows", add_rows)


@pytest.mark.parametrize("kind", ["memory", "disk"])
@pytest.mark.parametrize("room", ["user"], indirect=True)
def test_a_lack_of_memory_or_disk_is_charged_and_shows_no_more_than_a_fault(
    room, monkeypatch, kind
):
    options = UNITS["user"][0]
    fault = room.build([*BASE, ("", DAY, 127.0, 37.5, 0, 0)], BOX, options, paid=True)
    run_short(monkeypatch, kind)
    short = room.build(BASE, BOX, options, paid=True)
    assert Outcome(*short[:3]) == Outcome(*fault[:3]) == FAULT
    assert short[4] == fault[4]
    assert (short[3], fault[3]) == (CHARGED, ())
    code, _, err, _, _ = room.build(BASE, BOX, options, paid=False)  # which has its reason
    assert (code, UNREADABLE in err) == (70 if kind == "memory" else 6, False)


def test_a_lack_of_memory_while_tallies_are_read_is_charged(room, monkeypatch):
    write(room.folder / "in.csv", BASE)
    assert cli("tally", "in.csv", "-o", "in.tally", "--bounds", *BOX).code == 0
    # Not called for headers alone.
    monkeypatch.setattr("psd.ingest.tally_file._check", failing(MemoryError()))
    assert cli("build", "in.tally", "-o", "r.psd", *QUADTREE, *LEDGER) == FAULT
    assert tuple(room.charges()) == CHARGED


@pytest.mark.deep
@pytest.mark.parametrize("at", ["reading", "drawing"])
def test_twenty_faults_use_up_a_budget(room, monkeypatch, at):
    """A fault shows a bit that depends on records, so an epsilon of 1e-9 does not buy it."""
    room.register("few", "record", budget=1)
    path = room.folder / "in.csv"
    write(path, BASE)
    owner, name = {"reading": (TallyBuilder, "add_batch"), "drawing": (SecureSampler, "draw")}[at]
    monkeypatch.setattr(owner, name, failing(MemoryError()))
    build = {"domain": BOX, "epsilon": "0.000000002", "method": "grid"}
    for _ in range(MAX_FAULTS):
        with pytest.raises(InputDataError, match=UNREADABLE):
            psd.build(path, account=room.account("few"), **build)
    assert room.account("few").left == 0
    with pytest.raises(BudgetError, match="has epsilon 0 left"):
        psd.build(path, account=room.account("few"), **build)


def test_a_fault_costs_no_more_than_is_left_to_an_analyst(room):
    room.ledger.register("shared", 1, caps={"ann": "0.2", "bob": 1}, columns=Columns())
    ann, bob = (room.account("shared", name) for name in ("ann", "bob"))
    readings = (room.ledger.state().dataset("shared").reading,)
    what = {"loss": Loss.pure(3), "unit": PrivacyUnit(), "what": "build"}
    request = ChargeRequest(readings=readings, **what)
    for account in (ann, bob):
        account.charge(request)
        account.charge_fault(request)
    spent = [charge.loss.epsilon for charge in room.ledger.state().charges_of("shared")]
    assert spent == [3, NANO // 100 - 3, 3, NANO // 20 - 3]
    for account in (ann, bob):
        for _ in range(2 * MAX_FAULTS):
            account.charge_fault(request)
    state = room.ledger.state()
    assert state.spent("shared", analyst="ann") == NANO // 5
    assert state.spent("shared") == NANO


def test_a_limit_of_memory_finds_no_record_with_a_ledger(room, monkeypatch):
    """A limit that allows the cells of one input and not those of its neighbour."""
    monkeypatch.setattr(psd.ingest.quadrant_codes, "_MERGE_BYTES", 2 * 10**8)
    data = room.folder / "in.csv"
    build = {"domain": BOX, "epsilon": "0.000001", "method": "kd-standard", "memory": "1200MB"}
    write(data, BASE[:1])
    for account in (None, room.account()):
        psd.build(data, account=account, **build)
    write(data, BASE)
    psd.build(data, account=room.account(), **build)
    with pytest.raises(ResourceError):
        psd.build(data, **build)


# What is public comes first; the reason is for the holder.


@dataclass(frozen=True)
class Unbuildable:
    """A method whose parameters do not fit, which shows when it builds."""

    name: ClassVar[str] = "unbuildable"
    paper: ClassVar[str] = "none"

    def build(self, curator):
        raise ParameterError("height must fit the lattice")


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"method": Unbuildable()}, ParameterError),
        ({"epsilon": 1001}, ParameterError),
        ({"epsilon": 1000, "budget": 1}, BudgetError),
        ({"data": "no such file.csv"}, InputDataError),
        ({"data": 5}, InputDataError),
        ({"data": "in.csv", "layer": "points"}, ParameterError),
        ({"data": iter(()), "domain": PrivateBounds()}, InputDataError),
    ],
    ids=["method", "epsilon", "budget", "path", "type", "layer", "stream"],
)
def test_what_is_public_is_refused_with_its_reason_before_reading(
    room, monkeypatch, arguments, kind
):
    monkeypatch.setattr("psd.publish.counting.read", lambda *_, **__: pytest.fail("it was read"))
    write(room.folder / "in.csv", BASE)
    room.register("small", "record", arguments.get("budget", 1000))
    given = {"data": frame(BASE), "domain": BOX, "epsilon": 1} | arguments
    given.pop("budget", None)
    with pytest.raises(kind) as raised:
        psd.build(**given, account=room.account("small"))
    assert str(raised.value) != UNREADABLE
    assert room.charges() == []


def test_the_reason_of_a_fault_is_in_the_private_report_alone(room):
    rows = [*BASE, FAULTS["number"](127.0, 37.5)]
    shown = room.build(rows, BOX, ("--report-private",), paid=True)
    first, last = shown[2].splitlines()
    assert first.startswith("PRIVATE, do not publish: column 'lat' of ")
    assert "in.csv must hold plain" in first
    assert last == f"psd: error: {UNREADABLE}"
    asked = cli("ask", "in.csv", "--box", *BOX, "--epsilon", 1, "--report-private", *LEDGER)
    assert asked.err == shown[2]
    reasons, infinite = [], frame([*BASE, ("w", DAY, np.inf, 1, 1, 1)])
    observer = Observer(private_fault=reasons.append)
    with pytest.raises(InputDataError, match=UNREADABLE) as raised:
        psd.ask(infinite, area=BOX, epsilon=1, account=room.account(), observer=observer)
    assert reasons == ["column 'lon' must be finite; remove or repair infinite values"]
    assert raised.value.__cause__ is raised.value.__context__ is None
    assert room.charges() == []


def test_an_unexpected_error_is_reported_by_its_kind_alone(room, monkeypatch):
    monkeypatch.setattr(TallyBuilder, "add_batch", failing(RuntimeError("126.98 is a record")))
    shown = room.build(BASE, BOX, ("--report-private",), paid=True)
    assert "PRIVATE, do not publish: it failed with RuntimeError\n" in shown[2]
    assert "126.98" not in shown[2]
    assert shown[3] == CHARGED


def test_a_recipe_and_tallies_say_the_same_sentence(room):
    write(room.folder / "in.csv", [FAULTS["number"](127.0, 37.5)])
    Path("r.toml").write_text(
        '[private]\ninputs = ["in.csv"]\nledger = "city.ledger"\ndataset = "rows"\n'
        '[release]\noutput = "r.psd"\nepsilon = 1\nbounds = [126, 37, 128, 38]\n'
    )
    write(room.folder / "good.csv", BASE)
    for name, bounds in (("a", BOX), ("b", (126, 37, 128, 39))):
        assert cli("tally", "good.csv", "-o", f"{name}.tally", "--bounds", *bounds).code == 0
    assert cli("tally", "a.tally", "-o", "m.tally").code == 0
    assert cli("build", "r.toml") == FAULT
    for other in ("b.tally", "m.tally"):
        line = ("build", "a.tally", other, "-o", "r.psd", "--epsilon", 1)
        assert cli(*line, *LEDGER) == FAULT
    parts = [psd.tally(frame(BASE), domain=BOX, part="a") for _ in range(2)]
    with pytest.raises(InputDataError, match=UNREADABLE):
        psd.build(parts, epsilon=1, account=room.account())
    assert room.charges() == []


@pytest.mark.parametrize(
    ("error", "charged"),
    [
        (InputDataError("column 'lon' must hold numbers"), 0),
        (psd.errors.ResourceError("Spark could not count the input"), PRICE),
        (RuntimeError("executor lost"), PRICE),
    ],
    ids=["form", "engine", "defect"],
)
def test_engines_say_the_same_sentence(room, error, charged):
    engine = SimpleNamespace(tally=failing(error))
    with pytest.raises(InputDataError, match=UNREADABLE) as raised:
        psd.build("visits.csv", domain=BOX, epsilon=1, engine=engine, account=room.account())
    assert type(raised.value) is InputDataError
    assert sum(epsilon for epsilon, _ in room.charges()) == charged


def test_parts_of_one_name_are_refused_whether_or_not_they_have_records(room):
    """A build of a ledger is refused for nothing, so it would tell whether there is a record."""
    account = room.account()
    for rows in ([], [LONE], BASE):
        parts = [psd.tally(frame(rows), domain=BOX, part="a") for _ in range(2)]
        with pytest.raises(InputDataError, match="same name"):
            psd.merge(parts)
        with pytest.raises(InputDataError, match=UNREADABLE):
            psd.build(parts, epsilon=1, account=account)
    assert room.charges() == []


# A column of ids, one of times that is not registered, and one that does not exist.
@pytest.mark.parametrize(
    "column",
    [("--x", "user"), ("--time", "day"), ("--x", "none")],
    ids=lambda column: "=".join(column).lstrip("-"),
)
def test_a_reading_that_is_not_registered_is_charged_before_a_record_is_read(room, column):
    """Whether a column holds numbers or times in range would be told at no cost."""
    code, _, err = room.build(BASE, BOX, column, paid=True)[:3]
    assert (code, UNREADABLE in err) == (8, True)
    spent = [nano for nano, _ in room.charges()]
    assert len(spent) == 2
    assert sum(spent) == room.ledger.state().dataset("rows").budget // 20


def test_a_link_is_followed_once_before_the_first_check(tmp_path):
    """It pointed to a registered file when it was checked, and points elsewhere when it is read."""
    paths = {name: tmp_path / f"{name}.csv" for name in ("mine", "secret", "link")}
    frame(BASE).to_csv(paths["mine"], index=False)
    frame([*BASE, *BASE]).to_csv(paths["secret"], index=False)
    paths["link"].symlink_to(paths["mine"])
    ledger = Ledger.create(tmp_path / "city.ledger")
    ledger.register("rows", 9, columns=Columns(), inputs=[paths["mine"]])
    reports = []

    def flip(stage):
        if stage == "reading":
            paths["link"].unlink()
            paths["link"].symlink_to(paths["secret"])

    observer = Observer(progress=flip, private_report=reports.append)
    paid = {"epsilon": 1, "account": psd.ledger.Account(ledger, "rows")}
    psd.build(str(paths["link"]), domain=BOX, observer=observer, **paid)
    assert [report["read"] for report in reports] == [len(BASE)]
