"""Tallies of builds that paid for a bound or for bounds: every release of them pays again."""

import itertools

import numpy as np
import pandas as pd
import pytest

import psd
from psd.curator.private_bounds import PrivateBounds
from psd.errors import ParameterError
from psd.ingest.partial_tally import CountingRules, PartialTally, PartOrigin, merge
from psd.ingest.reading import reading_of
from psd.ingest.tally import Tally
from psd.ingest.tally_file import read_tally, write_tally
from psd.ledger.ledger import Ledger
from psd.privacy.epsilon import NANO
from psd.privacy.unit import PrivacyUnit
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


def kept_of(tmp_path, options):
    """Tally of a build, written and read."""
    random, found = np.random.default_rng(5), []
    rows = pd.DataFrame(
        {
            "lon": 127 + random.normal(size=200) / 20,
            "lat": 37.5 + random.normal(size=200) / 20,
            "u": random.integers(20, size=200).astype(str),
        }
    )
    release = psd.build(
        rows, epsilon=1, method="grid", observer=Observer(private_tally=found.append), **options
    )
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.psd.parquet"
    release.save(path)
    kept = tally_of_build(found[0], release, [rows], columns=psd.Columns(), release=path)
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
        assert merge([merge(list(order[:2])), order[2]]).paid == 111
