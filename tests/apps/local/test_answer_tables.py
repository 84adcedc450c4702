"""Tables of options and numbers: estimates, errors and intervals, through real campaigns."""

import csv
import io

import numpy as np
import pytest

from psd.apps.local.answer_design import design_numbers, design_options, parse_settings
from psd.apps.local.answer_tables import encode_table, estimate_distribution, read_list, tabulate
from psd.apps.local.protocols import protocol_class
from psd.errors import InputDataError, ParameterError
from support.local import campaign_bytes, collected
from support.seeded_system import same_draws  # noqa: F401

DEVICES = 20_000


def table_of(folder, campaign, values):
    return tabulate(*collected(folder, campaign, values))


def numbers(size=DEVICES):
    return np.clip(np.random.default_rng(3).normal(40, 12, size), 0, 100)


@pytest.mark.parametrize("protocol", ["duchi", "piecewise", "hybrid"])
def test_a_mean_is_within_its_error(tmp_path, protocol):
    campaign = design_numbers(0, 100, 1, DEVICES, protocol=protocol)
    values = numbers()
    [row] = table_of(tmp_path, campaign, values)
    assert row.answer == "mean"
    assert abs(row.estimate - values.mean()) < 5 * row.error
    assert 0.5 < row.error < 1
    assert row.low < row.estimate < row.high


@pytest.mark.deep
def test_a_distribution_is_within_its_errors(tmp_path):
    values = numbers()
    rows = table_of(tmp_path, design_numbers(0, 100, 4, DEVICES), values)
    true = np.histogram(values, np.linspace(0, 100, 65))[0]
    inside = [row.low <= count <= row.high for row, count in zip(rows, true, strict=True)]
    assert len(rows) == 64
    assert rows[0].answer == "0 to 1.5625"
    assert np.mean(inside) > 0.8
    assert sum(row.estimate for row in rows) == pytest.approx(DEVICES)


@pytest.mark.deep
def test_distributions_are_closer_than_chance_and_smooth(tmp_path):
    """Mean absolute error of intervals, epsilon 1, 10^5 devices: section I has 10.8e-3."""
    generator = np.random.default_rng(5)
    matrix = protocol_class("square-wave").best(10**9).matrix()
    values = np.clip(generator.normal(0.49, 0.3, 100_000), 0, 1)
    steps = np.bincount(np.rint(values * 1023).astype(int), minlength=1024)
    outputs = sum(generator.multinomial(n, row) for n, row in zip(steps, matrix, strict=True) if n)
    shares, errors = estimate_distribution(matrix, outputs)
    true = steps.reshape(64, -1).sum(axis=1) / 100_000
    assert np.abs(np.cumsum(shares - true)).mean() < 0.02
    assert (errors > 0).all()
    # Errors without the bias of the smoothing cover 73 % of these parts.
    assert (np.abs(shares - true) < 1.96 * errors).mean() > 0.88


@pytest.mark.parametrize(
    "protocol",
    [pytest.param("bounded-laplace", marks=pytest.mark.deep), "staircase", "bounded-staircase"],
)
def test_single_values_are_counted_with_the_error_of_one_report(tmp_path, protocol):
    rows = table_of(tmp_path, design_numbers(0, 100, 2, 99, protocol=protocol), numbers(300))
    assert sum(row.estimate for row in rows) == 300
    assert len({row.error for row in rows}) == 1
    assert all(0 <= row.low <= float(row.answer) + 1e-3 for row in rows)


@pytest.mark.parametrize("protocol", [None, "rappor"])
def test_options_are_within_their_errors(tmp_path, protocol):
    texts = np.array(["bus"] * 10_000 + ["train"] * 6000 + ["other"] * 4000, object)
    campaign = design_options(["bus", "train"], 1, DEVICES, protocol=protocol)
    rows = table_of(tmp_path, campaign, texts)
    assert [row.answer for row in rows] == ["bus", "train", "none of these"]
    for row, true in zip(rows, (10_000, 6000, 4000), strict=True):
        assert abs(row.estimate - true) < 5 * row.error
    [first, *_] = csv.DictReader(io.StringIO(encode_table(rows).decode()))
    assert list(first) == ["answer", "estimate", "error", "low", "high"]
    assert float(first["estimate"]) == pytest.approx(rows[0].estimate, rel=1e-5)


def test_an_option_that_would_be_a_formula_is_a_text(tmp_path):
    options = ["=1+1", "-5", "-5 to 3", "-x"]
    rows = table_of(tmp_path, design_options(options, 1, DEVICES), np.array(options, object))
    table = csv.DictReader(io.StringIO(encode_table(rows).decode()))
    answers = [row["answer"] for row in table]
    assert answers == ["'=1+1", "-5", "-5 to 3", "'-x", "none of these"]


def test_settings_and_refusals(tmp_path):
    one = design_options(["yes"], None, 9, protocol="k-ary", settings={"truth": "0.75"})
    draw = one.groups[0].draw
    assert one.nano_epsilon == 1_098_612_289  # ln 3, rounded up
    assert draw.threshold / 2**62 == pytest.approx(0.75, abs=1e-9)
    for wrong in (("1", "k-ary"), (None, "unary")):
        with pytest.raises(ParameterError, match="truth must be in place of epsilon"):
            design_options(["yes"], *wrong[:1], 9, protocol=wrong[1], settings={"truth": "0.75"})
    with pytest.raises(ParameterError, match="epsilon must be given"):
        design_options(["yes"], None, 9)
    assert parse_settings([]) == {}
    for wrong in (["window"], ["=1"], ["a="], ["a=1", "a=2"]):
        with pytest.raises(ParameterError, match="NAME=VALUE"):
            parse_settings(wrong)
    assert design_numbers(0, 1, 1, 9, settings={"window": 9}).groups[0].draw.window == 9
    with pytest.raises(ParameterError, match="protocol must be of answers"):
        design_options(["a", "b"], 1, 9, protocol="duchi")
    (tmp_path / "c.json").write_bytes(campaign_bytes())
    with pytest.raises(ParameterError, match="must ask for options or numbers, got places"):
        tabulate(str(tmp_path / "c.json"), str(tmp_path))
    with pytest.raises(InputDataError, match="must have"):
        table_of(tmp_path, design_numbers(0, 1, 1, 9), [])


def test_lines_are_read_with_or_without_a_mark(tmp_path):
    path = tmp_path / "words"
    for mark in ("", "\ufeff"):
        path.write_text(f"{mark}서울\nbus\n", encoding="utf-8")
        assert read_list(str(path), "words") == ["서울", "bus"]
    path.write_bytes(b"\xff\xfe")
    for name in ("words", "missing"):
        with pytest.raises(ParameterError, match="options must be a file of lines in UTF-8"):
            read_list(str(tmp_path / name), "options")
