"""Errors carry what they are about as attributes, and nothing private."""

import pickle
import re
import sys
from decimal import Decimal
from pathlib import Path

import pytest

import psd
from psd import errors
from psd.privacy.budget import Budget
from psd.release.file import encode_release
from psd_cli.options.command import rename_arguments

DOMAIN = psd.Domain(bounds=(0, 0, 8, 8))


def test_errors_are_texts_and_survive_another_process(subtests):
    for name in set(errors.__all__) - {"PsdWarning"}:
        with subtests.test(name):
            kind = getattr(errors, name)
            error = kind("a sentence")
            assert isinstance(error, psd.PsdError)
            again = pickle.loads(pickle.dumps(error))
            assert type(again) is kind
            assert str(again) == str(error) == "a sentence"
            with pytest.raises(TypeError, match="no attribute 'row'"):
                kind("a sentence", row=1)
    error = errors.ParameterError("epsilon must be above 0", name="epsilon", value=0)
    error.args = (rename_arguments(str(error), {"epsilon": "--epsilon"}),)
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == "--epsilon must be above 0"
    assert (again.name, again.value) == ("epsilon", 0)
    for kind, name in (("ParameterError", "name"), ("BudgetError", "left"), ("WriteError", "path")):
        assert getattr(getattr(errors, kind)("a sentence"), name) is None


def build(**arguments):
    return psd.build([], **{"domain": DOMAIN, "epsilon": 1, **arguments})


UNIT = (0, 0, 1, 1)
PARAMETERS = [
    (lambda: psd.decompositions.method("quadtree", {"height": "99"}), "height", 99),
    (lambda: psd.decompositions.method("quadtree", {"height": "x"}), "height", "x"),
    (lambda: psd.decompositions.method("quadtree", {"budget": "x"}), "budget", "x"),
    (lambda: psd.decompositions.method("quadtree", {"hight": "8"}), "hight", None),
    (lambda: build(epsilon=0), "epsilon", 0),
    (lambda: build(domain="d"), "domain", None),
    (lambda: build(method=psd.decompositions.Grid), "method", None),
    (lambda: psd.tally([], domain=DOMAIN, usr="id"), "usr", None),
]
DOMAINS = [
    (lambda: psd.Domain(bounds=(1, 0, 0, 1)), "bounds", (1, 0, 0, 1)),
    (lambda: psd.Domain(bounds="private"), "bounds", None),
    (lambda: psd.Domain(bounds=UNIT, crs="x"), "crs", "x"),
    (lambda: psd.Domain(bounds=UNIT, lattice=5), "lattice", None),
]


def test_parameters_domains_files_budgets_and_extras_are_named(subtests, tmp_path, monkeypatch):
    for kind, table in ((errors.ParameterError, PARAMETERS), (errors.DomainError, DOMAINS)):
        for call, name, value in table:
            with subtests.test(name, value=value):
                with pytest.raises(kind) as refused:
                    call()
                assert (refused.value.name, refused.value.value) == (name, value)
    path, release = tmp_path / "r.psd.parquet", psd.testing.release_from_counts([[5]])
    with pytest.raises(errors.ReleaseFormatError) as refused:
        psd.load(path)
    assert refused.value.path == path
    path.write_bytes(encode_release(release.record)[:-9])
    for load in (psd.load, psd.Release.load, psd.Release.load):
        with pytest.raises(errors.ReleaseFormatError) as refused:
            load(path)
        assert refused.value.path == path
    for name in (".", "missing/r.psd.parquet"):
        with pytest.raises(errors.WriteError) as refused:
            release.save(tmp_path / name)
        assert refused.value.path == tmp_path / name
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric", None)
    with pytest.raises(errors.MissingExtraError) as refused:
        psd.signing.new_key(tmp_path / "office.pem")
    assert refused.value.extra == "sign"
    ledger = psd.Ledger.create(tmp_path / "l.ledger")
    ledger.register("visits", budget="0.5")
    account = psd.ledger.Account(ledger, "visits")
    with pytest.raises(errors.BudgetError) as refused:
        psd.build([], domain=DOMAIN, epsilon="0.7", account=account)
    assert (refused.value.requested, refused.value.left) == (Decimal("0.7"), Decimal("0.5"))
    with pytest.raises(errors.BudgetError) as refused:
        Budget(10**9).spend(2 * 10**9)
    assert (refused.value.requested, refused.value.left) == (Decimal(2), Decimal(1))


def test_hints_name_what_stands_after_the_sign(subtests):
    """Advice to give an argument shows its form, so that the option of the command has it too."""
    hint = re.compile(
        r"\b(?:choose one|column|columns|points|name|geometries|raise|state)[\s\"f]+(?:with|by)?"
        r"[\s\"f]*\b(?:x|y|layer|geometry|time|memory|table|query|encoding)=(?![\w\"{])"
    )
    found = 0
    for path in Path(psd.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        found += len(re.findall(r"layer=NAME|time=NAME|geometry=NAME", text))
        with subtests.test(path.name):
            assert not hint.findall(text)
    assert found > 5
