"""Faults of reading with an account: one sentence, what is charged, and what is reported."""

import geopandas as gpd
import numpy as np
import pytest
import shapely

import psd
from psd import errors
from psd.curator.private_bounds import PrivateBounds
from psd.decompositions import Quadtree
from psd.privacy.budget import Budget
from psd.privacy.count_noise import CountNoise
from psd.publish.observer import Observer
from psd.publish.public_inputs import PublicInputs
from psd.publish.refusals import UNREADABLE, dry_run_method, mask_errors
from psd.space.boundary import Boundary
from psd.space.covariate import Covariate
from support.price_regions import two_columns
from support.requests import request_of

FORM = [errors.InputDataError("column 'lon' must be numeric"), errors.DomainError("no CRS")]
OTHER = [
    errors.ResourceError("the occupied cells exceed the memory limit"),
    errors.WriteError("records cannot be stored"),
    errors.InternalError("a defect"),
    MemoryError(),
    OSError(28, "no space"),
    RuntimeError("126.98"),
]
PUBLIC = [errors.ParameterError("x"), errors.BudgetError("x"), errors.LedgerError("x"),
          errors.MissingExtraError("x"), errors.RandomnessError("x")]  # fmt: skip


def raising(error):
    def work():
        raise error

    return work


def run(error):
    events = []
    observer = Observer(private_fault=events.append)
    with pytest.raises(errors.PsdError) as raised:
        mask_errors(raising(error), observer, charge=lambda: events.append("charged"))
    return raised.value, events


def test_each_fault_is_the_same_sentence_and_its_reason_is_reported_after_the_charge(subtests):
    for error in (*FORM, *OTHER):
        with subtests.test(error=error):
            shown, events = run(error)
            assert (type(shown), str(shown)) == (errors.InputDataError, UNREADABLE)
            assert shown.__cause__ is shown.__context__ is None
            is_ours = isinstance(error, errors.PsdError)
            reason = str(error) if is_ours else f"it failed with {type(error).__name__}"
            assert events == [*(["charged"] if error in OTHER else []), reason]
    # What does not come from the input stays as it is.
    for error in PUBLIC:
        with subtests.test(error=error):
            assert run(error) == (error, [])


def test_a_charge_that_is_refused_is_told_and_an_interrupt_is_no_fault():
    lacking, charged = raising(MemoryError()), lambda: pytest.fail("it was charged")
    with pytest.raises(errors.BudgetError, match="too little"):
        mask_errors(lacking, Observer(), charge=raising(errors.BudgetError("too little")))
    with pytest.raises(errors.InputDataError, match=UNREADABLE):  # before counts are read
        mask_errors(lacking, Observer())
    with pytest.raises(KeyboardInterrupt):
        mask_errors(raising(KeyboardInterrupt()), Observer(), charge=charged)
    # Work that succeeds is neither charged nor reported.
    events = []
    observer = Observer(private_fault=events.append)
    assert mask_errors(lambda: 7, observer, charge=lambda: events.append("charged")) == 7
    assert events == []


DOMAIN = psd.Domain(bounds=(0, 0, 4, 4), lattice=(16, 16))
DAYS = psd.TimeSlices.parse("day", "2024-01-01..2024-01-03")
CHOSEN = {"user": "u", "max_contributions": "auto"}


def rehearsed(covariate=None, boundary=None, **arguments):
    request = request_of(**{"domain": DOMAIN, "epsilon": 1} | arguments)
    inputs = PublicInputs(
        post_processing=request.post_processing, covariate=covariate, boundary=boundary
    )
    dry_run_method(request, inputs, Budget(request.loss))


@pytest.mark.parametrize("method", psd.methods())
def test_every_method_can_be_rehearsed(method, subtests):
    for arguments in (
        {},
        {"user": "u", "max_contributions": 3},
        CHOSEN,
        {"user": "u", "count": "users"},
        {"time": "t", "slices": DAYS},
        {"domain": PrivateBounds()},
    ):
        with subtests.test(arguments=arguments):
            rehearsed(method=method, **arguments)


def test_a_rehearsal_draws_no_random_number(monkeypatch):
    for name in ("os.urandom", "psd.mechanisms.sampler.SecureSampler.draw"):
        monkeypatch.setattr(name, lambda *_: pytest.fail("a random number was drawn"))
    rehearsed(method=Quadtree(height=2))


class Watching(Quadtree):
    seen = []  # noqa: RUF012

    def build(self, curator):
        self.seen.append(curator)
        return super().build(curator)


def watched(*public, **arguments):
    """The only curator of a rehearsal."""
    Watching.seen.clear()
    rehearsed(*public, method=Watching(height=1), **arguments)
    [curator] = Watching.seen
    return curator


def test_the_method_gets_what_it_gets_in_the_build():
    covariate = Covariate(domain=DOMAIN, raster=np.ones((4, 4), np.uint16))
    polygons = gpd.GeoSeries([shapely.box(0, 0, 2, 4)], crs=DOMAIN.crs)
    boundary = Boundary.from_polygons(polygons, DOMAIN)
    first, second = watched(covariate, epsilon="0.5"), watched(None, boundary)
    assert (first.covariate, first.boundary, first.loss) == (covariate, None, 500_000_000)
    assert second.boundary is boundary.mask
    # Private bounds are rehearsed on their lattice.
    assert watched(domain=PrivateBounds(lattice=(64, 32))).domain.lattice == (64, 32)
    watched(time="t", slices=psd.TimeSlices.parse("day", "2024-01-01..2024-01-01"))  # of one slice
    rehearsed(regions=two_columns(DOMAIN), method="regions")  # with a tally of theirs
    for arguments in ({"domain": PrivateBounds()}, CHOSEN):
        with pytest.raises(errors.ParameterError, match="share"):
            rehearsed(**arguments, epsilon="1e-9")


def test_noise_in_rho_is_that_of_all_slices():
    series = {"user": "u", "time": "t", "slices": DAYS, "delta": "1e-6", "noise": "gaussian"}
    for limit in ({"max_contributions": 6, "max_per_slice": 2},
                  {"max_contributions": 2, "per": "slice"}):  # fmt: skip
        assert watched(**series, **limit).noise == CountNoise.gaussian(12)
