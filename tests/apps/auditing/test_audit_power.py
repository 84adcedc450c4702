"""The audit passes sound builds and catches planted bugs, at sizes that every run can afford."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest

import psd
from privacy.planted_bugs.bug import around, replaced
from privacy.planted_bugs.curator import prunes_on_true_counts, sensitivity_forgets_k
from privacy.planted_bugs.selection import selection_without_factor_2
from psd.apps.auditing.attacks import Plot, audit, run_canaries
from psd.apps.auditing.pairs import Pair, record_losses
from psd.privacy.count_noise import CountNoise
from psd.privacy.loss import Loss
from psd.privacy.unit import PrivacyUnit
from psd.testing.transcripts import LeakError

pytestmark = pytest.mark.deep

# A chance of one in a million that a sound build fails, or that a figure is off by luck.
SURE = 1 - 1e-6
COUPLE = PrivacyUnit(kind="user", max_contributions=2)
GRID, SMALL_GRID = psd.decompositions.Grid(size=32), psd.decompositions.Grid(size=4)

# All of it goes to one cut, so that the cut is what an attack sees.
ONE_CUT = psd.decompositions.method("kd-standard", {"height": "1", "structure_share": "0.9"})


def counts_drawn_with(numerator, denominator=1, *, law="laplace.LaplaceMechanism", loss="epsilon"):
    """Counts have the noise of another loss than the one that is charged."""

    @around(f"psd.mechanisms.{law}.sample")
    def other(sample, self):
        return sample(replace(self, **{loss: getattr(self, loss) * numerator // denominator}))

    return other()


def by_canaries(unit=None):
    return audit(GRID, 1, unit=unit, canaries=1024, runs=4, pairs=0, confidence=SURE)


each_unit = pytest.mark.parametrize("unit", [None, COUPLE], ids=["record", "user"])


@each_unit
def test_a_sound_build_passes(unit):
    found = by_canaries(unit=unit)
    assert not found.failed
    assert "no fault: " in found.sentence
    assert [finding.verdict for finding in found.results] == ["as expected"]
    assert 0 < found.lower < 1
    assert found.lower < found.results[0].expected <= 1


CAUGHT = {
    "noise of 0.7 times the scale": (lambda: counts_drawn_with(10, 7), None, "not private"),
    "epsilon spent twice": (lambda: counts_drawn_with(2), None, "not private as claimed"),
    "factor k forgotten": (sensitivity_forgets_k, COUPLE, "not private as claimed"),
    "noise of 2 times the scale": (lambda: counts_drawn_with(1, 2), None, "larger than needed"),
}


@pytest.mark.parametrize("name", CAUGHT)
def test_canaries_catch(name):
    patch, unit, said = CAUGHT[name]
    with patch():
        found = by_canaries(unit=unit)
    assert said in found.sentence
    assert found.failed is said.startswith("not private")


def by_gaussian_canaries(unit=None, epsilon=3):
    sizes = {"canaries": 1024, "runs": 6, "pairs": 0, "confidence": SURE}
    return audit(GRID, epsilon, delta="1e-9", unit=unit, **sizes)


@each_unit
def test_a_sound_gaussian_build_passes(unit):
    found = by_gaussian_canaries(unit)
    assert not found.failed
    (result,) = found.results
    assert 0 <= result.proved < result.lower < result.expected < 3
    assert found.lower == result.proved
    assert (found.epsilon, found.loss.delta) == (3 * 10**9, Fraction(1, 10**9))
    assert " of 3 at delta 1e-9, expected " in found.sentence


def test_canaries_catch_too_small_a_sigma():
    """At half of it, about 20 standard deviations from a result that the audit would pass."""
    gaussian = {"law": "gaussian.GaussianMechanism", "loss": "rho"}
    with counts_drawn_with(4, **gaussian):
        found = by_gaussian_canaries()
    assert found.failed
    assert found.sentence.startswith("not private as charged: an attack succeeds more often")
    with counts_drawn_with(100, **gaussian):
        found = by_gaussian_canaries(epsilon=1)
    assert found.failed
    assert found.results[0].proved > 1.2
    assert found.sentence.startswith("not private as claimed: epsilon is over ")
    assert found.sentence.endswith("the claim is 1 at delta 1e-9")


SMALL = {"canaries": 16, "runs": 1, "pairs": 100, "confidence": SURE}


@pytest.mark.parametrize("squared", [4, 3, 2])
def test_recorded_builds_catch_gaussian_noise_for_too_few_records(squared):
    """The noise has the law that the release states, so attacks succeed as often as expected."""
    with replaced("psd.curator.curator._noise_of", lambda *_: CountNoise.gaussian(squared)):
        found = audit(SMALL_GRID, 1, delta="1e-6", unit=COUPLE, **SMALL)
    assert found.rho == pytest.approx(0.024355970359 * 4 / squared)
    assert found.failed is found.overspent is (squared < 4)
    if found.failed:
        told = f"a build of a small tree spends rho {found.rho:.3g} of 0.0244"
        assert found.sentence == f"not private as claimed: {told}"


def test_recorded_builds_catch_an_epsilon_that_no_attack_proves():
    """A sensitivity without k: 100 builds prove little, and each of them tells twice the claim."""
    with sensitivity_forgets_k():
        found = audit(SMALL_GRID, 1, unit=COUPLE, **SMALL)
    assert (found.failed, found.overspent) == (True, True)
    assert found.reach == pytest.approx(2)


def by_pairs(method, epsilon, pairs=1_600, confidence=SURE):
    found = audit(method, epsilon, canaries=16, runs=1, pairs=pairs, confidence=confidence)
    return found, found.results[1:]


def test_pairs_catch_the_factor_of_the_exponential_mechanism():
    with selection_without_factor_2():
        found, (more, _) = by_pairs(ONE_CUT, 1.5, confidence=0.999)
    assert found.failed
    assert more.verdict in ("above the claim", "tells too much")


def test_pairs_pass_a_sound_cut_and_bound_its_epsilon():
    found, (more, less) = by_pairs(ONE_CUT, 2, pairs=4_000)
    assert not found.failed
    assert more.lower > 0.4
    assert more.expected > less.expected > 0
    assert more.expected - more.slack < found.reach <= 2


def test_what_steers_a_build_past_the_curator_is_told_from_the_first_pair():
    quadtree = psd.decompositions.Quadtree(height=2)
    with prunes_on_true_counts():
        with pytest.raises(LeakError):
            record_losses(Pair.of(quadtree, Loss.pure(10**9), PrivacyUnit()), 3, more=False)
        found, _ = by_pairs(quadtree, 1, pairs=100)
    assert found.failed
    assert found.sentence.startswith("not private: after the same answers")


def test_the_canaries_are_tossed_by_the_operating_system():
    """The truth is no function of anything that a build could know."""
    plot = Plot.of(4, Loss.pure(10**9), PrivacyUnit())
    tossed = set()

    def build(rows, release):
        tossed.add(rows.read_bytes())
        domain = psd.Domain(bounds=plot.bounds, crs="EPSG:3857")
        psd.build(rows, domain=domain, epsilon=1, method=SMALL_GRID).save(release)

    for _ in range(3):
        run_canaries(build, plot)
    assert len(tossed) > 1


# The methods that draw in different ways (counts, medians, shapes), since one run takes a minute;
# `python lab/audits.py` audits all methods, with fewer pairs.
LARGER = list(product(("grid", "kd-cell", "privtree"), (0.5, 1, 2)))


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "epsilon"), LARGER)
def test_methods_pass_at_larger_sizes(name, epsilon):
    found = audit(name, epsilon, runs=64, pairs=20_000, confidence=SURE, jobs=2)
    assert not found.failed, found
    assert "no fault: " in found.sentence


@pytest.mark.nightly
@pytest.mark.parametrize(("numerator", "denominator"), [(10, 7), (10, 8), (10, 13)])
def test_smaller_faults_at_larger_sizes(numerator, denominator):
    with counts_drawn_with(numerator, denominator):
        found = audit("quadtree", 1, runs=128, pairs=0, confidence=SURE)
    assert found.failed is (numerator > denominator)
    assert not found.sentence.startswith("no fault: ")


def test_an_audit_that_guessed_nothing_claims_nothing():
    report = audit(psd.decompositions.Grid(size=2), 1, canaries=64, runs=1, pairs=0)
    assert [result.samples for result in report.results] == [0]
    assert report.sentence.startswith("no result: ")
