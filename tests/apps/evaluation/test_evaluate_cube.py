"""psd check evaluate of a cube: true errors in windows and their parts."""

from dataclasses import replace

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from psd.apps.evaluation import evaluate
from psd.errors import ParameterError
from support.cli_runner import check_refusals, passes
from support.cubes import DOMAIN, SLICES, cube, town

BOXES = [(0, 0, 8, 8), (1.3, 2.1, 6.7, 9.9), (8, 8, 16, 16)]
WINDOWS = ["2024-01-01", "weekdays 07-09", "2024-01-01T08"]
PARTS = ["perturbation", "nonuniformity", "bounding"]
HOW = {"time": "time", "input_crs": "EPSG:3857"}


def true_counts(data, when):
    numbers = SLICES.index(data["time"].to_numpy())
    during = data[np.isin(numbers, SLICES.window(when).numbers)]
    return [
        (during["lon"].between(w, e, "left") & during["lat"].between(s, n, "left")).sum()
        for w, s, e, n in BOXES
    ]


def test_errors_in_windows_are_sums_of_their_parts():
    data = town()
    made = cube(data=data)
    found = evaluate(made, data, boxes=BOXES, when=WINDOWS, **HOW)
    answers = found.answers
    assert answers["true_count"].tolist() == [
        n for when in WINDOWS for n in true_counts(data, when)
    ]
    assert list(dict.fromkeys(answers["class"])) == [f"given, {when}" for when in WINDOWS]
    asked = made.query(BOXES, when=WINDOWS).table
    for name in ("estimate", "lower", "upper", "error"):
        assert answers[name].tolist() == pytest.approx(asked[name].tolist())
    parts = sum(answers[f"true_{name}_error"] for name in PARTS)
    assert parts.tolist() == pytest.approx(answers["true_error"].tolist())
    assert (answers["true_bounding_error"] == 0).all()
    assert len(found.summary) == 3


def test_without_noise_only_unevenness_is_left():
    data = town()
    made = cube(data=data, epsilon=1000)
    answers = evaluate(made, data, boxes=[*BOXES, (0, 0, 16, 16)], when=WINDOWS, **HOW).answers
    assert answers["true_perturbation_error"].abs().max() < 0.5
    whole = answers.iloc[3::4]
    assert whole["true_error"].abs().max() < 0.5
    # All time is the default.
    own = evaluate(made, data, boxes=[(0, 0, 16, 16)], **HOW).answers
    assert own["true_count"].tolist() == [len(data)]


def test_users_need_the_tally_with_slices():
    data, kept = town(), []
    how = {"user": "user", "max_contributions": 3, "max_per_slice": 1}
    made = psd.build(
        data, domain=DOMAIN, epsilon=1000, method="cube", slices=SLICES, time="time",
        input_crs="EPSG:3857", observer={"private_tally": kept.append}, **how,
    )  # fmt: skip
    [tally] = kept
    answers = evaluate(made, data, boxes=BOXES, when=WINDOWS, tally=tally, **HOW).answers
    assert answers["true_count"].tolist() == [
        n for when in WINDOWS for n in true_counts(data, when)
    ]
    assert (answers["true_bounding_error"] <= 0).all()
    assert (answers["true_bounding_error"] < 0).any()
    parts = sum(answers[f"true_{name}_error"] for name in PARTS)
    assert parts.tolist() == pytest.approx(answers["true_error"].tolist())
    with pytest.raises(ParameterError, match="needs tally="):
        evaluate(made, data, boxes=BOXES, **HOW)


def purposes(slices=SLICES, **how):
    """A town whose records are of work, of play, or of neither, its cube and their labels."""
    data = town(slices=slices or SLICES)
    data["purpose"] = np.random.default_rng(3).choice(["work", "play", "else"], len(data))
    time = {} if slices is None else {"slices": slices, "time": "time"}
    made = psd.build(
        data, domain=DOMAIN, input_crs="EPSG:3857", per="record", category="purpose",
        labels=["work", "play"], **{"epsilon": 1, **time, **how},
    )  # fmt: skip
    return data, made


@pytest.mark.parametrize("other", ["count", "drop"])
def test_errors_in_categories(other):
    data, made = purposes(other_labels=other)
    labels, when = ["work", "play"], ["2024-01-01", "weekdays 07-09"]
    answers = evaluate(made, data, boxes=BOXES, when=when, category=labels, **HOW).answers
    assert list(dict.fromkeys(answers["class"])) == [
        f"given, {window}, {label}" for window in when for label in labels
    ]
    assert answers["true_count"].tolist() == [
        n
        for window in when
        for label in labels
        for n in true_counts(data[data["purpose"] == label], window)
    ]
    asked = made.query(BOXES, when=when, category=labels).table
    assert answers["estimate"].tolist() == pytest.approx(asked["estimate"].tolist())
    parts = sum(answers[f"true_{name}_error"] for name in PARTS)
    assert parts.tolist() == pytest.approx(answers["true_error"].tolist())
    # Together they are all records that the release counts.
    counted = data if other == "count" else data[data["purpose"] != "else"]
    every = evaluate(made, data, boxes=[(0, 0, 16, 16)], **HOW).answers
    assert every["true_count"].tolist() == [len(counted)]


def test_without_noise_only_unevenness_is_left_in_categories_without_time():
    data, made = purposes(slices=None, epsilon=1000)
    box = [*BOXES, (0, 0, 16, 16)]
    answers = evaluate(made, data, boxes=box, category="work", input_crs="EPSG:3857").answers
    assert answers["true_perturbation_error"].abs().max() < 0.5
    assert answers["true_count"].iloc[3] == (data["purpose"] == "work").sum()
    assert abs(answers["true_error"].iloc[3]) < 0.5


def wards(gaps="elsewhere", **how):
    """A cube of the town over square wards in two districts, which leave a corner out."""
    places = [(i, j) for i in range(4) for j in range(4)][:-1]
    table = geopandas.GeoDataFrame(
        {"ward": [f"w{i}{j}" for i, j in places], "district": [f"d{i // 2}" for i, _ in places]},
        geometry=[shapely.box(4 * i, 4 * j, 4 * i + 4, 4 * j + 4) for i, j in places],
        crs=DOMAIN.crs,
    )
    return {"regions": table, "region_id": "ward", "region_parent": "district", "gaps": gaps, **how}


@pytest.mark.parametrize("gaps", ["elsewhere", "outside"])
def test_errors_of_regions_in_windows(gaps):
    data = town(6_000)
    made = cube(data=data, **wards(gaps))
    found = evaluate(made, data, when=WINDOWS, **HOW)
    answers = found.answers
    assert found.summary["class"].tolist() == [
        f"{level}, {when}" for level in ("district", "ward") for when in WINDOWS
    ]
    for level in made.levels:
        asked = made.query(level=level, when=WINDOWS).table
        rows = answers[answers["class"].str.startswith(level)]
        assert rows["id"].tolist() == asked["id"].tolist()
        for name in ("estimate", "lower", "upper", "error"):
            assert rows[name].tolist() == pytest.approx(asked[name].tolist())
    numbers = SLICES.index(data["time"].to_numpy())
    column, row = (np.floor(data[name] / 4).astype(int).astype(str) for name in ("lon", "lat"))
    ward = "w" + column + row
    for when in WINDOWS:
        during = np.isin(numbers, SLICES.window(when).numbers)
        true = ward[during].value_counts()
        rows = answers[answers["class"] == f"ward, {when}"].set_index("id")["true_count"]
        for name in rows.index.drop("elsewhere", errors="ignore"):
            assert rows[name] == true.get(name, 0)
        assert ("elsewhere" in rows.index) == (gaps == "elsewhere")
        if gaps == "elsewhere":
            assert rows["elsewhere"] == true.get("w33", 0)
    parts = sum(answers[f"true_{name}_error"] for name in PARTS)
    assert parts.tolist() == pytest.approx(answers["true_error"].tolist())
    assert 0.8 < answers["covers"].mean() <= 1


def test_without_noise_only_unevenness_is_left_in_regions():
    data = town(6_000)
    made = cube(data=data, **wards("outside", epsilon=1000))
    answers = evaluate(made, data, when=["2024-01-01", "2024-01-01T08"], **HOW).answers
    assert answers["true_perturbation_error"].abs().max() < 1
    assert answers["true_error"].abs().max() < 1
    # Boxes over regions take parts of them, and records in no region are not counted.
    inside = data[(data["lon"] < 12) | (data["lat"] < 12)]
    boxes = [(0, 0, 16, 16), (1, 1, 7, 7)]
    answers = evaluate(made, data, boxes=boxes, **HOW).answers
    assert answers["true_count"].iloc[0] == len(inside) < len(data)
    assert answers["true_perturbation_error"].abs().max() < 1
    assert answers["true_nonuniformity_error"].abs().iloc[1] > 10


def test_users_in_regions_need_the_tally_with_regions():
    data, kept = town(), []
    how = wards(user="user", max_contributions=3, max_per_slice=1, epsilon=1000)
    made = cube(data=data, observer={"private_tally": kept.append}, input_crs="EPSG:3857", **how)
    [tally] = kept
    answers = evaluate(made, data, when=WINDOWS, tally=tally, **HOW).answers
    assert (answers["true_bounding_error"] <= 0).all()
    assert (answers["true_bounding_error"] < 0).any()
    parts = sum(answers[f"true_{name}_error"] for name in PARTS)
    assert parts.tolist() == pytest.approx(answers["true_error"].tolist())
    with pytest.raises(ParameterError, match="must have the regions of the cube"):
        evaluate(made, data, tally=replace(tally, region=None), **HOW)


def test_what_is_refused(subtests):
    data = town(600)
    made = cube(data=data)
    for arguments, told in [
        ({"time": None}, "time must name the column"),
        ({"during": SLICES}, "during must be left out for a cube"),
        ({"raster": 4}, "raster must be left out for a cube"),
        ({"when": "2024-01-03"}, "when must be in the slices"),
    ]:
        with subtests.test(str(arguments)), pytest.raises(ParameterError, match=told):
            evaluate(made, data, boxes=BOXES, **{**HOW, **arguments})
    with pytest.raises(ParameterError, match="must be the cube itself"):
        evaluate(made["mondays"], data, boxes=BOXES, **HOW)
    flat = psd.Release(made.record.plane)
    with pytest.raises(ParameterError, match="unless the release is a cube"):
        evaluate(flat, data, boxes=BOXES, when="mondays", input_crs="EPSG:3857")
    with pytest.raises(ParameterError, match="category must be left out unless the release is"):
        evaluate(flat, data, boxes=BOXES, category="work", input_crs="EPSG:3857")
    with pytest.raises(ParameterError, match="category must be left out"):
        evaluate(made, data, boxes=BOXES, category="work", **HOW)


@pytest.fixture
def command(here):
    """Line that evaluates a cube that was built here."""
    town(600).to_csv("v.csv", index=False)
    built = (
        "build v.csv -o c --bounds 0 0 16 16 --crs EPSG:3857 --input-crs EPSG:3857 --method cube "
        "--epsilon 1 --time time --slices 2024-01-01T00..2024-01-02T23"
    )
    passes(f"{built} --user user --max-contributions 2 --per slice --keep-tally kept")
    (here / "boxes.csv").write_text("id,west,south,east,north\na,0,0,8,8\n")
    line = "check evaluate c v.csv --time time --input-crs EPSG:3857 --tally kept --boxes boxes.csv"
    return line.split()


def test_the_command(command):
    told = passes(*command, "--when", "weekdays 07-09", "--when", "mondays", "-o", "e.csv")
    assert "PRIVATE" in told
    assert set(pd.read_csv("e.csv", comment="#")["class"].str.split(", ").str[1]) == {
        "weekdays 07-09",
        "mondays",
    }


def test_a_window_without_records_has_no_relative_errors(command):
    hours = pd.to_datetime(pd.read_csv("v.csv")["time"]).dt.strftime("%Y-%m-%dT%H")
    empty = next(each for each in SLICES.names if each not in set(hours))
    told = passes(*command, "--when", empty)
    assert "none: without a record in the window no error is relative to anything" in told
    assert not {"nan", "inf", "nan%", "inf%"} & set(told.split())


@pytest.mark.deep  # a report needs matplotlib
def test_a_report_is_left_out(command, subtests):
    table = [(2, "--report p.html", "--report must be left out for a cube")]
    check_refusals(subtests, table, *command)
