"""Plans: the closed form where there is one, shapes, ranges, words, refusals before any work."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import psd
from psd.apps.evaluation.workload import draw_workload
from psd.apps.planning.figures import _draw_figure
from psd.apps.planning.plan import MEASURES, default_runs
from psd.apps.planning.population import domain_area_km2, square_domain
from psd.apps.planning.text import plan_sentences
from psd.errors import DomainError, ParameterError
from support.plans import quick
from support.tables import refused


def overlaps(low, high, cells):
    """Covered share of each of so many equal intervals."""
    edges = np.arange(cells) / cells
    inside = np.minimum(high[:, None], edges + 1 / cells) - np.maximum(low[:, None], edges)
    return np.maximum(inside, 0) * cells


@pytest.mark.deep
def test_flat_grid_and_uniform_density_have_their_closed_form():
    """Errors of a cell: its cover times the noise, less what a binomial cut is off by."""
    count, cells, share, epsilon, k = 100_000, 8, 0.01, 0.05, 2
    flat = psd.decompositions.Quadtree(height=3, budget="leaf")  # 8 x 8 leaves, and no smoothing
    options = {"sizes": [share], "max_contributions": k, "runs": 20}
    found = quick(count, epsilon=[epsilon], methods=[flat], **options).table
    random = np.random.default_rng(8)
    x, y = random.random((2, 1_000))
    boxes = draw_workload(x, y, (0, 0, 1, 1), areas=[share], per_class=4_000).boxes
    x, y = (overlaps(boxes[:, axis], boxes[:, axis + 2], cells) for axis in (0, 1))
    cover = (x[:, :, None] * y[:, None, :]).reshape(len(boxes), -1)
    q = np.exp(-epsilon / k)
    noise = random.geometric(1 - q, (2, *cover.shape))
    noise = noise[0] - noise[1]
    assert noise.var() == pytest.approx(2 * q / (1 - q) ** 2, rel=0.03)
    inside = random.binomial(count // cells**2, cover)
    expected = np.abs((cover * (noise + count // cells**2) - inside).sum(axis=1)).mean()
    # 20 builds of 64 cells are about 1,280 errors, whose mean is off by about 2.1 % (1 sigma).
    assert found["mean_records_off"].to_numpy() == pytest.approx(np.full(2, expected), rel=0.1)
    relative = found["mean_records_off"] / (share * count)
    assert found["mean_error"].to_numpy() == pytest.approx(relative.to_numpy(), rel=0.02)
    assert found["mean_count"].to_numpy() == pytest.approx(np.full(2, share * count), rel=0.03)


@pytest.mark.deep
def test_table_has_a_row_of_everything_asked_for():
    found = quick(
        epsilon=["0.5", "2"],
        methods=["quadtree", psd.decompositions.Grid(size=4)],
        density=["uniform", "places"],
        sizes=[0.25, 0.01],
        domain=square_domain(40.0),
    )
    table, ranges = found.table, found.ranges
    assert len(table) == 2 * 2 * 2 * 2 * 2
    assert table["size_km2"].unique() == pytest.approx([10.0, 0.4])
    assert set(table["centres"]) == {"anywhere", "on data"}
    assert (table["median_error"] <= table["error_90"]).all()
    assert np.isfinite(table[list(MEASURES)].to_numpy()).all()
    assert len(ranges) == len(table) / 2
    assert (ranges["mean_error_low"] <= ranges["mean_error_high"]).all()
    one, same = (
        of[(of["epsilon"] == "2") & (of["method"] == "grid") & (of["size_share"] == 0.01)]
        for of in (table, ranges)
    )
    for kind in ("anywhere", "on data"):
        errors = one.loc[one["centres"] == kind, "mean_error"]
        row = same[same["centres"] == kind].iloc[0]
        assert (row["mean_error_low"], row["mean_error_high"]) == (errors.min(), errors.max())
    # With an epsilon whose noise is nearly surely 0 all is decided.
    first, again, other = (
        quick(epsilon=[1000], methods=[psd.decompositions.Grid(size=4)], seed=seed).table
        for seed in (4, 4, 5)
    )
    assert first.equals(again)
    assert (first["mean_error"] != other["mean_error"]).all()


def test_builds_are_counted_and_no_data_is_read(monkeypatch):
    for place in ("publish.counting.read", "publish.counting.count_rows", "ingest.sources.read"):
        monkeypatch.setattr(f"psd.{place}", lambda *a, **k: pytest.fail("data was read"))
    told = []
    quick(epsilon=["1", "2"], runs=2, progress=lambda *numbers: told.append(numbers))
    assert told == [(done, 4) for done in range(5)]


def test_areas():
    for bounds, crs, km2, within in [
        ((0, 0, 2_000, 3_000), 'LOCAL_CS["x",UNIT["metre",1]]', 6.0, 1e-12),
        ((900_000, 1_900_000, 1_000_000, 2_000_000), "EPSG:5179", 10_000.0, 2e-3),
        ((0, 0, 1, 1), "EPSG:4326", 12_308.8, 1e-4),  # square degree at the equator
        ((0, 59, 1, 60), "EPSG:4326", 6_309.806, 1e-6),
        ((-180, -90, 180, 90), "EPSG:4326", 5.100656e8, 1e-6),
    ]:
        area = domain_area_km2(psd.Domain(bounds=bounds, crs=crs))
        assert area == pytest.approx(km2, rel=within)
    assert domain_area_km2(square_domain(12.5)) == pytest.approx(12.5)
    words = "area must be above 0 and at most 520,000,000, the surface of the Earth"
    for area in (0, -1, float("nan"), float("inf"), 6e8):
        with pytest.raises(ParameterError, match=words):
            square_domain(area)
    assert [default_runs(n) for n in (10, 50_000, 100_000, 10**6, 10**11)] == [5, 4, 2, 1, 1]


GRIDS = ["grid", psd.decompositions.Grid(size=3)]
WRONG = [
    ("area, in km2, or bounds must be given", {"domain": None}),
    ("count must be between", {"count": 0}, {"count": 10**12}),
    ("must be an integer", {"count": 1.5}),
    ("epsilon must have at least one value", {"epsilon": []}),
    ("epsilon must have each value once, got 1 2 times", {"epsilon": ["1", "1.0"]}),
    ("epsilon", {"epsilon": ["0"]}),
    ("methods must have at least one value", {"methods": []}),
    ("methods must have each value once, got grid 2 times", {"methods": GRIDS}),
    ("magic", {"methods": ["magic"]}),
    ("sizes must be above 0 %", {"sizes": [0.0]}),
    ("at most 100 % of the area, got 101 %", {"sizes": [1.01]}),
    ("got nan %", {"sizes": [float("nan")]}),
    ("sizes must have each value once, got 0.1 2 times", {"sizes": [0.1, 0.1]}),
    ("density must be one of uniform, .*got 'even'", {"density": ["even"]}),
    ("density must have each value once, got uniform 2 times", {"density": ["uniform"] * 2}),
    *(
        (name, {name: value})
        for name, value in (("max_contributions", 0), ("runs", 0), ("seed", -1))
    ),
]


def test_refusals_before_anything_is_drawn(monkeypatch, subtests):
    drawn = "psd.apps.planning.simulation.draw_population"
    monkeypatch.setattr(drawn, lambda *a, **k: pytest.fail("it was drawn"))
    refused(subtests, ParameterError, WRONG, lambda wrong: quick(**wrong))


@pytest.mark.deep
def test_a_thousand_million_records_need_modest_memory():
    script = """
from support.plans import quick
found = quick(10**9, density=["clustered"], sizes=[0.01])
assert found.table["mean_count"].max() > 10**7
# Not ru_maxrss, which counts what the process that started this one had.
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
    tests = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=tests)
    # Kilobytes; about 410,000, and as much again while numba compiles.
    assert int(done.stdout) < 1_000_000


@pytest.mark.deep
def test_the_picture_explains_its_bands_and_its_line():
    figure = _draw_figure(quick(), ["on data"])
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["quadtree", "range over the assumed densities", "10 %: a good error"]
    assert figure.axes[0].get_xlabel() == "size of the query (km²)"


def test_words_name_the_least_size_from_which_on_all_is_good():
    found = quick(200_000, epsilon=["0.001", "5"], sizes=[0.1, 0.01, 0.0001])
    bad, good = plan_sentences(found)
    assert bad.startswith("at epsilon 0.001, quadtree: queries centred on people have a mean")
    assert "even at the largest size; at 10 km2 it is up to" in bad
    assert good.startswith("at epsilon 5, quadtree: queries centred on people have a mean")
    people = found.table[(found.table["epsilon"] == "5") & (found.table["centres"] == "on data")]
    fine = people.loc[people["mean_error"] <= 0.1, "size_km2"]
    assert f"cover {fine.min():.3g} km2" in good


WRONG_TYPES = [
    ("domain must be a psd.Domain", {"domain": 8}),
    ("methods must be an instance", {"area": 8, "methods": [psd.decompositions.Grid]}),
]


def test_wrong_types_are_refused_with_a_sentence(subtests):
    use = lambda given: psd.plan(9, **{"epsilon": [1]} | given)  # noqa: E731
    refused(subtests, ParameterError, WRONG_TYPES, use)


def test_bounds_that_may_be_degrees_are_refused(subtests):
    domain = psd.Domain(bounds=(-0.51, 51.28, 0.34, 51.7), crs="EPSG:27700")
    cells = psd.regions.CellRegions(kind="grid-cells", cells="0.1")
    for act, first in ((psd.plan, [100]), (psd.apps.planning.plan_regions, cells)):
        with subtests.test(act.__name__), pytest.raises(DomainError, match="if they are degrees"):
            act(first, domain=domain, epsilon=["1"])
