"""The tests have power: every planted bug is caught by a check that sound code passes."""

import ast
from pathlib import Path

import pytest

from privacy.planted_bugs.registry import MUTANTS
from privacy.planted_bugs.table import page

ROOT = Path(__file__).resolve().parents[2]
IDS = [mutant.id for mutant in MUTANTS]

# Where the privacy proofs end: each stands for a condition that is easily forgotten.
CONDITIONS = {
    *("second-cut", "quantile-sensitivity-of-the-median", "quantile-among-all-records"),
    *("delta-rounded-down", "delta-without-k", "margins-handed-back"),
    *("division-by-squared-deviations", "intervals-in-bounding-boxes", "bounding-by-row-numbers"),
    *("k-per-slice-in-parallel", "regions-of-users-apart", "touching-regions-apart"),
    *("selection-underflow", "noise-cut-off", "share-of-nothing", "part-merged-twice"),
    *("k-of-one-part", "whole-users-in-every-cell", "grid-beside-kd-tree"),
    *("boundary-at-counting", "chain-over-a-fingerprint"),
}

# What each privacy test has to notice at least.
POWER = {
    *("noise-x0.7", "noise-x1.3", "selection-x0.7", "selection-x1.3", "selection-without-factor-2"),
    *("counts-forget-k", "medians-forget-k", "prunes-on-true-counts", "bounds-of-the-data"),
    *("size-of-the-exact-total", "cells-overlap", "halves-of-a-kd-tree-overlap"),
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=IDS)
def test_a_planted_bug_is_caught(mutant, tmp_path):
    with mutant.plant(), pytest.raises(mutant.caught):
        mutant.check(mutant.subject, tmp_path)


CHECKS = {(mutant.check, repr(mutant.sound)): mutant for mutant in MUTANTS}


@pytest.mark.parametrize("mutant", CHECKS.values(), ids=lambda mutant: mutant.id)
def test_sound_code_passes_the_same_check(mutant, tmp_path):
    mutant.check(mutant.sound, tmp_path)


def test_the_registry_is_whole():
    assert len(MUTANTS) >= 40
    assert len(set(IDS)) == len(IDS)
    assert set(IDS) >= CONDITIONS | POWER


@pytest.mark.parametrize("test", sorted({mutant.test for mutant in MUTANTS}))
def test_the_named_tests_exist(test):
    file, name = test.split("::")
    source = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in source.body if isinstance(node, ast.FunctionDef)}


def test_the_page_is_up_to_date():
    assert (ROOT / "docs" / "privacy" / "planted-bugs.md").read_text(encoding="utf-8") == page()
