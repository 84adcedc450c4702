"""State of a ledger without its file: sums of charges, and charges that are refused."""

from contextlib import nullcontext
from dataclasses import replace
from hashlib import blake2b

import pytest

from psd.errors import BudgetError, LedgerError, ParameterError
from psd.ingest.columns import Columns, reading_of
from psd.ledger.charges import Charge, Dataset
from psd.ledger.extents import BY_FIELDS, ChargedSlices, Extent, Region
from psd.ledger.state import LedgerState
from psd.privacy.loss import Loss
from psd.privacy.unit import PrivacyUnit
from support.ledger_columns import readings_of, request_for

USER = PrivacyUnit(kind="user", max_contributions=4)
ZONED = PrivacyUnit(kind="user-day", max_contributions=2, time_zone="Asia/Seoul")
WEST, EAST, BOTH = (0, 0, 1, 1), (2, 0, 3, 1), (0, 0, 3, 1)


def region(bounds):
    return bounds and Region(bounds=bounds, crs="EPSG:4326", columns=(BY_FIELDS, "x=lon", "y=lat"))


def charge(dataset, epsilon, *, bounds=None, **more):
    place = {"dataset": dataset, "region": region(bounds)}
    return {**place, "loss": Loss.pure(epsilon), "analyst": None, "files": (), **more}


def state_of(datasets, *charges):
    made = [
        Charge(id=f"c{i}", time="2026-01-01T00:00:00Z", what="build", bound=1, **fields)
        for i, fields in enumerate(charges)
    ]
    return LedgerState(
        id="l",
        hashes=("h0", "h1"),
        datasets={dataset.name: dataset for dataset in datasets},
        charges={charge.id: charge for charge in made},
    )


def request(epsilon, unit=None, bounds=None, **more):
    return request_for(epsilon, unit, region=region(bounds), **more)


def dataset_of(*, unit="record", **fields):
    (reading,) = readings_of(PrivacyUnit(kind=unit, time_zone=fields.get("time_zone")))
    return Dataset(unit=unit, reading=reading, **fields)


VISITS = dataset_of(name="visits", budget=100, unit="record")


def test_a_head_is_in_the_chain_at_its_number():
    state = state_of([VISITS])
    assert state.head == "h1"
    there, absent = ("h0", "1 h0", "2 h1"), ("h2", "1 h1", "0 h1", "3 h1", "one h0", "¹ h0")
    assert [*filter(state.has_head, there + absent)] == [*there]


def test_charges_are_those_of_a_dataset_and_an_analyst_in_order():
    state = state_of(
        [VISITS],
        charge("visits", 1, analyst="bob"),
        charge("trips", 2, analyst="ann"),
        charge("visits", 3, analyst="ann"),
        charge("visits", 4),
    )
    assert [c.loss.epsilon for c in state.charges_of("visits")] == [1, 3, 4]
    assert [c.loss.epsilon for c in state.charges_of("visits", "ann")] == [3]
    assert state.charges_of("absent") == []
    # A dataset is registered, or refused.
    state = state_of([VISITS])
    assert state.dataset("visits") is VISITS
    for refused in (
        lambda: state.dataset("roads"),
        lambda: state.spent("roads"),
        lambda: state.check("roads", request(1), None),
    ):
        with pytest.raises(LedgerError, match="'roads'"):
            refused()
    with pytest.raises(LedgerError, match="dataset 'visits'"):
        state.check("visits", request(1, readings=()), None)


def test_rows_apart_do_not_add_up_and_users_do():
    state = state_of(
        [VISITS],
        charge("visits", 10),
        charge("visits", 30, bounds=WEST),
        charge("visits", 40, bounds=EAST),
        charge("trips", 7),
    )
    sums = {None: 50, WEST: 40, EAST: 50, BOTH: 50, (5, 5, 6, 6): 10}
    assert {at: state.spent("visits", Extent(region=region(at))) for at in sums} == sums
    charges = charge("people", 30, bounds=WEST), charge("people", 40, bounds=EAST)
    for unit, zone in (("user", None), ("user-day", "Asia/Seoul")):
        state = state_of(
            [dataset_of(name="people", budget=100, unit=unit, time_zone=zone)], *charges
        )
        for bounds in (WEST, (5, 5, 6, 6)):
            assert state.spent("people", Extent(region=region(bounds))) == 70


def test_the_budget_is_granted_to_the_last_unit():
    state = state_of([VISITS], charge("visits", 99))
    state.check("visits", request(1), None)
    with pytest.raises(BudgetError, match=r"has epsilon 0\.000000001 left"):
        state.check("visits", request(2), None)
    for budget in (0, -1):  # nothing is left of one that is overspent
        with pytest.raises(BudgetError, match="has epsilon 0 left"):
            state_of([dataset_of(name="visits", budget=budget)]).check("visits", request(1), None)


def test_a_dataset_has_one_unit(subtests):
    seoul = {"unit": "user-day", "time_zone": "Asia/Seoul"}
    for dataset, unit, chosen, words in (
        ({}, PrivacyUnit(), False, None),
        ({}, USER, False, "counts epsilon per record, and this is per user;"),
        ({"unit": "user"}, USER, False, None),
        ({"unit": "user"}, USER, True, None),
        ({"unit": "user"}, PrivacyUnit(kind="user", weight=720_720), False, None),
        ({"unit": "user"}, PrivacyUnit(), False, "epsilon per user, and this is per record;"),
        ({"unit": "user"}, ZONED, False, ""),
        ({"unit": "user", "bound": 4}, USER, False, None),
        ({"unit": "user", "bound": 5}, USER, False, ""),
        ({"unit": "user", "bound": 4}, USER, True, "max_contributions 4"),
        (seoul, ZONED, False, None),
        (seoul, USER, False, "epsilon per user and day in Asia/Seoul, and this is per user;"),
        ({**seoul, "time_zone": "Europe/Paris"}, ZONED, False, ""),
    ):
        state = state_of([dataset_of(name="d", budget=100, **dataset)])
        refusal = pytest.raises(LedgerError, match=f"'d'.*{words}")
        allowed = nullcontext() if words is None else refusal
        with subtests.test(dataset=dataset, unit=unit, chosen=chosen), allowed:
            state.check("d", request(1, unit, chosen=chosen), None)


CAPPED = dataset_of(name="trips", budget=100, caps={"ann": 60, "bob": 70})


def test_an_analyst_spends_within_the_cap_and_the_budget(subtests):
    state = state_of([CAPPED], charge("trips", 30, analyst="ann"), charge("trips", 20))
    assert state.spent("trips", analyst="ann") == 30
    named = "for the analysts ann, bob; "
    for analyst, epsilon, error, words in (
        ("ann", 30, None, None),
        ("ann", 31, BudgetError, "analyst 'ann' has epsilon 0.00000003 left"),
        ("bob", 50, None, None),
        ("bob", 51, BudgetError, "dataset 'trips' has epsilon 0.00000005 left"),
        ("eve", 1, LedgerError, f"{named}not 'eve'$"),
        (None, 1, LedgerError, f"{named}none was given$"),
        ("", 1, ParameterError, "^analyst must be a name .*, got ''$"),
    ):
        refusal = pytest.raises(error, match=words) if error else nullcontext()
        with subtests.test(analyst, epsilon=epsilon), refusal:
            state.check("trips", request(epsilon), analyst)
    west = charge("trips", 60, bounds=WEST, analyst="ann")
    state_of([CAPPED], west).check("trips", request(60, bounds=EAST), "ann")


def test_files_that_were_charged_to_another_dataset_are_recognised():
    use = request(1, files=((3, 5), (7, 11)))
    first, second = state_of([]).marks(use)
    state = state_of(
        [],
        charge("b", 1, files=(second,)),
        charge("a", 1, files=("other", first)),
        charge("a", 1, files=(first, second)),
        charge("visits", 1, files=(first,)),
        charge("c", 1, files=("other",)),
        charge("d", 1),
    )
    assert state.elsewhere("visits", use) == ["a", "b"]
    assert state.elsewhere("visits", request(1)) == []
    # Marks are the same in every version.
    marks = state_of([]).marks(request(1, files=((3, 5), (7, 11))))
    assert marks == [blake2b(text, digest_size=8).hexdigest() for text in (b"l 3 5", b"l 7 11")]


PRICED = dataset_of(name="priced", budget=1001)
PRICED_WITH_CAPS = dataset_of(name="priced", budget=1001, caps={"ann": 201, "bob": 9999})


def test_a_fault_costs_a_twentieth_with_its_build_and_no_more_than_is_left(subtests):
    for spent, epsilon, price in (
        *((0, 0, 51), (0, 1, 50), (0, 50, 1), (0, 51, 0), (0, 60, 0)),
        *((970, 1, 31), (1001, 1, 0), (1002, 0, 0)),
    ):
        state = state_of([PRICED], charge("priced", spent))
        with subtests.test(spent=spent, epsilon=epsilon):
            assert state.fault_charge("priced", request(epsilon), None).loss.epsilon == price
            assert state.fault_charge("priced", request(epsilon), "ann").loss.epsilon == price


def test_a_fault_of_an_analyst_costs_a_share_of_the_cap_and_is_paid_by_that_alone(subtests):
    for spender, spent, analyst, price in (
        ("ann", 0, "ann", 11),
        ("ann", 195, "ann", 6),
        ("ann", 201, "ann", 0),
        ("bob", 0, "bob", 51),
        ("bob", 970, "bob", 31),
        ("bob", 500, "ann", 11),
    ):
        state = state_of([PRICED_WITH_CAPS], charge("priced", spent, analyst=spender))
        with subtests.test(analyst, spender=spender, spent=spent):
            assert state.fault_charge("priced", request(0), analyst).loss.epsilon == price


def test_a_fault_counts_where_its_build_does_if_too_little_is_left_everywhere(subtests):
    """Else builds of one region had faults for nothing once another region's budget was spent."""
    for spent, analyst, price, bounds in (
        (950, None, 51, None),
        (951, None, 51, EAST),
        (1001, None, 51, EAST),
        (190, "ann", 11, None),
        (195, "ann", 11, EAST),
        (201, "ann", 11, EAST),
    ):
        dataset = PRICED if analyst is None else PRICED_WITH_CAPS
        state = state_of([dataset], charge("priced", spent, bounds=WEST, analyst=analyst))
        with subtests.test(analyst, spent=spent):
            fault = state.fault_charge("priced", request(0, bounds=EAST), analyst)
            assert (fault.loss.epsilon, fault.region) == (price, region(bounds))
            fault = state.fault_charge("priced", request(0, bounds=WEST), analyst)
            assert fault.loss.epsilon == min(price, (1001 if analyst is None else 201) - spent)
    state = state_of([PRICED], *(charge("priced", 998, bounds=each) for each in (WEST, EAST)))
    assert state.fault_charge("priced", request(0, bounds=EAST), None).loss.epsilon == 3
    other = replace(request(0, bounds=EAST), readings=(reading_of(Columns(x="home_lon")),))
    assert state_of([PRICED], charge("priced", 1001, bounds=WEST)).fault_charge(
        "priced", other, None
    ).loss == Loss.pure(0)
    # Slices of a stream are disjoint as well.
    first, second = (
        ChargedSlices(column="t", time_zone="UTC", rules="a", by="hour", spans=(span,))
        for span in ((0, 3), (4, 7))
    )
    state = state_of([PRICED], charge("priced", 1001, slices=first))
    fault = state.fault_charge("priced", request(0, slices=second), None)
    assert (fault.loss.epsilon, fault.slices) == (51, second)
