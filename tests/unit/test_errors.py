"""Errors carry what they are about as attributes, and nothing private."""

import pickle
import sys
from decimal import Decimal

import pytest

import psd
from psd import errors
from psd.privacy.budget import Budget
from psd.release.file import encode_release
from psd_cli.options.values import rename_arguments

DOMAIN = psd.Domain(bounds=(0, 0, 8, 8))


@pytest.mark.parametrize("name", errors.__all__)
def test_errors_are_texts_and_survive_another_process(name):
    kind = getattr(errors, name)
    error = kind("a sentence")
    assert str(error) == "a sentence"
    assert isinstance(error, psd.PsdError)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == "a sentence"
    with pytest.raises(TypeError, match="no attribute 'row'"):
        kind("a sentence", row=1)


def test_attributes_survive_another_process_and_a_new_sentence():
    error = errors.ParameterError("epsilon must be above 0", name="epsilon", value=0)
    error.args = (rename_arguments(str(error), {"epsilon": "--epsilon"}),)
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == "--epsilon must be above 0"
    assert (again.name, again.value) == ("epsilon", 0)


def test_attributes_that_are_not_stated_are_none():
    assert errors.ParameterError("a sentence").name is None
    assert errors.BudgetError("a sentence").left is None
    assert errors.WriteError("a sentence").path is None


@pytest.mark.parametrize(
    ("call", "kind", "name", "value"),
    [
        (lambda: psd.method("quadtree", {"height": "99"}), errors.ParameterError, "height", 99),
        (lambda: psd.method("quadtree", {"height": "x"}), errors.ParameterError, "height", "x"),
        (lambda: psd.method("quadtree", {"budget": "x"}), errors.ParameterError, "budget", "x"),
        (lambda: psd.method("quadtree", {"hight": "8"}), errors.ParameterError, "hight", None),
        (lambda: psd.build([], domain=DOMAIN, epsilon=0), errors.ParameterError, "epsilon", 0),
        (lambda: psd.build([], domain="d", epsilon=1), errors.ParameterError, "domain", None),
        (
            lambda: psd.build([], domain=DOMAIN, epsilon=1, method=psd.decompositions.Grid),
            errors.ParameterError,
            "method",
            None,
        ),
        (
            lambda: psd.build([], domain=DOMAIN, epsilon=1, epsilom=1),
            errors.ParameterError,
            "epsilom",
            None,
        ),
        (lambda: psd.Domain(bounds=(1, 0, 0, 1)), errors.DomainError, "bounds", (1, 0, 0, 1)),
        (lambda: psd.Domain(bounds="private"), errors.DomainError, "bounds", None),
        (lambda: psd.Domain(bounds=(0, 0, 1, 1), crs="x"), errors.DomainError, "crs", "x"),
        (lambda: psd.Domain(bounds=(0, 0, 1, 1), lattice=5), errors.DomainError, "lattice", None),
    ],
)
def test_parameters_and_domains(call, kind, name, value):
    with pytest.raises(kind) as refused:
        call()
    assert (refused.value.name, refused.value.value) == (name, value)


def test_budgets_state_what_is_left_and_what_was_requested(tmp_path):
    ledger = psd.Ledger.create(tmp_path / "l.ledger")
    ledger.register("visits", budget="0.5")
    account = psd.Account(ledger, "visits")
    with pytest.raises(errors.BudgetError) as refused:
        psd.build([], domain=DOMAIN, epsilon="0.7", account=account)
    assert (refused.value.requested, refused.value.left) == (Decimal("0.7"), Decimal("0.5"))
    with pytest.raises(errors.BudgetError) as refused:
        Budget(10**9).spend(2 * 10**9)
    assert (refused.value.requested, refused.value.left) == (Decimal(2), Decimal(1))


def test_files_of_releases_are_named(tmp_path):
    path = tmp_path / "r.psd.parquet"
    with pytest.raises(errors.ReleaseFormatError) as refused:
        psd.Release.load(path)
    assert refused.value.path == path
    path.write_bytes(encode_release(psd.testing.release_from_counts([[5]]).record)[:-9])
    for load in (psd.load, psd.Release.load, psd.SeriesRelease.load):
        with pytest.raises(errors.ReleaseFormatError) as refused:
            load(path)
        assert refused.value.path == path


def test_files_that_cannot_be_written_are_named(tmp_path):
    release = psd.testing.release_from_counts([[5]])
    for name in (".", "missing/r.psd.parquet"):
        with pytest.raises(errors.WriteError) as refused:
            release.save(tmp_path / name)
        assert refused.value.path == tmp_path / name


def test_extras_that_are_missing_are_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric", None)
    with pytest.raises(errors.MissingExtraError) as refused:
        psd.new_key(tmp_path / "office.pem")
    assert refused.value.extra == "sign"
