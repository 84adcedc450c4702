"""Tallies of builds that paid for a bound or for bounds: every release of them pays again."""

import itertools

import numpy as np
import pandas as pd
import pytest

import psd
from psd.accounting import selection_rho
from psd.curator.private_bounds import PrivateBounds
from psd.errors import ParameterError
from psd.ingest.partial_tally import CountingRules, PartialTally, PartOrigin, merge
from psd.ingest.reading import reading_of
from psd.ingest.tally import Tally
from psd.ingest.tally_file import read_tally, write_tally
from psd.ledger.ledger import Ledger
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.currency import EPSILON, RHO
from psd.privacy.epsilon import NANO, epsilon_text
from psd.privacy.unit import PrivacyUnit
from psd.publish.count_inputs import TallyInput
from psd.publish.observer import Observer
from psd.publish.tally_parts import tally_of_build
from psd.testing import RecordingSampler

DOMAIN = psd.Domain(bounds=(126, 37, 128, 38))
USERS = {"user": "u", "max_contributions": "auto"}
# What is found, and nano-epsilon paid for it out of 1.
FOUND = {
    "nothing": ({"domain": DOMAIN}, 0),
    "a bound": ({"domain": DOMAIN, **USERS}, 50_000_000),
    "bounds": ({"domain": PrivateBounds()}, 100_000_000),
    "both": ({"domain": PrivateBounds(), **USERS}, 150_000_000),
}


def rows():
    """Records of 20 users."""
    random = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "lon": 127 + random.normal(size=200) / 20,
            "lat": 37.5 + random.normal(size=200) / 20,
            "u": random.integers(20, size=200).astype(str),
        }
    )


def kept_of(tmp_path, options):
    """Tally of a build, written and read."""
    found = []
    release = psd.build(
        rows(), epsilon=1, method="grid", observer=Observer(private_tally=found.append), **options
    )
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.psd.parquet"
    release.save(path)
    kept = tally_of_build(found[0], release, [rows()], columns=psd.Columns(), release=path)
    write_tally(kept, path.with_suffix(".tally"))
    return read_tally(path.with_suffix(".tally"))


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_is_paid_for_in_every_release(tmp_path, name):
    options, paid = FOUND[name]
    kept = kept_of(tmp_path, options)
    assert kept.paid == paid
    recorder = RecordingSampler()
    release = psd.build(
        kept, epsilon="0.4", method=psd.decompositions.Grid(size=2), sampler=recorder
    )
    assert release.record.epsilon == 400_000_000
    assert sum(int(call.epsilon.max()) for call in recorder.draws) == 400_000_000 - paid
    stated = release.parameters.get("counting_epsilon")
    assert stated == (None if not paid else str(paid / NANO))


GAUSSIAN = {"delta": "1e-6", "noise_law": "gaussian"}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_in_rho_is_paid_for_as_the_epsilon_of_its_draws(tmp_path, name):
    """The choice and the sides of bounds are drawn first; their epsilons add up."""
    options, recorder = {**FOUND[name][0], **GAUSSIAN}, RecordingSampler(SecureSampler())
    psd.build(rows(), epsilon=1, method="grid", sampler=recorder, **options)
    found = [draw for draw in recorder.draws if draw.kind == "select"]
    assert len(found) == {"nothing": 0, "a bound": 1, "bounds": 4, "both": 5}[name]
    kept = kept_of(tmp_path, options)
    assert kept.paid == sum(int(draw.epsilon.max()) for draw in found)
    release = psd.build(kept, epsilon="0.9", method=psd.decompositions.Grid(size=2))
    assert release.parameters.get("counting_epsilon") == (
        None if not kept.paid else epsilon_text(kept.paid)
    )
    assert release.tree.max_path_epsilon <= release.record.epsilon - kept.paid


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", FOUND)
def test_gaussian_releases_pay_in_rho_for_what_was_found(tmp_path, name, law):
    options, _ = FOUND[name]
    kept = kept_of(tmp_path, {**options, **(GAUSSIAN if law == "gaussian" else {})})
    paid = selection_rho(kept.paid)
    release = psd.build(kept, epsilon=1, method=psd.decompositions.Grid(size=2), **GAUSSIAN)
    assert release.record.rho == 24_355_970_359
    assert release.tree.max_path_epsilon == release.record.rho - paid
    stated = release.parameters.get("counting_rho")
    assert stated == (RHO.text(paid) if paid else None)
    assert "counting_epsilon" not in release.parameters


def test_a_rho_that_was_spent_already_is_refused(tmp_path):
    """0.15 of pure epsilon cost 0.0028125 in rho, and epsilon 0.3 has 0.00254."""
    kept = kept_of(tmp_path, FOUND["both"][0])
    recorder = RecordingSampler()
    message = r"epsilon must be large enough for rho 0\.0028125, which private bounds or"
    with pytest.raises(ParameterError, match=message):
        psd.build(kept, epsilon="0.3", sampler=recorder, **GAUSSIAN)
    assert not recorder.draws
    release = psd.build(kept, epsilon="0.4", method="grid", **GAUSSIAN)
    assert release.parameters["counting_rho"] == "0.0028125"


def test_an_epsilon_that_was_spent_already_is_refused(tmp_path):
    kept = kept_of(tmp_path, FOUND["both"][0])
    recorder = RecordingSampler()
    for epsilon in ("0.01", "0.15"):
        with pytest.raises(ParameterError, match=r"must be above 0\.15"):
            psd.build(kept, epsilon=epsilon, sampler=recorder)
    assert not recorder.draws


@pytest.mark.parametrize(
    ("slices", "scope", "method"),
    [
        (None, "series", psd.decompositions.Grid(size=2)),
        (psd.TimeSlices.parse("day", "2024-01-01..2024-01-03"), "slice", "grid"),
    ],
    ids=["noise", "slices"],
)
def test_what_is_left_is_too_little_before_a_charge(tmp_path, slices, scope, method):
    """Epsilon of the request is enough; what the tally leaves of it is not."""
    columns = psd.Columns(user="u", time="t" if slices else None)
    rules = CountingRules(
        domain=DOMAIN,
        unit=PrivacyUnit(kind="user"),
        slices=slices,
        contribution_scope=scope,
        time_zone=slices and "UTC",
    )
    origin = PartOrigin(
        run="0" * 32,
        names=("part a",),
        contributions=10**9,
        paid=NANO - 2,
        reading=reading_of(columns),
    )
    none = np.zeros(0, np.int32)
    counts = Tally(
        columns=none,
        rows=none,
        counts=none.astype(np.int64),
        slice=slices and none,
        contributions=10**9,
    )
    tally = PartialTally(rules=rules, origins=(origin,), counts=counts)
    ledger = Ledger.create(tmp_path / "city.ledger")
    ledger.register("visits", 5, unit="user", columns=columns)
    with pytest.raises(ParameterError, match=r"too small for|at least"):
        psd.build(tally, epsilon=1, method=method, account=psd.Account(ledger.path, "visits"))
    assert not ledger.state().charges


def test_parts_add_what_they_paid():
    none = np.zeros(0, np.int32)
    counts = Tally(columns=none, rows=none, counts=none.astype(np.int64))
    parts = [
        PartialTally(
            rules=CountingRules(domain=DOMAIN, unit=PrivacyUnit(kind="user")),
            origins=(PartOrigin(run=f"{number:032x}", names=(f"part {number}",), paid=10**number),),
            counts=counts,
        )
        for number in range(3)
    ]
    for order in itertools.permutations(parts):
        merged = merge([merge(list(order[:2])), order[2]])
        assert merged.paid == 111
        assert TallyInput(tally=merged).paid(EPSILON) == 111
        assert TallyInput(tally=merged).paid(RHO) == 3  # 1e-18 / 8 and less, rounded up, each
