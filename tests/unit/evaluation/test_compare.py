"""Methods beside each other: shapes, scores and their errors, refusals before any reading."""

import numpy as np
import pandas as pd
import pytest

import psd
from psd._util import processes as workers
from psd.errors import InputDataError, InternalError, ParameterError
from psd.evaluation import compare as comparison
from psd.evaluation.compare import compare
from psd.evaluation.evaluate import class_errors, evaluate, geometric_mean
from psd.evaluation.reporting.plots import plot_comparison
from psd.evaluation.true_counts import true_counts
from psd.evaluation.workload import draw_workload
from psd.publish.observer import Observer

DOMAIN = psd.Domain(bounds=(0, 0, 10, 10), crs="EPSG:3857")
SMALL = psd.decompositions.Quadtree(height=3)
EXACT = psd.decompositions.Quadtree(
    height=3, budget="leaf"
)  # with epsilon 1000 the noise is 0, nearly surely


def points(size=1_000, users=30):
    random = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "lon": random.beta(2, 5, size) * 10,
            "lat": random.beta(5, 2, size) * 10,
            "user_id": random.zipf(1.6, size) % users,
        }
    )


def small(**arguments):
    given = {"domain": DOMAIN, "epsilons": ["1"], "methods": [SMALL], "runs": 2, "jobs": 1}
    return compare(arguments.pop("data", points()), **given | arguments)


@pytest.fixture(scope="module")
def found():
    methods = [SMALL, psd.decompositions.Grid(size=8)]
    return small(methods=methods, epsilons=[".1", 1], runs=3)


def test_a_row_per_method_and_epsilon(found):
    table = found.table
    expected = ["method", "epsilon", *found.classes, "score", "score_error", "runs"]
    assert list(table.columns) == expected
    pairs = [("quadtree", "0.1"), ("grid", "0.1"), ("quadtree", "1"), ("grid", "1")]
    assert list(zip(table["method"], table["epsilon"], strict=True)) == pairs
    assert (len(found.classes), set(table["runs"])) == (8, {3})
    assert (table[[*found.classes, "score", "score_error"]] > 0).all(axis=None)


def test_a_row_per_build(found):
    builds = found.builds
    assert list(builds.columns) == ["method", "epsilon", "run", *found.classes, "score"]
    assert builds.groupby(["method", "epsilon"])["run"].apply(list).tolist() == [[1, 2, 3]] * 4


def test_scores_and_standard_errors_by_hand(found):
    builds = found.builds[(found.builds["method"] == "grid") & (found.builds["epsilon"] == "1")]
    row = found.table.iloc[3]
    cells = [builds[name].sum() / 3 for name in found.classes]
    assert row[list(found.classes)].tolist() == pytest.approx(cells)
    assert row["score"] == pytest.approx(np.prod(cells) ** (1 / 8))
    each = [np.prod(b) ** (1 / 8) for b in builds[list(found.classes)].to_numpy()]
    assert builds["score"].tolist() == pytest.approx(each)
    spread = sum((score - sum(each) / 3) ** 2 for score in each) / 2
    assert row["score_error"] == pytest.approx((spread / 3) ** 0.5)


def test_one_run_has_no_standard_error():
    assert small(runs=1).table["score_error"].isna().all()


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
    row = small(data=table, methods=[EXACT], epsilons=[1000]).table.iloc[0]
    errors = judged.summary["true_relative_error"]
    assert row[list(judged.summary["class"])].tolist() == pytest.approx(errors.tolist())
    assert row["score"] == pytest.approx(judged.score)


@pytest.mark.parametrize("name", psd.methods())
def test_class_errors_are_those_of_the_answers(name):
    table, kept = points(), []
    bound = {"user": "user_id", "max_contributions": 5}
    release = psd.build(
        table,
        domain=DOMAIN,
        epsilon=1,
        method=name,
        observer=Observer(private_tally=kept.append),
        **bound,
    )
    judged = evaluate(release, table, tally=kept[0])
    coordinates = table["lon"].to_numpy(), table["lat"].to_numpy()
    queries = draw_workload(*coordinates, DOMAIN.bounds)
    truth = true_counts(queries, coordinates, kept[0], DOMAIN, bounded=True)
    errors = class_errors(release, truth)
    assert errors.tolist() == pytest.approx(judged.summary["true_relative_error"].tolist())
    assert geometric_mean(errors) == pytest.approx(judged.score)


def test_what_a_bound_leaves_out_is_part_of_the_error():
    bound = {"user": "user_id", "max_contributions": 1, "epsilons": [1000], "methods": [EXACT]}
    bounded, free = small(**bound).table, small(epsilons=[1000], methods=[EXACT]).table
    # Of 1,000 rows 30 are kept, so nearly everything is missing.
    assert bounded["on data 10 %"].item() > 0.9 > free["on data 10 %"].item()


def test_processes_and_none_give_the_same():
    """No noise to speak of, so only the work is left to differ."""
    arguments = {
        "methods": [EXACT, psd.decompositions.Grid(size=4)],
        "epsilons": [1000, 999],
        "runs": 1,
    }
    one, two = small(jobs=1, **arguments), small(jobs=2, **arguments)
    pd.testing.assert_frame_equal(one.builds, two.builds)
    pd.testing.assert_frame_equal(one.table, two.table)


def test_one_job_starts_no_process(monkeypatch):
    monkeypatch.setattr(workers, "ProcessPoolExecutor", lambda *a, **k: pytest.fail("a pool"))
    small(jobs=1)


def test_builds_share_no_randomness():
    """Eight builds of two processes, and eight of this one: no score comes twice."""
    scores = [small(jobs=jobs, runs=8).builds["score"] for jobs in (2, 1)]
    assert pd.concat(scores).is_unique


def test_the_input_is_read_once(monkeypatch):
    readings, read = [], comparison.read
    monkeypatch.setattr(comparison, "read", lambda *a: readings.append(a) or read(*a))
    small(runs=3, epsilons=[1, 2])
    assert len(readings) == 1


@pytest.mark.parametrize("jobs", [1, 2])
def test_finished_builds_are_counted(jobs):
    told = []
    small(jobs=jobs, runs=4, progress=lambda *numbers: told.append(numbers))
    assert told == [(number, 4) for number in range(5)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param({"methods": ["kd"]}, "must be one of .*got 'kd'", id="unknown method"),
        pytest.param(
            {"methods": []},
            "methods must have at least one value, got none",
            id="no method",
        ),
        pytest.param(
            {"methods": ["grid", psd.decompositions.Grid()]},
            "methods must have each value once, got grid 2 times",
            id="method twice",
        ),
        pytest.param(
            {"epsilons": []},
            "epsilons must have at least one value, got none",
            id="no epsilon",
        ),
        pytest.param(
            {"epsilons": [".1", "0.10"]},
            "epsilons must have each value once, got 0.1 2 times",
            id="epsilon twice",
        ),
        pytest.param({"epsilons": [0]}, "must be above 0", id="epsilon 0"),
        pytest.param(
            {"epsilons": range(1, 22)},
            "epsilons must have at most 20 values, got 21",
            id="many epsilons",
        ),
        pytest.param({"runs": 0}, "runs must be between 1 and .*, got 0", id="no run"),
        pytest.param({"runs": True}, "runs", id="boolean for a number"),
        pytest.param({"jobs": 0}, "jobs must be between 1 and .*, got 0", id="no job"),
        pytest.param({"jobs": 1.5}, "jobs", id="half a job"),
        pytest.param({"user": "user_id"}, "max_contributions must be given", id="no bound"),
        pytest.param({"max_contributions": 2}, "user must name the column", id="no user"),
    ],
)
def test_parameters_come_before_the_data(monkeypatch, arguments, words):
    monkeypatch.setattr(comparison, "read", lambda *args: pytest.fail("the input was read"))
    with pytest.raises(ParameterError, match=words):
        small(**arguments)


def test_data_without_a_row_inside():
    for data in (points()[:0], points().assign(lon=99.0)):
        with pytest.raises(InputDataError, match="no record lies inside"):
            small(data=data)


def failing(shared, task):
    """At module level, where a process finds it."""
    if task == shared:
        raise ParameterError("task of the test")
    return task


def ending(shared, task):
    import os

    os._exit(3)


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_in_a_process_is_that_error(jobs):
    with pytest.raises(ParameterError, match="task of the test"):
        workers.map_tasks(failing, 3, range(8), jobs=jobs, done=lambda number: None)


def test_a_process_that_dies_is_told():
    with pytest.raises(InternalError, match="was killed"):
        workers.map_tasks(ending, 3, range(8), jobs=2, done=lambda number: None)


def test_results_are_in_the_order_of_the_tasks():
    results = workers.map_tasks(failing, None, range(20), jobs=2, done=lambda number: None)
    assert results == list(range(20))


def test_nothing_shows_itself(found):
    assert repr(found) == "<Comparison: private>"
    coordinates = points()["lon"].to_numpy(), points()["lat"].to_numpy()
    table = psd.ingest.tally_builder.tally_batches(
        [psd.ingest.tally.Batch(x=coordinates[0], y=coordinates[1])], DOMAIN
    )
    queries = draw_workload(*coordinates, DOMAIN.bounds)
    truth = true_counts(queries, coordinates, table, DOMAIN, bounded=False)
    assert repr(truth) == "<TrueCounts: private>"


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_comparison_plot_is_written(found, tmp_path, suffix):
    path = tmp_path / f"plot{suffix}"
    plot_comparison(found, path)
    assert path.stat().st_size > 20_000


def test_plot_of_one_build(tmp_path):
    plot_comparison(small(runs=1), tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 10_000


def test_all_lines_lie_on_their_panels(found, monkeypatch, tmp_path):
    """Panels of a row share their axis, which has to hold the lines of both."""
    from matplotlib.figure import Figure

    figures = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *a, **k: figures.append(self))
    plot_comparison(found, tmp_path / "plot.png")
    panels = [axes for part in figures[0].subfigs for axes in part.axes]
    assert len(panels) == 1 + 2 * 2
    for axes in panels:
        low, high = axes.get_ylim()
        values = np.concatenate([line.get_ydata() for line in axes.lines])
        assert low <= values.min() <= values.max() <= high
