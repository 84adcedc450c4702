"""Refusals do not depend on records: builds are replayed over random bounds on neighbouring inputs.

The rule and its proof are those of `psd.publish.refusals`. What is compared is all that an analyst
can see of a build: exit code, output, message, the entries of the ledger and the set of files.
"""

import errno
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from shapely import Point

import psd
from psd.decompositions import Quadtree
from psd.errors import BudgetError, InputDataError, ParameterError, ResourceError
from psd.ingest.sources import Columns
from psd.ingest.tally_builder import TallyBuilder
from psd.ingest.user_partitions import UserPartitions
from psd.ledger.charges import ChargeRequest
from psd.ledger.ledger import Ledger
from psd.ledger.state import MAX_FAULTS
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.epsilon import NANO
from psd.privacy.loss import Loss
from psd.privacy.unit import PrivacyUnit
from psd.publish.observer import Observer
from psd.publish.refusals import UNREADABLE
from support.cli_runner import cli, files

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

UNITS = {
    "record": ((), {}),
    "user": (
        ("--user", "user", "--max-contributions", 2),
        {"user": "user", "max_contributions": 2},
    ),
    "user-day": (
        ("--user", "user", "--per", "day", "--read", "time=time", "--max-contributions", 1),
        {"user": "user", "per": "day", "time": "time", "max_contributions": 1},
    ),
}
COLUMNS = {"lon": (), "a": ("--read", "x=a", "--read", "y=b")}
QUADTREE = ("--method", "quadtree", "--set", "height=2", "--epsilon", "0.000001")


def write(path, rows):
    """CSV of rows; None is a missing field."""
    lines = (",".join("" if field is None else str(field) for field in row) for row in rows)
    path.write_text("\n".join([HEADER, *lines]) + "\n")


def random_bounds(rng, column="lon"):
    """A box around a record, down to about a metre wide, or anywhere."""
    rows = [*BASE, LONE]
    row = rows[rng.integers(len(rows))]
    x, y = row[2:4] if column == "lon" else row[4:6]
    half = 10.0 ** rng.uniform(-5, 1)
    if rng.random() < 0.4:
        x, y = rng.uniform(-150, 150), rng.uniform(-70, 70)
    x, y = x + rng.uniform(-1, 1) * half, y + rng.uniform(-1, 1) * half
    return (max(x - half, -180), max(y - half, -90), min(x + half, 180), min(y + half, 90))


# What a fault costs under the budget of a room, with the charge of its build.
PRICE = 1000 * NANO // MAX_FAULTS


class Room:
    """A folder with an input, an output and a ledger that has a dataset for each unit."""

    def __init__(self, folder, unit):
        self.folder, self.unit = folder, unit
        self.ledger = Ledger.create(folder / "city.ledger")
        self.register("rows", unit)

    def register(self, name, unit, budget=1000):
        """Add a dataset that is read as the units are."""
        columns = Columns(
            user=None if unit == "record" else "user", time="time" if unit == "user-day" else None
        )
        self.ledger.register(name, budget, unit=unit, columns=columns)

    def charges(self):
        """Epsilon of each charge, and whether it is done."""
        return [
            (charge.loss.epsilon, charge.done) for charge in self.ledger.state().charges.values()
        ]

    def build(self, rows, bounds, options=(), *, paid):
        """What a build by the command line shows."""
        write(self.folder / "in.csv", rows)
        Path(self.folder, "r.psd").unlink(missing_ok=True)
        before = len(self.charges())
        account = ("--ledger", "city.ledger", "--dataset", "rows") if paid else ()
        where = ("--bounds", *(repr(float(edge)) for edge in bounds))
        outcome = cli("build", "in.csv", "-o", "r.psd", *where, *QUADTREE, *options, *account)
        charged = tuple(self.charges()[before:])
        out = self.without_head(outcome.out)
        return outcome.code, out, outcome.err, charged, tuple(files(self.folder))

    def without_head(self, out):
        """Output without the head of the ledger, which covers the random ids of all charges."""
        return out.replace(f"ledger head {self.ledger.state().head_text}\n", "ledger head\n")

    def call(self, data, bounds, arguments, *, paid):
        """What a call of `psd.build` shows."""
        before = len(self.charges())
        account = psd.Account(self.ledger, "rows") if paid else None
        try:
            release = psd.build(
                data, domain=bounds, epsilon="0.000001", method=Quadtree(height=2),
                account=account, **arguments,
            )  # fmt: skip
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


def replay_commands(room, rounds, seed):
    """Builds of all inputs show the same, whatever the bounds; with a ledger each is charged."""
    rng = np.random.default_rng(seed)
    for number in range(rounds):
        column = ("lon", "a")[number % 2]
        options = (*UNITS[room.unit][0], *COLUMNS[column])
        bounds = random_bounds(rng, column)
        for paid in (False, True) if column == "lon" else (False,):
            shown = {
                name: room.build(rows, bounds, options, paid=paid) for name, rows in ALIKE.items()
            }
            assert len(set(shown.values())) == 1, (bounds, shown)
            assert shown["base"][0] == 0
            assert shown["base"][3] == (((1000, True),) if paid else ())


def replay_calls(room, rounds, seed):
    """The same through `psd.build`."""
    rng = np.random.default_rng(seed)
    arguments = UNITS[room.unit][1]
    tables = {name: frame(rows) for name, rows in ALIKE.items()}
    for _ in range(rounds):
        bounds = random_bounds(rng)
        for paid in (False, True):
            shown = {
                name: room.call(table, bounds, arguments, paid=paid)
                for name, table in tables.items()
            }
            assert len(set(shown.values())) == 1, (bounds, shown)
            assert shown["base"][-1] == (((1000, False),) if paid else ())


@pytest.mark.parametrize("room", UNITS, indirect=True)
def test_builds_of_neighbours_show_the_same(room):
    replay_commands(room, 2, seed=1)


@pytest.mark.parametrize("room", UNITS, indirect=True)
def test_calls_of_neighbours_show_the_same(room):
    replay_calls(room, 4, seed=2)


@pytest.mark.nightly
@pytest.mark.parametrize("room", UNITS, indirect=True)
def test_builds_of_neighbours_show_the_same_over_many_bounds(room):
    replay_commands(room, 20, seed=3)
    replay_calls(room, 50, seed=4)


@pytest.mark.parametrize("paid", [False, True], ids=["free", "paid"])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("room", ["user-day"], indirect=True)
def test_a_fault_of_form_shows_the_same_wherever_it_lies(room, fault, paid):
    rng = np.random.default_rng(5)
    shown = set()
    for bounds in ((126, 37, 128, 38), random_bounds(rng), random_bounds(rng)):
        for place in PLACES:
            rows = [*BASE, FAULTS[fault](*place)]
            shown.add(room.build(rows, bounds, UNITS["user-day"][0], paid=paid))
    assert len(shown) == 1, shown
    ((code, out, err, charged, left),) = shown
    assert (code, out, charged) == (8, "", ())
    assert left == ("city.ledger", "in.csv")
    assert (UNREADABLE in err) == paid


def test_faults_of_all_kinds_show_the_same_with_a_ledger(room):
    options = UNITS["user-day"][0]
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
    line = ("build", "in.csv", "-o", "r.psd", "--bounds", 126, 37, 128, 38, *QUADTREE, *options)
    shown = set()
    for content in contents:
        Path("in.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
        outcome = cli(*line, "--ledger", "city.ledger", "--dataset", "days")
        shown.add((outcome.code, outcome.out, outcome.err))
    assert shown == {(8, "", f"psd: error: {UNREADABLE}\n")}
    assert room.charges() == []


def test_records_without_a_valid_transform_are_outside(room):
    near = [Point(14137578, 4509031), Point(14126446, 4509031)]
    for bounds in ((126, 37, 128, 38), (-10, -10, 10, 10), (126.99, 37.4, 127.01, 37.6)):
        shown = set()
        for more in ([], [Point(1e30, 1e30)], [Point(0, 1e30)], [Point()]):
            data = gpd.GeoDataFrame(geometry=[*near, *more], crs="EPSG:3857")
            shown.add(room.call(data, bounds, {}, paid=True))
        assert len(shown) == 1


def test_columns_without_a_valid_transform_are_outside(room):
    near = [(127.0, 37.5), (126.9, 37.5)]
    for bounds in ((9e5, 19e5, 10e5, 20e5), (10e5, 14e5, 11e5, 15e5), (955e3, 194e4, 956e3, 196e4)):
        domain, shown = psd.Domain(bounds=bounds, crs="EPSG:5179"), set()
        for more in ([], [(0.0, 95.0)], [(200.0, -95.0)], [(1e30, 1e30)], [(np.nan, np.nan)]):
            data = pd.DataFrame([*near, *more], columns=["x", "y"])
            shown.add(room.call(data, domain, {"input_crs": "EPSG:4326"}, paid=True))
        assert len(shown) == 1
        assert {outcome[0] for outcome in shown} == {psd.Release}


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


@pytest.mark.parametrize("how", ["command", "call", "ask"])
def test_bisected_bounds_find_no_record_and_each_build_is_charged(room, how):
    """25 builds at epsilon 1e-9 once found a lone record to 10 m."""
    write(room.folder / "in.csv", [LONE])
    ledger = ("--ledger", "city.ledger", "--dataset", "rows", "--epsilon", "0.000000001")

    def command(bounds):
        edges = tuple(map(repr, bounds))
        if how == "ask":
            return cli("ask", "in.csv", "--box", *edges, *ledger).code
        line = ("build", "in.csv", "-o", "r.psd", "--overwrite", "--bounds", *edges)
        outcome = cli(*line, *QUADTREE[:-2], *ledger)
        return outcome.code, room.without_head(outcome.out), outcome.err

    def call(bounds):
        try:
            psd.build(
                frame([LONE]), domain=bounds, epsilon="0.000000001", method=Quadtree(height=2),
                account=psd.Account(room.ledger, "rows"),
            )  # fmt: skip
        except psd.errors.PsdError as error:
            return type(error), str(error)
        return None

    shown, (west, south, east, north) = bisect(room, call if how == "call" else command)
    assert len(shown) == 1
    assert not (west <= LONE[2] <= east and south <= LONE[3] <= north)
    assert [epsilon for epsilon, _ in room.charges()] == [1] * 25


# A lack of memory or disk.

SHORTAGES = {
    "memory": (TallyBuilder, "add_batch", MemoryError()),
    "disk": (UserPartitions, "_write", OSError(errno.ENOSPC, "No space left on device")),
}


def run_short(monkeypatch, kind):
    """Let memory or disk give out while records are counted."""
    owner, name, error = SHORTAGES[kind]

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(owner, name, fail)
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
    options, bounds = UNITS["user"][0], (126, 37, 128, 38)
    fault = room.build([*BASE, ("", DAY, 127.0, 37.5, 0, 0)], bounds, options, paid=True)
    run_short(monkeypatch, kind)
    short = room.build(BASE, bounds, options, paid=True)
    assert short[:3] == fault[:3] == (8, "", f"psd: error: {UNREADABLE}\n")
    assert short[4] == fault[4]
    assert fault[3] == ()
    assert short[3] == ((1000, False), (PRICE - 1000, False))


@pytest.mark.parametrize("kind", ["memory", "disk"])
@pytest.mark.parametrize("room", ["user"], indirect=True)
def test_without_a_ledger_a_lack_of_memory_or_disk_has_its_reason(room, monkeypatch, kind):
    run_short(monkeypatch, kind)
    code, _, err, _, _ = room.build(BASE, (126, 37, 128, 38), UNITS["user"][0], paid=False)
    assert (code, UNREADABLE in err) == (70 if kind == "memory" else 6, False)


def test_a_lack_of_memory_while_tallies_are_read_is_charged(room, monkeypatch):
    write(room.folder / "in.csv", BASE)
    tally = ("tally", "in.csv", "-o", "in.tally", "--bounds", 126, 37, 128, 38)
    assert cli(*tally).code == 0

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr("psd.ingest.tally_file._check", fail)  # not called for headers alone
    line = ("build", "in.tally", "-o", "r.psd", *QUADTREE)
    outcome = cli(*line, "--ledger", "city.ledger", "--dataset", "rows")
    assert (outcome.code, outcome.err) == (8, f"psd: error: {UNREADABLE}\n")
    assert room.charges() == [(1000, False), (PRICE - 1000, False)]


@pytest.mark.parametrize("at", ["reading", "drawing"])
def test_twenty_faults_use_up_a_budget(room, monkeypatch, at):
    """A fault shows a bit that depends on records, so an epsilon of 1e-9 does not buy it."""
    room.register("few", "record", budget=1)
    path = room.folder / "in.csv"
    write(path, BASE)

    def fail(*_, **__):
        raise MemoryError

    owner, name = {"reading": (TallyBuilder, "add_batch"), "drawing": (SecureSampler, "draw")}[at]
    monkeypatch.setattr(owner, name, fail)
    build = {"domain": (126, 37, 128, 38), "epsilon": "0.000000002", "method": "grid"}
    for _ in range(MAX_FAULTS):
        with pytest.raises(InputDataError, match=UNREADABLE):
            psd.build(path, account=psd.Account(room.ledger, "few"), **build)
    assert psd.Account(room.ledger, "few").left == 0
    with pytest.raises(BudgetError, match="has epsilon 0 left"):
        psd.build(path, account=psd.Account(room.ledger, "few"), **build)


def test_a_fault_costs_no_more_than_is_left_to_an_analyst(room):
    room.ledger.register("shared", 1, caps={"ann": "0.2", "bob": 1}, columns=Columns())
    ann, bob = (psd.Account(room.ledger, "shared", analyst=name) for name in ("ann", "bob"))
    reading = room.ledger.state().dataset("shared").reading
    request = ChargeRequest(
        loss=Loss.pure(3), unit=PrivacyUnit(), what="build", readings=(reading,)
    )
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
    monkeypatch.setattr(psd.ingest.cell_counter, "_MERGE_BYTES", 2 * 10**8)
    small, large = BASE[:1], BASE
    arguments = {"epsilon": "0.000001", "method": "kd-standard", "memory": "1200MB"}
    for paid in (False, True):
        ends = []
        for rows in (small, large):
            write(room.folder / "in.csv", rows)
            try:
                account = psd.Account(room.ledger, "rows") if paid else None
                data = room.folder / "in.csv"
                psd.build(data, domain=(126, 37, 128, 38), account=account, **arguments)
                ends.append("built")
            except ResourceError:
                ends.append("refused")
        assert ends == ["built", "built" if paid else "refused"]


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
        ({"data": iter(()), "domain": psd.PrivateBounds()}, InputDataError),
    ],
    ids=["method", "epsilon", "budget", "path", "type", "layer", "stream"],
)
def test_what_is_public_is_refused_with_its_reason_before_reading(
    room, monkeypatch, arguments, kind
):
    monkeypatch.setattr("psd.publish.count_rows.read", lambda *_, **__: pytest.fail("it was read"))
    write(room.folder / "in.csv", BASE)
    room.register("small", "record", arguments.get("budget", 1000))
    given = {"data": frame(BASE), "domain": (126, 37, 128, 38), "epsilon": 1} | arguments
    given.pop("budget", None)
    with pytest.raises(kind) as raised:
        psd.build(**given, account=psd.Account(room.ledger, "small"))
    assert str(raised.value) != UNREADABLE
    assert room.charges() == []


def test_the_reason_of_a_fault_is_in_the_private_report_alone(room):
    rows = [*BASE, FAULTS["number"](127.0, 37.5)]
    bounds = (126, 37, 128, 38)
    shown = room.build(rows, bounds, ("--report-private",), paid=True)
    first, last = shown[2].splitlines()
    assert first.startswith("PRIVATE, do not publish: column 'lat' of ")
    assert "in.csv must hold plain" in first
    assert last == f"psd: error: {UNREADABLE}"
    asked = cli(
        "ask", "in.csv", "--box", *bounds, "--epsilon", 1, "--report-private",
        "--ledger", "city.ledger", "--dataset", "rows",
    )  # fmt: skip
    assert asked.err == shown[2]
    reasons = []
    observer = Observer(private_fault=reasons.append)
    with pytest.raises(InputDataError, match=UNREADABLE) as raised:
        psd.ask(
            frame([*BASE, ("w", DAY, np.inf, 1, 1, 1)]), box=bounds, epsilon=1,
            account=psd.Account(room.ledger, "rows"), observer=observer,
        )  # fmt: skip
    assert reasons == ["column 'lon' must be finite; remove or repair infinite values"]
    assert raised.value.__cause__ is raised.value.__context__ is None
    assert room.charges() == []


def test_an_unexpected_error_is_reported_by_its_kind_alone(room, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("126.98 is a record")

    monkeypatch.setattr(TallyBuilder, "add_batch", fail)
    shown = room.build(BASE, (126, 37, 128, 38), ("--report-private",), paid=True)
    assert "PRIVATE, do not publish: it failed with RuntimeError\n" in shown[2]
    assert "126.98" not in shown[2]
    assert shown[3] == ((1000, False), (PRICE - 1000, False))


def test_a_recipe_and_tallies_say_the_same_sentence(room):
    write(room.folder / "in.csv", [FAULTS["number"](127.0, 37.5)])
    Path("r.toml").write_text(
        '[private]\ninputs = ["in.csv"]\nledger = "city.ledger"\ndataset = "rows"\n'
        '[release]\noutput = "r.psd"\nepsilon = 1\nbounds = [126, 37, 128, 38]\n'
    )
    paid = ("--ledger", "city.ledger", "--dataset", "rows")
    write(room.folder / "good.csv", BASE)
    for name, bounds in (("a", (126, 37, 128, 38)), ("b", (126, 37, 128, 39))):
        assert cli("tally", "good.csv", "-o", f"{name}.tally", "--bounds", *bounds).code == 0
    assert cli("merge", "a.tally", "-o", "m.tally").code == 0
    lines = [
        ("run", "r.toml"),
        ("build", "a.tally", "b.tally", "-o", "r.psd", "--epsilon", 1, *paid),
        ("build", "a.tally", "m.tally", "-o", "r.psd", "--epsilon", 1, *paid),
    ]
    for line in lines:
        outcome = cli(*line)
        assert (outcome.code, outcome.err) == (8, f"psd: error: {UNREADABLE}\n"), line
    parts = [psd.tally(frame(BASE), domain=(126, 37, 128, 38), part="a") for _ in range(2)]
    with pytest.raises(InputDataError, match=UNREADABLE):
        psd.build(parts, epsilon=1, account=psd.Account(room.ledger, "rows"))
    assert room.charges() == []


class FailingEngine:
    """An engine that cannot read, or that runs out of memory."""

    def __init__(self, error):
        self.error = error

    def tally(self, *_, **__):
        raise self.error


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
    with pytest.raises(InputDataError, match=UNREADABLE) as raised:
        psd.build(
            "visits.csv", domain=(126, 37, 128, 38), epsilon=1, engine=FailingEngine(error),
            account=psd.Account(room.ledger, "rows"),
        )  # fmt: skip
    assert type(raised.value) is InputDataError
    assert sum(epsilon for epsilon, _ in room.charges()) == charged


def test_a_part_is_empty_if_no_record_was_read(room):
    """Whether two parts of one name are merged does not depend on where records lie."""
    for rows, is_merged in (([], True), ([LONE], False), (BASE, False)):
        parts = [psd.tally(frame(rows), domain=(126, 37, 128, 38), part="a") for _ in range(2)]
        if is_merged:
            assert len(psd.merge(parts).tally.counts) == 0
        else:
            with pytest.raises(InputDataError, match="same name"):
                psd.merge(parts)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(("--read", "x=user"), id="a column of ids as coordinates"),
        pytest.param(("--read", "time=day"), id="a column of times that is not registered"),
        pytest.param(("--read", "x=none"), id="a column that does not exist"),
    ],
)
def test_a_reading_that_is_not_registered_is_charged_before_a_record_is_read(room, other):
    """Whether a column holds numbers or times in range would be told at no cost."""
    bounds = (126, 37, 128, 38)
    code, _, err = room.build(BASE, bounds, other, paid=True)[:3]
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

    psd.build(
        str(paths["link"]), domain=(126, 37, 128, 38), epsilon=1,
        account=psd.Account(ledger, "rows"),
        observer=Observer(progress=flip, private_report=reports.append),
    )  # fmt: skip
    assert [report["read"] for report in reports] == [len(BASE)]
