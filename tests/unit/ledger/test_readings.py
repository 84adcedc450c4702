"""Records are read as their dataset registers, or refused, or charged everywhere."""

import pytest

import psd
from psd.errors import LedgerError, ParameterError
from psd.ledger.account import Account
from psd.ledger.extents import Region
from psd.ledger.ledger import Ledger
from psd.ledger.state import (
    check_readings,
    fits_unit,
    is_placed_alike,
    placing_options,
    registered_reading,
)
from support.ledger_columns import BY_LON_LAT, request_for

PLACED = {"x": "lon", "y": "lat"}
USER = {**PLACED, "user": "id", "ids": "nfc-1"}
TIMED = {**USER, "time": "t", "time_zone": "Asia/Seoul"}


def test_other_ids_and_times_are_refused(subtests):
    for changes, words in (
        ({"user": "device"}, "registered column of user ids 'id', got 'device'"),
        ({"user": "ID"}, "registered column of user ids 'id', got 'ID'"),
        ({"user": None, "ids": None}, "registered column of user ids 'id', got none"),
        ({"ids": "nfc-2"}, "registered rules of user ids 'nfc-1', got 'nfc-2'"),
        ({"time": "left"}, "registered column of times 't', got 'left'"),
    ):
        other = {key: value for key, value in {**TIMED, **changes}.items() if value is not None}
        words = f"^dataset 'visits' has the {words}; the two define"
        for readings in ([other], [TIMED, other]):
            with subtests.test(words), pytest.raises(LedgerError, match=words):
                check_readings("visits", TIMED, readings)
    with pytest.raises(LedgerError, match="registered column of user ids none, got 'id'"):
        check_readings("visits", PLACED, [USER])
    # So is a reading that is not stated.
    with pytest.raises(LedgerError, match="must state how its records were read"):
        check_readings("visits", PLACED, [])


def test_anything_else_that_differs_places_records_otherwise(subtests):
    others = {"time_zone": "UTC", "x": "home_lon", "y": "LAT", "geometry": "g", "decimal": ","}
    for key, value in {"x": "lon", **others, "wkt": "geom", "coordinate_resolution": "1"}.items():
        read = {**TIMED, key: value}
        with subtests.test(key, value=value):
            check_readings("visits", TIMED, [read])
            assert is_placed_alike(TIMED, [read]) == (read == TIMED)
            assert is_placed_alike(TIMED, [TIMED, read]) == (read == TIMED)
    check_readings("visits", TIMED, [TIMED, TIMED])
    assert is_placed_alike(TIMED, [TIMED])


def test_a_time_may_be_left_unread_and_is_placed_otherwise_where_none_is_registered():
    timed = {**PLACED, "time": "t"}
    for registered, read, alike in ((TIMED, USER, True), (PLACED, timed, False)):
        check_readings("visits", registered, [read])
        assert is_placed_alike(registered, [read]) == alike
    # Options that place records are all but ids and times.
    assert placing_options({**TIMED, "delimiter": ";"}) == {**PLACED, "delimiter": ";"}


def test_other_records_of_one_file_are_refused():
    for key, value in (("delimiter", ";"), ("encoding", "windows-1252"), ("skip_rows", "2")):
        other = {**USER, key: value}
        words = f"is registered with {key} '(auto|0)', got '{value}'; the two"
        with pytest.raises(LedgerError, match=words):
            check_readings("visits", USER, [other])
        with pytest.raises(LedgerError, match=f"with {key} '{value}', got '(auto|0)'"):
            check_readings("visits", other, [other, USER])
        check_readings("visits", other, [other])
        assert is_placed_alike(other, [other])


SEOUL = "Asia/Seoul"


def test_what_is_registered(subtests):
    for columns, unit, zone, reading in (
        (None, "record", None, PLACED),
        (psd.Columns(user="id"), "user", None, USER),
        (psd.Columns(user="id", time="t"), "user-day", SEOUL, TIMED),
        (psd.Columns(user="id", time="t", time_zone=SEOUL), "user-day", SEOUL, TIMED),
        (psd.Columns(user="id", time="t"), "user-day", None, {**USER, "time": "t"}),
    ):
        with subtests.test(unit, columns=columns, zone=zone):
            assert registered_reading(columns, unit, zone) == reading
            assert fits_unit(reading, unit)
    assert not fits_unit(USER, "user-day")
    for part in ("user", "ids"):  # ids without their rules are none
        assert not fits_unit({**PLACED, part: USER[part]}, "user")


def test_columns_that_do_not_fit_the_unit(subtests):
    for columns, unit, words in (
        (None, "user", "the column of user ids if and only if the unit has users, got column None"),
        (psd.Columns(user="id"), "record", "got column 'id' with unit 'record'"),
        (psd.Columns(user="id"), "user-day", "the column of times with unit user-day"),
        (
            psd.Columns(user="id", time="t", time_zone=SEOUL),
            "user-day",
            "^time_zone must be that of the days, UTC, got Asia/Seoul",
        ),
    ):
        with subtests.test(words), pytest.raises(ParameterError, match=words):
            registered_reading(columns, unit, None)


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "l")


def test_what_no_entry_has_is_not_registered(ledger, monkeypatch):
    words = "columns must have names of 1 to 1,000 characters"
    for name in ("", "x" * 1001):
        with pytest.raises(ParameterError, match=words):
            ledger.register("visits", 1, columns=psd.Columns(layer=name))
    assert ledger.state().datasets == {}
    ledger.register("visits", 1, columns=psd.Columns(layer="x" * 1000, geometry="\x1b[2J"))
    assert ledger.verify().datasets["visits"].reading["geometry"] == "\x1b[2J"
    ledger.register("steps", 1, coordinate_resolution="1e-3")  # in its shortest text
    assert ledger.state().dataset("steps").reading["coordinate_resolution"] == "0.001"
    with pytest.raises(psd.errors.DomainError, match="coordinate_resolution must be"):
        ledger.register("other", 1, coordinate_resolution=0)
    monkeypatch.setattr("psd.ledger.registration.registered_reading", lambda *_: {"x": 1})
    with pytest.raises(ValueError, match="a value that this library does not write"):
        ledger.register("other", 1)
    assert [*ledger.verify().datasets] == ["visits", "steps"]


def request(region=None, **changes):
    readings = ({**BY_LON_LAT[0], **changes},)
    return request_for(5 * 10**8, region=region, readings=readings)


def test_a_charge_that_places_records_otherwise_is_charged_everywhere(ledger):
    ledger.register("visits", 2)
    region = Region(bounds=(0, 0, 1, 1), crs="EPSG:4326", columns=("reader=csv", "x=lon", "y=lat"))
    ledger.charge("visits", request(region))
    ledger.charge("visits", request(region, x="home_lon"))
    assert [charge.region for charge in ledger.state().charges.values()] == [region, None]


@pytest.fixture
def visits(tmp_path):
    """One person with 500 records; each record has a device of its own."""
    rows = "".join(f"1,1,ann,d{number}\n" for number in range(500))
    path = tmp_path / "visits.csv"
    path.write_text("lon,lat,person,device\n" + rows)
    return path


def test_one_person_is_not_shown_by_another_column_of_ids(visits, ledger):
    """By the column of devices, 500 records of one person would have epsilon 0.5 each."""
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
    with pytest.raises(LedgerError, match="column of user ids 'person', got 'device'"):
        psd.tally(
            visits, domain=(0, 0, 2, 2), user="device", max_contributions=1, ledger=ledger,
            dataset="people",
        )  # fmt: skip
    answer = {"area": (0, 0, 2, 2), "epsilon": "0.5", "account": account}
    with pytest.raises(LedgerError, match="column of user ids 'person', got 'device'"):
        psd.ask(visits, **answer, user="device", max_contributions=1)
    assert len(ledger.state().charges) == 1
    tally = psd.tally(visits, domain=(0, 0, 2, 2), user="person", max_contributions=1)
    psd.build(tally, **how)
