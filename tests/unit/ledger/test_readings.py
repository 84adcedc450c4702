"""Records are read as their dataset registers, or refused, or charged everywhere."""

import pytest

import psd
from psd.errors import LedgerError, ParameterError
from psd.ledger.account import Account
from psd.ledger.charges import ChargeRequest
from psd.ledger.entries import entry
from psd.ledger.file import append, exclusive
from psd.ledger.ledger import Ledger
from psd.ledger.readings import (
    check_readings,
    fits_unit,
    is_placed_alike,
    placing_options,
    registered_reading,
)
from psd.ledger.regions import Region
from psd.privacy.loss import Loss
from psd.privacy.unit import PrivacyUnit
from support.ledger_columns import older_ledger, readings_of

PLACED = {"x": "lon", "y": "lat"}
USER = {**PLACED, "user": "id", "ids": "nfc-1"}
TIMED = {**USER, "time": "t", "time_zone": "Asia/Seoul"}


@pytest.mark.parametrize("registered", [PLACED, USER, TIMED])
def test_the_registered_reading_is_accepted(registered):
    check_readings("visits", registered, [registered])
    check_readings("visits", registered, [registered, registered])
    assert is_placed_alike(registered, [registered])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"user": "device"}, "registered column of user ids 'id', got 'device'"),
        ({"user": "ID"}, "registered column of user ids 'id', got 'ID'"),
        ({"user": None, "ids": None}, "registered column of user ids 'id', got none"),
        ({"ids": "nfc-2"}, "registered rules of user ids 'nfc-1', got 'nfc-2'"),
        ({"time": "left"}, "registered column of times 't', got 'left'"),
    ],
)
def test_other_ids_and_times_are_refused(changes, words):
    other = {key: value for key, value in {**TIMED, **changes}.items() if value is not None}
    for readings in ([other], [TIMED, other]):
        with pytest.raises(LedgerError, match=f"^dataset 'visits' has the {words}; the two define"):
            check_readings("visits", TIMED, readings)


def test_ids_where_none_are_registered_are_refused():
    with pytest.raises(LedgerError, match="registered column of user ids none, got 'id'"):
        check_readings("visits", PLACED, [USER])


def test_a_reading_that_is_not_stated_is_refused():
    with pytest.raises(LedgerError, match="must state how its records were read"):
        check_readings("visits", PLACED, [])
    with pytest.raises(LedgerError, match=r"has no registered columns, .* `psd ledger columns"):
        check_readings("visits", None, [PLACED])
    assert not is_placed_alike(None, [PLACED])


@pytest.mark.parametrize(
    ("read", "alike"),
    [
        (TIMED, True),
        (USER, True),  # no time is read
        ({**TIMED, "time_zone": "UTC"}, False),
        ({**TIMED, "x": "home_lon"}, False),
        ({**TIMED, "y": "LAT"}, False),
        ({**TIMED, "geometry": "g"}, False),
        ({**TIMED, "decimal": ","}, False),
        ({**TIMED, "wkt": "geom"}, False),
        ({**TIMED, "coordinate_resolution": "0.001"}, False),
    ],
)
def test_anything_else_that_differs_places_records_otherwise(read, alike):
    check_readings("visits", TIMED, [read])
    assert is_placed_alike(TIMED, [read]) == alike
    assert is_placed_alike(TIMED, [TIMED, read]) == alike


@pytest.mark.parametrize(
    ("key", "value"), [("delimiter", ";"), ("encoding", "windows-1252"), ("skip_rows", "2")]
)
def test_other_records_of_one_file_are_refused(key, value):
    other = {**USER, key: value}
    with pytest.raises(
        LedgerError, match=f"is registered with {key} '(auto|0)', got '{value}'; the two"
    ):
        check_readings("visits", USER, [other])
    with pytest.raises(LedgerError, match=f"with {key} '{value}', got '(auto|0)'"):
        check_readings("visits", other, [other, USER])
    check_readings("visits", other, [other])
    assert is_placed_alike(other, [other])


def test_a_time_where_none_is_registered_is_read_and_placed_otherwise():
    check_readings("visits", PLACED, [{**PLACED, "time": "t"}])
    assert not is_placed_alike(PLACED, [{**PLACED, "time": "t"}])


def test_options_that_place_records_are_all_but_ids_and_times():
    assert placing_options({**TIMED, "delimiter": ";"}) == {**PLACED, "delimiter": ";"}


@pytest.mark.parametrize(
    ("columns", "unit", "zone", "reading"),
    [
        (None, "record", None, PLACED),
        (psd.Columns(user="id"), "user", None, USER),
        (psd.Columns(user="id", time="t"), "user-day", "Asia/Seoul", TIMED),
        (psd.Columns(user="id", time="t", time_zone="Asia/Seoul"), "user-day", "Asia/Seoul", TIMED),
        (psd.Columns(user="id", time="t"), "user-day", None, {**USER, "time": "t"}),
    ],
)
def test_what_is_registered(columns, unit, zone, reading):
    assert registered_reading(columns, unit, zone) == reading
    assert fits_unit(reading, unit)


@pytest.mark.parametrize(
    ("columns", "unit", "words"),
    [
        (None, "user", "the column of user ids if and only if the unit has users, got column None"),
        (psd.Columns(user="id"), "record", "got column 'id' with unit 'record'"),
        (psd.Columns(user="id"), "user-day", "the column of times with unit user-day"),
        (
            psd.Columns(user="id", time="t", time_zone="Asia/Seoul"),
            "user-day",
            "^time_zone must be that of the days, UTC, got Asia/Seoul",
        ),
    ],
)
def test_columns_that_do_not_fit_the_unit(columns, unit, words):
    with pytest.raises(ParameterError, match=words):
        registered_reading(columns, unit, None)


@pytest.mark.parametrize("registered", [None, "0.001", "0.01"])
def test_a_charge_of_another_coordinate_resolution_counts_everywhere(registered, tmp_path):
    paths = [tmp_path / name for name in ("west.csv", "east.csv")]
    for path, x in zip(paths, (0.5, 2.5), strict=True):
        path.write_text(f"lon,lat\n{x},0.5\n")
    ledger = Ledger.create(tmp_path / "l")
    ledger.register("visits", 2, coordinate_resolution=registered)
    for path, bounds in zip(paths, ((0, 0, 1, 1), (2, 0, 3, 1)), strict=True):
        domain = psd.Domain(bounds=bounds, coordinate_resolution="0.001")
        account = Account(ledger, "visits")
        psd.build(path, domain=domain, epsilon=1, method="grid", account=account)
    # Disjoint bounds cost a record one of the two, unless either counts everywhere.
    spent = 1 if registered == "0.001" else 2
    assert ledger.state().spent("visits") == spent * 10**9


def test_a_coordinate_resolution_is_registered_in_its_shortest_text(tmp_path):
    ledger = Ledger.create(tmp_path / "l")
    ledger.register("visits", 1, coordinate_resolution="1e-3")
    assert ledger.state().dataset("visits").reading["coordinate_resolution"] == "0.001"
    with pytest.raises(psd.errors.DomainError, match="coordinate_resolution must be"):
        ledger.register("other", 1, coordinate_resolution=0)


@pytest.mark.parametrize("name", ["", "x" * 1001])
def test_names_that_no_entry_has_are_not_registered(name, tmp_path):
    ledger = Ledger.create(tmp_path / "l")
    with pytest.raises(ParameterError, match="columns must have names of 1 to 1,000 characters"):
        ledger.register("visits", 1, columns=psd.Columns(layer=name))
    assert ledger.state().datasets == {}
    ledger.register("visits", 1, columns=psd.Columns(layer="x" * 1000, geometry="\x1b[2J"))
    assert ledger.verify().datasets["visits"].reading["geometry"] == "\x1b[2J"


def test_no_entry_is_written_that_is_not_read_again(tmp_path, monkeypatch):
    ledger = Ledger.create(tmp_path / "l")
    monkeypatch.setattr("psd.ledger.registration.registered_reading", lambda *_: {"x": 1})
    with pytest.raises(ValueError, match="a value that this library does not write"):
        ledger.register("visits", 1)
    assert ledger.verify().datasets == {}


# In a ledger


def request(region=None, **changes):
    (reading,) = readings_of(PrivacyUnit())
    readings = ({**reading, **changes},)
    return ChargeRequest(
        loss=Loss.pure(5 * 10**8),
        unit=PrivacyUnit(),
        what="build",
        region=region,
        readings=readings,
    )


def test_a_charge_that_places_records_otherwise_is_charged_everywhere(tmp_path):
    ledger = Ledger.create(tmp_path / "l")
    ledger.register("visits", 2)
    region = Region(bounds=(0, 0, 1, 1), crs="EPSG:4326", columns=("reader=csv", "x=lon", "y=lat"))
    ledger.charge("visits", request(region))
    ledger.charge("visits", request(region, x="home_lon"))
    assert [charge.region for charge in ledger.state().charges.values()] == [region, None]


@pytest.mark.parametrize("unit", ["record", "user", "user-day"])
def test_a_dataset_of_an_older_ledger_is_charged_once_it_has_columns(unit, tmp_path):
    ledger = older_ledger(tmp_path / "l", unit=unit)
    whose = {} if unit == "record" else {"user": "id"}
    columns = psd.Columns(**whose, time="t" if unit == "user-day" else None)
    of_unit = PrivacyUnit(kind=unit, time_zone="UTC" if unit == "user-day" else None)
    one = ChargeRequest(
        loss=Loss.pure(1),
        unit=of_unit,
        what="build",
        readings=(registered_reading(columns, unit, None),),
    )
    with pytest.raises(LedgerError, match="no registered columns"):
        ledger.charge("visits", one)
    ledger.register_columns("visits", columns)
    ledger.charge("visits", one)
    with pytest.raises(LedgerError, match=r"has registered columns, x=lon y=lat.*never change"):
        ledger.register_columns("visits", columns)
    assert ledger.verify().datasets["visits"].reading == one.readings[0]


def test_days_and_a_resolution_are_registered_with_the_columns(tmp_path):
    columns = psd.Columns(user="id", time="t")
    older = older_ledger(tmp_path / "older", unit="user-day", zone="Asia/Seoul")
    older.register_columns("visits", columns, coordinate_resolution="0.001")
    new = Ledger.create(tmp_path / "new")
    new.register(
        "visits",
        1,
        unit="user-day",
        time_zone="Asia/Seoul",
        columns=columns,
        coordinate_resolution="0.001",
    )
    for ledger in (older, new):
        reading = ledger.verify().datasets["visits"].reading
        assert (reading["time_zone"], reading["coordinate_resolution"]) == ("Asia/Seoul", "0.001")


def test_columns_that_do_not_fit_are_not_registered_later(tmp_path):
    ledger = older_ledger(tmp_path / "l", unit="user")
    with pytest.raises(ParameterError, match="column of user ids"):
        ledger.register_columns("visits")
    with pytest.raises(LedgerError, match="not registered"):
        ledger.register_columns("roads")
    assert ledger.state().datasets["visits"].reading is None


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("columns", {"name": "visits", "reading": {**PLACED, "x": "a"}}),
        ("columns", {"name": "roads", "reading": PLACED}),
        (
            "register",
            {"name": "roads", "budget": 1, "unit": "user", "time_zone": None, "bound": None,
             "caps": {}, "reading": PLACED},
        ),
    ],
)  # fmt: skip
def test_columns_written_by_hand_are_found(kind, body, tmp_path):
    ledger = Ledger.create(tmp_path / "l")
    ledger.register("visits", 2)
    with exclusive(ledger.path) as file:
        append(file, entry(ledger.state().hashes, kind, body))
    with pytest.raises(LedgerError, match="entry 3 of the ledger"):
        ledger.state()


# Builds


@pytest.fixture
def visits(tmp_path):
    """One person with 500 records; each record has a device of its own."""
    rows = "".join(f"1,1,ann,d{number}\n" for number in range(500))
    path = tmp_path / "visits.csv"
    path.write_text("lon,lat,person,device\n" + rows)
    return path


def test_one_person_is_not_shown_by_another_column_of_ids(visits, tmp_path):
    """By the column of devices, 500 records of one person would have epsilon 0.5 each."""
    ledger = Ledger.create(tmp_path / "l")
    ledger.register("people", 1, unit="user", columns=psd.Columns(user="person"))
    account = Account(ledger, "people")
    how = {"domain": (0, 0, 2, 2), "epsilon": "0.5", "method": "grid", "account": account}
    psd.build(visits, **how, user="person", max_contributions=1)
    with pytest.raises(LedgerError, match="column of user ids 'person', got 'device'"):
        psd.build(visits, **how, user="device", max_contributions=1)
    tally = psd.tally(visits, domain=(0, 0, 2, 2), user="device", max_contributions=1)
    how = {name: value for name, value in how.items() if name != "domain"}
    with pytest.raises(LedgerError, match="column of user ids 'person', got 'device'"):
        psd.build(tally, **how)
    answer = {"box": (0, 0, 2, 2), "epsilon": "0.5", "account": account}
    with pytest.raises(LedgerError, match="column of user ids 'person', got 'device'"):
        psd.ask(visits, **answer, user="device", max_contributions=1)
    assert len(ledger.state().charges) == 1
    tally = psd.tally(visits, domain=(0, 0, 2, 2), user="person", max_contributions=1)
    psd.build(tally, **how)


def test_a_header_with_two_spellings_is_refused(visits):
    visits.write_text("lon,lat,id,ID\n1,1,a,b\n")
    with pytest.raises(psd.errors.InputDataError, match="'id' and 'ID', which differ only in"):
        psd.build(visits, domain=(0, 0, 2, 2), epsilon=1, method="grid")
