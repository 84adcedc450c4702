"""Reports: escaped, marked, with figures that say what the evaluation says."""

import re
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest

import psd
from psd._util.colours import SEQUENTIAL
from psd.apps.evaluation.comparison import compare
from psd.apps.evaluation.figures import check_report, draw_map, draw_predicted_against_true
from psd.apps.evaluation.pages import RASTER, comparison_page, evaluation_page
from psd.apps.evaluation.true_errors import PRIVATE_NOTICE, evaluate
from psd.errors import MissingExtraError, ParameterError
from support.evaluations import BOXES, DOMAIN, built, points

pytestmark = pytest.mark.deep


@pytest.fixture(scope="module")
def table():
    return points(2_000)[["lon", "lat"]]


@pytest.fixture(scope="module")
def release(table):
    return built(table, psd.decompositions.Quadtree(height=4))


def compared(table, epsilons, runs, height=3):
    methods = [psd.decompositions.Grid(size=4), psd.decompositions.Quadtree(height=height)]
    how = {"methods": methods, "epsilon": epsilons, "runs": runs, "jobs": 1}
    return compare(table, domain=DOMAIN, **how)


def test_page_of_an_evaluation(table, release):
    found = evaluate(release, table, raster=RASTER)
    text = evaluation_page(found, release)
    assert text.count(PRIVATE_NOTICE) == 2
    assert text.count("<img ") == text.count("<strong>PRIVATE</strong>") == 9
    assert f"{found.score:.4f}" in text
    worst = found.answers["true_relative_error"].max()
    assert f"{100 * worst:.3g} %" in text
    for name in found.summary["class"]:
        assert f'<th scope="row">{name}</th>' in text
    assert not [part for part in ("http://", "https://", "url(", "<script") if part in text]
    assert evaluation_page(evaluate(release, table), release).count("<img ") == 5
    # One class of no kind; and a release whose every answer is right.
    boxes = BOXES[[0, 1, 3]]
    assert "given" in evaluation_page(evaluate(release, table, boxes=boxes), release)
    exact = built(table, psd.decompositions.Grid(size=1), 1000)
    found = evaluate(exact, table, boxes=BOXES[:1], raster=1)
    assert (found.answers["true_error"] == 0).all()
    assert "0 %" in evaluation_page(found, exact)
    answers = evaluate(release, table).answers
    hexagons = draw_predicted_against_true(answers).axes[0].collections[0]
    drawn = draw_map(np.ones((2, 2)), DOMAIN, "a map", label="records", limit=2.0)
    ends = (SEQUENTIAL[0], SEQUENTIAL[-1])
    for shown in (hexagons, drawn.axes[0].images[0]):
        assert tuple(mpl.colors.to_hex(shown.get_cmap()(end)) for end in (0.0, 1.0)) == ends
    assert "dark is many" in evaluation_page(evaluate(release, table, raster=8), release)


def test_page_of_a_comparison(table):
    found = compared(table, ["0.5", "1"], 2)
    text = comparison_page(found)
    assert text.count("<img ") == text.count("<strong>PRIVATE</strong>") == 1 + 2 * 2
    assert "Ranking at epsilon 0.5" in text
    for score in found.table["score"]:
        assert f"{score:.4f}" in text
    single = comparison_page(compared(table, ["1"], 1))
    assert "unknown: too few builds" in single
    found = compared(table, ["1"], 2, height=2)
    alike = found.table.assign(score=[0.1, 0.11], score_error=[0.01, 0.01])
    assert "0.7 standard errors (a tie)" in comparison_page(replace(found, table=alike))
    apart = alike.assign(score=[0.1, 0.2])
    assert "7.1 standard errors<" in comparison_page(replace(found, table=apart))
    text = comparison_page(compared(table, ["0.5", "1", "2"], 1))
    blocks = [part.partition("</div>")[0] for part in text.split('<div class="figures">')[1:]]
    assert [block.count("<img ") for block in blocks] == [1, 2, 2, 2]
    for block, epsilon in zip(blocks[1:], ("0.5", "1", "2"), strict=True):
        assert block.count(f"error by size of query at epsilon {epsilon}.</figcaption>") == 2
    headings = re.findall(r'<th scope="col">([^<]*)</th>', text.partition("All errors")[2])
    assert headings[:5] == ["method", "epsilon", "score", "standard error", "builds"]


def test_report_is_html_and_needs_its_extra(tmp_path, monkeypatch):
    with pytest.raises(ParameterError, match=r"report must end in \.html, got r\.pdf"):
        check_report(tmp_path / "r.pdf")
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[plot\]'"):
        check_report(tmp_path / "r.html")
