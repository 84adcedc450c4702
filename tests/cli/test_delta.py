"""``--delta`` and ``--noise``: what a build chooses, says, writes and charges."""

import pytest

import psd
from psd.privacy.loss import failure_text, parse_delta
from support.cli_runner import as_json, cli, fails, passes

AREA = ("--bounds", 0, 0, 8, 8, "--crs", "EPSG:32652")
DAYS = ("--time", "time", "--slices", "2024-01-01..2024-01-20")
USER = ("--user", "user", "--max-contributions", 20)
PER_SLICE = ("--max-per-slice", 1)
DELTA = ("--delta", "1e-6")
SERIES = (*AREA, *DAYS, *USER, *PER_SLICE, *DELTA)
TREE = "--epsilon 1 --method quadtree --set height=3"
SAID = failure_text(parse_delta("1e-6"))


@pytest.fixture(autouse=True)
def visits(here):
    rows = "".join(
        f"u{n % 40},{n % 8 + 0.5},{n * 3 % 8 + 0.5},2024-01-{n % 20 + 1:02d}\n" for n in range(800)
    )
    (here / "v.csv").write_text("user,lon,lat,time\n" + rows)


def build(*options, output="r.psd.parquet", inputs="v.csv"):
    return passes(f"build {inputs} -o {output} {TREE}", *options)


def test_a_series_has_gaussian_noise_where_it_is_less():
    told = build(*SERIES)
    guarantee = (
        "epsilon 1 and delta 1e-6 (rho 0.024355970359) per user, at most 20 records of each, at "
        f"most 1 of them in each time slice; {SAID}"
    )
    assert guarantee in told
    assert "noise is discrete Gaussian (auto)" in told
    series = psd.load("r.psd.parquet")
    assert series.record.guarantee_text == guarantee
    noise = series.record.releases[0].tree.noise
    assert (noise.law, noise.squared_sensitivity) == ("discrete-gaussian", 20)
    assert as_json("info r.psd.parquet")["guarantee"] == guarantee


def test_where_laplace_is_less_noise_no_delta_is_spent(subtests):
    for options in (
        (),
        USER,
        (*USER, *DAYS),  # all rows of a user may lie in one slice
        (*USER[:2], "--count", "users", *DAYS),
        DAYS,
    ):
        with subtests.test(str(options)):
            told = build(*AREA, *DELTA, *options, "--overwrite")
            text = "noise is discrete Laplace (auto); no delta is spent, and none is stated"
            assert text in told
            assert "delta 1e-6" not in told
            loaded = psd.load("r.psd.parquet")
            assert "delta" not in loaded.record.guarantee_text
            first = loaded._releases[0]
            assert (first.record.delta, first.record.rho) == (None, None)


def test_a_law_that_is_named_is_taken_and_needs_a_delta():
    told = build(*AREA, *USER, *DELTA, "--noise", "gaussian")
    assert "epsilon 1 and delta 1e-6" in told
    assert "noise is discrete Gaussian\n" in told
    assert psd.load("r.psd.parquet").tree.noise.squared_sensitivity == 400
    told = build(*SERIES, "--noise", "laplace", output="s")
    assert "noise is discrete Laplace; no delta is spent, and none is stated" in told
    assert "noise is" not in build(*AREA, *USER, output="without")
    line = ("build v.csv -o no --noise gaussian", *AREA, *USER)
    told = fails(2, *line, "--epsilon", 1)
    assert "--delta must be given with --noise gaussian, got none; with at most this" in told
    told = fails(2, *line[:8], "--epsilon", "1e-9", "--delta", "1e-100")
    assert "--delta must allow a rho of at least 1e-12 with epsilon 0.000000001" in told


def test_recipes_and_tallies_hold_what_chooses_the_noise():
    options = (*SERIES[:-1], "0.0000010", "--dry-run")
    told = build(*options, "--noise", "gaussian", "--save-recipe", "r.toml")
    assert 'delta = "1e-6"\nnoise = "gaussian"' in told
    assert SAID in told
    assert "epsilon 1 and delta 1e-6" in passes("build r.toml")
    plain = build(*options)
    assert 'delta = "1e-6"' in plain
    assert "noise =" not in plain
    passes("tally v.csv -o v.tally", *SERIES[:-2])
    told = build(*DELTA, output="t", inputs="v.tally")
    assert "epsilon 1 and delta 1e-6" in told
    assert "noise is discrete Gaussian (auto)" in told


def test_a_ledger_with_delta_is_charged_in_rho():
    passes("ledger create c.ledger")
    columns = "--budget 2 --unit user --user user --time time"
    passes(f"ledger register c.ledger people {columns}", *DELTA)
    passes(f"ledger register c.ledger pure {columns}")
    paid = (*SERIES, "--ledger", "c.ledger", "--dataset")
    build(*paid, "people")
    status = as_json("ledger status c.ledger")
    people = next(row for row in status if row["dataset"] == "people")
    assert people["spent_rho"] == "0.024355970359"
    said = fails(9, f"build v.csv -o no {TREE}", *paid, "pure")
    assert "has no delta, so it takes no Gaussian noise" in said
    laplace = cli(f"build v.csv -o yes {TREE} --noise laplace", *paid, "pure")
    assert laplace.code == 0
    assert "delta" not in psd.load("yes").record.guarantee_text


def test_rows_of_slices_state_no_epsilon_where_rho_is_that_of_all_slices():
    for law in ("gaussian", "laplace"):
        build(*SERIES, "--noise", law, output=law)
        facts = as_json(f"info {law}")
        assert ("delta" in facts) is (law == "gaussian")
        assert ["epsilon" in row for row in facts["slices"]] == [law == "laplace"] * 20
