"""Releases say who paid them, and a ledger that has forgotten one is found out."""

import json
import os
import shutil
from dataclasses import replace
from fractions import Fraction

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import psd
from psd.curator.private_bounds import PrivateBounds
from psd.errors import LedgerError
from psd.ledger import file as ledger_file
from psd.ledger.account import Account
from psd.ledger.charged_slices import slices_fields, slices_of
from psd.ledger.charges import ChargeRequest
from psd.ledger.ledger import Ledger
from psd.ledger.receipts import (
    _differing_field,
    _StatedGuarantee,
    is_sound,
    read_receipt,
    receipts,
)
from psd.ledger.regions import region_fields
from psd.privacy.epsilon import NANO
from psd.privacy.loss import Loss
from psd.privacy.unit import PrivacyUnit
from psd.space.time_slices import TimeSlices
from support.ledger_columns import BY_LON_LAT
from support.ledger_edits import edit_charge

DOMAIN = psd.Domain(bounds=(0, 0, 4, 4))
POINTS = pd.DataFrame({"lon": [1.0, 2.0], "lat": [1.0, 3.0], "time": ["2024-01-01", "2024-01-02"]})


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "city.ledger")
    made.register("rows", 10)
    made.register("again", 10)
    return made


def built(account, path, data=POINTS):
    release = psd.build(data, domain=DOMAIN, epsilon=1, method="grid", account=account)
    release.save(path)
    account.finish(path)
    return path


def test_a_release_names_its_charge_and_no_more(ledger, tmp_path):
    account = Account(ledger, "rows")
    found = read_receipt(built(account, tmp_path / "r.psd.parquet"))
    (charge,) = ledger.state().charges
    assert (found.ledger, found.charge) == (ledger.state().id, charge)
    assert psd.Release.load(tmp_path / "r.psd.parquet").parameters["charge"] == charge


def test_a_release_without_a_ledger_names_none(tmp_path):
    path = tmp_path / "r.psd.parquet"
    psd.build(POINTS, domain=DOMAIN, epsilon=1, method="grid").save(path)
    assert read_receipt(path) is None


def test_a_series_names_its_charge(ledger, tmp_path):
    slices = TimeSlices(by="day", names=("2024-01-01", "2024-01-02"), time_zone="UTC")
    series = psd.build(
        POINTS, domain=DOMAIN, epsilon=1, method="grid", slices=slices, time="time",
        account=Account(ledger, "rows"),
    )  # fmt: skip
    series.save(tmp_path / "s.psd.parquet")
    assert read_receipt(tmp_path / "s.psd.parquet").charge in ledger.state().charges


def test_an_older_copy_is_noticed(ledger, tmp_path):
    older = tmp_path / "older"
    shutil.copy(ledger.path, older)
    account = Account(ledger, "rows")
    account.compare(tmp_path)
    built(account, tmp_path / "r.psd.parquet")
    account.compare(tmp_path)
    shutil.copy(older, ledger.path)
    with pytest.raises(LedgerError, match=r"r.psd.parquet states a charge .* an older copy"):
        Account(ledger, "rows").compare(tmp_path)
    # Also when it has as many charges again: their ids are others.
    built(Account(ledger, "rows"), tmp_path / "elsewhere")
    with pytest.raises(LedgerError, match="an older copy"):
        Account(ledger, "rows").compare(tmp_path)


def said_by(footer, path):
    """A file of one row whose footer says something."""
    words = {key: json.dumps(value) for key, value in footer.items()}
    pq.write_table(pa.table({"x": [1]}).replace_schema_metadata(words), path)
    return path


@pytest.mark.parametrize("key", ["psd", "psd-series"])
def test_words_in_a_footer_are_no_release_and_block_no_ledger(key, ledger, tmp_path):
    own = {"ledger": ledger.state().id, "charge": "never"}
    named = {"parameters": own if key == "psd" else [own]}
    path = said_by({key: named}, tmp_path / "a.parquet")
    assert read_receipt(path).charge == "never"
    assert not is_sound(path)
    Account(ledger, "rows").compare(tmp_path)


def test_only_what_is_not_known_is_read_whole(ledger, tmp_path, monkeypatch):
    account = Account(ledger, "rows")
    built(account, tmp_path / "r.psd.parquet")
    asked = []
    monkeypatch.setattr("psd.ledger.receipts.is_sound", lambda path: asked.append(path) or False)
    account.compare(tmp_path)
    assert asked == []
    other = Ledger.create(tmp_path / "other.ledger")
    other.register("rows", 1)
    Account(other, "rows").compare(tmp_path)
    assert asked == []
    ledger.path.unlink()
    Ledger.create(ledger.path).register("rows", 1)
    Account(ledger, "rows").compare(tmp_path)
    assert asked == []  # another ledger by its id


def test_releases_and_series_are_sound(ledger, tmp_path):
    slices = TimeSlices(by="day", names=("2024-01-01", "2024-01-02"), time_zone="UTC")
    how = {"domain": DOMAIN, "epsilon": 1, "method": "grid"}
    psd.build(POINTS, slices=slices, time="time", **how).save(tmp_path / "s")
    psd.build(POINTS, **how).save(tmp_path / "r")
    assert is_sound(tmp_path / "s")
    assert is_sound(tmp_path / "r")
    (tmp_path / "r").write_bytes((tmp_path / "r").read_bytes()[:-100])
    assert not is_sound(tmp_path / "r")


def test_an_older_copy_is_noticed_by_a_series(ledger, tmp_path):
    shutil.copy(ledger.path, tmp_path / "older")
    slices = TimeSlices(by="day", names=("2024-01-01", "2024-01-02"), time_zone="UTC")
    how = {"domain": DOMAIN, "epsilon": 1, "method": "grid", "slices": slices, "time": "time"}
    psd.build(POINTS, account=Account(ledger, "rows"), **how).save(tmp_path / "s.parquet")
    shutil.copy(tmp_path / "older", ledger.path)
    with pytest.raises(LedgerError) as refused:
        Account(ledger, "rows").compare(tmp_path)
    assert str(refused.value) == (
        f"release {tmp_path / 's.parquet'} states a charge that ledger {ledger.path} does not "
        "have; an older copy of the ledger was restored, or the release is forged: restore the "
        "latest ledger, or remove the release"
    )


DAYS = TimeSlices(by="day", names=("2024-01-01", "2024-01-02"), time_zone="UTC")
PEOPLE = POINTS.assign(id=["a", "b"])
USER = {"user": "id", "max_contributions": 3}
PAID = {
    "release": ("rows", {}),
    "series": ("rows", {"slices": DAYS, "time": "time"}),
    "users": ("users", USER),
    "counted users": ("users", {"user": "id", "count": "users"}),
    "auto": ("users", {"user": "id", "max_contributions": "auto"}),
    "slices that share": (
        "users",
        {**USER, "slices": DAYS, "time": "time", "per": "slice", "epsilon": "0.000000005"},
    ),
    "days": ("days", {**USER, "per": "day", "time": "time", "time_zone": "Asia/Seoul"}),
    "private bounds": ("rows", {"domain": PrivateBounds(crs="EPSG:4326")}),
}


@pytest.fixture
def all_units(ledger):
    ledger.register("users", 10, unit="user", columns=psd.Columns(user="id"))
    days = psd.Columns(user="id", time="time")
    ledger.register("days", 10, unit="user-day", time_zone="Asia/Seoul", columns=days)
    return ledger


def paid(ledger, name, path):
    dataset, options = PAID[name]
    account = Account(ledger, dataset)
    plain = {"domain": DOMAIN, "epsilon": 1, "method": "grid"}
    release = psd.build(PEOPLE, **{**plain, **options}, account=account)
    release.save(path)
    account.finish(path)


@pytest.mark.parametrize("name", PAID)
def test_a_release_states_what_its_charge_states(name, all_units, tmp_path):
    paid(all_units, name, tmp_path / "r.parquet")
    Account(all_units, "rows").compare(tmp_path)
    all_units.verify(releases=tmp_path)


EDITS = {
    "epsilon": {"epsilon": 1},
    "contribution bound": {"bound": 7},
    "unit of privacy": {"dataset": "users"},
}


@pytest.mark.parametrize("field", EDITS)
@pytest.mark.parametrize("name", ["release", "series", "days", "private bounds"])
def test_a_charge_that_was_lowered_is_found_by_its_release(field, name, all_units, tmp_path):
    """Every hash of the edited ledger is right, so `verify` alone passes it."""
    paid(all_units, name, tmp_path / "r.parquet")
    edit_charge(all_units, 6, **EDITS[field])
    all_units.verify()
    (charge,) = all_units.state().charges
    words = rf"r.parquet states another {field} than charge {charge}, .* the ledger was edited"
    for check in (
        lambda: Account(all_units, "rows").compare(tmp_path),
        lambda: all_units.verify(releases=tmp_path),
    ):
        with pytest.raises(LedgerError, match=words):
            check()


MOVED = {
    "bounds": [10, 10, 14, 14],
    "crs": "EPSG:3857",
    "lattice": [2, 2],
}


@pytest.mark.parametrize("field", MOVED)
def test_a_charge_that_was_moved_elsewhere_is_found_by_its_release(field, ledger, tmp_path):
    """Areas without a common point do not add up, so a moved charge would be free."""
    points = tmp_path / "points.csv"
    POINTS.to_csv(points, index=False)
    built(Account(ledger, "rows"), tmp_path / "r.parquet", points)
    Account(ledger, "rows").compare(tmp_path)
    (charge,) = ledger.state().charges.values()
    region = json.loads(json.dumps(region_fields(charge.region)))
    edit_charge(ledger, 4, region={**region, field: MOVED[field]})
    with pytest.raises(LedgerError, match=rf"another area .*ledger {ledger.path} paid"):
        ledger.verify(releases=tmp_path)


def test_other_words_in_a_footer_are_no_release_and_block_no_ledger(ledger, tmp_path):
    built(Account(ledger, "rows"), tmp_path / "r.psd.parquet")
    (charge,) = ledger.state().charges
    own = {"ledger": ledger.state().id, "charge": charge}
    said_by({"psd": {"parameters": own, "epsilon": "9", "unit": "user"}}, tmp_path / "a.parquet")
    said_by({"psd": {"parameters": own}}, tmp_path / "b.parquet")
    Account(ledger, "rows").compare(tmp_path)


def test_a_footer_of_a_stream_without_slices_blocks_no_ledger(ledger, tmp_path):
    slices = TimeSlices(by="day", names=("2024-01-01",))
    series = psd.build(
        POINTS, domain=DOMAIN, epsilon=1, method="grid", slices=slices, time="time",
        account=Account(ledger, "rows"),
    )  # fmt: skip
    series.save(tmp_path / "s.psd.parquet")
    header = json.loads(pq.read_metadata(tmp_path / "s.psd.parquet").metadata[b"psd-series"])
    header["bound"] = "slice"
    header["parameters"][0]["stream_slices"] = 0
    said_by({"psd-series": header}, tmp_path / "forged.parquet")
    Account(ledger, "rows").compare(tmp_path)


def test_what_is_no_file_is_not_waited_for(ledger, tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "a.parquet")
    (tmp_path / "b.parquet").symlink_to("a.parquet")
    (tmp_path / "c.parquet").symlink_to("/dev/zero")
    (tmp_path / "d.parquet").symlink_to("nowhere")
    built(Account(ledger, "rows"), tmp_path / "r.psd.parquet")
    open_ = pq.ParquetFile

    def opened(path, **how):
        assert os.path.isfile(path), "whoever opens a pipe waits for ever"
        return open_(path, **how)

    monkeypatch.setattr(pq, "ParquetFile", opened)
    assert [path.name for path, _ in receipts(tmp_path)] == ["r.psd.parquet"]


def test_other_ledgers_and_other_files_are_none_of_its_business(ledger, tmp_path):
    other = Ledger.create(tmp_path / "other.ledger")
    other.register("rows", 1)
    built(Account(other, "rows"), tmp_path / "r.psd.parquet")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 damaged PAR1")
    (tmp_path / "b.parquet").mkdir()
    POINTS.to_parquet(tmp_path / "c.parquet")
    Account(ledger, "rows").compare(tmp_path)
    assert [path.name for path, _ in receipts(tmp_path)] == ["r.psd.parquet"]


def charged(ledger, dataset, data):
    """What is said when a dataset is charged for a file."""
    said = []
    account = Account(ledger, dataset, warn=said.append)
    psd.build(str(data), domain=DOMAIN, epsilon=1, method="grid", account=account)
    return said


def test_a_file_under_a_second_name_is_warned_of(ledger, tmp_path):
    first, link, copy = (tmp_path / name for name in ("a.csv", "b.csv", "c.csv"))
    first.write_text("lon,lat\n1,1\n")
    link.symlink_to(first)
    copy.write_bytes(first.read_bytes())
    assert charged(ledger, "rows", first) == charged(ledger, "rows", first) == []
    (warning,) = charged(ledger, "again", link)
    assert warning == (
        "a file of this input was also charged to dataset 'rows'; the same records in two datasets "
        "have two budgets, whose epsilons add up"
    )
    assert charged(ledger, "again", copy) == []  # nothing of the content is kept


MOUNTS = """/dev/vda / ext4 rw 0 0
server:/a /mnt/net nfs4 rw 0 0
/dev/vdb /mnt/net/disk ext4 rw 0 0
server:/b /mnt/a\\040b nfs rw 0 0
//pc/c /mnt/net/disk/c cifs rw 0 0
server:/d /mnt/short nfs
cut off
"""


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("/home/l", None),
        ("/mnt/net/l", "nfs4"),
        ("/mnt/net/x/y/l", "nfs4"),
        ("/mnt/network/l", None),
        ("/mnt/net/disk/l", None),
        ("/mnt/net/disk/c/l", "cifs"),
        ("/mnt/a b/l", "nfs"),
        ("/mnt/short/l", "nfs"),
    ],
)
def test_network_file_systems_are_known(monkeypatch, tmp_path, place, kind):
    (tmp_path / "mounts").write_bytes(MOUNTS.encode() + b"/dev/vdc /mnt/\xff ext4 rw 0 0\n")
    monkeypatch.setattr(ledger_file, "MOUNTS", tmp_path / "mounts")
    assert ledger_file.network_file_system(place) == kind


def test_where_nothing_says_what_is_mounted_nothing_is_known(monkeypatch, tmp_path):
    monkeypatch.setattr(ledger_file, "MOUNTS", tmp_path / "none")
    assert ledger_file.network_file_system("/mnt/l") is None
    (tmp_path / "none").write_text("server:/a /elsewhere nfs4 rw 0 0\n")
    assert ledger_file.network_file_system("/mnt/l") is None


def test_a_ledger_elsewhere_is_warned_of(monkeypatch, ledger):
    asked, said = [], []
    monkeypatch.setattr(
        "psd.ledger.account.network_file_system", lambda path: asked.append(path) or "nfs4"
    )
    Account(ledger, "rows", warn=said.append)
    assert asked == [ledger.path]
    assert said == [
        f"ledger {ledger.path} is on a network file system (nfs4), where locks may fail and a "
        "budget may be spent twice; move it to a local disk"
    ]
    with pytest.warns(UserWarning, match=r"network file system \(nfs4\)"):
        Account(ledger, "rows")


DAYS = {"slices": TimeSlices.parse("day", "2024-01-01..2024-01-02"), "time": "time"}


@pytest.fixture
def paid_days(tmp_path):
    """A ledger beside a series of two days of rows of CSV."""
    ledger = Ledger.create(tmp_path / "city.ledger")
    ledger.register("rows", 10, columns=psd.Columns(time="time"))
    POINTS.to_csv(tmp_path / "points.csv", index=False)
    account = Account(ledger, "rows")
    path = tmp_path / "points.csv"
    series = psd.build(path, domain=DOMAIN, epsilon=1, method="grid", account=account, **DAYS)
    series.save(tmp_path / "r.psd.parquet")
    account.finish(tmp_path / "r.psd.parquet")
    return ledger


@pytest.mark.parametrize(
    ("spans", "is_found"),
    [
        ([["2024-01-01T00", "2024-01-02T23"]], False),
        ([["2024-01-01T00", "2024-01-31T23"]], False),
        (None, False),
        ([["2024-01-01T00", "2024-01-01T23"]], True),
        ([["2024-02-01T00", "2024-02-29T23"]], True),
    ],
)
def test_a_charge_that_was_moved_to_another_time_is_found_by_its_release(
    paid_days, spans, is_found
):
    fields = slices_fields(slices_of(DAYS["slices"], "time"))
    edit_charge(paid_days, 3, slices=spans and {**fields, "spans": spans})
    folder = paid_days.path.parent
    if not is_found:
        paid_days.verify(releases=folder)
        return
    with pytest.raises(LedgerError, match="states another list of time slices than charge"):
        paid_days.verify(releases=folder)


def test_a_release_of_no_slices_is_no_release_of_a_charge_for_slices(ledger, tmp_path):
    account = Account(ledger, "rows")
    built(account, tmp_path / "r.psd.parquet")
    fields = slices_fields(slices_of(DAYS["slices"], "time"))
    edit_charge(ledger, 4, slices=fields)
    with pytest.raises(LedgerError, match="states another list of time slices"):
        ledger.verify(releases=tmp_path)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({}, None),
        ({"rho": None}, "rho"),
        ({"rho": "0.024355970358"}, "rho"),
        ({"delta": "1e-7"}, "delta"),
        ({"rho": None, "delta": None}, "delta"),
        ({"epsilon": 2 * NANO}, "epsilon"),
    ],
)
def test_gaussian_charges_are_compared_in_rho_and_delta(ledger, changes, field):
    """A series states the epsilon of all its slices, which share a rho."""
    loss = Loss.gaussian(NANO, Fraction(1, 10**6))
    ledger.register("delta", 2, delta="1e-6")
    request = ChargeRequest(loss=loss, unit=PrivacyUnit(), what="build", readings=BY_LON_LAT)
    state = (ledger.charge("delta", request), ledger.state())[1]
    (charge,) = state.charges_of("delta")
    stated = _StatedGuarantee(
        epsilon=NANO, unit="record", time_zone=None, contributions=1, area=(), delta="1e-6",
        rho="0.024355970359", slices=DAYS["slices"],
    )  # fmt: skip
    found = _differing_field(replace(stated, **changes), charge, state.dataset("delta"))
    assert found == field
