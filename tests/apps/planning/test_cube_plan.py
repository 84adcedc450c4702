"""Plans of cubes: areas in windows of time, and the epsilon for an error."""

import numpy as np
import pytest

from psd.apps.planning.cube_plan import _in_time
from psd.apps.planning.plan import plan
from psd.apps.planning.population import AssumedDensity, draw_population, square_domain
from psd.apps.planning.simulation import PlannedSeries, PlanRequest
from psd.apps.planning.text import plan_sentences, range_columns
from psd.decompositions import Cube
from psd.errors import ParameterError
from support.cli_runner import as_json, check_refusals, passes
from support.plans import quick

CUBE = {"methods": "cube", "slices": 24, "sizes": [0.02]}
LINE = "plan --area 100 --methods cube --slices 24 --density uniform --runs 1 --sizes 2%"


def small(**arguments):
    return quick(300, **{**CUBE, **arguments})


def test_errors_of_areas_in_windows():
    expected = small(delta="1e-6")
    table = expected.table
    assert list(dict.fromkeys(table["window"])) == [1, 5, 24]
    assert set(table["noise"]) == {"laplace", "gaussian"}
    people = table[(table["centres"] == "on data") & (table["noise"] == "laplace")]
    assert people["mean_error"].is_monotonic_decreasing
    counts = people["mean_count"].to_numpy()
    assert counts / counts[0] == pytest.approx([1, 5, 24], rel=0.15)
    columns = range_columns(expected)
    assert columns["window"] == ["1", "5", "24"] * 2
    told = " ".join(plan_sentences(expected))
    assert "centred on people in one slice" in told
    assert "in windows of 24 slices" in told
    assert "by itself a build chooses" in told


def test_errors_of_labels():
    found = small(windows=[24], categories=[0.5, 0.3, 0.2])
    people = found.table[found.table["centres"] == "on data"]
    assert people["category"].tolist() == [0.5, 0.3, 0.2]
    counts = people["mean_count"].to_numpy()
    assert counts / counts.sum() == pytest.approx([0.5, 0.3, 0.2], abs=0.05)
    assert people["mean_error"].iloc[0] < people["mean_error"].iloc[2]
    assert range_columns(found)["category"] == ["50 %", "30 %", "20 %"]
    assert "in windows of 24 slices, of a label with 20 % of the records," in " ".join(
        plan_sentences(found)
    )
    whole = small(epsilon=1000, sizes=[1.0], windows=[24], categories=4).table
    assert whole["mean_records_off"].max() < 5
    assert whole["mean_count"].tolist() == pytest.approx([1_800] * 2, rel=0.1)
    told = as_json(f"{LINE} --count 300 --epsilon 1 --windows 24 --categories 40%,60%")
    assert {row["category"] for row in told["expected"]} == {0.4, 0.6}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"categories": 1}, "categories must be between 2 and 100"),
        ({"categories": [0.5, 0.4]}, "categories must be 2 to 100 parts above 0 % that sum to 100"),
        ({"categories": [0.5, "0.5"]}, "categories must be 2 to 100 parts"),
        ({"categories": 3, "methods": "auto"}, "categories must be left out without slices and"),
        ({"categories": 3, "slices": 1}, "categories must be left out without slices and"),
    ],
)
def test_labels_that_are_refused(arguments, told):
    with pytest.raises(ParameterError, match=told):
        small(**arguments)


def test_all_of_everything_is_known_at_a_large_epsilon():
    found = small(epsilon=1000, sizes=[1.0], windows=[24]).table
    assert found["mean_records_off"].max() < 5
    assert found["mean_count"].tolist() == [7_200, 7_200]


def test_a_plan_has_one_population_for_a_seed():
    counts = [small(epsilon=e, density=["clustered"]).table["mean_count"] for e in (1, 2)]
    assert counts[0].tolist() == counts[1].tolist()
    other = small(seed=1, density=["clustered"]).table["mean_count"]
    assert other.tolist() != counts[0].tolist()


@pytest.mark.parametrize("kind", ["uniform", "clustered"])
@pytest.mark.parametrize("count", [50, 60_000])
def test_records_keep_their_places_and_get_a_slice(kind, count, monkeypatch):
    from psd.apps.planning import cube_plan, population

    for module in (cube_plan, population):  # as of many more records
        monkeypatch.setattr(module, "MAX_GROUPS", 100_000)
    domain, density = square_domain(100.0), AssumedDensity(kind=kind)
    random = np.random.default_rng(3)
    request = PlanRequest(
        domain=domain, area_km2=100.0, count=count, epsilons=(10**9,), methods=(Cube(),),
        shares=(0.1,), max_contributions=24, series=PlannedSeries(slices=24), windows=(1,),
    )  # fmt: skip
    people = draw_population(count * 24, domain, density, random, contributions=24)
    timed = _in_time(people, 24, request, density, random)
    assert (timed.counts > 0).all()
    assert timed.counts.sum() == count * 24
    assert timed.contributions == 24
    assert (np.diff(timed.slice) >= 0).all()
    totals = np.bincount(timed.slice, timed.counts, 24)
    assert len(totals) == 24
    spread = totals.std() / totals.mean()
    assert spread < 0.2 if kind == "uniform" else 0.1 < spread < 2
    cells = np.bincount(people.rows // 2**16 * 16 + people.columns // 2**16, people.counts, 256)
    again = np.bincount(timed.rows // 2**16 * 16 + timed.columns // 2**16, timed.counts, 256)
    assert cells.tolist() == again.tolist()


def test_epsilon_for_an_error():
    # The mean of five builds, since errors of single ones differ by their draws.
    found = small(epsilon=None, windows=[24], for_relative_error=0.15, runs=5)
    people = found.table[found.table["centres"] == "on data"]
    assert people["mean_error"].max() <= 0.15
    assert people["epsilon"].tolist() == [str(found.solved)]
    assert 2 < found.solved < 8
    assert f"epsilon {found.solved} gives this error" in plan_sentences(found)
    with pytest.raises(ParameterError, match=r"which epsilon 0\.01 gives"):
        small(epsilon="0.01", windows=[24], for_relative_error=0.01)


def test_what_a_plan_of_cubes_refuses(subtests):
    for arguments, told in [
        ({"methods": ["cube", "auto"]}, "methods must be cube alone with slices"),
        ({"methods": "auto", "windows": [2]}, "windows must be left out"),
        ({"slices": None, "windows": [1]}, "windows must be left out"),
        ({"windows": [25]}, "windows must be between 1 and 24"),
        ({"windows": [0]}, "windows must be between 1 and 24"),
        ({"values": {"fare": (0, 1)}}, "values must be left out"),
        ({"epsilon": None}, "epsilon must be given"),
        ({"for_relative_error": 0.1}, "one size and one window"),
        ({"methods": "auto", "for_relative_error": 0.1}, "must be given with method cube"),
        ({"windows": [1], "for_relative_error": 2}, "at most 100 %"),
        ({"windows": [1], "for_relative_error": 0.1, "epsilon": [1, 2]}, "epsilon must be one"),
    ]:
        with subtests.test(str(arguments)), pytest.raises(ParameterError, match=told):
            small(**arguments)
    with pytest.raises(ParameterError, match="count must be at most 4,166,666,666 in each"):
        plan(10**10, area=100, epsilon=1, **CUBE)


def test_the_command(subtests):
    told = passes(f"{LINE} --count 300 --epsilon 1 --windows 1,24")
    assert "300 records in 100 km2 in each of 24 time slices" in told
    content = as_json(f"{LINE} --count 300 --windows 24 --for-relative-error 15%")
    assert {row["epsilon"] for row in content["expected"]} == {content["solved_epsilon"]}
    assert {row["window"] for row in content["expected"]} == {24}
    table = [
        (2, "--epsilon 1 --windows x", "--windows must be numbers of slices"),
        (2, "--epsilon 1 --windows 25", "--windows must be between 1 and 24"),
        (2, "", "Missing option '--epsilon'"),
        (2, "--for-relative-error 15%", "one size and one window"),
    ]
    check_refusals(subtests, table, *f"{LINE} --count 300".split())


@pytest.mark.deep  # it needs matplotlib
def test_a_plot_has_a_band_for_each_window(tmp_path):
    from psd.apps.planning.figures import plot_plan

    plot_plan(small(), tmp_path / "p.html")
    assert "24 slices" in (tmp_path / "p.html").read_text()
