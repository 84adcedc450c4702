"""What psd does with wrong candidates, prices, zones and tariffs: the table of `bad_choices`."""

import pytest

from psd.ledger.ledger import Ledger
from robustness.bad_choices import CASES, LEDGER, prepare
from support.cli_runner import cli, files


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_case(tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    prepare(case)
    before, contents = files(tmp_path), [path.read_bytes() for path in kept(tmp_path)]
    outcome = cli("choose", *(case.args + case.paid).split())
    assert outcome.code == case.code, outcome
    assert case.told in outcome.err
    assert len(Ledger(LEDGER).state().charges) == case.charges
    if case.code:
        assert (outcome.out, outcome.err.count("\n")) == ("", 1)
        assert outcome.err.startswith("psd: error: ")
    assert files(tmp_path) == before
    if not case.charges:
        assert [path.read_bytes() for path in kept(tmp_path)] == contents


def kept(folder):
    """Files that no command that is refused changes."""
    return sorted(path for path in folder.iterdir() if path.is_file())


def test_ids_are_those_of_one_table():
    assert len({case.name for case in CASES}) == len(CASES)
