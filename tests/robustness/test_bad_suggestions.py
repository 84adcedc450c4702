"""What psd does with wrong releases, weights and own places: the table of `bad_suggestions`."""

import pytest

from robustness.bad_suggestions import CASES, OWN, prepare
from support.cli_runner import cli, files


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_case(tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    prepare(case)
    before = files(tmp_path)
    outcome = cli("suggest", *case.args.split())
    assert outcome.code == case.code, outcome
    assert case.told in outcome.err
    if case.code:
        assert (outcome.out, outcome.err.count("\n")) == ("", 1)
        assert outcome.err.startswith("psd: error: ")
    elif "train" in case.args:
        assert outcome.out == "wrote out.json\n"
        return
    assert files(tmp_path) == before


def test_ids_are_those_of_one_table():
    assert len({case.name for case in CASES}) == len(CASES)
    assert OWN
