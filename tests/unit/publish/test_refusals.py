"""Faults of reading with an account: one sentence, what is charged, and what is reported."""

import geopandas as gpd
import numpy as np
import pytest
import shapely

import psd
from psd import errors
from psd.decompositions import Quadtree
from psd.privacy.budget import Budget
from psd.privacy.count_noise import CountNoise
from psd.publish.observer import Observer
from psd.publish.public_inputs import PublicInputs
from psd.publish.refusals import UNREADABLE, rehearse, withhold_faults
from psd.publish.request_arguments import request_from_arguments
from psd.space.boundary import Boundary
from psd.space.covariate import Covariate
from support.price_regions import two_columns

FORM = [errors.InputDataError("column 'lon' must be numeric"), errors.DomainError("no CRS")]
OTHER = [
    errors.ResourceError("the occupied cells exceed the memory limit"),
    errors.WriteError("records cannot be stored"),
    errors.InternalError("a defect"),
    MemoryError(),
    OSError(28, "no space"),
    RuntimeError("126.98"),
]
PUBLIC = [
    errors.ParameterError("x"),
    errors.BudgetError("x"),
    errors.LedgerError("x"),
    errors.MissingExtraError("x"),
    errors.RandomnessError("x"),
]


def raising(error):
    def work():
        raise error

    return work


def run(error):
    """What happens, in order."""
    events = []
    observer = Observer(private_fault=events.append)
    with pytest.raises(errors.PsdError) as raised:
        withhold_faults(raising(error), observer, charge=lambda: events.append("charged"))
    return raised.value, events


def test_work_that_succeeds_is_neither_charged_nor_reported():
    events = []
    observer = Observer(private_fault=events.append)
    assert withhold_faults(lambda: 7, observer, charge=lambda: events.append("charged")) == 7
    assert events == []


@pytest.mark.parametrize("error", [*FORM, *OTHER], ids=lambda error: type(error).__name__)
def test_each_fault_is_the_same_sentence_without_a_context(error):
    shown, events = run(error)
    assert (type(shown), str(shown)) == (errors.InputDataError, UNREADABLE)
    assert shown.__cause__ is shown.__context__ is None
    assert events[:-1] == (["charged"] if error in OTHER else [])


@pytest.mark.parametrize("error", [*FORM, *OTHER], ids=lambda error: type(error).__name__)
def test_the_reason_is_reported_after_the_charge(error):
    _, events = run(error)
    is_ours = isinstance(error, errors.PsdError)
    assert events[-1] == (str(error) if is_ours else f"it failed with {type(error).__name__}")


@pytest.mark.parametrize("error", PUBLIC, ids=lambda error: type(error).__name__)
def test_what_does_not_come_from_the_input_stays_as_it_is(error):
    shown, events = run(error)
    assert shown is error
    assert events == []


def test_a_charge_that_is_refused_is_told():
    with pytest.raises(errors.BudgetError, match="too little"):
        withhold_faults(
            raising(MemoryError()), Observer(), charge=raising(errors.BudgetError("too little"))
        )


def test_nothing_is_charged_before_counts_are_read():
    with pytest.raises(errors.InputDataError, match=UNREADABLE):
        withhold_faults(raising(MemoryError()), Observer())


def test_an_interrupt_is_no_fault():
    with pytest.raises(KeyboardInterrupt):
        withhold_faults(
            raising(KeyboardInterrupt()), Observer(), charge=lambda: pytest.fail("it was charged")
        )


# The rehearsal.

DOMAIN = psd.Domain(bounds=(0, 0, 4, 4), lattice=(16, 16))


def rehearsed(covariate=None, boundary=None, **arguments):
    request = request_from_arguments(**{"domain": DOMAIN, "epsilon": 1} | arguments)
    inputs = PublicInputs(
        post_processing=request.post_processing, covariate=covariate, boundary=boundary
    )
    rehearse(request, inputs, Budget(request.loss))


@pytest.mark.parametrize("method", psd.methods())
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"user": "u", "max_contributions": 3},
        {"user": "u", "max_contributions": "auto"},
        {"user": "u", "count": "users"},
        {"time": "t", "slices": psd.TimeSlices.parse("day", "2024-01-01..2024-01-03")},
        {"domain": psd.PrivateBounds()},
    ],
    ids=["record", "user", "chosen", "users", "slices", "bounds"],
)
def test_every_method_can_be_rehearsed(method, arguments):
    rehearsed(method=method, **arguments)


def test_a_rehearsal_draws_no_random_number(monkeypatch):
    monkeypatch.setattr("os.urandom", lambda _: pytest.fail("a random number was drawn"))
    monkeypatch.setattr(
        "psd.mechanisms.sampler.SecureSampler.draw", lambda *_: pytest.fail("noise was drawn")
    )
    rehearsed(method=Quadtree(height=2))


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"domain": psd.PrivateBounds(), "epsilon": "1e-9"}, errors.ParameterError, "share"),
        (
            {"user": "u", "max_contributions": "auto", "epsilon": "1e-9"},
            errors.ParameterError,
            "share",
        ),
    ],
    ids=["epsilon", "choice"],
)
def test_parameters_that_do_not_fit_are_refused(arguments, kind, words):
    with pytest.raises(kind, match=words):
        rehearsed(**arguments)


class Watching(Quadtree):
    """A quadtree that keeps the curator."""

    seen = []  # noqa: RUF012

    def build(self, curator):
        self.seen.append(curator)
        return super().build(curator)


def test_the_method_gets_what_it_gets_in_the_build():
    Watching.seen.clear()
    covariate = Covariate(domain=DOMAIN, raster=np.ones((4, 4), np.uint16))
    polygons = gpd.GeoSeries([shapely.box(0, 0, 2, 4)], crs=DOMAIN.crs)
    boundary = Boundary.from_polygons(polygons, DOMAIN)
    rehearsed(covariate, method=Watching(height=1), epsilon="0.5")
    rehearsed(None, boundary, method=Watching(height=1))
    first, second = Watching.seen
    assert (first.covariate, first.boundary, first.epsilon) == (covariate, None, 500_000_000)
    assert second.boundary is boundary.mask


@pytest.mark.parametrize(
    "bounds",
    [{"max_contributions": 6, "max_per_slice": 2}, {"max_contributions": 2, "per": "slice"}],
    ids=["in all", "in each"],
)
def test_noise_in_rho_is_that_of_all_slices(bounds):
    Watching.seen.clear()
    days = psd.TimeSlices.parse("day", "2024-01-01..2024-01-03")
    rehearsed(
        user="u",
        time="t",
        slices=days,
        delta="1e-6",
        noise_law="gaussian",
        method=Watching(height=1),
        **bounds,
    )
    assert Watching.seen[0].noise == CountNoise.gaussian(12)


def test_private_bounds_are_rehearsed_on_their_lattice():
    Watching.seen.clear()
    rehearsed(domain=psd.PrivateBounds(lattice=(64, 32)), method=Watching(height=1))
    assert Watching.seen[0].domain.lattice == (64, 32)


def test_regions_are_rehearsed_with_a_tally_of_theirs():
    rehearsed(regions=two_columns(DOMAIN), method="regions")


def test_one_slice_is_enough():
    Watching.seen.clear()
    days = psd.TimeSlices.parse("day", "2024-01-01..2024-01-01")
    rehearsed(time="t", slices=days, method=Watching(height=1))
    assert len(Watching.seen) == 1
