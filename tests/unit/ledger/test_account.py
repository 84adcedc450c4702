"""What a build claims: where its rows lie, as far as that can be held against other releases."""

import os
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

import psd
from psd.curator.contribution_choice import ContributionChoice
from psd.curator.private_bounds import PrivateBounds
from psd.errors import BudgetError, LedgerError, ParameterError
from psd.ingest.partial_tally import PartOrigin
from psd.ingest.sources import Columns, read
from psd.ingest.tally_builder import tally_batches
from psd.ledger.account import Account
from psd.ledger.charges import ChargeRequest
from psd.ledger.ledger import Ledger
from psd.ledger.regions import Region
from psd.ledger.state import MAX_FAULTS
from psd.privacy.budget import Budget
from psd.privacy.epsilon import NANO
from psd.privacy.loss import Loss
from psd.privacy.unit import PrivacyUnit
from psd.publish.charging import PendingCharge, charge_request, slices_of_tallies
from psd.publish.request import BuildRequest
from psd.release.signing import verify
from psd.space.public_files import BoundaryFile
from psd.space.time_slices import TimeSlices
from support.ledger_columns import BY_LON_LAT

DOMAIN = psd.Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(8, 8))
ADDRESS = "postgresql://db.example.org/city"


def claim(data, place=DOMAIN, columns=None, by_fields=True, **fields):
    fields |= {"columns": columns or Columns(), "method": "grid"}
    request = BuildRequest(domain=place, epsilon="0.000000007", **fields)
    return charge_request(request, data, by_fields=by_fields)


BY_COLUMNS = ("reader=csv", "x=lon", "y=lat")
REGION = Region(bounds=(0, 0, 4, 4), crs="EPSG:3857", columns=BY_COLUMNS, lattice=(8, 8))
INPUTS = ("a.csv", "b.csv", "c.tsv.gz", "a.gpkg", "a.shp", "a.fgb", "a.geojson", "a.parquet")


@pytest.fixture
def inputs(tmp_path, monkeypatch):
    """Empty files by name, files that only their first bytes tell, and a folder of two kinds."""
    monkeypatch.chdir(tmp_path)
    Path("both").mkdir()
    for name in (*INPUTS, "both/a.csv", "both/a.gpkg", "plain"):
        Path(name).touch()
    Path("layers").write_bytes(b"SQLite format 3\0")


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize("data", ["a.csv", ("a.csv", "b.csv"), "c.tsv.gz", "*.csv", "plain"])
def test_places_are_known_of_rows_of_text(data):
    assert claim(data).region == REGION


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize(
    "data",
    [
        *INPUTS[3:],
        "both",
        "both/*",
        "layers",
        ["a.csv", "a.gpkg"],
        ["a.csv", "-"],
        "-",
        "missing.csv",
        [],
        "hdfs:///city/visits.csv",
        [psd.PostGIS(ADDRESS, table="visits_at_home")],
        [psd.SparkTable("city.visits"), "a.csv"],
        [psd.PostGIS(ADDRESS, query="SELECT lon + 9 AS lon, lat FROM visits")],
        pd.DataFrame({"lon": [], "lat": [], "table": []}),
    ],
)
def test_places_of_all_other_rows_are_everywhere(data):
    assert claim(data).region is None


@pytest.mark.usefixtures("inputs")
def test_an_engine_says_by_itself_what_places_a_row():
    found = claim("a.csv", by_fields=False)
    assert (found.region, len(found.files)) == (None, 1)


@pytest.mark.usefixtures("inputs")
def test_columns_that_place_a_row_are_part_of_the_place():
    columns = Columns(x="home_x", y="home_y")
    assert claim("a.csv", columns=columns).region.columns == (
        "reader=csv",
        "x=home_x",
        "y=home_y",
    )


@pytest.mark.usefixtures("inputs")
def test_a_coordinate_resolution_is_part_of_the_place():
    stepped = psd.Domain(bounds=DOMAIN.bounds, coordinate_resolution="0.001")
    placing = {*claim("a.csv", stepped).region.columns}
    assert placing - {*claim("a.csv").region.columns} == {"coordinate_resolution=0.001"}


@pytest.mark.usefixtures("inputs")
def test_bounds_that_are_found_are_everywhere():
    assert claim("a.csv", PrivateBounds(crs="EPSG:4326")).region is None


def test_a_bound_that_is_chosen_is_not_claimed():
    columns, unit = Columns(user="id"), PrivacyUnit(kind="user", max_contributions=4)
    choice = ContributionChoice()
    assert claim("points.csv", columns=columns, unit=unit, contribution_choice=choice).chosen
    fixed = claim("points.csv", columns=columns, unit=unit)
    assert (fixed.chosen, fixed.unit.contributions) == (False, 4)


def test_a_claim_says_what_it_costs_and_which_files_it_reads(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").touch()
    Path("b.csv").touch()
    found = claim(("a.csv", "b.csv"))
    assert (found.what, found.loss.epsilon) == ("build grid", 7)
    assert found.files == tuple((s.st_dev, s.st_ino) for s in map(os.stat, ("a.csv", "b.csv")))
    for none in ("missing.csv", pd.DataFrame({"lon": [], "lat": []}), ["a.csv", "-"]):
        assert claim(none).files == ()


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "l")
    made.register("rows", 1)
    return made


def test_the_first_spend_pays_once_and_for_all(ledger):
    pending = PendingCharge(Account(ledger, "rows"), claim("a.csv"))
    budget = Budget(7, on_first_spend=pending.charge)
    allotted = budget.allot("bound", Fraction(1, 7))
    assert ledger.state().charges == {}
    for part in (allotted, budget, budget):
        part.spend(1)
        assert ledger.state().spent("rows") == 7
    (charge,) = ledger.state().charges
    assert budget.statement["charge"] == charge


def test_a_fault_is_charged_after_its_build_and_everywhere(ledger):
    pending = PendingCharge(Account(ledger, "rows"), claim("a.csv"))
    pending.charge_fault()
    build, fault = ledger.state().charges.values()
    assert (build.loss.epsilon, build.what) == (7, claim("a.csv").what)
    assert (fault.loss.epsilon, fault.what, fault.region) == (
        ledger.state().datasets["rows"].budget // MAX_FAULTS - 7,
        "fault",
        None,
    )
    assert (fault.analyst, fault.bound, fault.done) == (None, 1, False)


@pytest.mark.usefixtures("inputs")
def test_a_fault_of_a_build_with_a_region_is_charged_everywhere(ledger):
    placed = claim("a.csv")
    assert placed.region is not None
    ledger.charge("rows", placed)
    ledger.charge_fault("rows", placed)
    build, fault = ledger.state().charges.values()
    assert (build.region, fault.region) == (placed.region, None)


@pytest.mark.parametrize(("columns", "alike"), [(None, True), (Columns(x="home_lon"), False)])
def test_a_charge_knows_whether_records_are_read_as_registered(columns, alike, ledger):
    request = claim("a.csv", columns=columns)
    assert PendingCharge(Account(ledger, "rows"), request).reads_as_registered is alike
    assert PendingCharge(None, request).reads_as_registered is True


def test_a_fault_without_a_price_adds_no_charge(ledger):
    account = Account(ledger, "rows")
    request = replace(claim("a.csv"), loss=Loss.pure(ledger.state().datasets["rows"].budget))
    account.charge(request)
    account.charge_fault(request)
    assert len(ledger.state().charges) == 1


def test_a_fault_is_that_of_its_analyst(ledger):
    ledger.register("capped", 1, caps={"ann": "0.5"}, columns=Columns())
    PendingCharge(Account(ledger, "capped", analyst="ann"), claim("a.csv")).charge_fault()
    charges = ledger.state().charges_of("capped", "ann")
    assert [charge.loss.epsilon for charge in charges] == [7, NANO // 40 - 7]


def test_an_account_tells_what_a_fault_would_cost(ledger):
    ledger.register("capped", 1, caps={"ann": "0.5"}, columns=Columns())
    assert Account(ledger, "capped", analyst="ann").fault_price(claim("a.csv")) == NANO // 40 - 7
    assert Account(ledger, "capped").fault_price(claim("a.csv")) == NANO // 20 - 7


@pytest.mark.usefixtures("inputs")
def test_positions_that_are_transformed_or_not_bounded_are_everywhere():
    assert claim("a.csv", columns=Columns(input_crs="EPSG:5179")).region is None
    everywhere = claim("a.csv", place=None, boundary=BoundaryFile(path="both"))
    assert (everywhere.region, everywhere.readings) == (None, BY_LON_LAT)


def origin(clock, column):
    return PartOrigin(run="1", names=(), clock=clock, reading={"time": column} if column else {})


def test_tallies_of_one_column_and_one_clock_count_in_their_slices():
    slices = TimeSlices.parse("day", "2026-01-05")
    seen = origin("c" * 16, "seen")
    charged = slices_of_tallies(slices, [seen, seen])
    assert charged is not None
    assert (charged.column, charged.rules) == ("seen", "c" * 16)
    assert slices_of_tallies(None, [seen]) is None
    others = [[seen, origin("d" * 16, "seen")], [origin(None, "seen")], [origin("c" * 16, None)]]
    assert [slices_of_tallies(slices, parts) for parts in (*others, [])] == [None] * 4


def test_a_fault_without_an_account_costs_nothing():
    PendingCharge(None, claim("a.csv")).charge_fault()


def test_a_charge_that_is_refused_spends_nothing(ledger):
    pending = PendingCharge(Account(ledger, "rows"), claim("a.csv"))
    budget = Budget(7, on_first_spend=pending.charge)
    ledger.charge(
        "rows",
        ChargeRequest(
            loss=Loss.pure(NANO), unit=PrivacyUnit(), what="another", readings=BY_LON_LAT
        ),
    )
    for _ in range(2):
        with pytest.raises(BudgetError, match="has epsilon 0 left"):
            budget.spend(1)
        assert (budget.spent, dict(budget.statement)) == (0, {})


def test_nobody_pays_without_an_account():
    pending = PendingCharge(None, claim("a.csv"))
    assert pending.charge() == {}


def test_an_account_spends_for_its_analyst(ledger):
    account = Account(str(ledger.path), "rows", analyst="ann")
    ledger.register("bobs", 1, caps={"bob": 1})
    with pytest.raises(LedgerError, match="not 'ann'"):
        Account(ledger, "bobs", analyst="ann").check(claim("a.csv"))
    account.check(claim("a.csv"))
    account.charge(claim("a.csv"))
    account.finish()
    (charge,) = ledger.state().charges.values()
    assert (charge.id, charge.analyst, charge.done, charge.digest) == (
        account.last,
        "ann",
        True,
        None,
    )


def test_standard_input_is_no_file_even_where_one_has_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("-", "a.csv"):
        Path(name).touch()
    assert claim(["a.csv", "-"]).files == claim("-").files == ()
    assert len(claim("a.csv").files) == 1


def test_what_is_left_is_of_one_dataset(ledger):
    ledger.register("roads", 5)
    account = Account(ledger, "rows")
    before = ledger.state().datasets["rows"].budget
    assert account.left == before
    account.charge(claim("a.csv"))
    assert account.left == before - 7
    assert Account(ledger, "roads").left == 5 * 10**9


def saved(account, path, epsilon="0.1"):
    """A release that an account paid and has not noted as done."""
    table = pd.DataFrame({"lon": [1.0], "lat": [1.0]})
    psd.build(table, domain=DOMAIN, epsilon=epsilon, method="grid", account=account).save(path)
    return path


def states(ledger):
    """Epsilon, whether it is done, and digest of each charge."""
    return [(c.loss.epsilon, c.done, c.digest) for c in ledger.state().charges.values()]


def test_the_digest_of_a_file_is_noted_with_the_charge_that_paid_it(ledger, tmp_path):
    account = Account(ledger, "rows")
    first, second = saved(account, tmp_path / "a", "0.1"), saved(account, tmp_path / "b", "0.2")
    digests = [psd.Release.load(path).digest for path in (first, second)]
    account.finish(first)
    assert states(ledger) == [(NANO // 10, True, digests[0]), (NANO // 5, False, None)]
    account.finish(second)
    assert states(ledger) == [(NANO // 10, True, digests[0]), (NANO // 5, True, digests[1])]


def test_a_file_that_an_account_did_not_pay_is_not_finished_by_it(ledger, tmp_path):
    others = saved(Account(ledger, "rows"), tmp_path / "others")
    free = saved(None, tmp_path / "free")
    account = Account(ledger, "rows")
    saved(account, tmp_path / "own")
    for path in (others, free, tmp_path / "missing"):
        with pytest.raises(ParameterError) as refused:
            account.finish(path)
        assert str(refused.value) == (
            f"{path} is not a release that this account paid for, so nothing was recorded; pass "
            "the path that the release was saved to"
        )
    assert [done for _, done, _ in states(ledger)] == [False, False]


def test_what_is_noted_already_costs_no_entry(ledger, tmp_path):
    account = Account(ledger, "rows")
    path = saved(account, tmp_path / "r")
    account.finish(path)
    head = ledger.state().head
    account.finish(path)
    assert ledger.state().head == head


@pytest.mark.parametrize("is_file", [False, True])
def test_what_cannot_be_noted_is_named(is_file, ledger, tmp_path, monkeypatch):
    account = Account(ledger, "rows")
    path = saved(account, tmp_path / "r.parquet")

    def broken(*_, **__):
        raise LedgerError("the ledger is gone")

    monkeypatch.setattr(ledger, "finish", broken)
    with pytest.raises(LedgerError) as refused:
        account.finish(path if is_file else None)
    what = path if is_file else "the answer"
    assert str(refused.value) == (
        f"{what} was released and charged, but could not be recorded as done: the ledger is gone"
    )


# What a build that ended early has left


def series(account, path):
    """A series that an account paid and has not noted as done."""
    table = pd.DataFrame({"lon": [1.0], "lat": [1.0], "time": ["2024-01-01"]})
    slices = TimeSlices(by="day", names=("2024-01-01", "2024-01-02"), time_zone="UTC")
    made = psd.build(
        table, domain=DOMAIN, epsilon="0.1", method="grid", slices=slices, time="time",
        account=account,
    )  # fmt: skip
    made.save(path)
    return made


@pytest.mark.parametrize("save", [saved, series])
def test_a_release_that_its_build_did_not_note_is_noted_later(save, ledger, tmp_path):
    other = Ledger.create(tmp_path / "other")
    other.register("rows", 1)
    saved(Account(other, "rows"), tmp_path / "a.parquet")
    path = tmp_path / "r.parquet"
    save(Account(ledger, "rows"), path)
    ledger.charge("rows", claim("a.csv"))
    Account(ledger, "rows").compare(tmp_path)
    assert states(ledger) == [(NANO // 10, True, verify(path)), (7, False, None)]
    assert ledger.state().spent("rows") == NANO // 10 + 7
    assert states(other) == [(NANO // 10, False, None)]


def test_a_release_that_is_noted_is_not_read_again(ledger, tmp_path, monkeypatch):
    account = Account(ledger, "rows")
    account.finish(saved(account, tmp_path / "r.parquet"))
    monkeypatch.setattr("psd.ledger.account.verify", lambda path: pytest.fail(f"read {path}"))
    account.compare(tmp_path)


def test_a_damaged_release_notes_nothing_and_a_sound_copy_does(ledger, tmp_path):
    path = saved(Account(ledger, "rows"), tmp_path / "a.parquet")
    content = bytearray(path.read_bytes())
    content[40] ^= 1
    path.write_bytes(content)
    Account(ledger, "rows").compare(tmp_path)
    assert states(ledger) == [(NANO // 10, False, None)]
    content[40] ^= 1
    (tmp_path / "b.parquet").write_bytes(content)
    Account(ledger, "rows").compare(tmp_path)
    assert states(ledger) == [(NANO // 10, True, verify(tmp_path / "b.parquet"))]


def test_a_series_and_its_slices_have_one_charge(ledger, tmp_path):
    made = series(Account(ledger, "rows"), tmp_path / "a.parquet")
    made.releases[0].save(tmp_path / "b.parquet")
    Account(ledger, "rows").compare(tmp_path)
    assert states(ledger) == [(NANO // 10, True, made.digest)]


def test_a_build_that_still_runs_may_note_its_release_first(ledger, tmp_path, monkeypatch):
    account = Account(ledger, "rows")
    path = saved(account, tmp_path / "r.parquet")

    def meanwhile(path):
        account.finish(path)
        return "ab" * 32  # as if it had been replaced

    monkeypatch.setattr("psd.ledger.account.verify", meanwhile)
    Account(ledger, "rows").compare(tmp_path)
    assert states(ledger) == [(NANO // 10, True, verify(path))]


def test_a_build_whose_release_was_noted_by_another_ends_well(ledger, tmp_path):
    account = Account(ledger, "rows")
    path = saved(account, tmp_path / "r.parquet")
    Account(ledger, "rows").compare(tmp_path)
    account.finish(path)
    assert states(ledger) == [(NANO // 10, True, verify(path))]


def test_a_ledger_that_cannot_note_what_is_there_says_so(ledger, tmp_path, monkeypatch):
    saved(Account(ledger, "rows"), tmp_path / "r.parquet")

    def broken(*_, **__):
        raise LedgerError("the ledger is gone")

    monkeypatch.setattr(ledger, "finish", broken)
    with pytest.raises(LedgerError, match="ledger is gone"):
        Account(ledger, "rows").compare(tmp_path)


def test_accounts_of_nothing(tmp_path):
    ledger = Ledger.create(tmp_path / "l")
    with pytest.raises(LedgerError, match="not registered"):
        Account(ledger, "rows")
    ledger.register("rows", 1)
    with pytest.raises(ParameterError, match="has charged nothing"):
        Account(ledger, "rows").finish()


def test_each_build_states_its_own_charge(tmp_path):
    ledger = Ledger.create(tmp_path / "city.ledger")
    ledger.register("visits", budget=1)
    account = Account(ledger, "visits")
    first, second = (PendingCharge(account, claim(pd.DataFrame())) for _ in range(2))
    assert not ledger.state().charges
    charges = [pending.charge()["charge"] for pending in (first, second, first)]
    assert charges[:2] == list(ledger.state().charges)
    assert charges[2] == charges[0]


class Elsewhere:
    """An engine, which counts as this process does."""

    def tally(self, data, columns, domain, **how):
        return tally_batches(read(data, columns, domain), domain, **how)


@pytest.mark.parametrize(("engine", "region"), [(None, REGION), (Elsewhere(), None)])
def test_a_build_claims_by_its_engine(engine, region, inputs, ledger):
    Path("a.csv").write_text("lon,lat\n1,1\n")
    psd.build("a.csv", domain=DOMAIN, epsilon=1, method="grid", engine=engine,
        account=Account(ledger, "rows"))  # fmt: skip
    (charge,) = ledger.state().charges.values()
    assert charge.region == region
