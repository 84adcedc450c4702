"""Methods beside each other: shapes, scores and their errors, refusals before any reading."""

import os

import numpy as np
import pandas as pd
import pytest

import psd
import support.evaluations
from psd._util import processes as workers
from psd.apps.evaluation import comparison
from psd.apps.evaluation.comparison import compare
from psd.apps.evaluation.figures import number_or_dash, percent_text
from psd.apps.evaluation.true_counts import relative_base, true_counts
from psd.apps.evaluation.true_errors import class_errors, evaluate, geometric_mean
from psd.apps.evaluation.workload import check_distinct, draw_workload, parse_epsilons
from psd.errors import InputDataError, InternalError, ParameterError
from psd.publish.observer import Observer
from support.evaluations import DOMAIN, METHODS
from support.tables import refused

# With epsilon 1000 its noise is 0, nearly surely.
EXACT = psd.decompositions.Quadtree(height=3, budget="leaf")
SMALL = psd.decompositions.Quadtree(height=3)


def points():
    return support.evaluations.points(1_000, 30, 7)


def small(**arguments):
    given = {"domain": DOMAIN, "epsilon": ["1"], "methods": [SMALL], "runs": 2, "jobs": 1}
    return compare(arguments.pop("data", points()), **given | arguments)


def test_lists_bases_and_numbers_of_reports():
    assert parse_epsilons(["0.1", 1]) == (100_000_000, 1_000_000_000)
    assert check_distinct("sizes", [0.1, 0.2], ["0.1", "0.2"]) == (0.1, 0.2)
    assert relative_base(np.array([0, 5, 300]), 100_000).tolist() == [100, 100, 300]
    assert percent_text(0.12345) == "12.3 %"
    assert [number_or_dash(x, "{:.2f}") for x in (0.5, float("nan"))] == ["0.50", "-"]


@pytest.fixture(scope="module")
def found():
    methods = [SMALL, psd.decompositions.Grid(size=8)]
    return small(methods=methods, epsilon=[".1", 1], runs=3)


@pytest.mark.deep
def test_a_row_per_method_and_epsilon_and_one_per_build(found):
    table, builds = found.table, found.builds
    expected = ["method", "epsilon", *found.classes, "score", "score_error", "runs"]
    assert list(table.columns) == expected
    pairs = [("quadtree", "0.1"), ("grid", "0.1"), ("quadtree", "1"), ("grid", "1")]
    assert list(zip(table["method"], table["epsilon"], strict=True)) == pairs
    assert (len(found.classes), set(table["runs"])) == (8, {3})
    assert (table[[*found.classes, "score", "score_error"]] > 0).all(axis=None)
    assert list(builds.columns) == ["method", "epsilon", "run", *found.classes, "score"]
    assert builds.groupby(["method", "epsilon"])["run"].apply(list).tolist() == [[1, 2, 3]] * 4
    builds = found.builds[(found.builds["method"] == "grid") & (found.builds["epsilon"] == "1")]
    row = found.table.iloc[3]
    cells = [builds[name].sum() / 3 for name in found.classes]
    assert row[list(found.classes)].tolist() == pytest.approx(cells)
    assert row["score"] == pytest.approx(np.prod(cells) ** (1 / 8))
    each = [np.prod(b) ** (1 / 8) for b in builds[list(found.classes)].to_numpy()]
    assert builds["score"].tolist() == pytest.approx(each)
    spread = sum((score - sum(each) / 3) ** 2 for score in each) / 2
    assert row["score_error"] == pytest.approx((spread / 3) ** 0.5)
    assert small(runs=1).table["score_error"].isna().all()
    for data in (points()[:0], points().assign(lon=99.0)):
        with pytest.raises(InputDataError, match="no record lies inside"):
            small(data=data)


def test_all_methods_are_the_default(monkeypatch):
    done = []

    def one(shared, task):
        done.append(task.method.name)
        return np.ones(8)

    monkeypatch.setattr(comparison, "_build_errors", one)
    table = compare(points(), domain=DOMAIN, jobs=1).table
    assert table["method"].tolist() == [*psd.methods()] * 2
    assert table["epsilon"].unique().tolist() == ["0.1", "1"]
    assert done == [name for name in [*psd.methods()] * 2 for _ in range(3)]


def test_the_same_figures_as_an_evaluation():
    table = points()
    release = psd.build(table, domain=DOMAIN, epsilon=1000, method=EXACT)
    judged = evaluate(release, table)
    row = small(data=table, methods=[EXACT], epsilon=[1000]).table.iloc[0]
    errors = judged.summary["true_relative_error"]
    assert row[list(judged.summary["class"])].tolist() == pytest.approx(errors.tolist())
    assert row["score"] == pytest.approx(judged.score)
    bound = {"user": "user_id", "max_contributions": 1, "epsilon": [1000], "methods": [EXACT]}
    bounded, free = small(**bound).table, small(epsilon=1000, methods=[EXACT]).table
    # Of 1,000 rows 30 are kept, so nearly everything is missing.
    assert bounded["on data 10 %"].item() > 0.9 > free["on data 10 %"].item()


@pytest.mark.parametrize("name", METHODS)
def test_class_errors_are_those_of_the_answers(name):
    table, kept = points(), []
    bound = {"user": "user_id", "max_contributions": 5}
    observer = Observer(private_tally=kept.append)
    release = psd.build(table, domain=DOMAIN, epsilon=1, method=name, observer=observer, **bound)
    judged = evaluate(release, table, tally=kept[0])
    coordinates = table["lon"].to_numpy(), table["lat"].to_numpy()
    queries = draw_workload(*coordinates, DOMAIN.bounds)
    truth = true_counts(queries, coordinates, kept[0], DOMAIN, bounded=True)
    errors = class_errors(release, truth)
    assert errors.tolist() == pytest.approx(judged.summary["true_relative_error"].tolist())
    assert geometric_mean(errors) == pytest.approx(judged.score)
    assert repr(truth) == "<TrueCounts: private>"


@pytest.mark.deep
def test_processes_and_none_give_the_same():
    """No noise to speak of, so only the work is left to differ."""
    methods = [EXACT, psd.decompositions.Grid(size=4)]
    one, two = (small(jobs=n, methods=methods, epsilon=[1000, 999], runs=1) for n in (1, 2))
    pd.testing.assert_frame_equal(one.builds, two.builds)
    pd.testing.assert_frame_equal(one.table, two.table)
    # Eight builds of two processes, and eight of this one: no score comes twice.
    scores = [small(jobs=jobs, runs=8).builds["score"] for jobs in (2, 1)]
    assert pd.concat(scores).is_unique
    assert run_tasks(failing, None) == list(range(8))
    with pytest.raises(ParameterError, match="task of the test"):
        run_tasks(failing, 3)
    with pytest.raises(InternalError, match="was killed"):
        run_tasks(ending, 3)


def test_one_job_starts_no_process_and_reads_the_input_once(monkeypatch):
    monkeypatch.setattr(
        "concurrent.futures.ProcessPoolExecutor", lambda *a, **k: pytest.fail("a pool")
    )
    readings, read = [], comparison.read
    monkeypatch.setattr(comparison, "read", lambda *a: readings.append(a) or read(*a))
    assert repr(small(runs=3, epsilon=[1, 2])) == "<Comparison: private>"
    assert len(readings) == 1
    with pytest.raises(ParameterError, match="task of the test"):
        run_tasks(failing, 3, jobs=1)


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.deep)])
def test_finished_builds_are_counted(jobs):
    told = []
    small(jobs=jobs, runs=4, progress=lambda *numbers: told.append(numbers))
    assert told == [(number, 4) for number in range(5)]


GRIDS = ["grid", psd.decompositions.Grid()]
WRONG = [
    ("must be one of .*got 'kd'", {"methods": ["kd"]}),
    ("methods must have at least one value, got none", {"methods": []}),
    ("methods must have each value once, got grid 2 times", {"methods": GRIDS}),
    ("epsilon must have at least one value, got none", {"epsilon": []}),
    ("epsilon must have each value once, got 0.1 2 times", {"epsilon": [".1", "0.10"]}),
    ("must be above 0", {"epsilon": [0]}),
    ("epsilon must have at most 20 values, got 21", {"epsilon": range(1, 22)}),
    ("runs must be between 1 and .*, got 0", {"runs": 0}),
    ("jobs must be between 1 and .*, got 0", {"jobs": 0}),
    ("(runs|jobs) must be", {"runs": True}, {"jobs": 1.5}),
    ("max_contributions must be given", {"user": "user_id"}),
    ("user must name the column", {"max_contributions": 2}),
]


def test_parameters_come_before_the_data(monkeypatch, subtests):
    monkeypatch.setattr(comparison, "read", lambda *args: pytest.fail("the input was read"))
    refused(subtests, ParameterError, WRONG, lambda arguments: small(**arguments))


def failing(shared, task):
    """At module level, where a process finds it."""
    if task == shared:
        raise ParameterError("task of the test")
    return task


def ending(shared, task):
    os._exit(3)


def run_tasks(task, shared, jobs=2):
    return workers.map_tasks(task, shared, range(8), jobs=jobs, done=lambda number: None)


WRONG_TYPES = [
    ("release must be of type Release", lambda: evaluate("r.parquet", points())),
    ("domain must be a psd.Domain", lambda: small(domain="0 0 8 8")),
]


def test_wrong_types_are_refused_with_a_sentence(subtests):
    refused(subtests, ParameterError, WRONG_TYPES, lambda call: call())
