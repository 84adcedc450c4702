"""build(): parameters first, then the input, then the noise."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from psd.errors import InputDataError, ParameterError, WriteError
from psd.privacy.budget import Budget
from psd.privacy.unit import PrivacyUnit
from psd.publish.drawing import draw_release
from psd.publish.observer import Observer
from support.privacy.samplers import Echo

DOMAIN = psd.Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(4, 4))
TABLE = pd.DataFrame({"lon": [0.5, 1.5, 3.5], "lat": [0.5, 0.5, 3.5], "id": ["a", "a", "b"]})


def build(data=TABLE, **arguments):
    return psd.build(data, **{"domain": DOMAIN, "epsilon": "1", "method": "quadtree"} | arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param({"user": "id"}, "max_contributions must be given", id="user-without-bound"),
        pytest.param(
            {"max_contributions": 2}, "user must name the column", id="bound-without-user"
        ),
        *(
            pytest.param({"user": "id", "max_contributions": k}, "max_contributions", id=f"k-{k}")
            for k in (0, -1, 10**9 + 1, True, "many", "1e3", 1.5, "")
        ),
        *(
            pytest.param({"epsilon": epsilon}, "epsilon", id=f"epsilon-{epsilon}")
            for epsilon in (0, -1, "nan", "inf", 1001, "1e-10", "1_0", True, None, "")
        ),
        pytest.param({"method": "kd"}, "method must be one of", id="unknown-method"),
    ],
)
def test_parameters_come_before_the_file_is_looked_at(monkeypatch, arguments, words):
    monkeypatch.setattr(
        "psd.publish.count_rows.read", lambda *args: pytest.fail("the input was read")
    )
    with pytest.raises(ParameterError, match=words):
        build("points.csv", **arguments)


@pytest.mark.parametrize("k", [1, "2", 10**9])
def test_bounds_that_are_taken(k):
    release = build(
        user="id", max_contributions=k, epsilon=1000, method=psd.decompositions.Quadtree(height=1)
    )
    assert (release.unit.kind, release.unit.max_contributions) == ("user", int(k))


def test_a_record_is_the_unit_otherwise():
    release = build(method=psd.decompositions.Quadtree(height=1))
    assert (release.unit.kind, release.unit.max_contributions, release.source) == (
        "record",
        1,
        "curator",
    )


@pytest.mark.parametrize("method", psd.methods())
@pytest.mark.parametrize(
    ("data", "kind"),
    [
        pytest.param("missing.csv", InputDataError, id="missing-file"),
        pytest.param(TABLE.assign(lon="x"), InputDataError, id="text-for-numbers"),
        pytest.param(TABLE.drop(columns="id"), InputDataError, id="no-column-of-ids"),
        pytest.param(TABLE.assign(id=["a", None, "b"]), InputDataError, id="a-row-without-id"),
        pytest.param(
            TABLE.assign(id=["a", None, "b"], lon=50), InputDataError, id="outside-without-id"
        ),
    ],
)
def test_an_input_that_cannot_be_read_costs_nothing(method, data, kind):
    noise = Echo()
    with pytest.raises(kind):
        build(data, sampler=noise, method=method, user="id", max_contributions=1)
    assert noise.counts == []


@pytest.mark.parametrize("method", psd.methods())
@pytest.mark.parametrize(
    "unit",
    [
        {},
        {"user": "id", "max_contributions": 2},
        {"user": "id", "max_contributions": "auto"},
        {"user": "id", "count": "users"},
    ],
    ids=["record", "user", "chosen", "users"],
)
@pytest.mark.parametrize("data", [TABLE[:0], TABLE.assign(lon=50)], ids=["no-row", "all-outside"])
def test_a_domain_without_a_row_gives_a_release(data, unit, method):
    noise, reports = Echo(), []
    release = build(
        data, sampler=noise, method=method, observer=Observer(private_report=reports.append), **unit
    )
    assert release.total == pytest.approx(0, abs=1e-6)
    (report,) = reports
    assert (report["read"], report["outside"], report["kept"]) == (len(data), len(data), 0)


@pytest.mark.parametrize("unit", [{}, {"user": "id", "max_contributions": "auto"}])
@pytest.mark.parametrize("data", [TABLE[:0], TABLE.assign(lon=1e9)], ids=["no-row", "all-outside"])
def test_private_bounds_of_no_row_give_a_release(data, unit):
    release = build(data, domain=psd.PrivateBounds(), method="grid", **unit)
    assert release.epsilon == 1


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
    release = build(sampler=Echo())
    assert release.source == "replay"
    with pytest.raises(ParameterError, match="not saved"):
        release.save(tmp_path / "r.psd.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_subclass_of_the_noise_is_other_noise():
    from psd.mechanisms.sampler import SecureSampler

    class Quiet(SecureSampler):
        def draw(self, mechanism):
            return mechanism.true

    assert build(sampler=Quiet()).source == "replay"
    assert build(sampler=SecureSampler()).source == "curator"


def tallied(**arguments):
    kept = []
    build(observer=Observer(private_tally=kept.append), **arguments)
    return kept[0]


def drawn(counts, **arguments):
    given = {
        "budget": Budget(10**9),
        "method": psd.decompositions.Quadtree(height=1),
        "unit": PrivacyUnit(),
    }
    return draw_release(counts, DOMAIN, **given | arguments)


def test_one_tally_serves_several_releases():
    counts = tallied()
    before = counts.counts.copy()
    first, second = (drawn(counts, sampler=Echo()) for _ in range(2))
    np.testing.assert_array_equal(first.tree.count, build(sampler=Echo()).tree.count[:5])
    np.testing.assert_array_equal(first.tree.count, second.tree.count)
    np.testing.assert_array_equal(counts.counts, before)
    assert (first.source, drawn(counts).source) == ("replay", "curator")


@pytest.mark.parametrize("k", [1, 2])
def test_the_unit_of_a_bounded_tally_is_the_user(k):
    unit = PrivacyUnit(kind="user", max_contributions=k)
    release = drawn(tallied(user="id", max_contributions=k), unit=unit)
    assert (release.unit.kind, release.unit.max_contributions) == ("user", k)


def test_a_bounded_tally_makes_no_promise_for_rows():
    with pytest.raises(ParameterError, match="unit must be that of the tally"):
        drawn(tallied(user="id", max_contributions=2))


def test_parameters_of_the_method_go_into_the_release():
    release = build(method=psd.decompositions.Grid(size=3))
    assert release.method == "grid"
    assert dict(release.parameters) == {"size": 3, "total_share": "0.02", "workload": None}


def test_stages_and_private_counts_are_told_to_who_asks(capfd):
    stages, reports = [], []
    build(observer=Observer(progress=stages.append, private_report=reports.append))
    assert stages == ["reading", "counting with noise"]
    assert reports == [{"read": 3, "without coordinates": 0, "outside": 0, "kept": 3}]
    assert capfd.readouterr() == ("", "")


def test_saved_and_loaded_it_is_the_same(tmp_path):
    release = build(user="id", max_contributions=2, epsilon="0.3")
    release.save(tmp_path / "r.psd.parquet")
    with pytest.raises(WriteError, match="exists"):
        release.save(tmp_path / "r.psd.parquet")
    loaded = psd.Release.load(tmp_path / "r.psd.parquet")
    np.testing.assert_array_equal(loaded.tree.count, release.tree.count)
    for name in ("domain", "epsilon", "method", "unit", "library"):
        assert getattr(loaded, name) == getattr(release, name)


class Cluster:
    """An engine that counts nothing."""

    def tally(self, *_, **__):
        pytest.fail("the engine counted")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"domain": psd.PrivateBounds()}, "bounds must be public"),
        ({"user": "id", "max_contributions": "auto"}, "max_contributions must be a number"),
        (
            {"boundary": gpd.GeoDataFrame(geometry=[shapely.box(0, 0, 1, 1)], crs=3857)},
            "boundary must be left out",
        ),
        (
            {"time": "at", "slices": psd.TimeSlices.parse("month", "2024-01..2024-03")},
            "slices must be left out",
        ),
    ],
)
def test_what_an_engine_does_not_do_is_refused_before_it_counts(arguments, words):
    with pytest.raises(ParameterError, match=f"{words} with an engine"):
        build("points.csv", engine=Cluster(), **arguments)


def test_a_name_is_no_engine():
    table = pd.DataFrame({"lon": [1.0], "lat": [1.0]})
    with pytest.raises(ParameterError, match="engine must be an engine"):
        psd.build(table, domain=psd.Domain(bounds=(0, 0, 2, 2)), epsilon=1, engine="spark")
