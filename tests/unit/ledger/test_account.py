"""What a build claims: where its rows lie, as far as that can be held against other releases."""

import os
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from unittest.mock import Mock

import pandas as pd
import pytest

import psd
from psd.curator.private_bounds import ContributionChoice, PrivateBounds
from psd.errors import BudgetError, LedgerError, ParameterError
from psd.ingest.columns import reading_of
from psd.ingest.partial_tally import PartOrigin
from psd.ingest.sources import Columns, read
from psd.ingest.tally_builder import tally_batches
from psd.ledger.account import Account
from psd.ledger.extents import Region
from psd.ledger.ledger import Ledger
from psd.ledger.state import MAX_FAULTS
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO, Loss
from psd.privacy.unit import PrivacyUnit
from psd.publish.charging import (
    PendingCharge,
    charge_request,
    own_account,
    slices_of_tallies,
    tally_charge,
)
from psd.publish.public_inputs import BoundaryFile
from psd.publish.request import BuildRequest
from psd.publish.tally_parts import TallyRequest
from psd.signing import verify
from psd.space.categories import CategoryAxis
from psd.space.time_slices import TimeSlices
from support.ledger_columns import request_for

DOMAIN = psd.Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(8, 8))
ADDRESS = "postgresql://db.example.org/city"


def claim(data, place=DOMAIN, columns=None, by_fields=True, **fields):
    fields = {"method": "grid", **fields, "columns": columns or Columns()}
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
def test_places_are_known_of_rows_of_text_and_all_others_are_everywhere(subtests):
    for data in (
        *INPUTS[3:],
        *("both", "both/*", "layers", "-", "missing.csv", "hdfs:///city/visits.csv", []),
        ["a.csv", "a.gpkg"],
        ["a.csv", "-"],
        [psd.sources.PostGIS(ADDRESS, table="visits_at_home")],
        [psd.sources.PostGIS(ADDRESS, query="SELECT lon + 9 AS lon, lat FROM visits")],
        pd.DataFrame({"lon": [], "lat": [], "table": []}),
    ):
        with subtests.test(data=data):
            assert claim(data).region is None
    for data in ("a.csv", ("a.csv", "b.csv"), "c.tsv.gz", "*.csv", "plain"):
        with subtests.test(data=data):
            assert claim(data).region == REGION
    assert claim("a.csv", PrivateBounds(crs="EPSG:4326")).region is None
    assert claim("a.csv", columns=Columns(input_crs="EPSG:5179")).region is None
    months = {"columns": Columns(time="at"), "slices": TimeSlices.parse("month", "2024-01", "UTC")}
    some = claim("a.csv", **months | {"columns": Columns(time="at", where="a = 1")})
    assert (some.region, some.slices) == (None, None)
    assert None not in (claim("a.csv", **months).region, claim("a.csv", **months).slices)
    for has_other, is_placed in ((True, True), (False, False)):  # else some records are dropped
        kinds = CategoryAxis("kind", ("work", "home"), (-1, -1), has_other=has_other)
        some = claim("a.csv", method="cube", category=kinds, **months)
        assert (some.region is not None, some.slices is not None) == (is_placed, is_placed)
    of_engine = claim("a.csv", by_fields=False)  # which says by itself what places a row
    assert (of_engine.region, len(of_engine.files)) == (None, 1)


@pytest.mark.usefixtures("inputs")
def test_columns_and_a_resolution_that_place_a_row_are_part_of_the_place():
    columns = Columns(x="home_x", y="home_y")
    named = claim("a.csv", columns=columns).region.columns
    assert named == ("reader=csv", "x=home_x", "y=home_y")
    stepped = psd.Domain(bounds=DOMAIN.bounds, coordinate_resolution="0.001")
    of_steps = claim("a.csv", stepped)
    assert {*of_steps.region.columns} - {*BY_COLUMNS} == {"coordinate_resolution=0.001"}
    assert of_steps.readings == (reading_of(Columns(), "0.001"),)


@pytest.mark.usefixtures("inputs")
def test_a_claim_says_what_it_costs_and_which_files_it_reads():
    """Standard input is no file, even where one has its name."""
    found = claim(("a.csv", "b.csv"))
    assert (found.what, found.loss.epsilon) == ("build grid", 7)
    assert found.files == tuple((s.st_dev, s.st_ino) for s in map(os.stat, ("a.csv", "b.csv")))
    Path("-").touch()
    for none in ("missing.csv", pd.DataFrame({"lon": [], "lat": []}), ["a.csv", "-"], "-"):
        assert claim(none).files == ()
    columns, unit = Columns(user="id"), PrivacyUnit(kind="user", max_contributions=4)
    fixed = claim("points.csv", columns=columns, unit=unit)
    assert (fixed.chosen, fixed.unit.contributions) == (False, 4)
    choice = ContributionChoice()
    assert claim("points.csv", columns=columns, unit=unit, contribution_choice=choice).chosen


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "l")
    made.register("rows", 1)
    return made


@pytest.mark.usefixtures("inputs")
def test_a_tally_is_refused_unread_where_no_build_of_it_could_be_charged(ledger):
    """The least charge is one unit of the last place, with the columns and the inputs."""
    place = psd.Domain(bounds=DOMAIN.bounds, coordinate_resolution="0.001")
    unit, columns = PrivacyUnit(kind="user", max_contributions=4), Columns(user="id")
    found = tally_charge(TallyRequest(domain=place, unit=unit, columns=columns), ["a.csv", "-"])
    assert (found.loss, found.unit, found.what) == (Loss.pure(1), unit, "build")
    assert found.readings == (reading_of(columns, "0.001"),)
    assert (len(found.inputs), found.inputs[1]) == (2, "")
    ledger.register("others", 1, inputs=["a.csv"])
    Path("b.csv").write_text("lon,lat\n1,1\n")
    how = {"domain": DOMAIN, "ledger": ledger}
    with pytest.raises(LedgerError, match="input 1 of 1 is not one of them, so nothing was read"):
        psd.tally("b.csv", **how, dataset="others")
    ledger.charge("rows", request_for(NANO - 1))
    psd.tally("b.csv", **how, dataset="rows")
    ledger.charge("rows", request_for(1))
    with pytest.raises(BudgetError, match="has epsilon 0 left"):
        psd.tally("b.csv", **how, dataset="rows")


def test_the_ledger_of_a_call_is_compared_and_its_inputs_are_no_public_files(ledger, tmp_path):
    assert own_account(None, None, None, None, {}) is None
    account = own_account(ledger, "rows", "ann", None, {})
    assert (account.ledger, account.dataset, account.analyst) == (ledger, "rows", "ann")
    for named in (("l", None, None), (None, "rows", None), (None, None, "ann")):
        with pytest.raises(ParameterError, match="ledger and dataset must be given together"):
            own_account(*named, None, {})
        with pytest.raises(ParameterError, match="must be left out with account"):
            own_account(*named, account, {})
    path = saved(account, tmp_path / "r.parquet")
    boundary = {"boundary": BoundaryFile(path=str(path))}
    own_account(str(ledger.path), "rows", None, None, boundary)
    assert states(ledger) == [(NANO // 10, True, verify(path))]
    ledger.register("others", 1, inputs=[path])
    with pytest.raises(LedgerError, match="public files must not be inputs of a dataset"):
        own_account(ledger, "rows", None, None, boundary)


def test_the_first_spend_pays_once_and_for_all_and_a_refused_one_spends_nothing(ledger):
    account, request = Account(ledger, "rows"), claim("a.csv")
    paid, refused = (
        Budget(7, on_first_spend=PendingCharge(account, request).charge) for _ in range(2)
    )
    allotted = paid.allot("bound", Fraction(1, 7))
    assert ledger.state().charges == {}
    for part in (allotted, paid, paid):
        part.spend(1)
        assert ledger.state().spent("rows") == 7
    (charge,) = ledger.state().charges
    assert paid.statement["charge"] == charge
    ledger.charge("rows", request_for(NANO - 7, what="another"))
    for _ in range(2):
        with pytest.raises(BudgetError, match="has epsilon 0 left"):
            refused.spend(1)
        assert (refused.spent, dict(refused.statement)) == (0, {})


@pytest.mark.usefixtures("inputs")
def test_a_fault_is_charged_after_its_build_and_everywhere(ledger):
    placed = claim("a.csv")
    assert placed.region == REGION
    PendingCharge(Account(ledger, "rows"), placed).charge_fault()
    build, fault = ledger.state().charges.values()
    assert (build.loss.epsilon, build.what, build.region) == (7, "build grid", REGION)
    assert (fault.loss.epsilon, fault.what) == (NANO // MAX_FAULTS - 7, "fault")
    assert (fault.analyst, fault.bound, fault.region, fault.done) == (None, 1, None, False)


def test_a_fault_is_that_of_its_analyst_and_adds_no_charge_without_a_price(ledger):
    ledger.register("capped", 1, caps={"ann": "0.5"}, columns=Columns())
    request, ann = claim("a.csv"), Account(ledger, "capped", analyst="ann")
    assert ann.fault_price(request) == NANO // 40 - 7
    assert Account(ledger, "capped").fault_price(request) == NANO // 20 - 7
    PendingCharge(ann, request).charge_fault()
    charges = ledger.state().charges_of("capped", "ann")
    assert [charge.loss.epsilon for charge in charges] == [7, NANO // 40 - 7]
    account, all_of_it = Account(ledger, "rows"), replace(request, loss=Loss.pure(NANO))
    account.charge(all_of_it)
    account.charge_fault(all_of_it)
    assert len(ledger.state().charges_of("rows")) == 1


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


def test_each_build_states_its_own_charge(ledger):
    account = Account(ledger, "rows")
    elsewhere = claim("a.csv", columns=Columns(x="home_lon"))
    assert not PendingCharge(account, elsewhere).reads_as_registered
    first, second = (PendingCharge(account, claim(pd.DataFrame())) for _ in range(2))
    assert first.reads_as_registered
    charges = [pending.charge()["charge"] for pending in (first, second, first)]
    assert charges[:2] == list(ledger.state().charges)
    assert charges[2] == charges[0]


def test_all_that_is_read_otherwise_is_named(ledger):
    otherwise = claim("a.csv", columns=Columns(x="east", y="north"))
    with pytest.warns(UserWarning, match="the build reads x, y otherwise than dataset 'rows'"):
        PendingCharge(Account(ledger, "rows"), otherwise).charge_reading()


def test_an_account_spends_for_its_analyst(ledger):
    account = Account(str(ledger.path), "rows", analyst="ann")
    ledger.register("bobs", 1, caps={"bob": 1})
    Account(ledger, "bobs", analyst="bob").check_all([claim("a.csv")])
    with pytest.raises(LedgerError, match="not 'ann'"):
        Account(ledger, "bobs", analyst="ann").check(claim("a.csv"))
    account.check(claim("a.csv"))
    account.charge(claim("a.csv"))
    account.finish()
    (charge,) = ledger.state().charges.values()
    found = (charge.id, charge.analyst, charge.done, charge.digest)
    assert found == (account.last, "ann", True, None)


TABLE = pd.DataFrame({"lon": [1.0], "lat": [1.0], "time": ["2024-01-01"]})
SLICED = {"slices": TimeSlices.parse("day", "2024-01-01..2024-01-02"), "time": "time"}


def saved(account, path, epsilon="0.1", **more):
    """A release, or series, that an account paid and has not noted as done."""
    how = {"domain": DOMAIN, "method": "grid", "account": account, **more}
    psd.build(TABLE, epsilon=epsilon, **how).save(path)
    return path


def states(ledger):
    """Epsilon, whether it is done, and digest of each charge."""
    return [(c.loss.epsilon, c.done, c.digest) for c in ledger.state().charges.values()]


def test_a_digest_is_noted_once_with_the_charge_that_paid_it(ledger, tmp_path, monkeypatch):
    account = Account(ledger, "rows")
    paths = [tmp_path / f"{name}.parquet" for name in "ab"]
    first, second = (saved(account, *of) for of in zip(paths, ("0.1", "0.2"), strict=True))
    digests = [psd.load(path).digest for path in (first, second)]
    account.finish(first)
    assert states(ledger) == [(NANO // 10, True, digests[0]), (NANO // 5, False, None)]
    account.compare(tmp_path)  # as if the second build had ended
    assert states(ledger) == [(NANO // 10, True, digests[0]), (NANO // 5, True, digests[1])]
    head = ledger.state().head
    account.finish(second)
    assert ledger.state().head == head  # what is noted already costs no entry
    monkeypatch.setattr("psd.ledger.account.verify", lambda path: pytest.fail(f"read {path}"))
    account.compare(tmp_path)


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


def test_what_cannot_be_noted_is_named(ledger, tmp_path, monkeypatch):
    account = Account(ledger, "rows")
    path = saved(account, tmp_path / "r.parquet")
    monkeypatch.setattr(ledger, "finish", Mock(side_effect=LedgerError("the ledger is gone")))
    for given, what in ((None, "the answer"), (path, path)):
        with pytest.raises(LedgerError) as refused:
            account.finish(given)
        failed = "was released and charged, but could not be recorded as done: the ledger is gone"
        assert str(refused.value) == f"{what} {failed}"
    with pytest.raises(LedgerError, match="ledger is gone"):
        Account(ledger, "rows").compare(tmp_path)


@pytest.mark.parametrize("more", [{}, SLICED], ids=["release", "series"])
def test_a_release_that_its_build_did_not_note_is_noted_later(more, ledger, tmp_path):
    other = Ledger.create(tmp_path / "other")
    other.register("rows", 1)
    saved(Account(other, "rows"), tmp_path / "a.parquet")
    path, account = tmp_path / "r.parquet", Account(ledger, "rows")
    saved(account, path, **more)
    ledger.charge("rows", claim("a.csv"))
    Account(ledger, "rows").compare(tmp_path)
    noted = [(NANO // 10, True, verify(path)), (7, False, None)]
    assert states(ledger) == noted
    assert ledger.state().spent("rows") == NANO // 10 + 7
    assert states(other) == [(NANO // 10, False, None)]
    account.finish(path)  # the build itself ends well
    assert states(ledger) == noted


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
    made = psd.load(saved(Account(ledger, "rows"), tmp_path / "a.parquet", **SLICED))
    made._releases[0].save(tmp_path / "b.parquet")
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


def test_what_is_left_is_of_one_dataset(ledger):
    with pytest.raises(LedgerError, match="not registered"):
        Account(ledger, "roads")
    ledger.register("roads", 5)
    account = Account(ledger, "rows")
    with pytest.raises(ParameterError, match="has charged nothing"):
        account.finish()
    assert account.left == NANO
    account.charge(claim("a.csv"))
    assert account.left == NANO - 7
    assert Account(ledger, "roads").left == 5 * NANO


class Elsewhere:
    """An engine, which counts as this process does."""

    def tally(self, data, columns, domain, **how):
        return tally_batches(read(data, columns, domain), domain, **how)


@pytest.mark.parametrize(("engine", "region"), [(None, REGION), (Elsewhere(), None)])
def test_a_build_claims_by_its_engine(engine, region, inputs, ledger):
    Path("a.csv").write_text("lon,lat\n1,1\n")
    how = {"epsilon": 1, "method": "grid", "engine": engine, "account": Account(ledger, "rows")}
    psd.build("a.csv", domain=DOMAIN, **how)
    (charge,) = ledger.state().charges.values()
    assert charge.region == region
