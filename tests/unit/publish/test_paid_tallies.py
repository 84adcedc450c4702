"""Tallies of builds that paid for a bound or for bounds: every release of them pays again."""

import itertools

import numpy as np
import pandas as pd
import pytest

import psd
from psd.accounting import selection_rho
from psd.curator.private_bounds import PrivateBounds
from psd.errors import ParameterError
from psd.ingest.columns import reading_of
from psd.ingest.partial_tally import CountingRules, PartialTally, PartOrigin, merge
from psd.ingest.tally import Tally
from psd.ingest.tally_file import read_tally, write_tally
from psd.ledger.ledger import Ledger
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.loss import EPSILON, NANO, RHO, epsilon_text
from psd.privacy.unit import PrivacyUnit
from psd.publish.counting import TallyInput
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
    random = np.random.default_rng(5)
    x, y = random.normal(size=200) / 20, random.normal(size=200) / 20
    ids = random.integers(20, size=200).astype(str)
    return pd.DataFrame({"lon": 127 + x, "lat": 37.5 + y, "u": ids})


def build(data, **more):
    return psd.build(data, **{"epsilon": 1, "method": psd.decompositions.Grid(size=2), **more})


def kept_of(tmp_path, options):
    found = []
    observer = Observer(private_tally=found.append)
    release = build(rows(), method="grid", observer=observer, **options)
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
    release = build(kept, epsilon="0.4", sampler=recorder)
    assert release.record.epsilon == 400_000_000
    assert sum(int(call.loss.max()) for call in recorder.draws) == 400_000_000 - paid
    stated = release.record.parameters.get("counting_epsilon")
    assert stated == (None if not paid else str(paid / NANO))


GAUSSIAN = {"delta": "1e-6", "noise": "gaussian"}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_in_rho_is_paid_for_as_the_epsilon_of_its_draws(tmp_path, name):
    """The choice and the sides of bounds are drawn first; their epsilons add up."""
    options, recorder = {**FOUND[name][0], **GAUSSIAN}, RecordingSampler(SecureSampler())
    build(rows(), method="grid", sampler=recorder, **options)
    found = [draw for draw in recorder.draws if draw.kind == "select"]
    assert len(found) == {"nothing": 0, "a bound": 1, "bounds": 4, "both": 5}[name]
    kept = kept_of(tmp_path, options)
    assert kept.paid == sum(int(draw.loss.max()) for draw in found)
    release = build(kept, epsilon="0.9")
    stated = release.record.parameters.get("counting_epsilon")
    assert stated == (epsilon_text(kept.paid) if kept.paid else None)
    assert release.tree.max_path_loss <= release.record.epsilon - kept.paid


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_gaussian_releases_pay_in_rho_for_what_was_found(tmp_path, law, subtests):
    for name, (options, _) in FOUND.items():
        kept = kept_of(tmp_path, {**options, **(GAUSSIAN if law == "gaussian" else {})})
        paid, release = selection_rho(kept.paid), build(kept, **GAUSSIAN)
        with subtests.test(name):
            assert release.record.rho == 24_355_970_359
            assert release.tree.max_path_loss == release.record.rho - paid
            assert release.record.parameters.get("counting_rho") == (
                RHO.text(paid) if paid else None
            )
            assert "counting_epsilon" not in release.record.parameters


def test_what_was_spent_already_is_refused(tmp_path):
    """0.15 of pure epsilon cost 0.0028125 in rho, and epsilon 0.3 has 0.00254."""
    kept, recorder = kept_of(tmp_path, FOUND["both"][0]), RecordingSampler()
    in_rho = r"epsilon must be large enough for rho 0\.0028125, which private bounds or"
    for epsilon, options, words in (
        ("0.3", GAUSSIAN, in_rho),
        ("0.01", {}, r"must be above 0\.15"),
        ("0.15", {}, r"must be above 0\.15"),
    ):
        with pytest.raises(ParameterError, match=words):
            psd.build(kept, epsilon=epsilon, sampler=recorder, **options)
    assert not recorder.draws
    assert build(kept, epsilon="0.4", **GAUSSIAN).record.parameters["counting_rho"] == "0.0028125"


NONE = np.zeros(0, np.int32)


def without_records(origin, **more):
    """Tally of users, of which nobody has a record."""
    rules = CountingRules(domain=DOMAIN, unit=PrivacyUnit(kind="user"), **more)
    cells = {"columns": NONE, "rows": NONE, "counts": NONE.astype(np.int64)}
    of_users = {"slice": NONE if rules.slices else None, "contributions": origin.contributions}
    return PartialTally(rules=rules, origins=(origin,), counts=Tally(**cells, **of_users))


@pytest.mark.parametrize("text", [None, "2024-01-01..2024-01-03"], ids=["noise", "slices"])
def test_what_is_left_is_too_little_before_a_charge(tmp_path, text):
    """Epsilon of the request is enough; what the tally leaves of it is not."""
    columns, options, method = psd.Columns(user="u"), {}, psd.decompositions.Grid(size=2)
    if text:
        columns, method = psd.Columns(user="u", time="t"), "grid"
        slices = psd.TimeSlices.parse("day", text)
        options = {"slices": slices, "contribution_scope": "slice", "time_zone": "UTC"}
    of_users = {"contributions": 10**9, "paid": NANO - 2, "reading": reading_of(columns)}
    tally = without_records(PartOrigin(run="0" * 32, names=("part a",), **of_users), **options)
    ledger = Ledger.create(tmp_path / "city.ledger")
    ledger.register("visits", 5, unit="user", columns=columns)
    with pytest.raises(ParameterError, match=r"too small for|at least"):
        psd.build(
            tally, epsilon=1, method=method, account=psd.ledger.Account(ledger.path, "visits")
        )
    assert not ledger.state().charges


def test_parts_add_what_they_paid():
    reading = reading_of(psd.Columns())
    runs = [
        PartOrigin(run=f"{n:032x}", names=(f"{n}",), reading=reading, paid=10**n) for n in range(3)
    ]
    parts = [*map(without_records, runs)]
    for order in itertools.permutations(parts):
        merged = merge([merge(list(order[:2])), order[2]])
        assert merged.paid == 111
        assert TallyInput(tally=merged).paid(EPSILON) == 111
        assert TallyInput(tally=merged).paid(RHO) == 3  # 1e-18 / 8 and less, rounded up, each
