"""build(): parameters first, then the input, then the noise."""

import itertools
from types import SimpleNamespace

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from psd.curator.private_bounds import PrivateBounds
from psd.errors import InputDataError, ParameterError
from psd.ingest.sources import read
from psd.ingest.tally_builder import tally_batches
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.privacy.unit import PrivacyUnit
from psd.publish.drawing import draw_release
from psd.publish.observer import Observer
from psd.testing import SCRIPTS, RecordingSampler
from support.privacy.samplers import Echo

DOMAIN = psd.Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(4, 4))
TABLE = pd.DataFrame({"lon": [0.5, 1.5, 3.5], "lat": [0.5, 0.5, 3.5], "id": ["a", "a", "b"]})


def build(data=TABLE, **arguments):
    return psd.build(data, **{"domain": DOMAIN, "epsilon": "1", "method": "quadtree"} | arguments)


def test_parameters_come_before_the_file_is_looked_at(monkeypatch, subtests):
    monkeypatch.setattr("psd.publish.counting.read", lambda *_: pytest.fail("the input was read"))
    bounds = (0, -1, 10**9 + 1, True, "many", "1e3", 1.5, "")
    epsilons = (0, -1, "nan", "inf", 1001, "1e-10", "1_0", True, None, "")
    for arguments, words in (
        ({"user": "id"}, "max_contributions must be given"),
        ({"max_contributions": 2}, "user must name the column"),
        *(({"user": "id", "max_contributions": k}, "max_contributions") for k in bounds),
        *(({"epsilon": epsilon}, "epsilon") for epsilon in epsilons),
        ({"method": "kd"}, "method must be one of"),
    ):
        with subtests.test(arguments=arguments), pytest.raises(ParameterError, match=words):
            build("points.csv", **arguments)


def test_the_unit_is_a_user_with_a_bound_and_a_record_otherwise():
    method = psd.decompositions.Quadtree(height=1)
    for k in (1, "2", 10**9):
        unit = build(user="id", max_contributions=k, epsilon=1000, method=method).unit
        assert (unit.kind, unit.max_contributions) == ("user", int(k))
    release = build(method=method)
    assert (release.unit, release.record.source) == (PrivacyUnit(), "curator")


@pytest.mark.parametrize("method", psd.methods())
def test_an_input_that_cannot_be_read_costs_nothing(method, subtests):
    nameless = TABLE.assign(id=["a", None, "b"])
    for name, data in {
        "missing file": "missing.csv",
        "text for numbers": TABLE.assign(lon="x"),
        "no column of ids": TABLE.drop(columns="id"),
        "a row without id": nameless,
        "outside without id": nameless.assign(lon=50),
    }.items():
        noise = Echo()
        with subtests.test(name), pytest.raises(InputDataError):
            build(data, sampler=noise, method=method, user="id", max_contributions=1)
        assert noise.counts == []


CHOSEN = {"user": "id", "max_contributions": "auto"}
UNITS = ({}, {"user": "id", "max_contributions": 2}, CHOSEN, {"user": "id", "count": "users"})


@pytest.mark.parametrize("method", psd.methods())
def test_a_domain_without_a_row_gives_a_release(method, subtests):
    for unit, data in itertools.product(UNITS, (TABLE[:0], TABLE.assign(lon=50))):
        reports = []
        observer = Observer(private_report=reports.append)
        with subtests.test(unit=unit, rows=len(data)):
            release = build(data, sampler=Echo(), method=method, observer=observer, **unit)
            assert release.total == pytest.approx(0, abs=1e-6)
            (report,) = reports
            assert (report["read"], report["outside"], report["kept"]) == (len(data), len(data), 0)
    for unit, data in itertools.product(({}, CHOSEN), (TABLE[:0], TABLE.assign(lon=1e9))):
        if method == "grid":
            bounds = PrivateBounds()
            assert build(data, domain=bounds, method="grid", **unit).epsilon == 1


def test_the_noise_is_given_the_bound_and_the_whole_epsilon():
    noise = Echo()
    release = build(
        sampler=noise, user="id", max_contributions=2, method=psd.decompositions.Quadtree(height=2)
    )
    assert [count.sensitivity for count in noise.counts] == [2, 2, 2]
    assert sum(int(count.epsilon[0]) for count in noise.counts) == release.record.epsilon == 10**9
    assert [int(count.true.sum()) for count in noise.counts] == [3, 3, 3]
    assert release.total == pytest.approx(3)


def test_a_release_of_other_noise_is_a_replay_and_is_not_saved(tmp_path):
    class Quiet(SecureSampler):
        def draw(self, mechanism):
            return mechanism.true

    for noise in (Echo(), Quiet()):
        release = build(sampler=noise)
        assert release.record.source == "replay"
        with pytest.raises(ParameterError, match="not saved"):
            release.save(tmp_path / "r.psd.parquet")
    assert list(tmp_path.iterdir()) == []
    assert build(sampler=SecureSampler()).record.source == "curator"


def tallied(**arguments):
    kept = []
    build(observer=Observer(private_tally=kept.append), **arguments)
    return kept[0]


def drawn(counts, unit=PrivacyUnit(), **more):  # noqa: B008 - frozen
    method = psd.decompositions.Quadtree(height=1)
    return draw_release(counts, DOMAIN, budget=Budget(10**9), method=method, unit=unit, **more)


def test_one_tally_serves_several_releases():
    counts = tallied()
    before = counts.counts.copy()
    first, second = (drawn(counts, sampler=Echo()) for _ in range(2))
    np.testing.assert_array_equal(first.tree.count, build(sampler=Echo()).tree.count[:5])
    np.testing.assert_array_equal(first.tree.count, second.tree.count)
    np.testing.assert_array_equal(counts.counts, before)
    assert (first.record.source, drawn(counts).record.source) == ("replay", "curator")
    # The unit of a bounded tally is the user.
    for k in (1, 2):
        unit = PrivacyUnit(kind="user", max_contributions=k)
        assert drawn(tallied(user="id", max_contributions=k), unit=unit).unit == unit
    with pytest.raises(ParameterError, match="unit must be that of the tally"):
        drawn(tallied(user="id", max_contributions=2))


def test_stages_and_private_counts_are_told_to_who_asks(capfd):
    stages, reports = [], []
    observer = {"progress": stages.append, "private_report": reports.append}
    release = build(observer=observer, method=psd.decompositions.Grid(size=3))
    assert stages == ["reading", "counting with noise"]
    assert reports == [{"read": 3, "without coordinates": 0, "outside": 0, "kept": 3}]
    assert capfd.readouterr() == ("", "")
    assert release.method == "grid"
    assert dict(release.record.parameters) == {"size": 3, "total_share": "0.02", "workload": None}


def test_an_observer_has_functions_by_their_names(subtests):
    for observer, words in (
        ({"progres": print}, "did you mean 'progress'"),
        (print, 'observer must be a mapping of functions, such as {"progress": print}, got'),
    ):
        with subtests.test(words), pytest.raises(ParameterError, match=words):
            build(observer=observer)


def test_what_an_engine_does_not_do_is_refused_before_it_counts(subtests):
    engine = SimpleNamespace(tally=lambda *_, **__: pytest.fail("the engine counted"))
    for arguments, words in (
        ({"domain": PrivateBounds()}, "bounds must be public with an engine"),
        (CHOSEN, "max_contributions must be a number with an engine"),
        ({"engine": "spark"}, "engine must have an address, such as"),
        ({"engine": "flink:somewhere"}, "engine must be one of"),
        ({"engine": 5}, "engine must have a function tally"),
    ):
        with subtests.test(words), pytest.raises(ParameterError, match=words):
            build("points.csv", **{"engine": engine, **arguments})


class Elsewhere:
    """An engine, which counts as this process does."""

    def tally(self, data, columns, domain, **how):
        return tally_batches(read(data, columns, domain), domain, **how)


SQUARE = gpd.GeoDataFrame(geometry=[shapely.box(0, 0, 3, 4)], crs=3857)
BOUNDED = {"time": "at", "user": "id", "slices": psd.TimeSlices.parse("month", "2024-01..2024-03")}


@pytest.mark.parametrize(
    "options",
    [
        {"boundary": SQUARE},
        {"regions": psd.regions.CellRegions(kind="grid-cells", cells="2"), "method": "none"},
        {**BOUNDED, "max_contributions": 2},
        {**BOUNDED, "max_contributions": 2, "per": "slice"},
        {**BOUNDED, "max_contributions": 2, "per": "user-slice"},
        {**BOUNDED, "max_contributions": 3, "max_per_slice": 1, "boundary": SQUARE},
    ],
    ids=lambda options: " ".join(map(str, options)),
)
def test_an_engine_is_given_all_that_decides_what_is_counted(options):
    """One that left out an argument would count other records of so few places."""
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 9, (2, 400)) + 0.5
    months = pd.to_datetime("2023-12-01") + pd.to_timedelta(rng.integers(0, 150, 400), unit="D")
    ids = rng.choice(["a", "b", "c"], 400)
    table = pd.DataFrame({"lon": x, "lat": y, "id": ids, "at": months})
    facts = []
    for engine in (None, Elsewhere()):
        noise = RecordingSampler(SCRIPTS[1])
        build(table, engine=engine, sampler=noise, **options)
        facts.append((len(noise.draws), sum(draw.true.sum() for draw in noise.draws)))
    assert facts[0] == facts[1]
