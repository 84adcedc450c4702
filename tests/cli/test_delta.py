"""``--delta`` and ``--noise``: what a build chooses, says, writes and charges."""

import json

import pytest

import psd
from psd.privacy.delta import failure_text, parse_delta
from support.cli_runner import cli, fails, passes

AREA = ("--bounds", 0, 0, 8, 8, "--crs", "EPSG:32652")
DAYS = ("--read", "time=time", "--slices", "2024-01-01..2024-01-20")
USER = ("--user", "user", "--max-contributions", 20)
PER_SLICE = ("--max-per-slice", 1)
TREE = ("--method", "quadtree", "--set", "height=3")
SAID = failure_text(parse_delta("1e-6"))


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(
        f"u{n % 40},{n % 8 + 0.5},{n * 3 % 8 + 0.5},2024-01-{n % 20 + 1:02d}\n" for n in range(800)
    )
    (tmp_path / "v.csv").write_text("user,lon,lat,time\n" + rows)


def build(*words, output="r.psd.parquet", inputs=("v.csv",)):
    return passes("build", *inputs, "-o", output, "--epsilon", 1, *TREE, *words)


def test_a_series_has_gaussian_noise_where_it_is_less():
    told = build(*AREA, *DAYS, *USER, *PER_SLICE, "--delta", "1e-6")
    guarantee = (
        "epsilon 1 and delta 1e-6 (rho 0.024355970359) per user, at most 20 records of each, at "
        f"most 1 of them in each time slice; {SAID}"
    )
    assert guarantee in told
    assert "noise is discrete Gaussian (auto)" in told
    series = psd.SeriesRelease.load("r.psd.parquet")
    assert series.guarantee_text == guarantee
    noise = series.releases[0].tree.noise
    assert (noise.law, noise.squared_sensitivity) == ("discrete-gaussian", 20)
    facts = json.loads(passes("info", "r.psd.parquet", "--format", "json"))
    assert facts["guarantee"] == guarantee


@pytest.mark.parametrize(
    "words",
    [
        (*AREA, "--delta", "1e-6"),
        (*AREA, "--delta", "1e-6", *USER),
        (*AREA, "--delta", "1e-6", *USER, *DAYS),  # all rows of a user may lie in one slice
        (*AREA, "--delta", "1e-6", "--user", "user", "--count", "users", *DAYS),
        (*AREA, "--delta", "1e-6", *DAYS),
    ],
)
def test_where_laplace_is_less_noise_no_delta_is_spent(words):
    told = build(*words)
    assert "noise is discrete Laplace (auto); no delta is spent, and none is stated" in told
    assert "delta 1e-6" not in told
    loaded = psd.load("r.psd.parquet")
    assert "delta" not in loaded.guarantee_text
    first = loaded.releases[0] if hasattr(loaded, "releases") else loaded
    assert (first.record.delta, first.record.rho) == (None, None)


def test_a_law_that_is_named_is_taken():
    told = build(*AREA, *USER, "--delta", "1e-6", "--noise", "gaussian")
    assert "epsilon 1 and delta 1e-6" in told
    assert "noise is discrete Gaussian\n" in told
    assert psd.load("r.psd.parquet").tree.noise.squared_sensitivity == 400
    told = build(*AREA, *DAYS, *USER, *PER_SLICE, "--delta", "1e-6", "--noise", "laplace",
                 output="s")  # fmt: skip
    assert "noise is discrete Laplace; no delta is spent, and none is stated" in told
    assert "noise is" not in build(*AREA, *USER, output="without")


def test_gaussian_noise_needs_a_delta():
    words = ("build", "v.csv", "-o", "no", "--epsilon", 1, *AREA, *USER)
    told = fails(2, *words, "--noise", "gaussian")
    assert "--delta must be given with --noise gaussian, got none; with at most this" in told
    told = fails(2, *words[:5], "1e-9", *AREA, "--noise", "gaussian", "--delta", "1e-100")
    assert "--delta must allow a rho of at least 1e-12 with epsilon 0.000000001" in told


def test_recipes_hold_delta_and_noise():
    words = (*AREA, *DAYS, *USER, *PER_SLICE, "--delta", "0.0000010", "--noise", "gaussian")
    told = build(*words, "--dry-run", "--save-recipe", "r.toml")
    assert 'delta = "1e-6"\nnoise = "gaussian"' in told
    assert SAID in told
    assert "epsilon 1 and delta 1e-6" in passes("run", "r.toml")
    plain = build(*words[:-4], "--delta", "1e-6", "--dry-run")
    assert 'delta = "1e-6"' in plain
    assert "noise =" not in plain


def test_tallies_choose_by_what_they_state():
    passes("tally", "v.csv", "-o", "v.tally", *AREA, *DAYS, *USER, *PER_SLICE)
    told = build("--delta", "1e-6", inputs=("v.tally",))
    assert "epsilon 1 and delta 1e-6" in told
    assert "noise is discrete Gaussian (auto)" in told


@pytest.mark.parametrize("first", ["laplace", "gaussian"])
@pytest.mark.parametrize("second", ["laplace", "gaussian"])
def test_a_limit_that_was_chosen_is_paid_for_in_every_release_of_its_tally(first, second):
    delta = ("--delta", "1e-6", "--noise")
    chosen = ("--user", "user", "--max-contributions", "auto", *DAYS)
    build(*AREA, *chosen, *delta, first, "--keep-tally", "k", output="a")
    build(*delta, second, output="b", inputs=("k",))
    name = "counting_rho" if second == "gaussian" else "counting_epsilon"
    parameters = psd.load("b").releases[0].parameters
    assert float(parameters[name]) > 0
    assert "noise is discrete Laplace (auto)" in build(*delta[:2], output="c", inputs=("k",))


def test_a_ledger_with_delta_is_charged_in_rho():
    passes("ledger", "create", "c.ledger")
    register = ("ledger", "register", "c.ledger")
    columns = ("--unit", "user", "--read", "user=user", "--read", "time=time")
    passes(*register, "people", "--budget", 2, "--delta", "1e-6", *columns)
    passes(*register, "pure", "--budget", 2, *columns)
    words = (*AREA, *DAYS, *USER, *PER_SLICE, "--delta", "1e-6", "--ledger", "c.ledger")
    build(*words, "--dataset", "people")
    status = json.loads(passes("ledger", "status", "c.ledger", "--format", "json"))
    people = next(row for row in status if row["dataset"] == "people")
    assert people["spent_rho"] == "0.024355970359"
    said = fails(
        9, "build", "v.csv", "-o", "no", "--epsilon", 1, *TREE, *words, "--dataset", "pure"
    )
    assert "has no delta, so it takes no Gaussian noise" in said
    laplace = cli("build", "v.csv", "-o", "yes", "--epsilon", 1, *TREE, *words, "--dataset", "pure",
                  "--noise", "laplace")  # fmt: skip
    assert laplace.code == 0
    assert "delta" not in psd.load("yes").guarantee_text


def test_rows_of_slices_state_no_epsilon_where_rho_is_that_of_all_slices():
    words = ("--user", "user", "--max-contributions", 20, "--max-per-slice", 1, *DAYS)
    for law in ("gaussian", "laplace"):
        passes("build", "v.csv", "-o", law, "--epsilon", 1, *AREA, *TREE, *words, "--delta", "1e-6",
              "--noise", law)  # fmt: skip
        facts = json.loads(passes("info", law, "--format", "json"))
        assert ("delta" in facts) is (law == "gaussian")
        assert ["epsilon" in row for row in facts["slices"]] == [law == "laplace"] * 20


def test_in_python():
    series = psd.build(
        "v.csv",
        domain=psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:32652"),
        epsilon=1,
        method=psd.decompositions.Quadtree(height=3),
        slices=psd.TimeSlices.parse("day", "2024-01-01..2024-01-20"),
        time="time",
        user="user",
        max_contributions=20,
        max_per_slice=1,
        delta="1e-6",
        noise_law="auto",
    )
    assert "epsilon 1 and delta 1e-6" in series.guarantee_text


def test_plans_show_both_laws():
    told = passes("plan", "--area", 100, "--count", 500, "--epsilon", 1, "--slices", 52, "--delta",
                  "1e-6", "--methods", "grid", "--runs", 1, "--density", "uniform", "--sizes",
                  "10%")  # fmt: skip
    assert told.count("laplace") == told.count("gaussian") == 1
    assert "by itself a build chooses" in told
    words = ("plan", "--area", 100, "--count", 500, "--epsilon", 1)
    said = fails(2, *words, "--slices", "many")
    assert "--slices must have a whole number of slices, got 'many'" in said
    said = fails(2, *words, "--slices", "12:max_per_slice=-1")
    assert "--slices must have a whole number of max_per_slice, got '-1'" in said
    assert "--slices must be between 1 and" in fails(2, *words, "--slices", 0)
    told = passes(*words, "--slices", "12:max_per_slice=4", "--delta", "1e-6", "--methods", "grid",
                  "--runs", 1, "--density", "uniform", "--format", "json")  # fmt: skip
    plan = json.loads(told)
    assert (plan["slices"], plan["max_per_slice"], plan["max_contributions"]) == (12, 4, 48)
    assert plan["chosen"] == [{"epsilon": "1", "method": "grid", "noise": "gaussian"}]
