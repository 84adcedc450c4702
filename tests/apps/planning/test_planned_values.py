"""Plans of values: predicted errors of means and sums beside those of builds."""

import dataclasses

import numpy as np
import pytest

import psd
from psd.apps.planning.figures import plot_plan
from psd.apps.planning.population import (
    AssumedDensity,
    draw_population,
    draw_region_population,
    square_domain,
)
from psd.apps.planning.simulation import with_values
from psd.decompositions import Regions, method
from psd.errors import ParameterError
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO
from psd.privacy.unit import PrivacyUnit
from psd.privacy.values import WEIGHT, Value
from psd.publish.drawing import draw_release

DOMAIN = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857")
CELLS = psd.regions.CellRegions(kind="grid-cells", cells="2,4")
PEOPLE = np.geomspace(400, 4_000, 16)
FARE = {"values": {"fare": (-10, 60)}}
VALUES = (Value("fare", -10, 60),)


def planned(**options):
    return psd.apps.planning.plan_regions(
        CELLS, domain=DOMAIN, **{"count": 16_000, **FARE, **options}
    )


@pytest.mark.deep
def test_errors_of_regions_are_those_of_builds():
    regions = CELLS.read(DOMAIN)
    row = psd.apps.planning.plan_regions(
        regions, domain=DOMAIN, epsilon="0.5", population=PEOPLE, method="none", **FARE
    ).table.set_index("level").loc["2m"]  # fmt: skip
    people = draw_region_population(regions, PEOPLE, np.random.default_rng(99), 1)
    # A tenth of the way between the bounds, nearly the worst place; regions differ.
    shares = np.where(people.region % 2 == 0, 0.06, 0.14)
    people = with_values(people, 1, shares)
    true = np.bincount(people.region, people.counts)
    means = -10 + 70 * np.bincount(people.region, people.values[:, 0]) / WEIGHT / true
    off, off_sum = [], []
    for _ in range(60):
        release = draw_release(
            people,
            DOMAIN,
            budget=Budget(NANO // 2),
            method=Regions(inside="none"),
            unit=PrivacyUnit(),
            regions=regions,
            values=VALUES,
        )
        table = release.query(level="2m", mean="fare", sum="fare").table
        off.append(table["mean_fare"] - means)
        off_sum.append(table["sum_fare"] - means * true)
    worst = np.hypot(0.9, 0.1)
    assert np.sqrt(np.mean(np.square(off))) == pytest.approx(worst * row.mean_fare_error, rel=0.15)
    assert np.sqrt(np.mean(np.square(off_sum))) == pytest.approx(row.sum_fare_error, rel=0.15)


def test_counts_with_values_are_noisier_by_the_root_of_two():
    plain = planned(epsilon=1, method="none", values=None).table["error"]
    for number, values in ((1, FARE["values"]), (2, {"fare": (0, 1), "tip": (0, 9)})):
        table = planned(epsilon=1, method="none", values=values).table
        assert table["error"].to_numpy() == pytest.approx(plain * np.sqrt(2 * number), rel=0.02)
    assert {"mean_tip_error", "sum_fare_error"} <= set(table)


@pytest.mark.parametrize("kind", ["mean", "sum"])
def test_the_solved_epsilon_gives_the_error_and_a_smaller_one_does_not(kind):
    column = f"{kind}_fare_error"
    target = float(planned(epsilon=1).table.set_index("level").loc["4m", column])
    solved = planned(**{f"for_{kind}_error": ("fare", target)}, level="4m")
    assert float(solved.solved) == pytest.approx(1, rel=0.02)
    assert solved.table.set_index("level").loc["4m", column] <= target


# Densities of real records differ from those assumed; this one is among them.
@pytest.mark.deep
@pytest.mark.parametrize("density", ["uniform", "clustered"])
def test_errors_by_size_are_those_of_builds_of_other_values(density):
    domain = square_domain(100.0)
    how = {"density": density, "methods": ["quadtree"], "sizes": [0.01, 0.1]}
    expected = psd.plan(40_000, area=100.0, epsilon=1, runs=2, **how, **FARE).table
    people = draw_population(40_000, domain, AssumedDensity(kind=density), np.random.default_rng(5))
    # Values of another kind: high in the north, and of two levels at each place.
    x = domain.centres(0, people.columns) / (domain.bounds[2] - domain.bounds[0])
    y = domain.centres(1, people.rows) / (domain.bounds[3] - domain.bounds[1])
    rng = np.random.default_rng(6)
    shares = 0.3 + 0.5 * y**2
    shares += rng.choice([-0.2, 0.2], len(x))
    people = with_values(people, 1, np.clip(shares, 0, 1))
    off = {size: ([], []) for size in how["sizes"]}
    for _ in range(2):
        release = draw_release(
            people, domain, budget=Budget(NANO), method=method("quadtree"), unit=PrivacyUnit(),
            values=VALUES,
        )  # fmt: skip
        for size in how["sizes"]:
            side = np.sqrt(size)
            chosen = rng.choice(len(x), 200, p=people.counts / people.counts.sum())
            corner = np.clip(np.stack([x[chosen], y[chosen]], 1) - side / 2, 0, 1 - side)
            width = domain.bounds[2]
            boxes = np.hstack([corner, corner + side]) * width
            table = release.query(boxes, mean="fare", sum="fare").table
            for number, (west, south) in enumerate(corner):
                inside = (x >= west) & (x < west + side) & (y >= south) & (y < south + side)
                total = people.counts[inside].sum()
                high = people.values[inside, 0].sum() / WEIGHT
                if total:
                    off[size][0].append(abs(table["mean_fare"][number] - (-10 + 70 * high / total)))
                    off[size][1].append(abs(table["sum_fare"][number] - (-10 * total + 70 * high)))
    rows = expected[expected.centres == "on data"].set_index("size_share")
    for size, (means, sums) in off.items():
        assert 0.5 < np.mean(means) / rows.loc[size, "mean_fare_off"] < 2
        assert 0.5 < np.mean(sums) / rows.loc[size, "sum_fare_off"] < 2


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"for_mean_error": ("tip", 1)}, "for_mean_error must be a column that values= names"),
        ({"for_mean_error": 1}, "for_mean_error must be a column that values= names"),
        ({"for_sum_error": ("fare", 0)}, "for_sum_error must have an error above 0, in the unit"),
        ({"for_sum_error": ("fare", "5")}, "for_sum_error must have an error above 0"),
        ({"for_mean_error": ("fare", 1e-9)}, "for_mean_error must be at least .* on level 2m"),
        (
            {"for_mean_error": ("fare", 1), "for_relative_error": 0.1},
            "for_mean_error must be left out with for_relative_error",
        ),
        ({"for_mean_error": ("fare", 1), "epsilon": [1, 2]}, "epsilon must be one with"),
        ({"values": {"fare": (60, 0)}, "epsilon": 1}, "were they exchanged"),
        ({"values": {f"v{n}": (0, 1) for n in range(20)}, "epsilon": 1}, "at most 6, got 20"),
    ],
)
def test_what_cannot_be_planned_of_values_is_refused(how, message):
    with pytest.raises(ParameterError, match=message):
        planned(**how)


def test_weights_of_the_plan_are_those_of_records():
    people = draw_population(
        1_000, square_domain(4.0), AssumedDensity(kind="places"), np.random.default_rng(1)
    )
    made = with_values(people, 2)
    assert made.record_weight == WEIGHT
    assert (made.values == (people.counts * WEIGHT // 2)[:, None]).all()
    assert with_values(people, 0) is people


@pytest.mark.deep  # it needs matplotlib
def test_a_page_has_a_curve_of_each_mean(tmp_path):
    expected = psd.plan(2000, area=605, epsilon=1, runs=1, methods="quadtree", **FARE)
    for name in ("mean", "none"):
        plan = expected if name == "mean" else dataclasses.replace(expected, values=())
        plot_plan(plan, tmp_path / f"{name}.html")
    page, plain = ((tmp_path / f"{name}.html").read_text() for name in ("mean", "none"))
    assert page.count("<figure") == plain.count("<figure") + 1
    assert "Mean of fare, in its unit. Queries centred on people." in page
    assert "Expected error of means by size" not in plain
