"""State of a ledger without its file: sums of charges, and charges that are refused."""

from hashlib import blake2b

import pytest

from psd.errors import BudgetError, LedgerError, ParameterError
from psd.ledger.charges import Charge, ChargeRequest, Dataset, check_name, is_name
from psd.ledger.extents import Extent
from psd.ledger.regions import BY_FIELDS, Region
from psd.ledger.state import LedgerState
from psd.privacy.loss import Loss
from psd.privacy.unit import PrivacyUnit
from support.ledger_columns import readings_of

USER = PrivacyUnit(kind="user", max_contributions=4)
ZONED = PrivacyUnit(kind="user-day", max_contributions=2, time_zone="Asia/Seoul")
WEST, EAST, BOTH = (0, 0, 1, 1), (2, 0, 3, 1), (0, 0, 3, 1)


def region(bounds):
    return bounds and Region(bounds=bounds, crs="EPSG:4326", columns=(BY_FIELDS, "x=lon", "y=lat"))


def charge(dataset, epsilon, *, bounds=None, analyst=None, files=()):
    return {
        "dataset": dataset,
        "loss": Loss.pure(epsilon),
        "region": region(bounds),
        "analyst": analyst,
        "files": files,
    }


def state_of(datasets, *charges):
    """State with charges in an order."""
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
    unit = unit or PrivacyUnit()
    more = {"readings": readings_of(unit), **more}
    return ChargeRequest(
        loss=Loss.pure(epsilon), unit=unit, what="build", region=region(bounds), **more
    )


def dataset_of(*, unit="record", **fields):
    """A dataset with the columns of its unit."""
    (reading,) = readings_of(PrivacyUnit(kind=unit, time_zone=fields.get("time_zone")))
    return Dataset(unit=unit, reading=reading, **fields)


VISITS = dataset_of(name="visits", budget=100, unit="record")


def test_the_head_is_the_last_hash():
    assert state_of([VISITS]).head == "h1"


@pytest.mark.parametrize(
    ("text", "is_there"),
    [
        ("h0", True),
        ("h2", False),
        ("1 h0", True),
        ("2 h1", True),
        ("1 h1", False),
        ("0 h1", False),
        ("3 h1", False),
        ("one h0", False),
        ("\N{SUPERSCRIPT ONE} h0", False),
    ],
)
def test_a_head_is_in_the_chain_at_its_number(text, is_there):
    assert state_of([VISITS]).has_head(text) == is_there


def test_a_refused_reading_names_the_dataset():
    with pytest.raises(LedgerError, match="dataset 'visits'"):
        state_of([VISITS]).check("visits", request(1, readings=()), None)


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


@pytest.mark.parametrize(
    ("bounds", "spent"), [(None, 50), (WEST, 40), (EAST, 50), (BOTH, 50), ((5, 5, 6, 6), 10)]
)
def test_rows_apart_do_not_add_up(bounds, spent):
    state = state_of(
        [VISITS],
        charge("visits", 10),
        charge("visits", 30, bounds=WEST),
        charge("visits", 40, bounds=EAST),
        charge("trips", 7),
    )
    assert state.spent("visits", Extent(region=region(bounds))) == spent


@pytest.mark.parametrize(("unit", "zone"), [("user", None), ("user-day", "Asia/Seoul")])
def test_charges_to_users_add_up_wherever_they_are(unit, zone):
    people = Dataset(name="people", budget=100, unit=unit, time_zone=zone)
    state = state_of([people], charge("people", 30, bounds=WEST), charge("people", 40, bounds=EAST))
    for bounds in (WEST, (5, 5, 6, 6)):
        assert state.spent("people", Extent(region=region(bounds))) == 70


def test_the_budget_is_granted_to_the_last_unit():
    state = state_of([VISITS], charge("visits", 99))
    state.check("visits", request(1), None)
    with pytest.raises(BudgetError, match=r"has epsilon 0\.000000001 left"):
        state.check("visits", request(2), None)


@pytest.mark.parametrize("budget", [0, -1])
def test_nothing_is_left_of_a_budget_that_is_overspent(budget):
    visits = dataset_of(name="visits", budget=budget, unit="record")
    with pytest.raises(BudgetError, match="has epsilon 0 left"):
        state_of([visits]).check("visits", request(1), None)


def test_a_dataset_is_registered_or_refused():
    state = state_of([VISITS])
    assert state.dataset("visits") is VISITS
    for refused in (
        lambda: state.dataset("roads"),
        lambda: state.spent("roads"),
        lambda: state.check("roads", request(1), None),
    ):
        with pytest.raises(LedgerError, match="'roads'"):
            refused()


@pytest.mark.parametrize(
    ("dataset", "unit", "chosen", "allowed"),
    [
        ({"unit": "record"}, PrivacyUnit(), False, True),
        ({"unit": "record"}, USER, False, False),
        ({"unit": "user"}, USER, False, True),
        ({"unit": "user"}, USER, True, True),
        ({"unit": "user", "bound": 4}, USER, False, True),
        ({"unit": "user", "bound": 5}, USER, False, False),
        ({"unit": "user", "bound": 4}, USER, True, False),
        ({"unit": "user-day", "time_zone": "Asia/Seoul"}, ZONED, False, True),
        ({"unit": "user-day", "time_zone": "Europe/Paris"}, ZONED, False, False),
        ({"unit": "user"}, ZONED, False, False),
    ],
)
def test_a_dataset_has_one_unit(dataset, unit, chosen, allowed):
    state = state_of([dataset_of(name="d", budget=100, **dataset)])
    if allowed:
        state.check("d", request(1, unit, chosen=chosen), None)
    else:
        with pytest.raises(LedgerError, match="'d'"):
            state.check("d", request(1, unit, chosen=chosen), None)


CAPPED = dataset_of(name="trips", budget=100, unit="record", caps={"ann": 60, "bob": 70})


@pytest.mark.parametrize(
    ("analyst", "epsilon", "error"),
    [
        ("ann", 10, None),
        ("ann", 11, BudgetError),  # above the cap
        ("bob", 50, None),
        ("bob", 51, BudgetError),  # above the budget
        ("eve", 1, LedgerError),
        (None, 1, LedgerError),
        ("", 1, ParameterError),
    ],
)
def test_an_analyst_spends_within_the_cap_and_the_budget(analyst, epsilon, error):
    state = state_of([CAPPED], charge("trips", 50, analyst="ann"))
    if error is None:
        state.check("trips", request(epsilon), analyst)
    else:
        with pytest.raises(error):
            state.check("trips", request(epsilon), analyst)


def test_a_cap_is_spent_by_its_analyst_alone():
    state = state_of([CAPPED], charge("trips", 30, analyst="ann"), charge("trips", 20))
    assert state.spent("trips", analyst="ann") == 30
    state.check("trips", request(30), "ann")


def test_marks_of_files_are_the_same_in_every_version():
    marks = state_of([]).marks(request(1, files=((3, 5), (7, 11))))
    assert marks == [blake2b(text, digest_size=8).hexdigest() for text in (b"l 3 5", b"l 7 11")]


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


@pytest.mark.parametrize("name", ["a", "visits 2024", "서울", "x" * 100])
def test_names_that_can_be_read(name):
    assert is_name(name)
    check_name("dataset", name)


@pytest.mark.parametrize("name", ["", " a", "a ", "a\tb", "a\nb", "\u200b", "x" * 101])
def test_names_that_could_be_confused_are_refused(name):
    assert not is_name(name)
    with pytest.raises(ParameterError, match=r"^dataset must be a name") as refusal:
        check_name("dataset", name)
    assert len(str(refusal.value)) < 250


PRICED = dataset_of(name="priced", budget=1001, unit="record")
PRICED_WITH_CAPS = dataset_of(
    name="priced", budget=1001, unit="record", caps={"ann": 201, "bob": 9999}
)


@pytest.mark.parametrize(
    ("spent", "epsilon", "price"),
    [(0, 0, 51), (0, 1, 50), (0, 50, 1), (0, 51, 0), (0, 60, 0), (970, 1, 31), (1001, 1, 0)],
)
def test_a_fault_costs_a_twentieth_with_its_build_and_no_more_than_is_left(spent, epsilon, price):
    state = state_of([PRICED], charge("priced", spent))
    assert state.fault_price("priced", request(epsilon), None) == price
    assert state.fault_price("priced", request(epsilon), "ann") == price


def test_an_overspent_budget_has_no_price_of_a_fault():
    assert state_of([PRICED], charge("priced", 1002)).fault_price("priced", request(0), None) == 0


@pytest.mark.parametrize(
    ("spent", "analyst", "price"),
    [(0, "ann", 11), (195, "ann", 6), (201, "ann", 0), (0, "bob", 51), (970, "bob", 31)],
)
def test_a_fault_of_an_analyst_costs_a_share_of_the_cap(spent, analyst, price):
    state = state_of([PRICED_WITH_CAPS], charge("priced", spent, analyst=analyst))
    assert state.fault_price("priced", request(0), analyst) == price


def test_a_fault_of_an_analyst_is_paid_by_that_cap_alone():
    state = state_of([PRICED_WITH_CAPS], charge("priced", 500, analyst="bob"))
    assert state.fault_price("priced", request(0), "ann") == 11


def test_charges_of_regions_leave_what_they_leave_everywhere():
    charges = (charge("priced", 990, bounds=WEST), charge("priced", 3, bounds=EAST))
    price = state_of([PRICED], *charges).fault_price("priced", request(0, bounds=EAST), None)
    assert price == 11
    state = state_of([PRICED_WITH_CAPS], charge("priced", 190, bounds=WEST, analyst="ann"))
    assert state.fault_price("priced", request(0), "ann") == 11
    state = state_of([PRICED_WITH_CAPS], charge("priced", 195, bounds=WEST, analyst="ann"))
    assert state.fault_price("priced", request(0, bounds=EAST), "ann") == 6
