"""Releases say who paid them, and a ledger that has forgotten one is found out."""

import json
import os
from contextlib import nullcontext
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
from psd.ledger.extents import region_fields, slices_fields, slices_of
from psd.ledger.ledger import Ledger
from psd.ledger.receipts import _differing_field, _StatedGuarantee, is_sound, read_receipt, receipts
from psd.privacy.loss import NANO, Loss
from psd.space.time_slices import TimeSlices
from support.ledger_columns import request_for
from support.ledger_edits import edit_charge

DOMAIN = psd.Domain(bounds=(0, 0, 4, 4))
POINTS = pd.DataFrame({"lon": [1.0, 2.0], "lat": [1.0, 3.0], "time": ["2024-01-01", "2024-01-02"]})
DAYS = {"slices": TimeSlices.parse("day", "2024-01-01..2024-01-02"), "time": "time"}


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "city.ledger")
    made.register("rows", 10)
    made.register("again", 10)
    return made


def build(data=POINTS, **more):
    return psd.build(data, **{"domain": DOMAIN, "epsilon": 1, "method": "grid", **more})


def built(account, path, data=POINTS, **more):
    build(data, account=account, **more).save(path)
    account.finish(path)
    return path


def test_a_release_and_a_series_are_sound_and_name_their_charge_and_no_more(ledger, tmp_path):
    account = Account(ledger, "rows")
    for name, more in (("s", DAYS), ("r", {})):
        path = built(account, tmp_path / name, **more)
        found, (*_, charge) = read_receipt(path), ledger.state().charges
        assert (found.ledger, found.charge) == (ledger.state().id, charge)
        assert is_sound(path)
    assert psd.load(path).record.parameters["charge"] == charge
    path.write_bytes(path.read_bytes()[:-100])
    assert not is_sound(path)
    build().save(tmp_path / "free")
    assert read_receipt(tmp_path / "free") is None


@pytest.mark.parametrize("more", [{}, DAYS], ids=["release", "series"])
def test_an_older_copy_is_noticed(more, ledger, tmp_path):
    older, path = ledger.path.read_bytes(), tmp_path / "r.psd.parquet"
    account = Account(ledger, "rows")
    account.compare(tmp_path)
    built(account, path, **more)
    account.compare(tmp_path)
    ledger.path.write_bytes(older)
    # Also when it has as many charges again: their ids are others.
    for name in ("y", "z"):
        with pytest.raises(LedgerError) as refused:
            Account(ledger, "rows").compare(tmp_path)
        assert str(refused.value) == (
            f"release {path} states a charge that ledger {ledger.path} does not have; an older "
            "copy of the ledger was restored, or the release is forged: restore the latest "
            "ledger, or remove the release"
        )
        built(Account(ledger, "rows"), tmp_path / name)


def said_by(footer, path):
    """A file of one row whose footer says something."""
    words = {key: json.dumps(value) for key, value in footer.items()}
    pq.write_table(pa.table({"x": [1]}).replace_schema_metadata(words), path)
    return path


def test_words_in_a_footer_are_no_release_and_block_no_ledger(ledger, tmp_path):
    own = {"ledger": ledger.state().id, "charge": "never"}
    in_series = {"parameters": [{}, {"charge": "never"}], "release": {"parameters": own}}
    in_series["slices"] = ["2026-01-01T00"] * 10**5  # as long as a header of many slices
    for key, header in (("psd", {"parameters": own}), ("psd-series", in_series)):
        path = said_by({key: header}, tmp_path / f"{key}.parquet")
        assert read_receipt(path).charge == "never"
        assert not is_sound(path)
        Account(ledger, "rows").compare(tmp_path)
    built(Account(ledger, "rows"), tmp_path / "r.psd.parquet")
    (own["charge"],) = ledger.state().charges
    said_by({"psd": {"parameters": own, "epsilon": "9", "unit": "user"}}, tmp_path / "a.parquet")
    said_by({"psd": {"parameters": own}}, tmp_path / "b.parquet")
    Account(ledger, "rows").compare(tmp_path)
    # Nor does one of a stream without slices.
    path = built(Account(ledger, "rows"), tmp_path / "s.psd.parquet", **DAYS)
    header = json.loads(pq.read_metadata(path).metadata[b"psd-series"])
    header["bound"] = "slice"
    header["parameters"][0]["stream_slices"] = 0
    said_by({"psd-series": header}, tmp_path / "forged.parquet")
    Account(ledger, "rows").compare(tmp_path)


def test_only_what_is_not_known_is_read_whole(ledger, tmp_path, monkeypatch):
    account = Account(ledger, "rows")
    built(account, tmp_path / "r.psd.parquet")
    monkeypatch.setattr("psd.ledger.receipts.is_sound", lambda path: pytest.fail(f"read {path}"))
    account.compare(tmp_path)
    other = Ledger.create(tmp_path / "other.ledger")
    other.register("rows", 1)
    Account(other, "rows").compare(tmp_path)
    ledger.path.unlink()
    Ledger.create(ledger.path).register("rows", 1)
    Account(ledger, "rows").compare(tmp_path)  # another ledger by its id


PEOPLE = POINTS.assign(id=["a", "b"])
USER = {"user": "id", "max_contributions": 3}
PAID = {
    "release": ("rows", {}),
    "series": ("rows", DAYS),
    "users": ("users", USER),
    "counted users": ("users", {"user": "id", "count": "users"}),
    "auto": ("users", {"user": "id", "max_contributions": "auto"}),
    "slices that share": ("users", {**USER, **DAYS, "per": "slice", "epsilon": "0.000000005"}),
    "days": ("days", {**USER, "per": "day", "time": "time", "time_zone": "Asia/Seoul"}),
    "private bounds": ("rows", {"domain": PrivateBounds(crs="EPSG:4326")}),
}


@pytest.fixture
def all_units(ledger):
    ledger.register("users", 10, unit="user", columns=psd.Columns(user="id"))
    days = psd.Columns(user="id", time="time")
    ledger.register("days", 10, unit="user-day", time_zone="Asia/Seoul", columns=days)
    return ledger


EDITED = ("release", "series", "days", "private bounds")
EDITS = {
    "epsilon": {"epsilon": 1},
    "contribution bound": {"bound": 7},
    "unit of privacy": {"dataset": "users"},
}


@pytest.mark.parametrize("name", PAID)
def test_a_charge_that_was_lowered_is_found_by_its_release(name, all_units, tmp_path):
    """Every hash of the edited ledger is right, so `verify` alone passes it."""
    dataset, options = PAID[name]
    built(Account(all_units, dataset), tmp_path / "r.parquet", PEOPLE, **options)
    checks = (
        lambda: Account(all_units, "rows").compare(tmp_path),
        lambda: all_units.verify(releases=tmp_path),
    )
    for check in checks:
        check()
    content, (charge, *_) = all_units.path.read_bytes(), all_units.state().charges
    for field, changes in EDITS.items() if name in EDITED else ():
        all_units.path.write_bytes(content)
        edit_charge(all_units, 6, **changes)
        all_units.verify()
        words = rf"r.parquet states another {field} than charge {charge}, .* the ledger was edited"
        for check in checks:
            with pytest.raises(LedgerError, match=words):
                check()


def test_a_charge_that_was_moved_elsewhere_is_found_by_its_release(ledger, tmp_path):
    """Areas without a common point do not add up, so a moved charge would be free."""
    points = tmp_path / "points.csv"
    POINTS.to_csv(points, index=False)
    built(Account(ledger, "rows"), tmp_path / "r.parquet", points)
    Account(ledger, "rows").compare(tmp_path)
    (charge,) = ledger.state().charges.values()
    region = json.loads(json.dumps(region_fields(charge.region)))
    for moved in ({"bounds": [10, 10, 14, 14]}, {"crs": "EPSG:3857"}, {"lattice": [2, 2]}):
        edit_charge(ledger, 4, region={**region, **moved})
        with pytest.raises(LedgerError, match=rf"another area .*ledger {ledger.path} paid"):
            ledger.verify(releases=tmp_path)


def test_what_is_no_file_is_not_waited_for(ledger, tmp_path, monkeypatch):
    """And other files, and those of other ledgers, are none of its business."""
    os.mkfifo(tmp_path / "a.parquet")
    (tmp_path / "b.parquet").symlink_to("a.parquet")
    (tmp_path / "c.parquet").symlink_to("/dev/zero")
    (tmp_path / "d.parquet").symlink_to("nowhere")
    (tmp_path / "e.parquet").write_bytes(b"PAR1 damaged PAR1")
    (tmp_path / "f.parquet").mkdir()
    POINTS.to_parquet(tmp_path / "g.parquet")
    other = Ledger.create(tmp_path / "other.ledger")
    other.register("rows", 1)
    built(Account(other, "rows"), tmp_path / "r.psd.parquet")
    open_ = pq.ParquetFile

    def opened(path, **how):
        assert os.path.isfile(path), "whoever opens a pipe waits for ever"
        return open_(path, **how)

    monkeypatch.setattr(pq, "ParquetFile", opened)
    Account(ledger, "rows").compare(tmp_path)
    assert [path.name for path, _ in receipts(tmp_path)] == ["r.psd.parquet"]


def test_a_file_under_a_second_name_is_warned_of(ledger, tmp_path):
    first, link, copy = (tmp_path / name for name in ("a.csv", "b.csv", "c.csv"))
    first.write_text("lon,lat\n1,1\n")
    link.symlink_to(first)
    copy.write_bytes(first.read_bytes())
    warning = (
        "a file of this input was also charged to dataset 'rows'; the same records in two datasets "
        "have two budgets, whose epsilons add up"
    )
    for dataset, data, words in (
        ("rows", first, []),
        ("rows", first, []),
        ("again", link, [warning]),
        ("again", copy, []),  # nothing of the content is kept
    ):
        said = []
        account = Account(ledger, dataset, warn=said.append)
        build(str(data), account=account)
        assert said == words
        state = data.stat()
        account.warn_elsewhere(request_for(1, files=((state.st_dev, state.st_ino),)))
        assert said == 2 * words


MOUNTS = """/dev/vda / ext4 rw 0 0
server:/a /mnt/net nfs4 rw 0 0
/dev/vdb /mnt/net/disk ext4 rw 0 0
server:/b /mnt/a\\040b nfs rw 0 0
//pc/c /mnt/net/disk/c cifs rw 0 0
server:/d /mnt/short nfs
cut off
"""


def test_network_file_systems_are_known(monkeypatch, tmp_path):
    """Where nothing says what is mounted, nothing is known."""
    mounts = tmp_path / "mounts"
    monkeypatch.setattr(ledger_file, "MOUNTS", mounts)
    assert ledger_file.network_file_system("/mnt/l") is None
    mounts.write_text("server:/a /elsewhere nfs4 rw 0 0\n")
    assert ledger_file.network_file_system("/mnt/l") is None
    mounts.write_bytes(MOUNTS.encode() + b"/dev/vdc /mnt/\xff ext4 rw 0 0\n")
    kinds = {
        **dict.fromkeys(("/home/l", "/mnt/network/l", "/mnt/net/disk/l"), None),
        "/mnt/net/l": "nfs4",
        "/mnt/net/x/y/l": "nfs4",
        "/mnt/net/disk/c/l": "cifs",
        "/mnt/a b/l": "nfs",
        "/mnt/short/l": "nfs",
    }
    assert {place: ledger_file.network_file_system(place) for place in kinds} == kinds


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


def test_a_charge_that_was_moved_to_another_time_is_found_by_its_release(tmp_path, subtests):
    ledger = Ledger.create(tmp_path / "city.ledger")
    ledger.register("rows", 10, columns=psd.Columns(time="time"))
    POINTS.to_csv(tmp_path / "points.csv", index=False)
    account = Account(ledger, "rows")
    built(account, tmp_path / "r.psd.parquet", tmp_path / "points.csv", **DAYS)
    fields = slices_fields(slices_of(DAYS["slices"], "time"))
    for spans, is_found in (
        ([["2024-01-01T00", "2024-01-02T23"]], False),
        ([["2024-01-01T00", "2024-01-31T23"]], False),
        (None, False),
        ([["2024-01-01T00", "2024-01-01T23"]], True),
        ([["2024-02-01T00", "2024-02-29T23"]], True),
    ):
        edit_charge(ledger, 3, slices=spans and {**fields, "spans": spans})
        found = "states another list of time slices than charge"
        refusal = pytest.raises(LedgerError, match=found) if is_found else nullcontext()
        with subtests.test(spans=spans), refusal:
            ledger.verify(releases=tmp_path)
    edit_charge(ledger, 3, slices=fields)
    ledger.verify(releases=tmp_path)
    build(tmp_path / "points.csv", account=account).save(tmp_path / "whole.psd.parquet")
    edit_charge(ledger, 5, slices=fields)  # a release of no slices
    with pytest.raises(LedgerError, match=found):
        ledger.verify(releases=tmp_path)


def test_gaussian_charges_are_compared_in_rho_and_delta(ledger, subtests):
    """A series states the epsilon of all its slices, which share a rho."""
    ledger.register("delta", 2, delta="1e-6")
    ledger.charge("delta", request_for(Loss.gaussian(NANO, Fraction(1, 10**6))))
    (charge,) = ledger.state().charges_of("delta")
    stated = _StatedGuarantee(
        epsilon=NANO, unit="record", time_zone=None, contributions=1, area=(), delta="1e-6",
        rho="0.024355970359", slices=DAYS["slices"],
    )  # fmt: skip
    for changes, field in (
        ({}, None),
        ({"rho": None}, "rho"),
        ({"rho": "0.024355970358"}, "rho"),
        ({"delta": "1e-7"}, "delta"),
        ({"rho": None, "delta": None}, "delta"),
        ({"epsilon": 2 * NANO}, "epsilon"),
    ):
        with subtests.test(changes=changes):
            other, dataset = replace(stated, **changes), ledger.state().dataset("delta")
            assert _differing_field(other, charge, dataset) == field
